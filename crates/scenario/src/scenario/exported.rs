//! The network and the flows of a scenario as files, in sparelane's own formats or in those of HPCC's simulator.

use super::Scenario;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::topology::{hpcc, neutral};
use sparelane_catalogue::workload::list;

/// The formats in which a scenario can be written as files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exported {
    /// `.topo` and `.flows`.
    Own,
    /// `topology.txt` and `flow.txt` of HPCC's simulator.
    Hpcc,
}

impl Scenario {
    /// Returns the network as the text of a file.
    ///
    /// # Errors
    /// Fails if the format cannot state the network.
    pub fn network_file(&self, format: Exported) -> Result<String, ScenarioError> {
        match format {
            Exported::Own => Ok(neutral::write(&self.network)),
            Exported::Hpcc => {
                hpcc::write(&self.network).map_err(|error| ScenarioError::in_file(&self.file, None, error.to_string()))
            }
        }
    }

    /// Returns the flows that start by the end of the run as the text of a file, but at most the first `max_flows`: see
    /// [`Scenario::planned_flows`].
    ///
    /// # Errors
    /// Fails like [`Scenario::build`], and if the format cannot state a flow.
    pub fn flows_file(&self, format: Exported, max_flows: usize) -> Result<String, ScenarioError> {
        let flows = self.planned_flows(max_flows)?;
        match format {
            Exported::Own => Ok(list::write_neutral(&flows)),
            Exported::Hpcc => {
                list::hpcc::write(&flows).map_err(|error| ScenarioError::in_file(&self.file, None, error.to_string()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn a_scenario_is_written_as_a_network_and_flows() {
        let text = "duration = \"1s\"\n[topology]\nkind = \"star\"\nhosts = 2\n[scheme.x]\ncontroller = \"cubic\"\n\
                    [workload]\nkind = \"bulk\"\nsize = \"5kB\"\nflows = 1\npairs = [[\"h1\", \"h2\"]]\n";
        let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
        let scenario = Scenario::parse(text, &source, &[]).expect("a scenario");
        let own = scenario.network_file(Exported::Own).expect("a network");
        assert!(own.starts_with("router 0 switch\nhost 1\nhost 2\nlink 0 1 1000000000 50000 default\n"), "{own}");
        assert_eq!(scenario.flows_file(Exported::Own, 10), Ok("0 1 2 5000\n".to_owned()));
        let hpcc = scenario.network_file(Exported::Hpcc).expect("a network");
        assert!(hpcc.starts_with("3 1 2\n0\n0 1 1000000000bps 50000ns 0\n"), "{hpcc}");
        assert_eq!(scenario.flows_file(Exported::Hpcc, 10), Ok("1\n1 2 3 100 5000 0.000000000000\n".to_owned()));
    }
}
