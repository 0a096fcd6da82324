//! The parameters and the counters of a link.

use crate::config::{Change, QueueSpec, RoomNeeded};
#[cfg(test)]
use crate::config::{Discipline, RcpSpec};
use crate::records::CLASSES;
use crate::routing::network::{Limit, Loss, NodeId, Room};
use crate::wire::effects::{Draws, Effects, Gate};
use crate::wire::memory::SharedMemory;
#[cfg(feature = "oracle")]
use crate::wire::packet::Packet;
use crate::wire::pause::{PauseSpec, PfcSpec};
use crate::wire::telemetry::Stamper;
use crate::wire::trace::Trace;
use sparelane_core::{Dur, Rate};
use std::sync::Arc;

/// The parameters of a link.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) rate: Rate,
    /// The delay of the wire; with jitter, the shortest one.
    pub(crate) delay: Dur,
    /// The mean delay.
    pub(crate) mean_delay: Dur,
    /// Effects on packets, if there are any.
    pub(crate) effects: Option<Arc<Effects>>,
    pub(crate) queue: Arc<QueueSpec>,
    pub(crate) limit: Limit,
    pub(crate) loss: Loss,
    /// The least time that a packet occupies the transmitter: the cost of sending for a host's processor.
    pub(crate) min_time: Dur,
    /// The memory that the queue shares with others, if any.
    pub(crate) memory: Option<SharedMemory>,
    /// An observer reads the queue between packets, or packets may be dropped by script: the link must not be fused.
    pub(crate) is_watched: bool,
    /// The thresholds at which the sending end pauses the other end, if it does.
    pub(crate) pauses: Option<PauseSpec>,
    /// Priority-based flow control of the sending end, which pauses classes of the other end, if it has that.
    pub(crate) pfc: Option<PfcSpec>,
    /// The sending router, if it has priority-based flow control.
    pub(crate) pfc_router: Option<NodeId>,
    /// Each class has a queue of its own, which priority-based flow control may pause.
    pub(crate) has_class_queues: bool,
    /// The link may be paused, its queue may pause others, or it writes RCP's rate or telemetry into departing packets.
    /// Packets of a FIFO or priority queue then wait in the queue, because their departure is not known on arrival.
    pub(crate) is_controlled: bool,
    /// The writer of telemetry into departing packets, if some flow needs it and the port has one.
    pub(crate) telemetry: Option<Stamper>,
    /// The link changes during the run: it must not be fused, and no departure is certain before it has happened.
    pub(crate) changes: bool,
    /// Some change of the delay lets packets overtake others. On other links, no change does.
    pub(crate) reorders: bool,
    /// The trace that the transmitter follows, if any; `rate` is then its mean.
    pub(crate) trace: Option<Arc<Trace>>,
    /// The largest packet that any flow sends.
    pub(crate) largest_bytes: u64,
}

impl LinkSpec {
    /// A link with this queue, without effects, shared memory, PAUSE or changes.
    pub(crate) fn plain(rate: Rate, delay: Dur, queue: QueueSpec, largest_bytes: u64) -> LinkSpec {
        LinkSpec {
            rate,
            delay,
            mean_delay: delay,
            effects: None,
            limit: queue.limit,
            queue: Arc::new(queue),
            loss: Loss::NONE,
            min_time: Dur::ZERO,
            memory: None,
            is_watched: false,
            pauses: None,
            pfc: None,
            pfc_router: None,
            has_class_queues: false,
            is_controlled: false,
            telemetry: None,
            changes: false,
            reorders: false,
            trace: None,
            largest_bytes,
        }
    }

    /// Updates the rate or the delay after a change.
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Rate(rate) => self.rate = rate,
            Change::Delay { delay, .. } => (self.delay, self.mean_delay) = (self.shortest(delay), delay),
            Change::Loss(_) | Change::Down(_) => {}
        }
    }

    /// The delay of the wire if the mean delay is `delay`.
    pub(crate) fn shortest(&self, delay: Dur) -> Dur {
        self.effects.as_ref().map_or(delay, |effects| effects.shortest(delay))
    }

    /// Returns true if packets pass a stage at the far end.
    pub(crate) fn has_stage(&self) -> bool {
        self.reorders || self.effects.as_ref().is_some_and(|effects| effects.has_stage())
    }

    /// The random delays and duplicates at the far end of link number `link`, if it has a stage there.
    pub(crate) fn draws(&self, seed: u64, link: u32) -> Option<Draws> {
        let effects = self.effects.clone().unwrap_or_default();
        self.has_stage().then(|| Draws::new(&effects, self.mean_delay, seed, u64::from(link)))
    }

    /// The effects on packets that arrive at link number `link`, if there are any.
    pub(super) fn gate(&self, seed: u64, link: u64) -> Option<Gate> {
        Some(Gate::new(self.effects.as_ref()?, seed, link))
    }

    /// The capacity of the queue, and the free space that a packet needs.
    pub(crate) fn room(&self) -> Room {
        let least_bytes = match self.queue.room {
            RoomNeeded::Packet => 0,
            RoomNeeded::FullPacket => self.largest_bytes,
        };
        Room { limit: self.limit, least_bytes }
    }

    /// The time for which `packet` occupies the transmitter.
    #[cfg(feature = "oracle")]
    pub(crate) fn time_of(&self, packet: &Packet) -> Dur {
        self.rate.byte_time().of(packet.wire_bytes()).max(self.min_time)
    }
}

/// The counters of a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCounts {
    pub(crate) arrived: [u64; CLASSES],
    pub(crate) dropped: [u64; CLASSES],
    pub(crate) lost: u64,
    pub(crate) marked: u64,
    pub(crate) delivered_packets: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) peak_backlog_bytes: u64,
    /// PAUSE frames that arrived for the transmitter, and the time for which pauses kept it silent.
    pub(crate) pause_frames: u64,
    pub(crate) silence: Dur,
    /// Packets that the stage doubled, and packets that left it after one that was sent later (RFC 4737 section 4).
    pub(crate) duplicated: u64,
    pub(crate) reordered: u64,
}

#[cfg(test)]
impl LinkSpec {
    /// A link of 8 Mb/s for tests, on which 1000 bytes take a millisecond, with this delay and a queue of 100 packets.
    pub(crate) fn example(discipline: Discipline, delay: Dur, rcp: Option<RcpSpec>) -> LinkSpec {
        let queue = QueueSpec { discipline, rcp, ..QueueSpec::fifo(Limit::Packets(100)) };
        LinkSpec::plain(Rate::from_mbps(8), delay, queue, 1000)
    }
}
