//! Packets of hosts in, with the time at which they come; packets for hosts out, when they are due. No clock, no device.
//!
//! What happens between is the network's: its queues see each packet's size, class, flow and whether it can be marked, and the
//! bridge keeps the bytes meanwhile. What it keeps is bounded by [`MAX_HELD_BYTES`], whatever the scenario's queues allow.

use crate::ip;
use crate::plan::{Host, Plan};
use sparelane_core::Time;
use sparelane_scenario::ScriptedChange;
use sparelane_sim::{BuildError, Fate, LinkTable, LiveNetwork, NodeId, Offered};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// The most bytes of packets that are kept at any time, each counted as one of the largest size.
pub const MAX_HELD_BYTES: u64 = 256 << 20;

/// Packets with other code points than those of classes are in this class.
const USUAL_CLASS: u8 = 0;

/// What became of packets, besides what links count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came from hosts.
    pub came: u64,
    /// Packets that went to hosts.
    pub went: u64,
    /// Packets that queues dropped or wires lost.
    pub dropped: u64,
    /// Packets that were no IPv4, or for no host of this network.
    pub foreign: u64,
    /// Packets for which there was no memory: the network then dropped what it should not.
    pub overflowed: u64,
}

/// A packet that is due.
#[derive(Debug)]
pub struct Due<'b> {
    /// Its host, by its place among the hosts.
    pub host: usize,
    /// Since when.
    pub at: Time,
    /// The packet.
    pub bytes: &'b [u8],
}

/// A packet in the network.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    host: usize,
}

/// The bridge.
#[derive(Debug)]
pub struct Bridge {
    network: LiveNetwork,
    nodes: Vec<NodeId>,
    places: BTreeMap<Ipv4Addr, usize>,
    /// The class of each code point.
    classes: [u8; 64],
    changes: VecDeque<ScriptedChange>,
    held: Vec<Held>,
    free: Vec<u32>,
    most_held: usize,
    /// The packet that was given out last.
    lent: Option<u32>,
    counts: Counts,
}

impl Bridge {
    /// The network of `plan`, at rest.
    ///
    /// # Errors
    /// The network is no network, or too large.
    pub fn new(plan: &Plan) -> Result<Bridge, BuildError> {
        let mut classes = [USUAL_CLASS; 64];
        for (class, &code_point) in (0..).zip(&plan.code_points) {
            classes[usize::from(code_point & 63)] = class;
        }
        let place = |(place, host): (usize, &Host)| (host.address, place);
        Ok(Bridge {
            network: LiveNetwork::new(&plan.config)?,
            nodes: plan.hosts.iter().map(|host| host.node).collect(),
            places: plan.hosts.iter().enumerate().map(place).collect(),
            classes,
            changes: plan.changes.iter().copied().collect(),
            held: Vec::new(),
            free: Vec::new(),
            most_held: (MAX_HELD_BYTES / plan.mtu_bytes.max(1)) as usize,
            lent: None,
            counts: Counts::default(),
        })
    }

    /// Host number `host` sends a packet at `now`.
    pub fn handle_packet(&mut self, now: Time, host: usize, bytes: &[u8]) {
        self.handle_time(now);
        self.counts.came += 1;
        let header = ip::read(bytes);
        let known = header.and_then(|header| Some((header, *self.places.get(&header.to)?)));
        let Some((header, to)) = known.filter(|(_, to)| *to != host) else {
            self.counts.foreign += 1;
            return;
        };
        let Some(tag) = self.keep(&bytes[..usize::from(header.bytes)], to) else {
            self.counts.overflowed += 1;
            return;
        };
        let offered = Offered {
            from: self.nodes[host],
            to: self.nodes[to],
            flow: header.flow,
            tag,
            wire_bytes: header.bytes,
            class: self.classes[usize::from(header.dscp)],
            is_ecn_capable: header.is_ecn_capable,
            is_data: header.is_data,
            // Directions are flows of their own: the hash is of addresses in their order.
            goes_back: false,
        };
        self.network.handle_packet(now, &offered);
    }

    /// It is `now`: changes that are due by then happen, each at its instant.
    pub fn handle_time(&mut self, now: Time) {
        while let Some(&change) = self.changes.front().filter(|change| change.at <= now) {
            self.changes.pop_front();
            self.network.change(change.at, change.cable, change.from, change.change);
        }
        self.network.handle_time(now);
    }

    /// The next packet that is due by the last time that was told.
    pub fn poll_packet(&mut self) -> Option<Due<'_>> {
        if let Some(tag) = self.lent.take() {
            self.free.push(tag);
        }
        loop {
            match self.network.poll_fate()? {
                Fate::Dropped { tag } => {
                    self.counts.dropped += 1;
                    self.free.push(tag);
                }
                Fate::Delivered { at, tag, is_marked } => {
                    self.counts.went += 1;
                    self.lent = Some(tag);
                    let held = &mut self.held[tag as usize];
                    if is_marked {
                        ip::mark(&mut held.bytes);
                    }
                    return Some(Due { host: held.host, at, bytes: &held.bytes });
                }
            }
        }
    }

    /// When something happens next, at the earliest.
    pub fn next_time(&self) -> Time {
        self.changes.front().map_or(Time::NEVER, |change| change.at).min(self.network.next_time())
    }

    /// What became of packets.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What links counted until `now`.
    pub fn link_table(&mut self, now: Time) -> LinkTable {
        self.handle_time(now);
        self.network.link_table(now)
    }

    /// A place for a packet, if there is memory for it.
    fn keep(&mut self, bytes: &[u8], host: usize) -> Option<u32> {
        let tag = match self.free.pop() {
            Some(tag) => tag,
            None if self.held.len() < self.most_held => {
                self.held.push(Held::default());
                self.held.len() as u32 - 1
            }
            None => return None,
        };
        let held = &mut self.held[tag as usize];
        held.host = host;
        held.bytes.clear();
        held.bytes.extend_from_slice(bytes);
        Some(tag)
    }
}
