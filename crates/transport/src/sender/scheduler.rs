//! A scheduler between TCP and the interface, for controllers that say when each segment leaves.
//!
//! Source: Yin, Kaur, Smith, "TCP Rapid: From Theory to Practice", INFOCOM 2017, section IV-A and Fig. 3: E_S, a queueing discipline
//! of the sending host with a FIFO queue for each connection. TCP hands down whatever its window allows, retransmissions among the
//! rest, and the controller gives the segment at the head of the queue its time. Who is behind waits: a retransmission goes when all
//! has gone that was handed down before it.
//!
//! What happens to a segment counts from when it leaves the scheduler: round-trip samples (as of Linux with time stamps that the
//! scheduler sets) and the retransmission timer, which does not expire while anything waits here: the segment that it is for may be
//! among it, and Linux does not send a segment again whose copy is still in the host.

use super::{Sender, context};
use crate::segment::{Segment, Transmit};
use sparelane_cc::{Cx, Departure};
use sparelane_core::{Seq, Time};
use std::collections::{BTreeSet, VecDeque};

/// The queue of one connection: what TCP has handed down and has yet to leave.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    queue: VecDeque<Segment>,
    /// Which of them are retransmissions.
    resends: BTreeSet<Seq>,
    /// One past the last segment that has left.
    departed_end: Seq,
}

impl Scheduler {
    /// One past the last segment that has left: a peer cannot have heard of more.
    pub(super) fn departed_end(&self) -> Seq {
        self.departed_end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Scheduler>()
            + self.queue.capacity() * size_of::<Segment>()
            + self.resends.len() * 2 * size_of::<Seq>()
    }

    /// TCP hands a segment down. A copy that still waits stands for a retransmission, too: so the queue is never longer than
    /// twice what was written, whatever a peer makes TCP believe of losses.
    fn take(&mut self, segment: Segment) {
        let waits = segment.retransmission && (segment.seq >= self.departed_end || !self.resends.insert(segment.seq));
        if !waits {
            self.queue.push_back(segment);
        }
    }

    /// The segment at the head of the queue leaves.
    fn release(&mut self) {
        if let Some(segment) = self.queue.pop_front() {
            self.departed_end = self.departed_end.max(segment.seq + 1);
            if segment.retransmission {
                self.resends.remove(&segment.seq);
            }
        }
    }
}

impl Sender {
    /// The segment that leaves now, if one does, after TCP has handed down what its window allows.
    #[inline(never)]
    pub(super) fn poll_scheduled(&mut self, now: Time, nic_idle: bool) -> Option<Transmit> {
        while let Some(Transmit::Data(segment)) = self.poll_established(now, nic_idle) {
            self.scheduled().take(segment);
        }
        let &head = self.scheduled().queue.front()?;
        let due = self.cc.next_departure(&mut context!(self, now));
        let late_until = self.late_until(now);
        if due > now || late_until.is_some() {
            self.timers.pace_at = match &mut self.pace.late {
                Some(timer) => late_until.unwrap_or_else(|| timer.set(due)),
                None => due,
            };
            self.timers.rto_deadline = self.timers.rto_deadline.max(self.timers.pace_at + self.rtt.rto());
            return None;
        }
        self.scheduled().release();
        self.depart(now, head);
        Some(Transmit::Data(head))
    }

    fn scheduled(&mut self) -> &mut Scheduler {
        self.scheduler.get_or_insert_default()
    }

    fn depart(&mut self, now: Time, segment: Segment) {
        if segment.retransmission {
            self.repair.resends.note(self.una, segment.seq, now);
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
