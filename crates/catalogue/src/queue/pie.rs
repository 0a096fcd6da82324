//! PIE, Proportional Integral controller Enhanced: arrivals are dropped with a probability that follows the queueing
//! delay and its trend.
//!
//! Source: RFC 8033, sections 4.1 to 4.4 and appendix A; ECN as in section 5.1.
//!
//! Needs the arrival time of each packet. The delay is that of the last departed packet, or zero if it left an empty
//! queue. This is the variant with timestamps that section 4.3 allows and Linux uses (`dq_rate_estimator` off), so that
//! the departure rate need not be estimated.
//!
//! Differences: MEAN_PKTSIZE is the largest packet of the run. Of section 5 only ECN is implemented: there is no
//! derandomization, and PIE is always on. Updates are due at multiples of the interval since the start of the run. They
//! need no events, because their inputs change only with arrivals and departures.

use super::{GAIN, MARKS, QueueForm};
use crate::schema::{Fallback, Form, Key, Kind, MAX_DURATION};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, Limit};
use std::any::Any;

/// Allowed time between updates. Below a microsecond no packet would arrive between two updates, and a run would
/// consist of updates.
const UPDATES: Kind = Kind::Time { min: Dur::from_us(1), max: MAX_DURATION };

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "pie",
    summary: "drops or marks arrivals with a probability that follows the delay and its trend",
    source: "RFC 8033",
    keys: &[
        Key::new("target", Kind::SPAN, Fallback::Value("15ms"), "target delay").from("RFC 8033"),
        Key::new("update_interval", UPDATES, Fallback::Value("15ms"), "time between updates of the probability")
            .from("RFC 8033"),
        Key::new("alpha", GAIN, Fallback::Value("0.125"), "weight of the delay's distance from the target, per second")
            .from("RFC 8033"),
        Key::new("beta", GAIN, Fallback::Value("1.25"), "weight of the delay's trend, per second").from("RFC 8033"),
        Key::new("max_burst", Kind::MOMENT, Fallback::Value("150ms"), "time for which a burst is not dropped")
            .from("RFC 8033"),
        Key::new("ecn", Kind::Flag, Fallback::Value("false"), MARKS).from("RFC 8033"),
        Key::new(
            "mark_ecn_threshold",
            Kind::Share { max: 1.0 },
            Fallback::Value("0.1"),
            "probability from which on ECN-capable packets are dropped, too",
        )
        .from("RFC 8033"),
    ],
    read: |section, _| {
        Ok(Discipline::of(PieSpec {
            target: section.need("target")?.time()?,
            update_interval: section.need("update_interval")?.time()?,
            alpha: section.need("alpha")?.positive()?,
            beta: section.need("beta")?.positive()?,
            max_burst: section.need("max_burst")?.time()?,
            ecn: section.need("ecn")?.flag()?,
            mark_ecn_threshold: section.need("mark_ecn_threshold")?.share()?,
        }))
    },
};

/// The settings of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieSpec {
    /// The target delay.
    pub target: Dur,
    /// The time between updates of the probability.
    pub update_interval: Dur,
    /// Weight of the delay's distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's trend, 1/s.
    pub beta: f64,
    /// The time for which a burst is not dropped.
    pub max_burst: Dur,
    /// True to mark ECN-capable packets instead of dropping them, while the probability is below `mark_ecn_threshold`.
    pub ecn: bool,
    /// The probability from which on ECN-capable packets are dropped, too.
    pub mark_ecn_threshold: f64,
}

impl Default for PieSpec {
    fn default() -> PieSpec {
        PieSpec {
            target: Dur::from_ms(15),
            update_interval: Dur::from_ms(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Dur::from_ms(150),
            ecn: false,
            mark_ecn_threshold: 0.1,
        }
    }
}

impl ActiveSpec for PieSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(Pie::new(*self, place.limit, place.largest_bytes, place.seed, place.link))
    }

    fn separates_classes(&self) -> bool {
        false
    }

    fn marks(&self) -> bool {
        self.ecn
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// A queue under PIE.
#[derive(Clone, Debug)]
struct Pie {
    spec: PieSpec,
    limit: Limit,
    mean_packet: u64,
    /// drop_prob_ of the RFC.
    probability: f64,
    /// current_qdelay_ of the RFC. `delay_before` is qdelay_old_.
    delay: Dur,
    delay_before: Dur,
    /// burst_allowance_ of the RFC.
    burst_allowance: Dur,
    next_update: Time,
    buffer: Buffer,
    rng: Stream,
}

/// Divisors of a step for probabilities below a bound (section 4.2, auto-tuning).
const STEPS: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];

impl Pie {
    fn new(spec: PieSpec, limit: Limit, mean_packet: u64, seed: u64, link: u64) -> Pie {
        Pie {
            spec,
            limit,
            mean_packet,
            probability: 0.0,
            delay: Dur::ZERO,
            delay_before: Dur::ZERO,
            burst_allowance: Dur::ZERO,
            next_update: Time::ZERO + spec.update_interval,
            buffer: Buffer::default(),
            rng: Stream::new(seed, Domain::ActiveQueue, link),
        }
    }

    fn enqueue(&mut self, now: Time, mut packet: Packet, fates: &mut Fates) {
        self.catch_up(now);
        // Section 4.4: a calm queue renews the burst allowance.
        let half = self.spec.target / 2;
        if self.probability == 0.0 && self.delay < half && self.delay_before < half {
            self.burst_allowance = self.spec.max_burst;
        }
        let is_chosen = self.burst_allowance.is_zero() && self.chooses();
        let may_mark = self.spec.ecn && self.probability < self.spec.mark_ecn_threshold;
        let fits = self.buffer.has_room_for(&packet, self.limit);
        if fits && (!is_chosen || (may_mark && fates.mark(&mut packet))) {
            self.buffer.push(now, packet);
        } else {
            fates.drop(packet);
        }
    }

    /// Section 4.1: returns true if the arriving packet is to be dropped or marked.
    fn chooses(&mut self) -> bool {
        let is_calm = self.delay_before < self.spec.target / 2 && self.probability < 0.2;
        if is_calm || self.buffer.bytes() <= 2 * self.mean_packet {
            return false;
        }
        self.rng.unit() < self.probability
    }

    fn dequeue(&mut self, now: Time) -> Option<Packet> {
        self.catch_up(now);
        let packet = self.buffer.pop()?;
        self.delay = if self.buffer.packets() == 0 { Dur::ZERO } else { now - packet.came_at() };
        Some(packet)
    }

    /// Applies the updates that are due by `now`.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let (probability, before) = (self.probability, self.delay_before);
            self.update();
            self.next_update += self.spec.update_interval;
            if self.probability == probability && self.delay == before && self.next_update <= now {
                // Further updates would change nothing but the burst allowance.
                let updates = (now - self.next_update).as_ps() / self.spec.update_interval.as_ps() + 1;
                let span = self.spec.update_interval * updates;
                self.burst_allowance = self.burst_allowance.saturating_sub(span);
                self.next_update += span;
            }
        }
    }

    /// Sections 4.2 and 4.4: updates the probability and the burst allowance.
    fn update(&mut self) {
        let (delay, before) = (self.delay.as_secs_f64(), self.delay_before.as_secs_f64());
        let mut step = self.spec.alpha * (delay - self.spec.target.as_secs_f64()) + self.spec.beta * (delay - before);
        let divisor = STEPS.iter().find(|(bound, _)| self.probability < *bound).map_or(1.0, |(_, divisor)| *divisor);
        step /= divisor;
        // From 10 % on a step is at most 2 %.
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        // An idle queue decays exponentially.
        if self.delay.is_zero() && self.delay_before.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay_before = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.spec.update_interval);
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

impl ActiveLaw for Pie {
    fn enqueue(&mut self, now: Time, packet: Packet, _idle_since: Option<Time>, fates: &mut Fates) {
        Pie::enqueue(self, now, packet, fates);
    }

    fn dequeue(&mut self, now: Time, _fates: &mut Fates) -> Option<Packet> {
        Pie::dequeue(self, now)
    }

    fn backlog(&self) -> (u64, u64) {
        Pie::backlog(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};

    fn pie(spec: PieSpec) -> Pie {
        Pie::new(spec, Limit::Packets(1000), 1000, 1, 0)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// From 0, a delay of 35 ms steps by (0.125 * 0.02 + 1.25 * 0.035) / 2048 = 0.04625 / 2048, then, two ranges
    /// higher, by 0.125 * 0.02 / 128.
    #[test]
    fn the_probability_follows_the_equation_in_steps_scaled_to_its_size() {
        let mut queue = Pie { delay: Dur::from_ms(35), ..pie(PieSpec::default()) };
        queue.catch_up(at(15));
        let first = 0.04625 / 2048.0;
        assert!((queue.probability - first).abs() < 1e-15, "{}", queue.probability);
        queue.catch_up(at(29));
        assert!((queue.probability - first).abs() < 1e-15, "{}", queue.probability);
        queue.catch_up(at(30));
        assert!((queue.probability - first - 0.0025 / 128.0).abs() < 1e-15, "{}", queue.probability);
        // From 10 % on a step is at most 2 %: 0.125 * 0.985 would be more.
        let mut high = Pie { probability: 0.5, delay: Dur::from_secs(1), delay_before: Dur::from_secs(1), ..queue };
        high.update();
        assert!((high.probability - 0.52).abs() < 1e-15, "{}", high.probability);
    }

    /// Without delay the probability falls by 0.125 * 0.015 and then by 2 % of the rest, down to zero.
    #[test]
    fn the_probability_of_an_idle_queue_decays() {
        let mut queue = Pie { probability: 0.5, ..pie(PieSpec::default()) };
        queue.update();
        assert!((queue.probability - (0.5 - 0.001_875) * 0.98).abs() < 1e-15, "{}", queue.probability);
        let mut once = queue.clone();
        (1..200_000).for_each(|ms| queue.catch_up(at(ms)));
        once.catch_up(at(199_999));
        assert_eq!((queue.probability, once.probability), (0.0, 0.0));
        assert_eq!(queue.next_update, once.next_update);
    }

    #[test]
    fn updates_that_change_nothing_take_no_time() {
        let mut pie = pie(PieSpec { update_interval: Dur::from_ps(1), ..PieSpec::default() });
        (pie.probability, pie.delay) = (0.5, Dur::from_ms(100));
        pie.catch_up(at(1_000_000));
        assert_eq!((pie.probability, pie.next_update), (1.0, at(1_000_000) + Dur::from_ps(1)));
    }

    #[test]
    fn the_delay_is_that_of_the_last_packet_that_left_a_backlog() {
        let (mut queue, mut fates) = (pie(PieSpec::default()), Fates::default());
        (0..2).for_each(|seq| queue.enqueue(at(0), data(0, seq, false), &mut fates));
        assert!(queue.dequeue(at(7)).is_some());
        assert_eq!(queue.delay, Dur::from_ms(7));
        assert!(queue.dequeue(at(9)).is_some());
        assert_eq!(queue.delay, Dur::ZERO);
    }

    /// The allowance of 150 ms is renewed while the queue is calm. Ten updates after the delay rose it is used up.
    #[test]
    fn a_burst_is_not_dropped() {
        let (mut queue, mut fates) = (pie(PieSpec::default()), Fates::default());
        (0..10).for_each(|seq| queue.enqueue(at(1), data(0, seq, false), &mut fates));
        assert_eq!(queue.burst_allowance, Dur::from_ms(150));
        (queue.probability, queue.delay, queue.delay_before) = (1.0, Dur::from_ms(100), Dur::from_ms(100));
        queue.enqueue(at(149), data(0, 10, false), &mut fates);
        assert!(fates.dropped().is_empty() && queue.burst_allowance == Dur::from_ms(15));
        queue.enqueue(at(150), data(0, 11, false), &mut fates);
        assert_eq!(numbers(fates.dropped()), [11]);
    }

    #[test]
    fn a_short_queue_and_a_calm_one_are_left_alone() {
        let busy = Pie { probability: 0.19, delay_before: Dur::from_ms(100), ..pie(PieSpec::default()) };
        let chosen = |queue: &Pie, packets| {
            let mut queue = queue.clone();
            (0..packets).for_each(|seq| queue.buffer.push(at(0), data(0, seq, false)));
            (0..10_000).filter(|_| queue.chooses()).count()
        };
        assert_eq!(chosen(&busy, 2), 0);
        assert!((1_750..2_050).contains(&chosen(&busy, 3)), "{}", chosen(&busy, 3));
        let calm = Pie { delay_before: Dur::from_ms(7), ..busy };
        assert_eq!(chosen(&calm, 3), 0);
        assert!(chosen(&Pie { probability: 0.2, ..calm }, 3) > 1_850);
    }

    #[test]
    fn packets_are_marked_instead_of_dropped_below_the_threshold() {
        let spec = PieSpec { ecn: true, mark_ecn_threshold: 1.0, ..PieSpec::default() };
        for (mark_ecn_threshold, dropped) in [(1.1, vec![]), (1.0, vec![9])] {
            let mut queue = Pie {
                probability: 1.0,
                delay: Dur::from_secs(1),
                delay_before: Dur::from_secs(1),
                ..pie(PieSpec { mark_ecn_threshold, ..spec })
            };
            (0..3).for_each(|seq| queue.buffer.push(at(0), data(0, seq, true)));
            let mut fates = Fates::default();
            queue.enqueue(at(0), data(0, 9, true), &mut fates);
            assert_eq!((fates.marked(), numbers(fates.dropped())), (u64::from(dropped.is_empty()), dropped));
        }
    }
}
