//! What a link is made of, and what it counts.

use crate::config::{QueueSpec, RoomNeeded};
use crate::records::CLASSES;
use crate::routing::network::{Limit, Loss, Room};
use crate::wire::memory::SharedMemory;
#[cfg(feature = "oracle")]
use crate::wire::packet::Packet;
use sparelane_core::{Dur, Rate};
use std::sync::Arc;

/// What a link is made of.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    pub(crate) delay: Dur,
    pub(crate) queue: Arc<QueueSpec>,
    pub(crate) limit: Limit,
    pub(crate) loss: Loss,
    /// The least time that a packet takes: what sending costs the processor of a host.
    pub(crate) least: Dur,
    /// The memory that the queue shares with others, if it does.
    pub(crate) memory: Option<SharedMemory>,
    /// Somebody looks at the queue between packets, or picks packets to drop.
    pub(crate) is_watched: bool,
    /// The largest packet that any flow sends.
    pub(crate) largest_bytes: u64,
}

impl LinkSpec {
    /// What the queue has room for.
    pub(crate) fn room(&self) -> Room {
        let least_bytes = match self.queue.room {
            RoomNeeded::Packet => 0,
            RoomNeeded::FullPacket => self.largest_bytes,
        };
        Room { limit: self.limit, least_bytes }
    }

    /// How long `packet` is in transmission.
    #[cfg(feature = "oracle")]
    pub(crate) fn time_of(&self, packet: &Packet) -> Dur {
        self.rate.byte_time().of(packet.wire_bytes()).max(self.least)
    }
}

/// What a link counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCounts {
    pub(crate) arrived: [u64; CLASSES],
    pub(crate) dropped: [u64; CLASSES],
    pub(crate) lost: u64,
    pub(crate) marked: u64,
    pub(crate) delivered_packets: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) peak_backlog_bytes: u64,
}
