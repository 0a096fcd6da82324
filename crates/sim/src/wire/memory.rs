//! Memory shared by the output queues of one router.
//!
//! Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6(2),
//! 1998. A packet is admitted while its queue is below T = alpha (B - Q), with B the size of the memory and Q the bytes
//! in all queues. In addition, the packet must fit into the free memory.
//!
//! As in every queue of the simulator, the packet in transmission does not count, and a packet that finds the
//! transmitter idle is not checked. Packets pushed out of a priority queue also free memory.

use crate::routing::network::NodeId;

/// The memory of each router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchSpec {
    /// B, the size of the memory in bytes.
    pub memory_bytes: u64,
    /// alpha, the factor of the threshold, above zero.
    pub share: f64,
}

/// The memory that an output queue shares with the other queues of its router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedMemory {
    pub(crate) router: NodeId,
    pub(crate) spec: SwitchSpec,
}

impl SwitchSpec {
    /// Returns true if a packet may join a queue that holds `own_bytes`, while the others hold `others_bytes`.
    pub(crate) fn admits(&self, own_bytes: u64, others_bytes: u64, packet_bytes: u64) -> bool {
        let free = self.memory_bytes.saturating_sub(own_bytes + others_bytes);
        (own_bytes as f64) < self.share * free as f64 && packet_bytes <= free
    }

    /// The most that one queue can hold while the others are empty: alpha B / (1 + alpha), plus one packet that was
    /// admitted just below the threshold.
    pub fn most_alone(&self, packet_bytes: u64) -> u64 {
        let threshold = self.memory_bytes as f64 * (self.share / (1.0 + self.share));
        (threshold as u64).saturating_add(packet_bytes).min(self.memory_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With alpha = 1, one queue alone may grow to half of the memory, and two to a third each.
    #[test]
    fn a_queue_grows_to_its_share_of_the_free_memory() {
        let memory = SwitchSpec { memory_bytes: 12_000, share: 1.0 };
        assert!(memory.admits(5_999, 0, 1_000) && !memory.admits(6_000, 0, 1_000));
        assert!(memory.admits(3_999, 4_000, 1_000) && !memory.admits(4_000, 4_000, 1_000));
        let greedy = SwitchSpec { share: 8.0, ..memory };
        assert!(greedy.admits(10_000, 0, 1_000) && !greedy.admits(10_700, 0, 1_000));
        // Below the threshold, but without space for a whole packet.
        assert!(!greedy.admits(0, 11_500, 1_000) && greedy.admits(0, 11_500, 500));
        assert_eq!((memory.most_alone(1_500), greedy.most_alone(1_500)), (7_500, 12_000));
    }
}
