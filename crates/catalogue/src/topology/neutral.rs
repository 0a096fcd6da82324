//! The neutral `.topo` format, which any simulator can read.
//!
//! It has one statement per line: `host <id>`, `router <id> <name>`, or
//! `link <a> <b> <rate b/s> <delay ns> <queue packets>`. A link is full duplex, and the queue, in packets of 1500
//! bytes, is that of each direction. Ids are the numbers of the nodes, starting at 0; a link may precede its nodes. A
//! host's name is `h` and its id. Empty lines and lines that begin with `#` are ignored.

use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Limit, Network, NodeId, NodeKind};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a full packet in a queue limit.
const FULL_PACKET_BYTES: u64 = 1500;

/// Builds the network that `text` describes.
///
/// # Errors
/// Fails on an unknown word; a missing, extra or non-numeric field; a duplicate id or name, or ids with a gap; a link
/// to an unknown node or back to its start; a rate or delay out of bounds; and a host without link.
pub fn parse(text: &str) -> Result<Network, TopologyError> {
    let mut nodes = BTreeMap::new();
    let mut links = Vec::new();
    for (index, content) in text.lines().enumerate() {
        let words: Vec<_> = content.split_whitespace().collect();
        let statement = Statement { line: index + 1, words: &words };
        match words.first() {
            None => {}
            Some(word) if word.starts_with('#') => {}
            Some(&"host") => declare(&mut nodes, statement.host()?)?,
            Some(&"router") => declare(&mut nodes, statement.router()?)?,
            Some(&"link") => links.push(statement.link()?),
            Some(word) => return Err(statement.error(format!("`{word}` is not known; allowed: host, router, link"))),
        }
    }
    assemble(nodes, &links)
}

/// A node as declared.
struct Declared {
    line: usize,
    id: u32,
    name: String,
    kind: NodeKind,
}

/// A link as declared, with its ends not yet looked up.
struct Link {
    line: usize,
    ends: [u32; 2],
    rate: Rate,
    delay: Dur,
    limit: Limit,
}

/// One line, split into words.
struct Statement<'a> {
    line: usize,
    words: &'a [&'a str],
}

impl<'a> Statement<'a> {
    fn error(&self, message: String) -> TopologyError {
        TopologyError::at(self.line, message)
    }

    /// Returns the fields after the first word, which must match `names` in number.
    fn fields<const N: usize>(&self, names: [&str; N]) -> Result<[&'a str; N], TopologyError> {
        <[&str; N]>::try_from(&self.words[1..]).map_err(|_| {
            let (word, found) = (self.words[0], self.words.len() - 1);
            self.error(format!("`{word}` has {found} fields; allowed: exactly {N}: {}", names.join(", ")))
        })
    }

    /// Parses a whole number up to `max`.
    fn number(&self, name: &str, text: &str, max: u64) -> Result<u64, TopologyError> {
        let value = text.parse().ok().filter(|value| *value <= max);
        value.ok_or_else(|| self.error(format!("{name} is `{text}`; allowed: a whole number from 0 to {max}")))
    }

    fn id(&self, name: &str, text: &str) -> Result<u32, TopologyError> {
        self.number(name, text, u64::from(u32::MAX)).map(|id| id as u32)
    }

    fn host(&self) -> Result<Declared, TopologyError> {
        let [id] = self.fields(["id"])?;
        let id = self.id("the id", id)?;
        Ok(Declared { line: self.line, id, name: format!("h{id}"), kind: NodeKind::Host })
    }

    fn router(&self) -> Result<Declared, TopologyError> {
        let [id, name] = self.fields(["id", "name"])?;
        let id = self.id("the id", id)?;
        Ok(Declared { line: self.line, id, name: name.to_owned(), kind: NodeKind::Router })
    }

    fn link(&self) -> Result<Link, TopologyError> {
        let [a, b, rate, delay, queue] =
            self.fields(["node", "node", "rate in b/s", "delay in ns", "queue in packets"])?;
        let ends = [self.id("the first node", a)?, self.id("the second node", b)?];
        if ends[0] == ends[1] {
            return Err(self.error(format!("the link leads from node {a} to itself; allowed: two different nodes")));
        }
        let rate = Rate::from_bps(self.number("the rate", rate, u64::MAX)?);
        let delay_ns = self.number("the delay in ns", delay, Dur::MAX.as_ps() / 1000)?;
        let packets = self.number("the queue in packets", queue, u64::MAX / FULL_PACKET_BYTES)?;
        Ok(Link {
            line: self.line,
            ends,
            rate: bounds::rate(Some(self.line), "the rate", rate)?,
            delay: bounds::delay(Some(self.line), "the delay", Dur::from_ns(delay_ns))?,
            limit: Limit::Bytes(packets * FULL_PACKET_BYTES),
        })
    }
}

fn declare(nodes: &mut BTreeMap<u32, Declared>, node: Declared) -> Result<(), TopologyError> {
    if let Some(first) = nodes.get(&node.id) {
        let message = format!("node {} is on line {} already; allowed: each id once", node.id, first.line);
        return Err(TopologyError::at(node.line, message));
    }
    nodes.insert(node.id, node);
    Ok(())
}

fn assemble(nodes: BTreeMap<u32, Declared>, links: &[Link]) -> Result<Network, TopologyError> {
    bounds::nodes(nodes.len() as u64)?;
    check_names(&nodes)?;
    let mut network = Network::default();
    // Ids become positions in the network, so they must be consecutive.
    for (expected, node) in (0..).zip(nodes.values()) {
        if node.id != expected {
            let message =
                format!("node {} exists but node {expected} does not; allowed: ids 0, 1, 2, ... without gap", node.id);
            return Err(TopologyError::at(node.line, message));
        }
        network.add(node.name.clone(), node.kind);
    }
    for link in links {
        if let Some(unknown) = link.ends.iter().find(|end| !nodes.contains_key(end)) {
            let message = format!("the link leads to node {unknown}; allowed: {}", known_ids(nodes.len()));
            return Err(TopologyError::at(link.line, message));
        }
        let [a, b] = link.ends.map(NodeId);
        network.connect(a, b, link.rate, link.delay).limit = Some(link.limit);
    }
    let linked: BTreeSet<_> = links.iter().flat_map(|link| link.ends).collect();
    let lonely = nodes.values().find(|node| node.kind == NodeKind::Host && !linked.contains(&node.id));
    match lonely {
        Some(host) => Err(TopologyError::at(host.line, format!("host {} has no link; a host needs one", host.id))),
        None => Ok(network),
    }
}

fn check_names(nodes: &BTreeMap<u32, Declared>) -> Result<(), TopologyError> {
    let mut owners = BTreeMap::new();
    for node in nodes.values() {
        if let Some(other) = owners.insert(node.name.as_str(), node) {
            let message =
                format!("the name `{}` is also that of node {}; allowed: each name once", node.name, other.id);
            return Err(TopologyError::at(node.line, message));
        }
    }
    Ok(())
}

fn known_ids(count: usize) -> String {
    if count == 0 {
        "none, because no node is declared".to_owned()
    } else {
        format!("the declared nodes 0 to {}", count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_HOSTS: &str = "# two hosts, one router\nhost 0\nhost 1\n\nrouter 2 west\nlink 0 2 1000000000 1000000 20\n\
                             link 2 1 10000000 5000 3333\n";

    #[test]
    fn numbers_names_and_links_are_those_of_the_text() {
        let network = parse(TWO_HOSTS).unwrap();
        let names: Vec<_> = network.nodes.iter().map(|node| (node.name.as_str(), node.kind)).collect();
        assert_eq!(names, [("h0", NodeKind::Host), ("h1", NodeKind::Host), ("west", NodeKind::Router)]);
        let cable = &network.cables[1];
        assert_eq!((cable.a, cable.b, cable.rates), (NodeId(2), NodeId(1), [Rate::from_mbps(10); 2]));
        assert_eq!(
            (cable.delay, cable.limit, cable.loss[0].probability),
            (Dur::from_us(5), Some(Limit::Bytes(3333 * 1500)), 0.0)
        );
    }

    #[test]
    fn order_of_lines_does_not_matter_for_the_nodes() {
        let turned: Vec<_> = TWO_HOSTS.lines().rev().collect();
        assert_eq!(parse(&turned.join("\n")).unwrap().nodes, parse(TWO_HOSTS).unwrap().nodes);
    }

    #[test]
    fn each_error_states_its_line_and_the_allowed_values() {
        for (text, expected) in [
            ("switch 0", "line 1: `switch` is not known; allowed: host, router, link"),
            ("host 0\nhost 0", "line 2: node 0 is on line 1 already; allowed: each id once"),
            ("host", "line 1: `host` has 0 fields; allowed: exactly 1: id"),
            ("router 0 a b", "line 1: `router` has 3 fields; allowed: exactly 2: id, name"),
            ("host -1", "line 1: the id is `-1`; allowed: a whole number from 0 to 4294967295"),
            ("host 0x1", "line 1: the id is `0x1`; allowed: a whole number from 0 to 4294967295"),
            ("router 1 a", "line 1: node 1 exists but node 0 does not; allowed: ids 0, 1, 2, ... without gap"),
            ("router 0 a\nrouter 1 a", "line 2: the name `a` is also that of node 0; allowed: each name once"),
            ("router 0 a\nlink 0 1 1000 0 1", "line 2: the link leads to node 1; allowed: the declared nodes 0 to 0"),
            ("link 0 1 1000 0 1", "line 1: the link leads to node 0; allowed: none, because no node is declared"),
            (
                "router 0 a\nlink 0 0 1000 0 1",
                "line 2: the link leads from node 0 to itself; allowed: two different nodes",
            ),
            ("link 0 1 0 0 1", "line 1: the rate is 0 b/s; allowed: 1000 to 100000000000000 b/s"),
            ("link 0 1 1000 3600000000001 1", "line 1: the delay is 3600.000000001s; allowed: 0s to 3600s"),
            ("router 0 a\nhost 1", "line 2: host 1 has no link; a host needs one"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn extreme_numbers_are_refused_without_overflow() {
        let huge = u64::MAX;
        for text in [
            format!("link 0 1 {huge} 0 1"),
            format!("link 0 1 1000 {huge} 1"),
            format!("link 0 1 1000 0 {huge}"),
            format!("host {huge}"),
            format!("link 0 1 1{huge} 0 1"),
        ] {
            assert_eq!(parse(&text).unwrap_err().line, Some(1), "{text}");
        }
    }
}
