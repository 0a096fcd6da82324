//! FQ-PIE: flows share the link by deficit round robin, new flows are served first, and each queue is under PIE.
//!
//! Source: Linux (`net/sched/sch_fq_pie.c`); RFC 8033 and the scheduler of RFC 8290 are its parts. There is no
//! specification of the whole. Needs what PIE needs, plus a hash of the flow; `fair.rs` has the scheduler.
//!
//! Differences: those of PIE and of the scheduler. All queues share one stream of random numbers. The limit is that of the
//! link; Linux also limits the memory.

use super::QueueForm;
use super::fair::{FLOWS, FairQueues, FairSpec, QUANTUM};
use super::pie::{PIE_KEYS, PieAt, PieLaw, PieSpec, read_law};
use crate::schema::Form;
use sparelane_core::Time;
use sparelane_sim::Discipline;
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Fates, Packet, Place};
use std::any::Any;

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "fq-pie",
    summary: "flows take turns, new flows first, and each is under pie",
    source: "Linux",
    keys: &[
        PIE_KEYS[0],
        PIE_KEYS[1],
        PIE_KEYS[2],
        PIE_KEYS[3],
        PIE_KEYS[4],
        PIE_KEYS[5],
        PIE_KEYS[6],
        FLOWS.from("Linux"),
        QUANTUM.from("Linux"),
    ],
    read: |section, _| Ok(Discipline::of(FqPieSpec { pie: read_law(section)?, fair: FairSpec::read(section)? })),
};

/// The settings of FQ-PIE.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FqPieSpec {
    /// The law of each queue.
    pub pie: PieSpec,
    /// The scheduler.
    pub fair: FairSpec,
}

impl ActiveSpec for FqPieSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(FqPie { at: PieAt::new(self.pie, place), queues: FairQueues::new(self.fair, place) })
    }

    fn separates_classes(&self) -> bool {
        false
    }

    fn marks(&self) -> bool {
        self.pie.ecn
    }

    fn tells_flows_apart(&self) -> bool {
        true
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// Queues under PIE.
#[derive(Clone, Debug)]
struct FqPie {
    at: PieAt,
    queues: FairQueues<PieLaw>,
}

impl ActiveLaw for FqPie {
    fn enqueue(&mut self, now: Time, mut packet: Packet, _idle_since: Option<Time>, fates: &mut Fates) {
        let fits = self.queues.has_room_for(&packet);
        let number = self.queues.classify(&packet);
        let queue = self.queues.queue(number);
        if queue.law.admits(now, &mut self.at, &queue.buffer, (&mut packet, fits), fates) {
            self.queues.push(now, number, packet);
        } else {
            fates.drop(packet);
        }
    }

    fn dequeue(&mut self, now: Time, _fates: &mut Fates) -> Option<Packet> {
        let at = &self.at;
        self.queues.dequeue(|law, buffer| law.dequeue(now, at, buffer))
    }

    fn backlog(&self) -> (u64, u64) {
        self.queues.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};
    use sparelane_core::{Dur, Rate};
    use sparelane_sim::Limit;

    fn queue(limit: Limit) -> Box<dyn ActiveLaw> {
        let pie = PieSpec { max_burst: Dur::ZERO, ..PieSpec::default() };
        let place = Place { limit, rate: Rate::from_mbps(1), largest_bytes: 1000, seed: 1, link: 0 };
        FqPieSpec { pie, ..FqPieSpec::default() }.make(&place)
    }

    /// Flow 1 sends two packets in the time in which it can send one. Flow 2 sends one packet now and then.
    #[test]
    fn only_the_standing_queue_has_drops_and_its_delay_is_near_the_target() {
        let (mut queue, mut fates) = (queue(Limit::Packets(1000)), Fates::default());
        let mut delays = Vec::new();
        for ms in 0..60_000 {
            let now = Time::ZERO + Dur::from_ms(ms);
            // The rate of flow 1 is twice that of the link for 30 s.
            if ms % 2 == 0 && ms < 30_000 || ms % 3 == 0 {
                queue.enqueue(now, data(1, ms as u32, false), None, &mut fates);
            }
            if ms % 100 == 0 {
                queue.enqueue(now, data(2, ms as u32, false), None, &mut fates);
            }
            let left = if ms % 2 == 0 { queue.dequeue(now, &mut fates) } else { None };
            if let Some(packet) = left.filter(|packet| packet.flow() == 1 && (20_000..30_000).contains(&ms)) {
                delays.push((now - packet.came_at()).as_secs_f64());
            }
        }
        assert!(fates.dropped().len() > 500 && fates.dropped().iter().all(|packet| packet.flow() == 1));
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        assert!((0.005..0.030).contains(&mean), "a delay of {mean} s with a target of 15 ms");
    }

    #[test]
    fn packets_beyond_the_limit_of_all_queues_are_dropped_on_arrival() {
        let (mut queue, mut fates) = (queue(Limit::Packets(3)), Fates::default());
        for flow in 0..5 {
            queue.enqueue(Time::ZERO, data(flow, 10 + flow, false), None, &mut fates);
        }
        assert_eq!((numbers(fates.dropped()), queue.backlog()), (vec![13, 14], (3000, 3)));
    }
}
