//! A ring buffer of per-segment state, indexed by sequence number.

use sparelane_core::{Seq, Slots};

/// A value for each outstanding segment.
///
/// Values stay in place when the oldest segment advances. The ring doubles when the outstanding segments no longer fit,
/// and never shrinks.
#[derive(Clone, Debug)]
pub(crate) struct SegmentRing<T> {
    slots: Slots<T>,
}

impl<T: Copy + Default> SegmentRing<T> {
    /// Creates a ring of 16 slots.
    pub(crate) fn new() -> SegmentRing<T> {
        SegmentRing { slots: Slots::new(16) }
    }

    /// Returns the value of the outstanding segment `seq`.
    #[inline(always)]
    pub(crate) fn get(&self, seq: Seq) -> T {
        self.slots[seq]
    }

    /// Returns the slot of segment `seq`, with any content.
    #[inline(always)]
    pub(crate) fn slot_of(&self, seq: Seq) -> &T {
        &self.slots[seq]
    }

    /// Returns the value of the outstanding segment `seq` for modification.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, seq: Seq) -> &mut T {
        &mut self.slots[seq]
    }

    /// Sets the value of segment `seq`, given the `oldest` outstanding segment. The ring grows if needed.
    #[inline(always)]
    pub(crate) fn set(&mut self, oldest: Seq, seq: Seq, value: T) {
        if seq - oldest >= self.slots.len() {
            self.grow(seq - oldest);
        }
        *self.get_mut(seq) = value;
    }

    /// Doubles the ring until it has more than `above` slots.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, above: Seq) {
        while self.slots.len() <= above {
            self.slots.double();
        }
    }

    /// Returns the heap memory in bytes.
    pub(crate) fn list_bytes(&self) -> usize {
        self.slots.len() as usize * size_of::<T>()
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
