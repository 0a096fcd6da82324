//! TCP Westwood+: after a loss, the window that the measured bandwidth fills on an empty path.
//!
//! Source: Mascolo, Casetti, Gerla, Sanadidi, Wang, "TCP Westwood: Bandwidth Estimation for Enhanced Transport over
//! Wireless Links", MobiCom 2001; Grieco and Mascolo, "Performance Evaluation and Comparison of Westwood+, New Reno,
//! and Vegas TCP Congestion Control", CCR 34(2), 2004; the filter as in Linux 2.6.32 (tcp_westwood.c).
//!
//! The window grows as NewReno's. The bytes delivered in a sampling window give one sample of the bandwidth. A sampling
//! window lasts longer than the last round-trip time and longer than 50 ms. The sample passes through a filter that
//! keeps 7/8 of the old value, and the result through a second one; the first sample initializes both.
//!
//! At the end of a recovery, the window becomes bandwidth x minimum round-trip time; an ECN mark has this effect at
//! once. After a timeout the product is the slow-start threshold, and the minimum round-trip time restarts. The window
//! is at least two segments, and two segments without a sample. Recovery begins with half the window, or with the
//! product if that is more. It lowers the window by a segment for every second delivered one, down to the product.
//!
//! Differences: Linux counts time in ticks of its clock (1 ms) and rounds round-trip times up to the next tick; this
//! law is exact. Linux infers from duplicate acknowledgments what SACK reports here, and also takes a round trip to
//! reach half the window (rate halving).
//!
//! `like = "linux"` is the law of Linux 6.12: time in ticks of 1 ms and bandwidth in whole bytes per tick. Round-trip
//! times are rounded up to the next tick and taken from the previous acknowledgment; those of retransmissions are in
//! whole milliseconds, from timestamps, if the transport passes them on. Windows are whole segments. Kernels tick 100
//! to 1000 times per second (`tick`): at 10 ms, a round trip of 10.1 ms counts as 20. Recovery goes to half the window
//! at any bandwidth (the transport's proportional rate reduction, RFC 9937) and ends with bandwidth x minimum RTT.
//!
//! The papers set the window to bandwidth x minimum RTT at once. In that of 2004 the sampling window is a round-trip
//! time without a lower limit: `sampling_window = "0s"`; that of 2001 samples at every acknowledgment.
//!
//! ns-3 (TcpWestwoodPlus) samples for one round-trip time and pauses until the next acknowledgment. It filters once, by
//! Tustin's rule (0.9 of the old value and 0.1 of the mean of the last two samples), starting at zero. It keeps the
//! minimum round-trip time forever and sets the window at the loss, not at the end of recovery.

use super::newreno::NewReno;
use crate::contract::{Ack, Congestion, Cx, Phase};
use crate::increase::Increase;
use crate::param::{DefaultValue, Kind, Param};
use crate::registry::Controller;
use crate::window::{
    GROWTH_LIMIT, INITIAL_SSTHRESH, INITIAL_WINDOW, SLOW_START, SLOW_START_LIMIT, WINDOW_VALIDATION, Window, WindowLaw,
    windowed,
};
use sparelane_core::{Dur, Rate, Time};

const SAMPLING_WINDOW: Param = Param {
    name: "sampling_window",
    kind: Kind::Span { min: Dur::from_ps(0), max: Dur::from_secs(10) },
    default: DefaultValue::Span(Dur::from_ms(50)),
    meaning: "minimum time over which bandwidth is sampled",
    source: "Linux (TCP_WESTWOOD_RTT_MIN)",
};

const LIKE: Param = Param {
    name: "like",
    kind: Kind::Choice(&["exact", "linux"]),
    default: DefaultValue::Word("exact"),
    meaning: "exact uses exact clocks and lets recovery follow the bandwidth; linux is the law of Linux 6.12",
    source: "Linux tcp_westwood.c",
};

const TICK: Param = Param {
    name: "tick",
    kind: Kind::Span { min: Dur::from_us(1), max: Dur::from_ms(10) },
    default: DefaultValue::Span(Dur::from_ms(1)),
    meaning: "tick of the kernel's clock with like = \"linux\": 1, 4 or 10 ms",
    source: "Linux CONFIG_HZ",
};

/// The registry entry.
pub const CONTROLLER: Controller = Controller {
    name: "westwood",
    summary: "after a loss, the window that the measured bandwidth fills",
    source: "Mascolo et al., MobiCom 2001; Grieco and Mascolo, CCR 2004; Linux 2.6.32",
    params: &[
        INITIAL_WINDOW,
        INITIAL_SSTHRESH,
        SLOW_START_LIMIT,
        GROWTH_LIMIT,
        SLOW_START,
        WINDOW_VALIDATION,
        SAMPLING_WINDOW,
        LIKE,
        TICK,
    ],
    wire: None,
    make: &|values, plan| {
        let like_linux = values.word(&LIKE) == "linux";
        let tick = like_linux.then(|| values.span(&TICK));
        Ok(windowed(Westwood::new(values.span(&SAMPLING_WINDOW), tick), values, plan))
    },
};

/// Returns 7/8 of the old value plus 1/8 of the new one.
fn filtered(old: Rate, new: Rate) -> Rate {
    Rate::from_bps(((7 * u128::from(old.as_bps()) + u128::from(new.as_bps())) / 8) as u64)
}

/// The Westwood+ window law.
#[derive(Clone, Debug)]
pub struct Westwood {
    sampling_window: Dur,
    /// The tick of Linux's clock, if the law is Linux's.
    tick: Option<Dur>,
    /// The start of this sampling window.
    sampling_since: Option<Time>,
    /// Bytes delivered in this sampling window.
    delivered_bytes: u64,
    /// The bandwidth after one filter and after both.
    bandwidth: Option<(Rate, Rate)>,
    rtt: Option<Dur>,
    min_rtt: Option<Dur>,
    /// True while a loss is being repaired.
    is_repairing: bool,
    newreno: NewReno,
    /// Growth in whole segments, if the law is Linux's.
    increase: Increase,
}

impl Westwood {
    /// Creates a law that samples the bandwidth over at least `sampling_window`, exactly or by a clock of this `tick`
    /// as in Linux.
    pub fn new(sampling_window: Dur, tick: Option<Dur>) -> Westwood {
        Westwood {
            sampling_window,
            tick,
            sampling_since: None,
            delivered_bytes: 0,
            bandwidth: None,
            rtt: None,
            min_rtt: None,
            is_repairing: false,
            newreno: NewReno::default(),
            increase: Increase::default(),
        }
    }

    /// Ends the sampling window if it lasted long enough. The current acknowledgment belongs to the next one.
    fn sample(&mut self, now: Time, rtt: Dur) {
        let Some(since) = self.sampling_since else { return };
        let lasted = now - since;
        if lasted <= rtt.max(self.sampling_window) {
            return;
        }
        let sample = self.rounded(Rate::of(self.delivered_bytes, lasted));
        self.bandwidth = Some(match self.bandwidth {
            None => (sample, sample),
            Some((once, twice)) => {
                let once = self.rounded(filtered(once, sample));
                (once, self.rounded(filtered(twice, once)))
            }
        });
        self.sampling_since = Some(now);
        self.delivered_bytes = 0;
    }

    /// Rounds to whole bytes per tick if the law is Linux's.
    fn rounded(&self, rate: Rate) -> Rate {
        let Some(tick) = self.tick else { return rate };
        let one = Rate::of(1, tick).as_bps();
        Rate::from_bps(rate.as_bps() / one * one)
    }

    /// Returns the time and a round-trip time as the law's clock shows them.
    fn read(&self, now: Time, rtt: Option<Dur>) -> (Time, Option<Dur>) {
        let Some(whole) = self.tick else { return (now, rtt) };
        let tick = whole.as_ps();
        (Time::from_ps(now.as_ps() / tick * tick), rtt.map(|rtt| whole * rtt.as_ps().div_ceil(tick)))
    }

    /// Returns the bytes that the bandwidth fills on an empty path, in whole segments if the law is Linux's.
    fn path_bytes(&self, mss_bytes: u64) -> u64 {
        let bytes = match (self.bandwidth, self.min_rtt) {
            (Some((_, bandwidth)), Some(min_rtt)) => bandwidth.bytes_in(min_rtt),
            _ => 0,
        };
        if self.tick.is_some() { bytes / mss_bytes * mss_bytes } else { bytes }
    }
}

impl WindowLaw for Westwood {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        // Linux also takes the round-trip time of a retransmission, from timestamps.
        let measured = if self.tick.is_some() { ack.rtt.or(ack.resent_rtt) } else { ack.rtt };
        let (now, rtt) = self.read(cx.now, measured);
        // The first sampling window begins when the first acknowledged segment was sent.
        if let (None, Some(exact)) = (self.sampling_since, ack.rtt) {
            let sent = Time::from_ps(cx.now.as_ps().saturating_sub(exact.as_ps()));
            self.sampling_since = Some(self.read(sent, None).0);
        }
        // Linux takes the round-trip time of an acknowledgment after everything else.
        if self.tick.is_none() {
            self.rtt = rtt.or(self.rtt);
        }
        if let Some(rtt) = self.rtt {
            self.sample(now, rtt);
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        self.rtt = rtt.or(self.rtt);
        self.delivered_bytes += ack.delivered_bytes;
        if !self.is_repairing {
            return;
        }
        let aim = self.path_bytes(cx.mss_bytes).max(2 * cx.mss_bytes);
        if ack.phase == Phase::Open {
            self.is_repairing = false;
            (window.cwnd, window.ssthresh) = (aim, aim);
        } else if self.tick.is_none() {
            window.cwnd = window.cwnd.saturating_sub(ack.delivered_bytes / 2).max(aim).min(window.cwnd);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        if self.tick.is_some() {
            self.increase.grow(window, ack.acked_bytes, window.cwnd, u64::MAX, cx.mss_bytes);
        } else {
            self.newreno.grow(window, ack, cx);
        }
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        self.increase.forget();
        let path_bytes = self.path_bytes(cx.mss_bytes);
        self.is_repairing = matches!(event, Congestion::Loss { .. });
        match event {
            Congestion::Loss { .. } if self.tick.is_some() => window.cwnd / cx.mss_bytes / 2 * cx.mss_bytes,
            Congestion::Loss { .. } => path_bytes.max(window.cwnd / 2),
            Congestion::Timeout { .. } => {
                self.min_rtt = None;
                path_bytes
            }
            _ => path_bytes,
        }
    }

    fn undo(&mut self) {
        self.is_repairing = false;
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bandwidth_bps", self.bandwidth.map_or(0.0, |(_, twice)| twice.as_bps() as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{CongestionControl, traced};
    use crate::param::UNBOUNDED;
    use crate::window::{WindowConfig, Windowed};
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;

    /// A connection whose times are in milliseconds.
    struct Connection {
        controller: Windowed<Westwood>,
        rng: Stream,
    }

    impl Connection {
        fn new(initial_window: u64) -> Connection {
            Connection::of(initial_window, None)
        }

        fn of(initial_window: u64, tick: Option<Dur>) -> Connection {
            let config = WindowConfig {
                initial_window,
                initial_ssthresh: 2,
                slow_start_limit: 1,
                growth_limit: UNBOUNDED,
                ..WindowConfig::default()
            };
            let controller = Windowed::new(Westwood::new(Dur::from_ms(50), tick), config, MSS);
            Connection { controller, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn cx(&mut self, at_ms: u64) -> (&mut Windowed<Westwood>, Cx<'_>) {
            let now = Time::ZERO + Dur::from_ms(at_ms);
            (&mut self.controller, Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng })
        }

        /// Delivers without growth. Returns the bandwidth in bytes per second.
        fn deliver(&mut self, at_ms: u64, rtt_ms: u64, segments: u64, phase: Phase) -> u64 {
            let (controller, mut cx) = self.cx(at_ms);
            let rtt = Some(Dur::from_ms(rtt_ms));
            let ack = Ack { rtt, phase, cwnd_limited: false, ..Ack::in_sequence(segments * MSS) };
            controller.on_ack(&ack, &mut cx);
            let mut bandwidth = 0;
            controller.trace(&mut |name, value| {
                if name == "bandwidth_bps" {
                    bandwidth = value as u64 / 8;
                }
            });
            bandwidth
        }

        fn congest(&mut self, at_ms: u64, event: Congestion) -> u64 {
            let (controller, mut cx) = self.cx(at_ms);
            controller.on_congestion(event, &mut cx);
            self.window()
        }

        fn window(&self) -> u64 {
            self.controller.limits().cwnd_bytes
        }

        fn ssthresh(&self) -> u64 {
            traced(&self.controller, "ssthresh_bytes") as u64
        }
    }

    /// 100 segments in the 60 ms since the start, 20 in the next 51 ms and then none in 100 ms.
    #[test]
    fn bandwidth_is_sampled_for_more_than_fifty_milliseconds_and_filtered_twice() {
        let mut connection = Connection::new(200);
        assert_eq!(connection.deliver(20, 20, 40, Phase::Open), 0);
        assert_eq!(connection.deliver(50, 20, 60, Phase::Open), 0, "50 ms are too short");
        let first = connection.deliver(60, 20, 20, Phase::Open);
        assert_eq!(first, 1_666_666, "100,000 bytes in 60 ms");
        assert_eq!(connection.deliver(110, 20, 0, Phase::Open), first, "50 ms are too short");
        // 20,000 bytes in 51 ms are 392,156 per second: 1,507,353 after one filter, 1,646,752 after the other.
        assert_eq!(connection.deliver(111, 20, 0, Phase::Open), 1_646_752);
        // No data: 1,318,934 and 1,605,775.
        assert_eq!(connection.deliver(211, 20, 0, Phase::Open), 1_605_775);
    }

    #[test]
    fn a_round_trip_of_more_than_fifty_milliseconds_is_the_sampling_window() {
        let mut connection = Connection::new(200);
        connection.deliver(80, 80, 40, Phase::Open);
        assert_eq!(connection.deliver(100, 80, 10, Phase::Open), 400_000, "40,000 bytes in 100 ms");
        assert_eq!(
            connection.deliver(180, 80, 10, Phase::Open),
            400_000,
            "80 ms are not longer than the last round trip"
        );
        assert_ne!(connection.deliver(181, 80, 10, Phase::Open), 400_000);
    }

    /// 1,666,666 bytes per second for 20 ms are 33,333 bytes.
    #[test]
    fn a_loss_leaves_the_window_that_fills_the_path() {
        let mut connection = Connection::new(200);
        connection.deliver(30, 30, 100, Phase::Open);
        connection.deliver(60, 20, 0, Phase::Open);
        let loss = Congestion::Loss { flight_bytes: 200 * MSS };
        assert_eq!(connection.congest(65, loss), 100 * MSS, "half of the window until recovery lowers it");
        assert_eq!(connection.deliver(70, 20, 50, Phase::Recovery), 1_666_666);
        assert_eq!(connection.window(), 75 * MSS);
        // At the end of recovery: 50,000 bytes in 60 ms, and a minimum of 18 ms.
        assert_eq!(connection.deliver(120, 18, 0, Phase::Open), 1_653_645);
        assert_eq!((connection.window(), connection.ssthresh()), (29_765, 29_765));
    }

    /// 200,000 bytes in 60 ms with a minimum of 20 ms are 66,666.
    #[test]
    fn recovery_stops_at_the_window_that_fills_the_path() {
        let recovery = |segments| {
            let mut connection = Connection::new(segments);
            connection.deliver(30, 30, 200, Phase::Open);
            connection.deliver(60, 20, 0, Phase::Open);
            let begun = connection.congest(61, Congestion::Loss { flight_bytes: 0 });
            connection.deliver(62, 20, 40, Phase::Recovery);
            (begun, connection.window())
        };
        assert_eq!(recovery(100), (66_666, 66_666));
        assert_eq!(recovery(160), (80 * MSS, 66_666));
    }

    #[test]
    fn a_mark_sets_that_window_at_once() {
        let mut connection = Connection::new(200);
        connection.deliver(30, 30, 100, Phase::Open);
        connection.deliver(60, 20, 0, Phase::Open);
        assert_eq!(connection.congest(65, Congestion::Marked { flight_bytes: 200 * MSS, by_ecn: true }), 33_333);
        connection.deliver(70, 20, 10, Phase::Open);
        assert_eq!(connection.window(), 33_333);
    }

    #[test]
    fn a_spurious_loss_has_no_effect() {
        let mut connection = Connection::new(200);
        connection.deliver(30, 30, 100, Phase::Open);
        connection.deliver(60, 20, 0, Phase::Open);
        connection.congest(65, Congestion::Loss { flight_bytes: 200 * MSS });
        assert_eq!(connection.congest(70, Congestion::Spurious), 200 * MSS);
        connection.deliver(75, 20, 1, Phase::Open);
        assert_eq!(connection.window(), 200 * MSS);
    }

    #[test]
    fn a_timeout_ends_slow_start_at_that_window_and_restarts_the_minimum_round_trip_time() {
        let mut connection = Connection::new(200);
        connection.deliver(30, 30, 100, Phase::Open);
        connection.deliver(60, 20, 0, Phase::Open);
        let timeout = Congestion::Timeout { flight_bytes: 200 * MSS, first: true };
        assert_eq!(connection.congest(300, timeout), MSS);
        assert_eq!(connection.ssthresh(), 33_333);
        connection.deliver(310, 40, 0, Phase::Timeout);
        // No data in 250 ms: 1,666,666 * 63 / 64, for 40 ms.
        connection.congest(311, Congestion::Loss { flight_bytes: MSS });
        connection.deliver(312, 40, 0, Phase::Open);
        assert_eq!(connection.window(), 65_624);
    }

    #[test]
    fn without_a_sample_a_loss_leaves_two_segments() {
        let mut connection = Connection::new(200);
        connection.deliver(20, 20, 10, Phase::Open);
        connection.congest(21, Congestion::Loss { flight_bytes: 200 * MSS });
        connection.deliver(22, 20, 0, Phase::Open);
        assert_eq!(connection.window(), 2 * MSS);
    }
    /// Linux 6.12 at 1000 ticks per second. The first acknowledgment has a round-trip time of 40.2 ms, which counts as
    /// 41 and from the second on; the sampling window began when its segment was sent. More than 50 ms have passed at
    /// 113 ms: 33 segments in 53 ms are 622 whole bytes per tick. 22 in the next 51 are 431: (7 * 622 + 431) / 8 = 598,
    /// and (7 * 622 + 598) / 8 = 619.
    #[test]
    fn linux_counts_whole_ticks_and_whole_bytes_per_tick() {
        let mut connection = Connection::of(100, Some(Dur::from_ms(1)));
        let deliver = |connection: &mut Connection, at_us: u64, rtt_us: u64, segments: u64| {
            let mut cx = Cx {
                now: Time::ZERO + Dur::from_us(at_us),
                mss_bytes: MSS,
                srtt: None,
                min_rtt: None,
                rng: &mut connection.rng,
            };
            let rtt = Some(Dur::from_us(rtt_us));
            connection
                .controller
                .on_ack(&Ack { rtt, cwnd_limited: false, ..Ack::in_sequence(segments * MSS) }, &mut cx);
            let mut bandwidth = 0;
            connection.controller.trace(&mut |name, value| {
                if name == "bandwidth_bps" {
                    bandwidth = value as u64 / 8000;
                }
            });
            bandwidth
        };
        assert_eq!(deliver(&mut connection, 100_300, 40_200, 3), 0);
        assert_eq!(deliver(&mut connection, 100_900, 40_200, 30), 0, "the sampling window began at 60 ms");
        assert_eq!(deliver(&mut connection, 113_500, 40_200, 21), 622);
        assert_eq!(deliver(&mut connection, 163_900, 40_200, 1), 622, "50 ms are too short");
        assert_eq!(deliver(&mut connection, 164_100, 40_200, 1), 619);
        // Half of 100 segments; after the repair 619 bytes in each of 41 ms, in whole segments.
        assert_eq!(connection.congest(165, Congestion::Loss { flight_bytes: 0 }), 50 * MSS);
        connection.deliver(166, 41, 10, Phase::Recovery);
        assert_eq!(connection.window(), 50 * MSS);
        connection.deliver(167, 41, 1, Phase::Open);
        assert_eq!((connection.window(), connection.ssthresh()), (25 * MSS, 25 * MSS));
    }

    /// 100 segments in the 60 ms until the sample are 1666 bytes per millisecond. A retransmission is acknowledged
    /// after 18 ms. From the next acknowledgment on that is the minimum round-trip time: 29,988 bytes, where 20 ms gave
    /// 33,320.
    #[test]
    fn linux_takes_the_round_trip_time_of_a_retransmission() {
        let window_after = |tick| {
            let mut connection = Connection::of(200, tick);
            connection.deliver(30, 30, 100, Phase::Open);
            connection.deliver(60, 20, 0, Phase::Open);
            connection.deliver(61, 20, 0, Phase::Open);
            connection.congest(65, Congestion::Loss { flight_bytes: 200 * MSS });
            let (controller, mut cx) = connection.cx(70);
            let resent = Ack { resent_rtt: Some(Dur::from_ms(18)), phase: Phase::Recovery, ..Ack::in_sequence(MSS) };
            controller.on_ack(&resent, &mut cx);
            connection.deliver(71, 20, 0, Phase::Recovery);
            connection.deliver(72, 20, 0, Phase::Open);
            connection.window() / MSS
        };
        assert_eq!((window_after(Some(Dur::from_ms(1))), window_after(None)), (29, 33));
    }
}
