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
use crate::schema::{Fallback, Form, Key, Kind, MAX_DURATION, ScenarioError, Section};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, Limit};
use std::any::Any;

/// Allowed time between updates. Below a microsecond no packet would arrive between two updates, and a run would
/// consist of updates.
const UPDATES: Kind = Kind::Time { min: Dur::from_us(1), max: MAX_DURATION };

/// The keys of the law, for a single queue and for FQ-PIE.
pub(super) const PIE_KEYS: [Key; 7] = [
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
];

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "pie",
    summary: "drops or marks arrivals with a probability that follows the delay and its trend",
    source: "RFC 8033",
    keys: &PIE_KEYS,
    read: |section, _| Ok(Discipline::of(read_law(section)?)),
};

/// Reads the keys of the law.
pub(super) fn read_law(section: &Section<'_>) -> Result<PieSpec, ScenarioError> {
    Ok(PieSpec {
        target: section.need("target")?.time()?,
        update_interval: section.need("update_interval")?.time()?,
        alpha: section.need("alpha")?.positive()?,
        beta: section.need("beta")?.positive()?,
        max_burst: section.need("max_burst")?.time()?,
        ecn: section.need("ecn")?.flag()?,
        mark_ecn_threshold: section.need("mark_ecn_threshold")?.share()?,
    })
}

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
        Box::new(Pie::new(*self, place))
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

/// The state of one queue's law.
#[derive(Clone, Debug, Default)]
pub(super) struct PieLaw {
    /// drop_prob_ of the RFC.
    probability: f64,
    /// current_qdelay_ of the RFC. `delay_before` is qdelay_old_.
    delay: Dur,
    delay_before: Dur,
    /// burst_allowance_ of the RFC.
    burst_allowance: Dur,
    next_update: Time,
}

/// The settings of the law on one link, and the link's random numbers.
#[derive(Clone, Debug)]
pub(super) struct PieAt {
    spec: PieSpec,
    mean_packet: u64,
    rng: Stream,
}

impl PieAt {
    pub(super) fn new(spec: PieSpec, place: &Place) -> PieAt {
        PieAt { spec, mean_packet: place.largest_bytes, rng: Stream::new(place.seed, Domain::ActiveQueue, place.link) }
    }
}

/// Divisors of a step for probabilities below a bound (section 4.2, auto-tuning).
const STEPS: [(f64, f64); 6] =
    [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];

impl PieLaw {
    /// Returns true if an arriving packet may enter `buffer`. It may be marked. `fits` is false if there is no room.
    pub(super) fn admits(
        &mut self,
        now: Time,
        at: &mut PieAt,
        buffer: &Buffer,
        (packet, fits): (&mut Packet, bool),
        fates: &mut Fates,
    ) -> bool {
        self.catch_up(now, &at.spec);
        // Section 4.4: a calm queue renews the burst allowance.
        let half = at.spec.target / 2;
        if self.probability == 0.0 && self.delay < half && self.delay_before < half {
            self.burst_allowance = at.spec.max_burst;
        }
        let is_chosen = self.burst_allowance.is_zero() && self.chooses(at, buffer);
        let may_mark = at.spec.ecn && self.probability < at.spec.mark_ecn_threshold;
        fits && (!is_chosen || (may_mark && fates.mark(packet)))
    }

    /// Section 4.1: returns true if the arriving packet is to be dropped or marked.
    fn chooses(&self, at: &mut PieAt, buffer: &Buffer) -> bool {
        let is_calm = self.delay_before < at.spec.target / 2 && self.probability < 0.2;
        if is_calm || buffer.bytes() <= 2 * at.mean_packet {
            return false;
        }
        at.rng.unit() < self.probability
    }

    /// Returns the packet that leaves `buffer` at `now`, and notes its delay.
    pub(super) fn dequeue(&mut self, now: Time, at: &PieAt, buffer: &mut Buffer) -> Option<Packet> {
        self.catch_up(now, &at.spec);
        let packet = buffer.pop()?;
        self.delay = if buffer.packets() == 0 { Dur::ZERO } else { now - packet.came_at() };
        Some(packet)
    }

    /// Applies the updates that are due by `now`.
    fn catch_up(&mut self, now: Time, spec: &PieSpec) {
        while self.next_update <= now {
            let (probability, before) = (self.probability, self.delay_before);
            self.update(spec);
            self.next_update += spec.update_interval;
            if self.probability == probability && self.delay == before && self.next_update <= now {
                // Further updates would change nothing but the burst allowance.
                let updates = (now - self.next_update).as_ps() / spec.update_interval.as_ps() + 1;
                let span = spec.update_interval * updates;
                self.burst_allowance = self.burst_allowance.saturating_sub(span);
                self.next_update += span;
            }
        }
    }

    /// Sections 4.2 and 4.4: updates the probability and the burst allowance.
    fn update(&mut self, spec: &PieSpec) {
        let (delay, before) = (self.delay.as_secs_f64(), self.delay_before.as_secs_f64());
        let mut step = spec.alpha * (delay - spec.target.as_secs_f64()) + spec.beta * (delay - before);
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
        self.burst_allowance = self.burst_allowance.saturating_sub(spec.update_interval);
    }
}

/// A queue under PIE.
#[derive(Clone, Debug)]
struct Pie {
    law: PieLaw,
    at: PieAt,
    limit: Limit,
    buffer: Buffer,
}

impl Pie {
    fn new(spec: PieSpec, place: &Place) -> Pie {
        let at = PieAt::new(spec, place);
        Pie { law: PieLaw::default(), at, limit: place.limit, buffer: Buffer::default() }
    }

    fn enqueue(&mut self, now: Time, mut packet: Packet, fates: &mut Fates) {
        let fits = self.buffer.has_room_for(&packet, self.limit);
        if self.law.admits(now, &mut self.at, &self.buffer, (&mut packet, fits), fates) {
            self.buffer.push(now, packet);
        } else {
            fates.drop(packet);
        }
    }
}

impl ActiveLaw for Pie {
    fn enqueue(&mut self, now: Time, packet: Packet, _idle_since: Option<Time>, fates: &mut Fates) {
        Pie::enqueue(self, now, packet, fates);
    }

    fn dequeue(&mut self, now: Time, _fates: &mut Fates) -> Option<Packet> {
        self.law.dequeue(now, &self.at, &mut self.buffer)
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};
    use sparelane_core::Rate;

    fn pie(spec: PieSpec) -> Pie {
        let (limit, rate) = (Limit::Packets(1000), Rate::from_mbps(10));
        Pie::new(spec, &Place { limit, rate, largest_bytes: 1000, seed: 1, link: 0 })
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// From 0, a delay of 35 ms steps by (0.125 * 0.02 + 1.25 * 0.035) / 2048 = 0.04625 / 2048, then, two ranges
    /// higher, by 0.125 * 0.02 / 128.
    #[test]
    fn the_probability_follows_the_equation_in_steps_scaled_to_its_size() {
        let spec = PieSpec::default();
        let mut law = PieLaw::default();
        law.catch_up(at(0), &spec);
        law.delay = Dur::from_ms(35);
        law.catch_up(at(15), &spec);
        let first = 0.04625 / 2048.0;
        assert!((law.probability - first).abs() < 1e-15, "{}", law.probability);
        law.catch_up(at(29), &spec);
        assert!((law.probability - first).abs() < 1e-15, "{}", law.probability);
        law.catch_up(at(30), &spec);
        assert!((law.probability - first - 0.0025 / 128.0).abs() < 1e-15, "{}", law.probability);
        // From 10 % on a step is at most 2 %: 0.125 * 0.985 would be more.
        let mut high = PieLaw { probability: 0.5, delay: Dur::from_secs(1), delay_before: Dur::from_secs(1), ..law };
        high.update(&spec);
        assert!((high.probability - 0.52).abs() < 1e-15, "{}", high.probability);
    }

    /// Without delay the probability falls by 0.125 * 0.015 and then by 2 % of the rest, down to zero.
    #[test]
    fn the_probability_of_an_idle_queue_decays() {
        let spec = PieSpec::default();
        let mut law = PieLaw { probability: 0.5, next_update: at(15), ..PieLaw::default() };
        law.update(&spec);
        assert!((law.probability - (0.5 - 0.001_875) * 0.98).abs() < 1e-15, "{}", law.probability);
        let mut once = law.clone();
        (1..200_000).for_each(|ms| law.catch_up(at(ms), &spec));
        once.catch_up(at(199_999), &spec);
        assert_eq!((law.probability, once.probability), (0.0, 0.0));
        assert_eq!(law.next_update, once.next_update);
    }

    #[test]
    fn updates_that_change_nothing_take_no_time() {
        let spec = PieSpec { update_interval: Dur::from_ps(1), ..PieSpec::default() };
        let mut law = PieLaw { probability: 0.5, delay: Dur::from_ms(100), ..PieLaw::default() };
        law.catch_up(at(1_000_000), &spec);
        assert_eq!((law.probability, law.next_update), (1.0, at(1_000_000) + Dur::from_ps(1)));
    }

    #[test]
    fn the_delay_is_that_of_the_last_packet_that_left_a_backlog() {
        let (mut queue, mut fates) = (pie(PieSpec::default()), Fates::default());
        (0..2).for_each(|seq| queue.enqueue(at(0), data(0, seq, false), &mut fates));
        assert!(queue.dequeue(at(7), &mut fates).is_some());
        assert_eq!(queue.law.delay, Dur::from_ms(7));
        assert!(queue.dequeue(at(9), &mut fates).is_some());
        assert_eq!(queue.law.delay, Dur::ZERO);
    }

    /// The allowance of 150 ms is renewed while the queue is calm. Ten updates after the delay rose it is used up.
    #[test]
    fn a_burst_is_not_dropped() {
        let (mut queue, mut fates) = (pie(PieSpec::default()), Fates::default());
        (0..10).for_each(|seq| queue.enqueue(at(1), data(0, seq, false), &mut fates));
        assert_eq!(queue.law.burst_allowance, Dur::from_ms(150));
        (queue.law.probability, queue.law.delay, queue.law.delay_before) = (1.0, Dur::from_ms(100), Dur::from_ms(100));
        queue.enqueue(at(149), data(0, 10, false), &mut fates);
        assert!(fates.dropped().is_empty() && queue.law.burst_allowance == Dur::from_ms(15));
        queue.enqueue(at(150), data(0, 11, false), &mut fates);
        assert_eq!(numbers(fates.dropped()), [11]);
    }

    #[test]
    fn a_short_queue_and_a_calm_one_are_left_alone() {
        let busy = PieLaw { probability: 0.19, delay_before: Dur::from_ms(100), ..PieLaw::default() };
        let chosen = |law: &PieLaw, packets| {
            let Pie { mut at, mut buffer, .. } = pie(PieSpec::default());
            (0..packets).for_each(|seq| buffer.push(Time::ZERO, data(0, seq, false)));
            (0..10_000).filter(|_| law.chooses(&mut at, &buffer)).count()
        };
        assert_eq!(chosen(&busy, 2), 0);
        assert!((1_750..2_050).contains(&chosen(&busy, 3)), "{}", chosen(&busy, 3));
        let calm = PieLaw { delay_before: Dur::from_ms(7), ..busy };
        assert_eq!(chosen(&calm, 3), 0);
        assert!(chosen(&PieLaw { probability: 0.2, ..calm }, 3) > 1_850);
    }

    #[test]
    fn packets_are_marked_instead_of_dropped_below_the_threshold() {
        let spec = PieSpec { ecn: true, mark_ecn_threshold: 1.0, ..PieSpec::default() };
        for (mark_ecn_threshold, dropped) in [(1.1, vec![]), (1.0, vec![9])] {
            let mut queue = pie(PieSpec { mark_ecn_threshold, ..spec });
            let (delay, next_update) = (Dur::from_secs(1), at(15));
            queue.law = PieLaw { probability: 1.0, delay, delay_before: delay, next_update, ..PieLaw::default() };
            (0..3).for_each(|seq| queue.buffer.push(at(0), data(0, seq, true)));
            let mut fates = Fates::default();
            queue.enqueue(at(0), data(0, 9, true), &mut fates);
            assert_eq!((fates.marked(), numbers(fates.dropped())), (u64::from(dropped.is_empty()), dropped));
        }
    }
}
