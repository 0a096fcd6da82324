//! The neutral `.topo` format, which any simulator can read.
//!
//! It has one statement per line: `host <id> [<name>]`, `router <id> <name>`, or
//! `link <a> <b> <rate b/s> <delay ns> <queue packets> [<loss>]`. A link is full duplex, and the queue, in packets of
//! 1500 bytes, is that of each direction. Ids are the numbers of the nodes, starting at 0; a link may precede its nodes.
//! A host without a name is called `h` and its id. Empty lines and lines that begin with `#` are ignored.
//!
//! Links of files of other tools need more, so each of these is valid as well: a rate or a loss of each direction,
//! `2000000/1000000`, first that from a to b; a delay with a fraction; a queue in bytes, `80000B`, or `default`, which is
//! the scenario's. The loss is the probability that a packet is lost.

use crate::schema::units;
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Limit, Loss, Network, NodeId, NodeKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

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
    rates: [Rate; 2],
    delay: Dur,
    limit: Option<Limit>,
    loss: [f64; 2],
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
        let (id, name) = match self.words {
            &[_, id, name] => (id, Some(name)),
            _ => (self.fields(["id"])?[0], None),
        };
        let id = self.id("the id", id)?;
        let name = name.map_or_else(|| format!("h{id}"), str::to_owned);
        Ok(Declared { line: self.line, id, name, kind: NodeKind::Host })
    }

    fn router(&self) -> Result<Declared, TopologyError> {
        let [id, name] = self.fields(["id", "name"])?;
        let id = self.id("the id", id)?;
        Ok(Declared { line: self.line, id, name: name.to_owned(), kind: NodeKind::Router })
    }

    fn link(&self) -> Result<Link, TopologyError> {
        let (fields, loss) = match self.words {
            &[_, a, b, rate, delay, queue, loss] => ([a, b, rate, delay, queue], Some(loss)),
            _ => (self.fields(["node", "node", "rate in b/s", "delay in ns", "queue in packets"])?, None),
        };
        let [a, b, rate, delay, queue] = fields;
        let ends = [self.id("the first node", a)?, self.id("the second node", b)?];
        if ends[0] == ends[1] {
            return Err(self.error(format!("the link leads from node {a} to itself; allowed: two different nodes")));
        }
        let bound = |rate| bounds::rate(Some(self.line), "the rate", Rate::from_bps(rate));
        let [there, back] = both(rate).map(|rate| self.number("the rate", rate, u64::MAX).and_then(bound));
        let [loss_there, loss_back] = loss.map_or([Ok(0.0), Ok(0.0)], |loss| both(loss).map(|loss| self.share(loss)));
        let delay = units::time_of(&format!("{delay}ns")).map_err(|_| {
            self.error(format!("the delay in ns is `{delay}`; allowed: a number, 0 or more, with at most 3 decimals"))
        })?;
        Ok(Link {
            line: self.line,
            ends,
            rates: [there?, back?],
            delay: bounds::delay(Some(self.line), "the delay", delay)?,
            limit: self.queue(queue)?,
            loss: [loss_there?, loss_back?],
        })
    }

    fn queue(&self, text: &str) -> Result<Option<Limit>, TopologyError> {
        if text == "default" {
            return Ok(None);
        }
        let bytes = match text.strip_suffix('B') {
            Some(bytes) => self.number("the queue in bytes", bytes, u64::MAX)?,
            None => self.number("the queue in packets", text, u64::MAX / FULL_PACKET_BYTES)? * FULL_PACKET_BYTES,
        };
        Ok(Some(Limit::Bytes(bytes)))
    }

    fn share(&self, text: &str) -> Result<f64, TopologyError> {
        let value = text.parse().ok().filter(|value| (0.0..=1.0).contains(value));
        value.ok_or_else(|| self.error(format!("the loss is `{text}`; allowed: a probability from 0 to 1")))
    }
}

/// Returns the texts for both directions: `A/B`, or the same for both.
fn both(text: &str) -> [&str; 2] {
    text.split_once('/').map_or([text; 2], |(there, back)| [there, back])
}

/// Writes `network` in this format. Reading the text gives an equal network, unless a link has a PAUSE, which the format
/// does not have, or the name of a router has blanks, which become underscores.
pub fn write(network: &Network) -> String {
    let mut text = String::new();
    let mut line = |content: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{content}");
    };
    for (id, node) in network.nodes.iter().enumerate() {
        let name = node.name.split_whitespace().collect::<Vec<_>>().join("_");
        match node.kind {
            NodeKind::Host if name == format!("h{id}") => line(format_args!("host {id}")),
            NodeKind::Host => line(format_args!("host {id} {name}")),
            NodeKind::Router => line(format_args!("router {id} {name}")),
        }
    }
    for cable in &network.cables {
        let [there, back] = cable.rates.map(Rate::as_bps);
        let rate = if there == back { there.to_string() } else { format!("{there}/{back}") };
        let (ns, ps) = (cable.delay.as_ps() / 1000, cable.delay.as_ps() % 1000);
        let delay = if ps == 0 { ns.to_string() } else { format!("{ns}.{ps:03}") };
        let queue = match cable.limit {
            None => "default".to_owned(),
            Some(Limit::Packets(packets)) => packets.to_string(),
            Some(Limit::Bytes(bytes)) if bytes % FULL_PACKET_BYTES == 0 => (bytes / FULL_PACKET_BYTES).to_string(),
            Some(Limit::Bytes(bytes)) => format!("{bytes}B"),
        };
        let loss = match cable.loss.map(|loss| loss.probability) {
            [0.0, 0.0] => String::new(),
            [there, back] if there == back => format!(" {there}"),
            [there, back] => format!(" {there}/{back}"),
        };
        line(format_args!("link {} {} {rate} {delay} {queue}{loss}", cable.a.0, cable.b.0));
    }
    text
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
        let [there, _] = link.rates;
        let cable = network.connect(a, b, there, link.delay);
        (cable.rates, cable.limit, cable.loss) = (link.rates, link.limit, link.loss.map(Loss::of_any));
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
    fn a_network_that_is_written_and_read_is_the_same() {
        let text = "host 0\nhost 1 server\nrouter 2 west\nlink 0 2 1000000000 1000000 20\nlink 2 1 2000000/1000000 \
                    5.125 80001B 0.25/0\nlink 2 1 1000 0 default 0.5\n";
        let network = parse(text).unwrap();
        assert_eq!(write(&network), text);
        let [_, fast, slow] = &network.cables[..] else { panic!("three cables") };
        assert_eq!((fast.rates, fast.delay), ([2, 1].map(Rate::from_mbps), Dur::from_ps(5_125)));
        assert_eq!((fast.limit, fast.loss), (Some(Limit::Bytes(80_001)), [0.25, 0.0].map(Loss::of_any)));
        assert_eq!((slow.limit, slow.loss), (None, [Loss::of_any(0.5); 2]));
        assert_eq!(network.find("server"), Some(NodeId(1)));
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
            (
                "link 0 1 1000 -5 1",
                "line 1: the delay in ns is `-5`; allowed: a number, 0 or more, with at most 3 decimals",
            ),
            ("link 0 1 1000/x 0 1", "line 1: the rate is `x`; allowed: a whole number from 0 to 18446744073709551615"),
            ("link 0 1 1000 0 1 2", "line 1: the loss is `2`; allowed: a probability from 0 to 1"),
            (
                "link 0 1 1000 0 xB",
                "line 1: the queue in bytes is `x`; allowed: a whole number from 0 to 18446744073709551615",
            ),
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
