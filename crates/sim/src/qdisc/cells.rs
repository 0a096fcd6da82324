//! First in, first out in a memory of cells of one size: every packet occupies whole cells, so that small packets take more
//! of the memory than their bytes.
//!
//! A limit in bytes is of the cells. As with every queue here, a packet that finds the transmitter idle does not wait and
//! is never dropped.

use super::{Buffer, Fates};
use crate::config::CellsSpec;
use crate::network::Limit;
use crate::packet::Packet;
use sparelane_core::Time;

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    spec: CellsSpec,
    limit: Limit,
    /// Bytes of the occupied cells.
    occupied_bytes: u64,
    buffer: Buffer,
}

impl Cells {
    pub(crate) fn new(spec: CellsSpec, limit: Limit) -> Cells {
        Cells { spec, limit, occupied_bytes: 0, buffer: Buffer::default() }
    }

    pub(crate) fn enqueue(&mut self, now: Time, packet: Packet, is_idle: bool, fates: &mut Fates) {
        let occupies = self.spec.occupied_bytes(packet.wire_bytes());
        if !is_idle && !self.limit.has_room(self.occupied_bytes, self.buffer.packets(), occupies) {
            return fates.drop(packet);
        }
        self.occupied_bytes += occupies;
        self.buffer.push(now, packet);
    }

    pub(crate) fn dequeue(&mut self) -> Option<Packet> {
        let packet = self.buffer.pop()?;
        self.occupied_bytes -= self.spec.occupied_bytes(packet.wire_bytes());
        Some(packet)
    }

    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.buffer.bytes(), self.buffer.packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::packets::{data, numbers};

    fn admitted(cell_bytes: u64, limit: Limit) -> usize {
        let mut queue = Cells::new(CellsSpec { cell_bytes }, limit);
        let mut fates = Fates::default();
        (0..20).for_each(|seq| queue.enqueue(Time::ZERO, data(0, seq, false), false, &mut fates));
        let left = std::iter::from_fn(|| queue.dequeue()).collect::<Vec<_>>();
        assert_eq!((queue.occupied_bytes, queue.backlog()), (0, (0, 0)));
        assert_eq!(left.len() + fates.dropped.len(), 20);
        assert_eq!(numbers(&left), (0..left.len() as u32).collect::<Vec<_>>());
        left.len()
    }

    /// Packets of 1000 bytes take four cells of 256 bytes, which are 1024, and two of 600, which are 1200.
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
        queue.enqueue(Time::ZERO, data(0, 0, false), true, &mut fates);
        queue.enqueue(Time::ZERO, data(0, 1, false), false, &mut fates);
        assert_eq!((queue.backlog().1, numbers(&fates.dropped)), (1, vec![1]));
    }
}
