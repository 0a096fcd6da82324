//! A growing ring with absolute positions.

/// A first-in, first-out ring of small copyable items.
///
/// Items keep the absolute position at which they were pushed (0, 1, 2, ...), so that a cursor into
/// the ring survives pushes, pops and growth. Storage doubles when full and never shrinks.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    slots: Box<[T]>,
    mask: u32,
    head: u32,
    tail: u32,
}

impl<T: Copy + Default> Ring<T> {
    /// An empty ring with room for `capacity` items, rounded up to a power of two.
    pub fn with_capacity(capacity: usize) -> Ring<T> {
        let slots = capacity.max(4).next_power_of_two();
        Ring { slots: vec![T::default(); slots].into_boxed_slice(), mask: slots as u32 - 1, head: 0, tail: 0 }
    }

    /// The number of items held.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether the ring holds nothing.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }

    /// The absolute position of the oldest item (modulo 2^32).
    #[inline(always)]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// The absolute position that the next pushed item gets (modulo 2^32).
    #[inline(always)]
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// Appends `item`.
    #[inline(always)]
    pub fn push(&mut self, item: T) {
        if self.tail.wrapping_sub(self.head) > self.mask {
            self.grow();
        }
        self.slots[(self.tail & self.mask) as usize] = item;
        self.tail = self.tail.wrapping_add(1);
    }

    /// Removes and returns the oldest item.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let item = self.slots[(self.head & self.mask) as usize];
        self.head = self.head.wrapping_add(1);
        Some(item)
    }

    /// Removes and returns the newest item.
    pub fn pop_newest(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.tail = self.tail.wrapping_sub(1);
        Some(self.slots[(self.tail & self.mask) as usize])
    }

    /// The oldest item.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { Some(&self.slots[(self.head & self.mask) as usize]) }
    }

    /// The item at absolute position `at`, where `head() <= at < tail()`.
    #[inline(always)]
    pub fn at(&self, at: u32) -> T {
        self.slots[(at & self.mask) as usize]
    }

    /// Drops every item; positions go on from where they were.
    pub fn clear(&mut self) {
        self.head = self.tail;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut slots = vec![T::default(); self.slots.len() * 2].into_boxed_slice();
        let mask = slots.len() as u32 - 1;
        for offset in 0..self.len() {
            let at = self.head.wrapping_add(offset);
            slots[(at & mask) as usize] = self.slots[(at & self.mask) as usize];
        }
        self.slots = slots;
        self.mask = mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_across_growth() {
        let mut ring = Ring::with_capacity(4);
        let (mut pushed, mut popped) = (0u32, 0u32);
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
    fn an_empty_ring_gives_nothing() {
        let mut ring = Ring::<u8>::with_capacity(1);
        assert_eq!((ring.pop(), ring.pop_newest(), ring.front()), (None, None, None));
    }
}
