//! Rounds: one window of data after another, told by what is delivered.

use crate::contract::Ack;

/// Tells when all that was in flight at the end of the last round has been delivered, about once per round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Round {
    /// In flight when the round began, and not delivered since; bytes.
    left_bytes: u64,
}

impl Round {
    /// Counts what `ack` tells. True where it goes beyond what was in flight when the round began: the next one begins
    /// here. The first acknowledgment ends an empty round.
    #[inline]
    pub fn is_over(&mut self, ack: &Ack) -> bool {
        if ack.delivered_bytes <= self.left_bytes {
            self.left_bytes -= ack.delivered_bytes;
            return false;
        }
        self.left_bytes = ack.in_flight_bytes;
        true
    }

    /// A new round begins with what is in flight at `ack`.
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
        // Nine of the round before, with ten always in flight, and then the first of this one.
        for _ in 0..9 {
            assert!(!round.is_over(&ack(9)));
        }
        assert!(round.is_over(&ack(9)));
        round.restart(&ack(2));
        assert_eq!([(); 3].map(|()| round.is_over(&ack(5))), [false, false, true]);
    }
}
