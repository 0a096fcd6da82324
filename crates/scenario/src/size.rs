//! The size of a run, known from the scenario before the run is built.
//!
//! A simulation of a million hosts takes gigabytes before its first packet. A caller with less memory, such as a check of a
//! scenario, reads the size first.

use crate::Scenario;

/// Memory per cable (including two queues) and per node, in a simulation and in the scenario; bytes.
const CABLE_BYTES: f64 = 1_600.0;
const NODE_BYTES: f64 = 150.0;

/// Memory of both ends of an open flow with a controller; bytes.
const OPEN_FLOW_BYTES: f64 = 3_500.0;

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    /// Hosts and routers.
    pub nodes: usize,
    /// Cables.
    pub cables: usize,
    /// The expected number of flows.
    pub flows: f64,
    /// The expected number of flows open at the same time, if the workloads define it.
    pub open_flows: f64,
}

impl Size {
    /// The size of a run of `scenario`.
    pub fn of(scenario: &Scenario) -> Size {
        let (network, demand) = (scenario.network(), scenario.demand());
        Size {
            nodes: network.nodes.len(),
            cables: network.cables.len(),
            flows: demand.flows,
            open_flows: demand.at_once,
        }
    }

    /// An estimate of the memory for network and open flows in bytes, right to within a factor of two. Excludes rows of
    /// results and packets.
    pub fn bytes(&self) -> f64 {
        CABLE_BYTES * self.cables as f64 + NODE_BYTES * self.nodes as f64 + OPEN_FLOW_BYTES * self.open_flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_catalogue::schema::Source;

    fn size(settings: &[&str]) -> Size {
        let text = r#"
            duration = "2s"
            topology = { kind = "dumbbell", pairs = 10 }
            scheme.tcp.controller = "newreno"
            workload = { kind = "bulk", flows = 1000, size = "1kB" }
        "#;
        let source = Source { file: "size.toml".to_owned(), folder: ".".into() };
        let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
        Size::of(&Scenario::parse(text, &source, &settings).expect("a scenario"))
    }

    #[test]
    fn the_size_counts_the_network_and_the_flows() {
        assert_eq!(size(&[]), Size { nodes: 22, cables: 21, flows: 1000.0, open_flows: 1000.0 });
        assert_eq!(size(&["workload.spread=10s"]).open_flows, 100.0);
        assert_eq!(size(&["topology.pairs=1000"]).cables, 2001);
    }

    #[test]
    fn memory_grows_with_each_part() {
        let small = size(&[]).bytes();
        assert!(size(&["topology.pairs=11"]).bytes() > small);
        assert!(size(&["workload.flows=1001"]).bytes() > small);
        assert!(size(&["topology.pairs=100000", "workload.flows=100000"]).bytes() > 5e8);
    }
}
