//! Window growth in whole segments, as in Linux: acknowledgments earn credit, and each full price of credit adds a
//! segment.
//!
//! The arithmetic is exact at any window, because left-over credit is kept. In some of its laws Linux 2.6.32 drops the
//! remainder after each segment and compares before it counts, so that a segment costs one acknowledgment more than the
//! law says. Later versions work as this one does.

use crate::contract::Ack;
use crate::window::Window;

/// Returns the bytes that `ack` counts for. The acknowledgment that ends recovery covers a whole window, most of which
/// SACK had reported as delivered before. Linux 2.6.32 counts acknowledgments, without that one; later versions count
/// newly delivered segments.
#[inline]
pub fn counted_bytes(ack: &Ack) -> u64 {
    ack.acked_bytes.min(ack.delivered_bytes)
}

/// Credit that has been earned and not spent, in a unit that the law chooses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Increase {
    saved: u64,
}

impl Increase {
    /// Discards the credit, as Linux does at every loss.
    pub fn forget(&mut self) {
        self.saved = 0;
    }

    /// Adds `earned` to the credit and grows `window` by one segment per `price` of credit, up to `most_segments`;
    /// credit beyond that is lost. Returns true if the window has grown.
    #[inline]
    pub fn grow(&mut self, window: &mut Window, earned: u64, price: u64, most_segments: u64, mss_bytes: u64) -> bool {
        self.saved = self.saved.saturating_add(earned);
        if self.saved < price {
            return false;
        }
        let price = price.max(1);
        let segments = (self.saved / price).min(most_segments);
        self.saved %= price;
        window.cwnd += segments * mss_bytes;
        segments > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_over_credit_pays_for_the_next_segment() {
        let mut window = Window { cwnd: 10_000, ssthresh: 0 };
        let mut increase = Increase::default();
        let grew: Vec<_> = (0..7).map(|_| increase.grow(&mut window, 3, 7, u64::MAX, 1000)).collect();
        assert_eq!(grew, [false, false, true, false, true, false, true], "three segments for 21 acknowledged ones");
        assert_eq!(window.cwnd, 13_000);
    }

    #[test]
    fn the_acknowledgment_that_ends_recovery_counts_newly_delivered_bytes() {
        let end = Ack { delivered_bytes: 1000, ..Ack::in_sequence(80_000) };
        assert_eq!(counted_bytes(&end), 1000);
        let after_sacks = Ack { delivered_bytes: 3000, ..Ack::in_sequence(1000) };
        assert_eq!(counted_bytes(&after_sacks), 1000);
    }

    #[test]
    fn credit_beyond_the_limit_is_lost() {
        let mut window = Window { cwnd: 10_000, ssthresh: 0 };
        let mut increase = Increase::default();
        assert!(increase.grow(&mut window, 75, 10, 2, 1000));
        assert_eq!(window.cwnd, 12_000);
        assert!(!increase.grow(&mut window, 4, 10, 2, 1000), "credit for 5 + 4 segments is saved");
        assert!(increase.grow(&mut window, 1, 10, 2, 1000));
        assert_eq!(window.cwnd, 13_000);
    }
}
