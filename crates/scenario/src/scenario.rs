//! A scenario: parsed once from a file into types, from which runs are built.

mod description;
mod exported;
mod resolved;

pub use exported::Exported;

pub use description::whole_nanoseconds;

use crate::emulate::{self, EMULATE, EmulateSpec};
use crate::queue_at::Differing;
use crate::queues::{Queues, ROUTER_QUEUE};
use crate::reach::{Distances, access_routers, bdp_bytes};
use crate::schemes::Schemes;
use crate::warnings::{self, Facts, Ports};
use crate::{
    changes, cross_traffic, drops, effects, host, links, measure, packet_log, pause, pfc, queue_at, rcp_rates,
    sampling, switch, telemetry,
    transport::{self, Transport},
};
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::Source;
use sparelane_catalogue::schema::document::{Document, Item, Node, Origin, Table, write_toml};
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape, Warnings};
use sparelane_catalogue::schema::{Field, Section};
use sparelane_catalogue::schema::{overrides, read_text};
use sparelane_catalogue::workload::Merge;
use sparelane_catalogue::workload::{self, Context, Demand, Found, Workload, WorkloadForm};
use sparelane_catalogue::{Catalogue, topology};
use sparelane_core::{Dur, Rate, Time};
use sparelane_sim::observe::{Delays, DelaysSpec, Observer, PacketLog, PacketLogSpec, Series, SeriesSpec};
use sparelane_sim::{
    CrossTraffic, Drop, HostAt, HostSpec, Machine, Network, NodeId, NodeKind, Routing, RunConfig, ScriptedChange,
    Simulation, SwitchSpec, Threads,
};
use std::path::Path;
use std::sync::Arc;

/// The most distances from each router to each router with hosts. This many take some hundred megabytes and seconds.
const MAX_DISTANCES: usize = 20_000_000;

/// A table, or an array of tables, with this name in the listing.
const fn tables(shape: &'static Shape) -> Kind {
    Kind::Special("a table, or several as [[...]]", shape)
}

/// A table with this name in the listing.
const fn table(shape: &'static Shape) -> Kind {
    Kind::Special("a table", shape)
}

const NO_TABLES: Fallback = Fallback::Value("[]");
const EMPTY: Fallback = Fallback::Value("{}");

/// The most threads of a run.
pub const MAX_THREADS: u64 = 1024;

/// The keys of a scenario file.
pub static SCENARIO: &[Key] = &[
    Key::new("title", Kind::Text, Fallback::Value(""), "what the scenario shows"),
    Key::new("source", Kind::Text, Fallback::Value(""), "what the scenario is taken from"),
    Key::new("duration", Kind::SPAN, Fallback::Required, "when the run ends, finished or not"),
    Key::new("seed", Kind::Whole { min: 0, max: u64::MAX }, Fallback::Value("1"), "seed of every random draw"),
    Key::new(
        "routing",
        Kind::Choice(&["single-path", "first-cable", "ecmp", "spray", "spray-round-robin"]),
        Fallback::Value("single-path"),
        "the choice among equally short paths: one path per pair of routers, the same both ways, by the lowest \
         router numbers (single-path); at each router the exit whose cable comes first in the topology, in each \
         direction separately, as in ns-3's global routing (first-cable); a random one for each flow (ecmp); a random one for each \
         packet (spray); or, for the packets of a flow, each in turn (spray-round-robin)",
    ),
    Key::new(
        "threads",
        Kind::Whole { min: 1, max: MAX_THREADS },
        Fallback::Nothing("all cores for a single run that gains from them; one in a sweep"),
        "the number of threads of a run, on which results do not depend",
    ),
    Key::new(
        "topology",
        Kind::Special(
            "a table with kind = dumbbell, chain, fat-tree, spine-leaf, star, internet2 or file",
            &Shape::Table("topology"),
        ),
        Fallback::Required,
        "the network",
    ),
    Key::new("link", tables(&Shape::Tables("link")), NO_TABLES, "settings of selected cables"),
    Key::new("queue", table(&Shape::Table("queue")), EMPTY, "output queues of routers"),
    Key::new(
        "queue_at",
        tables(&Shape::Tables("queue_at")),
        NO_TABLES,
        "output queues of routers that differ from [queue]",
    ),
    Key::new(
        "switch",
        table(&Shape::Table("switch")),
        Fallback::Nothing("no shared memory"),
        "memory that the output queues of each router share",
    ),
    Key::new("nic", table(&Shape::Table("nic")), EMPTY, "output queues of hosts"),
    Key::new("host", table(&Shape::Table("host")), EMPTY, "processing costs, interrupts, clocks and timers of hosts"),
    Key::new("host_at", tables(&Shape::Tables("host_at")), NO_TABLES, "hosts that differ from [host]"),
    Key::new("transport", table(&Shape::Table("transport")), EMPTY, "settings of TCP"),
    Key::new(
        "scheme",
        Kind::Special("tables such as [scheme.tcp]", &Shape::Named(&Shape::Table("scheme.NAME"))),
        Fallback::Required,
        "the controllers",
    ),
    Key::new(
        "workload",
        Kind::Special(
            "a table with kind = poisson, bulk, requests, web-users, flows, all-reduce or all-to-all, or several as [[workload]]",
            &Shape::Tables("workload"),
        ),
        Fallback::Required,
        "where flows come from",
    ),
    Key::new("cross_traffic", tables(&Shape::Tables("cross_traffic")), NO_TABLES, "open-loop datagrams from hosts"),
    Key::new("drop", tables(&Shape::Tables("drop")), NO_TABLES, "scripted drops"),
    Key::new(
        "change",
        tables(&Shape::Tables("change")),
        NO_TABLES,
        "changes of links during the run, in order of time",
    ),
    Key::new(
        "measure",
        table(&Shape::Table("measure")),
        Fallback::Nothing("nothing"),
        "warm-up, and measurements other than completion times of flows",
    ),
    Key::new(
        "packets",
        table(&Shape::Table("packets")),
        Fallback::Nothing("no log"),
        "a log of the data packets of one flow",
    ),
    Key::new("sample", table(&Shape::Table("sample")), Fallback::Nothing("no time series"), "time series to record"),
    Key::new("emulate", table(&Shape::Table("emulate")), EMPTY, "settings of sparelane emulate alone"),
];

/// A parsed and checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The title.
    pub title: String,
    /// The paper or other origin of the scenario.
    pub source: String,
    /// Seed of every random draw.
    pub seed: u64,
    /// The end of the run.
    pub duration: Dur,
    /// The value of `"1bdp"` in this scenario: see [`bdp_bytes`].
    pub bdp_bytes: u64,
    file: String,
    text: Table,
    warnings: Vec<String>,
    emulation_warnings: Vec<String>,
    routing: Routing,
    network: Network,
    queues: Queues,
    switch: Option<SwitchSpec>,
    differing: Vec<Differing>,
    host: HostSpec,
    hosts_at: Vec<HostAt>,
    schemes: Schemes,
    workloads: Vec<Arc<dyn Workload>>,
    order: Order,
    demand: Demand,
    cross_traffic: Vec<CrossTraffic>,
    drops: Vec<Drop>,
    changes: Vec<ScriptedChange>,
    sampling: Option<SeriesSpec>,
    traffic_classes: Vec<String>,
    measure: Option<DelaysSpec>,
    packets: Option<PacketLogSpec>,
    emulate: Arc<EmulateSpec>,
    threads: Option<usize>,
}

impl Scenario {
    /// Parses the text of a scenario, with `overrides` of the form `key=value`, in order.
    ///
    /// Checks all input of the user, including files that the scenario names.
    ///
    /// # Errors The first mistake, with its place and the allowed values.
    pub fn parse(text: &str, source: &Source, overrides: &[String]) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(&Catalogue::built_in(), text, source, overrides)
    }

    /// Like [`Scenario::parse`], with the kinds in `catalogue`.
    ///
    /// # Errors Those of [`Scenario::parse`].
    pub fn parse_with(
        catalogue: &Catalogue,
        text: &str,
        source: &Source,
        overrides: &[String],
    ) -> Result<Scenario, ScenarioError> {
        let mut document = Document::parse(text, &source.file)?;
        for text in overrides {
            overrides::apply(&mut document.root, text)?;
        }
        read(&document, source, catalogue)
    }

    /// Parses the scenario file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, and those of [`Scenario::parse`].
    pub fn load(path: &Path, overrides: &[String]) -> Result<Scenario, ScenarioError> {
        let source = Source::at(path);
        let text = read_text(path).map_err(|error| ScenarioError::in_file(&source.file, error.line, error.message))?;
        Scenario::parse(&text, &source, overrides)
    }

    /// Builds the configuration of a run.
    ///
    /// # Errors None for a scenario from [`Scenario::parse`].
    pub fn build(&self) -> Result<RunConfig, ScenarioError> {
        let flows = self.workloads.iter().map(|workload| workload.flows(&self.network, self.seed));
        let flows = flows.collect::<Result<Vec<_>, _>>();
        let flows = flows.map_err(|error| ScenarioError::in_file(&self.file, None, error.message))?;
        Ok(RunConfig {
            network: self.network.clone(),
            routing: self.routing,
            router_queue: self.queues.router.clone(),
            nic_queue: self.queues.nic.clone(),
            nic_full: self.queues.nic_full,
            switch: self.switch,
            queues_at: self.differing.iter().flat_map(|queue| queue.queues(&self.network, self.seed)).collect(),
            host: self.host,
            hosts_at: self.hosts_at.clone(),
            schemes: self.schemes.all.clone(),
            flows: Box::new(Merge::in_order(flows, &self.order)),
            cross_traffic: self.cross_traffic.clone(),
            drops: self.drops.clone(),
            changes: self.changes.clone(),
            stop: Time::ZERO + self.duration,
            seed: self.seed,
            observers: self.observers(),
            threads: self.threads.map_or(Threads::One, Threads::Exactly),
            machine: Machine::default(),
            domains: None,
            traffic_classes: self.traffic_classes.clone(),
        })
    }

    /// The observers for the tables `[sample]`, `[measure]` and `[packets]`.
    fn observers(&self) -> Vec<Box<dyn Observer>> {
        let mut observers: Vec<Box<dyn Observer>> = Vec::new();
        if let Some(spec) = &self.sampling {
            observers.push(Box::new(Series::new(spec.clone())));
        }
        if let Some(spec) = self.measure {
            observers.push(Box::new(Delays::new(spec)));
        }
        if let Some(spec) = self.packets {
            observers.push(Box::new(PacketLog::new(spec)));
        }
        observers
    }

    /// Builds a run, ready to start.
    ///
    /// # Errors Those of [`Scenario::build`], and a network that is too large for the engine.
    pub fn simulate(&self) -> Result<Simulation, ScenarioError> {
        Simulation::new(self.build()?).map_err(|error| ScenarioError::in_file(&self.file, None, error.to_string()))
    }

    /// The effective scenario as TOML, including overrides and seed.
    ///
    /// Parsed again next to the files that it names, it gives the same run.
    pub fn canonical(&self) -> String {
        write_toml(&self.text)
    }

    /// The number of threads that the scenario asks for.
    pub fn threads(&self) -> Option<usize> {
        self.threads
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Names of the schemes, by index.
    pub fn scheme_names(&self) -> Vec<String> {
        self.schemes.names().map(str::to_owned).collect()
    }

    /// Names of the classes of traffic, by index.
    pub fn traffic_class_names(&self) -> Vec<String> {
        self.traffic_classes.clone()
    }

    /// Names of the nodes, by index.
    pub fn node_names(&self) -> Vec<String> {
        self.network.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// The expected number of flows of the workloads.
    pub(crate) fn demand(&self) -> Demand {
        self.demand
    }

    /// Changes of links, in order of time.
    pub fn changes(&self) -> &[ScriptedChange] {
        &self.changes
    }

    /// The settings of an emulation.
    pub fn emulate(&self) -> &EmulateSpec {
        &self.emulate
    }

    /// Warnings about a simulation of this scenario: keys without effect, and settings that contradict each other.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Warnings about an emulation of this scenario.
    pub fn emulation_warnings(&self) -> &[String] {
        &self.emulation_warnings
    }

    /// Names of the probes of time series, by index.
    pub fn probe_names(&self) -> Vec<String> {
        let probes = self.sampling.iter().flat_map(|sampling| &sampling.probes);
        probes.map(|probe| sampling::probe_name(probe, &self.network)).collect()
    }
}

fn read(document: &Document, source: &Source, catalogue: &Catalogue) -> Result<Scenario, ScenarioError> {
    let section = Field::root(document).section(&[SCENARIO])?;
    let duration = section.need("duration")?.time()?;
    let seed = section.need("seed")?.whole()?;
    let threads = section.maybe("threads", |field| Ok(field.whole()? as usize))?;
    let topology = section.need("topology")?;
    let link = section.need("link")?;
    let overrides = link.tables()?;

    // The network comes first: later sections name its nodes, and limits in `bdp` need its distances.
    let [warnings, emulation_warnings] = [const { Warnings::new() }; 2];
    let place = topology::Context { source, seed, warnings: &warnings };
    let mut network = topology::read(topology.clone(), &catalogue.topologies, &place)?;
    links::apply_wires(&overrides, source, &mut network)?;
    let distances = distances(&network, &topology)?;
    let bdp_bytes = bdp_bytes(&network, &distances);

    // Schemes start from [transport]. Queues depend on schemes: RC3 needs priorities, and limits need packet sizes.
    let transport = transport::read(section.need("transport")?, Transport::default())?;
    let schemes =
        Schemes::read(&section.need("scheme")?, &catalogue.controllers, transport, slowest_interface(&network))?;
    let queues = Queues::read([section.need("queue")?, section.need("nic")?], &catalogue.queues, &schemes, bdp_bytes)?;
    let origins = links::apply_limits(&overrides, &mut network, &schemes, bdp_bytes)?;
    effects::check(&overrides, schemes.largest_packet_bytes())?;
    let pauses = pause::apply(&overrides, &mut network, bdp_bytes)?;
    pfc::apply(&overrides, &mut network, schemes.largest_packet_bytes())?;
    queues.check(&network, &schemes, |cable| origins[cable].map_or(&topology, |place| &overrides[place]).clone())?;

    // A queue that differs has the keys of [queue] as defaults.
    let switch = section.maybe("switch", |field| switch::read(field, &queues, &schemes))?;
    let queue_at = section.need("queue_at")?;
    let table = section.need("queue")?;
    let table = table.section(&[ROUTER_QUEUE, &catalogue.queues.all_keys()])?;
    let differing = (0..).zip(queue_at.tables()?);
    let differing = differing
        .map(|(number, field)| {
            queue_at::read(&field, number, (&queues, &table), &catalogue.queues, &network, &schemes, bdp_bytes)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let tables = [&section.need("queue")?, &section.need("nic")?, &section.need("scheme")?];
    rcp_rates::check(&queues, &schemes, &network, tables)?;

    // A load on the core depends on the routing, so workloads come after it.
    let routing = match section.need("routing")?.choice()? {
        "ecmp" => Routing::PerFlowEcmp,
        "spray" => Routing::Spray,
        "spray-round-robin" => Routing::SprayRoundRobin,
        "first-cable" => Routing::FirstCable,
        _ => Routing::SinglePath,
    };
    let (sizes, all_schemes) = (&catalogue.sizes[..], &schemes.all[..]);
    let context = Context {
        sizes,
        source,
        network: &network,
        routing,
        schemes: all_schemes,
        bdp_bytes,
        duration,
        seed,
        warnings: &warnings,
    };
    let mut traffic_classes = Vec::new();
    let (found, order, demand) = read_workloads(&section, &catalogue.workloads, context, &mut traffic_classes)?;
    let cross_traffic = cross_traffic::read_all(&section.need("cross_traffic")?, &network, duration)?;
    let drops = section.need("drop")?;
    let drops = drops.tables()?.into_iter().map(|field| drops::read(field, &network)).collect::<Result<_, _>>()?;
    // Observers and hosts, which affect no other section.
    let sampling = section.given("sample").map(|field| sampling::read(field, &network, duration)).transpose()?;
    let measure = section.maybe("measure", |field| measure::read(field.clone(), &schemes, duration))?;
    let packets = section.given("packets").map(|field| packet_log::read(field, &schemes, duration)).transpose()?;
    let table = section.need("emulate")?;
    let emulate = emulate::read(table.clone())?;
    let mut changes = Vec::new();
    for field in [section.need("change")?, table.section(&[EMULATE])?.need("change")?] {
        changes::read(&field, &network, &mut changes)?;
    }
    changes.sort_by_key(|change| change.at);
    let host = host::read(section.need("host")?)?;
    let host_at = section.need("host_at")?;
    let hosts_at = host_at.tables()?;
    let hosts_at = hosts_at.iter().map(|field| host::read_at(field, host, &network));
    let hosts_at = hosts_at.collect::<Result<Vec<_>, _>>()?.concat();
    let text_keys = [section.need("title")?, section.need("source")?];
    let [title, source] = [text_keys[0].text()?.to_owned(), text_keys[1].text()?.to_owned()];
    let facts = Facts {
        root: &section,
        duration,
        routing,
        network: &network,
        schemes: &schemes,
        kinds: &catalogue.queues,
        queues: &queues,
        differing: &differing,
        ports: Ports::of(&network, &differing, seed),
        limits: &origins,
        pauses: &pauses,
        workloads: &found,
        cross_traffic: &cross_traffic,
    };
    pause::check(&facts)?;
    pfc::check(&facts)?;
    telemetry::check(&facts)?;
    // Warnings of the topology apply to a simulation and to an emulation.
    for warning in warnings.list() {
        emulation_warnings.add(warning);
    }
    warnings::of_simulation(&facts, document, &warnings)?;
    warnings::of_emulation(&facts, &emulation_warnings)?;
    // The saved text states the seed even if it is the default, so that it repeats the run.
    let mut text = document.table().clone();
    *text.entry("seed") = Node { item: Item::Whole(i128::from(seed)), origin: Origin::Set };
    Ok(Scenario {
        title,
        source,
        seed,
        duration,
        bdp_bytes,
        file: document.file.clone(),
        text,
        warnings: warnings.list(),
        emulation_warnings: emulation_warnings.list(),
        routing,
        network,
        queues,
        switch,
        differing,
        host,
        hosts_at,
        schemes,
        workloads: found.into_iter().map(|found| found.workload).collect(),
        order,
        demand,
        cross_traffic,
        drops,
        changes,
        sampling,
        traffic_classes,
        measure,
        packets,
        emulate: Arc::new(emulate),
        threads,
    })
}

/// The rate of the slowest interface of a host.
fn slowest_interface(network: &Network) -> Rate {
    let is_host = |node: NodeId| network.nodes[node.index()].kind == NodeKind::Host;
    let ends = network.cables.iter().flat_map(|cable| [(cable, cable.a), (cable, cable.b)]);
    ends.filter(|(_, node)| is_host(*node)).map(|(cable, node)| cable.rate_from(node)).min().unwrap_or_default()
}

/// Computes the distances between hosts, each of which must have one cable and reach every other.
fn distances(network: &Network, topology: &Field<'_>) -> Result<Distances, ScenarioError> {
    let name = |id: NodeId| &network.nodes[id.index()].name;
    let mut cables = vec![0; network.nodes.len()];
    network.cables.iter().for_each(|cable| [cable.a, cable.b].iter().for_each(|end| cables[end.index()] += 1));
    if let Some(host) = network.hosts().into_iter().find(|host| cables[host.index()] != 1) {
        let count = cables[host.index()];
        return Err(topology.error(format!("host \"{}\" has {count} cables; allowed: exactly one", name(host))));
    }
    let (routers, with_hosts) = (network.nodes.len() - network.hosts().len(), access_routers(network));
    let count = routers.saturating_mul(with_hosts);
    if count > MAX_DISTANCES {
        return Err(topology.error(format!(
            "{routers} routers, of which {with_hosts} have hosts, need {count} distances; allowed: {MAX_DISTANCES}"
        )));
    }
    Distances::of(network).map_err(|(a, b)| {
        // Only maps from files can be disconnected, and only of these a component can be chosen.
        let path = topology.entry("path", Kind::Path).and_then(|path| Ok(path.text()?.to_owned()));
        let hint = match path.is_ok_and(|path| !path.ends_with(".topo")) {
            true => "; component = \"largest\" takes the largest connected part of the map",
            false => "",
        };
        topology.error(format!("no path connects the hosts \"{}\" and \"{}\"{hint}", name(a), name(b)))
    })
}

/// For each workload, the places of those that it waits for.
type Order = Vec<Vec<usize>>;

fn read_workloads(
    section: &Section<'_>,
    forms: &[&'static WorkloadForm],
    context: Context<'_>,
    classes: &mut Vec<String>,
) -> Result<(Vec<Found>, Order, Demand), ScenarioError> {
    let field = section.need("workload")?;
    let tables = field.tables()?;
    if tables.is_empty() {
        return Err(field.error("no workload; allowed: at least one"));
    }
    let all = (0..).zip(&tables).map(|(number, field)| workload::read(field, forms, number, context, classes));
    let all = all.collect::<Result<Vec<_>, _>>()?;
    let demands = all.iter().map(|found| found.workload.demand(context.network, context.duration));
    let demand = demands.fold(Demand::default(), Demand::and);
    demand.check(&field)?;
    let order = workload::read_order(&tables, &all)?;
    Ok((all, order, demand))
}
