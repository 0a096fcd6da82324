//! The plan of an emulation: the network, hosts and limits of a scenario, and the checks that it can be emulated.
//!
//! Network, queues, losses and the seed are taken from the scenario. Flows, controllers and cross traffic are not,
//! because real programs replace them. Processing delays of hosts are left out as well, because real hosts have their
//! own.

use sparelane_core::{Dur, Rate, Time};
use sparelane_scenario::{Scenario, ScenarioError};
use sparelane_sim::{
    Change, Discipline, HostSpec, Limit, Loss, NodeId, QueueSpec, RoomNeeded, Routes, RunConfig, SwitchSpec,
    TelemetryKind,
};
use std::net::Ipv4Addr;
use thiserror::Error;

/// The largest number of hosts. Each is a network namespace with a device.
pub const MAX_HOSTS: usize = 250;

/// The smallest allowed MTU: every host must accept packets of this size (RFC 791).
pub const MIN_MTU_BYTES: u64 = 576;

/// A rate without effect, so that a test measures only the machine.
const UNBOUNDED: Rate = Rate::from_gbps(100_000);

/// The delay of the network of the self-test.
pub const TEST_DELAY: Dur = Dur::from_ms(5);

/// The reason why a scenario cannot be emulated.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The network is invalid.
    #[error(transparent)]
    Network(#[from] sparelane_sim::BuildError),
    /// The number of hosts is out of range.
    #[error("{hosts} hosts; an emulation has 2 to {MAX_HOSTS}")]
    Hosts {
        /// The number of hosts.
        hosts: usize,
    },
    /// The largest packet is smaller than [`MIN_MTU_BYTES`].
    #[error("the largest packet has {bytes} bytes; an emulation needs {MIN_MTU_BYTES} or more: see transport.mss")]
    Mtu {
        /// The size of the largest packet in bytes.
        bytes: u64,
    },
    /// Queues compute rates for RCP, which needs a header that real programs do not send.
    #[error("queues compute rates for RCP, which packets of real programs do not carry; allowed: no rcp in queues")]
    Rcp,
}

/// A host of an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The node in the network.
    pub node: NodeId,
    /// The name in the scenario.
    pub name: String,
    /// The address.
    pub address: Ipv4Addr,
}

/// The plan of an emulation. Whether this machine is fast enough for it is up to the self-test.
#[derive(Debug)]
pub struct Plan {
    /// The network and the other settings of a run.
    pub config: RunConfig,
    /// The hosts, in the order of the network's nodes.
    pub hosts: Vec<Host>,
    /// The size of the largest packet in bytes, which is the MTU of devices.
    pub mtu_bytes: u64,
    /// The DSCP of each class.
    pub code_points: Vec<u8>,
    /// The allowed error of delays, at the 99th percentile.
    pub delay_error: Dur,
    /// The highest rate at which one host can send to another at any time during the emulation.
    pub max_host_rate: Rate,
}

/// Returns the address of the host with this index: 10.0.0.1 for the first.
pub fn address(index: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + index as u32)
}

impl Plan {
    /// Plans the emulation of `scenario`.
    ///
    /// # Errors
    /// The scenario cannot be emulated on any machine.
    pub fn new(scenario: &Scenario) -> Result<Plan, PlanError> {
        let config = config_of(scenario)?;
        let nodes = config.network.hosts();
        if !(2..=MAX_HOSTS).contains(&nodes.len()) {
            return Err(PlanError::Hosts { hosts: nodes.len() });
        }
        // All schemes share the devices, so the largest packet decides.
        let mtu_bytes = config.schemes.iter().map(|scheme| scheme.transport.packet_bytes()).max().unwrap_or(0);
        if mtu_bytes < MIN_MTU_BYTES {
            return Err(PlanError::Mtu { bytes: mtu_bytes });
        }
        let queues = [&config.router_queue, &config.nic_queue].into_iter();
        if queues.chain(config.queues_at.iter().map(|at| &at.queue)).any(|queue| queue.rcp.is_some()) {
            return Err(PlanError::Rcp);
        }
        let name = |node: NodeId| config.network.nodes[node.index()].name.clone();
        let hosts = nodes.iter().enumerate();
        let hosts = hosts.map(|(index, &node)| Host { node, name: name(node), address: address(index) }).collect();
        let spec = scenario.emulate();
        Ok(Plan {
            max_host_rate: max_host_rate(&config, &nodes),
            config,
            hosts,
            mtu_bytes,
            code_points: spec.code_points.clone(),
            delay_error: spec.delay_error,
        })
    }

    /// Plans the self-test: the same hosts and cables without limits of rates and queues, and with a delay of
    /// [`TEST_DELAY`] between the first host and any other.
    ///
    /// # Errors
    /// As for [`Plan::new`].
    pub fn for_test(scenario: &Scenario) -> Result<Plan, PlanError> {
        let mut plan = Plan::new(scenario)?;
        let first = plan.hosts[0].node;
        for cable in &mut plan.config.network.cables {
            cable.rates = [UNBOUNDED; 2];
            cable.traces = [None, None];
            cable.effects = [None, None];
            cable.loss = [Loss::NONE; 2];
            cable.limit = None;
            cable.delay = if cable.a == first || cable.b == first { TEST_DELAY } else { Dur::ZERO };
        }
        let queue = QueueSpec {
            discipline: Discipline::Fifo,
            limit: Limit::Bytes(1 << 40),
            mark_at: None,
            mark_ramp: None,
            bars_low_priority: false,
            push_out: false,
            room: RoomNeeded::Packet,
            rcp: None,
            telemetry: TelemetryKind::Off,
        };
        (plan.config.router_queue, plan.config.nic_queue) = (queue.clone(), queue);
        plan.config.queues_at.clear();
        plan.config.switch = None::<SwitchSpec>;
        plan.config.changes.clear();
        Ok(plan)
    }
}

/// Returns the scenario's run without the parts that real programs and hosts replace.
fn config_of(scenario: &Scenario) -> Result<RunConfig, ScenarioError> {
    let mut config = scenario.build()?;
    config.host = HostSpec::default();
    config.hosts_at.clear();
    config.cross_traffic.clear();
    config.drops.clear();
    config.observers.clear();
    config.stop = Time::NEVER;
    Ok(config)
}

/// Returns the highest rate at which any of these hosts can send to another, if each cable has its highest rate.
fn max_host_rate(config: &RunConfig, hosts: &[NodeId]) -> Rate {
    let mut cables = config.network.cables.clone();
    for cable in &mut cables {
        for (rate, trace) in cable.rates.iter_mut().zip(&cable.traces) {
            *rate = trace.as_ref().map_or(*rate, |trace| trace.busiest_second());
        }
    }
    for changed in &config.changes {
        if let Change::Rate(rate) = changed.change {
            let cable = &mut cables[changed.cable];
            let direction = cable.direction_from(changed.from);
            cable.rates[direction] = cable.rates[direction].max(rate);
        }
    }
    let routes = Routes::of(&config.network, config.routing, config.seed);
    let path = |from: NodeId, to: NodeId| {
        let links = routes.links(&config.network, from, to, 0).unwrap_or_default();
        links.iter().map(|&link| cables[link as usize / 2].rates[link as usize % 2]).min().unwrap_or_default()
    };
    let pairs = hosts.iter().enumerate().flat_map(|(at, &one)| hosts[at + 1..].iter().map(move |&other| (one, other)));
    pairs.map(|(one, other)| path(one, other).max(path(other, one))).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_scenario::Source;

    fn plan(extra: &str) -> Result<Plan, String> {
        let text = format!(
            "duration = \"1s\"\n[scheme.tcp]\ncontroller = \"cubic\"\n[workload]\nkind = \"bulk\"\nsize = \"1MB\"\n{extra}"
        );
        let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
        let scenario = Scenario::parse(&text, &source, &[]).map_err(|error| error.to_string())?;
        Plan::new(&scenario).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_have_addresses_in_order_and_the_mtu_is_that_of_the_scenario() {
        let plan = plan("[topology]\nkind = \"dumbbell\"\npairs = 2\n").expect("a plan");
        let hosts = plan.hosts.iter().map(|host| (host.name.as_str(), host.address.to_string()));
        let expected = [("left0", "10.0.0.1"), ("left1", "10.0.0.2"), ("right0", "10.0.0.3"), ("right1", "10.0.0.4")];
        assert_eq!(hosts.collect::<Vec<_>>(), expected.map(|(name, address)| (name, address.to_owned())));
        assert_eq!(plan.mtu_bytes, 1500);
    }

    /// With two pairs, hosts on the same side of the bottleneck reach each other at the rate of their cables.
    #[test]
    fn the_highest_rate_between_hosts_includes_scripted_changes() {
        let network = "[topology]\nkind = \"dumbbell\"\naccess_rate = \"50Mbps\"\nbottleneck_rate = \"10Mbps\"\n";
        assert_eq!(plan(&format!("{network}pairs = 1")).expect("a plan").max_host_rate, Rate::from_mbps(10));
        assert_eq!(plan(&format!("{network}pairs = 2")).expect("a plan").max_host_rate, Rate::from_mbps(50));
        let change = "[[change]]\nat = \"1s\"\nbetween = [\"west\", \"east\"]\nfrom = \"west\"\nrate = \"30Mbps\"\n";
        assert_eq!(plan(&format!("{network}pairs = 1\n{change}")).expect("a plan").max_host_rate, Rate::from_mbps(30));
    }

    #[test]
    fn the_self_test_delays_packets_by_its_own_delay_only() {
        let link = "[[link]]\nbetween = [\"west\", \"east\"]\njitter = \"5ms\"\nloss = \"1%\"\n";
        let change = "[[change]]\nat = \"1s\"\nbetween = [\"west\", \"east\"]\ndelay = \"1ms\"\nreorder = true\n";
        let text = format!(
            "duration = \"2s\"\n[topology]\nkind = \"dumbbell\"\n{link}{change}[scheme.tcp]\ncontroller = \"cubic\"\n\
             [workload]\nkind = \"bulk\"\nsize = \"1MB\"\n"
        );
        let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
        let scenario = Scenario::parse(&text, &source, &[]).expect("a scenario");
        let usual = Plan::new(&scenario).expect("a plan").config;
        assert_eq!(
            (usual.changes.len(), usual.network.cables.iter().filter(|cable| cable.effects[0].is_some()).count()),
            (2, 1)
        );
        let config = Plan::for_test(&scenario).expect("a plan").config;
        assert!(config.changes.is_empty());
        for cable in &config.network.cables {
            assert!(cable.effects.iter().all(Option::is_none) && cable.loss == [Loss::NONE; 2], "{cable:?}");
        }
    }

    #[test]
    fn scenarios_that_no_machine_can_emulate_are_refused() {
        let dumbbell = "[topology]\nkind = \"dumbbell\"\n";
        let refused = |extra: &str| plan(extra).expect_err("a refusal");
        assert_eq!(refused(&format!("{dumbbell}pairs = 126")), "252 hosts; an emulation has 2 to 250");
        assert!(
            refused(&format!("{dumbbell}[transport]\nmss = \"500B\"\n"))
                .starts_with("the largest packet has 540 bytes")
        );
        assert!(refused(&format!("{dumbbell}[queue.rcp]\n")).starts_with("queues compute rates for RCP"));
    }
}
