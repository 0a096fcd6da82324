//! Unique names of nodes, for files that repeat them.

use sparelane_sim::Network;
use std::collections::BTreeSet;

/// The names in use.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Returns the names of the nodes that `network` has so far.
    pub(super) fn of(network: &Network) -> Names {
        Names(network.nodes.iter().map(|node| node.name.clone()).collect())
    }

    /// Takes `wanted` if it is free, otherwise the first free name of `wanted-2`, `wanted-3`, ....
    pub(super) fn claim(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut copy = 2u32;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}-{copy}");
            copy += 1;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_gets_the_first_free_number() {
        let mut names = Names::default();
        assert_eq!(["a", "a", "a-2", "a"].map(|wanted| names.claim(wanted)), ["a", "a-2", "a-2-2", "a-3"]);
    }
}
