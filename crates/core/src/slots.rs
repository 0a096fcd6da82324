//! The storage of rings: a power of two of slots, in which positions that only grow go round.

use std::ops::{Index, IndexMut};

/// Slots for items at the positions 0, 1, 2, ... The low bits of a position select its slot, so items that are not too far
/// apart have separate slots, and no position is out of bounds.
#[derive(Clone, Debug)]
pub struct Slots<T>(Box<[T]>);

impl<T: Copy + Default> Slots<T> {
    /// Creates slots for `least` items, rounded up to a power of two.
    pub fn new(least: usize) -> Slots<T> {
        Slots(vec![T::default(); least.max(1).next_power_of_two()].into_boxed_slice())
    }

    /// Doubles the slots. All items stay at their positions: both halves get a copy of the old slots, so the item is right
    /// whatever the additional bit of its position is.
    #[cold]
    #[inline(never)]
    pub fn double(&mut self) {
        self.0 = [&*self.0, &*self.0].concat().into_boxed_slice();
    }
}

impl<T> Slots<T> {
    /// Returns the number of slots, which is not zero.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "there are always slots")]
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    #[inline(always)]
    fn place(&self, position: u64) -> usize {
        position as usize & (self.0.len() - 1)
    }
}

impl<T> Index<u64> for Slots<T> {
    type Output = T;

    /// Returns the slot of a position.
    #[inline(always)]
    fn index(&self, position: u64) -> &T {
        &self.0[self.place(position)]
    }
}

impl<T> IndexMut<u64> for Slots<T> {
    #[inline(always)]
    fn index_mut(&mut self, position: u64) -> &mut T {
        let place = self.place(position);
        &mut self.0[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_at_least_one_slot_and_their_number_is_a_power_of_two() {
        for (least, count) in [(0, 1), (1, 1), (2, 2), (3, 4), (16, 16), (17, 32)] {
            let mut slots = Slots::<u8>::new(least);
            assert_eq!(slots.len(), count, "for {least}");
            slots[u64::MAX] = 7;
            assert_eq!((slots[u64::MAX], slots[count - 1]), (7, 7), "the last position has the last slot");
            slots.double();
            assert_eq!(slots.len(), 2 * count);
        }
    }

    #[test]
    fn items_keep_their_positions_when_the_slots_are_doubled() {
        for first in [0, 5, 15, 1_000_003] {
            let mut slots = Slots::new(16);
            (first..first + 16).for_each(|position| slots[position] = position);
            slots.double();
            slots.double();
            assert!((first..first + 16).all(|position| slots[position] == position), "from {first} on");
        }
    }
}
