//! A log of the data packets of one flow, for looking closely at a short time: when each was due, sent, on the wire, received,
//! and what its acknowledgment says of that.
//!
//! A packet of a flow with a log carries the time at which it was sent, as where delays are measured, which tells
//! transmissions of one segment apart. Its hooks stand where other packets do not pass: a logged flow's route ends at the interface
//! of the receiving host, and its packets are sent by the way of those with a rate header.

use crate::config::PacketSpec;
use crate::records::PacketTable;
use sparelane_core::Time;
use std::collections::BTreeMap;

/// A data packet that is handed to the interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handed {
    pub(crate) segment: u32,
    pub(crate) is_retransmission: bool,
    /// When it was due, if something paced it.
    pub(crate) due: Option<Time>,
    pub(crate) at: Time,
    /// When its last bit leaves the interface, where that is known.
    pub(crate) departs: Option<Time>,
}

/// The log of a run.
#[derive(Clone, Debug)]
pub(crate) struct PacketLog {
    pub(crate) spec: PacketSpec,
    table: PacketTable,
    /// Rows of packets that arrived and are not acknowledged yet, by segment.
    arrived: BTreeMap<u32, usize>,
}

impl PacketLog {
    pub(crate) fn new(spec: PacketSpec) -> PacketLog {
        PacketLog { spec, table: PacketTable::default(), arrived: BTreeMap::new() }
    }

    /// Whether packets that are sent at `now` get a row.
    pub(crate) fn is_recording(&self, now: Time) -> bool {
        now >= self.spec.from && self.table.segment.len() < self.spec.count as usize
    }

    /// A packet is sent.
    pub(crate) fn sent(&mut self, packet: Handed) {
        let or_never = |at: Option<Time>| at.unwrap_or(Time::NEVER).as_ps();
        let table = &mut self.table;
        table.segment.push(packet.segment);
        table.is_retransmission.push(packet.is_retransmission);
        table.due_ps.push(or_never(packet.due));
        table.sent_ps.push(packet.at.as_ps());
        table.departed_ps.push(or_never(packet.departs));
        table.arrived_ps.push(Time::NEVER.as_ps());
        table.stamped_ps.push(Time::NEVER.as_ps());
    }

    /// The packet that was sent at `sent`, to the nanosecond, is at the interface of the receiving host.
    pub(crate) fn arrived(&mut self, now: Time, segment: u32, sent: Time) {
        let table = &mut self.table;
        let sent_ns = sent.as_ps() / 1000;
        let first = table.sent_ps.partition_point(|ps| ps / 1000 < sent_ns);
        let rows = (first..table.sent_ps.len()).take_while(|&row| table.sent_ps[row] / 1000 == sent_ns);
        let Some(row) = { rows }.find(|&row| table.segment[row] == segment) else { return };
        table.arrived_ps[row] = now.as_ps();
        self.arrived.insert(segment, row);
    }

    /// An acknowledgment that `segment` caused says that this arrived at `stamp`.
    pub(crate) fn stamped(&mut self, segment: u32, stamp: Time) {
        while let Some(entry) = self.arrived.first_entry()
            && *entry.key() <= segment
        {
            let (acknowledged, row) = entry.remove_entry();
            if acknowledged == segment {
                self.table.stamped_ps[row] = stamp.as_ps();
            }
        }
    }

    /// The rows, in order of sending.
    pub(crate) fn into_table(self) -> PacketTable {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = Time::NEVER.as_ps();

    fn us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    fn log(from: Time, count: u32) -> PacketLog {
        PacketLog::new(PacketSpec { flow: 0, from, count })
    }

    fn send(log: &mut PacketLog, segment: u32, at: Time, is_retransmission: bool) {
        if log.is_recording(at) {
            log.sent(Handed { segment, is_retransmission, due: None, at, departs: None });
        }
    }

    #[test]
    fn two_transmissions_of_a_segment_have_a_row_each() {
        let mut log = log(Time::ZERO, 10);
        for (segment, at, again) in [(0, 1, false), (1, 1, false), (2, 2, false), (1, 9, true)] {
            send(&mut log, segment, us(at), again);
        }
        log.arrived(us(5), 0, us(1));
        log.arrived(us(6), 2, us(2));
        log.arrived(us(12), 1, us(9));
        let table = log.into_table();
        assert_eq!(table.segment, [0, 1, 2, 1]);
        assert_eq!(table.is_retransmission, [false, false, false, true]);
        let ps = |at: u64| us(at).as_ps();
        assert_eq!(table.arrived_ps, [ps(5), NEVER, ps(6), ps(12)]);
    }

    #[test]
    fn a_stamp_goes_to_the_packet_that_caused_the_acknowledgment() {
        let mut log = log(Time::ZERO, 10);
        for segment in 0..4 {
            send(&mut log, segment, us(u64::from(segment)), false);
            log.arrived(us(10 + u64::from(segment)), segment, us(u64::from(segment)));
        }
        log.stamped(1, us(11));
        log.stamped(3, us(13));
        // What nobody waits for any more changes nothing.
        log.stamped(2, us(99));
        assert_eq!(log.into_table().stamped_ps, [NEVER, us(11).as_ps(), NEVER, us(13).as_ps()]);
    }

    #[test]
    fn the_log_begins_at_its_time_and_ends_when_it_is_full() {
        let mut log = log(us(5), 3);
        for segment in 0..20 {
            send(&mut log, segment, us(u64::from(segment)), false);
        }
        log.arrived(us(30), 7, us(7));
        log.arrived(us(31), 8, us(8));
        let table = log.into_table();
        assert_eq!((table.segment, table.arrived_ps), (vec![5, 6, 7], vec![NEVER, NEVER, us(30).as_ps()]));
    }
}
