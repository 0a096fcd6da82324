//! A growing ring with absolute positions.

use crate::prefetch::prefetch;

/// Asks for what comes a few items after the oldest, so that it is here when it is read. At the end of the slots, where the ring
/// goes on at their beginning, it asks in vain: that is rare, and cheaper than knowing.
#[inline(always)]
fn expect_after<T>(oldest: &T) {
    prefetch(std::ptr::from_ref(oldest).wrapping_add(4));
}

/// A first-in, first-out ring of small copyable items.
///
/// Items keep the absolute position at which they were pushed (0, 1, 2, ...), so that a cursor into
/// the ring survives pushes, pops and growth. Storage doubles when full and never shrinks.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Ring<T> {
    /// As many as a power of two.
    slots: Box<[T]>,
    head: u64,
    tail: u64,
}

impl<T: Copy + Default> Ring<T> {
    /// An empty ring with room for `capacity` items, rounded up to a power of two.
    pub fn with_capacity(capacity: usize) -> Ring<T> {
        let slots = capacity.max(4).next_power_of_two();
        Ring { slots: vec![T::default(); slots].into_boxed_slice(), head: 0, tail: 0 }
    }

    #[inline(always)]
    fn slot(&self, at: u64) -> usize {
        at as usize & (self.slots.len() - 1)
    }

    /// The number of items held.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// Whether the ring holds nothing.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Whether one more item makes the ring grow.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len() >= self.slots.len() as u64
    }

    /// The absolute position of the oldest item: how many items were ever popped.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// The absolute position that the next pushed item gets: how many items were ever pushed.
    #[inline(always)]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Appends `item`.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        *self.push_slot() = item;
    }

    /// Appends a slot and returns it, with whatever was in it: for items that are cheaper to write in place.
    #[inline(always)]
    pub fn push_slot(&mut self) -> &mut T {
        if self.is_full() {
            self.grow();
        }
        let slot = self.slot(self.tail);
        self.tail += 1;
        &mut self.slots[slot]
    }

    /// Removes the oldest item of a ring that holds one, and leaves it to be read until the next push.
    #[inline(always)]
    pub fn pop_in_place(&mut self) -> &T {
        debug_assert!(!self.is_empty(), "popped an empty ring");
        let slot = self.slot(self.head);
        self.head += 1;
        let item = &self.slots[slot];
        expect_after(item);
        item
    }

    /// Removes and returns the oldest item.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let item = &self.slots[self.slot(self.head)];
        self.head += 1;
        expect_after(item);
        Some(*item)
    }

    /// An empty ring begins again at position zero: one that is often empty then uses the same few cache lines, however long
    /// it once was. Returns whether it is empty.
    #[inline(always)]
    pub fn rewind_if_empty(&mut self) -> bool {
        let is_empty = self.is_empty();
        let kept = u64::from(!is_empty).wrapping_neg();
        self.head &= kept;
        self.tail &= kept;
        is_empty
    }

    /// Removes the oldest items as long as `goes` holds, which it does for none that comes after one for which it does not.
    pub fn pop_while(&mut self, goes: impl Fn(&T) -> bool) {
        let (mut stays, mut unknown) = (self.tail, self.head);
        while unknown < stays {
            let middle = unknown + (stays - unknown) / 2;
            if goes(&self.slots[self.slot(middle)]) { unknown = middle + 1 } else { stays = middle }
        }
        self.head = stays;
    }

    /// Removes and returns the newest item; what is pushed next gets its position.
    pub fn pop_newest(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.tail -= 1;
        Some(self.slots[self.slot(self.tail)])
    }

    /// The oldest item.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { Some(&self.slots[self.slot(self.head)]) }
    }

    /// The slot of the oldest item: of an empty ring, whatever is in it.
    #[inline(always)]
    pub fn oldest_slot(&self) -> &T {
        &self.slots[self.slot(self.head)]
    }

    /// The slot of the newest item: of an empty ring, whatever is in it.
    #[inline(always)]
    pub fn newest_slot(&self) -> &T {
        &self.slots[self.slot(self.tail.wrapping_sub(1))]
    }

    /// The item at absolute position `at`, where `head() <= at < tail()`.
    #[inline(always)]
    pub fn at(&self, at: u64) -> T {
        self.slots[self.slot(at)]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        // Twice the old slots, one after the other: an item lies in both, and so where the longer mask looks for it, too.
        let slots = [&*self.slots, &*self.slots].concat().into_boxed_slice();
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_across_growth() {
        let mut ring = Ring::with_capacity(4);
        let (mut pushed, mut popped) = (0u64, 0u64);
        for round in 0..50 {
            for _ in 0..round {
                ring.push(pushed);
                pushed += 1;
            }
            for _ in 0..round / 2 {
                assert_eq!(ring.pop(), Some(popped));
                popped += 1;
            }
            assert_eq!(ring.len(), pushed - popped);
            assert_eq!(ring.at(ring.head()), popped);
        }
        assert_eq!(ring.pop_newest(), Some(pushed - 1));
    }

    #[test]
    fn what_is_in_order_goes_as_far_as_asked() {
        let mut ring = Ring::with_capacity(4);
        (0..4).for_each(|item| ring.push(item));
        ring.pop_while(|_| false);
        assert_eq!(ring.len(), 4);
        assert!(ring.is_full());
        ring.pop_while(|&item| item < 2);
        assert_eq!((ring.head(), ring.is_full()), (2, false));
        (4..9).for_each(|item| ring.push(item));
        ring.pop_while(|&item| item < 5);
        assert_eq!((ring.head(), ring.len(), ring.front(), *ring.newest_slot()), (5, 4, Some(&5), 8));
        ring.pop_while(|_| true);
        assert!(ring.is_empty());
    }

    #[test]
    fn an_emptied_ring_can_begin_again() {
        let mut ring = Ring::with_capacity(4);
        for item in 0..3 {
            ring.push(item);
        }
        assert_eq!((ring.pop(), ring.rewind_if_empty(), ring.head(), ring.tail()), (Some(0), false, 1, 3));
        assert_eq!((ring.pop(), ring.pop()), (Some(1), Some(2)));
        assert_eq!((ring.rewind_if_empty(), ring.head(), ring.tail(), ring.pop()), (true, 0, 0, None));
    }

    #[test]
    fn an_empty_ring_gives_nothing() {
        let mut ring = Ring::<u8>::with_capacity(1);
        assert_eq!((ring.pop(), ring.pop_newest(), ring.front()), (None, None, None));
    }
}
