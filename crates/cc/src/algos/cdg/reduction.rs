//! How the window falls after a backoff in Linux: over a round trip, in proportion to what arrives (proportional rate reduction,
//! RFC 9937), as `tcp_enter_cwr` begins it and `tcp_cwnd_reduction` goes on with it.
//!
//! What is in flight falls by and by. Packets that go out meanwhile see the queue of before for most of a round trip; where the
//! window falls at once, none goes out until the queue has drained, so that the round of the backoff has a small round-trip
//! time already and the next one shows no fall.

use crate::contract::Ack;

/// A reduction that is under way, in segments. The kernel's names stand behind.
#[derive(Clone, Copy, Debug)]
pub struct Proportional {
    /// The window before (prior_cwnd).
    before: u64,
    /// The window that it falls to (snd_ssthresh).
    target: u64,
    /// In flight when it began.
    flight: u64,
    /// Delivered since (prr_delivered).
    delivered: u64,
}

impl Proportional {
    /// Begins at `ack`, which is the last one that the window of `before` segments allows sending for.
    pub fn new(before: u64, target: u64, ack: &Ack, mss_bytes: u64) -> Proportional {
        Proportional { before, target, flight: ack.in_flight_bytes / mss_bytes, delivered: 0 }
    }

    /// The window after `ack`, in segments.
    pub fn window(&mut self, ack: &Ack, mss_bytes: u64) -> u64 {
        let newly = ack.delivered_bytes / mss_bytes;
        let flight = ack.in_flight_bytes / mss_bytes;
        self.delivered += newly;
        // Sent since (prr_out).
        let sent = (flight + self.delivered).saturating_sub(self.flight);
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

    /// Twenty segments in flight, and a window that falls to 14: after d arrivals `tcp_cwnd_reduction` has let ceil(14 d / 20) go, the
    /// one of the beginning among them, until 14 are in flight.
    #[test]
    fn what_is_in_flight_falls_in_proportion_to_what_arrives() {
        let ack = |flight| Ack { in_flight_bytes: flight * MSS, ..Ack::in_sequence(MSS) };
        let mut flight = 19;
        let mut reduction = Proportional::new(20, 14, &ack(flight), MSS);
        // The backoff's own acknowledgment still lets a segment go.
        flight += 1;
        let mut flights = Vec::new();
        for _ in 0..20 {
            flight = reduction.window(&ack(flight - 1), MSS).max(flight - 1);
            flights.push(flight);
        }
        assert_eq!(flights, [19, 19, 19, 18, 18, 18, 17, 17, 17, 16, 16, 16, 16, 15, 14, 14, 14, 14, 14, 14]);
    }

    /// Where less than the new window is in flight already, it fills up again by no more than slow start.
    #[test]
    fn below_the_new_window_each_arrival_lets_two_go_at_most() {
        let ack = |flight| Ack { in_flight_bytes: flight * MSS, ..Ack::in_sequence(MSS) };
        let mut reduction = Proportional::new(20, 14, &ack(9), MSS);
        assert_eq!([reduction.window(&ack(8), MSS), reduction.window(&ack(9), MSS)], [10, 11]);
        assert_eq!(reduction.window(&ack(13), MSS), 14);
    }
}
