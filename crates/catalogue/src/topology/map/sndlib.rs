//! SNDlib's networks in its XML format (sndlib.put.poznan.pl): nodes with coordinates, and links.
//!
//! Coordinates are used if the file calls them geographical: x is the longitude, y the latitude. Capacities are left
//! out, because their unit differs between instances and the files do not name it. Demands are left out, too. A warning
//! reports both.

use super::{Data, DeclaredEdge, DeclaredNode, Graph, line};
use crate::schema::Warnings;
use crate::topology::TopologyError;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;

/// Reads the network of `tree`. `warnings` collects what is left out.
pub(super) fn read<'a>(tree: &'a Document<'_>, warnings: &Warnings) -> Result<Graph<'a>, TopologyError> {
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
    let edges = edges.collect::<Result<_, TopologyError>>()?;
    warn_of_omissions(root, structure, warnings);
    Ok(Graph { edges, nodes })
}

fn warn_of_omissions(root: Node<'_, '_>, structure: Node<'_, '_>, warnings: &Warnings) {
    let has_capacity = |link: &Node<'_, '_>| link.descendants().any(|inside| inside.tag_name().name() == "capacity");
    let capacities = elements(structure, "links", "link").filter(has_capacity).count();
    if capacities > 0 {
        warnings.add(format!(
            "capacities of SNDlib's map are left out, because the file does not name their unit; links with \
             default_rate instead: {capacities}; [[link]] sets the rate of one"
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

    #[test]
    fn nodes_have_coordinates_and_links_have_ends() {
        let tree = Document::parse(TWO).unwrap();
        let graph = read(&tree, &Warnings::default()).unwrap();
        assert_eq!(graph.nodes[1].data.text("latitude"), Some("48.4"));
        assert_eq!(graph.edges[0].ends, ["Berlin", "Ulm"]);
        let pixels = TWO.replace("geographical", "pixel");
        let tree = Document::parse(&pixels).unwrap();
        assert_eq!(read(&tree, &Warnings::default()).unwrap().nodes[1].data.text("latitude"), None);
    }

    #[test]
    fn omitted_capacities_and_demands_are_warnings() {
        let warnings_of = |text: &str| {
            let warnings = Warnings::default();
            read(&Document::parse(text).unwrap(), &warnings).unwrap();
            warnings.list()
        };
        assert!(warnings_of(TWO).is_empty());
        let module = "<target>Ulm</target><preInstalledModule><capacity>9920.0</capacity></preInstalledModule>";
        let text = TWO.replace("<target>Ulm</target>", module);
        let warnings =
            warnings_of(&text.replace("<demands/>", "<demands><demand id=\"d\"/><demand id=\"e\"/></demands>"));
        assert!(
            warnings[0].starts_with("capacities") && warnings[0].contains("default_rate instead: 1;"),
            "{warnings:?}"
        );
        assert!(warnings[1].starts_with("demands") && warnings[1].contains(": 2;"), "{warnings:?}");
    }

    #[test]
    fn a_file_without_a_network_is_refused() {
        let refused = |text: &str| {
            read(&Document::parse(text).unwrap(), &Warnings::default()).err().map(|error| error.to_string()).unwrap()
        };
        assert!(refused("<svg/>").starts_with("line 1: this is not an SNDlib network"));
        assert_eq!(refused(&TWO.replace("<target>Ulm</target>", "")), "line 6: <link> has no <target>; it needs one");
    }
}
