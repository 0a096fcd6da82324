//! The fall of the window after a backoff in Linux: over a round trip, in proportion to arrivals (proportional rate
//! reduction, RFC 9937), as `tcp_enter_cwr` begins and `tcp_cwnd_reduction` continues it.
//!
//! The volume in flight falls gradually, so that packets sent meanwhile see the old queue for most of a round trip. If
//! the window falls at once, nothing is sent until the queue has drained: the round of the backoff then already has a
//! small round-trip time, and the next round shows no fall.

use crate::contract::Ack;

/// A reduction in progress, in segments, with the kernel's names.
#[derive(Clone, Copy, Debug)]
pub struct Proportional {
    /// The window before the reduction (prior_cwnd).
    before: u64,
    /// The target of the reduction (snd_ssthresh).
    target: u64,
    /// Segments in flight at its start.
    flight: u64,
    /// Segments delivered since (prr_delivered).
    delivered: u64,
}

impl Proportional {
    /// Begins at `ack`, the last acknowledgment for which the window of `before` segments allows sending.
    pub fn new(before: u64, target: u64, ack: &Ack, mss_bytes: u64) -> Proportional {
        Proportional { before, target, flight: ack.in_flight_bytes / mss_bytes, delivered: 0 }
    }

    /// Returns the window after `ack` in segments.
    pub fn window(&mut self, ack: &Ack, mss_bytes: u64) -> u64 {
        let newly = ack.delivered_bytes / mss_bytes;
        let flight = ack.in_flight_bytes / mss_bytes;
        self.delivered += newly;
        // Segments sent since (prr_out).
        let sent = (flight + self.delivered).saturating_sub(self.flight);
        // Above the target, send in proportion to arrivals; below it, at most as fast as slow start.
        let allowed = if flight > self.target {
            (self.delivered * self.target).div_ceil(self.before).saturating_sub(sent)
        } else {
            let conserved = self.delivered.saturating_sub(sent).max(newly);
            (conserved + u64::from(ack.acked_bytes > 0)).min(self.target - flight)
        };
        flight + if sent == 0 { allowed.max(1) } else { allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Twenty segments are in flight, and the window falls to 14. After d arrivals `tcp_cwnd_reduction` has sent
    /// ceil(14 d / 20) segments, including the one at the start, until 14 are in flight.
    #[test]
    fn the_volume_in_flight_falls_in_proportion_to_arrivals() {
        let ack = |flight| Ack { in_flight_bytes: flight * MSS, ..Ack::in_sequence(MSS) };
        let mut flight = 19;
        let mut reduction = Proportional::new(20, 14, &ack(flight), MSS);
        // The backoff's own acknowledgment still allows a segment.
        flight += 1;
        let mut flights = Vec::new();
        for _ in 0..20 {
            flight = reduction.window(&ack(flight - 1), MSS).max(flight - 1);
            flights.push(flight);
        }
        assert_eq!(flights, [19, 19, 19, 18, 18, 18, 17, 17, 17, 16, 16, 16, 16, 15, 14, 14, 14, 14, 14, 14]);
    }

    /// If less than the new window is in flight, the flight grows no faster than in slow start.
    #[test]
    fn below_the_new_window_each_arrival_allows_at_most_two_segments() {
        let ack = |flight| Ack { in_flight_bytes: flight * MSS, ..Ack::in_sequence(MSS) };
        let mut reduction = Proportional::new(20, 14, &ack(9), MSS);
        assert_eq!([reduction.window(&ack(8), MSS), reduction.window(&ack(9), MSS)], [10, 11]);
        assert_eq!(reduction.window(&ack(13), MSS), 14);
    }
}
