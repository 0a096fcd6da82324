//! SNDlib's networks in its XML format (sndlib.put.poznan.pl): nodes with coordinates, and links with capacities.
//!
//! Coordinates are used if the file calls them geographical: x is the longitude, y the latitude. A link has its
//! installed capacity, the element `preInstalledModule`. The files do not name the unit of capacities, which differs
//! between instances; a warning reports that Mb/s is assumed unless the scenario gives a unit. Modules that could be
//! added, costs and demands are left out; warnings report demands and links without capacity.

use super::{Data, DeclaredEdge, DeclaredNode, Graph, line, number};
use crate::schema::Warnings;
use crate::topology::TopologyError;
use roxmltree::{Document, Node};
use sparelane_core::Rate;
use std::collections::BTreeMap;

/// The assumed rate of a link of capacity 1.
const ASSUMED_UNIT: Rate = Rate::from_mbps(1);
/// The maximum capacity, whatever its unit.
const MAX_CAPACITY: f64 = 1e15;

/// Reads the network of `tree`, in which `unit` is the rate of capacity 1. `warnings` collects what is left out or
/// assumed.
pub(super) fn read<'a>(
    tree: &'a Document<'_>,
    unit: Option<Rate>,
    warnings: &Warnings,
) -> Result<Graph<'a>, TopologyError> {
    let root = tree.root_element();
    let structure =
        child(root, "networkStructure").filter(|_| root.tag_name().name() == "network").ok_or_else(|| {
            TopologyError::at(line(root), "this is not an SNDlib network; allowed: <network> with a <networkStructure>")
        })?;
    // Other coordinates are positions on a drawing and imply no delays.
    let is_geographical =
        child(structure, "nodes").and_then(|nodes| nodes.attribute("coordinatesType")) == Some("geographical");
    let nodes = elements(structure, "nodes", "node").map(|node| {
        let id =
            node.attribute("id").ok_or_else(|| TopologyError::at(line(node), "<node> has no `id`; it needs one"))?;
        let mut values = BTreeMap::new();
        if let Some(place) = child(node, "coordinates").filter(|_| is_geographical) {
            for (name, axis) in [("longitude", "x"), ("latitude", "y")] {
                if let Some((line, text)) = text(place, axis) {
                    values.insert(name.to_owned(), (line, text.into()));
                }
            }
        }
        Ok(DeclaredNode { id, data: Data { line: line(node), values } })
    });
    let nodes = nodes.collect::<Result<Vec<_>, TopologyError>>()?;
    let edges = elements(structure, "links", "link").map(|link| {
        let end = |name| {
            let missing = || TopologyError::at(line(link), format!("<link> has no <{name}>; it needs one"));
            text(link, name).map(|(_, id)| id).ok_or_else(missing)
        };
        let mut values = BTreeMap::new();
        if let Some((line, rate)) = rate(link, unit.unwrap_or(ASSUMED_UNIT))? {
            values.insert("rate".to_owned(), (line, rate.into()));
        }
        let data = Data { line: line(link), values };
        Ok(DeclaredEdge { ends: [end("source")?, end("target")?], is_directed: false, data })
    });
    let edges = edges.collect::<Result<Vec<DeclaredEdge<'a>>, TopologyError>>()?;
    warn(root, &edges, unit, warnings);
    Ok(Graph { edges, nodes })
}

/// Returns the rate of a link with installed capacity, as text with a unit, and the line of the capacity.
fn rate(link: Node<'_, '_>, unit: Rate) -> Result<Option<(usize, String)>, TopologyError> {
    let Some((line, text)) = child(link, "preInstalledModule").and_then(|module| text(module, "capacity")) else {
        return Ok(None);
    };
    let capacity = number(text, 0.0, MAX_CAPACITY)
        .map_err(|allowed| TopologyError::at(line, format!("<capacity> is `{text}`; allowed: {allowed}")))?;
    let bps = (capacity * unit.as_bps() as f64).round();
    Ok((capacity > 0.0).then(|| (line, format!("{bps}bps"))))
}

fn warn(root: Node<'_, '_>, edges: &[DeclaredEdge<'_>], unit: Option<Rate>, warnings: &Warnings) {
    let with_capacity = edges.iter().filter(|edge| edge.data.text("rate").is_some()).count();
    if with_capacity > 0 && unit.is_none() {
        warnings.add(
            "SNDlib's map does not name the unit of its capacities: Mb/s is assumed; capacity_unit states the unit",
        );
    }
    let without = edges.len() - with_capacity;
    if without > 0 {
        warnings.add(format!(
            "links of SNDlib's map without installed capacity: {without}; their rate is default_rate, and modules that \
             could be added are left out"
        ));
    }
    let demands = elements(root, "demands", "demand").count();
    if demands > 0 {
        warnings.add(format!("demands of SNDlib's map are left out: {demands}; a workload defines the flows"));
    }
}

fn child<'a, 'i>(parent: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    parent.children().find(|child| child.tag_name().name() == name)
}

fn elements<'a, 'i>(parent: Node<'a, 'i>, list: &str, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    let children = child(parent, list).into_iter().flat_map(|list| list.children());
    children.filter(move |child| child.tag_name().name() == name)
}

fn text<'a>(parent: Node<'a, '_>, name: &str) -> Option<(usize, &'a str)> {
    let element = child(parent, name)?;
    element.text().map(str::trim).filter(|text| !text.is_empty()).map(|text| (line(element), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"<network xmlns="http://sndlib.zib.de/network" version="1.0"><networkStructure>
 <nodes coordinatesType="geographical">
  <node id="Berlin"><coordinates><x>13.4</x><y>52.5</y></coordinates></node>
  <node id="Ulm"><coordinates><x>10.0</x><y>48.4</y></coordinates></node>
 </nodes>
 <links><link id="L1"><source>Berlin</source><target>Ulm</target></link></links>
</networkStructure><demands/></network>"#;

    /// The same network with this content of its link, after its ends.
    fn with(content: &str) -> String {
        TWO.replace("<target>Ulm</target>", &format!("<target>Ulm</target>{content}"))
    }

    fn rates(text: &str, unit: Option<Rate>) -> Result<(Vec<Option<String>>, Vec<String>), String> {
        let (tree, warnings) = (Document::parse(text).unwrap(), Warnings::default());
        let graph = read(&tree, unit, &warnings).map_err(|error| error.to_string())?;
        let rates = graph.edges.iter().map(|edge| edge.data.text("rate").map(str::to_owned));
        Ok((rates.collect(), warnings.list()))
    }

    #[test]
    fn nodes_have_coordinates_and_links_have_ends() {
        let tree = Document::parse(TWO).unwrap();
        let graph = read(&tree, None, &Warnings::default()).unwrap();
        assert_eq!(graph.nodes[1].data.text("latitude"), Some("48.4"));
        assert_eq!(graph.edges[0].ends, ["Berlin", "Ulm"]);
        let pixels = TWO.replace("geographical", "pixel");
        let tree = Document::parse(&pixels).unwrap();
        assert_eq!(read(&tree, None, &Warnings::default()).unwrap().nodes[1].data.text("latitude"), None);
    }

    #[test]
    fn installed_capacities_are_rates_in_the_unit_of_the_scenario_or_in_mbps_with_a_warning() {
        let text = with("<preInstalledModule><capacity>2480.5</capacity><cost>0.0</cost></preInstalledModule>");
        let (rate, warnings) = rates(&text, None).unwrap();
        assert_eq!(rate, [Some("2480500000bps".to_owned())]);
        assert!(matches!(&warnings[..], [one] if one.contains("Mb/s is assumed")), "{warnings:?}");
        let two = Some(Rate::from_mbps(2));
        assert_eq!(rates(&text, two), Ok((vec![Some("4961000000bps".to_owned())], vec![])));
        for text in [with(""), text.replace("2480.5", "0.0")] {
            let (rate, warnings) = rates(&text, two).unwrap();
            assert_eq!(rate, [None]);
            assert!(matches!(&warnings[..], [one] if one.contains("without installed capacity: 1;")), "{warnings:?}");
        }
        assert!(
            rates(&text.replace("2480.5", "-1"), two).unwrap_err().contains("<capacity> is `-1`; allowed: a number")
        );
    }

    #[test]
    fn omitted_demands_are_a_warning() {
        let text = with("<preInstalledModule><capacity>1</capacity></preInstalledModule>");
        let text = text.replace("<demands/>", "<demands><demand id=\"d\"/><demand id=\"e\"/></demands>");
        let (_, warnings) = rates(&text, Some(Rate::from_mbps(1))).unwrap();
        assert!(matches!(&warnings[..], [one] if one.starts_with("demands") && one.contains(": 2;")), "{warnings:?}");
    }

    #[test]
    fn a_file_without_a_network_is_refused() {
        let refused = |text: &str| rates(text, None).unwrap_err();
        assert!(refused("<svg/>").starts_with("line 1: this is not an SNDlib network"));
        assert_eq!(refused(&TWO.replace("<target>Ulm</target>", "")), "line 6: <link> has no <target>; it needs one");
    }
}
