//! Everything that one run is made of.

use crate::cross::CrossTraffic;
use crate::flow::FlowSource;
use crate::hosts::{HostAt, HostSpec};
use crate::observe::Observer;
use crate::routing::network::{Limit, Network, NodeId};
use crate::wire::fault::Drop;
use crate::wire::memory::SwitchSpec;
use crate::wire::qdisc::ActiveSpec;
use sparelane_cc::Values;
use sparelane_cc::{Blueprint, Built, Controller, Registry};
use sparelane_core::{Dur, Rate, Time};
use sparelane_transport::TransportConfig;
use std::fmt;
use std::sync::Arc;

/// How an output queue orders packets, and which it drops.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// First in, first out; a packet that does not fit is dropped.
    Fifo,
    /// Strict priority over one shared buffer: the lowest class number first. Where a packet does not
    /// fit, the newest packets of the lowest class make room, if that class is lower than the packet's
    /// (see [`QueueSpec::push_out`]).
    Priority,
    /// A law of active queue management.
    Active(Arc<dyn ActiveSpec>),
}

impl Discipline {
    /// A law of active queue management with these settings.
    pub fn of(spec: impl ActiveSpec) -> Discipline {
        Discipline::Active(Arc::new(spec))
    }

    /// The law, if it is one of active queue management.
    pub fn active(&self) -> Option<&dyn ActiveSpec> {
        match self {
            Discipline::Active(spec) => Some(&**spec),
            Discipline::Fifo | Discipline::Priority => None,
        }
    }
}

impl PartialEq for Discipline {
    fn eq(&self, other: &Discipline) -> bool {
        match (self, other) {
            (Discipline::Fifo, Discipline::Fifo) | (Discipline::Priority, Discipline::Priority) => true,
            (Discipline::Active(one), Discipline::Active(another)) => one.equals(&**another),
            _ => false,
        }
    }
}

/// How an output queue computes the rate that RCP allows each of its flows: see `wire/rcp_meter.rs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcpSpec {
    /// Share of the spare capacity that is handed out in a round trip.
    pub alpha: f64,
    /// Share of the standing queue that is taken back in a round trip.
    pub beta: f64,
    /// Share of the link's rate to aim for, above 0.
    pub gamma: f64,
    /// The longest time between updates.
    pub interval: Dur,
    /// The average round-trip time before there is a sample.
    pub initial_rtt: Dur,
    /// The rate at the start of the run, as a share of the link's.
    pub initial_rate: f64,
    /// The least rate.
    pub floor: Rate,
}

impl Default for RcpSpec {
    fn default() -> RcpSpec {
        RcpSpec {
            alpha: 0.4,
            beta: 0.4,
            gamma: 1.0,
            interval: Dur::from_ms(10),
            initial_rtt: Dur::from_ms(200),
            initial_rate: 0.05,
            floor: Rate::from_bps(128_000),
        }
    }
}

/// An output queue.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// The order of service.
    pub discipline: Discipline,
    /// The size, where a cable does not give its own.
    pub limit: Limit,
    /// Marks packets of ECN-capable flows that arrive when so much or more is queued, in all classes together (FIFO
    /// and priority only).
    pub mark_at: Option<Limit>,
    /// Drops packets of class 1 and below as they come: a border that does not let low-priority traffic in.
    pub bars_low_priority: bool,
    /// Whether packets of lower classes make room for others. Where not, what does not fit is dropped (priority only).
    pub push_out: bool,
    /// What must be free for a packet to be admitted (FIFO and priority only).
    pub room: RoomNeeded,
    /// Computes a rate for RCP, if given.
    pub rcp: Option<RcpSpec>,
}

/// How much of a queue's size in bytes must be free for a packet to be admitted. Where the size is in packets, there is no
/// difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomNeeded {
    /// As much as the packet takes.
    #[default]
    Packet,
    /// As much as the largest packet of the run takes, whatever the packet: as where a device stops its queue when a full
    /// packet may not fit, which the devices of ns-3 do.
    FullPacket,
}

/// One output queue that differs from those of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueAt {
    /// The cable, by its place in [`Network::cables`].
    pub cable: usize,
    /// The end of the cable that sends.
    pub from: NodeId,
    /// The queue, whose limit goes before the cable's.
    pub queue: QueueSpec,
}

/// A controller with its settings and its transport, under a name of the scenario's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    /// The scenario's name for it; appears in the results.
    pub name: String,
    /// The kind of controller.
    pub controller: Controller,
    /// Where a controller inside is found.
    pub registry: Arc<Registry>,
    /// The controller's own values.
    pub values: Values,
    /// Values for the controller inside, where there is one.
    pub inner: Values,
    /// The transport's settings.
    pub transport: Arc<TransportConfig>,
    /// The priority class on the wire of what the controller sends in its class 0; its other classes come below.
    pub class: u8,
}

impl Scheme {
    /// A controller of this scheme for the connection of `plan`, whose packet sizes and inner values are the scheme's own.
    ///
    /// # Errors
    /// As [`Controller::build`].
    pub fn controller_for(&self, plan: Blueprint<'_>) -> Built {
        let registry = &*self.registry;
        let (mss_bytes, header_bytes) = (self.transport.mss_bytes, self.transport.header_bytes);
        let own = Blueprint { mss_bytes, header_bytes, inner: &self.inner, registry, ..plan };
        self.controller.build(&self.values, &own)
    }

    /// A controller of this scheme for no connection in particular: enough to learn about it.
    ///
    /// # Errors
    /// As [`Controller::build`].
    pub fn any_controller(&self) -> Built {
        self.controller_for(Blueprint::of_any(self.transport.mss_bytes, &self.inner))
    }
}

/// Which of several shortest paths (by delay, then hops) a flow takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// One path per pair of routers: from the lower-numbered router the next hop with the lowest number at every
    /// step, and the same path back.
    #[default]
    SinglePath,
    /// At every router the exit whose cable comes first in [`Network::cables`], in each direction by itself: as the global
    /// routing of ns-3, whose interfaces have the order in which their links were made. The way back may be another one.
    FirstCable,
    /// Each flow picks a next hop at every router by a hash of the run's seed and its number, in each direction anew.
    PerFlowEcmp,
}

/// What a sender meets where the queue of its interface has no room for a full packet. Acknowledgments and cross traffic that
/// do not fit are always dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullInterface {
    /// What it sends is dropped.
    Drop,
    /// It waits for room, and hears nothing of it.
    Wait,
    /// It waits for room, and is told of congestion if it would send otherwise: at most once a window of data, as in Linux.
    Cut,
}

/// One run.
pub struct RunConfig {
    /// The network.
    pub network: Network,
    /// The choice among shortest paths.
    pub routing: Routing,
    /// Output queues of routers.
    pub router_queue: QueueSpec,
    /// Output queues of hosts.
    pub nic_queue: QueueSpec,
    /// What senders meet at a full one.
    pub nic_full: FullInterface,
    /// The memory that the output queues of each router share, if they do.
    pub switch: Option<SwitchSpec>,
    /// Queues that differ; the last that names a queue decides.
    pub queues_at: Vec<QueueAt>,
    /// The hosts.
    pub host: HostSpec,
    /// Hosts that differ; the last that names a host decides.
    pub hosts_at: Vec<HostAt>,
    /// The schemes that flows refer to.
    pub schemes: Vec<Scheme>,
    /// The flows.
    pub flows: Box<dyn FlowSource>,
    /// What hosts send besides, without flows.
    pub cross_traffic: Vec<CrossTraffic>,
    /// Packets to drop on purpose.
    pub drops: Vec<Drop>,
    /// When the run ends, finished or not.
    pub stop: Time,
    /// Seed of every random draw.
    pub seed: u64,
    /// The names of the classes of traffic that flows refer to.
    pub traffic_classes: Vec<String>,
    /// Who looks into it.
    pub observers: Vec<Box<dyn Observer>>,
}

impl fmt::Debug for RunConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunConfig")
            .field("routing", &self.routing)
            .field("nodes", &self.network.nodes.len())
            .field("cables", &self.network.cables.len())
            .field("schemes", &self.schemes)
            .field("stop", &self.stop)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
