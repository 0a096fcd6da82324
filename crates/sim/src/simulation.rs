//! One run, from its configuration to its records.
//!
//! [`Simulation`] is the public face of the crate. It validates a [`RunConfig`], picks an event queue that suits the
//! size of the network, and advances the run in slices, so that a caller can report progress, inspect state or stop
//! early.

use crate::config::{RunConfig, Threads};
#[cfg(not(target_family = "wasm"))]
use crate::domains::fabric::DomainFabric;
#[cfg(not(target_family = "wasm"))]
use crate::domains::{Domains, largest_domain};
use crate::domains::{Unsuited, division_of, hops_in_window};
#[cfg(not(target_family = "wasm"))]
use crate::engine::calendar::Calendar;
#[cfg(not(target_family = "wasm"))]
use crate::engine::event_tree::EventTree;
use crate::engine::fabric::{CalendarFabric, TreeFabric};
use crate::observe::{Flows, View};
use crate::physics::PhysicsViolation;
use crate::records::{CLASSES, Records};
use crate::routing::network::{NodeId, NodeKind};
use crate::routing::partition::Partition;
use crate::routing::routes::Routes;
#[cfg(not(target_family = "wasm"))]
use crate::world::Parts;
use crate::world::World;
use sparelane_cc::CongestionControl;
use sparelane_core::{Dur, Time};
use sparelane_transport::MAX_HEADER_BYTES;
use std::collections::BTreeMap;
use thiserror::Error;

/// The reason that a configuration cannot run.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// A scheme's controller cannot be built.
    #[error("scheme \"{scheme}\": {source}")]
    Controller {
        /// The scheme.
        scheme: String,
        /// The parameter or combination that the controller rejects.
        source: sparelane_cc::BuildError,
    },
    /// Two hosts have no path between them.
    #[error("no path leads from host \"{from}\" to host \"{to}\"")]
    Unreachable {
        /// One host.
        from: String,
        /// The other.
        to: String,
    },
    /// A host has more or fewer cables than one.
    #[error("host \"{host}\" has {cables} cables; a host has exactly one")]
    Attachment {
        /// The host.
        host: String,
        /// Its cables.
        cables: usize,
    },
    /// A segment and its header do not fit into a packet.
    #[error(
        "scheme \"{scheme}\": segments of {mss_bytes} bytes and headers of {header_bytes}; allowed: from 1, headers up to \
         {MAX_HEADER_BYTES}, together up to {MAX_PACKET_BYTES}"
    )]
    SegmentSize {
        /// The scheme.
        scheme: String,
        /// The segment size.
        mss_bytes: u64,
        /// The size of its header.
        header_bytes: u64,
    },
    /// A scheme sends in a class that does not exist.
    #[error("scheme \"{scheme}\" sends in class {class}; there are classes 0 to {}", CLASSES - 1)]
    Class {
        /// The scheme.
        scheme: String,
        /// Its lowest class, as a number on the wire.
        class: usize,
    },
    /// Delays are measured, but the scheme's packets have no field for a send time: RCP's rate header occupies it.
    #[error("delays cannot be measured under scheme \"{scheme}\": the rate header takes the place of the time stamp")]
    Unmeasurable {
        /// The scheme.
        scheme: String,
    },
    /// Packets are logged, but the scheme's packets have no field for a send time, which tells them apart.
    #[error("packets cannot be logged under scheme \"{scheme}\": the rate header takes the place of the time stamp")]
    Unlogged {
        /// The scheme.
        scheme: String,
    },
    /// A queue that PAUSE affects is an active one.
    #[error("the queue of \"{node}\" towards \"{next}\" decides by time or by chance, which excludes PAUSE")]
    ActiveQueueWithPause {
        /// The node that sends.
        node: String,
        /// The node at the other end of the cable.
        next: String,
    },
    /// The network has more cables than the event queue has sources for.
    #[error("{cables} cables; at most {max} in one run")]
    TooManyCables {
        /// Cables given.
        cables: usize,
        /// The most that are allowed.
        max: usize,
    },
}

/// The largest packet, header included.
pub const MAX_PACKET_BYTES: u64 = u16::MAX as u64;

/// The state of a run after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// True once the run has ended.
    pub finished: bool,
}

// Sizes of the event tree, in nodes: twice the number of leaves. Each size is a separate instance of the engine, in
// which loops over levels unroll and indices need no bounds checks. A network that needs a larger tree than the largest
// is faster with a calendar: with 12,000 links by a factor of 1.6, and with 4,000 links by none.
const SMALL: usize = 128;
const MEDIUM: usize = 512;
const LARGE: usize = 4096;
const HUGE: usize = 8192;

/// The number of packet-hops in a window, for each domain and at full load, from which a run uses all cores by itself. This
/// is a choice, not a measured limit: `docs/speed-and-ns3.md` has a run that gains with fewer.
const GAINFUL_HOPS: u64 = 500;

/// The most cables of one network: each takes two sources of the calendar.
pub const MAX_CABLES: usize = CalendarFabric::LINKS / 2;

/// A world with an event queue that suits its number of links. WebAssembly has no threads, so it has no divided ones,
/// which would be a third of the code.
enum AnyWorld {
    Small(World<TreeFabric<SMALL>>),
    Medium(World<TreeFabric<MEDIUM>>),
    Large(World<TreeFabric<LARGE>>),
    Huge(World<TreeFabric<HUGE>>),
    Vast(World<CalendarFabric>),
    #[cfg(not(target_family = "wasm"))]
    MediumDivided(Domains<EventTree<MEDIUM>>),
    #[cfg(not(target_family = "wasm"))]
    LargeDivided(Domains<EventTree<LARGE>>),
    #[cfg(not(target_family = "wasm"))]
    HugeDivided(Domains<EventTree<HUGE>>),
    #[cfg(not(target_family = "wasm"))]
    VastDivided(Domains<Calendar>),
}

/// Evaluates one expression for a world of any size.
macro_rules! with_world {
    ($any:expr, $world:ident => $body:expr) => {
        match $any {
            AnyWorld::Small($world) => $body,
            AnyWorld::Medium($world) => $body,
            AnyWorld::Large($world) => $body,
            AnyWorld::Huge($world) => $body,
            AnyWorld::Vast($world) => $body,
            #[cfg(not(target_family = "wasm"))]
            AnyWorld::MediumDivided($world) => $body,
            #[cfg(not(target_family = "wasm"))]
            AnyWorld::LargeDivided($world) => $body,
            #[cfg(not(target_family = "wasm"))]
            AnyWorld::HugeDivided($world) => $body,
            #[cfg(not(target_family = "wasm"))]
            AnyWorld::VastDivided($world) => $body,
        }
    };
}

/// The division of a run into domains, which its threads simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The number of domains.
    pub domains: usize,
    /// The number of threads.
    pub threads: usize,
    /// The number of threads that was asked for; `threads` if the size of the run decides.
    pub asked: usize,
    /// The least delay between domains, for which each can run on its own.
    pub lookahead: Dur,
    /// The reason for a single domain, if more threads were asked for.
    pub unsuited: Option<Unsuited>,
}

/// A run.
pub struct Simulation {
    world: AnyWorld,
    division: Division,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let now = with_world!(&self.world, world => world.now);
        f.debug_struct("Simulation").field("now", &now).finish_non_exhaustive()
    }
}

impl Simulation {
    /// Builds the network and the flow source; nothing has happened yet.
    ///
    /// # Errors
    /// A scheme cannot be built, or the network is not one in which every host reaches every other.
    pub fn new(mut config: RunConfig) -> Result<Simulation, BuildError> {
        let routes = check(&config)?;
        let (asked, must_gain) = match config.threads {
            Threads::One => (1, false),
            Threads::Exactly(threads) => (threads.max(1), false),
            Threads::Auto => (config.machine.cores.max(1), true),
        };
        // A division that the caller made is a division on one thread, too.
        if asked < 2 && config.domains.is_none() {
            return Ok(Simulation::undivided(config, routes));
        }
        // No window is longer than the longest delay. This spares small runs the division.
        let longest = config.network.cables.iter().map(|cable| cable.delay).max().unwrap_or_default();
        if must_gain && config.domains.is_none() && hops_in_window(&config.network, 2, longest) < GAINFUL_HOPS {
            return Ok(Simulation::undivided(config, routes));
        }
        Ok(match Simulation::partition(&mut config, &routes, asked) {
            Ok(partition)
                if !must_gain
                    || hops_in_window(&config.network, partition.domains, partition.lookahead) >= GAINFUL_HOPS =>
            {
                Simulation::divided(config, routes, asked, &partition)
            }
            Err(reason) if !must_gain => {
                let mut simulation = Simulation::undivided(config, routes);
                (simulation.division.asked, simulation.division.unsuited) = (asked, Some(reason));
                simulation
            }
            _ => Simulation::undivided(config, routes),
        })
    }

    /// A run in a single domain.
    fn undivided(config: RunConfig, routes: Routes) -> Simulation {
        let links = config.network.cables.len() * 2 + config.stages();
        let world = if links <= TreeFabric::<SMALL>::LINKS {
            AnyWorld::Small(World::new(config, routes))
        } else if links <= TreeFabric::<MEDIUM>::LINKS {
            AnyWorld::Medium(World::new(config, routes))
        } else if links <= TreeFabric::<LARGE>::LINKS {
            AnyWorld::Large(World::new(config, routes))
        } else if links <= TreeFabric::<HUGE>::LINKS {
            AnyWorld::Huge(World::new(config, routes))
        } else {
            AnyWorld::Vast(World::new(config, routes))
        };
        Simulation {
            world,
            division: Division { domains: 1, threads: 1, asked: 1, lookahead: Dur::MAX, unsuited: None },
        }
    }

    /// A run in one domain: WebAssembly has no threads.
    #[cfg(target_family = "wasm")]
    fn divided(config: RunConfig, routes: Routes, _asked: usize, _partition: &Partition) -> Simulation {
        Simulation::undivided(config, routes)
    }

    /// A run in the domains of `partition`, on up to `asked` threads.
    #[cfg(not(target_family = "wasm"))]
    fn divided(config: RunConfig, routes: Routes, asked: usize, partition: &Partition) -> Simulation {
        let links = largest_domain(&config, partition);
        let machine = config.machine;
        let parts = Parts::of(config, routes);
        let world = if links <= DomainFabric::<EventTree<MEDIUM>>::LINKS {
            AnyWorld::MediumDivided(Domains::new(parts, partition, asked, machine))
        } else if links <= DomainFabric::<EventTree<LARGE>>::LINKS {
            AnyWorld::LargeDivided(Domains::new(parts, partition, asked, machine))
        } else if links <= DomainFabric::<EventTree<HUGE>>::LINKS {
            AnyWorld::HugeDivided(Domains::new(parts, partition, asked, machine))
        } else {
            AnyWorld::VastDivided(Domains::new(parts, partition, asked, machine))
        };
        let threads = asked.min(partition.domains);
        let (domains, lookahead) = (partition.domains, partition.lookahead);
        Simulation { world, division: Division { domains, threads, asked, lookahead, unsuited: None } }
    }

    /// The domains of a run on `threads` threads, or the reason for a single one.
    fn partition(config: &mut RunConfig, routes: &Routes, threads: usize) -> Result<Partition, Unsuited> {
        Unsuited::of(config).map_or(Ok(()), Err)?;
        let partition = division_of(config, routes, threads);
        if partition.domains < 2 { Err(Unsuited::Undivided) } else { Ok(partition) }
    }

    /// The division of the run into domains.
    pub fn division(&self) -> Division {
        self.division
    }

    /// Handles `max_events` events at hosts (a packet that crosses routers counts once), and at least one.
    ///
    /// # Errors
    /// A law of physics was broken: a defect of the simulator.
    pub fn advance(&mut self, max_events: u64) -> Result<Progress, PhysicsViolation> {
        with_world!(&mut self.world, world => {
            let finished = world.advance(max_events)?;
            Ok(Progress { now: world.now, finished })
        })
    }

    /// Runs until everything due by `until` has happened, or the run has ended.
    ///
    /// Slicing does not affect results: a run that is advanced in steps gives the same records as one that is not.
    ///
    /// # Errors
    /// A law of physics was broken: a defect of the simulator.
    pub fn advance_to(&mut self, until: Time) -> Result<Progress, PhysicsViolation> {
        with_world!(&mut self.world, world => {
            let finished = world.advance_to(until)?;
            Ok(Progress { now: world.now, finished })
        })
    }

    /// The state of flows, queues and links now.
    ///
    /// [`Simulation::advance`] may stop in the middle of an instant, with packets of this instant still to be handled.
    /// [`Simulation::advance_to`] stops between instants.
    pub fn view(&mut self) -> View<'_> {
        with_world!(&mut self.world, world => View(world))
    }

    /// Passes the controller of an open flow to `steer`, then lets its sender send what the controller allows. Returns
    /// false if the flow is not open. Downcast the controller to reach its concrete type, as `examples/own-law` does.
    pub fn steer(&mut self, flow: u32, steer: &mut dyn FnMut(&mut dyn CongestionControl)) -> bool {
        with_world!(&mut self.world, world => world.steer(flow, steer))
    }

    /// Ends the run at the current time and returns its records.
    ///
    /// # Errors
    /// A law of physics was broken: a defect of the simulator.
    pub fn finish(self) -> Result<Records, PhysicsViolation> {
        with_world!(self.world, world => world.finish())
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// A law of physics was broken: a defect of the simulator.
    pub fn run(mut self) -> Result<Records, PhysicsViolation> {
        while !self.advance(u64::MAX / 2)?.finished {}
        self.finish()
    }
}

/// Checks everything that would make a run fail before it starts. Returns the routes, with the distances computed for
/// the check.
fn check(config: &RunConfig) -> Result<Routes, BuildError> {
    for scheme in &config.schemes {
        let (name, tcp) = (&scheme.name, &scheme.transport);
        let header_fits = (1..=MAX_HEADER_BYTES).contains(&tcp.header_bytes);
        if tcp.mss_bytes == 0 || !header_fits || tcp.packet_bytes() > MAX_PACKET_BYTES {
            let (mss_bytes, header_bytes) = (tcp.mss_bytes, tcp.header_bytes);
            return Err(BuildError::SegmentSize { scheme: name.clone(), mss_bytes, header_bytes });
        }
        let controller =
            scheme.any_controller().map_err(|source| BuildError::Controller { scheme: name.clone(), source })?;
        let class = usize::from(scheme.class) + usize::from(controller.lowest_class());
        if class >= CLASSES {
            return Err(BuildError::Class { scheme: name.clone(), class });
        }
        if controller.desired_rate().is_some() {
            let interests = || config.observers.iter().map(|observer| observer.interest());
            if interests().any(|interest| interest.packets != Flows::None) {
                return Err(BuildError::Unlogged { scheme: name.clone() });
            }
            if interests().any(|interest| interest.receipts) {
                return Err(BuildError::Unmeasurable { scheme: name.clone() });
            }
        }
    }
    let cables = config.network.cables.len();
    if cables > MAX_CABLES {
        return Err(BuildError::TooManyCables { cables, max: MAX_CABLES });
    }
    check_paths(config)
}

/// Checks that every host has exactly one cable and that consecutive hosts reach each other. Paths lead both ways, so
/// all hosts then reach all.
pub(crate) fn check_paths(config: &RunConfig) -> Result<Routes, BuildError> {
    let network = &config.network;
    let name = |id: NodeId| network.nodes[id.index()].name.clone();
    let mut degree = vec![0; network.nodes.len()];
    for cable in &network.cables {
        degree[cable.a.index()] += 1;
        degree[cable.b.index()] += 1;
    }
    let hosts = network.hosts();
    for &host in &hosts {
        if degree[host.index()] != 1 {
            return Err(BuildError::Attachment { host: name(host), cables: degree[host.index()] });
        }
    }
    if let Some((from, to)) = active_queue_with_pause(config) {
        return Err(BuildError::ActiveQueueWithPause { node: name(from), next: name(to) });
    }
    let routes = Routes::of(network, config.routing, config.seed);
    for pair in hosts.windows(2) {
        if routes.links(network, pair[0], pair[1], 0).is_none() {
            return Err(BuildError::Unreachable { from: name(pair[0]), to: name(pair[1]) });
        }
    }
    Ok(routes)
}

/// The ends of an active queue that PAUSE affects, if there is one.
fn active_queue_with_pause(config: &RunConfig) -> Option<(NodeId, NodeId)> {
    if !config.network.has_pause() {
        return None;
    }
    let differing: BTreeMap<_, _> = config.queues_at.iter().map(|at| ((at.cable, at.from), &at.queue)).collect();
    let cables = config.network.cables.iter().zip(config.network.queues_with_pause()).enumerate();
    let directions = cables.flat_map(|(index, (cable, affected))| {
        [(index, cable.a, cable.b, affected[0]), (index, cable.b, cable.a, affected[1])]
    });
    let mut affected = directions.filter(|&(.., is_affected)| is_affected);
    let found = affected.find(|&(index, from, ..)| {
        let is_host = config.network.nodes[from.index()].kind == NodeKind::Host;
        let usual = if is_host { &config.nic_queue } else { &config.router_queue };
        differing.get(&(index, from)).unwrap_or(&usual).discipline.active().is_some()
    });
    found.map(|(_, from, to, _)| (from, to))
}
