//! Where routes are in the fabric's table: positions are given out by length, and used again when their flow is over.

/// Packets have 31 bits for the position in their route.
const MOST: u64 = 1 << 31;

/// Positions in the table of routes.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions {
    /// Nothing was given out from here on.
    end: u32,
    /// Where routes were that are over, by how many entries they had.
    free: Vec<Vec<u32>>,
}

impl Positions {
    /// Where a route of so many entries goes, its end among them.
    pub(super) fn take(&mut self, entries: usize) -> u32 {
        if let Some(at) = self.free.get_mut(entries).and_then(Vec::pop) {
            return at;
        }
        let at = self.end;
        let end = u64::from(at) + entries as u64;
        assert!(end < MOST, "the routes of all open flows have more than {MOST} links");
        self.end = end as u32;
        at
    }

    /// The route of so many entries at `at` is over.
    pub(super) fn give_back(&mut self, at: u32, entries: usize) {
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
