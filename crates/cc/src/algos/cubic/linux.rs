//! CUBIC as Linux 6.12 computes it (tcp_cubic.c): whole segments, ticks of 1 ms, and a price of a segment in
//! acknowledged segments, set by the cubic and by Reno's estimate.
//!
//! beta is 717/1024 and C is 410/1024 segments per second cubed. The cubic looks ahead by the minimum round-trip time.
//! If it is above the window, the price is cwnd / (cubic - cwnd), otherwise 100 windows. Before the first loss and
//! after a timeout it is at most 20, which grows the window by a twentieth per round trip. Reno's estimate gains a
//! segment for each 15/8 of a window acknowledged since the last loss; if it is above the window, the price is at most
//! cwnd / (estimate - cwnd). The minimum price is 2. The cubic is evaluated at most once per tick, and only if the
//! window has changed or more than 31 ticks have passed. Round-trip times in the first second of an epoch are ignored.
//! A timeout resets everything.
//!
//! Differences from Linux: the cube root is exact, while Linux's is off by 0.2 % on average. The law learns one round
//! trip later that an idle application has resumed sending.

use crate::contract::{Ack, Congestion, Cx};
use crate::hystart::{HyStart, HyStartConfig};
use crate::window::{Window, WindowLaw};
use sparelane_core::{Dur, Time};

/// Ticks per second.
const HZ: u64 = 1000;

/// The cubic's time unit is 1/1024 s.
const TIME_SHIFT: u32 = 10;

/// C in 1/1024 segments per second cubed.
const C_BY_1024: u64 = 410;

/// beta in 1/1024.
const BETA_BY_1024: u64 = 717;

/// Eighths of a window per segment of Reno's estimate: 8 (1 + beta) / 3 / (1 - beta), rounded down.
const RENO_EIGHTHS: u64 = 8 * (1024 + BETA_BY_1024) / 3 / (1024 - BETA_BY_1024);

/// The maximum price before the first loss, segments.
const MOST_BEFORE_LOSS: u64 = 20;

fn ticks(at: Time) -> u64 {
    at.as_ps() / Dur::from_ms(1).as_ps()
}

/// The state since growth began or resumed after a cut.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: u64,
    /// The time from the start to the plateau of the cubic, in 1/1024 s.
    k: u64,
    /// The plateau, segments.
    origin: u64,
    /// Acknowledged segments not yet counted by Reno's estimate.
    unpaid: u64,
    /// Reno's estimate, segments.
    reno: u64,
}

/// The tick and the window of the last evaluation of the cubic.
#[derive(Clone, Copy, Debug, Default)]
struct Evaluation {
    at: u64,
    cwnd: u64,
}

/// The window law of Linux 6.12.
#[derive(Clone, Debug, Default)]
pub struct LinuxCubic {
    /// The number of acknowledged segments that add one to the window.
    price: u64,
    /// The window before the last loss, segments; 0 if unknown.
    last_max: u64,
    evaluated: Evaluation,
    epoch: Option<Epoch>,
    least_rtt: Option<Dur>,
    /// Acknowledged segments not yet spent on growth.
    saved: u64,
    hystart: Option<Box<HyStart>>,
    /// The send time of the last segment in flight, if nothing is in flight now.
    idle_since: Option<Time>,
}

impl LinuxCubic {
    /// Creates the law at the start of a connection.
    pub fn new(hystart: Option<HyStartConfig>) -> LinuxCubic {
        LinuxCubic { hystart: hystart.map(|config| Box::new(HyStart::new(config))), ..LinuxCubic::default() }
    }

    /// Removes time without data in flight from the epoch.
    fn skip_pause(&mut self, ack: &Ack, now: Time) {
        let Some(rtt) = ack.rtt else { return };
        let sent = Time::from_ps(now.as_ps().saturating_sub(rtt.as_ps()));
        if let (Some(since), Some(epoch)) = (self.idle_since.take(), &mut self.epoch) {
            epoch.start = (epoch.start + ticks(sent).saturating_sub(ticks(since))).min(ticks(now));
        }
        self.idle_since = (ack.in_flight_bytes == 0).then_some(sent);
    }

    fn begin_epoch(&self, cwnd: u64, acked: u64, now: u64) -> Epoch {
        // Beyond the old maximum the plateau is the present window.
        let (k, origin) = if self.last_max <= cwnd {
            (0, cwnd)
        } else {
            let cube = ((self.last_max - cwnd) << (TIME_SHIFT + 3 * TIME_SHIFT)) / C_BY_1024;
            (libm::cbrt(cube as f64) as u64, self.last_max)
        };
        Epoch { start: now, k, origin, unpaid: acked, reno: cwnd }
    }

    /// Returns the price set by the cubic.
    fn cubic_price(&self, epoch: &Epoch, cwnd: u64, now: u64) -> u64 {
        // The kernel's minimum round-trip time is in whole ticks, rounded up.
        let ahead = self.least_rtt.map_or(0, |rtt| rtt.as_ps().div_ceil(Dur::from_ms(1).as_ps()));
        let t = ((now - epoch.start + ahead) << TIME_SHIFT) / HZ;
        let distance = u128::from(t.abs_diff(epoch.k));
        // C t^3 with time in 1/1024 s; the cube may exceed 64 bits.
        let change = (u128::from(C_BY_1024) * distance * distance * distance) >> (TIME_SHIFT + 3 * TIME_SHIFT);
        let change = u64::try_from(change).unwrap_or(u64::MAX);
        let aim = if t < epoch.k { epoch.origin.saturating_sub(change) } else { epoch.origin.saturating_add(change) };
        let price = if aim > cwnd { cwnd / (aim - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 { price.min(MOST_BEFORE_LOSS) } else { price }
    }

    /// Recomputes the price for a window of `cwnd` segments after `acked` more were acknowledged.
    fn renew_price(&mut self, cwnd: u64, acked: u64, now: u64) {
        // The kernel reuses a result for up to 1/32 s while the window is unchanged.
        let is_fresh = self.evaluated.cwnd == cwnd && now - self.evaluated.at <= HZ / 32;
        match &mut self.epoch {
            Some(epoch) => {
                epoch.unpaid += acked;
                if is_fresh {
                    return;
                }
            }
            None if is_fresh => return,
            None => {}
        }
        let had_epoch = self.epoch.is_some();
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(cwnd, acked, now));
        // An epoch in progress evaluates the cubic once per tick.
        if !had_epoch || now != self.evaluated.at {
            self.evaluated = Evaluation { at: now, cwnd };
            self.price = self.cubic_price(&epoch, cwnd, now);
        }
        let reno_price = ((cwnd * RENO_EIGHTHS) >> 3).max(1);
        // Linux's loop pays only while more than one price is left.
        let gained = epoch.unpaid.saturating_sub(1) / reno_price;
        epoch.unpaid -= gained * reno_price;
        epoch.reno += gained;
        if epoch.reno > cwnd {
            self.price = self.price.min(cwnd / (epoch.reno - cwnd));
        }
        self.price = self.price.max(2);
        self.epoch = Some(epoch);
    }
}

impl WindowLaw for LinuxCubic {
    fn observe(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        self.skip_pause(ack, cx.now);
        let is_early = self.epoch.is_some_and(|epoch| ticks(cx.now) - epoch.start < HZ);
        let (Some(rtt), false) = (ack.rtt, is_early) else { return };
        self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        if let Some(hystart) = &mut self.hystart {
            hystart.observe(window, ack, ack.rtt, cx);
        }
    }

    /// The part beyond the threshold counts for congestion avoidance.
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, counted_bytes: u64, cx: &mut Cx<'_>) {
        let room = window.ssthresh - window.cwnd;
        window.cwnd += counted_bytes.min(room);
        let left_bytes = counted_bytes.saturating_sub(room);
        if left_bytes >= cx.mss_bytes {
            self.grow(window, &Ack { acked_bytes: left_bytes, ..*ack }, cx);
        }
    }

    fn grow(&mut self, window: &mut Window, ack: &Ack, cx: &mut Cx<'_>) {
        let mss = cx.mss_bytes;
        let (cwnd, acked) = (window.cwnd / mss, ack.acked_bytes.div_ceil(mss));
        self.renew_price(cwnd, acked, ticks(cx.now));
        // Credit saved at a higher price buys a single segment.
        if self.saved >= self.price {
            self.saved = 0;
            window.cwnd += mss;
        }
        self.saved += acked;
        window.cwnd += self.saved / self.price * mss;
        self.saved %= self.price;
    }

    fn cut(&mut self, window: &Window, _flight_bytes: u64, event: Congestion, cx: &mut Cx<'_>) -> u64 {
        let cwnd = window.cwnd / cx.mss_bytes;
        self.epoch = None;
        self.last_max = if cwnd < self.last_max { cwnd * (1024 + BETA_BY_1024) / 2048 } else { cwnd };
        if let Congestion::Timeout { .. } = event {
            // HyStart survives a timeout in its reset state; the rest starts from zero.
            let mut hystart = self.hystart.take();
            if let Some(hystart) = &mut hystart {
                hystart.restart();
            }
            *self = LinuxCubic { hystart, ..LinuxCubic::default() };
        }
        cwnd * BETA_BY_1024 / 1024 * cx.mss_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::{Domain, Stream};

    const MSS: u64 = 1000;
    const LOSS: Congestion = Congestion::Loss { flight_bytes: 0 };

    struct Connection {
        law: LinuxCubic,
        window: Window,
        rng: Stream,
    }

    impl Connection {
        fn new(segments: u64) -> Connection {
            let window = Window { cwnd: segments * MSS, ssthresh: 0 };
            Connection { law: LinuxCubic::new(None), window, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn at<T>(&mut self, at_ms: u64, call: impl FnOnce(&mut LinuxCubic, &mut Window, &mut Cx<'_>) -> T) -> T {
            let now = Time::ZERO + Dur::from_ms(at_ms);
            let mut cx = Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            call(&mut self.law, &mut self.window, &mut cx)
        }

        /// Returns the price of a segment after an acknowledgment.
        fn price(&mut self, at_ms: u64, segments: u64) -> u64 {
            self.at(at_ms, |law, window, cx| {
                let ack =
                    Ack { rtt: Some(Dur::from_ms(100)), in_flight_bytes: MSS, ..Ack::in_sequence(segments * MSS) };
                law.observe(window, &ack, cx);
                law.grow(window, &ack, cx);
                law.price
            })
        }

        fn lose(&mut self) -> u64 {
            let cut = self.at(0, |law, window, cx| law.cut(window, 0, LOSS, cx));
            self.window.cwnd = cut;
            cut / MSS
        }
    }

    #[test]
    fn beta_is_717_of_1024_and_fast_convergence_takes_another_half_of_the_rest() {
        let mut connection = Connection::new(1000);
        assert_eq!((connection.lose(), connection.law.last_max), (700, 1000));
        assert_eq!((connection.lose(), connection.law.last_max), (490, 700 * 1741 / 2048));
        assert_eq!(RENO_EIGHTHS, 15);
    }

    /// At 700 of 1000 segments K = cbrt(300 * 2^40 / 410) = 9300 / 1024 s. At the start of the epoch the cubic looks
    /// ahead by the minimum round-trip time of 100 ms, which is 102 / 1024 s: 1000 - (410 * 9198^3 >> 40) = 710.
    #[test]
    fn the_first_price_looks_ahead_by_the_minimum_round_trip_time() {
        let mut connection = Connection::new(1000);
        connection.lose();
        assert_eq!(connection.price(0, 1), 700 / 10);
        assert_eq!(connection.law.epoch.map(|epoch| (epoch.k, epoch.origin)), Some((9300, 1000)));
        // After 5 s: 5222 / 1024 s, 1000 - (410 * 4078^3 >> 40) = 975.
        assert_eq!(connection.price(5000, 1), 700 / 275);
    }

    #[test]
    fn before_a_loss_twenty_acknowledged_segments_add_one_and_the_cubic_more_if_it_is_faster() {
        let mut connection = Connection::new(1000);
        assert_eq!(connection.price(0, 1), 20);
        for _ in 0..999 {
            connection.price(0, 1);
        }
        assert_eq!(connection.window.cwnd, 1050 * MSS);
        // 410 (10342)^3 >> 40 = 412 after ten seconds and 100 ms. Growth is capped at half of the window per round
        // trip.
        assert_eq!(connection.price(10_000, 1), 1050 / (412 - 50));
    }

    /// At the plateau of 40 segments the cubic does not grow. Reno's estimate gains a segment after more than 75
    /// acknowledged segments (40 * 15 / 8); the price is then 40.
    #[test]
    fn renos_estimate_grows_by_a_segment_for_fifteen_eighths_of_a_window() {
        let mut connection = Connection::new(40);
        connection.law.last_max = 40;
        assert_eq!(connection.price(0, 75), 4000);
        assert_eq!(connection.price(40, 1), 40);
    }

    #[test]
    fn the_cubic_is_evaluated_again_after_31_ticks_or_with_another_window() {
        let mut connection = Connection::new(700);
        connection.law.last_max = 1000;
        let first = connection.price(1, 1);
        connection.law.price = 5555;
        assert_eq!([connection.price(2, 1), connection.price(32, 1)], [5555; 2]);
        assert!(connection.price(33, 1) <= first);
    }

    #[test]
    fn a_timeout_resets_everything() {
        let mut connection = Connection::new(1000);
        connection.lose();
        connection.price(0, 1);
        let timeout = Congestion::Timeout { flight_bytes: 0, first: true };
        assert_eq!(connection.at(0, |law, window, cx| law.cut(window, 0, timeout, cx)), 490 * MSS);
        assert_eq!((connection.law.last_max, connection.law.least_rtt), (0, None));
        assert_eq!(connection.price(0, 1), 20);
    }

    /// An acknowledgment leaves nothing in flight. The next segment is sent 3 s after the last one.
    #[test]
    fn time_without_data_does_not_count() {
        let mut connection = Connection::new(1000);
        connection.lose();
        connection.price(0, 1);
        let acknowledge = |connection: &mut Connection, at_ms, in_flight_bytes| {
            let ack = Ack { rtt: Some(Dur::from_ms(100)), in_flight_bytes, ..Ack::in_sequence(MSS) };
            connection.at(at_ms, |law, window, cx| law.observe(window, &ack, cx));
            connection.law.epoch.expect("an epoch").start
        };
        assert_eq!(acknowledge(&mut connection, 1000, 0), 0);
        assert_eq!(acknowledge(&mut connection, 4000, MSS), 3000);
        assert_eq!(acknowledge(&mut connection, 4100, MSS), 3000);
    }
    #[test]
    fn credit_saved_at_a_higher_price_buys_one_segment() {
        let mut connection = Connection::new(40);
        connection.law.last_max = 40;
        connection.price(0, 75);
        assert_eq!((connection.window.cwnd, connection.law.saved), (40 * MSS, 75));
        connection.price(40, 1);
        assert_eq!((connection.window.cwnd, connection.law.saved), (41 * MSS, 1));
    }
}
