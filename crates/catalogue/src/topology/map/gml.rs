//! GML, the Graph Modelling Language, one of the formats of the Internet Topology Zoo.
//!
//! Source: M. Himsolt, "GML: A portable graph file format" (1997). A file is a list of keys with values, which are
//! numbers, strings or lists in brackets.

use super::{Data, DeclaredEdge, DeclaredNode, Graph};
use crate::topology::TopologyError;
use std::collections::BTreeMap;

/// Maximum depth of nested lists.
const DEEPEST: usize = 64;

/// A value and the line on which it begins.
struct Entry<'a> {
    key: &'a str,
    line: usize,
    value: Value<'a>,
}

enum Value<'a> {
    /// A number or a string, as written.
    Text(&'a str),
    List(Vec<Entry<'a>>),
}

/// Reads the first graph of `text`.
pub(super) fn read(text: &str) -> Result<Graph<'_>, TopologyError> {
    let file = parse(text)?;
    let graph = file.iter().find_map(|entry| match &entry.value {
        Value::List(list) if entry.key.eq_ignore_ascii_case("graph") => Some(list),
        _ => None,
    });
    let graph = graph.ok_or_else(|| TopologyError::new("the file holds no `graph [ ... ]`; it needs one"))?;
    let of_kind = |kind: &'static str| {
        graph.iter().filter_map(move |entry| match &entry.value {
            Value::List(list) if entry.key.eq_ignore_ascii_case(kind) => Some((entry.line, list.as_slice())),
            _ => None,
        })
    };
    let node = |(line, list)| Ok(DeclaredNode { id: text_of(line, list, "node", "id")?, data: data(line, list) });
    let nodes = of_kind("node").map(node).collect::<Result<Vec<_>, TopologyError>>()?;
    let is_directed = text_of(0, graph, "graph", "directed").is_ok_and(|text| text == "1");
    let edges = of_kind("edge").map(|(line, list)| {
        let ends = [text_of(line, list, "edge", "source")?, text_of(line, list, "edge", "target")?];
        Ok(DeclaredEdge { ends, is_directed, data: data(line, list) })
    });
    Ok(Graph { edges: edges.collect::<Result<_, TopologyError>>()?, nodes })
}

fn text_of<'a>(line: usize, list: &[Entry<'a>], element: &str, key: &str) -> Result<&'a str, TopologyError> {
    let found = list.iter().find_map(|entry| match entry.value {
        Value::Text(text) if entry.key.eq_ignore_ascii_case(key) => Some(text),
        _ => None,
    });
    found.ok_or_else(|| TopologyError::at(line, format!("the {element} has no `{key}`; it needs one")))
}

fn data<'a>(line: usize, list: &[Entry<'a>]) -> Data<'a> {
    let mut values = BTreeMap::new();
    for entry in list {
        if let Value::Text(text) = entry.value
            && !text.is_empty()
        {
            values.insert(entry.key.to_ascii_lowercase(), (entry.line, text.into()));
        }
    }
    Data { line, values }
}

/// The tokens of a file with their lines: keys, numbers, strings without quotes, and brackets.
struct Words<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Words<'a> {
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
        skipped
    }

    /// Returns the next token with its line, and whether it was quoted.
    fn next(&mut self) -> Result<Option<(&'a str, usize, bool)>, TopologyError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.skip(blank);
            if !self.rest.starts_with('#') {
                break;
            }
            let comment = self.rest.find('\n').unwrap_or(self.rest.len());
            self.skip(comment);
        }
        let line = self.line;
        match self.rest.chars().next() {
            None => Ok(None),
            Some('[' | ']') => Ok(Some((self.skip(1), line, false))),
            Some('"') => {
                self.skip(1);
                let end = self.rest.find('"').ok_or_else(|| {
                    TopologyError::at(line, "a string begins here and does not end; allowed: text between two quotes")
                })?;
                let text = self.skip(end);
                self.skip(1);
                Ok(Some((text.trim(), line, true)))
            }
            Some(_) => {
                let ends = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '"');
                let end = self.rest.find(ends).unwrap_or(self.rest.len());
                Ok(Some((self.skip(end), line, false)))
            }
        }
    }
}

fn parse(text: &str) -> Result<Vec<Entry<'_>>, TopologyError> {
    let mut words = Words { rest: text, line: 1 };
    // The lists that are open, each with its key and its first line.
    let mut open: Vec<(&str, usize, Vec<Entry<'_>>)> = Vec::new();
    let mut list = Vec::new();
    while let Some((key, line, is_string)) = words.next()? {
        if key == "]" && !is_string {
            let Some((key, line, outer)) = open.pop() else {
                return Err(TopologyError::at(line, "a `]` that closes nothing"));
            };
            let value = Value::List(std::mem::replace(&mut list, outer));
            list.push(Entry { key, line, value });
            continue;
        }
        let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic());
        if is_string || !is_key {
            return Err(TopologyError::at(line, format!("`{key}` where a key should be; allowed: a word of letters")));
        }
        match words.next()? {
            Some(("[", line, false)) if open.len() < DEEPEST => open.push((key, line, std::mem::take(&mut list))),
            Some(("[", line, false)) => {
                return Err(TopologyError::at(line, format!("lists within lists; allowed: {DEEPEST} deep")));
            }
            Some((text, line, is_string)) if is_string || text != "]" => {
                list.push(Entry { key, line, value: Value::Text(text) });
            }
            _ => return Err(TopologyError::at(line, format!("the key `{key}` has no value; it needs one"))),
        }
    }
    match open.pop() {
        None => Ok(list),
        Some((key, line, _)) => Err(TopologyError::at(line, format!("the list `{key} [` is not closed by a `]`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn nodes_and_edges_keep_their_data_by_name_in_any_case() {
        let text = "Creator \"x\"\n# note\ngraph [\n  node [ id 7 label \"New York\" Latitude 40.7 graphics [ x 1 ] ]\n  \
                    node [ id 8 ]\n  edge [ source 7\n target 8 LinkSpeedRaw 1E9 ]\n]";
        let graph = read(text).unwrap();
        let [first, second] = &graph.nodes[..] else { panic!("two nodes") };
        assert_eq!(
            (first.id, first.data.text("label"), first.data.text("latitude")),
            ("7", Some("New York"), Some("40.7"))
        );
        assert_eq!((second.id, second.data.line), ("8", 5));
        let [edge] = &graph.edges[..] else { panic!("an edge") };
        assert_eq!((edge.ends, edge.data.text("linkspeedraw")), (["7", "8"], Some("1E9")));
    }

    #[test]
    fn malformed_gml_is_refused_with_its_line() {
        assert!(error("").contains("no `graph"));
        assert_eq!(error("graph [\n node [ id 1"), "line 2: the list `node [` is not closed by a `]`");
        assert_eq!(error("graph [\n node [ ] ]"), "line 2: the node has no `id`; it needs one");
        assert_eq!(error("graph [ ]\n]"), "line 2: a `]` that closes nothing");
        assert_eq!(error("graph [ node ]"), "line 1: the key `node` has no value; it needs one");
        assert_eq!(error("graph [ \"id\" 1 ]"), "line 1: `id` where a key should be; allowed: a word of letters");
        assert!(error("graph [ label \"a ]").contains("does not end"));
        assert!(error(&"a [ ".repeat(100_000)).contains("64 deep"));
    }
}
