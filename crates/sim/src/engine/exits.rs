//! Packets that leave a domain.
//!
//! All that a packet needs to leave is in the table of routes, behind the end of its route, which is in the cache then: its
//! route and its flow in the other domain, and that domain. It goes straight into the parcel for the other domain, so that
//! the end of a window has nothing left to do for it.

use crate::wire::packet::{Flags, NO_BLOCKS, Packet};
use crate::wire::sack_slab::Entry;
use sparelane_core::{Dur, Time};

/// Packets from one domain to another.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    /// Packets with their time of arrival, each with the place of its link among those of the other domain.
    pub(crate) packets: Vec<(u32, Packet)>,
    /// The places of acknowledgments in `packets` that have an entry in the slab of SACK blocks.
    pub(crate) with_blocks: Vec<u32>,
    /// These entries, once the window has ended.
    pub(crate) blocks: Vec<Entry>,
}

impl Parcel {
    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.packets.clear();
        self.with_blocks.clear();
        self.blocks.clear();
    }
}

/// The other side of a link to another domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    /// The other domain.
    pub(crate) domain: u16,
    /// The place of the link among those of the other domain.
    pub(crate) place: u32,
    /// The time from the one that packets have when they leave until their arrival: the delay of the wire, or zero if they
    /// leave with the time of their arrival.
    pub(crate) delay: Dur,
}

/// The number of entries behind the end of a route at a border: see [`Exits::entries`].
pub(crate) const BEHIND_BORDER: usize = 4;

/// Flag of the domain in these entries: packets leave with the time at which they leave the transmitter.
const WITHOUT_WIRE: u32 = 1 << 31;

/// The exits of a domain, and the packets that have left by them in the current window.
#[derive(Debug)]
pub(crate) struct Exits {
    /// The exit of each link; `None` for links that stay in the domain.
    exits: Vec<Option<Exit>>,
    /// The parcel for each domain.
    parcels: Vec<Parcel>,
    /// The first arrival of a packet of the parcels.
    earliest: Time,
}

impl Exits {
    /// No exits, for a network in one domain.
    pub(crate) const fn none() -> Exits {
        Exits { exits: Vec::new(), parcels: Vec::new(), earliest: Time::NEVER }
    }

    /// The exits of each link to one of `domains` domains.
    pub(crate) fn new(exits: Vec<Option<Exit>>, domains: usize) -> Exits {
        Exits { exits, parcels: (0..domains).map(|_| Parcel::default()).collect(), earliest: Time::NEVER }
    }

    /// The exit by `link`, if it leaves the domain.
    pub(crate) fn by(&self, link: u32) -> Option<Exit> {
        self.exits.get(link as usize).copied().flatten()
    }

    /// The entries behind the end of a route by `link`: the position of the next part of the route, the flow field of its
    /// packets there, the place of the link in the other domain, and that domain.
    pub(crate) fn entries(&self, link: u32, next: u32, flow: u32) -> [u32; BEHIND_BORDER] {
        let Exit { domain, place, delay } = self.exit(link);
        let flag = if delay.is_zero() { 0 } else { WITHOUT_WIRE };
        [next, flow, place, u32::from(domain) | flag]
    }

    fn exit(&self, link: u32) -> Exit {
        self.by(link).unwrap_or_else(|| unreachable!("a route leaves by a link that stays"))
    }

    /// Adds a packet that leaves by `link`. It is at the end of its route in this domain.
    #[inline(always)]
    pub(crate) fn depart(&mut self, link: u32, packet: Packet, routes: &[u32]) {
        let behind = routes.get(packet.route() as usize + 1..);
        let Some(&[next, flow, place, mut domain]) = behind.and_then(|entries| entries.first_chunk()) else {
            unreachable!("a packet left where its route does not")
        };
        let mut packet = packet.in_domain(next, flow);
        if domain & WITHOUT_WIRE != 0 {
            packet.at += self.exit(link).delay;
            domain &= !WITHOUT_WIRE;
        }
        self.earliest = self.earliest.min(packet.at);
        let parcel = &mut self.parcels[domain as usize];
        if packet.flags().kind() == Flags::ACK && packet.blocks() != NO_BLOCKS {
            parcel.with_blocks.push(parcel.packets.len() as u32);
        }
        parcel.packets.push((place, packet));
    }

    /// The parcel for each domain.
    pub(crate) fn parcels(&mut self) -> &mut [Parcel] {
        &mut self.parcels
    }

    /// The first arrival of a packet that has left since the last call.
    pub(crate) fn take_earliest(&mut self) -> Time {
        std::mem::replace(&mut self.earliest, Time::NEVER)
    }
}
