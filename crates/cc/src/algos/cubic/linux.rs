//! CUBIC as Linux 6.12 calculates it (tcp_cubic.c): whole segments, time in ticks of 1 ms, and a price of a segment in
//! acknowledged ones, which the cubic and Reno's estimate set.
//!
//! beta is 717/1024 and C is 410/1024 segments per second cubed. The cubic looks ahead by the least round-trip time. Where it is
//! above the window, the price is cwnd / (cubic - cwnd), and elsewhere 100 windows; before the first loss, and after a
//! timeout, it is 20 at most, which grows the window by a twentieth in a round trip. Reno's estimate gains a segment for
//! each 15/8 of a window acknowledged since the last loss; where it is above the window, the price is cwnd / (estimate - cwnd) at
//! most. The price is 2 at least. The cubic is looked at once a tick, and only where the window has changed or more than 31
//! ticks have gone by. Delays of the second after growth began again are not listened to. A timeout forgets everything.
//!
//! Where we differ: the cube root is exact; Linux's is off by 0.2 % on average. That an idle application begins to send again we
//! hear a round trip later.

use crate::contract::{Ack, Congestion, Cx};
use crate::hystart::{HyStart, HyStartConfig};
use crate::window::{Window, WindowLaw};
use sparelane_core::{Dur, Time};

/// Ticks in a second.
const HZ: u64 = 1000;

/// The cubic's time is in parts of a second: 1024.
const TIME_SHIFT: u32 = 10;

/// C in parts of 1024.
const C_BY_1024: u64 = 410;

/// beta in parts of 1024.
const BETA_BY_1024: u64 = 717;

/// Eighths of a window that Reno's estimate needs for a segment: 8 (1 + beta) / 3 / (1 - beta), rounded down.
const RENO_EIGHTHS: u64 = 8 * (1024 + BETA_BY_1024) / 3 / (1024 - BETA_BY_1024);

/// The price before the first loss, segments.
const MOST_BEFORE_LOSS: u64 = 20;

fn ticks(at: Time) -> u64 {
    at.as_ps() / Dur::from_ms(1).as_ps()
}

/// Since growth began again.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: u64,
    /// When the cubic is at its plateau, in parts of a second since the start.
    k: u64,
    /// The plateau, segments.
    origin: u64,
    /// Acknowledged segments that Reno's estimate has yet to count.
    unpaid: u64,
    /// Reno's estimate, segments.
    reno: u64,
}

/// What the cubic was last calculated for.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    at: u64,
    cwnd: u64,
}

/// The law.
#[derive(Clone, Debug, Default)]
pub struct LinuxCubic {
    /// Segments that an increase by one costs.
    price: u64,
    /// The window before the last loss, segments; 0 if none is known.
    last_max: u64,
    look: Look,
    epoch: Option<Epoch>,
    least_rtt: Option<Dur>,
    /// Acknowledged segments that no increase has cost.
    saved: u64,
    hystart: Option<Box<HyStart>>,
    /// When the last segment left that was in flight, where none is now.
    idle_since: Option<Time>,
}

impl LinuxCubic {
    /// At the start of a connection.
    pub fn new(hystart: Option<HyStartConfig>) -> LinuxCubic {
        LinuxCubic { hystart: hystart.map(|config| Box::new(HyStart::new(config))), ..LinuxCubic::default() }
    }

    /// Time in which nothing was in flight does not count.
    fn skip_pause(&mut self, ack: &Ack, now: Time) {
        let Some(rtt) = ack.rtt else { return };
        let sent = Time::from_ps(now.as_ps().saturating_sub(rtt.as_ps()));
        if let (Some(since), Some(epoch)) = (self.idle_since.take(), &mut self.epoch) {
            epoch.start = (epoch.start + ticks(sent).saturating_sub(ticks(since))).min(ticks(now));
        }
        self.idle_since = (ack.in_flight_bytes == 0).then_some(sent);
    }

    fn begin_epoch(&self, cwnd: u64, acked: u64, now: u64) -> Epoch {
        let (k, origin) = if self.last_max <= cwnd {
            (0, cwnd)
        } else {
            let cube = ((self.last_max - cwnd) << (TIME_SHIFT + 3 * TIME_SHIFT)) / C_BY_1024;
            (libm::cbrt(cube as f64) as u64, self.last_max)
        };
        Epoch { start: now, k, origin, unpaid: acked, reno: cwnd }
    }

    /// The price that the cubic asks.
    fn cubic_price(&self, epoch: &Epoch, cwnd: u64, now: u64) -> u64 {
        let ahead = self.least_rtt.map_or(0, |rtt| rtt.as_ps().div_ceil(Dur::from_ms(1).as_ps()));
        let t = ((now - epoch.start + ahead) << TIME_SHIFT) / HZ;
        let distance = u128::from(t.abs_diff(epoch.k));
        let change = (u128::from(C_BY_1024) * distance * distance * distance) >> (TIME_SHIFT + 3 * TIME_SHIFT);
        let change = u64::try_from(change).unwrap_or(u64::MAX);
        let aim = if t < epoch.k { epoch.origin.saturating_sub(change) } else { epoch.origin.saturating_add(change) };
        let price = if aim > cwnd { cwnd / (aim - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 { price.min(MOST_BEFORE_LOSS) } else { price }
    }

    /// Renews the price for a window of `cwnd` segments, of which `acked` more are acknowledged.
    fn renew_price(&mut self, cwnd: u64, acked: u64, now: u64) {
        let is_fresh = self.look.cwnd == cwnd && now - self.look.at <= HZ / 32;
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
        if !had_epoch || now != self.look.at {
            self.look = Look { at: now, cwnd };
            self.price = self.cubic_price(&epoch, cwnd, now);
        }
        let reno_price = ((cwnd * RENO_EIGHTHS) >> 3).max(1);
        // Paid for as long as more than a price is left.
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

    /// What exceeds the threshold counts for congestion avoidance.
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
        // What was saved for a higher price buys one segment only.
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

    struct Life {
        law: LinuxCubic,
        window: Window,
        rng: Stream,
    }

    impl Life {
        fn new(segments: u64) -> Life {
            let window = Window { cwnd: segments * MSS, ssthresh: 0 };
            Life { law: LinuxCubic::new(None), window, rng: Stream::new(1, Domain::Test, 0) }
        }

        fn at<T>(&mut self, at_ms: u64, call: impl FnOnce(&mut LinuxCubic, &mut Window, &mut Cx<'_>) -> T) -> T {
            let now = Time::ZERO + Dur::from_ms(at_ms);
            let mut cx = Cx { now, mss_bytes: MSS, srtt: None, min_rtt: None, rng: &mut self.rng };
            call(&mut self.law, &mut self.window, &mut cx)
        }

        /// The price of a segment after an acknowledgment.
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
    fn beta_is_717_of_1024_and_fast_convergence_takes_half_of_what_is_left_more() {
        let mut life = Life::new(1000);
        assert_eq!((life.lose(), life.law.last_max), (700, 1000));
        assert_eq!((life.lose(), life.law.last_max), (490, 700 * 1741 / 2048));
        assert_eq!(RENO_EIGHTHS, 15);
    }

    /// From 700 of 1000 segments: K = cbrt(300 * 2^40 / 410) = 9300 / 1024 s, and in an epoch of 0 s the look ahead is of the
    /// least round-trip time, 100 ms, that is 102 / 1024: 1000 - (410 * 9198^3 >> 40) = 710.
    #[test]
    fn the_first_price_is_of_the_cubic_a_least_round_trip_ahead() {
        let mut life = Life::new(1000);
        life.lose();
        assert_eq!(life.price(0, 1), 700 / 10);
        assert_eq!(life.law.epoch.map(|epoch| (epoch.k, epoch.origin)), Some((9300, 1000)));
        // After 5 s: 5222 / 1024 s, 1000 - (410 * 4078^3 >> 40) = 975.
        assert_eq!(life.price(5000, 1), 700 / 275);
    }

    #[test]
    fn before_a_loss_twenty_acknowledged_segments_add_one_and_the_cubic_more_where_it_is_faster() {
        let mut life = Life::new(1000);
        assert_eq!(life.price(0, 1), 20);
        for _ in 0..999 {
            life.price(0, 1);
        }
        assert_eq!(life.window.cwnd, 1050 * MSS);
        // 410 (10342)^3 >> 40 = 412 after ten seconds and 100 ms: more than half the window is not to be had.
        assert_eq!(life.price(10_000, 1), 1050 / (412 - 50));
    }

    /// At the plateau of 40 segments the cubic gives nothing; Reno's estimate gains one for more than 75 acknowledged segments
    /// (40 * 15 / 8), and then the price is 40.
    #[test]
    fn renos_estimate_grows_by_a_segment_for_fifteen_eighths_of_a_window() {
        let mut life = Life::new(40);
        life.law.last_max = 40;
        assert_eq!(life.price(0, 75), 4000);
        assert_eq!(life.price(40, 1), 40);
    }

    #[test]
    fn the_cubic_is_looked_at_again_after_31_ticks_or_with_another_window() {
        let mut life = Life::new(700);
        life.law.last_max = 1000;
        let first = life.price(1, 1);
        life.law.price = 5555;
        assert_eq!([life.price(2, 1), life.price(32, 1)], [5555; 2]);
        assert!(life.price(33, 1) <= first);
    }

    #[test]
    fn a_timeout_forgets_everything() {
        let mut life = Life::new(1000);
        life.lose();
        life.price(0, 1);
        let timeout = Congestion::Timeout { flight_bytes: 0, first: true };
        assert_eq!(life.at(0, |law, window, cx| law.cut(window, 0, timeout, cx)), 490 * MSS);
        assert_eq!((life.law.last_max, life.law.least_rtt), (0, None));
        assert_eq!(life.price(0, 1), 20);
    }

    /// An acknowledgment leaves nothing in flight; the next segment is sent 3 s after the last one.
    #[test]
    fn time_without_data_does_not_count() {
        let mut life = Life::new(1000);
        life.lose();
        life.price(0, 1);
        let hear = |life: &mut Life, at_ms, in_flight_bytes| {
            let ack = Ack { rtt: Some(Dur::from_ms(100)), in_flight_bytes, ..Ack::in_sequence(MSS) };
            life.at(at_ms, |law, window, cx| law.observe(window, &ack, cx));
            life.law.epoch.expect("an epoch").start
        };
        assert_eq!(hear(&mut life, 1000, 0), 0);
        assert_eq!(hear(&mut life, 4000, MSS), 3000);
        assert_eq!(hear(&mut life, 4100, MSS), 3000);
    }
    #[test]
    fn what_was_saved_for_a_higher_price_buys_one_segment() {
        let mut life = Life::new(40);
        life.law.last_max = 40;
        life.price(0, 75);
        assert_eq!((life.window.cwnd, life.law.saved), (40 * MSS, 75));
        life.price(40, 1);
        assert_eq!((life.window.cwnd, life.law.saved), (41 * MSS, 1));
    }
}
