//! A growing ring buffer with absolute positions.

use crate::prefetch::prefetch;
use crate::slots::Slots;

/// Prefetches the item that follows a few positions after the oldest. At the wrap-around it prefetches a useless
/// address, which is rare and cheaper than a check.
#[inline(always)]
fn prefetch_after<T>(oldest: &T) {
    prefetch(std::ptr::from_ref(oldest).wrapping_add(4));
}

/// A first-in, first-out ring of small copyable items.
///
/// Items keep the absolute position at which they were pushed (0, 1, 2, ...), so that a cursor into
/// the ring survives pushes, pops and growth. Storage doubles when full and never shrinks.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Ring<T> {
    slots: Slots<T>,
    head: u64,
    tail: u64,
}

impl<T: Copy + Default> Ring<T> {
    /// Creates an empty ring with room for `capacity` items, rounded up to a power of two.
    pub fn with_capacity(capacity: usize) -> Ring<T> {
        Ring { slots: Slots::new(capacity.max(4)), head: 0, tail: 0 }
    }

    /// Returns the number of items.
    #[inline(always)]
    pub fn len(&self) -> u64 {
        self.tail - self.head
    }

    /// Returns true if the ring is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// Returns true if the ring has exactly one item.
    #[inline(always)]
    pub fn has_one(&self) -> bool {
        self.head + 1 == self.tail
    }

    /// Returns true if one more item makes the ring grow.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.len() >= self.slots.len()
    }

    /// Returns the absolute position of the oldest item, which is the number of items ever popped.
    #[inline(always)]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Returns the absolute position of the next pushed item, which is the number of items ever pushed.
    #[inline(always)]
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Appends `item`.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        *self.push_slot() = item;
    }

    /// Appends a slot with stale content and returns it, for items that are cheaper to write in place.
    #[inline(always)]
    pub fn push_slot(&mut self) -> &mut T {
        if self.is_full() {
            self.slots.double();
        }
        let at = self.tail;
        self.tail += 1;
        &mut self.slots[at]
    }

    /// Returns the slot of the item that follows the oldest, with stale content if there is none.
    #[inline(always)]
    pub fn second_slot(&self) -> &T {
        &self.slots[self.head + 1]
    }

    /// Returns the slot of the next pushed item, unless the ring grows before, with stale content.
    #[inline(always)]
    pub fn next_slot(&self) -> &T {
        &self.slots[self.tail]
    }

    /// Removes the oldest item of a non-empty ring. The item can be read until the next push.
    #[inline(always)]
    pub fn pop_in_place(&mut self) -> &T {
        debug_assert!(!self.is_empty(), "popped an empty ring");
        let item = &self.slots[self.head];
        self.head += 1;
        prefetch_after(item);
        item
    }

    /// Removes and returns the oldest item.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let item = &self.slots[self.head];
        self.head += 1;
        prefetch_after(item);
        Some(*item)
    }

    /// Moves an empty ring back to position zero. A ring that is often empty then reuses the same few cache lines,
    /// however long it once was. Returns true if the ring is empty.
    #[inline(always)]
    pub fn rewind_if_empty(&mut self) -> bool {
        let is_empty = self.is_empty();
        let kept = u64::from(!is_empty).wrapping_neg();
        self.head &= kept;
        self.tail &= kept;
        is_empty
    }

    /// Removes the oldest items for which `is_done` holds. It must hold for a prefix of the items and for none after
    /// it.
    pub fn pop_while(&mut self, is_done: impl Fn(&T) -> bool) {
        let (mut stays, mut unknown) = (self.tail, self.head);
        // Binary search for the first item that stays.
        while unknown < stays {
            let middle = unknown + (stays - unknown) / 2;
            if is_done(&self.slots[middle]) { unknown = middle + 1 } else { stays = middle }
        }
        self.head = stays;
    }

    /// Removes and returns the newest item; the next pushed item gets its position.
    pub fn pop_newest(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.tail -= 1;
        Some(self.slots[self.tail])
    }

    /// Returns the oldest item.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { Some(&self.slots[self.head]) }
    }

    /// Returns the slot of the oldest item, with stale content if the ring is empty.
    #[inline(always)]
    pub fn oldest_slot(&self) -> &T {
        &self.slots[self.head]
    }

    /// Returns the slot of the newest item, with stale content if the ring is empty.
    #[inline(always)]
    pub fn newest_slot(&self) -> &T {
        &self.slots[self.tail.wrapping_sub(1)]
    }

    /// Returns the item at absolute position `at`, where `head() <= at < tail()`.
    #[inline(always)]
    pub fn at(&self, at: u64) -> T {
        self.slots[at]
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
    fn a_prefix_of_the_items_is_removed() {
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
    fn an_emptied_ring_restarts_at_zero() {
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
