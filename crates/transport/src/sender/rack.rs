//! RACK-TLP (RFC 8985): time-based loss detection and tail loss probes.
//!
//! RACK marks a segment lost if a segment that was sent later has arrived, and if a round-trip time and the reordering
//! window have passed since its own transmission. The rule applies to retransmissions as well, and does not need three
//! later arrivals. TLP: if no acknowledgment arrives for two round-trip times, the sender transmits a new segment or
//! the last one again. The acknowledgment of that probe starts fast recovery instead of a timeout.
//!
//! Class-0 transmissions are listed in sending order. Entries that need no decision are removed from the front, so an
//! acknowledgment takes few steps, whatever the amount in flight.
//!
//! Differences from RFC 8985:
//! - The round-trip time sample is that of the segment that triggered the acknowledgment. RFC 8985 uses the most
//!   recently sent of the newly delivered segments. The two differ only if acknowledgments are lost.
//! - The reordering window adapts to spurious retransmissions only with
//!   [`adaptive_reordering`](crate::TransportConfig::adaptive_reordering).
//! - The copy that the acknowledgment identifies decides whether a probe repaired a loss. A tail whose acknowledgments
//!   were all lost counts as lost.

use super::Sender;
use crate::scoreboard::DUP_THRESH;
use crate::segment::AckSegment;
use crate::segment_ring::SegmentRing;
use sparelane_cc::Phase;
use sparelane_core::{Dur, Seq, Time};
use std::collections::VecDeque;

/// The extra wait of a probe with a single segment in flight, because the receiver may delay its acknowledgment
/// (WCDelAckT of RFC 8985 section 7.2).
const DELAYED_ACK_WAIT: Dur = Dur::from_ms(200);

/// The probe timeout before the first round-trip time sample (RFC 8985 section 7.2).
const UNKNOWN_PROBE_WAIT: Dur = Dur::from_secs(1);

/// One transmission of a class-0 segment.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Time,
    seq: Seq,
    /// The number of earlier transmissions of the connection.
    order: u64,
    is_retransmission: bool,
}

/// A tail loss probe in flight.
#[derive(Clone, Copy, Debug)]
struct Probe {
    seq: Seq,
    /// The probe is over once all segments below are acknowledged (TLP.end_seq).
    end: Seq,
    is_retransmission: bool,
}

/// The RACK-TLP state of one connection.
#[derive(Debug)]
pub(super) struct Rack {
    /// The transmissions in sending order. Acknowledged and lost ones stay until they reach the front.
    transmissions: VecDeque<Transmission>,
    /// [`Transmission::order`] of the last transmission of each segment.
    last_order: SegmentRing<u64>,
    transmitted: u64,
    /// The order of the most recently sent transmission that is known to have arrived (RACK.xmit_ts and RACK.end_seq).
    latest_arrival: Option<u64>,
    /// The round-trip time of that transmission (RACK.rtt).
    rtt: Dur,
    /// One past the highest segment known to have arrived (RACK.fack).
    highest_arrival: Seq,
    reordering_seen: bool,
    /// The deadline of the reordering timer.
    reordering_deadline: Time,
    /// The probe timeout (PTO).
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
            reordering_deadline: Time::NEVER,
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
        self.reordering_deadline.min(self.probe_at)
    }

    fn transmit(&mut self, at: Time, una: Seq, seq: Seq, is_retransmission: bool) {
        let order = self.transmitted;
        self.transmitted += 1;
        self.last_order.set(una, seq, order);
        self.transmissions.push_back(Transmission { at, seq, order, is_retransmission });
    }
}

impl Sender {
    /// Records the transmission of a class-0 segment.
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
            // Restart the timer for a retransmission of the oldest segment, as in Linux.
            self.timers.rto_deadline = now + self.rtt.rto();
        }
    }

    /// Updates the state from the segment that triggered an acknowledgment, before the acknowledgment is applied (RFC
    /// 8985 section 6.2, steps 1 to 3).
    pub(super) fn note_rack_arrival(&mut self, now: Time, ack: &AckSegment, rtt: Option<Dur>) {
        let of_resent = || self.retransmission_time(now, ack.trigger).map(|at| now - at);
        let rtt = if ack.trigger_retransmitted { of_resent() } else { rtt };
        let is_outstanding = ack.trigger >= self.una && ack.trigger < self.nxt && !self.board.is_gone(ack.trigger);
        let was_resent = self.board.is_resent(ack.trigger);
        let Some(rack) = &mut self.rack else { return };
        if is_outstanding {
            if !ack.trigger_retransmitted && ack.trigger < rack.highest_arrival {
                rack.reordering_seen = true;
            }
            rack.highest_arrival = rack.highest_arrival.max(ack.trigger + 1);
            // If the first copy triggered the acknowledgment, the transmission time of the second one is no evidence.
            let order = rack.last_order.get(ack.trigger);
            if let Some(rtt) = rtt.filter(|_| ack.trigger_retransmitted == was_resent)
                && rack.latest_arrival.is_none_or(|latest| order > latest)
            {
                (rack.latest_arrival, rack.rtt) = (Some(order), rtt);
            }
        }
        rack.highest_arrival = rack.highest_arrival.max(ack.cumulative);
    }

    /// Returns the reordering window (RFC 8985 section 6.2, step 4). It is zero in recovery or after DupThresh
    /// arrivals, as long as no reordering was observed.
    fn reordering_window(&self, reordering_seen: bool) -> Dur {
        let certain = self.phase != Phase::Open || self.board.arrived_out_of_order() >= DUP_THRESH;
        match (self.rtt.min_rtt(), self.rtt.srtt()) {
            (Some(min_rtt), Some(srtt)) if reordering_seen || !certain => {
                (min_rtt / 4 * u64::from(self.reo_wnd_mult())).min(srtt)
            }
            _ => Dur::ZERO,
        }
    }

    /// Marks segments lost (RFC 8985 section 6.2, step 5), and sets the reordering timer for the next candidate.
    /// Returns whether any segment was marked.
    pub(super) fn detect_losses_by_time(&mut self, now: Time) -> bool {
        let Some(reordering_seen) = self.rack.as_ref().map(|rack| rack.reordering_seen) else { return false };
        let margin = self.reordering_window(reordering_seen);
        let timer_delay = self.config.rack_timer_delay;
        let mut found = false;
        while let Some(rack) = &mut self.rack {
            rack.reordering_deadline = Time::NEVER;
            let Some(&Transmission { at, seq, order, .. }) = rack.transmissions.front() else { break };
            let in_flight = seq >= self.una
                && rack.last_order.get(seq) == order
                && !self.board.is_gone(seq)
                && (!self.board.is_lost(seq) || self.board.is_resent(seq));
            if in_flight {
                // No segment that was sent later has arrived, so neither this nor any later transmission is lost.
                if rack.latest_arrival.is_none_or(|latest| order > latest) {
                    break;
                }
                let lost_at = at + rack.rtt + margin;
                if lost_at > now {
                    rack.reordering_deadline = lost_at + timer_delay;
                    break;
                }
            }
            // The entry is decided: acknowledged, retransmitted later, or lost now.
            rack.transmissions.pop_front();
            if in_flight {
                found = true;
                self.board.mark_segment_lost(seq);
                self.report_loss(now, seq);
            }
        }
        found
    }

    /// Restores recently sent segments as in flight after a timeout has marked all segments lost (RFC 8985 section
    /// 6.3).
    pub(super) fn restore_recent_in_flight(&mut self, now: Time) {
        let Some(rack) = &self.rack else { return };
        let margin = rack.rtt + self.reordering_window(rack.reordering_seen);
        // From the most recent transmission back to the first that is too old.
        for &Transmission { at, seq, order, is_retransmission } in rack.transmissions.iter().rev() {
            if at + margin <= now {
                break;
            }
            if seq > self.una && rack.last_order.get(seq) == order {
                self.board.restore_in_flight(seq, is_retransmission);
            }
        }
    }

    /// Sets or clears the probe timeout (RFC 8985 section 7.2). A probe needs data in flight, no SACK information, no
    /// recovery and no other probe.
    pub(super) fn schedule_probe(&mut self, now: Time) {
        // Segments that wait in a scheduler below TCP are not missing.
        let waits = self.scheduler.as_ref().is_some_and(|scheduler| !scheduler.is_empty());
        let nothing_missing = self.flight() > 0 && self.board.arrived_out_of_order() == 0;
        let applies = self.phase == Phase::Open && nothing_missing && !waits;
        let alone = self.flight() == 1;
        let more = if alone { DELAYED_ACK_WAIT } else { self.config.rack_timer_delay };
        // The probe must not be later than the retransmission timeout.
        let (srtt, rto_deadline) = (self.rtt.srtt(), self.timers.rto_deadline);
        let Some(rack) = &mut self.rack else { return };
        rack.probe_at = if applies && rack.probe.is_none() && !rack.probe_is_due {
            let wait = srtt.map_or(UNKNOWN_PROBE_WAIT, |srtt| srtt * 2 + more);
            (now + wait).min(rto_deadline)
        } else {
            Time::NEVER
        };
    }

    /// Cancels the probe at the start of recovery.
    pub(super) fn cancel_probe(&mut self) {
        if let Some(rack) = &mut self.rack {
            (rack.probe_at, rack.probe_is_due, rack.probe) = (Time::NEVER, false, None);
        }
    }

    /// Returns the segment of a probe that is due: a new one, or else the highest one outstanding (RFC 8985 section
    /// 7.3).
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

    /// Ends the probe once an acknowledgment covers it (RFC 8985 section 7.4). If the retransmitted copy triggered the
    /// acknowledgment, the probe has repaired a loss, which is reported as congestion.
    pub(super) fn end_probe(&mut self, now: Time, ack: &AckSegment) {
        let una = self.una;
        let Some(rack) = &mut self.rack else { return };
        let Some(probe) = rack.probe.take_if(|probe| una >= probe.end) else { return };
        if probe.is_retransmission && ack.trigger == probe.seq && ack.trigger_retransmitted {
            self.note_reduction();
            self.report_mark(now, false);
        }
    }

    /// Handles the probe timeout and the reordering timer.
    pub(super) fn handle_rack_timer(&mut self, now: Time) {
        let is_needed = !self.has_all_reported();
        let Some(rack) = &mut self.rack else { return };
        if now >= rack.probe_at {
            rack.probe_at = Time::NEVER;
            rack.probe_is_due = is_needed;
            // Restart the retransmission timer from the probe (RFC 8985 section 7.3).
            self.timers.rto_deadline = now + self.rtt.rto();
        }
        if self.rack.as_ref().is_some_and(|rack| now >= rack.reordering_deadline) && self.detect_losses_by_time(now) {
            if self.phase == Phase::Open {
                self.enter_recovery(now, 0);
            }
            self.update_prr(0, false);
        }
        self.refresh();
    }
}
