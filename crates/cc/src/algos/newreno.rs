//! NewReno: additive increase, multiplicative decrease.
//!
//! Source: RFC 5681 (slow start, congestion avoidance), RFC 6582. The transport implements recovery. This law halves
//! the volume in flight at a loss and otherwise adds one segment per window. A mark may cut by another factor (RFC
//! 8511).

use crate::contract::{Ack, Congestion, Cx};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};

const BETA_ECN: Param = Param {
    name: "beta_ecn",
    kind: Kind::Number { min: 0.1, max: 0.95, unit: Unit::One },
    default: DefaultValue::Number(0.5),
    meaning: "share of the volume in flight kept after an ECN mark; 0.8 with Alternative Backoff (ABE)",
    source: "RFC 8511 section 3",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "newreno",
    summary: "one segment more per round trip, half at a loss",
    source: "RFC 5681, RFC 6582",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        SLOW_START,
        WINDOW_VALIDATION,
        BETA_ECN,
    ],
    wire: None,
    make: &|values, plan| Ok(windowed(NewReno::new(values.number(&BETA_ECN)), values, plan)),
};

/// The NewReno window law.
#[derive(Clone, Copy, Debug)]
pub struct NewReno {
    /// The remainder of earlier divisions, in bytes squared.
    remainder: u64,
    /// The share of the volume in flight that is kept after an ECN mark.
    beta_ecn: f64,
}

impl NewReno {
    /// Creates a law that keeps this share of the volume in flight after an ECN mark.
    pub fn new(beta_ecn: f64) -> NewReno {
        NewReno { remainder: 0, beta_ecn }
    }
}

impl Default for NewReno {
    /// A mark counts as a loss (RFC 3168).
    fn default() -> NewReno {
        NewReno::new(0.5)
    }
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

    /// RFC 5681 eq. (4): ssthresh = max(FlightSize / 2, 2 SMSS). RFC 8511 section 3 has another factor for marks.
    fn cut(&mut self, _window: &Window, flight_bytes: u64, event: Congestion, _cx: &mut Cx<'_>) -> u64 {
        match event {
            Congestion::Marked { by_ecn: true, .. } => (flight_bytes as f64 * self.beta_ecn) as u64,
            _ => flight_bytes / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    /// RFC 8511 section 3.
    #[test]
    fn a_mark_cuts_by_its_own_factor() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: 1460, srtt: None, min_rtt: None, rng: &mut rng };
        let window = Window { cwnd: 100_000, ssthresh: 0 };
        let mut kept = |event| NewReno::new(0.8).cut(&window, 100_000, event, &mut cx);
        assert_eq!(kept(Congestion::Marked { flight_bytes: 100_000, by_ecn: true }), 80_000);
        assert_eq!(kept(Congestion::Marked { flight_bytes: 100_000, by_ecn: false }), 50_000);
        assert_eq!(kept(Congestion::Loss { flight_bytes: 100_000 }), 50_000);
    }

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
