//! NewReno: additive increase, multiplicative decrease.
//!
//! Source: RFC 5681 (slow start, congestion avoidance), RFC 6582. The transport implements recovery. This law halves
//! the volume in flight at a loss and otherwise adds one segment per window.

use crate::contract::{Ack, Congestion, Cx};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "newreno",
    summary: "one segment more per round trip, half at a loss",
    source: "RFC 5681, RFC 6582",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, SLOW_START, WINDOW_VALIDATION],
    wire: None,
    make: &|values, plan| Ok(windowed(NewReno::default(), values, plan)),
};

/// The NewReno window law.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno {
    /// The remainder of earlier divisions, in bytes squared.
    remainder: u64,
}

impl WindowLaw for NewReno {
    /// RFC 5681 section 3.1: SMSS * acked / cwnd per acknowledgment, which is a segment per window of acknowledged
    /// bytes. The remainder is kept so that a round adds a segment to a window of any size; rounding to whole bytes
    /// would add less.
    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let credit = cx.mss_bytes * ack.acked_bytes + self.remainder;
        self.remainder = credit % window.cwnd;
        window.cwnd += credit / window.cwnd;
    }

    /// RFC 5681 eq. (4): ssthresh = max(FlightSize / 2, 2 SMSS).
    fn cut(&mut self, _window: &Window, flight_bytes: u64, _event: Congestion, _cx: &mut Cx<'_>) -> u64 {
        flight_bytes / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    #[test]
    fn a_round_adds_one_segment_to_a_window_of_any_size() {
        const MSS: u64 = 1460;
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let ack = Ack::in_sequence(MSS);
        for segments in [2, 10, 150, 1000, 1459, 50_000] {
            let mut law = NewReno::default();
            let mut window = Window { cwnd: segments * MSS, ssthresh: 0 };
            for _ in 0..segments {
                law.grow(&mut window, &ack, &mut cx);
            }
            let added = window.cwnd - segments * MSS;
            assert!((MSS * 2 / 3..=MSS).contains(&added), "{added} bytes on top of {segments} segments");
        }
    }
}
