//! Weighted tail drop: first in, first out for all, but a packet of a lower class is refused from a shorter queue on.
//!
//! Source: Cisco, "Catalyst 3750-X and 3560-X Switch Software Configuration Guide", chapter on QoS, "Weighted Tail Drop": each
//! class has a threshold in percent of the queue's size, and a frame is dropped that would lift the queue, with all that is in
//! it, above the threshold of its class. Needs: schemes or cross traffic of several classes; alone, each has its share.
//!
//! No class has places of its own, and none overtakes another, as it does with strict priority: what waits does so alike.
//!
//! Differs: there may be as many thresholds as classes; those switches have three. As with every queue here, what is in
//! transmission does not count, and a packet that finds the transmitter idle does not wait and is never dropped.

use super::QueueForm;
use crate::schema::{Fallback, Form, Key, Kind, ScenarioError, Section, Shape};
use sparelane_core::Time;
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{CLASSES, Discipline, Limit};
use std::any::Any;

const SHARE: Kind = Kind::Share { max: 1.0 };

/// What a scenario can say of it.
pub const FORM: QueueForm = Form {
    name: "weighted-tail-drop",
    summary: "first in, first out; packets of each class are dropped where the queue is longer than that class's share of the limit",
    source: "Cisco, Catalyst 3750-X and 3560-X Switch Software Configuration Guide",
    keys: &[Key::new(
        "class_shares",
        Kind::Special("a list of 1 to 8 shares of the limit, as in [1.0, 0.5]", &Shape::List(&Shape::Of(SHARE))),
        Fallback::Required,
        "up to what share of its limit the queue takes packets of class 0, of class 1 and so on; the last is that of all lower \
         classes, too",
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

/// Weighted tail drop, with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedTailDropSpec {
    /// Up to what share of the limit the queue takes packets of each class, from 0 to 1.
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

/// The queue.
#[derive(Clone, Debug)]
struct WeightedTailDrop {
    /// What the queue may hold for a packet of each class to be admitted, that packet included.
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

/// So much of a limit, in whole bytes or packets.
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

    /// A queue for which class 0 may fill all, class 1 some, and all lower classes less.
    fn queue(limit: Limit) -> WeightedTailDrop {
        let mut shares = [0.4; CLASSES];
        (shares[0], shares[1]) = (1.0, 0.6);
        WeightedTailDrop::new(WeightedTailDropSpec { shares }, limit)
    }

    /// How many of 20 packets of `class` it takes while the transmitter is busy.
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
    fn what_waits_counts_for_every_class_and_leaves_in_the_order_in_which_it_came() {
        let mut queue = queue(Limit::Packets(10));
        assert_eq!([7, 1, 0, 1].map(|class| admitted(&mut queue, class)), [4, 2, 4, 0]);
        let left = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Fates::default())).collect::<Vec<_>>();
        assert_eq!(left.iter().map(Packet::class).collect::<Vec<_>>(), [7, 7, 7, 7, 1, 1, 0, 0, 0, 0]);
        assert_eq!((numbers(&left), queue.backlog()), (vec![0, 1, 2, 3, 0, 1, 0, 1, 2, 3], (0, 0)));
    }

    #[test]
    fn a_class_without_a_share_is_taken_where_the_transmitter_is_idle_alone() {
        let spec = WeightedTailDropSpec { shares: [0.0; CLASSES] };
        let (mut queue, mut fates) = (WeightedTailDrop::new(spec, Limit::Packets(10)), Fates::default());
        queue.enqueue(Time::ZERO, data(0, 0, false), true, &mut fates);
        queue.enqueue(Time::ZERO, data(0, 1, false), false, &mut fates);
        assert_eq!((queue.backlog().1, numbers(fates.dropped())), (1, vec![1]));
    }
}
