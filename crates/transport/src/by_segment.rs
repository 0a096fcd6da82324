//! What is kept of each segment that is outstanding, by its number.

use sparelane_core::Seq;

/// A value for each of the segments from the oldest that is outstanding on.
///
/// There are as many slots as a power of two, and a segment's slot is given by the low bits of its number: values stay where they
/// are as the oldest segment moves on. Slots double when the segments no longer fit, and never become fewer.
#[derive(Clone, Debug)]
pub(crate) struct BySegment<T> {
    slots: Box<[T]>,
}

impl<T: Copy + Default> BySegment<T> {
    /// Room for a few segments.
    pub(crate) fn new() -> BySegment<T> {
        BySegment { slots: Box::new([T::default(); 16]) }
    }

    #[inline(always)]
    fn slot(&self, seq: Seq) -> usize {
        seq as usize & (self.slots.len() - 1)
    }

    /// The value of segment `seq`, which is outstanding and has one.
    #[inline(always)]
    pub(crate) fn get(&self, seq: Seq) -> T {
        self.slots[self.slot(seq)]
    }

    /// As [`get`](Self::get), to be changed.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, seq: Seq) -> &mut T {
        &mut self.slots[self.slot(seq)]
    }

    /// Segment `seq` has this value, and `oldest` is the oldest segment that is outstanding.
    #[inline(always)]
    pub(crate) fn set(&mut self, oldest: Seq, seq: Seq, value: T) {
        if (seq - oldest) as usize >= self.slots.len() {
            self.grow(seq - oldest);
        }
        *self.get_mut(seq) = value;
    }

    /// Makes more than `above` slots.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, above: Seq) {
        while self.slots.len() as Seq <= above {
            // Twice the old slots, one after the other: a value lies in both, and so where one more bit of its number leads, too.
            self.slots = [&*self.slots, &*self.slots].concat().into_boxed_slice();
        }
    }

    /// Memory behind this value, bytes.
    pub(crate) fn list_bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_to_their_segments_while_the_oldest_moves_on_and_slots_grow() {
        let mut squares = BySegment::new();
        for (oldest, newest) in [(0, 15), (10, 25), (20, 36), (21, 90), (1_000_003, 1_000_900)] {
            for seq in oldest..=newest {
                squares.set(oldest, seq, seq * seq);
            }
            assert!((oldest..=newest).all(|seq| squares.get(seq) == seq * seq));
        }
        // Numbers that lie far apart at once, as where a window opens.
        squares.set(1_000_900, 1_010_000, 7);
        assert_eq!((squares.get(1_000_900), squares.get(1_010_000)), (1_000_900 * 1_000_900, 7));
        *squares.get_mut(1_000_900) += 1;
        assert_eq!(squares.get(1_000_900), 1_000_900 * 1_000_900 + 1);
        assert_eq!(squares.list_bytes(), 16_384 * size_of::<Seq>());
    }
}
