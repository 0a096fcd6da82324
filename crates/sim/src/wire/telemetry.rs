//! In-band telemetry: the records that routers write into data packets, for HPCC (SIGCOMM 2019).
//!
//! A packet has no room for its records. They are in a slab next to the packets, which the links and the world share. A
//! data packet carries the index of its entry in the field `trigger`, which plain data packets do not use. The
//! acknowledgment of the packet takes the entry over: see `sack_slab`. Runs without telemetry have no slab, and their
//! links never look for an entry.

use crate::records::CLASSES;
use crate::wire::packet::{Flags, Packet};
use sparelane_cc::Hop;
use sparelane_core::{Rate, Time};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes that the records of a port count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TelemetryKind {
    /// Packets of all classes.
    #[default]
    Port,
    /// Packets of the class of the stamped packet, and of higher classes.
    Class,
    /// The port writes no records.
    Off,
}

/// The number of an entry in fields of packets: its index plus one, or zero for a packet without an entry.
pub(crate) type EntryNumber = u32;

#[derive(Debug, Default)]
struct Slab {
    entries: Vec<Vec<Hop>>,
    free: Vec<u32>,
}

/// The records of all packets in flight. Links and the world hold handles to the same slab.
#[derive(Clone, Debug, Default)]
pub(crate) struct TelemetrySlab(Arc<Mutex<Slab>>);

impl TelemetrySlab {
    fn slab(&self) -> MutexGuard<'_, Slab> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry without records.
    pub(crate) fn open(&self) -> EntryNumber {
        let mut slab = self.slab();
        if let Some(index) = slab.free.pop() {
            slab.entries[index as usize].clear();
            return index + 1;
        }
        slab.entries.push(Vec::new());
        slab.entries.len() as EntryNumber
    }

    /// Adds a copy of an entry. Without an entry, returns zero.
    pub(crate) fn copied(&self, entry: EntryNumber) -> EntryNumber {
        if entry == 0 {
            return 0;
        }
        let copy = self.open();
        let mut slab = self.slab();
        let hops = slab.entries[entry as usize - 1].clone();
        slab.entries[copy as usize - 1] = hops;
        copy
    }

    fn write(&self, entry: EntryNumber, hop: Hop) {
        self.slab().entries[entry as usize - 1].push(hop);
    }

    /// Copies the records of an entry to `hops`, and frees the entry, if there is one.
    pub(crate) fn take(&self, entry: EntryNumber, hops: &mut Vec<Hop>) {
        hops.clear();
        if entry > 0 {
            hops.extend_from_slice(&self.slab().entries[entry as usize - 1]);
            self.release(entry);
        }
    }

    /// Frees an entry, if there is one.
    pub(crate) fn release(&self, entry: EntryNumber) {
        if entry > 0 {
            self.slab().free.push(entry - 1);
        }
    }

    /// Entries in use.
    #[cfg(any(test, feature = "oracle"))]
    pub(crate) fn in_use(&self) -> usize {
        let slab = self.slab();
        slab.entries.len() - slab.free.len()
    }
}

/// The state of an output port that writes records.
#[derive(Clone, Debug)]
pub(crate) struct Stamper {
    slab: TelemetrySlab,
    kind: TelemetryKind,
    port: u32,
    /// Bytes sent, by class.
    sent_bytes: [u64; CLASSES],
}

impl Stamper {
    pub(crate) fn new(slab: &TelemetrySlab, kind: TelemetryKind, port: u32) -> Stamper {
        Stamper { slab: slab.clone(), kind, port, sent_bytes: [0; CLASSES] }
    }

    /// Writes the record of a packet whose transmission begins at `start`, if it has an entry, and counts its bytes.
    /// `backlog_bytes` returns the bytes that wait in the highest classes, of the given number.
    pub(crate) fn stamp(&mut self, start: Time, packet: &Packet, rate: Rate, backlog_bytes: impl Fn(usize) -> u64) {
        let class = usize::from(packet.class()) & (CLASSES - 1);
        let entry = packet.telemetry();
        if entry > 0 {
            let counted = match self.kind {
                TelemetryKind::Class => class + 1,
                TelemetryKind::Port | TelemetryKind::Off => CLASSES,
            };
            let (queue_bytes, sent_bytes) = (backlog_bytes(counted), self.sent_bytes[..counted].iter().sum());
            self.slab.write(entry, Hop { port: self.port, rate, at: start, queue_bytes, sent_bytes });
        }
        self.sent_bytes[class] += packet.wire_bytes();
    }
}

impl Packet {
    /// The number of the packet's entry in the slab, or zero. Only data packets without a rate header have one.
    pub(crate) fn telemetry(&self) -> EntryNumber {
        let is_plain_data = self.flags().kind() == Flags::DATA && !self.flags().has(Flags::RATE_HEADER);
        if is_plain_data { self.trigger() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::Dur;

    fn sent(class: u8, telemetry: EntryNumber) -> Packet {
        let mut packet = Packet::example(1, 2, 1000, false);
        packet.lower(class);
        packet.set_trigger(telemetry);
        packet
    }

    #[test]
    fn entries_are_used_again_without_their_records() {
        let slab = TelemetrySlab::default();
        let mut stamper = Stamper::new(&slab, TelemetryKind::Port, 7);
        let (one, other) = (slab.open(), slab.open());
        stamper.stamp(Time::ZERO, &sent(0, one), Rate::from_mbps(1), |_| 0);
        let copy = slab.copied(one);
        assert_eq!((slab.copied(0), slab.in_use()), (0, 3));
        let mut hops = Vec::new();
        slab.take(copy, &mut hops);
        assert_eq!((hops.len(), hops[0].port), (1, 7));
        slab.release(one);
        slab.take(slab.open(), &mut hops);
        assert!(hops.is_empty());
        slab.release(other);
        slab.release(0);
        assert_eq!(slab.in_use(), 0);
    }

    #[test]
    fn a_record_counts_all_classes_or_those_from_its_own_up() {
        let backlog = |classes| [10, 20, 40, 0, 0, 0, 0, 0][..classes].iter().sum();
        let record = |kind| {
            let slab = TelemetrySlab::default();
            let mut stamper = Stamper::new(&slab, kind, 0);
            for class in [0, 1, 2, 2] {
                stamper.stamp(Time::ZERO, &sent(class, 0), Rate::from_mbps(1), backlog);
            }
            let (entry, mut hops) = (slab.open(), Vec::new());
            let at = Time::ZERO + Dur::from_us(3);
            stamper.stamp(at, &sent(1, entry), Rate::from_mbps(1), backlog);
            slab.take(entry, &mut hops);
            assert_eq!((hops[0].at, hops[0].rate), (at, Rate::from_mbps(1)));
            (hops[0].queue_bytes, hops[0].sent_bytes)
        };
        assert_eq!(record(TelemetryKind::Port), (70, 4000));
        assert_eq!(record(TelemetryKind::Class), (30, 2000));
    }
}
