//! The processor of a host, which handles received chunks and packets one after another.

use super::Received;
use crate::routing::network::NodeId;
use crate::wire::packet::Packet;
use std::collections::{BTreeMap, VecDeque};

/// A unit of work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Data for a flow. The flow's number tells it from a later flow in the same slot.
    Data { slot: u32, flow: u32, received: Received },
    /// Another packet that an interrupt delivered.
    Packet(Packet),
}

/// The processors of all hosts, each with its queue of work. The first unit in each queue is being processed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processors {
    lines: BTreeMap<NodeId, VecDeque<Work>>,
    /// Packets in all queues, not counting data in chunks.
    packets: u64,
}

impl Processors {
    /// Queues `work` at `host`. Returns true if its processor is idle and starts at once.
    pub(crate) fn put(&mut self, host: NodeId, work: Work) -> bool {
        self.packets += u64::from(matches!(work, Work::Packet(_)));
        let line = self.lines.entry(host).or_default();
        line.push_back(work);
        line.len() == 1
    }

    /// Takes the unit that `host` has just finished. Also returns true if more work waits.
    pub(crate) fn finish(&mut self, host: NodeId) -> Option<(Work, bool)> {
        let line = self.lines.get_mut(&host)?;
        let work = line.pop_front()?;
        self.packets -= u64::from(matches!(work, Work::Packet(_)));
        Some((work, !line.is_empty()))
    }

    /// Packets that wait in processors.
    pub(crate) fn held_packets(&self) -> u64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_takes_one_piece_of_work_after_another() {
        let mut processors = Processors::default();
        let work = |trigger| {
            let mut packet = Packet::default();
            packet.set_trigger(trigger);
            Work::Packet(packet)
        };
        let (here, there) = (NodeId(1), NodeId(2));
        assert_eq!([processors.put(here, work(0)), processors.put(here, work(1))], [true, false]);
        assert!(processors.put(there, work(2)));
        assert_eq!(processors.held_packets(), 3);
        let mut done = || match processors.finish(here)? {
            (Work::Packet(packet), more) => Some((packet.trigger(), more)),
            (Work::Data { .. }, _) => None,
        };
        assert_eq!([done(), done(), done()], [Some((0, true)), Some((1, false)), None]);
        assert_eq!(processors.held_packets(), 1);
    }
}
