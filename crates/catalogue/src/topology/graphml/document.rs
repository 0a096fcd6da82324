//! The parts of a GraphML file that a network is made of: nodes and edges with their data, looked up but not judged.
//!
//! Source: the GraphML primer (graphml.graphdrawing.org): a `key` declares an id, a name and a default for the data
//! of one kind of element; `data` elements refer to keys by id.

use crate::topology::TopologyError;
use roxmltree::Node;
use std::collections::BTreeMap;

/// A node.
pub(super) struct DeclaredNode<'a> {
    /// Its id in the file.
    pub(super) id: &'a str,
    /// Its data.
    pub(super) data: Data<'a>,
}

/// An edge between two different nodes of the file.
pub(super) struct DeclaredEdge<'a> {
    /// The places of its ends among the nodes.
    pub(super) ends: [usize; 2],
    /// Its data.
    pub(super) data: Data<'a>,
}

/// A graph.
pub(super) struct Document<'a> {
    /// In the file's order.
    pub(super) nodes: Vec<DeclaredNode<'a>>,
    /// In the file's order.
    pub(super) edges: Vec<DeclaredEdge<'a>>,
}

/// The data of one element, by the lower-case names of their keys.
pub(super) struct Data<'a> {
    /// The element's line, from 1.
    pub(super) line: usize,
    values: BTreeMap<String, (usize, &'a str)>,
}

/// A declared key: for which element, under which lower-case name, with which default.
struct Key<'a> {
    element: &'a str,
    name: String,
    default: Option<&'a str>,
}

type Keys<'a> = BTreeMap<&'a str, Key<'a>>;

impl<'a> Data<'a> {
    /// The value called `name`, if it is there and not empty.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.values.get(name).map(|&(_, text)| text)
    }

    /// The value called `name`, read by `parse`, whose error says what is allowed.
    pub(super) fn parsed<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, TopologyError> {
        let Some(&(line, text)) = self.values.get(name) else { return Ok(None) };
        let refuse = |allowed| TopologyError::at(line, format!("`{name}` is `{text}`; allowed: {allowed}"));
        parse(text).map(Some).map_err(refuse)
    }
}

impl<'a> Document<'a> {
    /// Reads the first graph of `tree`.
    pub(super) fn read(tree: &'a roxmltree::Document<'_>) -> Result<Document<'a>, TopologyError> {
        let root = tree.root_element();
        if root.tag_name().name() != "graphml" {
            let message = format!("the file's element is <{}>; allowed: <graphml>", root.tag_name().name());
            return Err(TopologyError::at(line(root), message));
        }
        let graph = children(root, "graph")
            .next()
            .ok_or_else(|| TopologyError::at(line(root), "<graphml> holds no <graph>; it needs one"))?;
        let keys = read_keys(root)?;
        let nodes = read_nodes(graph, &keys)?;
        let edges = read_edges(graph, &keys, &nodes)?;
        Ok(Document { nodes, edges })
    }
}

fn line(element: Node<'_, '_>) -> usize {
    element.document().text_pos_at(element.range().start).row as usize
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
            values.insert(key.name.clone(), (own_line, default));
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
            values.insert(key.name.clone(), (line(datum), text));
        }
    }
    Ok(Data { line: own_line, values })
}

fn read_nodes<'a>(graph: Node<'a, '_>, keys: &Keys<'a>) -> Result<Vec<DeclaredNode<'a>>, TopologyError> {
    children(graph, "node")
        .map(|node| Ok(DeclaredNode { id: attribute(node, "id")?, data: read_data(node, keys)? }))
        .collect()
}

fn read_edges<'a>(
    graph: Node<'a, '_>,
    keys: &Keys<'a>,
    nodes: &[DeclaredNode<'a>],
) -> Result<Vec<DeclaredEdge<'a>>, TopologyError> {
    let mut positions = BTreeMap::new();
    for (position, node) in nodes.iter().enumerate() {
        if positions.insert(node.id, position).is_some() {
            let message = format!("node id `{}` is given twice; allowed: each id once", node.id);
            return Err(TopologyError::at(node.data.line, message));
        }
    }
    let read = |edge| {
        let end = |name: &str| {
            let id = attribute(edge, name)?;
            positions.get(id).copied().ok_or_else(|| {
                TopologyError::at(line(edge), format!("the edge's {name} is `{id}`; allowed: the id of a node"))
            })
        };
        let ends = [end("source")?, end("target")?];
        if ends[0] == ends[1] {
            let message =
                format!("the edge leads from node `{}` to itself; allowed: two different nodes", nodes[ends[0]].id);
            return Err(TopologyError::at(line(edge), message));
        }
        Ok(DeclaredEdge { ends, data: read_data(edge, keys)? })
    };
    children(graph, "edge").map(read).collect()
}
