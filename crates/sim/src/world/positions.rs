//! Allocation of positions in the fabric's table of routes: by length, with reuse once a flow is over.

/// The number of positions: packets have 31 bits for it.
const MOST: u64 = 1 << 31;

/// The allocator.
#[derive(Clone, Debug, Default)]
pub(crate) struct Positions {
    /// Positions from here on were never allocated.
    end: u32,
    /// Freed positions, by the number of entries of their routes.
    free: Vec<Vec<u32>>,
}

impl Positions {
    /// Allocates a route of `entries` entries, including its end.
    pub(crate) fn take(&mut self, entries: usize) -> u32 {
        if let Some(at) = self.free.get_mut(entries).and_then(Vec::pop) {
            return at;
        }
        let at = self.end;
        let end = u64::from(at) + entries as u64;
        assert!(end < MOST, "the routes of all open flows have more than {MOST} links");
        self.end = end as u32;
        at
    }

    /// Frees the route of `entries` entries at `at`.
    pub(crate) fn give_back(&mut self, at: u32, entries: usize) {
        if self.free.len() <= entries {
            self.free.resize_with(entries + 1, Vec::new);
        }
        self.free[entries].push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_used_again_for_routes_of_its_length() {
        let mut positions = Positions::default();
        assert_eq!([3, 5, 3].map(|entries| positions.take(entries)), [0, 3, 8]);
        positions.give_back(0, 3);
        assert_eq!([5, 3, 3].map(|entries| positions.take(entries)), [11, 0, 16]);
    }
}
