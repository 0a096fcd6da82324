//! How long one side of a transfer waits for the other, which is there and does nothing.

use sparelane_core::{Dur, Time};

/// A transfer of which nothing moves for so long is ended, unless another time is set.
pub const STALL_TIMEOUT: Dur = Dur::from_secs(300);

/// What one side knows of the other's progress.
#[derive(Debug)]
pub struct Patience {
    most: Dur,
    moved: u64,
    since: Option<Time>,
}

impl Patience {
    /// It lasts for so long at most.
    pub fn new(most: Dur) -> Patience {
        Patience { most, moved: 0, since: None }
    }

    /// What the other side has done makes this number now, whatever it counts; where this side `works`, it is not the other that is
    /// waited for. Returns whether the patience is at its end.
    pub fn is_over(&mut self, now: Time, moved: u64, works: bool) -> bool {
        if moved != self.moved || works {
            (self.moved, self.since) = (moved, None);
        }
        let since = *self.since.get_or_insert(now);
        now.saturating_since(since) >= self.most
    }

    /// How long it lasts.
    pub fn most(&self) -> Dur {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_where_nothing_moves_and_this_side_has_nothing_to_do() {
        let mut patience = Patience::new(Dur::from_secs(10));
        let at = |seconds| Time::ZERO + Dur::from_secs(seconds);
        assert!(!patience.is_over(at(100), 0, false) && !patience.is_over(at(109), 0, false));
        assert!(!patience.is_over(at(110), 1, false), "something has moved");
        assert!(!patience.is_over(at(119), 1, true) && !patience.is_over(at(128), 1, false), "it works itself");
        assert!(patience.is_over(at(129), 1, false));
    }
}
