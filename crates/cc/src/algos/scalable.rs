//! Scalable TCP: the window grows by a fixed share per round trip and loses an eighth at a loss, so that recovery takes
//! the same number of round trips at any rate.
//!
//! Source: Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM CCR 33(2), 2003. Constants
//! are those of Linux 2.6.32 (tcp_scalable.c): one segment for each 50 acknowledged, or for each window if that is
//! smaller, as in NewReno; a loss takes cwnd / 8. The law needs acknowledgments only.
//!
//! Other implementations: the paper adds one segment for 100. Linux chose 50 because receivers with delayed
//! acknowledgments send one for two segments, and counted acknowledgments (`growth_limit = 1`), not segments. Current
//! Linux counts segments and uses 100. The paper follows NewReno up to a window of 16 segments, including at losses;
//! Linux grows as NewReno up to 50 and always cuts by an eighth. The counter of 2.6.32 needs 51 acknowledgments per
//! segment, not 50. ns-3 (TcpScalable) cuts the volume in flight, not the window, and drops the remainder beyond a
//! segment.

use crate::contract::{Ack, Congestion, Cx};
use crate::increase::Increase;
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};

const SEGMENTS_PER_INCREASE: Param = Param {
    name: "segments_per_increase",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(50),
    meaning: "acknowledged segments that add one to the window, or a window of them if that is smaller",
    source: "Linux 2.6.32, ns-3; 100 in the paper and in current Linux",
};

const DECREASE: Param = Param {
    name: "decrease",
    kind: Kind::Number { min: 0.01, max: 0.9, unit: Unit::One },
    default: DefaultValue::Number(0.125),
    meaning: "share of the window lost at a loss",
    source: "Kelly, CCR 2003; Linux",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "scalable",
    summary: "a fixed share of the window more per round trip, an eighth less at a loss",
    source: "Kelly, ACM CCR 2003; Linux 2.6.32",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        SLOW_START,
        WINDOW_VALIDATION,
        SEGMENTS_PER_INCREASE,
        DECREASE,
    ],
    wire: None,
    make: &|values, plan| {
        let law = Scalable::new(values.whole(&SEGMENTS_PER_INCREASE), values.number(&DECREASE));
        Ok(windowed(law, values, plan))
    },
};

/// The Scalable window law.
#[derive(Clone, Copy, Debug)]
pub struct Scalable {
    segments_per_increase: u64,
    decrease: f64,
    increase: Increase,
}

impl Scalable {
    /// Creates a law that adds a segment per `segments_per_increase` and gives up the share `decrease` at a loss.
    pub fn new(segments_per_increase: u64, decrease: f64) -> Scalable {
        Scalable { segments_per_increase, decrease, increase: Increase::default() }
    }
}

impl WindowLaw for Scalable {
    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let mss = cx.mss_bytes;
        let price = window.cwnd.min(self.segments_per_increase * mss);
        self.increase.grow(window, ack.acked_bytes, price, u64::MAX, mss);
    }

    /// Returns whole segments; the reduction is rounded down.
    fn cut(&mut self, window: &Window, _flight_bytes: u64, _event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.increase.forget();
        let segments = window.cwnd / cx.mss_bytes;
        (segments - (segments as f64 * self.decrease) as u64) * cx.mss_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1460;

    /// Returns the window in segments after one round of `start` segments in acknowledgments of `batch` segments.
    fn after_a_round(start: u64, batch: u64) -> u64 {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut law = Scalable::new(50, 0.125);
        let mut window = Window { cwnd: start * MSS, ssthresh: 0 };
        for _ in 0..start / batch {
            law.grow(&mut window, &Ack::in_sequence(batch * MSS), &mut cx);
        }
        assert_eq!(window.cwnd % MSS, 0);
        window.cwnd / MSS
    }

    #[test]
    fn a_round_adds_a_fiftieth_of_a_large_window_and_a_segment_to_a_small_one() {
        assert_eq!([10, 49, 50].map(|start| after_a_round(start, 1)), [11, 50, 51]);
        assert_eq!([100, 1000, 30_000].map(|start| after_a_round(start, 1)), [102, 1020, 30_600]);
        assert_eq!(after_a_round(30_000, 40), 30_600, "acknowledgments of many segments have the same effect");
    }

    #[test]
    fn a_loss_takes_an_eighth_in_whole_segments() {
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut law = Scalable::new(50, 0.125);
        let mut left = |segments: u64| {
            let window = Window { cwnd: segments * MSS, ssthresh: 0 };
            law.cut(&window, 0, Congestion::Loss { flight_bytes: 0 }, &mut cx) / MSS
        };
        // 7 / 8 = 0, 15 / 8 = 1, 30,000 / 8 = 3750.
        assert_eq!([7, 15, 800, 30_000].map(&mut left), [7, 14, 700, 26_250]);
    }
}
