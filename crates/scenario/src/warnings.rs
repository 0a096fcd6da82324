//! Warnings about a valid scenario: keys that have no effect in it, and settings that defeat each other.
//!
//! No key is ignored silently. Three mechanisms find the keys without effect:
//!
//! - The document records which values were read ([`Document::unread`]). A key that nothing reads is reported.
//! - Controllers read their parameters by name while they are built ([`Values::recorded`]). A parameter that the controller of a
//!   scheme does not read with its other parameters is reported.
//! - The rules in this module compare settings: tables that later tables override, marking without ECN-capable flows, periods
//!   beyond the end of the run, and so on.
//!
//! Values that are the default, or that turn something off, are not reported. Neither are keys that matter to a scheme
//! that the file declares for workloads to choose. `tests/test_effects.py` changes each key of the schema and demands
//! another digest or a warning.
//!
//! [`Values::recorded`]: sparelane_cc::Values::recorded

mod classes;
mod overridden;
mod parameters;
mod periods;
mod settings;

use crate::links::LINK;
use crate::pause;
use crate::pfc;
use crate::queue_at::{Differing, QUEUE_AT};
use crate::queues::{NIC_QUEUE, QUEUE_KEYS, Queues, ROUTER_QUEUE};
use crate::schemes::Schemes;
use crate::telemetry;
use sparelane_catalogue::queue::Queues as Kinds;
use sparelane_catalogue::schema::{Document, ScenarioError, Section, Warnings};
use sparelane_catalogue::workload::Found;
use sparelane_core::Dur;
use sparelane_sim::{CrossTraffic, Discipline, Network, NodeId, NodeKind, QueueSpec, Routing, Scheme};
use std::collections::{BTreeMap, BTreeSet};

/// The settings that the rules compare.
pub(crate) struct Facts<'a> {
    /// The whole file.
    pub root: &'a Section<'a>,
    /// The length of the run.
    pub duration: Dur,
    /// The choice among equal-cost paths.
    pub routing: Routing,
    /// The network.
    pub network: &'a Network,
    /// The schemes.
    pub schemes: &'a Schemes,
    /// The kinds of queue.
    pub kinds: &'a Kinds,
    /// `[queue]` and `[nic]`.
    pub queues: &'a Queues,
    /// `[[queue_at]]`.
    pub differing: &'a [Differing],
    /// The routers' queues.
    pub ports: Ports,
    /// The index of the `[[link]]` table that sets the limit of each cable.
    pub limits: &'a [Option<usize>],
    /// The index of the `[[link]]` table that sets the PAUSE of each cable.
    pub pauses: &'a [Option<usize>],
    /// The workloads, in the order of their tables.
    pub workloads: &'a [Found],
    /// All sources of cross traffic.
    pub cross_traffic: &'a [CrossTraffic],
}

/// The output queues of all routers, and the tables that decide on them.
pub(crate) struct Ports {
    /// The number of these queues.
    pub count: usize,
    /// Queues that a `[[queue_at]]` decides on: the index of the last table that names them.
    pub decided: BTreeMap<(usize, NodeId), usize>,
}

impl Ports {
    /// The ports of `network`, of which `differing` decides on some under `seed`.
    pub fn of(network: &Network, differing: &[Differing], seed: u64) -> Ports {
        let is_router = |end: NodeId| network.nodes[end.index()].kind == NodeKind::Router;
        let count =
            network.cables.iter().map(|cable| [cable.a, cable.b].into_iter().filter(|&end| is_router(end)).count());
        let mut decided = BTreeMap::new();
        for (place, queue) in differing.iter().enumerate() {
            decided.extend(queue.places(network, seed).into_iter().map(|port| (port, place)));
        }
        Ports { count: count.sum(), decided }
    }

    /// Returns true if `[queue]` decides on any.
    pub fn has_usual(&self) -> bool {
        self.decided.len() < self.count
    }

    /// The `[[queue_at]]` tables that decide on any.
    pub fn deciding(&self) -> BTreeSet<usize> {
        self.decided.values().copied().collect()
    }
}

impl<'a> Facts<'a> {
    /// The schemes that flows can have, each with its index.
    fn used(&self) -> impl Iterator<Item = (usize, &'a Scheme)> {
        let used: BTreeSet<u16> = self.workloads.iter().flat_map(|found| found.schemes.iter().copied()).collect();
        self.schemes.all.iter().enumerate().filter(move |(place, _)| used.contains(&(*place as u16)))
    }

    /// The settings of routers' queues, except for limits.
    fn router_queues(&self) -> impl Iterator<Item = &QueueSpec> {
        let usual = self.ports.has_usual().then_some(&self.queues.router);
        let deciding = self.ports.deciding();
        usual.into_iter().chain(deciding.into_iter().map(|place| self.differing[place].queue()))
    }

    /// The settings of the output queue of a router towards a cable, except for its limit.
    pub(crate) fn queue_at(&self, cable: usize, from: NodeId) -> &QueueSpec {
        let place = self.ports.decided.get(&(cable, from));
        place.map_or(&self.queues.router, |&place| self.differing[place].queue())
    }

    /// Returns true if any queue marks ECN-capable packets.
    fn any_queue_marks(&self) -> bool {
        self.router_queues().chain([&self.queues.nic]).any(marks)
    }
}

/// Returns true if a queue marks ECN-capable packets.
fn marks(queue: &QueueSpec) -> bool {
    match &queue.discipline {
        Discipline::Fifo | Discipline::Priority => queue.mark_at.is_some() || queue.mark_ramp.is_some(),
        Discipline::Active(law) => law.marks(),
    }
}

/// Adds the warnings about a simulation to `warnings`.
pub(crate) fn of_simulation(facts: &Facts<'_>, document: &Document, warnings: &Warnings) -> Result<(), ScenarioError> {
    classes::check(facts, warnings)?;
    overridden::check(facts, warnings)?;
    parameters::check(facts, warnings)?;
    settings::check(facts, warnings)?;
    periods::check(facts, warnings)?;
    pause::warn(facts, warnings)?;
    pfc::warn(facts, warnings)?;
    telemetry::warn(facts, warnings)?;
    for path in document.unread() {
        warnings.add(format!("{path} has no effect: nothing in this scenario uses it"));
    }
    Ok(())
}

/// Adds the warnings about an emulation, in which programs and kernels replace flows and hosts.
pub(crate) fn of_emulation(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    overridden::check(facts, warnings)?;
    pause::warn(facts, warnings)?;
    pfc::warn(facts, warnings)?;
    for table in facts.root.need("link")?.tables()? {
        let reason = "sparelane emulate delivers the packets of real programs once";
        idle(&table.section(LINK)?, "duplicate", reason, warnings);
    }
    for name in ["host", "host_at", "cross_traffic", "drop", "sample", "measure", "packets"] {
        if let Some(table) = facts.root.given(name) {
            let reason = match name {
                "host" | "host_at" => "sparelane emulate runs programs on the hosts of this machine",
                "cross_traffic" | "drop" => "sparelane emulate carries the packets of real programs alone",
                _ => "sparelane emulate records the counters of links alone",
            };
            warnings.add(table.without_effect(reason));
        }
    }
    Ok(())
}

/// Warns that the key `name` of `section` has no effect, if it is given there and is not the default.
pub(crate) fn idle(section: &Section<'_>, name: &str, reason: &str, warnings: &Warnings) {
    if let Some(field) = section.changed(name) {
        warnings.add(field.without_effect(reason));
    }
}

/// Calls `act` with each table that is about queues: `[queue]`, `[nic]`, and every `[[queue_at]]`.
pub(crate) fn each_queue_table(facts: &Facts<'_>, mut act: impl FnMut(&Section<'_>)) -> Result<(), ScenarioError> {
    let laws = facts.kinds.all_keys();
    act(&facts.root.need("queue")?.section(&[ROUTER_QUEUE, &laws])?);
    act(&facts.root.need("nic")?.section(&[NIC_QUEUE, &laws])?);
    let field = facts.root.need("queue_at")?;
    for table in field.tables()? {
        act(&table.section(&[QUEUE_AT, QUEUE_KEYS, &laws])?);
    }
    Ok(())
}
