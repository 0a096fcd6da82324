//! RED, Random Early Detection: the longer the average queue, the more arrivals are dropped or marked.
//!
//! Source: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993,
//! Fig. 2 with the estimator of section 4 and the evenly spaced marks of section 7 (method 2). "Gentle" is as in
//! Floyd's note of 2000: between the maximum and twice the maximum the probability rises from max_p to 1.
//!
//! Needs the time since which the link has been idle. Idle time counts as arrivals at an empty queue, one per
//! transmission time of a small packet. The paper leaves their size open; here it is 500 bytes, as in ns-2.
//!
//! Differences: the average covers waiting packets, without the one in transmission. It is in bytes if the thresholds
//! are; the probability does not depend on the packet's size. With `ecn`, ECN-capable packets are marked whenever RED
//! would drop them, also above the maximum, as in the paper and in Linux.

use super::{MARKS, PROBABILITY, QueueForm};
use crate::schema::{Fallback, Form, Key, Kind, ScenarioError, Section};
use sparelane_core::{Domain, Rate, Stream, Time};
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, Limit};
use std::any::Any;

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "red",
    summary: "random early detection: the longer the average queue, the more packets are dropped or marked",
    source: "ToN 1(4), 1993",
    keys: &[
        Key::new("min", Kind::Limit, Fallback::Required, "average queue from which on packets are dropped early"),
        Key::new("max", Kind::Limit, Fallback::Required, "average queue at which max_probability is reached"),
        Key::new(
            "max_probability",
            PROBABILITY,
            Fallback::Value("0.1"),
            "share of packets dropped early just below max",
        )
        .from("Floyd, \"RED: Discussions of Setting Parameters\", 1997"),
        Key::new("weight", PROBABILITY, Fallback::Value("0.002"), "weight of each arrival in the average")
            .from("ToN 1(4), 1993"),
        Key::new(
            "gentle",
            Kind::Flag,
            Fallback::Value("true"),
            "whether the probability rises to 1 between max and twice max, or jumps to 1 at max",
        )
        .from("Floyd, \"Recommendation on using the gentle variant of RED\", 2000"),
        Key::new("ecn", Kind::Flag, Fallback::Value("false"), MARKS),
    ],
    read,
};

fn read(section: &Section<'_>, bdp_bytes: u64) -> Result<Discipline, ScenarioError> {
    let threshold = |name| {
        let field = section.need(name)?;
        match field.limit(bdp_bytes)? {
            Limit::Bytes(0) | Limit::Packets(0) => Err(field.error("zero; allowed: 1B or more, or 1packets or more")),
            limit => Ok(limit),
        }
    };
    let (min, max) = (threshold("min")?, threshold("max")?);
    let refuse = |message: String| {
        let field = section.own("max").or(section.own("min"));
        Err(field.unwrap_or_else(|| section.whole_table().clone()).error(message))
    };
    // The average is kept in one unit, so both thresholds must share it.
    match (min, max) {
        (Limit::Bytes(min), Limit::Bytes(max)) | (Limit::Packets(min), Limit::Packets(max)) if min < max => {}
        (Limit::Bytes(min), Limit::Bytes(max)) => {
            return refuse(format!("min is {min}B, and max {max}B; allowed: max above min"));
        }
        (Limit::Packets(min), Limit::Packets(max)) => {
            return refuse(format!("min is {min}packets, and max {max}packets; allowed: max above min"));
        }
        _ => {
            return refuse("min and max have different units; allowed: both in bytes, or both in packets".to_owned());
        }
    }
    Ok(Discipline::of(RedSpec {
        min,
        max,
        max_probability: section.need("max_probability")?.positive()?,
        weight: section.need("weight")?.positive()?,
        gentle: section.need("gentle")?.flag()?,
        ecn: section.need("ecn")?.flag()?,
    }))
}

/// The settings of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpec {
    /// The average queue from which on packets are dropped early.
    pub min: Limit,
    /// The average queue at which the probability is `max_probability`, in the unit of `min`.
    pub max: Limit,
    /// The probability just below `max`.
    pub max_probability: f64,
    /// Weight of each arrival in the average.
    pub weight: f64,
    /// True if the probability rises from `max_probability` to 1 between `max` and twice `max`, false if it jumps to 1.
    pub gentle: bool,
    /// True to mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl ActiveSpec for RedSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(Red::new(*self, place.limit, place.rate, place.seed, place.link))
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

/// The "typical small packet" of section 11 of the paper.
const SMALL_PACKET_BYTES: u64 = 500;

/// A queue under RED.
#[derive(Clone, Debug)]
struct Red {
    spec: RedSpec,
    /// min_th and max_th of the paper, in bytes or in packets.
    min: f64,
    max: f64,
    in_packets: bool,
    limit: Limit,
    /// s of the paper: the transmission time of a small packet in seconds.
    small_packet_s: f64,
    /// avg of the paper, in bytes or in packets.
    average: f64,
    /// Packets since the last chosen one; -1 while the average is below the minimum.
    count: i64,
    buffer: Buffer,
    rng: Stream,
}

fn number(limit: Limit) -> f64 {
    match limit {
        Limit::Bytes(number) | Limit::Packets(number) => number as f64,
    }
}

impl Red {
    fn new(spec: RedSpec, limit: Limit, rate: Rate, seed: u64, link: u64) -> Red {
        Red {
            spec,
            min: number(spec.min),
            max: number(spec.max),
            in_packets: matches!(spec.min, Limit::Packets(_)),
            limit,
            small_packet_s: rate.time_for(SMALL_PACKET_BYTES).as_secs_f64(),
            average: 0.0,
            count: -1,
            buffer: Buffer::default(),
            rng: Stream::new(seed, Domain::ActiveQueue, link),
        }
    }

    fn enqueue(&mut self, now: Time, mut packet: Packet, idle_since: Option<Time>, fates: &mut Fates) {
        self.observe(now, idle_since);
        let is_chosen = self.chooses();
        let fits = self.buffer.has_room_for(&packet, self.limit);
        if fits && (!is_chosen || (self.spec.ecn && fates.mark(&mut packet))) {
            self.buffer.push(now, packet);
        } else {
            fates.drop(packet);
        }
    }

    /// Updates the average: avg <- (1 - w) avg + w q; after an idle time of m small packets, avg <- (1 - w)^m avg.
    fn observe(&mut self, now: Time, idle_since: Option<Time>) {
        let kept = 1.0 - self.spec.weight;
        self.average = match idle_since {
            Some(since) => self.average * libm::pow(kept, (now - since).as_secs_f64() / self.small_packet_s),
            None => {
                let queued = if self.in_packets { self.buffer.packets() } else { self.buffer.bytes() };
                kept * self.average + self.spec.weight * queued as f64
            }
        };
    }

    /// Returns p_b at this average, or `None` below the minimum.
    fn probability(&self) -> Option<f64> {
        let (average, most) = (self.average, self.spec.max_probability);
        match average {
            _ if average < self.min => None,
            _ if average < self.max => Some(most * (average - self.min) / (self.max - self.min)),
            _ if self.spec.gentle && average < 2.0 * self.max => {
                Some(most + (1.0 - most) * (average - self.max) / self.max)
            }
            _ => Some(1.0),
        }
    }

    /// Returns true if the arriving packet is to be dropped or marked, with probability p_a = p_b / (1 - count p_b).
    fn chooses(&mut self) -> bool {
        let Some(p_b) = self.probability() else {
            self.count = -1;
            return false;
        };
        self.count += 1;
        let rest = 1.0 - self.count as f64 * p_b;
        let is_chosen = p_b >= 1.0 || rest <= 0.0 || self.rng.unit() < p_b / rest;
        if is_chosen {
            self.count = 0;
        }
        is_chosen
    }

    fn dequeue(&mut self) -> Option<Packet> {
        self.buffer.pop()
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

impl ActiveLaw for Red {
    fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates) {
        Red::enqueue(self, now, packet, idle_since, fates);
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Option<Packet> {
        Red::dequeue(self)
    }

    fn backlog(&self) -> (u64, u64) {
        Red::backlog(self)
    }

    fn handle_rate(&mut self, rate: Rate) {
        self.small_packet_s = rate.time_for(SMALL_PACKET_BYTES).as_secs_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};
    use sparelane_core::Dur;

    const SPEC: RedSpec = RedSpec {
        min: Limit::Packets(2),
        max: Limit::Packets(4),
        max_probability: 0.1,
        weight: 0.5,
        gentle: true,
        ecn: false,
    };

    fn red(spec: RedSpec) -> Red {
        Red::new(spec, Limit::Packets(50), Rate::from_mbps(4), 1, 0)
    }

    fn fill(queue: &mut Red, packets: u32, fates: &mut Fates) {
        (0..packets).for_each(|seq| queue.enqueue(Time::ZERO, data(0, seq, false), None, fates));
    }

    /// Arrivals find 0, 1, 2 and 3 packets: with w = 1/2 the average is 0, 0.5, 1.25, 2.125.
    #[test]
    fn the_average_follows_the_queue_by_its_weight() {
        let (mut queue, mut fates) = (red(RedSpec { max_probability: 1e-12, ..SPEC }), Fates::default());
        for average in [0.0, 0.5, 1.25, 2.125] {
            fill(&mut queue, 1, &mut fates);
            assert_eq!(queue.average, average);
        }
        let mut bytes = red(RedSpec { min: Limit::Bytes(2000), max: Limit::Bytes(9000), ..SPEC });
        fill(&mut bytes, 3, &mut fates);
        assert_eq!(bytes.average, 1250.0);
    }

    /// A small packet takes 1 ms at 4 Mb/s: three of them halve the average three times.
    #[test]
    fn idle_time_counts_as_small_packets_at_an_empty_queue() {
        let (mut queue, mut fates) = (red(SPEC), Fates::default());
        queue.average = 1.6;
        let now = Time::ZERO + Dur::from_ms(10);
        queue.enqueue(now, data(0, 0, false), Some(Time::ZERO + Dur::from_ms(7)), &mut fates);
        assert!((queue.average - 0.2).abs() < 1e-12, "{}", queue.average);
    }

    #[test]
    fn the_probability_rises_in_two_straight_lines_if_gentle() {
        let mut queue = red(SPEC);
        let cases =
            [(1.99, None), (2.0, Some(0.0)), (3.0, Some(0.05)), (4.0, Some(0.1)), (6.0, Some(0.55)), (8.0, Some(1.0))];
        for (average, expected) in cases {
            queue.average = average;
            let same = match (queue.probability(), expected) {
                (Some(p), Some(q)) => (p - q).abs() < 1e-12,
                (p, q) => p == q,
            };
            assert!(same, "{average}: {:?}", queue.probability());
        }
        let mut abrupt = red(RedSpec { gentle: false, ..SPEC });
        abrupt.average = 4.0;
        assert_eq!(abrupt.probability(), Some(1.0));
    }

    /// With p_b = 1/20 one of the next 19 packets is chosen, each with equal probability: 1/19, then 1/18 of the rest,
    /// and so on.
    #[test]
    fn choices_are_spread_evenly() {
        let mut queue = red(SPEC);
        queue.average = 3.0;
        let (mut gaps, mut gap) = (vec![0_u32; 22], 0);
        for _ in 0..190_000 {
            gap += 1;
            if queue.chooses() {
                gaps[gap] += 1;
                gap = 0;
            }
        }
        // 19,000 gaps of 1 to 19, 1000 of each; rounding may extend one to 20.
        assert!(gaps[20] < 5 && gaps[1..20].iter().all(|count| (870..1130).contains(count)), "{gaps:?}");
    }

    #[test]
    fn ecn_capable_packets_are_marked_instead_of_dropped() {
        let mut queue = Red { average: 100.0, ..red(RedSpec { ecn: true, ..SPEC }) };
        let mut fates = Fates::default();
        queue.enqueue(Time::ZERO, data(0, 0, true), None, &mut fates);
        queue.enqueue(Time::ZERO, data(0, 1, false), None, &mut fates);
        assert_eq!((fates.marked(), numbers(fates.dropped())), (1, vec![1]));
        let mut full = Red { limit: Limit::Bytes(1999), ..red(RedSpec { ecn: true, ..SPEC }) };
        let mut fates = Fates::default();
        (0..2).for_each(|seq| full.enqueue(Time::ZERO, data(0, seq, true), None, &mut fates));
        assert_eq!((fates.marked(), numbers(fates.dropped()), full.backlog()), (0, vec![1], (1000, 1)));
    }
}
