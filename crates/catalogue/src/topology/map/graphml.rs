//! GraphML, one of the formats of the Internet Topology Zoo.
//!
//! Source: the GraphML primer (graphml.graphdrawing.org). A `key` declares an id, a name and a default for the data of
//! one kind of element; `data` elements refer to keys by id.

use super::{Data, DeclaredEdge, DeclaredNode, Graph, line};
use crate::topology::TopologyError;
use roxmltree::Node;
use std::collections::BTreeMap;

/// A declared key: its kind of element, its lower-case name and its default.
struct Key<'a> {
    element: &'a str,
    name: String,
    default: Option<&'a str>,
}

type Keys<'a> = BTreeMap<&'a str, Key<'a>>;

/// Reads the first graph of `tree`.
pub(super) fn read<'a>(tree: &'a roxmltree::Document<'_>) -> Result<Graph<'a>, TopologyError> {
    let root = tree.root_element();
    if root.tag_name().name() != "graphml" {
        let message = format!("the file's element is <{}>; allowed: <graphml>", root.tag_name().name());
        return Err(TopologyError::at(line(root), message));
    }
    let graph = children(root, "graph")
        .next()
        .ok_or_else(|| TopologyError::at(line(root), "<graphml> holds no <graph>; it needs one"))?;
    let keys = read_keys(root)?;
    let nodes = children(graph, "node")
        .map(|node| Ok(DeclaredNode { id: attribute(node, "id")?, data: read_data(node, &keys)? }))
        .collect::<Result<Vec<_>, TopologyError>>()?;
    // An edge may state its own direction; otherwise that of the graph applies.
    let default = graph.attribute("edgedefault") == Some("directed");
    let edges = children(graph, "edge").map(|edge| {
        let ends = [attribute(edge, "source")?, attribute(edge, "target")?];
        let is_directed = edge.attribute("directed").map_or(default, |own| own == "true");
        Ok(DeclaredEdge { ends, is_directed, data: read_data(edge, &keys)? })
    });
    Ok(Graph { edges: edges.collect::<Result<_, TopologyError>>()?, nodes })
}

fn children<'a, 'i>(parent: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    parent.children().filter(move |child| child.tag_name().name() == name)
}

fn attribute<'a>(element: Node<'a, '_>, name: &str) -> Result<&'a str, TopologyError> {
    element.attribute(name).ok_or_else(|| {
        TopologyError::at(line(element), format!("<{}> has no `{name}`; it needs one", element.tag_name().name()))
    })
}

fn text_of<'a>(element: Node<'a, '_>) -> Option<&'a str> {
    element.text().map(str::trim).filter(|text| !text.is_empty())
}

fn read_keys<'a>(root: Node<'a, '_>) -> Result<Keys<'a>, TopologyError> {
    let mut keys = Keys::new();
    for key in children(root, "key") {
        let id = attribute(key, "id")?;
        let name = key.attribute("attr.name").unwrap_or(id).to_ascii_lowercase();
        let default = children(key, "default").next().and_then(text_of);
        keys.insert(id, Key { element: key.attribute("for").unwrap_or("all"), name, default });
    }
    Ok(keys)
}

fn read_data<'a>(element: Node<'a, '_>, keys: &Keys<'a>) -> Result<Data<'a>, TopologyError> {
    let own_line = line(element);
    let mut values = BTreeMap::new();
    for key in keys.values().filter(|key| key.element == "all" || key.element == element.tag_name().name()) {
        if let Some(default) = key.default {
            values.insert(key.name.clone(), (own_line, default.into()));
        }
    }
    for datum in children(element, "data") {
        let id = attribute(datum, "key")?;
        let key = keys.get(id).ok_or_else(|| {
            TopologyError::at(
                line(datum),
                format!("<data> refers to key `{id}`; allowed: a key that the file declares"),
            )
        })?;
        if let Some(text) = text_of(datum) {
            values.insert(key.name.clone(), (line(datum), text.into()));
        }
    }
    Ok(Data { line: own_line, values })
}
