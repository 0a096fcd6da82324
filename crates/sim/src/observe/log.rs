//! A log of the data packets of one flow: the times at which each was due, sent, on the wire and received, and the
//! arrival time that its acknowledgment reports.
//!
//! Send times distinguish transmissions of the same segment.

use super::{Flows, Interest, Kind, Observer, PacketEvent, Step};
use crate::records::{PacketTable, Records};
use sparelane_core::Time;
use std::collections::BTreeMap;

/// The data packets to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLogSpec {
    /// The flow, by its number in order of start.
    pub flow: u32,
    /// Packets sent before this time get no row.
    pub from: Time,
    /// The largest number of rows.
    pub count: u32,
}

/// The log of a run: [`Records::packets`].
#[derive(Clone, Debug)]
pub struct PacketLog {
    spec: PacketLogSpec,
    table: PacketTable,
    /// Rows of packets that arrived and are not acknowledged yet, by segment.
    arrived: BTreeMap<u32, usize>,
}

impl PacketLog {
    /// An empty log.
    pub fn new(spec: PacketLogSpec) -> PacketLog {
        PacketLog { spec, table: PacketTable::default(), arrived: BTreeMap::new() }
    }

    /// Adds a row for a segment that is sent.
    fn sent(&mut self, now: Time, segment: u32, is_retransmission: bool, due: Option<Time>, departs: Option<Time>) {
        let table = &mut self.table;
        if now < self.spec.from || table.segment.len() >= self.spec.count as usize {
            return;
        }
        let or_never = |at: Option<Time>| at.unwrap_or(Time::NEVER).as_ps();
        table.segment.push(segment);
        table.is_retransmission.push(is_retransmission);
        table.due_ps.push(or_never(due));
        table.sent_ps.push(now.as_ps());
        table.departed_ps.push(or_never(departs));
        table.arrived_ps.push(Time::NEVER.as_ps());
        table.stamped_ps.push(Time::NEVER.as_ps());
    }

    /// Notes that the segment sent at `sent` (to the nanosecond) reached the interface of the receiving host.
    fn arrived(&mut self, now: Time, segment: u32, sent: Time) {
        let table = &mut self.table;
        let sent_ns = sent.as_ps() / 1000;
        let first = table.sent_ps.partition_point(|ps| ps / 1000 < sent_ns);
        let rows = (first..table.sent_ps.len()).take_while(|&row| table.sent_ps[row] / 1000 == sent_ns);
        let Some(row) = { rows }.find(|&row| table.segment[row] == segment) else { return };
        table.arrived_ps[row] = now.as_ps();
        self.arrived.insert(segment, row);
    }

    /// Notes that an acknowledgment caused by `segment` reports `stamp` as its arrival time.
    fn stamped(&mut self, segment: u32, stamp: Time) {
        while let Some(entry) = self.arrived.first_entry()
            && *entry.key() <= segment
        {
            let (acknowledged, row) = entry.remove_entry();
            if acknowledged == segment {
                self.table.stamped_ps[row] = stamp.as_ps();
            }
        }
    }
}

impl Observer for PacketLog {
    fn interest(&self) -> Interest {
        Interest { packets: Flows::One(self.spec.flow), ..Interest::default() }
    }

    fn on_packet(&mut self, packet: &PacketEvent) {
        match (packet.kind, packet.step) {
            (Kind::Data { segment, is_retransmission, .. }, Step::Sent { due, departs, .. }) => {
                self.sent(packet.now, segment, is_retransmission, due, departs);
            }
            (Kind::Data { segment, .. }, Step::Arrived { sent }) => self.arrived(packet.now, segment, sent),
            (Kind::Acknowledgment { trigger, .. }, Step::Sent { stamp: Some(stamp), .. }) => {
                self.stamped(trigger, stamp)
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, records: &mut Records) {
        records.packets = self.table;
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
        PacketLog::new(PacketLogSpec { flow: 0, from, count })
    }

    fn send(log: &mut PacketLog, segment: u32, at: Time, is_retransmission: bool) {
        log.sent(at, segment, is_retransmission, None, None);
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
        let table = log.table;
        assert_eq!(table.segment, [0, 1, 2, 1]);
        assert_eq!(table.is_retransmission, [false, false, false, true]);
        let ps = |at: u64| us(at).as_ps();
        assert_eq!(table.arrived_ps, [ps(5), NEVER, ps(6), ps(12)]);
    }

    #[test]
    fn a_timestamp_belongs_to_the_packet_that_caused_the_acknowledgment() {
        let mut log = log(Time::ZERO, 10);
        for segment in 0..4 {
            send(&mut log, segment, us(u64::from(segment)), false);
            log.arrived(us(10 + u64::from(segment)), segment, us(u64::from(segment)));
        }
        log.stamped(1, us(11));
        log.stamped(3, us(13));
        // A late report about a row that is complete changes nothing.
        log.stamped(2, us(99));
        assert_eq!(log.table.stamped_ps, [NEVER, us(11).as_ps(), NEVER, us(13).as_ps()]);
    }

    #[test]
    fn the_log_begins_at_its_time_and_ends_when_it_is_full() {
        let mut log = log(us(5), 3);
        for segment in 0..20 {
            send(&mut log, segment, us(u64::from(segment)), false);
        }
        log.arrived(us(30), 7, us(7));
        log.arrived(us(31), 8, us(8));
        let table = log.table;
        assert_eq!((table.segment, table.arrived_ps), (vec![5, 6, 7], vec![NEVER, NEVER, us(30).as_ps()]));
    }
}
