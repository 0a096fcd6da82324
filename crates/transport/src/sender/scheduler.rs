//! A scheduler between TCP and the interface, for controllers that set the departure time of each segment.
//!
//! Source: Yin, Kaur, Smith, "TCP Rapid: From Theory to Practice", INFOCOM 2017, section IV-A and Fig. 3. The scheduler
//! E_S is a queueing discipline of the sending host with a FIFO queue per connection. TCP passes down all segments that
//! its window allows, including retransmissions. The controller sets the departure time of the segment at the head of
//! the queue. A retransmission departs after all segments that were passed down before it.
//!
//! Round-trip times are measured from the departure of a segment, as in Linux if the scheduler sets the timestamps. The
//! retransmission timer restarts at each departure and does not expire while a segment waits in the queue, because
//! Linux does not retransmit a segment whose copy is still in the host.

use super::{Sender, context};
use crate::segment::{Segment, Transmit};
use sparelane_cc::{Cx, Departure};
use sparelane_core::{Seq, Time};
use std::collections::{BTreeSet, VecDeque};

/// The queue of one connection: segments that TCP has passed down and that have not departed.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    queue: VecDeque<Segment>,
    /// The retransmissions among them.
    retransmissions: BTreeSet<Seq>,
    /// One past the last segment that has departed.
    departed_end: Seq,
}

impl Scheduler {
    /// Returns one past the last segment that has departed. The peer cannot acknowledge later ones.
    pub(super) fn departed_end(&self) -> Seq {
        self.departed_end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Scheduler>()
            + self.queue.capacity() * size_of::<Segment>()
            + self.retransmissions.len() * 2 * size_of::<Seq>()
    }

    /// Enqueues a segment. A retransmission is dropped if a copy of the segment is still queued, which limits the queue
    /// to twice the data written even if a peer reports false losses.
    fn enqueue(&mut self, segment: Segment) {
        let is_queued =
            segment.retransmission && (segment.seq >= self.departed_end || !self.retransmissions.insert(segment.seq));
        if !is_queued {
            self.queue.push_back(segment);
        }
    }

    /// Removes the segment at the head of the queue, which departs.
    fn dequeue(&mut self) {
        if let Some(segment) = self.queue.pop_front() {
            self.departed_end = self.departed_end.max(segment.seq + 1);
            if segment.retransmission {
                self.retransmissions.remove(&segment.seq);
            }
        }
    }
}

impl Sender {
    /// Moves all segments that TCP may send into the queue, then returns the segment that departs now, if any.
    #[inline(never)]
    pub(super) fn poll_scheduled(&mut self, now: Time, nic_idle: bool) -> Option<Transmit> {
        // The window limits this loop, because queued segments count as in flight.
        while let Some(Transmit::Data(segment)) = self.poll_established(now, nic_idle) {
            self.scheduled().enqueue(segment);
        }
        let &head = self.scheduled().queue.front()?;
        let due = self.cc.next_departure(&mut context!(self, now));
        let late_until = self.late_until(now);
        if due > now || late_until.is_some() {
            self.timers.pace_at = match &mut self.pacing.late {
                Some(timer) => late_until.unwrap_or_else(|| timer.set(due)),
                None => due,
            };
            // The timer must not expire before the segment has departed and had time to be acknowledged.
            self.timers.rto_deadline = self.timers.rto_deadline.max(self.timers.pace_at + self.rtt.rto());
            return None;
        }
        self.scheduled().dequeue();
        self.depart(now, head);
        Some(Transmit::Data(head))
    }

    fn scheduled(&mut self) -> &mut Scheduler {
        self.scheduler.get_or_insert_default()
    }

    /// Restarts measurements and the timer at the departure of `segment`, and informs the controller.
    fn depart(&mut self, now: Time, segment: Segment) {
        if segment.retransmission {
            self.recovery.repairs_mut().retransmission_times.note(self.una, segment.seq, now);
        } else {
            *self.sent_at.get_mut(segment.seq) = now;
        }
        if self.timers.rto_deadline != Time::NEVER {
            self.timers.rto_deadline = self.timers.rto_deadline.max(now + self.rtt.rto());
        }
        let waiting = self.scheduled().queue.len() as u32;
        let departure = Departure { segment: segment.seq, is_retransmission: segment.retransmission, waiting };
        self.cc.on_departure(&departure, &mut context!(self, now));
    }
}
