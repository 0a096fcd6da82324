//! First in, first out in a memory of fixed-size cells. Every packet occupies whole cells, so that small packets take
//! more memory than their bytes.
//!
//! A limit in bytes counts cells. As with every queue here, a packet that finds the transmitter idle does not wait and
//! is never dropped.

use super::QueueForm;
use crate::schema::{Fallback, Form, Key, Kind};
use sparelane_core::Time;
use sparelane_sim::qdisc::{ActiveLaw, ActiveSpec, Buffer, Fates, Packet, Place};
use sparelane_sim::{Discipline, Limit};
use std::any::Any;

/// The form in a scenario.
pub const FORM: QueueForm = Form {
    name: "cells",
    summary: "first in, first out, in a memory of cells; each packet occupies whole cells",
    source: "sparelane",
    keys: &[Key::new(
        "cell",
        Kind::Size { min: 1, max: 1 << 20 },
        Fallback::Required,
        "size of a cell of the switch's memory; a packet occupies whole cells, and a limit in bytes counts them",
    )],
    read: |section, _| Ok(Discipline::of(CellsSpec { cell_bytes: section.need("cell")?.size()? })),
};

/// The settings of a memory of cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellsSpec {
    /// The size of a cell in bytes, at least 1.
    pub cell_bytes: u64,
}

impl CellsSpec {
    /// Returns the bytes that a packet occupies.
    pub fn occupied_bytes(self, packet_bytes: u64) -> u64 {
        packet_bytes.div_ceil(self.cell_bytes) * self.cell_bytes
    }
}

impl ActiveSpec for CellsSpec {
    fn kind(&self) -> &'static str {
        FORM.name
    }

    fn make(&self, place: &Place) -> Box<dyn ActiveLaw> {
        Box::new(Cells::new(*self, place.limit))
    }

    fn least_limit_bytes(&self, packet_bytes: u64) -> u64 {
        self.occupied_bytes(packet_bytes)
    }

    fn separates_classes(&self) -> bool {
        false
    }

    fn marks(&self) -> bool {
        false
    }

    fn equals(&self, other: &dyn ActiveSpec) -> bool {
        (other as &dyn Any).downcast_ref() == Some(self)
    }
}

/// A queue in a memory of cells.
#[derive(Clone, Debug)]
struct Cells {
    spec: CellsSpec,
    limit: Limit,
    /// Total bytes of the occupied cells.
    occupied_bytes: u64,
    buffer: Buffer,
}

impl Cells {
    fn new(spec: CellsSpec, limit: Limit) -> Cells {
        Cells { spec, limit, occupied_bytes: 0, buffer: Buffer::default() }
    }
}

impl ActiveLaw for Cells {
    fn enqueue(&mut self, now: Time, packet: Packet, idle_since: Option<Time>, fates: &mut Fates) {
        let occupies = self.spec.occupied_bytes(packet.wire_bytes());
        let waits = idle_since.is_none();
        if waits && !self.limit.has_room(self.occupied_bytes, self.buffer.packets(), occupies) {
            return fates.drop(packet);
        }
        self.occupied_bytes += occupies;
        self.buffer.push(now, packet);
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates) -> Option<Packet> {
        let packet = self.buffer.pop()?;
        self.occupied_bytes -= self.spec.occupied_bytes(packet.wire_bytes());
        Some(packet)
    }

    fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::packets::{data, numbers};

    fn admitted(cell_bytes: u64, limit: Limit) -> usize {
        let mut queue = Cells::new(CellsSpec { cell_bytes }, limit);
        let mut fates = Fates::default();
        (0..20).for_each(|seq| queue.enqueue(Time::ZERO, data(0, seq, false), None, &mut fates));
        let left = std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut Fates::default())).collect::<Vec<_>>();
        assert_eq!((queue.occupied_bytes, queue.backlog()), (0, (0, 0)));
        assert_eq!(left.len() + fates.dropped().len(), 20);
        assert_eq!(numbers(&left), (0..left.len() as u32).collect::<Vec<_>>());
        left.len()
    }

    /// Packets of 1000 bytes take four cells of 256 bytes, which is 1024, and two of 600, which is 1200.
    #[test]
    fn packets_occupy_whole_cells() {
        assert_eq!(admitted(1, Limit::Bytes(10_000)), 10);
        assert_eq!(admitted(256, Limit::Bytes(10_239)), 9);
        assert_eq!(admitted(256, Limit::Bytes(10_240)), 10);
        assert_eq!(admitted(600, Limit::Bytes(10_000)), 8);
        assert_eq!(admitted(600, Limit::Packets(7)), 7);
    }

    #[test]
    fn a_packet_that_finds_the_transmitter_idle_is_never_dropped() {
        let (mut queue, mut fates) =
            (Cells::new(CellsSpec { cell_bytes: 4_000 }, Limit::Bytes(1_500)), Fates::default());
        queue.enqueue(Time::ZERO, data(0, 0, false), Some(Time::ZERO), &mut fates);
        queue.enqueue(Time::ZERO, data(0, 1, false), None, &mut fates);
        assert_eq!((queue.backlog().1, numbers(fates.dropped())), (1, vec![1]));
    }
}
