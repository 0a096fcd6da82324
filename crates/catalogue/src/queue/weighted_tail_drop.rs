//! Weighted tail drop: first in, first out for all classes, but a lower class is rejected at a shorter queue.
//!
//! Source: Cisco, "Catalyst 3750-X and 3560-X Switch Software Configuration Guide", chapter on QoS, "Weighted Tail
//! Drop". Each class has a threshold in percent of the queue's size. A frame is dropped if it would lift the queue,
//! with all its packets, above the threshold of its class. Useful with schemes or cross traffic of several classes; a
//! single class is simply limited to its share.
//!
//! No class has reserved places, and unlike with strict priority none overtakes another.
//!
//! Differences: there may be as many thresholds as classes; those switches have three. As with every queue here, the
//! packet in transmission does not count, and a packet that finds the transmitter idle does not wait and is never
//! dropped.

use super::QueueForm;
use crate::schema::{Fallback, Form, Key, Kind, ScenarioError, Section, Shape};
use sparelane_core::Time;
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{CLASSES, Discipline, Limit};
use std::any::Any;

const SHARE: Kind = Kind::Share { max: 1.0 };

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "weighted-tail-drop",
    summary: "first in, first out; packets of a class are dropped if the queue exceeds that class's share of the limit",
    source: "Cisco, Catalyst 3750-X and 3560-X Switch Software Configuration Guide",
    keys: &[Key::new(
        "class_shares",
        Kind::Special("a list of 1 to 8 shares of the limit, as in [1.0, 0.5]", &Shape::List(&Shape::Of(SHARE))),
        Fallback::Required,
        "share of its limit up to which the queue accepts packets of class 0, of class 1 and so on; the last one \
         holds for all lower classes, too",
    )],
    read: |section, _| Ok(Discipline::of(WeightedTailDropSpec { shares: read_shares(section)? })),
};

fn read_shares(section: &Section<'_>) -> Result<[f64; CLASSES], ScenarioError> {
    let field = section.need("class_shares")?;
    let listed = field.list(SHARE)?;
    if listed.is_empty() || listed.len() > CLASSES {
        return Err(field.refuse(&format!("{} shares", listed.len())));
    }
    let mut shares = [0.0; CLASSES];
    for (class, share) in shares.iter_mut().enumerate() {
        *share = listed[class.min(listed.len() - 1)].share()?;
    }
    Ok(shares)
}

/// The settings of weighted tail drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedTailDropSpec {
    /// The share of the limit, 0 to 1, up to which the queue accepts packets of each class.
    pub shares: [f64; CLASSES],
}

impl ActiveSpec for WeightedTailDropSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(WeightedTailDrop::new(*self, place.limit))
    }

    fn marks(&self) -> bool {
        false
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// A queue with weighted tail drop.
#[derive(Clone, Debug)]
struct WeightedTailDrop {
    /// The size of the queue up to which a packet of each class is admitted, including that packet.
    limits: [Limit; CLASSES],
    buffer: Buffer,
}

impl WeightedTailDrop {
    fn new(spec: WeightedTailDropSpec, limit: Limit) -> WeightedTailDrop {
        WeightedTailDrop { limits: spec.shares.map(|share| share_of(limit, share)), buffer: Buffer::default() }
    }

    fn enqueue(&mut self, now: Time, packet: Packet, is_idle: bool, fates: &mut Fates) {
        let limit = self.limits[usize::from(packet.class()) & (CLASSES - 1)];
        if is_idle || self.buffer.has_room_for(&packet, limit) {
            self.buffer.push(now, packet);
        } else {
            fates.drop(packet);
        }
    }
}

/// Returns a share of a limit, in whole bytes or packets.
fn share_of(limit: Limit, share: f64) -> Limit {
    let part = |whole: u64| (whole as f64 * share).floor() as u64;
    match limit {
        Limit::Bytes(bytes) => Limit::Bytes(part(bytes)),
        Limit::Packets(packets) => Limit::Packets(part(packets)),
    }
}

impl ActiveLaw for WeightedTailDrop {
    fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates) {
        WeightedTailDrop::enqueue(self, now, packet, idle_since.is_some(), fates);
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Option<Packet> {
        self.buffer.pop()
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};

    /// Returns a queue that class 0 may fill entirely, class 1 partly, and all lower classes less.
    fn queue(limit: Limit) -> WeightedTailDrop {
        let mut shares = [0.4; CLASSES];
        (shares[0], shares[1]) = (1.0, 0.6);
        WeightedTailDrop::new(WeightedTailDropSpec { shares }, limit)
    }

    /// Returns the number of 20 packets of `class` that the queue admits while the transmitter is busy.
    fn admitted(queue: &mut WeightedTailDrop, class: u8) -> usize {
        let mut fates = Fates::default();
        (0..20).for_each(|seq| queue.enqueue(Time::ZERO, data(0, seq, false).lowered(class), false, &mut fates));
        20 - fates.dropped().len()
    }

    #[test]
    fn each_class_fills_the_queue_to_its_share_and_no_further() {
        for limit in [Limit::Packets(10), Limit::Bytes(10_999)] {
            let took = [2, 1, 0].map(|class| admitted(&mut queue(limit), class));
            assert_eq!(took, [4, 6, 10]);
        }
    }

    #[test]
    fn waiting_packets_count_for_every_class_and_leave_in_order_of_arrival() {
        let mut queue = queue(Limit::Packets(10));
        assert_eq!([7, 1, 0, 1].map(|class| admitted(&mut queue, class)), [4, 2, 4, 0]);
        let left = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Fates::default())).collect::<Vec<_>>();
        assert_eq!(left.iter().map(Packet::class).collect::<Vec<_>>(), [7, 7, 7, 7, 1, 1, 0, 0, 0, 0]);
        assert_eq!((numbers(&left), queue.backlog()), (vec![0, 1, 2, 3, 0, 1, 0, 1, 2, 3], (0, 0)));
    }

    #[test]
    fn a_class_without_a_share_is_admitted_only_to_an_idle_transmitter() {
        let spec = WeightedTailDropSpec { shares: [0.0; CLASSES] };
        let (mut queue, mut fates) = (WeightedTailDrop::new(spec, Limit::Packets(10)), Fates::default());
        queue.enqueue(Time::ZERO, data(0, 0, false), true, &mut fates);
        queue.enqueue(Time::ZERO, data(0, 1, false), false, &mut fates);
        assert_eq!((queue.backlog().1, numbers(fates.dropped())), (1, vec![1]));
    }
}
