//! Memory that the output queues of one router share.
//!
//! Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6(2),
//! 1998: a packet is admitted while its queue is below T = alpha (B - Q), where B is the memory and Q what all queues hold. A
//! packet must fit what is free, too.
//!
//! As in every queue here, what is in transmission does not count, and where the transmitter is idle nothing is asked.
//! Packets that a priority queue may push out make room in the memory as they do in the buffer.

use crate::routing::network::NodeId;

/// The memory of each router.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchSpec {
    /// B, bytes.
    pub memory_bytes: u64,
    /// alpha, above zero.
    pub share: f64,
}

/// The memory that an output queue shares with the others of its router.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedMemory {
    pub(crate) router: NodeId,
    pub(crate) spec: SwitchSpec,
}

impl SwitchSpec {
    /// Whether a packet may join a queue that holds `own_bytes`, where the others hold `others_bytes`.
    pub(crate) fn admits(&self, own_bytes: u64, others_bytes: u64, packet_bytes: u64) -> bool {
        let free = self.memory_bytes.saturating_sub(own_bytes + others_bytes);
        (own_bytes as f64) < self.share * free as f64 && packet_bytes <= free
    }

    /// The most that one queue can hold where the others are empty: alpha B / (1 + alpha), and the packet that was admitted
    /// just below.
    pub fn most_alone(&self, packet_bytes: u64) -> u64 {
        let threshold = self.memory_bytes as f64 * (self.share / (1.0 + self.share));
        (threshold as u64).saturating_add(packet_bytes).min(self.memory_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With alpha = 1 a queue alone may grow to half of the memory, and two to a third each.
    #[test]
    fn a_queue_grows_to_its_share_of_what_is_free() {
        let memory = SwitchSpec { memory_bytes: 12_000, share: 1.0 };
        assert!(memory.admits(5_999, 0, 1_000) && !memory.admits(6_000, 0, 1_000));
        assert!(memory.admits(3_999, 4_000, 1_000) && !memory.admits(4_000, 4_000, 1_000));
        let greedy = SwitchSpec { share: 8.0, ..memory };
        assert!(greedy.admits(10_000, 0, 1_000) && !greedy.admits(10_700, 0, 1_000));
        // Below the threshold, but with no place for a whole packet.
        assert!(!greedy.admits(0, 11_500, 1_000) && greedy.admits(0, 11_500, 500));
        assert_eq!((memory.most_alone(1_500), greedy.most_alone(1_500)), (7_500, 12_000));
    }
}
