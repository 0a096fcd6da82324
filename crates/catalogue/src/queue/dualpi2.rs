//! DualPI2, the Dual-Queue Coupled AQM with PI2: a queue of low latency for L4S traffic (L) and one for classic traffic
//! (C) share the link, and one controller couples their congestion signals so that flows in either get similar rates.
//!
//! Source: RFC 9332, section 2 and appendix A.1, with the handling of overload of appendix A.2; De Schepper et al.,
//! "PI2: A Linearized AQM for both Classic and Scalable TCP", CoNEXT 2016. `sch_dualpi2` of Linux 6.17 supplies what the
//! RFC leaves to the scheduler: the weight of the classic queue, and credits in bytes.
//!
//! Packets whose ECN field is ECT(1) or CE enter L, all others C. Senders with `ecn = "l4s"` send ECT(1); their
//! retransmissions, handshakes and acknowledgments are not ECN-capable and enter C. The base probability p' follows the
//! delay of the older of both heads. C drops or marks with p_C = p'^2. L marks with the larger of the coupled p_CL =
//! k p' and its own probability, which rises with the packet's delay. Once p_CL reaches 1, L drops with p_C and marks
//! the other packets; once p_C reaches its maximum, C drops ECN-capable packets, too. p_C and p_CL spare a packet if both
//! queues together, this packet included, have less than two packets of the largest size. Appendix A.1 describes this
//! part of Linux. It lets a lone packet pass whatever p' is, which falls by at most alpha times the target per update:
//! with a target of microseconds, that takes days, in which every packet would be lost.
//!
//! With `lower_bands`, packets below class 0 wait in bands of their own, one for each class, below both queues. A band is
//! served while L, C and all higher bands are empty. The bands share the limit with L and C; a packet that does not fit
//! pushes out the newest packets of the lowest class, if that class is below its own. Neither queue sees the bands: they
//! count for no delay, no probability and no credit, and the controller does not mark or drop their packets. Only the
//! packet in transmission delays L and C. This carries RC3 (NSDI 2014) over an L4S link, and is not in the RFC.
//!
//! Needs the arrival time of each packet. Updates are due at multiples of the interval since the start of the run. They
//! need no events, because the heads change only with arrivals and departures.
//!
//! Differences: packets are chosen at random, as in Linux, while the RFC's `recur` spaces them evenly. An arrival needs
//! space for itself; the RFC asks for space for a packet of the largest size. `th_len` counts the packets of L before
//! the departure. Linux compares the bytes behind a packet with two packets, without the packet itself.

use super::{GAIN, QueueForm};
use crate::schema::{Fallback, Field, Form, Key, Kind, MAX_DURATION, ScenarioError, Section};
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{CLASSES, Discipline, Limit};
use std::any::Any;

/// Allowed time between updates. Fewer than ten thousand updates per second keep idle runs short.
const UPDATES: Kind = Kind::Time { min: Dur::from_us(100), max: MAX_DURATION };

/// Allowed coupling factors.
const COUPLING: Kind = Kind::Positive { max: 1000.0 };

/// The words for the schedulers.
const WRR: &str = "wrr";
const TS_FIFO: &str = "ts-fifo";

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "dualpi2",
    summary: "two coupled queues: low latency for packets with ECT(1), and PI2 for all others",
    source: "RFC 9332",
    keys: &[
        Key::new("target", Kind::SPAN, Fallback::Value("15ms"), "target delay of the classic queue").from("RFC 9332"),
        Key::new("t_update", UPDATES, Fallback::Value("16ms"), "time between updates of the probability")
            .from("sch_dualpi2 of Linux; RFC 9332 has the smaller of target and a third of rtt_max"),
        Key::new("rtt_max", Kind::SPAN, Fallback::Value("100ms"), "longest round-trip time, which sets alpha and beta")
            .from("RFC 9332"),
        Key::new(
            "alpha",
            GAIN,
            Fallback::Nothing("0.1 t_update / rtt_max^2"),
            "weight of the delay's distance from the target, per second",
        )
        .from("RFC 9332"),
        Key::new("beta", GAIN, Fallback::Nothing("0.3 / rtt_max"), "weight of the delay's trend, per second")
            .from("RFC 9332"),
        Key::new(
            "coupling_factor",
            COUPLING,
            Fallback::Value("2"),
            "k of the RFC: L marks with k times the base probability",
        )
        .from("RFC 9332"),
        Key::new(
            "p_c_max",
            Kind::Share { max: 1.0 },
            Fallback::Nothing("1 / k^2, at most 1"),
            "classic probability from which on ECN-capable packets of C are dropped, too",
        )
        .from("RFC 9332"),
        Key::new("min_th", Kind::SPAN, Fallback::Value("800us"), "delay in L from which on its own marks begin")
            .from("RFC 9332"),
        Key::new("range", Kind::MOMENT, Fallback::Value("400us"), "rise of the delay over which L marks from 0 to 1")
            .from("RFC 9332"),
        Key::new(
            "step_threshold",
            Kind::SPAN,
            Fallback::Nothing("a ramp from min_th over range"),
            "delay in L from which on every packet is marked, instead of a ramp",
        )
        .from("sch_dualpi2 of Linux, where it is 1ms"),
        Key::new(
            "th_len",
            Kind::Whole { min: 0, max: 1_000_000 },
            Fallback::Value("1"),
            "packets of L, including the departing one, up to which L does not mark on its own",
        )
        .from("RFC 9332"),
        Key::new(
            "scheduler",
            Kind::Choice(&[WRR, TS_FIFO]),
            Fallback::Value(WRR),
            "the order of the queues: weighted round robin, or the older head after a bonus of t_shift for L",
        )
        .from("RFC 9332 allows both"),
        Key::new(
            "classic_weight",
            Kind::Share { max: 1.0 },
            Fallback::Value("0.1"),
            "share of the link's bytes for C under wrr while both queues wait",
        )
        .from("sch_dualpi2 of Linux"),
        Key::new("t_shift", Kind::MOMENT, Fallback::Value("50ms"), "bonus in delay for L under ts-fifo")
            .from("RFC 9332"),
        Key::new(
            "lower_bands",
            Kind::Flag,
            Fallback::Value("false"),
            "packets below class 0 wait in strict-priority bands below both queues, without marks",
        )
        .from("sparelane, for RC3 (NSDI 2014)"),
    ],
    read,
};

fn read(section: &Section<'_>, _bdp_bytes: u64) -> Result<Discipline, ScenarioError> {
    let (t_update, rtt_max) = (section.need("t_update")?.time()?, section.need("rtt_max")?.time()?);
    let k = section.need("coupling_factor")?.positive()?;
    let mut ramp = Ramp { min_th: section.need("min_th")?.time()?, range: section.need("range")?.time()? };
    if let Some(min_th) = section.maybe("step_threshold", Field::time)? {
        if let Some(field) = ["min_th", "range"].iter().find_map(|name| section.own(name)) {
            return Err(field.error("step_threshold replaces the ramp; allowed: without step_threshold"));
        }
        ramp = Ramp { min_th, range: Dur::ZERO };
    }
    let scheduler = match section.need("scheduler")?.choice()? {
        TS_FIFO => Scheduler::TimeShifted { t_shift: section.need("t_shift")?.time()? },
        _ => Scheduler::Weighted { classic_weight: section.need("classic_weight")?.share()? },
    };
    Ok(Discipline::of(DualPi2Spec {
        target: section.need("target")?.time()?,
        t_update,
        alpha: section.maybe("alpha", Field::positive)?.unwrap_or_else(|| alpha(t_update, rtt_max)),
        beta: section.maybe("beta", Field::positive)?.unwrap_or_else(|| beta(rtt_max)),
        k,
        p_c_max: section.maybe("p_c_max", Field::share)?.unwrap_or_else(|| p_c_max(k)),
        ramp,
        th_len: section.need("th_len")?.whole()?,
        scheduler,
        lower_bands: section.need("lower_bands")?.flag()?,
    }))
}

/// Returns the integral gain for this update interval and longest round-trip time, per second (appendix A.1).
fn alpha(t_update: Dur, rtt_max: Dur) -> f64 {
    0.1 * t_update.as_secs_f64() / (rtt_max.as_secs_f64() * rtt_max.as_secs_f64())
}

/// Returns the proportional gain for this longest round-trip time, per second (appendix A.1).
fn beta(rtt_max: Dur) -> f64 {
    0.3 / rtt_max.as_secs_f64()
}

/// Returns the classic probability at which p_CL = k p' reaches 1 (appendix A.1).
fn p_c_max(k: f64) -> f64 {
    (1.0 / (k * k)).min(1.0)
}

/// The L queue's own marking: the probability rises from 0 at a delay of `min_th` to 1 at `min_th` + `range`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// The delay at which the ramp begins.
    pub min_th: Dur,
    /// The length of the ramp; zero for a step.
    pub range: Dur,
}

/// The order in which L and C are served while both wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scheduler {
    /// Weighted round robin by bytes. L goes first.
    Weighted {
        /// The share of C.
        classic_weight: f64,
    },
    /// The time-shifted FIFO: the queue whose head is older, where the head of L counts as older by `t_shift`.
    TimeShifted {
        /// The bonus.
        t_shift: Dur,
    },
}

/// The settings of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Spec {
    /// The target delay of C.
    pub target: Dur,
    /// The time between updates of the base probability.
    pub t_update: Dur,
    /// Weight of the delay's distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's trend, 1/s.
    pub beta: f64,
    /// The coupling factor.
    pub k: f64,
    /// The probability of C from which on its ECN-capable packets are dropped.
    pub p_c_max: f64,
    /// The marking of L by its own delay.
    pub ramp: Ramp,
    /// The number of packets up to which L does not mark by its own delay.
    pub th_len: u64,
    /// The order of the queues.
    pub scheduler: Scheduler,
    /// True if packets below class 0 wait in bands below both queues.
    pub lower_bands: bool,
}

impl Default for DualPi2Spec {
    fn default() -> DualPi2Spec {
        let (t_update, rtt_max, k) = (Dur::from_ms(16), Dur::from_ms(100), 2.0);
        DualPi2Spec {
            target: Dur::from_ms(15),
            t_update,
            alpha: alpha(t_update, rtt_max),
            beta: beta(rtt_max),
            k,
            p_c_max: p_c_max(k),
            ramp: Ramp { min_th: Dur::from_us(800), range: Dur::from_us(400) },
            th_len: 1,
            scheduler: Scheduler::Weighted { classic_weight: 0.1 },
            lower_bands: false,
        }
    }
}

impl ActiveSpec for DualPi2Spec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(DualPi2::new(*self, place.limit, place.largest_bytes, place.seed, place.link))
    }

    fn separates_classes(&self) -> bool {
        self.lower_bands
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// The maximum of the probability with which L marks, p_Lmax of the RFC.
const P_L_MAX: f64 = 1.0;

/// A coupled pair of queues.
#[derive(Clone, Debug)]
struct DualPi2 {
    spec: DualPi2Spec,
    limit: Limit,
    /// The bytes of the largest packet of the run, MTU of the RFC.
    largest_bytes: u64,
    low_latency: Buffer,
    classic: Buffer,
    /// The packets of class 1 and below, a band for each class. Empty without `lower_bands`.
    bands: [Buffer; CLASSES - 1],
    /// The base probability, p' of the RFC.
    base: f64,
    /// The delay at the last update, prevq of the RFC.
    delay_before: Dur,
    next_update: Time,
    /// Weighted bytes that L was served beyond its share. C is served while it is above zero.
    credit: f64,
    /// The credit when the link becomes busy (appendix A.1): L then has the advantage of one packet of the largest size.
    first_credit: f64,
    rng: Stream,
}

impl DualPi2 {
    fn new(spec: DualPi2Spec, limit: Limit, largest_bytes: u64, seed: u64, link: u64) -> DualPi2 {
        let first_credit = match spec.scheduler {
            Scheduler::Weighted { classic_weight } => (2.0 * classic_weight - 1.0) * largest_bytes as f64,
            Scheduler::TimeShifted { .. } => 0.0,
        };
        DualPi2 {
            spec,
            limit,
            largest_bytes,
            low_latency: Buffer::default(),
            classic: Buffer::default(),
            bands: Default::default(),
            base: 0.0,
            delay_before: Dur::ZERO,
            next_update: Time::ZERO + spec.t_update,
            credit: first_credit,
            first_credit,
            rng: Stream::new(seed, Domain::ActiveQueue, link),
        }
    }

    /// p_C of the RFC.
    fn p_c(&self) -> f64 {
        self.base * self.base
    }

    /// p_CL of the RFC. It may exceed 1.
    fn p_cl(&self) -> f64 {
        self.spec.k * self.base
    }

    /// Draws an event of this probability.
    fn draws(&mut self, probability: f64) -> bool {
        self.rng.unit() < probability
    }

    fn enqueue(&mut self, now: Time, packet: Packet, fates: &mut Fates) {
        self.catch_up(now);
        if !self.has_room(&packet, fates) {
            fates.drop(packet);
        } else if let Some(band) = self.band_of(&packet) {
            self.bands[band].push(now, packet);
        } else if packet.is_l4s() {
            self.low_latency.push(now, packet);
        } else {
            self.classic.push(now, packet);
        }
    }

    /// Returns the band in which a packet waits; `None` for L and C.
    fn band_of(&self, packet: &Packet) -> Option<usize> {
        if !self.spec.lower_bands {
            return None;
        }
        usize::from(packet.class()).checked_sub(1).map(|band| band.min(CLASSES - 2))
    }

    /// Pushes out packets of lower bands until `packet` fits. Returns false if it cannot.
    fn has_room(&mut self, packet: &Packet, fates: &mut Fates) -> bool {
        loop {
            let (bytes, packets) = self.backlog();
            if self.limit.has_room(bytes, packets, packet.wire_bytes()) {
                return true;
            }
            match self.push_out(packet.class()) {
                Some(victim) => fates.drop(victim),
                None => return false,
            }
        }
    }

    /// Removes the newest packet of the lowest band that waits, if its class is below `class`.
    fn push_out(&mut self, class: u8) -> Option<Packet> {
        let lower = &mut self.bands[usize::from(class).min(CLASSES - 1)..];
        lower.iter_mut().rev().find_map(Buffer::pop_newest)
    }

    /// Takes the packet that leaves next: of L and C, and of the bands while both are empty.
    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        self.catch_up(now);
        self.take_coupled(now, fates).or_else(|| {
            let packet = self.bands.iter_mut().find_map(Buffer::pop)?;
            // For L and C, the link is idle meanwhile.
            self.credit = self.first_credit;
            Some(packet)
        })
    }

    fn take_coupled(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        loop {
            let both_wait = self.low_latency.packets() > 0 && self.classic.packets() > 0;
            let serves_l = self.serves_l(now);
            let is_spared = self.coupled_backlog().0 < 2 * self.largest_bytes;
            let (packet, weight) = if serves_l {
                (self.take_low_latency(now, is_spared, fates)?, 1.0)
            } else {
                (self.take_classic(is_spared, fates)?, -1.0)
            };
            // A dropped packet used nothing of the link.
            let Some(packet) = packet else { continue };
            if let (Scheduler::Weighted { classic_weight }, true) = (self.spec.scheduler, both_wait) {
                let share = if serves_l { classic_weight } else { 1.0 - classic_weight };
                self.credit += weight * share * packet.wire_bytes() as f64;
            }
            return Some(packet);
        }
    }

    /// Returns true if L is served next.
    fn serves_l(&self, now: Time) -> bool {
        let (Some(l), Some(c)) = (self.low_latency.oldest(), self.classic.oldest()) else {
            return self.classic.packets() == 0;
        };
        match self.spec.scheduler {
            Scheduler::Weighted { .. } => self.credit <= 0.0,
            Scheduler::TimeShifted { t_shift } => (now - l.came_at()) + t_shift >= now - c.came_at(),
        }
    }

    /// Takes the head of L: `None` if L is empty, and `Some(None)` if the head was dropped. Only the delay in L marks a
    /// packet that is spared.
    fn take_low_latency(&mut self, now: Time, is_spared: bool, fates: &mut Fates) -> Option<Option<Packet>> {
        let is_long = self.low_latency.packets() > self.spec.th_len;
        let mut packet = self.low_latency.pop()?;
        let p_cl = if is_spared { 0.0 } else { self.p_cl() };
        let marks = if p_cl < P_L_MAX {
            let own = if is_long { self.spec.ramp.probability(now - packet.came_at()) } else { 0.0 };
            self.draws(own.max(p_cl))
        } else {
            // Appendix A.2: marks can rise no further, so L gets the drops of C.
            let p_c = self.p_c();
            if self.draws(p_c) {
                fates.drop(packet);
                return Some(None);
            }
            true
        };
        if marks {
            fates.mark(&mut packet);
        }
        Some(Some(packet))
    }

    /// Takes the head of C: `None` if C is empty, and `Some(None)` if the head was dropped.
    fn take_classic(&mut self, is_spared: bool, fates: &mut Fates) -> Option<Option<Packet>> {
        let mut packet = self.classic.pop()?;
        let p_c = if is_spared { 0.0 } else { self.p_c() };
        // Appendix A.2: overload disables ECN.
        if self.draws(p_c) && (p_c >= self.spec.p_c_max || !fates.mark(&mut packet)) {
            fates.drop(packet);
            return Some(None);
        }
        Some(Some(packet))
    }

    /// Applies the updates that are due by `now`.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = (self.base, self.delay_before);
            self.update(self.next_update);
            self.next_update += self.spec.t_update;
            if self.coupled_backlog().1 == 0 && before == (self.base, self.delay_before) && self.next_update <= now {
                // Further updates of empty queues would change nothing.
                let updates = (now - self.next_update).as_ps() / self.spec.t_update.as_ps() + 1;
                self.next_update += self.spec.t_update * updates;
            }
        }
    }

    /// Updates the base probability, as of `at`. The heads were the same then as they are now.
    fn update(&mut self, at: Time) {
        let oldest = [self.low_latency.oldest(), self.classic.oldest()];
        let delays = oldest.into_iter().flatten().map(|packet| at.saturating_since(packet.came_at()));
        let delay = delays.max().unwrap_or(Dur::ZERO);
        let (current, before) = (delay.as_secs_f64(), self.delay_before.as_secs_f64());
        let step = self.spec.alpha * (current - self.spec.target.as_secs_f64()) + self.spec.beta * (current - before);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.delay_before = delay;
    }

    /// Waiting bytes and packets of L and C.
    fn coupled_backlog(&self) -> (u64, u64) {
        (self.low_latency.bytes() + self.classic.bytes(), self.low_latency.packets() + self.classic.packets())
    }

    /// Waiting bytes and packets, with those of the bands.
    fn backlog(&self) -> (u64, u64) {
        let coupled = self.coupled_backlog();
        if !self.spec.lower_bands {
            return coupled;
        }
        self.bands.iter().fold(coupled, |(bytes, packets), band| (bytes + band.bytes(), packets + band.packets()))
    }
}

impl Ramp {
    /// The RFC's laqm: the probability at this delay.
    fn probability(&self, delay: Dur) -> f64 {
        if delay >= self.min_th + self.range {
            1.0
        } else if delay > self.min_th {
            delay.saturating_sub(self.min_th).as_secs_f64() / self.range.as_secs_f64()
        } else {
            0.0
        }
    }
}

impl ActiveLaw for DualPi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates) {
        if idle_since.is_some() {
            self.credit = self.first_credit;
        }
        DualPi2::enqueue(self, now, packet, fates);
    }

    fn dequeue(&mut self, now: Time, fates: &mut Fates) -> Option<Packet> {
        DualPi2::dequeue(self, now, fates)
    }

    fn backlog(&self) -> (u64, u64) {
        DualPi2::backlog(self)
    }

    fn push_out(&mut self, class: u8) -> Option<Packet> {
        DualPi2::push_out(self, class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};

    fn queue(spec: DualPi2Spec) -> DualPi2 {
        DualPi2::new(spec, Limit::Packets(100_000), 1000, 1, 0)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// A packet of flow 1 that enters L.
    fn l4s(seq: u32) -> Packet {
        data(1, seq, true).as_l4s()
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-12, "{value} instead of {expected}");
    }

    /// Takes 20,000 packets that waited `waited_us` from a queue with this base probability. Each is of flow 1 and has
    /// others behind it. Returns the shares that were dropped and, of the others, marked.
    fn shares(base: f64, waited_us: u64, packet: impl Fn(u32) -> Packet) -> (f64, f64) {
        let (packets, behind) = (20_000, 100);
        let mut queue = DualPi2 { base, next_update: Time::NEVER, ..queue(DualPi2Spec::default()) };
        let mut fates = Fates::default();
        (0..packets + behind).for_each(|seq| queue.enqueue(at(0), packet(seq), &mut fates));
        let mut sent = 0.0;
        while queue.backlog().1 > u64::from(behind) {
            sent += if queue.dequeue(at(waited_us), &mut fates).is_some() { 1.0 } else { 0.0 };
        }
        let dropped = fates.dropped().len() as f64;
        (dropped / (dropped + sent), fates.marked() as f64 / sent)
    }

    /// Asserts that a share of 20,000 draws is within five standard deviations of its probability.
    fn close(share: f64, probability: f64) {
        let deviation = (probability * (1.0 - probability) / 20_000.0).sqrt();
        assert!((share - probability).abs() <= 5.0 * deviation + 1e-4, "{share} instead of {probability}");
    }

    /// Appendix A.1 for 16 ms and 100 ms: alpha = 0.1 * 0.016 / 0.01 = 0.16 per second, beta = 3 per second, and p_Cmax
    /// = 1/4.
    #[test]
    fn the_default_gains_are_those_of_the_longest_round_trip_time() {
        let spec = DualPi2Spec::default();
        near(spec.alpha, 0.16);
        near(spec.beta, 3.0);
        near(spec.p_c_max, 0.25);
        near(p_c_max(0.5), 1.0);
    }

    /// A head that arrived at 0 has waited 16 ms at the first update: p' = 0.16 * 0.001 + 3 * 0.016. At the second it
    /// has waited 32 ms, and p' rises by 0.16 * 0.017 + 3 * 0.016.
    #[test]
    fn the_base_probability_follows_the_delay_and_its_trend() {
        for packet in [data(1, 0, false), l4s(0)] {
            let (mut queue, mut fates) = (queue(DualPi2Spec::default()), Fates::default());
            queue.enqueue(at(0), packet, &mut fates);
            queue.catch_up(at(15_999));
            near(queue.base, 0.0);
            queue.catch_up(at(16_000));
            near(queue.base, 0.048_16);
            queue.catch_up(at(32_000));
            near(queue.base, 0.048_16 + 0.050_72);
            near(queue.p_c(), 0.098_88 * 0.098_88);
            near(queue.p_cl(), 0.197_76);
        }
    }

    /// The older head counts. Of two updates at once each sees the delay of its own time.
    #[test]
    fn the_delay_is_that_of_the_older_head() {
        for packets in [[data(1, 0, false), l4s(1)], [l4s(1), data(1, 0, false)]] {
            let (mut queue, mut fates) = (queue(DualPi2Spec::default()), Fates::default());
            queue.enqueue(at(6_000), packets[0], &mut fates);
            queue.enqueue(at(15_000), packets[1], &mut fates);
            queue.catch_up(at(33_000));
            // 10 ms, of which the distance term is negative, then 26 ms.
            near(queue.base, -0.16 * 0.005 + 3.0 * 0.010 + 0.16 * 0.011 + 3.0 * 0.016);
            assert_eq!(queue.delay_before, Dur::from_ms(26));
        }
    }

    /// Empty queues lose 0.16 * 0.015 = 0.0024 per update, and a queue that is idle for long takes no time.
    #[test]
    fn the_base_probability_of_empty_queues_falls_to_zero() {
        let mut queue = DualPi2 { base: 0.5, ..queue(DualPi2Spec::default()) };
        queue.catch_up(at(160_000));
        near(queue.base, 0.476);
        queue.catch_up(Time::ZERO + Dur::from_secs(1_000_000));
        assert_eq!(queue.base, 0.0);
        assert_eq!(queue.next_update, Time::ZERO + Dur::from_ms(16) * 62_500_001);
    }

    /// p' = 0.3: C drops 0.09 of the packets that are not ECN-capable, and marks 0.09 of the others. L marks 0.6.
    #[test]
    fn classic_signals_are_the_square_of_the_base_and_low_latency_marks_are_k_times_the_base() {
        let (dropped, marked) = shares(0.3, 0, |seq| data(1, seq, false));
        close(dropped, 0.09);
        assert_eq!(marked, 0.0);
        let (dropped, marked) = shares(0.3, 0, |seq| data(1, seq, true));
        assert_eq!(dropped, 0.0);
        close(marked, 0.09);
        let (dropped, marked) = shares(0.3, 0, l4s);
        assert_eq!(dropped, 0.0);
        close(marked, 0.6);
    }

    /// At 900 us the ramp is at 1/4, above a coupled probability of 0.2 and below one of 0.6. From 1.2 ms on every
    /// packet is marked.
    #[test]
    fn low_latency_marks_with_the_larger_of_the_coupled_probability_and_its_own() {
        close(shares(0.1, 900, l4s).1, 0.25);
        close(shares(0.3, 900, l4s).1, 0.6);
        assert_eq!(shares(0.0, 800, l4s).1, 0.0);
        assert_eq!(shares(0.0, 1_200, l4s).1, 1.0);
        // The classic queue has no such threshold.
        assert_eq!(shares(0.0, 1_200, |seq| data(1, seq, true)).1, 0.0);
    }

    #[test]
    fn a_step_marks_every_packet_from_its_threshold_on() {
        let step = Ramp { min_th: Dur::from_ms(1), range: Dur::ZERO };
        assert_eq!([999, 1_000, 1_001].map(|us| step.probability(Dur::from_us(us))), [0.0, 1.0, 1.0]);
    }

    /// On a slow link the transmission of one packet takes longer than the thresholds. A single packet is not marked.
    #[test]
    fn a_short_queue_of_low_latency_is_marked_by_the_coupling_alone() {
        for (th_len, marks) in [(0, [true, true, true]), (1, [true, true, false]), (2, [true, false, false])] {
            let (mut queue, mut fates) = (queue(DualPi2Spec { th_len, ..DualPi2Spec::default() }), Fates::default());
            (0..3).for_each(|seq| queue.enqueue(at(0), l4s(seq), &mut fates));
            let marked = marks.map(|_| queue.dequeue(at(3_000), &mut fates).is_some_and(|packet| packet.is_marked()));
            assert_eq!(marked, marks, "{th_len}");
        }
    }

    /// With k = 2, p' = 0.49 gives p_CL = 0.98 and p_C = 0.2401, below both maxima. p' = 0.5 is the maximum of both.
    #[test]
    fn overload_drops_in_both_queues_with_the_classic_probability() {
        close(shares(0.49, 0, l4s).1, 0.98);
        assert_eq!(shares(0.49, 0, |seq| data(1, seq, true)).0, 0.0);
        for (base, p_c) in [(0.5, 0.25), (0.8, 0.64)] {
            let (dropped, marked) = shares(base, 0, l4s);
            close(dropped, p_c);
            assert_eq!(marked, 1.0);
            let (dropped, marked) = shares(base, 0, |seq| data(1, seq, true));
            close(dropped, p_c);
            assert_eq!(marked, 0.0);
        }
    }

    /// With p' = 1, the controller drops every packet, except while less than two packets of the largest size wait. Even
    /// then, the delay in L marks.
    #[test]
    fn the_controller_spares_less_than_two_large_packets() {
        let leaves = |packets: &[Packet], th_len| {
            let spec = DualPi2Spec { th_len, ..DualPi2Spec::default() };
            let mut queue = DualPi2 { base: 1.0, next_update: Time::NEVER, ..queue(spec) };
            let mut fates = Fates::default();
            packets.iter().for_each(|packet| queue.enqueue(at(0), *packet, &mut fates));
            let left: Vec<_> = std::iter::from_fn(|| queue.dequeue(at(3_000), &mut fates)).collect();
            (numbers(&left), numbers(fates.dropped()), fates.marked())
        };
        for packet in [data(1, 0, false), data(1, 0, true), l4s(0)] {
            assert_eq!(leaves(&[packet], 1), (vec![0], vec![], 0));
        }
        assert_eq!(leaves(&[l4s(0)], 0), (vec![0], vec![], 1));
        assert_eq!(leaves(&[data(1, 0, false), data(1, 1, true), data(1, 2, false)], 1), (vec![2], vec![0, 1], 0));
        // Both queues count, and L goes first.
        assert_eq!(leaves(&[l4s(0), data(1, 1, false)], 1), (vec![1], vec![0], 0));
        let small = Packet::example(1, 0, 999, false);
        assert_eq!(leaves(&[small, data(1, 1, false)], 1), (vec![0, 1], vec![], 0));
    }

    /// ECT(0) and packets without ECN enter C. A mark moves a packet to L, whichever queue set it.
    #[test]
    fn the_ecn_field_selects_the_queue() {
        let (mut queue, mut fates) = (queue(DualPi2Spec::default()), Fates::default());
        let mut marked = data(1, 3, true);
        assert!(fates.mark(&mut marked));
        for packet in [data(1, 0, false), data(1, 1, true), l4s(2), marked] {
            queue.enqueue(at(0), packet, &mut fates);
        }
        assert_eq!((queue.classic.packets(), queue.low_latency.packets()), (2, 2));
        let order: Vec<_> = std::iter::from_fn(|| queue.dequeue(at(0), &mut fates)).collect();
        assert_eq!(numbers(&order), [2, 3, 0, 1]);
    }

    /// Weights of 0.1 and 0.9 with equal packets: after nine packets of L one of C is due, and so on. This bounds the
    /// starvation of C.
    #[test]
    fn the_classic_queue_gets_its_share_under_a_full_queue_of_low_latency() {
        let (mut queue, mut fates) = (queue(DualPi2Spec::default()), Fates::default());
        for seq in 0..100 {
            queue.enqueue(at(0), l4s(seq), &mut fates);
            queue.enqueue(at(0), data(2, seq, false), &mut fates);
        }
        let flows: Vec<_> = (0..60).filter_map(|_| queue.dequeue(at(0), &mut fates)).map(|p| p.flow()).collect();
        let expected: Vec<_> = (1..=60).map(|place| if place % 10 == 0 { 2 } else { 1 }).collect();
        assert_eq!(flows, expected);
    }

    /// Nine packets of L beside two of C use up the share of L, and C is due. This holds while L is empty, but not after
    /// the link was idle.
    #[test]
    fn the_credit_stays_while_a_queue_is_empty_and_starts_anew_after_an_idle_time() {
        for (idle_since, first) in [(None, 2), (Some(at(0)), 1)] {
            let (mut queue, mut fates) = (queue(DualPi2Spec::default()), Fates::default());
            (0..9).for_each(|seq| queue.enqueue(at(0), l4s(seq), &mut fates));
            (0..2).for_each(|seq| queue.enqueue(at(0), data(2, seq, false), &mut fates));
            (0..9).for_each(|_| assert_eq!(queue.dequeue(at(0), &mut fates).map(|packet| packet.flow()), Some(1)));
            ActiveLaw::enqueue(&mut queue, at(0), l4s(9), idle_since, &mut fates);
            assert_eq!(queue.dequeue(at(0), &mut fates).map(|packet| packet.flow()), Some(first));
        }
    }

    /// A head of C that is older by more than 50 ms goes first.
    #[test]
    fn a_time_shifted_fifo_serves_the_older_head_after_the_bonus() {
        let scheduler = Scheduler::TimeShifted { t_shift: Dur::from_ms(50) };
        for (l_at, first) in [(49_999, 1), (50_000, 1), (50_001, 2)] {
            let (mut queue, mut fates) = (queue(DualPi2Spec { scheduler, ..DualPi2Spec::default() }), Fates::default());
            queue.next_update = Time::NEVER;
            queue.enqueue(at(0), data(2, 0, false), &mut fates);
            queue.enqueue(at(l_at), l4s(0), &mut fates);
            assert_eq!(queue.dequeue(at(60_000), &mut fates).map(|packet| packet.flow()), Some(first), "{l_at}");
        }
    }

    #[test]
    fn both_queues_share_one_limit() {
        let (mut queue, mut fates) =
            (DualPi2 { limit: Limit::Bytes(2_500), ..queue(DualPi2Spec::default()) }, Fates::default());
        queue.enqueue(at(0), l4s(0), &mut fates);
        queue.enqueue(at(0), data(2, 1, true), &mut fates);
        queue.enqueue(at(0), l4s(2), &mut fates);
        queue.enqueue(at(0), data(2, 3, true), &mut fates);
        assert_eq!((numbers(fates.dropped()), queue.backlog()), (vec![2, 3], (2_000, 2)));
    }

    fn banded(limit: Limit) -> DualPi2 {
        DualPi2::new(DualPi2Spec { lower_bands: true, ..DualPi2Spec::default() }, limit, 1000, 1, 0)
    }

    #[test]
    fn lower_bands_leave_by_class_once_both_queues_are_empty() {
        let (mut queue, mut fates) = (banded(Limit::Packets(100)), Fates::default());
        let packets = [l4s(0).lowered(2), data(3, 1, false).lowered(1), l4s(2).lowered(1), data(2, 3, false), l4s(4)];
        packets.iter().for_each(|packet| queue.enqueue(at(0), *packet, &mut fates));
        let order: Vec<_> = std::iter::from_fn(|| queue.dequeue(at(0), &mut fates)).collect();
        assert_eq!((numbers(&order), queue.backlog()), (vec![4, 3, 1, 2, 0], (0, 0)));
    }

    /// Packets of a low class wait in L and C like all others if there are no bands.
    #[test]
    fn without_lower_bands_classes_make_no_difference() {
        let (mut queue, mut fates) = (queue(DualPi2Spec::default()), Fates::default());
        for packet in [l4s(0).lowered(2), l4s(1), data(2, 2, false).lowered(1), data(2, 3, false)] {
            queue.enqueue(at(0), packet, &mut fates);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.dequeue(at(0), &mut fates)).collect();
        assert_eq!(numbers(&order), [0, 1, 2, 3]);
    }

    #[test]
    fn the_newest_of_the_lowest_band_makes_room_for_higher_classes() {
        let (mut queue, mut fates) = (banded(Limit::Packets(3)), Fates::default());
        for packet in [l4s(0).lowered(1), l4s(1).lowered(3), l4s(2).lowered(3)] {
            queue.enqueue(at(0), packet, &mut fates);
        }
        queue.enqueue(at(0), data(2, 3, false), &mut fates);
        queue.enqueue(at(0), l4s(4).lowered(3), &mut fates);
        queue.enqueue(at(0), l4s(5).lowered(2), &mut fates);
        queue.enqueue(at(0), l4s(6), &mut fates);
        queue.enqueue(at(0), l4s(7), &mut fates);
        assert_eq!(numbers(fates.dropped()), [2, 4, 1, 5, 0]);
        let order: Vec<_> = std::iter::from_fn(|| queue.dequeue(at(0), &mut fates)).collect();
        assert_eq!(numbers(&order), [6, 7, 3]);
    }

    /// The controller neither sees the packets of bands nor signals to them, whatever their delay and p' are.
    #[test]
    fn bands_change_no_probability_and_get_no_signals() {
        let (mut queue, mut fates) = (banded(Limit::Packets(100)), Fates::default());
        (0..50).for_each(|seq| queue.enqueue(at(0), l4s(seq).lowered(1), &mut fates));
        queue.catch_up(at(100_000));
        assert_eq!((queue.base, queue.delay_before), (0.0, Dur::ZERO));
        (queue.base, queue.next_update) = (1.0, Time::NEVER);
        // A lone packet of L is spared, although many others wait in the band.
        queue.enqueue(at(100_000), l4s(50), &mut fates);
        let left: Vec<_> = std::iter::from_fn(|| queue.dequeue(at(100_000), &mut fates)).collect();
        assert_eq!((left.len(), left[0].seq(), fates.marked(), fates.dropped().len()), (51, 50, 0, 0));
    }

    /// A packet of a band is a break for L and C, as an idle time of the link is.
    #[test]
    fn a_packet_of_a_band_starts_the_credit_anew() {
        for (lower_bands, first) in [(false, 2), (true, 1)] {
            let (mut queue, mut fates) = (banded(Limit::Packets(100)), Fates::default());
            (0..9).for_each(|seq| queue.enqueue(at(0), l4s(seq), &mut fates));
            (0..9).for_each(|seq| queue.enqueue(at(0), data(2, seq, false), &mut fates));
            (0..9).for_each(|_| assert_eq!(queue.dequeue(at(0), &mut fates).map(|packet| packet.flow()), Some(1)));
            if lower_bands {
                while queue.classic.pop().is_some() {}
                queue.enqueue(at(0), data(3, 0, false).lowered(1), &mut fates);
                assert_eq!(queue.dequeue(at(0), &mut fates).map(|packet| packet.flow()), Some(3));
            }
            queue.enqueue(at(0), l4s(9), &mut fates);
            queue.enqueue(at(0), data(2, 9, false), &mut fates);
            assert_eq!(queue.dequeue(at(0), &mut fates).map(|packet| packet.flow()), Some(first));
        }
    }
}
