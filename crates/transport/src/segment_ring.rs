//! A ring buffer of per-segment state, indexed by sequence number.

use sparelane_core::Seq;

/// A value for each outstanding segment.
///
/// The number of slots is a power of two, and the low bits of a sequence number select the slot. Values therefore stay
/// in place when the oldest segment advances. The ring doubles when the outstanding segments no longer fit, and never
/// shrinks.
#[derive(Clone, Debug)]
pub(crate) struct SegmentRing<T> {
    slots: Box<[T]>,
}

impl<T: Copy + Default> SegmentRing<T> {
    /// Creates a ring of 16 slots.
    pub(crate) fn new() -> SegmentRing<T> {
        SegmentRing { slots: Box::new([T::default(); 16]) }
    }

    #[inline(always)]
    fn slot(&self, seq: Seq) -> usize {
        seq as usize & (self.slots.len() - 1)
    }

    /// Returns the value of the outstanding segment `seq`.
    #[inline(always)]
    pub(crate) fn get(&self, seq: Seq) -> T {
        self.slots[self.slot(seq)]
    }

    /// Returns the slot of segment `seq`, with any content.
    #[inline(always)]
    pub(crate) fn slot_of(&self, seq: Seq) -> &T {
        &self.slots[self.slot(seq)]
    }

    /// Returns the value of the outstanding segment `seq` for modification.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, seq: Seq) -> &mut T {
        &mut self.slots[self.slot(seq)]
    }

    /// Sets the value of segment `seq`, given the `oldest` outstanding segment. The ring grows if needed.
    #[inline(always)]
    pub(crate) fn set(&mut self, oldest: Seq, seq: Seq, value: T) {
        if (seq - oldest) as usize >= self.slots.len() {
            self.grow(seq - oldest);
        }
        *self.get_mut(seq) = value;
    }

    /// Doubles the ring until it has more than `above` slots.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, above: Seq) {
        while self.slots.len() as Seq <= above {
            // Both halves get a copy of the old slots, so each value is valid whatever the additional index bit is.
            self.slots = [&*self.slots, &*self.slots].concat().into_boxed_slice();
        }
    }

    /// Returns the heap memory in bytes.
    pub(crate) fn list_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_with_their_segments_while_the_oldest_advances_and_the_ring_grows() {
        let mut squares = SegmentRing::new();
        for (oldest, newest) in [(0, 15), (10, 25), (20, 36), (21, 90), (1_000_003, 1_000_900)] {
            for seq in oldest..=newest {
                squares.set(oldest, seq, seq * seq);
            }
            assert!((oldest..=newest).all(|seq| squares.get(seq) == seq * seq));
        }
        // A jump in sequence numbers, as when the window opens.
        squares.set(1_000_900, 1_010_000, 7);
        assert_eq!((squares.get(1_000_900), squares.get(1_010_000)), (1_000_900 * 1_000_900, 7));
        *squares.get_mut(1_000_900) += 1;
        assert_eq!(squares.get(1_000_900), 1_000_900 * 1_000_900 + 1);
        assert_eq!(squares.list_bytes(), 16_384 * size_of::<Seq>());
    }
}
