//! The valid endpoints of a flow: two different hosts.

use sparelane_sim::{Network, NodeId, NodeKind};

/// Fails if a flow may not go from `src` to `dst`; the error states what is wrong and what is allowed.
pub(super) fn check(network: &Network, src: NodeId, dst: NodeId) -> Result<(), String> {
    check_host(network, "src", src)?;
    check_host(network, "dst", dst)?;
    if src == dst {
        let name = &network.nodes[src.index()].name;
        return Err(format!("src and dst are both `{name}`; allowed: two different hosts"));
    }
    Ok(())
}

/// Fails if `id` is not a host. `field` names it in the error.
pub(super) fn check_host(network: &Network, field: &str, id: NodeId) -> Result<(), String> {
    match network.nodes.get(id.index()) {
        None => {
            Err(format!("{field} is node {}; allowed: a host, and the network's nodes are {}", id.0, range(network)))
        }
        Some(node) if node.kind == NodeKind::Router => {
            Err(format!("{field} is router `{}`; allowed: a host", node.name))
        }
        Some(_) => Ok(()),
    }
}

/// Returns the node numbers of `network` in words.
fn range(network: &Network) -> String {
    match network.nodes.len() {
        0 => "none".to_owned(),
        count => format!("0 to {}", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_different_hosts_make_a_flow() {
        let mut network = Network::default();
        let a = network.add("a", NodeKind::Host);
        let r = network.add("r", NodeKind::Router);
        let b = network.add("b", NodeKind::Host);
        assert_eq!(check(&network, a, b), Ok(()));
        for (src, dst, expected) in [
            (a, a, "src and dst are both `a`; allowed: two different hosts"),
            (a, r, "dst is router `r`; allowed: a host"),
            (NodeId(9), b, "src is node 9; allowed: a host, and the network's nodes are 0 to 2"),
        ] {
            assert_eq!(check(&network, src, dst), Err(expected.to_owned()));
        }
    }
}
