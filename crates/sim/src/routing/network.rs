//! The static network: nodes and full-duplex cables.

use crate::wire::effects::Effects;
use crate::wire::pause::{PauseSpec, PfcSpec};
use crate::wire::trace::Trace;
use sparelane_core::{Dur, Rate};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Index of a node in [`Network::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node's index in [`Network::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// An end of flows. It never forwards.
    Host,
    /// Forwards packets.
    Router,
}

/// A host or a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name, unique among the nodes.
    pub name: String,
    /// Host or router.
    pub kind: NodeKind,
}

/// The size of a queue, without the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes on the wire, headers included.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
}

impl Limit {
    /// Returns true if a packet of `packet_bytes` fits in addition to a backlog of `bytes` in `packets`.
    pub fn has_room(self, bytes: u64, packets: u64, packet_bytes: u64) -> bool {
        match self {
            Limit::Bytes(limit) => bytes + packet_bytes <= limit,
            Limit::Packets(limit) => packets < limit,
        }
    }

    /// Returns true if a backlog of `bytes` in `packets` is above this limit.
    #[inline]
    pub fn is_exceeded(self, bytes: u64, packets: u64) -> bool {
        match self {
            Limit::Bytes(limit) => bytes > limit,
            Limit::Packets(limit) => packets > limit,
        }
    }

    /// Returns true if a backlog of `bytes` in `packets` is at this limit or above.
    #[inline]
    pub fn is_reached(self, bytes: u64, packets: u64) -> bool {
        match self {
            Limit::Bytes(limit) => bytes >= limit,
            Limit::Packets(limit) => packets >= limit,
        }
    }
}

/// The admission rule of a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// The queue's size.
    pub(crate) limit: Limit,
    /// A packet is refused if fewer bytes than this are free, however small it is.
    pub(crate) least_bytes: u64,
}

impl Room {
    /// A rule that admits every packet that fits.
    #[cfg(test)]
    pub(crate) const fn of(limit: Limit) -> Room {
        Room { limit, least_bytes: 0 }
    }

    /// Returns true if a packet of `packet_bytes` is admitted in addition to the backlog.
    #[inline]
    pub(crate) fn has_room(self, bytes: u64, packets: u64, packet_bytes: u64) -> bool {
        self.limit.has_room(bytes, packets, packet_bytes.max(self.least_bytes))
    }
}

/// Random loss on the wire, in one direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Probability that a packet is lost, 0 to 1.
    pub probability: f64,
    /// If true, only data packets can be lost, and neither acknowledgments nor handshakes.
    pub data_only: bool,
}

impl Loss {
    /// No loss.
    pub const NONE: Loss = Loss::of_any(0.0);

    /// The loss of any packet with `probability`.
    pub const fn of_any(probability: f64) -> Loss {
        Loss { probability, data_only: false }
    }
}

/// A full-duplex cable between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cable {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Rate of each direction: from a to b, and from b to a.
    pub rates: [Rate; 2],
    /// Propagation delay of each direction.
    pub delay: Dur,
    /// Size of the output queue of each direction; `None` takes the run's default.
    pub limit: Option<Limit>,
    /// Random loss in each direction: from a to b, and from b to a.
    pub loss: [Loss; 2],
    /// PAUSE, with which a router at either end pauses the other end; `None` disables it.
    pub pause: Option<PauseSpec>,
    /// The thresholds of priority-based flow control at the routers at its ends, if it has that.
    pub pfc: Option<PfcSpec>,
    /// The traces that the directions follow, from a to b and from b to a. The rate of such a direction must be the mean
    /// of its trace.
    pub traces: [Option<Arc<Trace>>; 2],
    /// Effects of the directions on packets, from a to b and from b to a.
    pub effects: [Option<Arc<Effects>>; 2],
}

impl Cable {
    /// The rate of the direction that `from`, one of the ends, sends in.
    pub fn rate_from(&self, from: NodeId) -> Rate {
        self.rates[self.direction_from(from)]
    }

    /// The loss of the direction that `from`, one of the ends, sends in.
    pub fn loss_from(&self, from: NodeId) -> Loss {
        self.loss[self.direction_from(from)]
    }

    /// The direction that `from`, one of the ends, sends in: 0 from a to b, 1 from b to a.
    pub fn direction_from(&self, from: NodeId) -> usize {
        usize::from(self.a != from)
    }

    /// The rate of the slower direction.
    pub fn slowest(&self) -> Rate {
        self.rates[0].min(self.rates[1])
    }

    /// Returns true if the cable has PAUSE or priority-based flow control.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause.is_some() || self.pfc.is_some()
    }
}

/// A network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// Hosts and routers.
    pub nodes: Vec<Node>,
    /// Cables between them.
    pub cables: Vec<Cable>,
}

impl Network {
    /// Adds a node and returns its id.
    pub fn add(&mut self, name: impl Into<String>, kind: NodeKind) -> NodeId {
        self.nodes.push(Node { name: name.into(), kind });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Connects two nodes by a lossless cable with the default queue, of the same rate in both directions.
    pub fn connect(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Dur) -> &mut Cable {
        self.cables.push(Cable {
            a,
            b,
            rates: [rate; 2],
            delay,
            limit: None,
            loss: [Loss::NONE; 2],
            pause: None,
            pfc: None,
            traces: [None, None],
            effects: [None, None],
        });
        let last = self.cables.len() - 1;
        &mut self.cables[last]
    }

    /// Returns true if any cable has PAUSE or priority-based flow control.
    pub fn has_pause(&self) -> bool {
        self.cables.iter().any(Cable::is_paused)
    }

    /// Returns true if any cable has priority-based flow control.
    pub fn has_pfc(&self) -> bool {
        self.cables.iter().any(|cable| cable.pfc.is_some())
    }

    /// The routers at the ends of cables with priority-based flow control.
    pub(crate) fn routers_with_pfc(&self) -> BTreeSet<NodeId> {
        let ends = self.cables.iter().filter(|cable| cable.pfc.is_some()).flat_map(|cable| [cable.a, cable.b]);
        ends.filter(|end| self.nodes[end.index()].kind == NodeKind::Router).collect()
    }

    /// Returns two flags per cable, for the output queues from a to b and from b to a: true if PAUSE or priority-based
    /// flow control affects the queue. It affects both queues of a cable that has it, and all output queues of the routers at its ends, which pause it.
    pub fn queues_with_pause(&self) -> Vec<[bool; 2]> {
        let with_pause = self.cables.iter().filter(|cable| cable.is_paused());
        let ends = with_pause.flat_map(|cable| [cable.a, cable.b]);
        let routers: BTreeSet<_> = ends.filter(|end| self.nodes[end.index()].kind == NodeKind::Router).collect();
        let affected = |cable: &Cable| [cable.a, cable.b].map(|from| cable.is_paused() || routers.contains(&from));
        self.cables.iter().map(affected).collect()
    }

    /// The ids of all hosts, in order.
    pub fn hosts(&self) -> Vec<NodeId> {
        (0..self.nodes.len() as u32).map(NodeId).filter(|id| self.nodes[id.index()].kind == NodeKind::Host).collect()
    }

    /// The ids of all routers, in order.
    pub fn routers(&self) -> Vec<NodeId> {
        (0..self.nodes.len() as u32).map(NodeId).filter(|id| self.nodes[id.index()].kind == NodeKind::Router).collect()
    }

    /// The node called `name`.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|index| NodeId(index as u32))
    }

    /// The node at the other end of a host's first cable.
    pub fn attachment(&self, host: NodeId) -> Option<NodeId> {
        self.cables.iter().find_map(|cable| match host {
            _ if cable.a == host => Some(cable.b),
            _ if cable.b == host => Some(cable.a),
            _ => None,
        })
    }
}
