//! The configuration of one run: network, queues, hosts, schemes, flows, observers.
//!
//! These types are plain data without names or units of a scenario file; the crate `sparelane-scenario` builds them
//! from text.

use crate::cross::CrossTraffic;
use crate::flow::FlowSource;
use crate::hosts::{HostAt, HostSpec};
use crate::observe::Observer;
use crate::routing::network::{Limit, Loss, Network, NodeId};
use crate::wire::fault::Drop;
use crate::wire::memory::SwitchSpec;
use crate::wire::qdisc::ActiveSpec;
use crate::wire::telemetry::TelemetryKind;
use sparelane_cc::Values;
use sparelane_cc::{Blueprint, Built, Controller, Registry};
use sparelane_core::{Dur, Rate, Stream, Time};
use sparelane_transport::TransportConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The order in which an output queue sends packets, and its rule for drops.
#[derive(Clone, Debug)]
pub enum Discipline {
    /// First in, first out; a packet that does not fit is dropped.
    Fifo,
    /// Strict priority over one shared buffer: the lowest class number leaves first. A packet that does not fit pushes
    /// out the newest packets of the lowest class, if that class is lower than its own (see [`QueueSpec::push_out`]).
    Priority,
    /// An active queue management law.
    Active(Arc<dyn ActiveSpec>),
}

impl Discipline {
    /// An active queue management law with these settings.
    pub fn of(spec: impl ActiveSpec) -> Discipline {
        Discipline::Active(Arc::new(spec))
    }

    /// The law, if the discipline is an active one.
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

/// Parameters of the rate that an RCP output queue computes for its flows: see `wire/rcp_meter.rs`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcpSpec {
    /// Share of the spare capacity that is handed out per round trip.
    pub alpha: f64,
    /// Share of the standing queue that is drained per round trip.
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
    /// The size, unless a cable gives its own.
    pub limit: Limit,
    /// Marks packets of ECN-capable flows that find this backlog or more on arrival, summed over all classes (FIFO and
    /// priority only).
    pub mark_at: Option<Limit>,
    /// Marks packets of ECN-capable flows with a probability that rises with the backlog of their class, at routers with
    /// priority-based flow control.
    pub mark_ramp: Option<MarkRamp>,
    /// Drops packets of class 1 and below on arrival, like a network border that refuses low-priority traffic.
    pub bars_low_priority: bool,
    /// If true, packets of lower classes make room for higher ones. If false, a packet that does not fit is dropped
    /// (priority only).
    pub push_out: bool,
    /// The free space that a packet needs to be admitted (FIFO and priority only).
    pub room: RoomNeeded,
    /// Parameters of RCP's rate computation; `None` computes no rate.
    pub rcp: Option<RcpSpec>,
    /// The bytes that in-band telemetry counts, at routers with a FIFO or priority queue.
    pub telemetry: TelemetryKind,
}

impl QueueSpec {
    /// Returns true if the queue writes in-band telemetry into packets of flows that need it.
    pub fn writes_telemetry(&self) -> bool {
        self.discipline.active().is_none() && self.telemetry != TelemetryKind::Off
    }

    /// A FIFO queue of this size, which neither marks nor refuses classes.
    pub(crate) fn fifo(limit: Limit) -> QueueSpec {
        QueueSpec {
            discipline: Discipline::Fifo,
            limit,
            mark_at: None,
            mark_ramp: None,
            bars_low_priority: false,
            push_out: true,
            room: RoomNeeded::Packet,
            rcp: None,
            telemetry: TelemetryKind::Port,
        }
    }
}

/// A probability of marks that rises with the backlog, as switches of DCQCN (SIGCOMM 2015 section 3.1) have it: RED without
/// averaging.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkRamp {
    /// The backlog up to which no packet is marked: Kmin.
    pub from_bytes: u64,
    /// The backlog above which every packet is marked: Kmax, at least Kmin.
    pub to_bytes: u64,
    /// The probability of a mark at Kmax: Pmax.
    pub probability: f64,
}

impl MarkRamp {
    /// Decides on the mark of a packet that finds this backlog.
    pub(crate) fn marks(&self, backlog_bytes: u64, stream: &mut Stream) -> bool {
        if backlog_bytes <= self.from_bytes {
            return false;
        }
        if backlog_bytes > self.to_bytes {
            return true;
        }
        let share = (backlog_bytes - self.from_bytes) as f64 / (self.to_bytes - self.from_bytes) as f64;
        stream.unit() < self.probability * share
    }
}

/// The free space, in bytes, that a packet needs to be admitted. Makes no difference if the size is in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomNeeded {
    /// The size of the packet.
    #[default]
    Packet,
    /// The size of the largest packet of the run, whatever the packet. Devices in ns-3 do this: they stop their queue
    /// while a full packet may not fit.
    FullPacket,
}

/// One output queue that overrides the default of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueAt {
    /// The cable, by its place in [`Network::cables`].
    pub cable: usize,
    /// The end of the cable that sends.
    pub from: NodeId,
    /// The queue. Its limit takes precedence over the cable's.
    pub queue: QueueSpec,
}

/// A controller with its settings and its transport, under a name chosen by the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    /// The scenario's name for it; appears in the results.
    pub name: String,
    /// The kind of controller.
    pub controller: Controller,
    /// The registry in which a nested controller is found.
    pub registry: Arc<Registry>,
    /// The controller's own values.
    pub values: Values,
    /// Parameters of the nested controller, if there is one.
    pub inner: Values,
    /// The transport's settings.
    pub transport: Arc<TransportConfig>,
    /// The class on the wire of packets that the controller sends in its class 0; its other classes follow below.
    pub class: u8,
}

impl Scheme {
    /// Builds a controller for the connection of `plan`. Packet sizes and nested parameters are those of the scheme.
    ///
    /// # Errors
    /// The errors of [`Controller::build`].
    pub fn controller_for(&self, plan: Blueprint<'_>) -> Built {
        let registry = &*self.registry;
        let TransportConfig { mss_bytes, header_bytes, sack, .. } = *self.transport;
        let own = Blueprint { mss_bytes, header_bytes, sack, inner: &self.inner, registry, ..plan };
        self.controller.build(&self.values, &own)
    }

    /// Returns true if controllers of the scheme set the departure time of each segment.
    pub(crate) fn schedules_departures(&self) -> bool {
        self.any_controller().is_ok_and(|cc| cc.schedules_departures())
    }

    /// Returns true if controllers of the scheme may run on several threads.
    pub(crate) fn runs_on_any_thread(&self) -> bool {
        self.any_controller().is_ok_and(|cc| !cc.needs_one_thread())
    }

    /// Returns true if packets of the scheme collect in-band telemetry.
    pub fn wants_telemetry(&self) -> bool {
        self.any_controller().is_ok_and(|cc| cc.needs().telemetry)
    }

    /// Builds a controller for no connection in particular, to query its properties.
    ///
    /// # Errors
    /// The errors of [`Controller::build`].
    pub fn any_controller(&self) -> Built {
        self.controller_for(Blueprint::of_any(self.transport.mss_bytes, &self.inner))
    }
}

/// The choice among several shortest paths (by delay, then hops).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// One path per pair of routers: from the lower-numbered router, the next hop with the lowest number at every step.
    /// The return path is the same.
    #[default]
    SinglePath,
    /// At every router, the exit whose cable comes first in [`Network::cables`], in each direction separately: the
    /// return path may differ. This is ns-3's global routing, whose interfaces are ordered by the creation of their
    /// links.
    FirstCable,
    /// Each flow picks a next hop at every router by a hash of the run's seed and the flow's number, in each direction
    /// separately.
    PerFlowEcmp,
    /// Each packet picks a next hop at random at every router, in each direction. Packets of a flow overtake each other.
    /// A flow uses at most [`MAX_SPRAYED_PATHS`](crate::MAX_SPRAYED_PATHS) paths in each direction.
    Spray,
    /// Like [`Spray`](Routing::Spray), but the packets of a flow take its paths in turn. The flow draws the order of the
    /// paths in each direction.
    SprayRoundRobin,
}

impl Routing {
    /// Returns true if the packets of a flow take several paths.
    #[must_use]
    pub fn is_spray(self) -> bool {
        matches!(self, Routing::Spray | Routing::SprayRoundRobin)
    }
}

/// The response of a host to its interface queue having no room for a full packet. Acknowledgments and cross traffic
/// that do not fit are always dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullInterface {
    /// The sender sends, and the packet is dropped.
    Drop,
    /// The sender waits for room, without any signal to its controller.
    Wait,
    /// The sender waits for room, and its controller gets a congestion signal if it could send otherwise: at most once
    /// per window of data, as in Linux.
    Cut,
}

/// A change of one direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The rate, at least 1 kb/s. The unsent rest of a packet in transmission is sent at this rate, too.
    Rate(Rate),
    /// The propagation delay.
    Delay {
        /// The new delay.
        delay: Dur,
        /// If true, packets on the wire keep their time of arrival, so that packets sent from now on may overtake them.
        /// If false, packets on the wire keep their order, and arrive no later than a packet that is sent now.
        reorders: bool,
    },
    /// The random loss of packets that arrive from now on.
    Loss(Loss),
    /// If true, all packets that arrive from now on are lost, whatever the random loss.
    Down(bool),
}

/// A change at a given time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScriptedChange {
    /// The time of the change, from the start of the run.
    pub at: Time,
    /// The cable, by its place in [`Network::cables`].
    pub cable: usize,
    /// The end of the cable that sends.
    pub from: NodeId,
    /// The change.
    pub change: Change,
}

/// Everything that defines one run.
pub struct RunConfig {
    /// The network.
    pub network: Network,
    /// The choice among shortest paths.
    pub routing: Routing,
    /// Output queues of routers.
    pub router_queue: QueueSpec,
    /// Output queues of hosts.
    pub nic_queue: QueueSpec,
    /// The response of senders to a full interface.
    pub nic_full: FullInterface,
    /// The memory that the output queues of each router share; `None` gives each queue its own.
    pub switch: Option<SwitchSpec>,
    /// Queues that differ from the defaults. The last entry for a queue wins.
    pub queues_at: Vec<QueueAt>,
    /// The hosts.
    pub host: HostSpec,
    /// Hosts that differ from the default. The last entry for a host wins.
    pub hosts_at: Vec<HostAt>,
    /// The schemes that flows refer to.
    pub schemes: Vec<Scheme>,
    /// The flows.
    pub flows: Box<dyn FlowSource>,
    /// Open-loop traffic that belongs to no flow.
    pub cross_traffic: Vec<CrossTraffic>,
    /// Scripted drops.
    pub drops: Vec<Drop>,
    /// Changes of links, in order of time.
    pub changes: Vec<ScriptedChange>,
    /// The end of the run, whether flows have finished or not.
    pub stop: Time,
    /// Seed of every random draw.
    pub seed: u64,
    /// The names of the classes of traffic that flows refer to.
    pub traffic_classes: Vec<String>,
    /// Observers of the run.
    pub observers: Vec<Box<dyn Observer>>,
    /// The number of threads. Results do not depend on it.
    pub threads: Threads,
    /// The machine that the run takes place on.
    pub machine: Machine,
    /// The domain of each node, in place of a computed division of the network. Nodes that cannot be in different domains
    /// are put into one.
    pub domains: Option<Vec<u16>>,
}

/// The machine that a run takes place on. Results do not depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine {
    /// The number of cores; zero if it is not known.
    pub cores: usize,
    /// The time since some instant. With it, a run with several threads finds out whether they make it faster.
    pub clock: Option<fn() -> Duration>,
}

/// The number of threads of a run. With several, a run that is suited to it takes place in as many domains: see
/// [`Simulation::division`](crate::Simulation::division).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// One thread.
    #[default]
    One,
    /// This number of threads, at least one.
    Exactly(usize),
    /// As many threads as the machine has cores, if the run is large enough to gain from them, and otherwise one.
    Auto,
}

impl RunConfig {
    /// The directions of cables, each by its cable and its sending end, on which a change of the delay reorders packets.
    /// Only a decrease does.
    pub(crate) fn reordering_directions(&self) -> BTreeSet<(usize, NodeId)> {
        let (mut delays, mut reordering) = (BTreeMap::new(), BTreeSet::new());
        for change in &self.changes {
            let Change::Delay { delay, reorders } = change.change else { continue };
            let direction = (change.cable, change.from);
            let before = delays.insert(direction, delay).unwrap_or(self.network.cables[change.cable].delay);
            if reorders && delay < before {
                reordering.insert(direction);
            }
        }
        reordering
    }

    /// The number of directions of cables whose packets pass a stage at the far end: those with random delays or
    /// duplicates, and those on which a change of the delay reorders packets.
    pub(crate) fn stages(&self) -> usize {
        let mut staged = self.reordering_directions();
        for (number, cable) in self.network.cables.iter().enumerate() {
            for (effects, from) in cable.effects.iter().zip([cable.a, cable.b]) {
                if effects.as_ref().is_some_and(|effects| effects.has_stage()) {
                    staged.insert((number, from));
                }
            }
        }
        staged.len()
    }
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
