//! Window laws, and the controller that drives one.

use super::config::{SlowStart, WindowConfig};
use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Phase, Restart, RestartRule, Sent};
use crate::hystart_plus_plus::HyStartPlusPlus;
use sparelane_core::Rate;
use std::fmt::Debug;

/// A congestion window, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window: bytes that may be in flight.
    pub cwnd: u64,
    /// Slow-start threshold, bytes.
    pub ssthresh: u64,
}

/// A window law: growth outside slow start, and the cut at congestion.
pub trait WindowLaw: Debug + Send {
    /// Returns the optional signals that this law requests.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Reports an established connection with its initial window. Laws may choose another window here.
    fn start(&mut self, window: &mut Window, cx: &mut Cx<'_>) {
        let _ = (window, cx);
    }

    /// Reports every acknowledgment, whatever the phase, before it grows the window. Laws take their measurements here.
    /// A law may end slow start by lowering `ssthresh` to the window.
    #[inline]
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let _ = (window, ack, cx);
    }

    /// Slow start: grows `window` for one acknowledgment that counts for `counted_bytes`.
    #[inline]
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, counted_bytes: u64, cx: &mut Cx<'_>) {
        let _ = (ack, cx);
        window.cwnd = (window.cwnd + counted_bytes).min(window.ssthresh.max(window.cwnd));
    }

    /// Congestion avoidance: grows `window` for one acknowledgment that counts for its `acked_bytes`.
    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>);

    /// Returns the new slow-start threshold in bytes at the start of a congestion episode. The caller applies the floor
    /// of two segments. `flight_bytes` are sent and not cumulatively acknowledged.
    fn cut(&mut self, window: &Window, flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64;

    /// Reports that the last cut was spurious and that the window has been restored.
    fn undo(&mut self) {}

    /// Reports that the timer fired again for the same data, after [`cut`](Self::cut) at the first timeout.
    fn timed_out_again(&mut self) {}

    /// Same as [`CongestionControl::on_sent`].
    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        let _ = (sent, cx);
    }

    /// Same as [`CongestionControl::on_lost`].
    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        let _ = (lost, cx);
    }

    /// Reports the law's own quantities, for traces.
    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        let _ = put;
    }
}

/// The controller that drives a window law.
#[derive(Debug)]
pub struct Windowed<L> {
    law: L,
    pub(crate) window: Window,
    pub(crate) before_cut: Window,
    initial_bytes: u64,
    slow_start_limit: u64,
    growth_limit_bytes: u64,
    /// State of HyStart++ in the first slow start, if enabled.
    plus_plus: Option<Box<HyStartPlusPlus>>,
}

impl<L: WindowLaw> Windowed<L> {
    /// Creates a controller for a new connection with segments of `mss_bytes`.
    pub fn new(law: L, config: WindowConfig, mss_bytes: u64) -> Windowed<L> {
        let window = Window {
            cwnd: config.initial_window.max(1) * mss_bytes,
            ssthresh: config.initial_ssthresh.saturating_mul(mss_bytes),
        };
        let growth_limit_bytes = config.growth_limit.saturating_mul(mss_bytes);
        Windowed {
            law,
            window,
            before_cut: window,
            initial_bytes: window.cwnd,
            slow_start_limit: config.slow_start_limit,
            growth_limit_bytes,
            plus_plus: (config.slow_start == SlowStart::HyStartPlusPlus).then(Box::default),
        }
    }

    /// Grows the window for an acknowledgment that covers more than it counts for.
    #[cold]
    #[inline(never)]
    fn grow_by_part(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        let counted_bytes = ack.delivered_bytes.min(self.growth_limit_bytes);
        if counted_bytes > 0 {
            self.grow(&Ack { acked_bytes: counted_bytes, ..*ack }, cx);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow_by_hystart(&mut self, counted_bytes: u64, ack: &Ack, cx: &mut Cx<'_>) {
        let Some(plus_plus) = &mut self.plus_plus else { return };
        if let Some(growth_bytes) = plus_plus.growth_bytes(ack, counted_bytes) {
            // The law's own slow start applies, with the slower growth of HyStart++.
            self.law.slow_start(&mut self.window, ack, growth_bytes, cx);
        } else {
            // HyStart++ ended slow start: this acknowledgment already belongs to congestion avoidance.
            self.plus_plus = None;
            self.window.ssthresh = self.window.cwnd;
            self.law.grow(&mut self.window, ack, cx);
        }
    }

    #[inline(always)]
    fn grow(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        if self.window.cwnd < self.window.ssthresh {
            let counted_bytes = ack.acked_bytes.min(self.slow_start_limit * cx.mss_bytes);
            if self.plus_plus.is_some() {
                self.grow_by_hystart(counted_bytes, ack, cx);
            } else {
                self.law.slow_start(&mut self.window, ack, counted_bytes, cx);
            }
        } else {
            self.law.grow(&mut self.window, ack, cx);
        }
    }
}

impl<L: WindowLaw + 'static> CongestionControl for Windowed<L> {
    fn needs(&self) -> Needs {
        self.law.needs()
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        Some(self.window.ssthresh)
    }

    fn start_at_threshold(&mut self, bytes: u64) {
        self.window.ssthresh = bytes;
    }

    fn on_established(&mut self, _explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.law.start(&mut self.window, cx);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.law.observe(&mut self.window, ack, cx);
        if ack.phase == Phase::Recovery || ack.acked_bytes == 0 || !ack.cwnd_limited {
            return;
        }
        if ack.acked_bytes > ack.delivered_bytes || ack.acked_bytes > self.growth_limit_bytes {
            self.grow_by_part(ack, cx);
        } else {
            self.grow(ack, cx);
        }
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        self.law.on_sent(sent, cx);
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        self.law.on_lost(lost, cx);
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        let (flight_bytes, timeout) = match event {
            Congestion::Loss { flight_bytes } | Congestion::Marked { flight_bytes, .. } => (flight_bytes, false),
            Congestion::Timeout { flight_bytes, first } => {
                if !first {
                    self.law.timed_out_again();
                    // The law cut at the first timeout; a repetition only collapses the window again.
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
                // The connection keeps whatever it has gained since the spurious cut.
                self.window.cwnd = self.window.cwnd.max(self.before_cut.cwnd);
                self.window.ssthresh = self.window.ssthresh.max(self.before_cut.ssthresh);
                self.law.undo();
                return;
            }
        };
        self.before_cut = self.window;
        // RFC 9406 recommends HyStart++ for the first slow start only.
        self.plus_plus = None;
        let ssthresh = self.law.cut(&self.window, flight_bytes, event, cx);
        // RFC 5681 equation 4: at least two segments.
        self.window.ssthresh = ssthresh.max(2 * cx.mss_bytes);
        self.window.cwnd = if timeout { cx.mss_bytes } else { self.window.ssthresh.min(self.window.cwnd) };
    }

    fn on_restart(&mut self, restart: &Restart, _cx: &mut Cx<'_>) {
        let window = &mut self.window;
        let restart_bytes = self.initial_bytes.min(window.cwnd);
        match restart.rule {
            RestartRule::Rfc5681 => window.cwnd = restart_bytes,
            RestartRule::Linux => {
                // tcp_cwnd_restart.
                window.ssthresh = window.ssthresh.max(window.cwnd / 4 * 3);
                let mut left = restart.idle.saturating_sub(restart.rto);
                while !left.is_zero() && window.cwnd > restart_bytes {
                    window.cwnd /= 2;
                    left = left.saturating_sub(restart.rto);
                }
                window.cwnd = window.cwnd.max(restart_bytes);
            }
        }
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.window.cwnd, pacing: None }
    }

    fn paces(&self) -> bool {
        false
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("cwnd_bytes", self.window.cwnd as f64);
        put("ssthresh_bytes", self.window.ssthresh as f64);
        self.law.trace(put);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algos::cubic::{Cubic, CubicConfig};
    use crate::algos::newreno::NewReno;
    use crate::param::UNBOUNDED;
    use sparelane_core::{Domain, Dur, Stream, Time};

    const MSS: u64 = 1000;

    /// Returns the window after one acknowledgment of ten segments.
    fn grown<L: WindowLaw + 'static>(law: L, initial_ssthresh: u64, slow_start_limit: u64, growth_limit: u64) -> u64 {
        let config = WindowConfig {
            initial_window: 100,
            initial_ssthresh,
            slow_start_limit,
            growth_limit,
            ..WindowConfig::default()
        };
        grown_by(law, config, &Ack::in_sequence(10 * MSS))
    }

    fn grown_by<L: WindowLaw + 'static>(law: L, config: WindowConfig, ack: &Ack) -> u64 {
        let mut controller = Windowed::new(law, config, MSS);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        controller.on_ack(ack, &mut cx);
        controller.limits().cwnd_bytes
    }

    #[test]
    fn an_acknowledgment_of_many_segments_counts_as_two_with_limited_growth() {
        let newreno = |limit| grown(NewReno::default(), UNBOUNDED, 100, limit);
        assert_eq!((newreno(UNBOUNDED), newreno(10), newreno(2)), (110 * MSS, 110 * MSS, 102 * MSS));
        // Beyond slow start, with Reno's estimate ahead of the cubic: alpha segments per window of acknowledgments,
        // rounded down.
        let cubic = |limit| grown(Cubic::new(CubicConfig::RFC_9438), 50, 100, limit) - 100 * MSS;
        assert_eq!((cubic(UNBOUNDED), cubic(2)), (99, 19));
    }
    /// A retransmission fills a hole of one segment, behind which SACK had reported 79.
    #[test]
    fn the_acknowledgment_that_ends_recovery_counts_newly_delivered_bytes() {
        let end = Ack { delivered_bytes: MSS, ..Ack::in_sequence(80 * MSS) };
        let nothing_new = Ack { delivered_bytes: 0, ..end };
        let after = |initial_ssthresh, ack| {
            let config = WindowConfig {
                initial_window: 100,
                initial_ssthresh,
                slow_start_limit: 100,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            grown_by(NewReno::default(), config, ack)
        };
        assert_eq!([after(UNBOUNDED, &end), after(UNBOUNDED, &nothing_new)], [101 * MSS, 100 * MSS]);
        assert_eq!([after(50, &end), after(50, &nothing_new)], [100 * MSS + MSS / 100, 100 * MSS]);
    }

    /// Returns window and threshold, in segments, of a connection with these that restarts after `idle_ms` at a timeout
    /// of 300 ms.
    fn restarted(rule: RestartRule, [cwnd, ssthresh]: [u64; 2], idle_ms: u64) -> [u64; 2] {
        let mut controller = Windowed::new(NewReno::default(), WindowConfig::default(), MSS);
        controller.window = Window { cwnd: cwnd * MSS, ssthresh: ssthresh * MSS };
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let (idle, rto) = (Dur::from_ms(idle_ms), Dur::from_ms(300));
        controller.on_restart(&Restart { idle, rto, rule }, &mut cx);
        [controller.window.cwnd, controller.window.ssthresh].map(|bytes| bytes / MSS)
    }

    /// RFC 5681 section 4.1.
    #[test]
    fn the_rfc_restarts_with_the_initial_window_and_keeps_the_threshold() {
        assert_eq!(restarted(RestartRule::Rfc5681, [832, 400], 301), [10, 400]);
        assert_eq!(restarted(RestartRule::Rfc5681, [4, 400], 13_000), [4, 400]);
    }

    /// Linux's loop halves for each further timeout that has begun: once for up to 600 ms, twice for up to 900 ms.
    #[test]
    fn linux_halves_once_per_timeout_and_slow_start_may_regain_three_quarters() {
        let after = |idle_ms| restarted(RestartRule::Linux, [832, 400], idle_ms);
        assert_eq!([301, 600, 601, 900].map(after), [[416, 624], [416, 624], [208, 624], [208, 624]]);
        assert_eq!(after(13_000), [10, 624]);
        assert_eq!(restarted(RestartRule::Linux, [832, 900], 13_000), [10, 900]);
        assert_eq!(restarted(RestartRule::Linux, [4, 400], 13_000), [4, 400]);
    }

    #[test]
    fn congestion_avoidance_counts_bytes_and_with_a_limit_of_one_acknowledgments() {
        let after = |growth_limit| grown(NewReno::default(), 50, 1, growth_limit);
        assert_eq!((after(UNBOUNDED), after(1)), (100 * MSS + MSS / 10, 100 * MSS + MSS / 100));
    }
    /// One round at 100 ms and six at 120 ms: from the eighth acknowledgment of the second round on, growth is a
    /// quarter, and after five rounds congestion avoidance begins. A loss ends slow start earlier.
    #[test]
    fn hystart_plus_plus_ends_the_first_slow_start() {
        let config = WindowConfig {
            initial_window: 20,
            initial_ssthresh: UNBOUNDED,
            slow_start_limit: 8,
            growth_limit: UNBOUNDED,
            slow_start: SlowStart::HyStartPlusPlus,
            validation: false,
        };
        let mut controller = Windowed::new(NewReno::default(), config, MSS);
        let mut rng = Stream::new(1, Domain::Test, 0);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut rng };
        let mut windows = Vec::new();
        for rtt_ms in [100, 120, 120, 120, 120, 120, 120] {
            let rtt = Some(Dur::from_ms(rtt_ms));
            let ack = Ack { rtt, in_flight_bytes: 19 * MSS, ..Ack::in_sequence(MSS) };
            (0..20).for_each(|_| controller.on_ack(&ack, &mut cx));
            windows.push(controller.limits().cwnd_bytes / MSS);
        }
        assert_eq!(windows, [40, 51, 56, 61, 66, 71, 71]);
        assert!(controller.window.ssthresh <= 71 * MSS);
        let mut early = Windowed::new(NewReno::default(), config, MSS);
        early.on_congestion(Congestion::Loss { flight_bytes: 20 * MSS }, &mut cx);
        assert!(early.plus_plus.is_none());
    }
}
