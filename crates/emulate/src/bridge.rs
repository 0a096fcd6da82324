//! The bridge between hosts and the simulated network.
//!
//! It takes packets of hosts with their arrival times, and returns packets for hosts with the times at which they are
//! due. The network's queues see the size, class and flow of a packet, and whether it can be marked. The bridge stores
//! its bytes until it is delivered or dropped. It stores at most [`MAX_STORED_BYTES`], even if the scenario's queues
//! are larger. It uses neither clock nor devices, so tests run in virtual time.

use crate::ip;
use crate::plan::{Host, Plan};
use sparelane_core::Time;
use sparelane_sim::{BuildError, Fate, LinkTable, LiveNetwork, NodeId, Offered, ScriptedChange};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// The limit of stored bytes. Each packet counts as one of the largest size.
pub const MAX_STORED_BYTES: u64 = 256 << 20;

/// The class of packets whose code point belongs to no class.
const DEFAULT_CLASS: u8 = 0;

/// Counts of packets, in addition to the counters of links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that arrived from hosts.
    pub from_hosts: u64,
    /// Packets that were delivered to hosts.
    pub to_hosts: u64,
    /// Packets that queues dropped or cables lost.
    pub dropped: u64,
    /// Packets that were not IPv4, or not addressed to another host of this network.
    pub foreign: u64,
    /// Packets that were dropped for lack of memory, which the simulated network would have accepted.
    pub overflowed: u64,
}

/// A packet that is due at its destination.
#[derive(Debug)]
pub struct Due<'b> {
    /// The index of the destination in [`Plan::hosts`].
    pub host: usize,
    /// The time at which it is due.
    pub at: Time,
    /// The IPv4 packet.
    pub bytes: &'b [u8],
}

/// The bytes and the destination of a packet in the network.
#[derive(Debug, Default)]
struct Stored {
    bytes: Vec<u8>,
    host: usize,
}

/// A simulated network, with the packets that are in it.
#[derive(Debug)]
pub struct Bridge {
    network: LiveNetwork,
    nodes: Vec<NodeId>,
    /// Indices of hosts by their addresses.
    host_of: BTreeMap<Ipv4Addr, usize>,
    /// The class of each code point.
    classes: [u8; 64],
    changes: VecDeque<ScriptedChange>,
    /// Packets by their tags in the network.
    stored: Vec<Stored>,
    /// Tags that are not in use.
    free: Vec<u32>,
    max_stored: usize,
    /// The tag of the packet that was returned last. It is freed on the next call, because the caller still borrows it.
    returned: Option<u32>,
    counts: Counts,
}

impl Bridge {
    /// Builds the network of `plan`, without packets.
    ///
    /// # Errors
    /// The network is invalid or too large.
    pub fn new(plan: &Plan) -> Result<Bridge, BuildError> {
        let mut classes = [DEFAULT_CLASS; 64];
        for (class, &code_point) in (0..).zip(&plan.code_points) {
            classes[usize::from(code_point & 63)] = class;
        }
        let entry = |(index, host): (usize, &Host)| (host.address, index);
        Ok(Bridge {
            network: LiveNetwork::new(&plan.config)?,
            nodes: plan.hosts.iter().map(|host| host.node).collect(),
            host_of: plan.hosts.iter().enumerate().map(entry).collect(),
            classes,
            changes: plan.config.changes.iter().copied().collect(),
            stored: Vec::new(),
            free: Vec::new(),
            max_stored: (MAX_STORED_BYTES / plan.mtu_bytes.max(1)) as usize,
            returned: None,
            counts: Counts::default(),
        })
    }

    /// Handles a packet that the host with index `host` sends at `now`.
    pub fn handle_packet(&mut self, now: Time, host: usize, bytes: &[u8]) {
        self.handle_time(now);
        self.counts.from_hosts += 1;
        let header = ip::read(bytes);
        // A host does not send to itself through its device.
        let known = header.and_then(|header| Some((header, *self.host_of.get(&header.to)?)));
        let Some((header, to)) = known.filter(|(_, to)| *to != host) else {
            self.counts.foreign += 1;
            return;
        };
        let Some(tag) = self.store(&bytes[..usize::from(header.bytes)], to) else {
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
            is_l4s: header.is_l4s,
            is_data: header.is_data,
            // Each direction is a flow of its own, because the hash depends on the order of the addresses.
            goes_back: false,
        };
        self.network.handle_packet(now, &offered);
    }

    /// Advances the network to `now`. Scripted changes until then happen at their exact times.
    pub fn handle_time(&mut self, now: Time) {
        while let Some(&change) = self.changes.front().filter(|change| change.at <= now) {
            self.changes.pop_front();
            self.network.change(change.at, change.cable, change.from, change.change);
        }
        self.network.handle_time(now);
    }

    /// Returns the next packet that is due at the time of the last call of a `handle_*` method, if any.
    pub fn poll_packet(&mut self) -> Option<Due<'_>> {
        if let Some(tag) = self.returned.take() {
            self.free.push(tag);
        }
        loop {
            match self.network.poll_fate()? {
                Fate::Dropped { tag } => {
                    self.counts.dropped += 1;
                    self.free.push(tag);
                }
                Fate::Delivered { at, tag, is_marked } => {
                    self.counts.to_hosts += 1;
                    self.returned = Some(tag);
                    let packet = &mut self.stored[tag as usize];
                    if is_marked {
                        ip::mark(&mut packet.bytes);
                    }
                    return Some(Due { host: packet.host, at, bytes: &packet.bytes });
                }
            }
        }
    }

    /// Returns the earliest time at which the next event can happen, or [`Time::NEVER`].
    pub fn next_time(&self) -> Time {
        self.changes.front().map_or(Time::NEVER, |change| change.at).min(self.network.next_time())
    }

    /// Returns the counts of packets.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the counters of all links until `now`.
    pub fn link_table(&mut self, now: Time) -> LinkTable {
        self.handle_time(now);
        self.network.link_table(now)
    }

    /// Stores a packet for a host and returns its tag, or `None` if the memory limit is reached.
    fn store(&mut self, bytes: &[u8], host: usize) -> Option<u32> {
        let tag = match self.free.pop() {
            Some(tag) => tag,
            None if self.stored.len() < self.max_stored => {
                self.stored.push(Stored::default());
                self.stored.len() as u32 - 1
            }
            None => return None,
        };
        let packet = &mut self.stored[tag as usize];
        packet.host = host;
        // The buffer of an earlier packet is reused.
        packet.bytes.clear();
        packet.bytes.extend_from_slice(bytes);
        Some(tag)
    }
}
