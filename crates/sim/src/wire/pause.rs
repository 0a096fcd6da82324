//! PAUSE: link-level flow control (IEEE 802.3x, annex 31B of IEEE 802.3).
//!
//! A router whose output queue grows to XOFF sends a PAUSE frame back over the cable that a packet came from. The other
//! end of the cable then begins no transmission for the time in the frame. Once the queue has drained to XON, the router
//! ends the pause by a frame with a time of zero. While a queue stays above XON, the frame is repeated after half of
//! its time.
//!
//! Frames are sent before waiting packets and after the packet in transmission, also by a paused transmitter, and take
//! the delay of the cable. They have 64 bytes and are never lost. A pause stops all classes.
//!
//! Priority-based flow control (PFC, IEEE 802.1Qbb) pauses each class on its own. A router counts the waiting bytes of
//! each class by the cable that they came over. A count that reaches XOFF pauses the class on that cable, and one that
//! has fallen to XON ends the pause. A packet of a lossless class waits without regard to the limit of its output queue.
//! It is dropped only if its count would exceed XOFF plus headroom. As in all queues, the packet in transmission does not
//! count. The pause of a class lasts until a frame ends it: the repeated frames of real devices, which keep a pause from
//! expiring, are left out.

use crate::routing::network::Limit;
use sparelane_core::{Dur, Rate};

/// The size of a PAUSE frame in bytes, without preamble, as all packets of the simulator.
pub(crate) const FRAME_BYTES: u64 = 64;

/// The unit of the time in a frame is the time of 512 bits.
const QUANTUM_BYTES: u64 = 64;

/// The thresholds and the pause time of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseSpec {
    /// The backlog of an output queue of the receiving router from which on it pauses the cable.
    pub xoff: Limit,
    /// The backlog down to which a pause ends; below `xoff`.
    pub xon: Limit,
    /// The pause time of a frame in times of 512 bits, at least one.
    pub quanta: u16,
}

/// The thresholds of priority-based flow control on a cable, for each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcSpec {
    /// The lossless classes, one bit each.
    pub classes: u8,
    /// The waiting bytes of a class from one cable from which on the class is paused there.
    pub xoff_bytes: u64,
    /// The bytes down to which the pause lasts; below `xoff_bytes`.
    pub xon_bytes: u64,
    /// The room above `xoff_bytes` for packets that arrive until the other end has stopped.
    pub headroom_bytes: u64,
}

impl PfcSpec {
    /// Returns true if a class is lossless.
    pub(crate) fn is_lossless(&self, class: u8) -> bool {
        self.classes >> class & 1 == 1
    }
}

impl PauseSpec {
    /// The length of a pause of a transmitter of `rate`.
    pub(crate) fn length(rate: Rate, quanta: u16) -> Dur {
        rate.byte_time().of(QUANTUM_BYTES * u64::from(quanta))
    }
}

/// Returns true if a backlog is at a threshold or below.
pub(crate) fn is_down_to(limit: Limit, bytes: u64, packets: u64) -> bool {
    match limit {
        Limit::Bytes(limit) => bytes <= limit,
        Limit::Packets(limit) => packets <= limit,
    }
}
