//! A packet on the wire, by value.
//!
//! 32 bytes, half a cache line: packets are copied from ring to ring at every hop, and larger ones
//! cost time at every hop.

use sparelane_core::Time;

/// What a packet is, and its one-bit fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const DATA: Flags = Flags(0);
    pub(crate) const ACK: Flags = Flags(1);
    pub(crate) const SYN: Flags = Flags(2);
    pub(crate) const SYN_ACK: Flags = Flags(3);
    /// The kind of packet, in the two lowest bits.
    const KIND: u8 = 3;
    /// A retransmission; on an acknowledgment, one caused by a retransmission.
    pub(crate) const RETRANSMISSION: Flags = Flags(4);
    /// The ends understand ECN.
    pub(crate) const ECN_CAPABLE: Flags = Flags(8);
    /// Marked: congestion experienced.
    pub(crate) const MARKED: Flags = Flags(16);
    /// Data: the window was reduced. Acknowledgment: echo of a mark.
    pub(crate) const ECN_ANSWER: Flags = Flags(32);
    /// To be lost on the wire.
    pub(crate) const DOOMED: Flags = Flags(64);

    #[inline(always)]
    pub(crate) const fn kind(self) -> Flags {
        Flags(self.0 & Self::KIND)
    }

    #[inline(always)]
    pub(crate) const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    #[inline(always)]
    pub(crate) const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// `self` and, where `condition` holds, `other`.
    #[inline(always)]
    pub(crate) const fn with_if(self, condition: bool, other: Flags) -> Flags {
        Flags(self.0 | if condition { other.0 } else { 0 })
    }
}

/// The packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packet {
    /// On a link: when it arrives at the far end. In a queue: unused.
    pub(crate) at: Time,
    /// The flow's slot.
    pub(crate) flow: u32,
    /// Data: the segment. Acknowledgment: the next segment expected.
    pub(crate) seq: u32,
    /// Acknowledgment: the segment that caused it.
    pub(crate) trigger: u32,
    /// Position in the flat table of routes: the link to take next.
    pub(crate) route: u32,
    /// Acknowledgment: its SACK blocks in the slab, or [`NO_BLOCKS`].
    pub(crate) blocks: u32,
    /// Bytes on the wire, headers included.
    pub(crate) wire_bytes: u16,
    /// Kind and one-bit fields.
    pub(crate) flags: Flags,
    /// Priority class, 0 the highest.
    pub(crate) class: u8,
}

/// A packet without SACK blocks.
pub(crate) const NO_BLOCKS: u32 = u32::MAX;

const _: () = assert!(size_of::<Packet>() == 32, "a packet outgrew half a cache line");
