//! The links and queues of a network without hosts: packets come from somebody else, by a clock of somebody else.
//!
//! What drops, marks and delays packets is what does so in a simulation: the same engine, links and laws. Whoever drives it says
//! when a packet comes ([`LiveNetwork::handle_packet`]) and what time it is ([`LiveNetwork::handle_time`]), and takes from it
//! what became of packets ([`LiveNetwork::poll_fate`]), each with the instant at which it is due at its host. Time never goes
//! back. What happens between two calls is worked out with the instants at which it happens, so that calls which are late
//! make a packet late once, at its host, and not at every queue on its way.

use crate::config::RunConfig;
use crate::engine::fabric::{AT_HOST, Alarm, Event, Fabric, LinkFabric};
use crate::hosts::Hosts;
use crate::records::LinkTable;
use crate::routing::network::{Loss, Network, NodeId};
use crate::routing::routes::{Routes, link_of};
use crate::simulation::{BuildError, check_paths};
use crate::wire::link::LinkSpec;
use crate::wire::packet::{Fields, Flags, NO_BLOCKS, Packet};
use crate::world::link_specs;
use sparelane_core::{Dur, Rate, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The size of the event tree.
const TREE: usize = 4096;

/// Routes of one pair of hosts at most, where flows are spread over equal paths.
const SPREAD: u32 = 16;

/// The most cables of such a network.
pub const MAX_CABLES: usize = LinkFabric::<TREE>::LINKS / 2;

/// A packet that a host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offered {
    /// The host that sends.
    pub from: NodeId,
    /// The host that it is for, another one.
    pub to: NodeId,
    /// Its flow: what laws with a queue a flow tell packets apart by.
    pub flow: u32,
    /// By what its sender knows it again.
    pub tag: u32,
    /// Bytes on the wire, headers included.
    pub wire_bytes: u16,
    /// Its priority class, 0 the highest; below [`CLASSES`](crate::CLASSES).
    pub class: u8,
    /// Whether it can be marked.
    pub is_ecn_capable: bool,
    /// Whether it is data: losses can be of data alone.
    pub is_data: bool,
    /// Whether it is an acknowledgment of its flow, which laws with a queue a flow tell from the flow's other packets.
    pub goes_back: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is at its host.
    Delivered {
        /// Since when.
        at: Time,
        /// As it was offered.
        tag: u32,
        /// Whether a queue marked it.
        is_marked: bool,
    },
    /// A queue dropped it, or it was lost on a wire.
    Dropped {
        /// As it was offered.
        tag: u32,
    },
}

/// A change of one direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Its rate, at least 1 kb/s. What is left of a packet in transmission goes at this rate, too.
    Rate(Rate),
    /// Its propagation delay. Packets that are on the wire arrive no later than one that is sent now, and keep their order.
    Delay(Dur),
    /// The loss of packets that come from now on.
    Loss(Loss),
    /// Whether all packets that come from now on are lost, whatever the loss.
    Down(bool),
}

/// The network.
#[derive(Debug)]
pub struct LiveNetwork {
    fabric: LinkFabric<TREE>,
    network: Network,
    specs: Vec<LinkSpec>,
    routes: Routes,
    is_spread: bool,
    /// Where the routes begin that packets have taken, by hosts and, where flows are spread, by their hash.
    starts: BTreeMap<(NodeId, NodeId, u32), u32>,
    /// Where the next route goes.
    end: u32,
    seed: u64,
    now: Time,
    fates: VecDeque<Fate>,
}

impl LiveNetwork {
    /// The network of `config`, at rest. Its flows, schemes and observers take no part, and neither do scripted drops.
    ///
    /// # Errors
    /// Not every host has one cable and reaches every other, or there are too many cables.
    pub fn new(config: &RunConfig) -> Result<LiveNetwork, BuildError> {
        let cables = config.network.cables.len();
        if cables > MAX_CABLES {
            return Err(BuildError::TooManyCables { cables, max: MAX_CABLES });
        }
        let routes = check_paths(config)?;
        let hosts = Hosts::new(config.host, &config.hosts_at);
        let mut specs = link_specs(config, &hosts, &BTreeSet::new());
        // Links that hand on could not be changed.
        specs.iter_mut().for_each(|spec| spec.is_watched = true);
        Ok(LiveNetwork {
            fabric: LinkFabric::new(&specs, config.seed, Time::NEVER),
            network: config.network.clone(),
            specs,
            routes,
            is_spread: config.routing == crate::config::Routing::PerFlowEcmp,
            starts: BTreeMap::new(),
            end: 0,
            seed: config.seed,
            now: Time::ZERO,
            fates: VecDeque::new(),
        })
    }

    /// Hosts, routers and cables, as they were in the beginning.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// A host sends a packet at `now`.
    ///
    /// # Panics
    /// There is no path from host to host, as where they are the same.
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
            flags: kind.with_if(offered.is_ecn_capable, Flags::ECN_CAPABLE),
            class: offered.class,
        });
        self.fabric.send(self.now, packet);
        self.take_dropped();
    }

    /// It is `now`: all that happens by then has happened.
    pub fn handle_time(&mut self, now: Time) {
        self.now = self.now.max(now);
        if self.fabric.next_time() > self.now {
            return;
        }
        self.fabric.arm(Alarm::Pause, self.now);
        while let Some((at, event)) = self.fabric.next() {
            match event {
                Event::Delivered(packet) | Event::AtInterface(packet) => {
                    let is_marked = packet.flags().has(Flags::MARKED);
                    self.fates.push_back(Fate::Delivered { at, tag: packet.seq(), is_marked });
                }
                Event::Alarm(_) => break,
                Event::Idle(_) => {}
            }
        }
        self.take_dropped();
    }

    /// What became of one of the packets, in order.
    pub fn poll_fate(&mut self) -> Option<Fate> {
        self.fates.pop_front()
    }

    /// When something happens next, at the earliest; far ahead where nothing does.
    pub fn next_time(&self) -> Time {
        self.fabric.next_time()
    }

    /// At `now`, the direction of cable number `cable` in which `from` sends changes.
    pub fn change(&mut self, now: Time, cable: usize, from: NodeId, change: Change) {
        self.handle_time(now);
        let (link, seed, now) = (link_of(&self.network, cable, from), self.seed, self.now);
        let spec = &mut self.specs[link as usize];
        match change {
            Change::Rate(rate) => spec.rate = rate,
            Change::Delay(delay) => spec.delay = delay,
            Change::Loss(_) | Change::Down(_) => {}
        }
        self.fabric.change_link(link, |link_itself| match change {
            Change::Rate(_) | Change::Delay(_) => link_itself.retune(now, spec),
            Change::Loss(loss) => link_itself.set_loss(loss, seed, u64::from(link)),
            Change::Down(is_down) => link_itself.set_down(is_down),
        });
    }

    /// What the links counted until `now`, one row per direction of a cable, with the rates that they have then.
    pub fn link_table(&mut self, now: Time) -> LinkTable {
        self.handle_time(now);
        self.fabric.settle(self.now);
        self.take_dropped();
        let mut table = LinkTable::default();
        for (number, spec) in (0..).zip(&self.specs) {
            let cable = &self.network.cables[number as usize / 2];
            let (from, to) = if number % 2 == 0 { (cable.a, cable.b) } else { (cable.b, cable.a) };
            table.add(from, to, spec.rate, &self.fabric.counts(self.now, number));
        }
        table
    }

    /// Packets that came and neither were dropped nor have arrived.
    pub fn held_packets(&self) -> u64 {
        (0..self.specs.len() as u32).map(|link| self.fabric.held_packets(link)).sum()
    }

    fn take_dropped(&mut self) {
        while let Some(packet) = self.fabric.take_dropped() {
            self.fates.push_back(Fate::Dropped { tag: packet.seq() });
        }
    }

    /// Where the route of a packet begins.
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
