//! Loss detection by time, and the probe of a tail (RFC 8985, RACK-TLP).
//!
//! RACK: a segment is lost where one that was sent later has arrived, and a round trip and a margin for reordering have passed
//! since it was sent itself. That holds for retransmissions as for first copies, and needs no three arrivals behind. The probe: where
//! nothing comes back for two round trips, the last segment, or a new one, goes once more, so that what it brings back starts a fast
//! repair in place of the timeout.
//!
//! What is transmitted in class 0 is listed in the order of sending; what need not be judged any more falls off the front, so that
//! an acknowledgment costs a few steps whatever is in flight.
//!
//! Where we differ: the sample is of the segment that caused the acknowledgment (RFC 8985 takes the latest of those that are newly
//! delivered, which differs only where acknowledgments are lost); the margin grows with needless retransmissions only where
//! [that is set](crate::TransportConfig::adaptive_reordering); whether a probe has repaired a loss is told by the copy that the acknowledgment names, so that a tail whose
//! acknowledgments were all lost counts as lost.

use super::Sender;
use crate::scoreboard::DUP_THRESH;
use crate::segment::AckSegment;
use crate::segment_ring::SegmentRing;
use sparelane_cc::Phase;
use sparelane_core::{Dur, Seq, Time};
use std::collections::VecDeque;

/// What a probe of a single segment waits for besides two round trips: the receiver may delay its acknowledgment (RFC 8985 section
/// 7.2, WCDelAckT).
const DELAYED_ACK_WAIT: Dur = Dur::from_ms(200);

/// The time to a probe before the first round-trip sample (RFC 8985 section 7.2).
const UNKNOWN_PROBE_WAIT: Dur = Dur::from_secs(1);

/// One transmission of a class-0 segment.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Time,
    seq: Seq,
    /// How many transmissions of the connection came before.
    order: u64,
    is_retransmission: bool,
}

/// A probe that is not answered.
#[derive(Clone, Copy, Debug)]
struct Probe {
    seq: Seq,
    /// The episode ends when all below is acknowledged (RFC 8985's TLP.end_seq).
    end: Seq,
    is_retransmission: bool,
}

/// The books of one connection.
#[derive(Debug)]
pub(super) struct Rack {
    /// In the order of sending; what is acknowledged or lost is still there until it comes to the front.
    transmissions: VecDeque<Transmission>,
    /// The order of the last transmission of each segment.
    last_order: SegmentRing<u64>,
    transmitted: u64,
    /// The latest transmission that is known to have arrived (RFC 8985's RACK.xmit_ts and RACK.end_seq) ...
    latest_arrival: Option<u64>,
    /// ... and the round-trip time that it gave (RACK.rtt).
    rtt: Dur,
    /// One past the highest segment that is known to have arrived (RACK.fack).
    highest_arrival: Seq,
    reordering_seen: bool,
    /// When the next segment may be lost (the reordering timer).
    judge_at: Time,
    /// When a probe goes.
    probe_at: Time,
    probe_is_due: bool,
    probe: Option<Probe>,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            transmissions: VecDeque::new(),
            last_order: SegmentRing::new(),
            transmitted: 0,
            latest_arrival: None,
            rtt: Dur::ZERO,
            highest_arrival: 0,
            reordering_seen: false,
            judge_at: Time::NEVER,
            probe_at: Time::NEVER,
            probe_is_due: false,
            probe: None,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let listed = self.transmissions.capacity() * size_of::<Transmission>();
        size_of::<Rack>() + listed + self.last_order.list_bytes()
    }

    pub(super) fn next_timer(&self) -> Time {
        self.judge_at.min(self.probe_at)
    }

    fn transmit(&mut self, at: Time, una: Seq, seq: Seq, is_retransmission: bool) {
        let order = self.transmitted;
        self.transmitted += 1;
        self.last_order.set(una, seq, order);
        self.transmissions.push_back(Transmission { at, seq, order, is_retransmission });
    }
}

impl Sender {
    /// A class-0 segment was sent.
    pub(super) fn note_transmission(&mut self, now: Time, seq: Seq, is_retransmission: bool) {
        let (una, end) = (self.una, self.nxt);
        let Some(rack) = &mut self.rack else { return };
        rack.transmit(now, una, seq, is_retransmission);
        if std::mem::take(&mut rack.probe_is_due) {
            rack.probe = Some(Probe { seq, end, is_retransmission });
        }
        if !is_retransmission {
            self.schedule_probe(now);
        } else if seq == una {
            // The timer waits for the answer to this copy, as in Linux.
            self.timers.rto_deadline = now + self.rtt.rto();
        }
    }

    /// Remembers the arrival that causes an acknowledgment, before that is handled (RFC 8985 section 6.2, steps 1 to 3).
    pub(super) fn note_rack_arrival(&mut self, now: Time, ack: &AckSegment, rtt: Option<Dur>) {
        let of_resent = || self.resending_time(now, ack.trigger).map(|at| now - at);
        let rtt = if ack.trigger_retransmitted { of_resent() } else { rtt };
        let is_outstanding = ack.trigger >= self.una && ack.trigger < self.nxt && !self.board.is_gone(ack.trigger);
        let was_resent = self.board.is_resent(ack.trigger);
        let Some(rack) = &mut self.rack else { return };
        if is_outstanding {
            if !ack.trigger_retransmitted && ack.trigger < rack.highest_arrival {
                rack.reordering_seen = true;
            }
            rack.highest_arrival = rack.highest_arrival.max(ack.trigger + 1);
            // The first copy of what was sent again says nothing of when the second one was sent.
            let order = rack.last_order.get(ack.trigger);
            if let Some(rtt) = rtt.filter(|_| ack.trigger_retransmitted == was_resent)
                && rack.latest_arrival.is_none_or(|latest| order > latest)
            {
                (rack.latest_arrival, rack.rtt) = (Some(order), rtt);
            }
        }
        rack.highest_arrival = rack.highest_arrival.max(ack.cumulative);
    }

    /// The margin for reordering (RFC 8985 section 6.2, step 4): none while there was no reordering and loss is certain enough.
    fn reordering_window(&self, reordering_seen: bool) -> Dur {
        let certain = self.phase != Phase::Open || self.board.arrived_out_of_order() >= DUP_THRESH;
        match (self.rtt.min_rtt(), self.rtt.srtt()) {
            (Some(min_rtt), Some(srtt)) if reordering_seen || !certain => {
                (min_rtt / 4 * u64::from(self.margin_quarters())).min(srtt)
            }
            _ => Dur::ZERO,
        }
    }

    /// Marks lost what was overtaken and is late (RFC 8985 section 6.2, step 5). Returns whether anything was.
    pub(super) fn detect_losses_by_time(&mut self, now: Time) -> bool {
        let Some(reordering_seen) = self.rack.as_ref().map(|rack| rack.reordering_seen) else { return false };
        let margin = self.reordering_window(reordering_seen);
        let timer_delay = self.config.rack_timer_delay;
        let mut found = false;
        while let Some(rack) = &mut self.rack {
            rack.judge_at = Time::NEVER;
            let Some(&Transmission { at, seq, order, .. }) = rack.transmissions.front() else { break };
            let flies = seq >= self.una
                && rack.last_order.get(seq) == order
                && !self.board.is_gone(seq)
                && (!self.board.is_lost(seq) || self.board.is_resent(seq));
            if flies {
                if rack.latest_arrival.is_none_or(|latest| order > latest) {
                    break;
                }
                let late_at = at + rack.rtt + margin;
                if late_at > now {
                    rack.judge_at = late_at + timer_delay;
                    break;
                }
            }
            rack.transmissions.pop_front();
            if flies {
                found = true;
                self.board.lose(seq);
                self.tell_loss(now, seq);
            }
        }
        found
    }

    /// The retransmission timer has lost everything: what was sent so lately that it may still arrive is in flight after all
    /// (RFC 8985 section 6.3).
    pub(super) fn keep_recent_in_flight(&mut self, now: Time) {
        let Some(rack) = &self.rack else { return };
        let margin = rack.rtt + self.reordering_window(rack.reordering_seen);
        for &Transmission { at, seq, order, is_retransmission } in rack.transmissions.iter().rev() {
            if at + margin <= now {
                break;
            }
            if seq > self.una && rack.last_order.get(seq) == order {
                self.board.keep_in_flight(seq, is_retransmission);
            }
        }
    }

    /// Sets or clears the time of the probe (RFC 8985 section 7.2): with nothing reported out of order, outside of recovery, and
    /// while no other probe is out.
    pub(super) fn schedule_probe(&mut self, now: Time) {
        // What waits in a scheduler below TCP is not missing.
        let waits = self.scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_empty());
        let nothing_missing = self.flight() > 0 && self.board.arrived_out_of_order() == 0;
        let applies = self.phase == Phase::Open && nothing_missing && !waits;
        let alone = self.flight() == 1;
        let more = if alone { DELAYED_ACK_WAIT } else { self.config.rack_timer_delay };
        let (srtt, rto_deadline) = (self.rtt.srtt(), self.timers.rto_deadline);
        let Some(rack) = &mut self.rack else { return };
        rack.probe_at = if applies && rack.probe.is_none() && !rack.probe_is_due {
            let wait = srtt.map_or(UNKNOWN_PROBE_WAIT, |srtt| srtt * 2 + more);
            (now + wait).min(rto_deadline)
        } else {
            Time::NEVER
        };
    }

    /// Losses are known, and repaired: no probe is to look for them.
    pub(super) fn cancel_probe(&mut self) {
        if let Some(rack) = &mut self.rack {
            (rack.probe_at, rack.probe_is_due, rack.probe) = (Time::NEVER, false, None);
        }
    }

    /// The segment that a probe would send now, if one is due: a new one, or the last that was sent (RFC 8985 section 7.3).
    pub(super) fn next_probe(&mut self) -> Option<Seq> {
        if !self.probe_is_due() {
            return None;
        }
        let seq = self.next_new().or_else(|| self.board.highest_outstanding(self.nxt));
        if seq.is_none()
            && let Some(rack) = &mut self.rack
        {
            rack.probe_is_due = false;
        }
        seq
    }

    pub(super) fn probe_is_due(&self) -> bool {
        self.rack.as_ref().is_some_and(|rack| rack.probe_is_due)
    }

    /// After an acknowledgment is handled: whether a probe is answered, and what that says (RFC 8985 section 7.4). A
    /// retransmission that was not in vain has repaired a loss: congestion, with nothing left to repair.
    pub(super) fn end_probe(&mut self, now: Time, ack: &AckSegment) {
        let una = self.una;
        let Some(rack) = &mut self.rack else { return };
        let Some(probe) = rack.probe.take_if(|probe| una >= probe.end) else { return };
        if probe.is_retransmission && ack.trigger == probe.seq && ack.trigger_retransmitted {
            self.note_answer();
            self.report_mark(now);
        }
    }

    /// Time has passed: what is late now, and a probe that goes now.
    pub(super) fn handle_rack_timer(&mut self, now: Time) {
        let Some(rack) = &mut self.rack else { return };
        if now >= rack.probe_at {
            rack.probe_at = Time::NEVER;
            rack.probe_is_due = true;
            // The timeout waits from the probe on.
            self.timers.rto_deadline = now + self.rtt.rto();
        }
        if self.rack.as_ref().is_some_and(|rack| now >= rack.judge_at) && self.detect_losses_by_time(now) {
            if self.phase == Phase::Open {
                self.enter_recovery(now, 0);
            }
            self.continue_reduction(0, false);
        }
        self.refresh();
    }
}
