//! HyStart: ends slow start before the queue overflows, at the first of two signs of a full path.
//!
//! Source: Ha and Rhee, "Hybrid Slow Start for High-Bandwidth and Long-Distance Networks", PFLDnet 2008; constants from
//! Linux (tcp_cubic.c). HyStart++ (RFC 9406) is a different algorithm.
//!
//! The two signs:
//!
//! - **Train length.** A train is a run of acknowledgments that are at most 2 ms apart. Packets sent back to back
//!   return back to back, so a train as long as half the minimum round-trip time means that one direction of the path
//!   is full.
//! - **Delay.** The minimum round-trip time of a round's first eight samples exceeds the connection's minimum by an
//!   eighth of it, clamped to 4 to 16 ms.
//!
//! Either sign sets the slow-start threshold to the window, once until the next timeout. Below 16 segments neither sign
//! is checked.
//!
//! Linux has changed the constants: the divisor is 8 since 3.19 and was 16 before; the minimum rise is 4 ms since
//! 2.6.39 and was 2 ms before. Red Hat's 2.6.32 has 16 and 4 ms. Linux measures in ticks or milliseconds; this
//! implementation is exact.
//!
//! Linux 6.12 differs ([`HyStartConfig::of_linux_6_12`]). A train must exceed half of the minimum round-trip time plus
//! a cushion for segmentation offload (TSO, LRO). The cushion is the time that four 64 kB chunks take at twice the
//! window per smoothed round-trip time, at most 1 ms. Samples after the eighth still lower a round's delay, and the
//! acknowledgment that begins a round is its first sample.
//!
//! CDG in Linux has its own version ([`Version::Cdg`]). The train begins with the acknowledgment after the one that
//! ends a round and must exceed half of the minimum round-trip time. A round's delay is the minimum of all its samples
//! so far.

use crate::contract::{Ack, Cx, Phase};
use crate::param::{DefaultValue, Kind, Param, Unit, Values};
use crate::round::Round;
use crate::window::Window;
use sparelane_core::{Dur, Rate, Time};

/// The flag that enables HyStart in a window law.
pub const HYSTART: Param = Param {
    name: "hystart",
    kind: Kind::Flag,
    default: DefaultValue::Flag(false),
    meaning: "end slow start before the queue overflows (HyStart)",
    source: "Ha and Rhee, PFLDnet 2008; on in Linux",
};

/// [`HyStartConfig::divisor`].
pub const HYSTART_DIVISOR: Param = Param {
    name: "hystart_divisor",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::One },
    default: DefaultValue::Whole(8),
    meaning: "slow start ends when delay rises by the minimum round-trip time divided by this",
    source: "Linux since 3.19; 16 before",
};

/// [`HyStartConfig::least_rise`].
pub const HYSTART_LEAST_RISE: Param = Param {
    name: "hystart_least_rise",
    kind: Kind::Span { min: Dur::ZERO, max: MOST_RISE },
    default: DefaultValue::Span(Dur::from_ms(4)),
    meaning: "a smaller rise in delay does not end slow start",
    source: "Linux since 2.6.39; 2 ms before",
};

// The largest rise that is required, however long the round trip.
const MOST_RISE: Dur = Dur::from_ms(16);

/// Number of samples that determine a round's delay.
const SAMPLES: u32 = 8;

/// The version of the rules in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// CUBIC's rules before 2019.
    Classic,
    /// CUBIC's rules in Linux 6.12.
    Linux6_12,
    /// CDG's rules in Linux 6.12.
    Cdg,
}

/// The constants of HyStart.
#[derive(Clone, Copy, Debug)]
pub struct HyStartConfig {
    /// The window from which on the signs are checked, segments.
    pub low_window: u64,
    /// The largest gap between two acknowledgments of one train.
    pub ack_delta: Dur,
    /// The delay sign requires a rise of the minimum round-trip time divided by this,
    pub divisor: u64,
    /// at least this,
    pub least_rise: Dur,
    /// and at most this.
    pub most_rise: Dur,
    /// Trains and round-trip times shorter than this are not signs.
    pub floor: Dur,
    /// The version of the rules.
    pub version: Version,
}

impl HyStartConfig {
    /// Returns the configuration in the values of a controller that declares these parameters, with the other constants
    /// of Linux's CUBIC. Returns `None` if HyStart is disabled.
    pub fn of(values: &Values) -> Option<HyStartConfig> {
        values
            .flag(&HYSTART)
            .then(|| HyStartConfig { version: Version::Classic, ..HyStartConfig::of_linux_6_12(values) })
    }

    /// Returns the constants of Linux 6.12, with the divisor and the minimum rise taken from the values.
    pub fn of_linux_6_12(values: &Values) -> HyStartConfig {
        HyStartConfig {
            low_window: 16,
            ack_delta: Dur::from_ms(2),
            divisor: values.whole(&HYSTART_DIVISOR),
            least_rise: values.span(&HYSTART_LEAST_RISE),
            most_rise: MOST_RISE,
            floor: Dur::ZERO,
            version: Version::Linux6_12,
        }
    }
}

/// Bytes of four chunks of the largest size (64 kB).
const CUSHION_BYTES: u64 = 4 * 65_536;

/// The upper limit of the cushion.
const MOST_CUSHION: Dur = Dur::from_ms(1);

/// The extra train length that Linux 6.12 requires: the time four chunks take at the rate at which Linux would pace
/// this window.
fn cushion(window: &Window, cx: &Cx<'_>) -> Dur {
    let Some(srtt) = cx.srtt else { return Dur::ZERO };
    Rate::of(2 * window.cwnd, srtt).time_for(CUSHION_BYTES).min(MOST_CUSHION)
}

/// The HyStart state of one slow start.
#[derive(Clone, Debug)]
pub struct HyStart {
    config: HyStartConfig,
    min_rtt: Dur,
    is_over: bool,
    round: Round,
    train_began: Time,
    last_ack: Time,
    /// True if the next acknowledgment begins a train.
    awaits_train: bool,
    /// Number of samples in this round.
    samples: u32,
    least_rtt: Dur,
}

impl HyStart {
    /// Creates the state at the start of a connection.
    pub fn new(config: HyStartConfig) -> HyStart {
        HyStart {
            config,
            min_rtt: Dur::MAX,
            is_over: false,
            round: Round::default(),
            train_began: Time::ZERO,
            last_ack: Time::ZERO,
            awaits_train: false,
            samples: 0,
            least_rtt: Dur::MAX,
        }
    }

    /// Resets the state after a timeout.
    pub fn restart(&mut self) {
        *self = HyStart::new(self.config);
    }

    /// Restarts the train at `now`.
    pub fn break_train(&mut self, now: Time) {
        (self.train_began, self.last_ack, self.awaits_train) = (now, now, false);
    }

    /// Processes one acknowledgment with its round-trip time, and ends slow start if a sign of a full path appears.
    pub fn observe(&mut self, window: &mut Window, ack: &Ack, rtt: Option<Dur>, cx: &Cx<'_>) {
        if self.is_over || window.cwnd >= window.ssthresh || ack.phase == Phase::Recovery {
            return;
        }
        let round_is_over = self.round.is_over(ack);
        let is_6_12 = self.config.version == Version::Linux6_12;
        // Linux 6.12 resets before it takes the sample; the older versions reset afterwards.
        if round_is_over && is_6_12 {
            self.begin_round(cx.now);
        }
        if let Some(rtt) = rtt {
            self.min_rtt = self.min_rtt.min(rtt);
            if window.cwnd >= self.config.low_window * cx.mss_bytes && self.sees_full_path(rtt, window, cx) {
                window.ssthresh = window.cwnd;
                self.is_over = true;
            }
        }
        if round_is_over && !is_6_12 {
            self.begin_round(cx.now);
        }
    }

    fn begin_round(&mut self, now: Time) {
        self.break_train(now);
        self.awaits_train = self.config.version == Version::Cdg;
        (self.samples, self.least_rtt) = (0, Dur::MAX);
    }

    fn sees_full_path(&mut self, rtt: Dur, window: &Window, cx: &Cx<'_>) -> bool {
        let HyStartConfig { ack_delta, divisor, least_rise, most_rise, floor, version, .. } = self.config;
        let now = cx.now;
        // CDG restarts the train at the first acknowledgment of a round.
        if self.awaits_train {
            self.break_train(now);
        }
        if now - self.last_ack <= ack_delta {
            self.last_ack = now;
            let lasted = now - self.train_began;
            let is_long = match version {
                Version::Classic => lasted >= (self.min_rtt / 2).max(floor),
                Version::Linux6_12 => lasted > (self.min_rtt + cushion(window, cx)) / 2,
                Version::Cdg => lasted > (self.min_rtt / 2).max(floor),
            };
            if is_long {
                // A train that is long enough ends slow start whatever the delay.
                return true;
            }
        }
        if self.samples < SAMPLES || version != Version::Classic {
            self.least_rtt = self.least_rtt.min(rtt);
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let rise = (self.min_rtt / divisor).clamp(least_rise, most_rise);
        self.least_rtt > (self.min_rtt + rise).max(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Value;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;

    fn linux() -> HyStartConfig {
        let mut values = Values::default();
        values.set("hystart", Value::Flag(true));
        HyStartConfig::of(&values).expect("HyStart")
    }

    /// A slow start at a window of 100 segments, in a round of 1000 acknowledgments whose first had `min_rtt`.
    struct SlowStart {
        hystart: HyStart,
        window: Window,
        now: Time,
        srtt: Option<Dur>,
        rng: Stream,
    }

    impl SlowStart {
        fn new(config: HyStartConfig, segments: u64, min_rtt: Dur) -> SlowStart {
            let mut start = SlowStart {
                hystart: HyStart::new(config),
                window: Window { cwnd: segments * MSS, ssthresh: u64::MAX },
                now: Time::ZERO + Dur::from_secs(1),
                srtt: None,
                rng: Stream::new(1, Domain::Test, 0),
            };
            start.acknowledge(Dur::ZERO, min_rtt);
            start
        }

        /// Returns true if slow start continues after an acknowledgment that comes `after` the last one.
        fn acknowledge(&mut self, after: Dur, rtt: Dur) -> bool {
            self.now += after;
            let cx = Cx { now: self.now, mss_bytes: MSS, srtt: self.srtt, min_rtt: None, rng: &mut self.rng };
            let ack = Ack { in_flight_bytes: 1000 * MSS, ..Ack::in_sequence(MSS) };
            self.hystart.observe(&mut self.window, &ack, Some(rtt), &cx);
            self.window.ssthresh > self.window.cwnd
        }

        /// Returns the number of acknowledgments after which slow start ends, out of at most 900.
        fn ends_after(&mut self, every: Dur, rtt: Dur) -> Option<u64> {
            (1..=900).find(|_| !self.acknowledge(every, rtt))
        }
    }

    const RTT: Dur = Dur::from_ms(100);

    #[test]
    fn a_train_of_half_the_least_round_trip_time_ends_slow_start() {
        let ends_after = |every| SlowStart::new(linux(), 100, RTT).ends_after(every, RTT);
        assert_eq!(ends_after(Dur::from_ms(1)), Some(50));
        assert_eq!(ends_after(Dur::from_ms(2)), Some(25));
        assert_eq!(ends_after(Dur::from_us(2_001)), None);
    }

    #[test]
    fn a_pause_of_more_than_two_milliseconds_ends_the_train_for_the_round() {
        let mut start = SlowStart::new(linux(), 100, RTT);
        assert!((0..20).all(|_| start.acknowledge(Dur::from_ms(1), RTT)));
        assert!(start.acknowledge(Dur::from_ms(3), RTT));
        assert_eq!(start.ends_after(Dur::from_ms(1), RTT), None);
    }

    /// After eight samples, the ninth acknowledgment ends slow start. The rise is 100 / 8 = 12.5 ms; at 20 ms it is the
    /// minimum of 4 ms, at 400 ms the maximum of 16 ms.
    #[test]
    fn a_delay_beyond_an_eighth_of_the_least_round_trip_time_ends_slow_start() {
        let ends_after = |config, least_ms: u64, rtt_us| {
            let mut start = SlowStart::new(config, 100, Dur::from_ms(least_ms));
            start.ends_after(Dur::from_ms(3), Dur::from_us(rtt_us))
        };
        assert_eq!([112_500, 112_501].map(|us| ends_after(linux(), 100, us)), [None, Some(9)]);
        assert_eq!([24_000, 24_001].map(|us| ends_after(linux(), 20, us)), [None, Some(9)]);
        assert_eq!([416_000, 416_001].map(|us| ends_after(linux(), 400, us)), [None, Some(9)]);
        let of_2_6_32 = HyStartConfig { divisor: 16, least_rise: Dur::from_ms(2), ..linux() };
        assert_eq!([106_250, 106_251].map(|us| ends_after(of_2_6_32, 100, us)), [None, Some(9)]);
        assert_eq!([22_000, 22_001].map(|us| ends_after(of_2_6_32, 20, us)), [None, Some(9)]);
    }

    #[test]
    fn one_short_round_trip_among_the_first_eight_keeps_slow_start_going() {
        let mut start = SlowStart::new(linux(), 100, RTT);
        let long = Dur::from_ms(150);
        assert!([long, long, RTT, long].iter().all(|&rtt| start.acknowledge(Dur::from_ms(3), rtt)));
        assert_eq!(start.ends_after(Dur::from_ms(3), long), None);
    }

    #[test]
    fn below_sixteen_segments_slow_start_continues() {
        let ends_after = |segments| SlowStart::new(linux(), segments, RTT).ends_after(Dur::from_ms(1), RTT);
        assert_eq!((ends_after(15), ends_after(16)), (None, Some(50)));
    }

    #[test]
    fn it_ends_slow_start_once_until_it_restarts() {
        let mut start = SlowStart::new(linux(), 100, RTT);
        assert!(start.ends_after(Dur::from_ms(1), RTT).is_some());
        start.window.ssthresh = u64::MAX;
        assert_eq!(start.ends_after(Dur::from_ms(1), RTT), None);
        start.hystart.restart();
        assert_eq!(start.ends_after(Dur::from_ms(1), RTT), Some(51), "the first acknowledgment begins a round");
    }
    fn linux_6_12() -> HyStartConfig {
        HyStartConfig::of_linux_6_12(&Values::default())
    }

    /// Half of 100 ms and of 1 ms is 50.5 ms, in acknowledgments 1 ms apart. Without a smoothed round-trip time there
    /// is no cushion, and 50 ms do not exceed one half.
    #[test]
    fn linux_6_12_requires_a_train_longer_by_half_of_a_cushion() {
        let ends_after = |srtt: Option<Dur>, every: Dur| {
            let mut start = SlowStart::new(linux_6_12(), 100, RTT);
            start.srtt = srtt;
            start.ends_after(every, RTT)
        };
        assert_eq!(ends_after(Some(RTT), Dur::from_us(500)), Some(102), "after 51 ms");
        assert_eq!(ends_after(None, Dur::from_us(500)), Some(101), "after 50.5 ms");
        // 2 * 100 kB in 100 us are 2 GB/s: 262,144 bytes take 131.072 us.
        let window = Window { cwnd: 100 * MSS, ssthresh: u64::MAX };
        let mut rng = Stream::new(1, Domain::Test, 0);
        let cx = Cx { now: Time::ZERO, mss_bytes: MSS, srtt: Some(Dur::from_us(100)), min_rtt: None, rng: &mut rng };
        assert_eq!(cushion(&window, &cx), Dur::from_ns(131_072));
    }

    #[test]
    fn in_linux_6_12_a_short_round_trip_after_the_eighth_continues_slow_start() {
        let ends = |config| {
            let mut start = SlowStart::new(config, 100, RTT);
            let long = Dur::from_ms(150);
            (0..8).for_each(|_| assert!(start.acknowledge(Dur::from_ms(3), long)));
            !(start.acknowledge(Dur::from_ms(3), RTT) && start.acknowledge(Dur::from_ms(3), long))
        };
        assert_eq!((ends(linux()), ends(linux_6_12())), (true, false));
    }

    #[test]
    fn delay_thresholds_of_linux_6_12_are_an_eighth_between_4_and_16_ms() {
        let ends_after = |least_ms: u64, rtt_us| {
            let mut start = SlowStart::new(linux_6_12(), 100, Dur::from_ms(least_ms));
            // The first acknowledgment of a round is also its first sample here, so the round's delay is that of the
            // following ones.
            start.hystart.least_rtt = Dur::MAX;
            start.ends_after(Dur::from_ms(3), Dur::from_us(rtt_us))
        };
        assert_eq!([112_500, 112_501].map(|us| ends_after(100, us)), [None, Some(8)]);
        assert_eq!([24_000, 24_001].map(|us| ends_after(20, us)), [None, Some(8)]);
        assert_eq!([416_000, 416_001].map(|us| ends_after(400, us)), [None, Some(8)]);
    }

    /// The first acknowledgment ends a round. From the second on, 1.2 ms apart, a train exceeds half of 10 ms with the
    /// seventh, as in Linux. A round's delay is the minimum so far: after a short sample, the ninth does not end slow
    /// start.
    #[test]
    fn cdgs_train_begins_with_the_acknowledgment_after_a_round() {
        let rtt = Dur::from_ms(10);
        let config = |version| HyStartConfig { version, low_window: 0, ack_delta: Dur::from_ms(3), ..linux() };
        let ends_after = |version| SlowStart::new(config(version), 100, rtt).ends_after(Dur::from_us(1_200), rtt);
        assert_eq!(
            [Version::Classic, Version::Cdg].map(ends_after),
            [Some(5), Some(6)],
            "after the first acknowledgment"
        );
        let mut start = SlowStart::new(config(Version::Cdg), 100, RTT);
        let long = Dur::from_ms(150);
        (0..8).for_each(|_| assert!(start.acknowledge(Dur::from_ms(4), long)));
        assert!(start.acknowledge(Dur::from_ms(4), RTT));
        assert!(start.acknowledge(Dur::from_ms(4), long));
    }
}
