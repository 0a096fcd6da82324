//! SNDlib's networks, in its XML format (sndlib.put.poznan.pl): nodes with coordinates, and links.
//!
//! Coordinates count where the file calls them geographical: x is the longitude, y the latitude. Capacities are passed over,
//! as their unit differs from instance to instance and the files do not name it.

use super::{Data, DeclaredEdge, DeclaredNode, Graph, line};
use crate::topology::TopologyError;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

/// Reads the network of `tree`.
pub(super) fn read<'a>(tree: &'a Document<'_>) -> Result<Graph<'a>, TopologyError> {
    let root = tree.root_element();
    let structure =
        child(root, "networkStructure").filter(|_| root.tag_name().name() == "network").ok_or_else(|| {
            TopologyError::at(line(root), "this is no network of SNDlib; allowed: <network> with a <networkStructure>")
        })?;
    let is_geographical =
        child(structure, "nodes").and_then(|nodes| nodes.attribute("coordinatesType")) == Some("geographical");
    let nodes = elements(structure, "nodes", "node").map(|node| {
        let id =
            node.attribute("id").ok_or_else(|| TopologyError::at(line(node), "<node> has no `id`; it needs one"))?;
        let mut values = BTreeMap::new();
        if let Some(place) = child(node, "coordinates").filter(|_| is_geographical) {
            for (name, axis) in [("longitude", "x"), ("latitude", "y")] {
                if let Some((line, text)) = text(place, axis) {
                    values.insert(name.to_owned(), (line, text));
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
        let data = Data { line: line(link), values: BTreeMap::new() };
        Ok(DeclaredEdge { ends: [end("source")?, end("target")?], data })
    });
    Ok(Graph { edges: edges.collect::<Result<_, TopologyError>>()?, nodes })
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

    #[test]
    fn nodes_have_places_and_links_have_ends() {
        let tree = Document::parse(TWO).unwrap();
        let graph = read(&tree).unwrap();
        assert_eq!(graph.nodes[1].data.text("latitude"), Some("48.4"));
        assert_eq!(graph.edges[0].ends, ["Berlin", "Ulm"]);
        let pixels = TWO.replace("geographical", "pixel");
        let tree = Document::parse(&pixels).unwrap();
        assert_eq!(read(&tree).unwrap().nodes[1].data.text("latitude"), None);
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let refused = |text: &str| read(&Document::parse(text).unwrap()).err().map(|error| error.to_string()).unwrap();
        assert!(refused("<svg/>").starts_with("line 1: this is no network of SNDlib"));
        assert_eq!(refused(&TWO.replace("<target>Ulm</target>", "")), "line 6: <link> has no <target>; it needs one");
    }
}
