//! What a scenario asks of the machine, and what of it cannot be emulated.
//!
//! Networks, queues, losses and the seed are the scenario's. Its flows, controllers and cross traffic are left out, since real
//! programs take their place, and so is what its hosts take their time for: the machine has hosts of its own.

use sparelane_core::{Dur, Rate, Time};
use sparelane_scenario::{Scenario, ScenarioError, ScriptedChange};
use sparelane_sim::{
    Change, Discipline, HostSpec, Limit, Loss, NodeId, QueueSpec, RoomNeeded, Routes, RunConfig, SwitchSpec,
};
use std::net::Ipv4Addr;
use thiserror::Error;

/// The most hosts, each of which is a network namespace and a device.
pub const MAX_HOSTS: usize = 250;

/// The smallest packets that hosts of the Internet have to take (RFC 791); a device for smaller ones is of no use.
pub const MIN_MTU_BYTES: u64 = 576;

/// Faster than anything, for a network that only costs what it costs the machine.
const UNBOUNDED: Rate = Rate::from_gbps(100_000);

/// The delay of the network in which a machine tests itself.
pub const TEST_DELAY: Dur = Dur::from_ms(5);

/// What cannot be emulated.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The scenario itself.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// Its network.
    #[error(transparent)]
    Network(#[from] sparelane_sim::BuildError),
    /// Too many hosts, or too few.
    #[error("{hosts} hosts; an emulation has 2 to {MAX_HOSTS}")]
    Hosts {
        /// How many there are.
        hosts: usize,
    },
    /// Packets are too small for a device.
    #[error("packets of {bytes} bytes at most; an emulation needs {MIN_MTU_BYTES} or more: see transport.mss")]
    Mtu {
        /// The size of the largest packet.
        bytes: u64,
    },
    /// Queues compute rates for RCP.
    #[error("queues compute rates for RCP, which packets of real programs do not carry; allowed: no rcp in queues")]
    Rcp,
}

/// A host of an emulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its node in the network.
    pub node: NodeId,
    /// Its name in the scenario.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
}

/// An emulation that is possible, as far as the machine can keep up.
#[derive(Debug)]
pub struct Plan {
    /// The network and what else makes a run.
    pub config: RunConfig,
    /// The hosts, in the order of the network.
    pub hosts: Vec<Host>,
    /// The largest packet, which is what devices have for MTU.
    pub mtu_bytes: u64,
    /// The code point of each class.
    pub code_points: Vec<u8>,
    /// By how much packets may be late, at the 99th percentile.
    pub delay_error: Dur,
    /// Changes, in order of time.
    pub changes: Vec<ScriptedChange>,
    /// The most that one host can send to another, at the highest rates that cables ever have.
    pub asked: Rate,
}

/// The address of host number `place`: 10.0.0.1 is that of the first.
pub fn address(place: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + place as u32)
}

impl Plan {
    /// What `scenario` asks for.
    ///
    /// # Errors
    /// It cannot be emulated on any machine.
    pub fn of(scenario: &Scenario) -> Result<Plan, PlanError> {
        let config = config_of(scenario)?;
        let nodes = config.network.hosts();
        if !(2..=MAX_HOSTS).contains(&nodes.len()) {
            return Err(PlanError::Hosts { hosts: nodes.len() });
        }
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
        let hosts = hosts.map(|(place, &node)| Host { node, name: name(node), address: address(place) }).collect();
        let spec = scenario.emulate();
        Ok(Plan {
            asked: asked(&config, &nodes, &spec.changes),
            config,
            hosts,
            mtu_bytes,
            code_points: spec.code_points.clone(),
            delay_error: spec.delay_error,
            changes: spec.changes.clone(),
        })
    }

    /// The same hosts and cables, without queues, and with [`TEST_DELAY`] from the first host to any other.
    ///
    /// # Errors
    /// As [`Plan::of`].
    pub fn for_test(scenario: &Scenario) -> Result<Plan, PlanError> {
        let mut plan = Plan::of(scenario)?;
        let first = plan.hosts[0].node;
        for cable in &mut plan.config.network.cables {
            cable.rates = [UNBOUNDED; 2];
            cable.loss = [Loss::NONE; 2];
            cable.limit = None;
            cable.delay = if cable.a == first || cable.b == first { TEST_DELAY } else { Dur::ZERO };
        }
        let queue = QueueSpec {
            discipline: Discipline::Fifo,
            limit: Limit::Bytes(1 << 40),
            mark_at: None,
            bars_low_priority: false,
            push_out: false,
            room: RoomNeeded::Packet,
            rcp: None,
        };
        (plan.config.router_queue, plan.config.nic_queue) = (queue.clone(), queue);
        plan.config.queues_at.clear();
        plan.config.switch = None::<SwitchSpec>;
        plan.changes.clear();
        Ok(plan)
    }
}

/// The scenario's run, without what real programs and real hosts take the place of.
fn config_of(scenario: &Scenario) -> Result<RunConfig, ScenarioError> {
    let mut config = scenario.build_unchanging()?;
    config.host = HostSpec::default();
    config.hosts_at.clear();
    config.cross_traffic.clear();
    config.drops.clear();
    config.observers.clear();
    config.stop = Time::NEVER;
    Ok(config)
}

/// The most that any of these hosts can send to another.
fn asked(config: &RunConfig, hosts: &[NodeId], changes: &[ScriptedChange]) -> Rate {
    let mut cables = config.network.cables.clone();
    for changed in changes {
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
        Plan::of(&scenario).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_have_addresses_in_order_and_packets_are_as_large_as_the_scenarios() {
        let plan = plan("[topology]\nkind = \"dumbbell\"\npairs = 2\n").expect("a plan");
        let hosts = plan.hosts.iter().map(|host| (host.name.as_str(), host.address.to_string()));
        let expected = [("left0", "10.0.0.1"), ("left1", "10.0.0.2"), ("right0", "10.0.0.3"), ("right1", "10.0.0.4")];
        assert_eq!(hosts.collect::<Vec<_>>(), expected.map(|(name, address)| (name, address.to_owned())));
        assert_eq!(plan.mtu_bytes, 1500);
    }

    /// Hosts at one end of the bottleneck send each other what their cables carry; a change counts, too.
    #[test]
    fn what_is_asked_is_the_most_that_one_host_sends_another_at_any_time() {
        let network = "[topology]\nkind = \"dumbbell\"\naccess_rate = \"50Mbps\"\nbottleneck_rate = \"10Mbps\"\n";
        assert_eq!(plan(&format!("{network}pairs = 1")).expect("a plan").asked, Rate::from_mbps(10));
        assert_eq!(plan(&format!("{network}pairs = 2")).expect("a plan").asked, Rate::from_mbps(50));
        let change =
            "[[emulate.change]]\nat = \"1s\"\nbetween = [\"west\", \"east\"]\nfrom = \"west\"\nrate = \"30Mbps\"\n";
        assert_eq!(plan(&format!("{network}pairs = 1\n{change}")).expect("a plan").asked, Rate::from_mbps(30));
    }

    #[test]
    fn what_no_machine_can_emulate_is_refused() {
        let dumbbell = "[topology]\nkind = \"dumbbell\"\n";
        let refused = |extra: &str| plan(extra).expect_err("a refusal");
        assert_eq!(refused(&format!("{dumbbell}pairs = 126")), "252 hosts; an emulation has 2 to 250");
        assert!(refused(&format!("{dumbbell}[transport]\nmss = \"500B\"\n")).starts_with("packets of 540 bytes"));
        assert!(refused(&format!("{dumbbell}[queue.rcp]\n")).starts_with("queues compute rates for RCP"));
    }
}
