//! DCTCP, Data Center TCP: cuts the window in proportion to the share of marked data.
//!
//! Source: RFC 8257; Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010.
//!
//! DCTCP needs queues that mark from a threshold on (K in the paper: about 65 packets at 10 Gb/s, 20 at 1 Gb/s) and
//! receivers that report every mark (`ecn = "dctcp"`, or `"accurate"`). Once per window of data, the marked share F of
//! the acknowledged bytes moves the estimate: alpha = (1 - g) alpha + g F (section 3.3). A mark cuts the window to cwnd
//! (1 - alpha/2). The transport reports marks at most once per window. A loss halves the volume in flight, and growth
//! is NewReno's.
//!
//! Differences from Linux: the transport reports a mark before the law counts it, so that a cut uses alpha as it was
//! before the acknowledgment that causes the cut. An acknowledgment that echoes a mark does not grow the window (RFC
//! 3168 section 6.1.2); Linux stops growth for a round trip after a cut. Windows of data are counted in delivered
//! bytes, so that an episode of loss may shift their boundaries.

use super::newreno::NewReno;
use crate::contract::{Ack, Congestion, Cx, Needs};
use crate::param::{DefaultValue, Kind, Param, Unit};
use crate::registry::Controller;
use crate::round::Round;
use crate::window::{GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START_LIMIT, Window, WindowLaw, windowed};

const G: Param = Param {
    name: "g",
    kind: Kind::Number { min: 0.0001, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(1.0 / 16.0),
    meaning: "weight of the newest window of data in the estimate of the marked share",
    source: "RFC 8257 section 4",
};

const INITIAL_ALPHA: Param = Param {
    name: "initial_alpha",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(1.0),
    meaning: "marked share that a new connection assumes",
    source: "RFC 8257 section 3.3",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "dctcp",
    summary: "cuts by the share of marked data; needs mark_at and ecn = \"dctcp\"",
    source: "RFC 8257; Alizadeh et al., SIGCOMM 2010",
    params: &[INITIAL_WINDOW, INITIAL_SSTHRESH, SLOW_START_LIMIT, GROWTH_LIMIT, G, INITIAL_ALPHA],
    wire: None,
    make: &|values, plan| {
        let law = Dctcp::new(values.number(&G), values.number(&INITIAL_ALPHA));
        Ok(windowed(law, values, plan))
    },
};

/// The DCTCP window law.
#[derive(Clone, Debug)]
pub struct Dctcp {
    g: f64,
    /// The estimate of the marked share.
    alpha: f64,
    round: Round,
    /// Bytes delivered in this window of data; `marked_bytes` of them were marked.
    delivered_bytes: u64,
    marked_bytes: u64,
    growth: NewReno,
}

impl Dctcp {
    /// Creates a law with weight `g` and initial estimate `alpha`.
    pub fn new(g: f64, alpha: f64) -> Dctcp {
        let (round, growth) = (Round::default(), NewReno::default());
        Dctcp { g, alpha, round, delivered_bytes: 0, marked_bytes: 0, growth }
    }

    /// Section 3.3: updates the estimate at the end of a window of data.
    fn estimate(&mut self) {
        // Accurate feedback may report the marks of one window in the next.
        let share = (self.marked_bytes as f64 / self.delivered_bytes as f64).min(1.0);
        self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
        (self.delivered_bytes, self.marked_bytes) = (0, 0);
    }
}

impl WindowLaw for Dctcp {
    fn needs(&self) -> Needs {
        Needs { exact_marks: true, ..Needs::default() }
    }

    #[inline]
    fn observe(&mut self, _window: &mut Window, ack: &Ack, _cx: &mut Cx<'_>) {
        self.delivered_bytes += ack.delivered_bytes;
        self.marked_bytes += ack.marked_bytes;
        if self.round.is_over(ack) {
            self.estimate();
        }
    }

    #[inline]
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, counted_bytes: u64, cx: &mut Cx<'_>) {
        if !ack.ecn_echo {
            self.growth.slow_start(window, ack, counted_bytes, cx);
        }
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if !ack.ecn_echo {
            self.growth.grow(window, ack, cx);
        }
    }

    /// Section 3.3 for marks, section 3.5 for losses.
    fn cut(&mut self, window: &Window, flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        match event {
            Congestion::Marked { .. } => (window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64,
            _ => self.growth.cut(window, flight_bytes, event, cx),
        }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CongestionControl;
    use crate::param::UNBOUNDED;
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1000;

    fn with_cx<T>(call: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let mut rng = Stream::new(1, Domain::Test, 0);
        call(&mut Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng })
    }

    /// Returns a controller beyond slow start with a window of `segments`.
    fn controller(segments: u64, alpha: f64) -> Windowed<Dctcp> {
        let (initial_window, initial_ssthresh) = (segments, 2);
        let config = WindowConfig {
            initial_window,
            initial_ssthresh,
            slow_start_limit: 1,
            growth_limit: UNBOUNDED,
            ..WindowConfig::default()
        };
        Windowed::new(Dctcp::new(1.0 / 16.0, alpha), config, MSS)
    }

    /// Acknowledges one window of ten segments, the first `marked` of which are marked.
    fn acknowledge_window(controller: &mut Windowed<Dctcp>, marked: u64) {
        for segment in 0..10 {
            let (ecn_echo, marked_segments) = (segment < marked, u64::from(segment < marked));
            let marked_bytes = marked_segments * MSS;
            let in_flight_bytes = 9 * MSS;
            let news = Ack { in_flight_bytes, ecn_echo, marked_segments, marked_bytes, ..Ack::in_sequence(MSS) };
            with_cx(|cx| controller.on_ack(&news, cx));
        }
    }

    fn alpha(controller: &Windowed<Dctcp>) -> f64 {
        let mut found = None;
        controller.trace(&mut |name, value| {
            if name == "alpha" {
                found = Some(value);
            }
        });
        found.expect("an estimate")
    }

    #[test]
    fn the_estimate_moves_by_a_sixteenth_of_each_window_of_data() {
        let mut controller = controller(10, 1.0);
        // The first acknowledgment forms a window of its own, unmarked.
        acknowledge_window(&mut controller, 0);
        assert_eq!(alpha(&controller), 15.0 / 16.0);
        // Each window ends with the first acknowledgment of the next.
        acknowledge_window(&mut controller, 0);
        assert_eq!(alpha(&controller), (15.0_f64 / 16.0).powi(2));
    }

    #[test]
    fn the_estimate_converges_to_the_marked_share() {
        let mut controller = controller(10, 1.0);
        for _ in 0..200 {
            acknowledge_window(&mut controller, 3);
        }
        assert!((alpha(&controller) - 0.3).abs() < 1e-3, "{}", alpha(&controller));
    }

    #[test]
    fn a_mark_cuts_by_half_the_estimate_and_a_loss_halves_the_volume_in_flight() {
        let cut = |alpha, event| {
            let mut controller = controller(100, alpha);
            with_cx(|cx| controller.on_congestion(event, cx));
            controller.limits().cwnd_bytes
        };
        let (marked, lost) =
            (Congestion::Marked { flight_bytes: 90 * MSS, by_ecn: true }, Congestion::Loss { flight_bytes: 90 * MSS });
        assert_eq!([1.0, 0.5, 0.0].map(|alpha| cut(alpha, marked)), [50 * MSS, 75 * MSS, 100 * MSS]);
        assert_eq!([1.0, 0.0].map(|alpha| cut(alpha, lost)), [45 * MSS; 2]);
    }

    #[test]
    fn an_acknowledgment_with_a_mark_does_not_grow_the_window() {
        let mut controller = controller(10, 0.0);
        acknowledge_window(&mut controller, 10);
        assert_eq!(controller.limits().cwnd_bytes, 10 * MSS);
        acknowledge_window(&mut controller, 0);
        assert!((10 * MSS + 900..=11 * MSS).contains(&controller.limits().cwnd_bytes));
    }
}
