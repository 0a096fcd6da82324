//! The links and queues of a network without hosts, for packets and a clock from outside.
//!
//! Emulation needs the simulator's drops, marks and delays for packets of real programs. This module gives it the same
//! engine, links and queue disciplines. The caller passes packets ([`LiveNetwork::handle_packet`]) and the time
//! ([`LiveNetwork::handle_time`]), and takes the fate of each packet ([`LiveNetwork::poll_fate`]) with the instant at
//! which it is due at its host.
//!
//! Time never goes back. Everything that happens between two calls is computed at its exact instant. A late call
//! therefore delays a packet once, at its host, and not at every queue along its path.

use crate::config::{Change, Routing, RunConfig};
use crate::engine::fabric::{AT_HOST, Alarm, AnnouncedEvent, Event, Fabric, TreeFabric};
use crate::hosts::Hosts;
use crate::records::{LinkColumns, LinkRows, LinkTable};
use crate::routing::network::{Network, NodeId};
use crate::routing::routes::{Routes, link_of};
use crate::simulation::{BuildError, check_paths};
use crate::wire::link::LinkSpec;
use crate::wire::packet::{Fields, Flags, NO_BLOCKS, Packet};
use crate::wire::telemetry::TelemetrySlab;
use crate::world::link_specs;
use sparelane_core::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The size of the event tree.
const TREE: usize = 4096;

/// The most routes per pair of hosts if flows are spread over equal paths. A bound keeps the route table small.
const SPREAD: u32 = 16;

/// The most cables of a live network.
pub const MAX_CABLES: usize = TreeFabric::<TREE>::LINKS / 2;

/// A packet that a host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// The host that sends.
    pub from: NodeId,
    /// The receiving host, a different one.
    pub to: NodeId,
    /// The flow, by which fair-queueing disciplines separate packets.
    pub flow: u32,
    /// The caller's identifier of the packet, returned in its [`Fate`].
    pub tag: u32,
    /// Bytes on the wire, headers included.
    pub wire_bytes: u16,
    /// Its priority class, 0 the highest; below [`CLASSES`](crate::CLASSES).
    pub class: u8,
    /// True if the packet can be marked.
    pub is_ecn_capable: bool,
    /// True if its ECN field is ECT(1) or CE, by which coupled dual queues classify it. Then it can be marked.
    pub is_l4s: bool,
    /// True for data. Random loss can be limited to data.
    pub is_data: bool,
    /// True for an acknowledgment of the flow. Fair-queueing disciplines keep the two directions of a flow apart.
    pub goes_back: bool,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet arrived at its host.
    Delivered {
        /// The time of arrival.
        at: Time,
        /// The tag of the offered packet.
        tag: u32,
        /// True if a queue marked it.
        is_marked: bool,
    },
    /// The packet was dropped by a queue or lost on a wire.
    Dropped {
        /// The tag of the offered packet.
        tag: u32,
    },
}

/// The network.
#[derive(Debug)]
pub struct LiveNetwork {
    fabric: TreeFabric<TREE>,
    network: Network,
    specs: Vec<LinkSpec>,
    routes: Routes,
    is_spread: bool,
    /// The start of each route in use, by pair of hosts and path variant.
    starts: BTreeMap<(NodeId, NodeId, u32), u32>,
    /// The position of the next route in the table.
    end: u32,
    seed: u64,
    now: Time,
    fates: VecDeque<Fate>,
}

impl LiveNetwork {
    /// Builds the network of `config`, without traffic. Flows, schemes, observers, scripted drops and duplicates of
    /// `config` are ignored. So are its changes, which the caller makes ([`LiveNetwork::change`]).
    ///
    /// # Errors
    /// Fails if a host has no or several cables, two hosts have no path, or there are too many cables.
    pub fn new(config: &RunConfig) -> Result<LiveNetwork, BuildError> {
        let cables = config.network.cables.len();
        if cables * 2 + config.stages() > TreeFabric::<TREE>::LINKS {
            return Err(BuildError::TooManyCables { cables, max: MAX_CABLES });
        }
        let routes = check_paths(config)?;
        let hosts = Hosts::new(config.host, &config.hosts_at);
        let mut specs = link_specs(config, &hosts, &BTreeSet::new(), &TelemetrySlab::default());
        // The rate and delay of a fused link cannot change, and watched links are never fused.
        specs.iter_mut().for_each(|spec| spec.is_watched = true);
        Ok(LiveNetwork {
            fabric: TreeFabric::new(&specs, config.seed, Time::NEVER),
            network: config.network.clone(),
            specs,
            routes,
            is_spread: config.routing == Routing::PerFlowEcmp || config.routing.is_spray(),
            starts: BTreeMap::new(),
            end: 0,
            seed: config.seed,
            now: Time::ZERO,
            fates: VecDeque::new(),
        })
    }

    /// Hosts, routers and cables as configured; changes do not appear here.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Accepts a packet that a host sends at `now`.
    ///
    /// # Panics
    /// Panics if no path leads from one host to the other, or both are the same.
    pub fn handle_packet(&mut self, now: Time, offered: &Offered) {
        self.handle_time(now);
        let route = self.route(offered);
        let kind = match (offered.is_data, offered.goes_back) {
            (true, _) => Flags::DATA,
            (false, true) => Flags::ACK,
            (false, false) => Flags::SYN,
        };
        let packet = Packet::new(Fields {
            flow: offered.flow,
            seq: offered.tag,
            trigger: 0,
            route,
            blocks: NO_BLOCKS,
            wire_bytes: offered.wire_bytes,
            flags: kind
                .with_if(offered.is_l4s, Flags::ECT_1)
                .with_if(offered.is_ecn_capable && !offered.is_l4s, Flags::ECT_0),
            class: offered.class,
        });
        self.fabric.send(self.now, packet);
        self.take_dropped();
    }

    /// Advances the network to `now`.
    pub fn handle_time(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.fabric.next_time() > self.now {
            return;
        }
        self.fabric.arm(Alarm::Pause, self.now);
        while let Some((at, event)) = self.fabric.next(|_, _| None) {
            match event {
                Event::Delivered(packet) | Event::AtInterface(packet) => self.deliver(at, packet),
                Event::Announced => match self.fabric.take_announced() {
                    Some(AnnouncedEvent::Delivered(packet) | AnnouncedEvent::AtInterface(packet)) => {
                        self.deliver(at, packet)
                    }
                    // The caller's packets are not copied.
                    Some(AnnouncedEvent::Doubled(..)) | None => {}
                },
                Event::Alarm(_) => break,
                Event::Idle(_) => {}
            }
        }
        self.take_dropped();
    }

    /// Notes that `packet` is at its host.
    fn deliver(&mut self, at: Time, packet: Packet) {
        let is_marked = packet.flags().is_marked();
        self.fates.push_back(Fate::Delivered { at, tag: packet.seq(), is_marked });
    }

    /// The next outcome, in order of time.
    pub fn poll_fate(&mut self) -> Option<Fate> {
        self.fates.pop_front()
    }

    /// A lower bound for the time of the next event, far ahead if nothing is pending.
    pub fn next_time(&self) -> Time {
        self.fabric.next_time()
    }

    /// Changes the direction of cable number `cable` in which `from` sends, at `now`. A change of the delay reorders
    /// packets only if the configuration has such a change of this direction.
    pub fn change(&mut self, now: Time, cable: usize, from: NodeId, change: Change) {
        self.handle_time(now);
        let link = link_of(&self.network, cable, from);
        let spec = &mut self.specs[link as usize];
        spec.apply(change);
        self.fabric.change(self.now, link, change, spec, self.seed);
    }

    /// The counters of all links at `now`, one row per direction of a cable, with the rates at that time.
    pub fn link_table(&mut self, now: Time) -> LinkTable {
        self.handle_time(now);
        self.fabric.settle(self.now);
        self.take_dropped();
        let mut rows = LinkRows::for_links(self.specs.len());
        let stages = self.specs.iter().any(LinkSpec::has_stage);
        let columns = LinkColumns { pause: self.network.has_pause(), stages };
        for (number, spec) in (0..).zip(&self.specs) {
            let cable = &self.network.cables[number as usize / 2];
            let (from, to) = if number % 2 == 0 { (cable.a, cable.b) } else { (cable.b, cable.a) };
            rows.add([from, to], spec.rate, &self.fabric.counts(self.now, number), columns);
        }
        rows.into_table()
    }

    /// Packets in queues and on wires: offered, but neither dropped nor delivered.
    pub fn held_packets(&self) -> u64 {
        let held = |link| self.fabric.held_packets(link) + self.fabric.staged_packets(link);
        (0..self.specs.len() as u32).map(held).sum()
    }

    fn take_dropped(&mut self) {
        while let Some(packet) = self.fabric.take_dropped() {
            self.fates.push_back(Fate::Dropped { tag: packet.seq() });
        }
    }

    /// The position of a packet's route, which is added to the table at first use.
    fn route(&mut self, offered: &Offered) -> u32 {
        let variant = if self.is_spread { offered.flow % SPREAD } else { 0 };
        let key = (offered.from, offered.to, variant);
        if let Some(&start) = self.starts.get(&key) {
            return start;
        }
        let links = self.routes.links(&self.network, offered.from, offered.to, u64::from(variant));
        assert!(links.is_some(), "no path from host {} to host {}", offered.from.0, offered.to.0);
        let links = links.unwrap_or_default();
        let start = self.end;
        self.fabric.set_route(self.now, start, &links, AT_HOST);
        self.starts.insert(key, start);
        self.end += links.len() as u32 + 1;
        start
    }
}
