//! Records the packets that hosts send in a run, and their outcomes, so that tests can offer the same packets at the
//! same times to a [`LiveNetwork`](crate::LiveNetwork) and compare.

use crate::config::{Change, RunConfig};
use crate::engine::fabric::{Ahead, Alarm, AnnouncedEvent, Event, Fabric, TreeFabric};
use crate::live::Offered;
use crate::physics::PhysicsViolation;
use crate::records::LinkTable;
use crate::routing::network::NodeId;
use crate::routing::routes::Routes;
use crate::wire::link::{LinkCounts, LinkSpec, PlannedDrop};
use crate::wire::packet::{Flags, Packet};
use crate::world::World;
use sparelane_core::{Rate, Time};
use std::collections::BTreeMap;

/// The values that identify a packet of a run: flow, number of the segment, trigger, flags without marks, class, size.
pub type Identity = [u64; 6];

/// A packet sent by a host.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The time of sending.
    pub at: Time,
    /// The packet. Its tag is its index in the recording.
    pub offered: Offered,
    /// The values that identify it.
    pub identity: Identity,
}

/// The packets of a run, as the network sees them.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Packets that hosts sent, in order.
    pub sent: Vec<Sent>,
    /// Packets that arrived at hosts: time, packet, and whether it was marked.
    pub delivered: Vec<(Time, Identity, bool)>,
    /// Packets that were dropped or lost.
    pub dropped: Vec<Identity>,
    /// The counters of links.
    pub links: LinkTable,
    /// The simulated time at the end.
    pub ended: Time,
}

/// Runs `config`, whose routes must not be spread over equal paths, and records the packets that cross its network.
///
/// # Errors
/// A physical invariant was violated.
pub fn record(config: RunConfig) -> Result<Recording, PhysicsViolation> {
    let routes = Routes::of(&config.network, config.routing, config.seed);
    let ends = config.network.cables.iter().flat_map(|cable| [(cable.a, cable.b), (cable.b, cable.a)]).collect();
    let mut world = World::<Recorded>::new(config, routes);
    world.fabric.ends = ends;
    while !world.advance(u64::MAX / 2)? {}
    world.end_links();
    let mut recording = std::mem::take(&mut world.fabric.recording);
    recording.ended = world.now;
    recording.links = world.finish()?.links;
    Ok(recording)
}

fn identity(packet: &Packet) -> Identity {
    let kind = packet.flags().kind();
    let caused_by = if kind == Flags::ACK { packet.trigger() } else { 0 };
    let flags = u64::from(packet.flags().is_ecn_capable()) | u64::from(packet.goes_back()) << 1;
    let flags = flags | u64::from(kind == Flags::DATA) << 2;
    [
        u64::from(packet.flow()),
        u64::from(packet.seq()),
        u64::from(caused_by),
        flags,
        u64::from(packet.class()),
        packet.wire_bytes(),
    ]
}

pub(crate) struct Recorded {
    inner: TreeFabric<4096>,
    /// The two nodes of each link, sender first.
    ends: Vec<(NodeId, NodeId)>,
    /// The first and the last link of the route that starts at each position.
    routes: BTreeMap<u32, (u32, u32)>,
    recording: Recording,
    /// The time of the last event.
    now: Time,
}

impl Recorded {
    fn note_delivery(&mut self, packet: &Packet) {
        let is_marked = packet.flags().is_marked();
        self.recording.delivered.push((self.now, identity(packet), is_marked));
    }
}

impl Fabric for Recorded {
    fn new(links: &[LinkSpec], seed: u64, stop: Time) -> Recorded {
        Recorded {
            inner: TreeFabric::new(links, seed, stop),
            ends: Vec::new(),
            routes: BTreeMap::new(),
            recording: Recording::default(),
            now: Time::ZERO,
        }
    }

    fn set_route(&mut self, now: Time, at: u32, links: &[u32], last: u32) {
        if let (Some(&first), Some(&final_link)) = (links.first(), links.last()) {
            self.routes.insert(at, (first, final_link));
        }
        self.inner.set_route(now, at, links, last);
    }

    fn send(&mut self, now: Time, packet: Packet) {
        let (first, last) = self.routes[&packet.route()];
        let (from, to) = (self.ends[first as usize].0, self.ends[last as usize].1);
        let flags = packet.flags();
        let offered = Offered {
            from,
            to,
            flow: packet.flow(),
            tag: self.recording.sent.len() as u32,
            wire_bytes: packet.wire_bytes() as u16,
            class: packet.class(),
            is_ecn_capable: flags.is_ecn_capable(),
            is_l4s: flags.is_l4s(),
            is_data: flags.kind() == Flags::DATA,
            goes_back: packet.goes_back(),
        };
        self.recording.sent.push(Sent { at: now, offered, identity: identity(&packet) });
        self.inner.send(now, packet);
    }

    fn next(&mut self, _expect: impl Fn(Ahead, &Packet) -> Option<u32>) -> Option<(Time, Event)> {
        let (at, event) = self.inner.next(|_, _| None)?;
        self.now = at;
        if let Event::Delivered(packet) | Event::AtInterface(packet) = event {
            self.note_delivery(&packet);
        }
        Some((at, event))
    }

    fn take_announced(&mut self) -> Option<AnnouncedEvent> {
        let event = self.inner.take_announced()?;
        if let AnnouncedEvent::Delivered(packet) | AnnouncedEvent::AtInterface(packet) = event {
            self.note_delivery(&packet);
        }
        Some(event)
    }

    fn has_dropped(&self) -> bool {
        self.inner.has_dropped()
    }

    fn take_dropped(&mut self) -> Option<Packet> {
        let packet = self.inner.take_dropped()?;
        self.recording.dropped.push(identity(&packet));
        Some(packet)
    }

    fn arm(&mut self, alarm: Alarm, at: Time) {
        self.inner.arm(alarm, at);
    }

    fn first_link(&self, at: u32) -> u32 {
        self.inner.first_link(at)
    }

    fn is_idle(&mut self, now: Time, link: u32) -> bool {
        self.inner.is_idle(now, link)
    }

    fn free_at(&self, link: u32) -> Option<Time> {
        self.inner.free_at(link)
    }

    fn wake_when_idle(&mut self, now: Time, link: u32) {
        self.inner.wake_when_idle(now, link);
    }

    fn has_room(&mut self, now: Time, link: u32, bytes: u64) -> bool {
        self.inner.has_room(now, link, bytes)
    }

    fn wake_when_room(&mut self, now: Time, link: u32, bytes: u64) {
        self.inner.wake_when_room(now, link, bytes);
    }

    fn change(&mut self, now: Time, link: u32, change: Change, spec: &LinkSpec, seed: u64) {
        self.inner.change(now, link, change, spec, seed);
    }

    fn add_copy(&mut self, now: Time, link: u32, packet: Packet) {
        self.inner.add_copy(now, link, packet);
    }

    fn plan_drop(&mut self, link: u32, planned: PlannedDrop) {
        self.inner.plan_drop(link, planned);
    }

    fn forget_drops(&mut self, link: u32, flow: u32) {
        self.inner.forget_drops(link, flow);
    }

    fn settle(&mut self, now: Time) {
        self.inner.settle(now);
    }

    fn backlog_bytes(&mut self, now: Time, link: u32) -> u64 {
        self.inner.backlog_bytes(now, link)
    }

    fn end(&mut self, now: Time) {
        self.inner.end(now);
    }

    fn explicit_rate(&self, now: Time, link: u32) -> Option<Rate> {
        self.inner.explicit_rate(now, link)
    }

    fn counts(&mut self, now: Time, link: u32) -> LinkCounts {
        self.inner.counts(now, link)
    }

    fn held_packets(&self, link: u32) -> u64 {
        self.inner.held_packets(link)
    }

    fn staged_packets(&self, link: u32) -> u64 {
        self.inner.staged_packets(link)
    }

    fn events(&self) -> u64 {
        self.inner.events()
    }
}
