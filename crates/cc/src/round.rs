//! Rounds: consecutive windows of data, delimited by delivered bytes.

use crate::contract::Ack;

/// Detects when all data in flight at the start of the round has been delivered, about once per round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// Bytes in flight when the round began and not delivered since.
    left_bytes: u64,
}

impl Round {
    /// Counts `ack` and returns true if it delivers more than was in flight when the round began. The next round then
    /// begins with this acknowledgment. The first acknowledgment of a connection ends an empty round.
    #[inline]
    pub fn is_over(&mut self, ack: &Ack) -> bool {
        if ack.delivered_bytes <= self.left_bytes {
            self.left_bytes -= ack.delivered_bytes;
            return false;
        }
        self.left_bytes = ack.in_flight_bytes;
        true
    }

    /// Begins a new round with the bytes in flight at `ack`.
    pub fn restart(&mut self, ack: &Ack) {
        self.left_bytes = ack.in_flight_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_the_first_segment_that_was_sent_in_it() {
        let ack = |in_flight_bytes| Ack { in_flight_bytes, ..Ack::in_sequence(1) };
        let mut round = Round::default();
        assert!(round.is_over(&ack(9)));
        // Nine acknowledgments of the previous round, with ten segments always in flight, then the first of this one.
        for _ in 0..9 {
            assert!(!round.is_over(&ack(9)));
        }
        assert!(round.is_over(&ack(9)));
        round.restart(&ack(2));
        assert_eq!([(); 3].map(|()| round.is_over(&ack(5))), [false, false, true]);
    }
}
