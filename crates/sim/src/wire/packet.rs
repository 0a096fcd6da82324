//! A packet on the wire, by value.
//!
//! A packet has 32 bytes, half a cache line. Packets are copied from ring to ring at every hop, so a larger one would
//! cost time at every hop. Everything that few packets need is elsewhere: SACK blocks in a slab (`sack_slab`), and a
//! rate header in fields that data packets do not use (`rate_header`). Telemetry is in a slab of its own (`telemetry`).

use sparelane_core::Time;
use sparelane_transport::EcnField;

/// The kind of a packet, and its one-bit fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u8);

impl Flags {
    pub(crate) const DATA: Flags = Flags(0);
    pub(crate) const ACK: Flags = Flags(1);
    pub(crate) const SYN: Flags = Flags(2);
    pub(crate) const SYN_ACK: Flags = Flags(3);
    /// Mask of the two lowest bits, which hold the kind.
    const KIND: u8 = 3;
    /// A retransmission; on an acknowledgment, one caused by a retransmission.
    pub(crate) const RETRANSMISSION: Flags = Flags(4);
    /// The ECN field has two bits, as in IP (RFC 3168 section 5). ECT(0): ECN-capable.
    pub(crate) const ECT_0: Flags = Flags(8);
    /// ECT(1): ECN-capable, with a scalable congestion control (L4S, RFC 9331 section 2).
    pub(crate) const ECT_1: Flags = Flags(16);
    /// CE, congestion experienced: both bits. As a mask, the whole field.
    pub(crate) const CE: Flags = Flags(8 | 16);
    /// Data: the window was reduced. Acknowledgment: echo of a mark.
    pub(crate) const ECN_ANSWER: Flags = Flags(32);
    /// Data: carries the send time instead of SACK blocks. On an acknowledgment: echoes the one-way delay of its
    /// trigger, next to its blocks.
    pub(crate) const STAMPED: Flags = Flags(64);
    /// Carries a rate header: see `rate_header`.
    pub(crate) const RATE_HEADER: Flags = Flags(128);

    #[inline(always)]
    pub(crate) const fn kind(self) -> Flags {
        Flags(self.0 & Self::KIND)
    }

    #[inline(always)]
    pub(crate) const fn has(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the packet can be marked, or is marked: the ECN field is not zero.
    #[inline(always)]
    pub(crate) const fn is_ecn_capable(self) -> bool {
        self.has(Flags::CE)
    }

    /// Returns true if the packet carries a congestion mark (CE).
    #[inline(always)]
    pub(crate) const fn is_marked(self) -> bool {
        self.0 & Flags::CE.0 == Flags::CE.0
    }

    /// Returns the ECN field.
    pub(crate) const fn ecn_field(self) -> EcnField {
        match (self.has(Flags::ECT_0), self.has(Flags::ECT_1)) {
            (false, false) => EcnField::NotEct,
            (true, false) => EcnField::Ect0,
            (false, true) => EcnField::Ect1,
            (true, true) => EcnField::Ce,
        }
    }

    /// Returns true if the ECN field is ECT(1) or CE, by which RFC 9332 section 2.3 selects the L queue.
    #[inline(always)]
    pub(crate) const fn is_l4s(self) -> bool {
        self.has(Flags::ECT_1)
    }

    /// `self`, with `other` set if `condition` is true.
    #[inline(always)]
    pub(crate) const fn with_if(self, condition: bool, other: Flags) -> Flags {
        Flags(self.0 | if condition { other.0 } else { 0 })
    }
}

/// A packet, packed into four words, so that copies and small changes are moves of whole words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// On a link: the arrival time at the far end. In an active queue: the arrival time at the queue.
    pub(crate) at: Time,
    /// Flow, sequence number.
    flow_seq: u64,
    /// Route, trigger.
    route_trigger: u64,
    /// Bytes on the wire, class, flags; blocks.
    rest: u64,
}

/// The fields of a packet before packing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// The flow's slot. For a datagram, the number of its source plus [`DATAGRAMS`].
    pub(crate) flow: u32,
    /// Data: the segment. Acknowledgment: the next segment expected.
    pub(crate) seq: u32,
    /// The segment that caused an acknowledgment. Otherwise: the rate of a rate header, or the number of the entry with
    /// telemetry, if there is one.
    pub(crate) trigger: u32,
    /// Position in the flat table of routes: the link to take next.
    pub(crate) route: u32,
    /// On an acknowledgment: the index of its SACK blocks in the slab, or [`NO_BLOCKS`]. Otherwise: the round-trip time
    /// of a rate header, if there is one.
    pub(crate) blocks: u32,
    /// Bytes on the wire, headers included.
    pub(crate) wire_bytes: u16,
    /// The kind and one-bit fields.
    pub(crate) flags: Flags,
    /// Priority class, 0 the highest.
    pub(crate) class: u8,
}

/// Added to the source's number in the flow field of a datagram. The result is beyond all slots of flows.
pub(crate) const DATAGRAMS: u32 = 1 << 31;

/// The flow field of a PAUSE frame.
const PAUSE: u32 = u32::MAX;

/// Added to the number of a link in the time of a waiting packet that is counted for it.
const COUNTED_FROM: u64 = 1 << 63;

/// The index of a packet without SACK blocks.
pub(crate) const NO_BLOCKS: u32 = u32::MAX;

/// The fields that plain packets of one kind and flow share: flags, class, and no blocks. One comparison of a word
/// recognizes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Template(u64);

impl Template {
    /// The template of packets of this kind and class.
    pub(crate) const fn new(flags: Flags, class: u8) -> Template {
        Template(pair((flags.0 as u32) << FLAGS_SHIFT | (class as u32) << CLASS_SHIFT, NO_BLOCKS))
    }

    /// The flags of the packets.
    pub(crate) const fn flags(self) -> Flags {
        Flags((self.0 >> FLAGS_SHIFT) as u8)
    }
}

const _: () = assert!(size_of::<Packet>() == 32, "a packet outgrew half a cache line");

#[inline(always)]
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

// Both fit into the immediate of one instruction that tests them, which the highest bits of a half-word would not.
const CLASS_SHIFT: u32 = 16;
const FLAGS_SHIFT: u32 = 24;

impl Packet {
    #[inline(always)]
    pub(crate) const fn new(fields: Fields) -> Packet {
        let Fields { flow, seq, trigger, route, blocks, wire_bytes, flags, class } = fields;
        let size_and_flags = wire_bytes as u32 | (class as u32) << CLASS_SHIFT | (flags.0 as u32) << FLAGS_SHIFT;
        Packet {
            at: Time::ZERO,
            flow_seq: pair(flow, seq),
            route_trigger: pair(route, trigger),
            rest: pair(size_and_flags, blocks),
        }
    }

    /// A packet from this template.
    #[inline(always)]
    pub(crate) const fn of(
        template: Template,
        flow: u32,
        seq: u32,
        route: u32,
        trigger: u32,
        wire_bytes: u32,
    ) -> Packet {
        Packet {
            at: Time::ZERO,
            flow_seq: pair(flow, seq),
            route_trigger: pair(route, trigger),
            rest: template.0 | (wire_bytes as u16) as u64,
        }
    }

    /// A PAUSE frame. Its route points beyond the table of routes, as that of a lost packet.
    pub(crate) const fn pause(quanta: u16) -> Packet {
        let (flags, class, blocks) = (Flags::DATA, 0, NO_BLOCKS);
        let (seq, wire_bytes) = (quanta as u32, crate::wire::pause::FRAME_BYTES as u16);
        Packet::new(Fields { flow: PAUSE, seq, trigger: 0, route: 1 << 31, blocks, wire_bytes, flags, class })
    }

    /// The quanta of a PAUSE frame; `None` for any other packet.
    pub(crate) fn pause_quanta(&self) -> Option<u16> {
        (self.flow() == PAUSE).then_some(self.seq() as u16)
    }

    /// The packet with the number of the link that it came over, for which a router with priority-based flow control
    /// counts it while it waits. The number is in the field of the arrival time, which a waiting packet does not use, as a
    /// time beyond every run.
    pub(crate) const fn counted(&self, link: u32) -> Packet {
        Packet { at: Time::from_ps(COUNTED_FROM + link as u64), ..*self }
    }

    /// The link for which a waiting packet is counted.
    pub(crate) const fn counted_for(&self) -> Option<u32> {
        match self.at.as_ps().checked_sub(COUNTED_FROM) {
            Some(link) if link <= u32::MAX as u64 => Some(link as u32),
            _ => None,
        }
    }

    /// Returns true if the packet matches the template.
    #[inline(always)]
    pub(crate) const fn matches(&self, template: Template) -> bool {
        (self.rest ^ template.0) <= u16::MAX as u64
    }

    /// Returns true if the packet matches the template, apart from the field for SACK blocks.
    #[inline(always)]
    pub(crate) const fn matches_except_blocks(&self, template: Template) -> bool {
        (self.rest as u32 ^ template.0 as u32) <= u16::MAX as u32
    }

    /// The slot of its flow, or the number of its source of cross traffic.
    #[inline(always)]
    pub const fn flow(&self) -> u32 {
        self.flow_seq as u32
    }

    /// The low 32 bits of its segment's number. On an acknowledgment: of the next segment expected.
    #[inline(always)]
    pub const fn seq(&self) -> u32 {
        (self.flow_seq >> 32) as u32
    }

    /// Returns true if the packet travels from the flow's receiver to its sender.
    pub const fn goes_back(&self) -> bool {
        self.flags().0 & Flags::ACK.0 != 0
    }

    #[inline(always)]
    pub(crate) const fn trigger(&self) -> u32 {
        (self.route_trigger >> 32) as u32
    }

    #[inline(always)]
    pub(crate) const fn route(&self) -> u32 {
        self.route_trigger as u32
    }

    /// Lets the packet be lost on the wire: its route then points beyond the table of routes.
    pub(crate) const fn lose_on_wire(&mut self) {
        self.route_trigger |= 1 << 31;
    }

    /// Returns true if the packet is to be lost on the wire.
    #[inline(always)]
    pub(crate) const fn is_lost_on_wire(&self) -> bool {
        self.route() >> 31 != 0
    }

    /// Lets the packet pass the stage at the far end of its link (`engine/stages.rs`). As for a lost packet, its route
    /// then points beyond the table of routes.
    pub(crate) const fn stage(&mut self) {
        self.route_trigger |= 1 << 30;
    }

    /// The packet with its route within the table again, if it was to pass a stage.
    pub(crate) const fn unstaged(&self) -> Option<Packet> {
        if self.route() >> 30 != 1 {
            return None;
        }
        let mut packet = *self;
        packet.route_trigger &= !(1 << 30);
        Some(packet)
    }

    /// The packet on its next link, with the arrival time `at`. The route is in the low half of its word, so one
    /// addition advances it.
    #[inline(always)]
    pub(crate) const fn onward(&self, at: Time) -> Packet {
        Packet { at, flow_seq: self.flow_seq, route_trigger: self.route_trigger + 1, rest: self.rest }
    }

    #[inline(always)]
    pub(crate) const fn blocks(&self) -> u32 {
        (self.rest >> 32) as u32
    }

    /// Its size on the wire, bytes, headers included.
    #[inline(always)]
    pub const fn wire_bytes(&self) -> u64 {
        self.rest & 0xffff
    }

    #[inline(always)]
    pub(crate) const fn flags(&self) -> Flags {
        Flags((self.rest >> FLAGS_SHIFT) as u8)
    }

    /// Its priority class on the wire, 0 the highest.
    #[inline(always)]
    pub const fn class(&self) -> u8 {
        (self.rest >> CLASS_SHIFT) as u8
    }

    /// Returns true if the packet is in class 0.
    #[inline(always)]
    pub(crate) const fn is_in_class_0(&self) -> bool {
        self.rest & (u8::MAX as u64) << CLASS_SHIFT == 0
    }

    /// A copy that is made word by word, so that the words go to registers. A copy of the whole goes through memory.
    #[inline(always)]
    pub(crate) const fn in_words(&self) -> Packet {
        let Packet { at, flow_seq, route_trigger, rest } = *self;
        Packet { at, flow_seq, route_trigger, rest }
    }

    /// The packet with its route and its flow field in another domain.
    #[inline(always)]
    pub(crate) const fn in_domain(&self, route: u32, flow: u32) -> Packet {
        let (flow_seq, route_trigger) = (pair(flow, self.seq()), pair(route, self.trigger()));
        Packet { at: self.at, flow_seq, route_trigger, rest: self.rest }
    }

    /// Advances the packet's position in the table of routes.
    pub(crate) const fn advance_route(&mut self, entries: u32) {
        self.route_trigger += entries as u64;
    }

    pub(crate) const fn set_trigger(&mut self, trigger: u32) {
        self.route_trigger = pair(self.route(), trigger);
    }

    pub(crate) const fn set_blocks(&mut self, blocks: u32) {
        self.rest = pair(self.rest as u32, blocks);
    }

    /// The packet with one-bit fields set.
    #[inline(always)]
    pub(crate) const fn with(&self, flags: Flags) -> Packet {
        let mut packet = *self;
        packet.set(flags);
        packet
    }

    /// Lowers the packet's class by `classes`.
    pub(crate) const fn lower(&mut self, classes: u8) {
        self.rest += (classes as u64) << CLASS_SHIFT;
    }

    /// Clears one-bit fields.
    pub(crate) const fn clear(&mut self, flags: Flags) {
        self.rest &= !((flags.0 as u64) << FLAGS_SHIFT);
    }

    /// Sets one-bit fields.
    #[inline(always)]
    pub(crate) const fn set(&mut self, flags: Flags) {
        self.rest |= (flags.0 as u64) << FLAGS_SHIFT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_comes_back_and_a_step_changes_the_route_alone() {
        let mut packet = Packet::new(Fields {
            flow: 0xdead_beef,
            seq: 7,
            trigger: u32::MAX,
            route: 41,
            blocks: NO_BLOCKS,
            wire_bytes: u16::MAX,
            flags: Flags::ACK,
            class: 255,
        });
        packet.set(Flags::CE);
        let mut packet = packet.onward(Time::from_ps(9));
        assert_eq!((packet.flow(), packet.seq(), packet.trigger(), packet.route()), (0xdead_beef, 7, u32::MAX, 42));
        assert_eq!((packet.blocks(), packet.wire_bytes(), packet.class()), (NO_BLOCKS, 65_535, 255));
        assert_eq!(packet.flags(), Flags::ACK.with_if(true, Flags::CE));
        assert!(!packet.is_lost_on_wire());
        packet.lose_on_wire();
        assert!(packet.is_lost_on_wire() && packet.onward(Time::ZERO).is_lost_on_wire());
        assert_eq!((packet.flow(), packet.trigger()), (0xdead_beef, u32::MAX));
        assert!(packet.unstaged().is_none());
    }

    #[test]
    fn a_packet_that_is_to_pass_a_stage_gets_its_route_back() {
        let mut packet = Packet::example(1, 2, 1500, false);
        packet.set_trigger(u32::MAX);
        assert!(packet.unstaged().is_none());
        packet.stage();
        let back = packet.onward(Time::ZERO).unstaged().expect("a staged packet");
        assert_eq!((back.route(), back.trigger(), back.seq()), (1, u32::MAX, 2));
        packet.lose_on_wire();
        assert!(packet.unstaged().is_none() && packet.is_lost_on_wire());
    }

    #[test]
    fn a_packet_of_a_form_differs_in_numbers_alone() {
        let template = Template::new(Flags::ACK, 2);
        let packet = Packet::of(template, 1, 2, 3, 4, 40);
        assert_eq!((packet.flow(), packet.seq(), packet.route(), packet.trigger()), (1, 2, 3, 4));
        assert_eq!((packet.wire_bytes(), packet.flags(), packet.class()), (40, Flags::ACK, 2));
        assert_eq!(packet.blocks(), NO_BLOCKS);
        assert!(packet.matches(template) && packet.matches_except_blocks(template));
        let mut with_blocks = packet;
        with_blocks.set_blocks(7);
        assert!(!with_blocks.matches(template) && with_blocks.matches_except_blocks(template));
        let mut lower = packet;
        lower.lower(1);
        let marked = packet.with(Flags::CE);
        assert!(
            !lower.matches_except_blocks(template)
                && !marked.matches_except_blocks(template)
                && !marked.matches(template)
        );
        let mut cleared = marked;
        cleared.clear(Flags::CE);
        assert!(cleared.matches(template));
    }
}
