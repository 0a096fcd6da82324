//! The output of the topology generators BRITE and Inet, and the weights and latencies of Rocketfuel's maps: tables of
//! text, one node or edge on each line.
//!
//! | format | nodes | edges |
//! |---|---|---|
//! | BRITE | after `Nodes: ( N )`; the first word is the id | after `Edges: ( M )`: id, from, to, length, delay in ms, bandwidth in Mb/s, ... |
//! | Inet | after the line `N M`: id, x, y | after the nodes: from, to, distance |
//! | Rocketfuel | the names in the edges | from, to, and a weight, or a latency in ms |
//!
//! Positions of nodes are on a plane of no unit and are left out, as are distances and weights; a warning reports
//! weights and distances. Edges of Rocketfuel and those of BRITE that end in `D` are directed.
//!
//! Sources: the manual of BRITE (Medina et al., 2001); Inet-3.0 (Winick and Jamin, 2002); the archive of link weights of
//! Rocketfuel (Mahajan et al., 2002).

use super::{Data, DeclaredEdge, DeclaredNode, Graph};
use crate::schema::Warnings;
use crate::topology::TopologyError;
use std::collections::{BTreeMap, BTreeSet};

/// A line that is not empty, and its number.
type Line<'a> = (usize, Vec<&'a str>);

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let lines = (1..).zip(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()));
    lines.filter(|(_, words)| words.first().is_some_and(|word| !word.starts_with('#')))
}

fn node(line: usize, id: &str) -> DeclaredNode<'_> {
    DeclaredNode { id, data: Data { line, values: BTreeMap::new() } }
}

fn edge<'a>(line: usize, ends: [&'a str; 2], is_directed: bool, values: &[(&str, String)]) -> DeclaredEdge<'a> {
    let values = values.iter().map(|(name, text)| ((*name).to_owned(), (line, text.clone().into())));
    DeclaredEdge { ends, is_directed, data: Data { line, values: values.collect() } }
}

/// Reads the output of BRITE.
pub(super) fn brite(text: &str) -> Result<Graph<'_>, TopologyError> {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut section = "";
    // The numbers that the headings announce.
    let mut announced = BTreeMap::new();
    for (line, words) in lines(text) {
        match words[0] {
            heading @ ("Nodes:" | "Edges:") => {
                section = heading;
                let digits: String = words[1..].concat().chars().filter(char::is_ascii_digit).collect();
                announced.insert(heading, (line, digits.parse::<usize>().ok()));
            }
            _ if section == "Nodes:" => nodes.push(node(line, words[0])),
            _ if section == "Edges:" => {
                let &[_, from, to, _, delay, bandwidth, ..] = &words[..] else {
                    let message = format!(
                        "{} words; allowed: 6 or more: id, from, to, length, delay in ms, bandwidth in Mb/s",
                        words.len()
                    );
                    return Err(TopologyError::at(line, message));
                };
                let mut values = Vec::new();
                // A generator without delays or rates writes -1 or 0.
                let is_given = |text: &str| text.parse::<f64>().map_or(true, |value| value > 0.0);
                if is_given(delay) {
                    values.push(("delay", format!("{delay}ms")));
                }
                if is_given(bandwidth) {
                    values.push(("rate", format!("{bandwidth}Mbps")));
                }
                edges.push(edge(line, [from, to], words.last() == Some(&"D"), &values));
            }
            // The header, and the parameters of the model.
            _ => {}
        }
    }
    for (heading, found) in [("Nodes:", nodes.len()), ("Edges:", edges.len())] {
        match announced.get(heading) {
            None => return Err(TopologyError::new(format!("the line `{heading}` is missing"))),
            Some(&(line, count)) if count != Some(found) => {
                let message = format!("the file has {found} lines after `{heading}`; allowed: as many as it announces");
                return Err(TopologyError::at(line, message));
            }
            Some(_) => {}
        }
    }
    Ok(Graph { nodes, edges })
}

/// Reads the output of Inet.
pub(super) fn inet<'a>(text: &'a str, warnings: &Warnings) -> Result<Graph<'a>, TopologyError> {
    let mut lines = lines(text);
    let (first, words) = lines.next().unwrap_or((1, Vec::new()));
    let count = |place: usize| words.get(place).and_then(|word| word.parse::<usize>().ok());
    let (Some(node_count), Some(edge_count), 2) = (count(0), count(1), words.len()) else {
        return Err(TopologyError::at(first, "allowed: the numbers of nodes and edges"));
    };
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for (line, words) in lines {
        let &[a, b, _] = &words[..] else {
            let message = format!("{} words; allowed: 3: id, x, y; or from, to, distance", words.len());
            return Err(TopologyError::at(line, message));
        };
        if nodes.len() < node_count {
            nodes.push(node(line, a));
        } else {
            edges.push(edge(line, [a, b], false, &[]));
        }
    }
    if (nodes.len(), edges.len()) != (node_count, edge_count) {
        let message = format!(
            "the file has {} nodes and {} edges; allowed: as many as its first line announces",
            nodes.len(),
            edges.len()
        );
        return Err(TopologyError::at(first, message));
    }
    warnings.add("distances in Inet's topology are left out: links have default_rate and default_delay");
    Ok(Graph { nodes, edges })
}

/// Reads weights of Rocketfuel, or latencies if `are_latencies`.
pub(super) fn rocketfuel<'a>(
    text: &'a str,
    are_latencies: bool,
    warnings: &Warnings,
) -> Result<Graph<'a>, TopologyError> {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut known = BTreeSet::new();
    for (line, words) in lines(text) {
        let &[from, to, value] = &words[..] else {
            return Err(TopologyError::at(line, format!("{} words; allowed: 3: from, to, weight", words.len())));
        };
        if value.parse().ok().filter(|value: &f64| *value >= 0.0).is_none() {
            let message = format!("the weight is `{value}`; allowed: a number, 0 or more");
            return Err(TopologyError::at(line, message));
        }
        for name in [from, to] {
            if known.insert(name) {
                nodes.push(node(line, name));
            }
        }
        let delay = [("delay", format!("{value}ms"))];
        edges.push(edge(line, [from, to], true, if are_latencies { &delay } else { &[] }));
    }
    if !are_latencies {
        warnings.add("weights of Rocketfuel's map are left out: links have default_rate and default_delay");
    }
    Ok(Graph { nodes, edges })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRITE: &str = "Topology: ( 3 Nodes, 2 Edges )\nModel (1 - RTWaxman):  3 1000 100 1  2  0.15 0.2 1 1 10.0 \
                         1024.0\n\nNodes: ( 3 )\n0\t5.0\t7.0\t1\t1\t-1\tRT_NODE\n1\t8.0\t2.0\t2\t2\t-1\tRT_NODE\n2\t1.0\
                         \t1.0\t1\t1\t-1\tRT_NODE\n\nEdges: ( 2 )\n0\t0\t1\t5.83\t0.25\t10.0\t-1\t-1\tE_RT\tU\n1\t1\t2\
                         \t7.07\t-1\t-1.0\t-1\t-1\tE_RT\tD\n";
    const INET: &str = "3 2\n0 5 7\n1 8 2\n2 1 1\n0 1 5\n1 2 7\n";
    const WEIGHTS: &str = "Perth,+Australia3 Sydney,+Australia9 3.5\nSydney,+Australia9 Perth,+Australia3 4\n";

    fn data<'g>(graph: &'g Graph<'_>, edge: usize) -> (Option<&'g str>, Option<&'g str>) {
        let data = &graph.edges[edge].data;
        (data.text("rate"), data.text("delay"))
    }

    #[test]
    fn brite_has_milliseconds_and_megabits_or_none() {
        let graph = brite(BRITE).unwrap();
        assert_eq!(graph.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), ["0", "1", "2"]);
        assert_eq!((graph.edges[0].ends, graph.edges[0].is_directed), (["0", "1"], false));
        assert_eq!(data(&graph, 0), (Some("10.0Mbps"), Some("0.25ms")));
        assert_eq!((data(&graph, 1), graph.edges[1].is_directed), ((None, None), true));
    }

    #[test]
    fn inet_has_edges_after_the_nodes_and_a_warning() {
        let warnings = Warnings::new();
        let graph = inet(INET, &warnings).unwrap();
        assert_eq!((graph.nodes.len(), graph.edges[1].ends), (3, ["1", "2"]));
        assert!(warnings.list()[0].starts_with("distances in Inet's topology are left out"));
    }

    #[test]
    fn rocketfuel_has_weights_or_latencies() {
        let warnings = Warnings::new();
        let graph = rocketfuel(WEIGHTS, true, &warnings).unwrap();
        assert_eq!((graph.nodes.len(), graph.edges.len(), data(&graph, 1).1), (2, 2, Some("4ms")));
        assert!(warnings.list().is_empty());
        assert_eq!(data(&rocketfuel(WEIGHTS, false, &warnings).unwrap(), 1), (None, None));
        assert!(warnings.list()[0].starts_with("weights of Rocketfuel's map are left out"));
    }

    #[test]
    fn lines_that_are_missing_or_malformed_are_refused() {
        let warnings = Warnings::new();
        let error =
            |graph: Result<Graph<'_>, TopologyError>| graph.err().map_or_else(String::new, |one| one.to_string());
        for (text, expected) in [
            (BRITE.replace("Edges: ( 2 )", "Edges: ( 3 )"), "line 9: the file has 2 lines after `Edges:`"),
            (BRITE.replace("Nodes: ( 3 )", "Nodes: ( x )"), "line 4: the file has 3 lines after `Nodes:`"),
            (BRITE.replace("\t5.83\t0.25\t10.0\t-1\t-1\tE_RT\tU", ""), "line 10: 3 words; allowed: 6 or more: id"),
            ("Topology: ( 3 Nodes, 2 Edges )\n".to_owned(), "the line `Nodes:` is missing"),
        ] {
            let found = error(brite(&text));
            assert!(found.starts_with(expected), "{found}");
        }
        for (text, expected) in [
            ("x 2\n", "line 1: allowed: the numbers of nodes and edges"),
            ("3 2\n0 5 7\n", "line 1: the file has 1 nodes and 0 edges; allowed: as many as its first line"),
            ("3 2\n0 5\n", "line 2: 2 words; allowed: 3: id, x, y; or from, to, distance"),
        ] {
            let found = error(inet(text, &warnings));
            assert!(found.starts_with(expected), "{found}");
        }
        assert_eq!(error(rocketfuel("a b\n", false, &warnings)), "line 1: 2 words; allowed: 3: from, to, weight");
        assert!(error(rocketfuel("a b -1\n", false, &warnings)).starts_with("line 1: the weight is `-1`"));
    }
}
