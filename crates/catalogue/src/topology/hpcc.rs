//! `topology.txt` of the HPCC simulator and of the other simulators for RDMA that descend from it.
//!
//! The first line has the numbers of nodes, switches and links, and the second the ids of the switches. All other nodes
//! are hosts; ids are 0, 1, 2, .... Then follows one link on each line: `NODE NODE RATE DELAY LOSS`, such as
//! `0 320 100Gbps 1000ns 0.000000`. Rate and delay hold for both directions, and the loss is the probability that a
//! packet is lost. Text after the last link is a comment.
//!
//! Source: the files in `simulation/mix` of the repository of HPCC (Li et al., SIGCOMM 2019). A node's name here is its
//! id, so that flow lists of the same simulator find their hosts by it.

use crate::schema::units;
use crate::topology::{TopologyError, bounds};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Loss, Network, NodeId, NodeKind};
use std::collections::BTreeSet;

/// The contents of the first line.
struct Counts {
    nodes: u32,
    switches: usize,
    links: usize,
}

/// A line that is not empty, and its number.
type Line<'a> = (usize, Vec<&'a str>);

struct Link {
    ends: [u32; 2],
    rate: Rate,
    delay: Dur,
    loss: f64,
}

/// Builds the network that `text` describes. Nodes have the numbers of the file.
///
/// # Errors
/// Fails if a line is missing or malformed, the numbers in the first line are not those of the file, an id or a value
/// is out of bounds, a link leads from a node to itself, or a node has no link.
pub fn parse(text: &str) -> Result<Network, TopologyError> {
    let lines = (1..).zip(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()));
    let mut lines = lines.filter(|(_, words)| !words.is_empty());
    let counts = counts(lines.next())?;
    let switches = switches(&counts, &mut lines)?;
    let mut links = Vec::new();
    while links.len() < counts.links {
        let Some(line) = lines.next() else {
            let message = format!(
                "the first line announces {} links; the file has {}; allowed: equal numbers",
                counts.links,
                links.len()
            );
            return Err(TopologyError::at(1, message));
        };
        links.push(link(&line, &counts)?);
    }
    // Comments may follow, but a further link shows that the number in the first line is wrong.
    if let Some((line, _)) = lines.find(|line| link(line, &counts).is_ok()) {
        let message =
            format!("a link follows the {} that the first line announces; allowed: equal numbers", counts.links);
        return Err(TopologyError::at(line, message));
    }
    // The number of nodes is only a claim until each of them has a link.
    let linked: BTreeSet<_> = links.iter().flat_map(|link| link.ends).collect();
    if let Some(alone) = (0..counts.nodes).find(|id| !linked.contains(id)) {
        return Err(TopologyError::at(1, format!("node {alone} has no link; allowed: one link or more for each node")));
    }
    let mut network = Network::default();
    for id in 0..counts.nodes {
        network.add(id.to_string(), if switches.contains(&id) { NodeKind::Router } else { NodeKind::Host });
    }
    for link in links {
        let [a, b] = link.ends.map(NodeId);
        network.connect(a, b, link.rate, link.delay).loss = [Loss::of_any(link.loss); 2];
    }
    Ok(network)
}

fn counts(line: Option<Line<'_>>) -> Result<Counts, TopologyError> {
    const ALLOWED: &str = "allowed: three whole numbers, of nodes, switches and links";
    let (line, words) = line.unwrap_or((1, Vec::new()));
    let &[nodes, switches, links] = &words[..] else {
        return Err(TopologyError::at(line, format!("{} words; {ALLOWED}", words.len())));
    };
    let whole = |text: &str| {
        text.parse::<u32>().map_err(|_| TopologyError::at(line, format!("`{text}` is not a count; {ALLOWED}")))
    };
    let counts = Counts { nodes: whole(nodes)?, switches: whole(switches)? as usize, links: whole(links)? as usize };
    bounds::nodes(u64::from(counts.nodes))?;
    bounds::cables(counts.links as u64)?;
    Ok(counts)
}

/// Reads the ids of the switches, on one line or on several.
fn switches<'a>(counts: &Counts, lines: &mut impl Iterator<Item = Line<'a>>) -> Result<BTreeSet<u32>, TopologyError> {
    let mut switches = BTreeSet::new();
    while switches.len() < counts.switches {
        let Some((line, words)) = lines.next() else {
            let message = format!("the first line announces {} switches; missing: their ids", counts.switches);
            return Err(TopologyError::at(1, message));
        };
        for word in words {
            let id = node(line, "a switch", word, counts)?;
            if !switches.insert(id) {
                return Err(TopologyError::at(line, format!("switch {id} is listed twice; allowed: each id once")));
            }
        }
        if switches.len() > counts.switches {
            let message =
                format!("{} ids of switches; allowed: {}, as in the first line", switches.len(), counts.switches);
            return Err(TopologyError::at(line, message));
        }
    }
    Ok(switches)
}

fn link((line, words): &Line<'_>, counts: &Counts) -> Result<Link, TopologyError> {
    let line = *line;
    let &[a, b, rate, delay, loss] = &words[..] else {
        let message = format!("{} words; allowed: exactly 5: node, node, rate, delay, loss", words.len());
        return Err(TopologyError::at(line, message));
    };
    let ends = [node(line, "the first node", a, counts)?, node(line, "the second node", b, counts)?];
    if ends[0] == ends[1] {
        let message = format!("the link leads from node {a} to itself; allowed: two different nodes");
        return Err(TopologyError::at(line, message));
    }
    let refuse = |what: &str, text: &str, allowed: String| {
        TopologyError::at(line, format!("{what} is `{text}`; allowed: {allowed}"))
    };
    let parsed_rate = units::rate_of(rate).map_err(|allowed| refuse("the rate", rate, allowed))?;
    let parsed_delay = units::time_of(delay).map_err(|allowed| refuse("the delay", delay, allowed))?;
    let probability = loss.parse().ok().filter(|loss| (0.0..=1.0).contains(loss));
    Ok(Link {
        ends,
        rate: bounds::rate(Some(line), "the rate", parsed_rate)?,
        delay: bounds::delay(Some(line), "the delay", parsed_delay)?,
        loss: probability.ok_or_else(|| refuse("the loss", loss, "a probability from 0 to 1".to_owned()))?,
    })
}

fn node(line: usize, what: &str, text: &str, counts: &Counts) -> Result<u32, TopologyError> {
    text.parse().ok().filter(|id| *id < counts.nodes).ok_or_else(|| {
        let message = format!("{what} is `{text}`; allowed: an id below {}, the number of nodes", counts.nodes);
        TopologyError::at(line, message)
    })
}

/// Writes `network` in this format.
///
/// # Errors
/// Fails if a link differs between its directions, which the format cannot state.
pub fn write(network: &Network) -> Result<String, TopologyError> {
    let ids = |kind| (0..network.nodes.len()).filter(move |&id| network.nodes[id].kind == kind);
    let switches: Vec<_> = ids(NodeKind::Router).map(|id| id.to_string()).collect();
    let mut text =
        format!("{} {} {}\n{}\n", network.nodes.len(), switches.len(), network.cables.len(), switches.join(" "));
    for cable in &network.cables {
        let loss = cable.loss[0].probability;
        if cable.rates[0] != cable.rates[1] || cable.loss[0] != cable.loss[1] {
            let [a, b] = [cable.a, cable.b].map(|end| &network.nodes[end.index()].name);
            return Err(TopologyError::new(format!(
                "the link between `{a}` and `{b}` differs between its directions; allowed in HPCC's topology: equal ones"
            )));
        }
        // ns-3 reads times of nanoseconds and picoseconds.
        let (rate, delay_ps) = (cable.rates[0].as_bps(), cable.delay.as_ps());
        let delay = if delay_ps % 1000 == 0 { format!("{}ns", delay_ps / 1000) } else { format!("{delay_ps}ps") };
        text += &format!("{} {} {rate}bps {delay} {loss}\n", cable.a.0, cable.b.0);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAR: &str = "4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 25Gb/s 0.001ms 0.25\n2 3 100Gbps 1000ns 0.000000\n\n\
                        First line: total node #, switch node #, link #\nsrc0 dst0 rate delay error_rate\n";

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn nodes_that_are_not_switches_are_hosts_and_keep_their_ids() {
        let network = parse(STAR).unwrap();
        assert_eq!(network.hosts(), [NodeId(0), NodeId(1), NodeId(2)]);
        assert_eq!(network.find("3"), Some(NodeId(3)));
        let cables: Vec<_> = network.cables.iter().map(|cable| (cable.rates[1], cable.delay)).collect();
        let us = Dur::from_us(1);
        assert_eq!(cables, [(Rate::from_gbps(100), us), (Rate::from_gbps(25), us), (Rate::from_gbps(100), us)]);
        assert_eq!(network.cables[1].loss, [Loss::of_any(0.25); 2]);
        // Switches may come first, and their ids on several lines.
        let network = parse("4 2 3\n0\n1\n0 1 1Gbps 1us 0\n0 2 1Gbps 1us 0\n1 3 1Gbps 1us 0").unwrap();
        assert_eq!((network.hosts(), network.routers().len()), (vec![NodeId(2), NodeId(3)], 2));
    }

    #[test]
    fn a_network_that_is_written_and_read_is_the_same() {
        let mut network = parse(STAR).unwrap();
        network.cables[0].delay = Dur::from_ps(1_500);
        assert_eq!(parse(&write(&network).unwrap()).unwrap(), network);
        network.cables[0].rates[1] = Rate::from_gbps(1);
        let error = write(&network).unwrap_err().to_string();
        assert!(error.starts_with("the link between `0` and `3` differs between its directions"), "{error}");
    }

    #[test]
    fn each_error_states_its_line_and_the_allowed_values() {
        for (from, to, expected) in [
            ("4 1 3\n", "4 1\n", "line 1: 2 words; allowed: three whole numbers, of nodes, switches and links"),
            ("4 1 3\n", "4 1 -3\n", "line 1: `-3` is not a count; allowed: three whole numbers, of nodes, switches"),
            ("4 1 3\n", "4 1 4\n", "line 7: 10 words; allowed: exactly 5: node, node, rate, delay, loss"),
            ("4 1 3\n", "4 1 2\n", "line 5: a link follows the 2 that the first line announces; allowed"),
            ("4 1 3\n", "5 1 3\n", "line 1: node 4 has no link; allowed: one link or more for each node"),
            ("4 1 3\n", "9999999 1 3\n", "the network has 9999999 nodes; allowed: at most 4000000"),
            ("4 1 3\n", "4 1 4000000000\n", "the network has 4000000000 cables; allowed: at most"),
            ("\n3\n", "\n4\n", "line 2: a switch is `4`; allowed: an id below 4, the number of nodes"),
            ("\n3\n", "\n3 2\n", "line 2: 2 ids of switches; allowed: 1, as in the first line"),
            ("\n3\n", "\n3 3\n", "line 2: switch 3 is listed twice; allowed: each id once"),
            ("0 3 ", "7 3 ", "line 3: the first node is `7`; allowed: an id below 4, the number of nodes"),
            ("0 3 ", "0 -3 ", "line 3: the second node is `-3`; allowed: an id below 4, the number of nodes"),
            ("0 3 ", "3 3 ", "line 3: the link leads from node 3 to itself; allowed: two different nodes"),
            ("100Gbps", "100", "line 3: the rate is `100`; allowed: a rate such as \"100Mbps\""),
            ("100Gbps", "0Gbps", "line 3: the rate is 0 b/s; allowed: 1000 to 100000000000000 b/s"),
            ("1000ns", "-1ns", "line 3: the delay is `-1ns`; allowed: a time such as \"40ms\""),
            ("1000ns 0\n", "1000ns 1.5\n", "line 3: the loss is `1.5`; allowed: a probability from 0 to 1"),
        ] {
            assert!(STAR.contains(from), "{from}");
            let found = error(&STAR.replacen(from, to, 1));
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
        assert_eq!(error("4 1 3\n"), "line 1: the first line announces 1 switches; missing: their ids");
        assert_eq!(
            error("4 1 3\n3\n0 3 1Gbps 1us 0\n"),
            "line 1: the first line announces 3 links; the file has 1; allowed: equal numbers"
        );
    }
}
