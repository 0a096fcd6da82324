//! What window laws share: slow start, one cut per episode, undo, and the floor.
//!
//! A law is two formulas, how to grow and how to cut; [`Windowed`] makes a controller of it.

use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Phase};
use std::fmt::Debug;

/// A congestion window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes that may be in flight.
    pub cwnd: u64,
    /// Slow start ends here.
    pub ssthresh: u64,
}

/// What every window controller lets a scenario set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowConfig {
    /// Window of a new connection, segments.
    pub initial_window: u64,
    /// Slow-start threshold of a new connection, segments, or [`UNBOUNDED`](crate::param::UNBOUNDED).
    pub initial_ssthresh: u64,
    /// In slow start one acknowledgment grows the window by at most this many segments:
    /// RFC 5681 says 1, RFC 3465's byte counting 2.
    pub slow_start_limit: u64,
    /// Whatever one acknowledgment covers, it counts as at most this many segments, in slow start and after, or
    /// [`UNBOUNDED`](crate::param::UNBOUNDED).
    pub growth_limit: u64,
}

/// How a window grows outside slow start, and how it is cut.
pub trait WindowLaw: Debug + Send {
    /// Congestion avoidance: grows `window` for one acknowledgment.
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>);

    /// A congestion episode starts: the new slow-start threshold, in bytes. The floor of two segments
    /// is applied afterwards. `flight_bytes` is sent and not cumulatively acknowledged.
    fn cut(&mut self, window: &Window, flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64;

    /// The last cut was mistaken and the window is restored.
    fn undo(&mut self) {}
}

/// A controller made of a law.
#[derive(Debug)]
pub struct Windowed<L> {
    law: L,
    window: Window,
    before_cut: Window,
    slow_start_limit: u64,
    growth_limit_bytes: u64,
}

impl<L: WindowLaw> Windowed<L> {
    /// A controller for a new connection with segments of `mss_bytes`.
    pub fn new(law: L, config: WindowConfig, mss_bytes: u64) -> Windowed<L> {
        let window = Window {
            cwnd: config.initial_window.max(1) * mss_bytes,
            ssthresh: config.initial_ssthresh.saturating_mul(mss_bytes),
        };
        let growth_limit_bytes = config.growth_limit.saturating_mul(mss_bytes);
        Windowed { law, window, before_cut: window, slow_start_limit: config.slow_start_limit, growth_limit_bytes }
    }

    /// An acknowledgment that covers more than it may count for.
    #[cold]
    #[inline(never)]
    fn on_large_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.on_ack(&Ack { acked_bytes: self.growth_limit_bytes, ..*ack }, cx);
    }
}

impl<L: WindowLaw> CongestionControl for Windowed<L> {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        if ack.phase == Phase::Recovery || ack.acked_bytes == 0 || !ack.cwnd_limited {
            return;
        }
        if ack.acked_bytes > self.growth_limit_bytes {
            self.on_large_ack(ack, cx);
        } else if self.window.cwnd < self.window.ssthresh {
            let step = ack.acked_bytes.min(self.slow_start_limit * cx.mss_bytes);
            self.window.cwnd = (self.window.cwnd + step).min(self.window.ssthresh.max(self.window.cwnd));
        } else {
            self.law.grow(&mut self.window, ack, cx);
        }
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        let (flight_bytes, timeout) = match event {
            Congestion::Loss { flight_bytes } | Congestion::Marked { flight_bytes } => (flight_bytes, false),
            Congestion::Timeout { flight_bytes, first } => {
                if !first {
                    self.window.cwnd = cx.mss_bytes;
                    return;
                }
                (flight_bytes, true)
            }
            Congestion::LostSyn => {
                self.window.cwnd = cx.mss_bytes;
                return;
            }
            Congestion::Spurious => {
                self.window.cwnd = self.window.cwnd.max(self.before_cut.cwnd);
                self.window.ssthresh = self.window.ssthresh.max(self.before_cut.ssthresh);
                self.law.undo();
                return;
            }
        };
        self.before_cut = self.window;
        let ssthresh = self.law.cut(&self.window, flight_bytes, event, cx);
        self.window.ssthresh = ssthresh.max(2 * cx.mss_bytes);
        self.window.cwnd = if timeout { cx.mss_bytes } else { self.window.ssthresh.min(self.window.cwnd) };
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.window.cwnd, pacing: None }
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.window.cwnd as f64);
        put("ssthresh_bytes", self.window.ssthresh as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algos::cubic::{Cubic, CubicConfig};
    use crate::algos::newreno::NewReno;
    use crate::param::UNBOUNDED;
    use sparelane_core::{Domain, Stream, Time};

    const MSS: u64 = 1000;

    /// The window after one acknowledgment of ten segments.
    fn grown<L: WindowLaw>(law: L, initial_ssthresh: u64, slow_start_limit: u64, growth_limit: u64) -> u64 {
        let config = WindowConfig { initial_window: 100, initial_ssthresh, slow_start_limit, growth_limit };
        let mut controller = Windowed::new(law, config, MSS);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let ack = Ack::in_sequence(10 * MSS);
        controller.on_ack(&ack, &mut cx);
        controller.limits().cwnd_bytes
    }

    #[test]
    fn an_acknowledgment_of_many_segments_counts_as_two_where_growth_is_limited() {
        let newreno = |limit| grown(NewReno::default(), UNBOUNDED, 100, limit);
        assert_eq!((newreno(UNBOUNDED), newreno(10), newreno(2)), (110 * MSS, 110 * MSS, 102 * MSS));
        // Beyond slow start, where Reno's estimate is ahead of the cubic: alpha segments a window of acknowledgments, rounded down.
        let cubic = |limit| {
            let config = CubicConfig { c: 0.4, beta: 0.7, fast_convergence: true };
            grown(Cubic::new(config), 50, 100, limit) - 100 * MSS
        };
        assert_eq!((cubic(UNBOUNDED), cubic(2)), (99, 19));
    }
}
