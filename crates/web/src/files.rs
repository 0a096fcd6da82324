//! The files that a scenario names. A page in the browser has no files, so it refuses such a scenario and says why.

use sparelane_catalogue::schema::document::{Document, Item, Table};
use sparelane_catalogue::schema::{Kind, Shape};
use sparelane_scenario::{Catalogue, Entry, catalogue};
use std::collections::BTreeSet;

/// A file that a scenario names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The key, as a dotted path.
    pub key: String,
    /// The path of the file.
    pub path: String,
}

/// Returns the files that the text of a scenario names, in the order of the text. Empty if the text is not valid TOML.
pub fn named(text: &str) -> Vec<Named> {
    let Ok(document) = Document::parse(text, "scenario.toml") else { return Vec::new() };
    let keys = path_keys(&catalogue(&Catalogue::built_in()));
    let mut found = Vec::new();
    collect(document.table(), "", &keys, &mut found);
    found
}

/// The names of keys whose values are paths.
fn path_keys(entries: &[Entry]) -> BTreeSet<&'static str> {
    let is_path = |kind: &Kind| matches!(kind, Kind::Path | Kind::Special(_, Shape::Of(Kind::Path)));
    let keys = entries.iter().flat_map(|entry| &entry.params);
    keys.filter(|key| is_path(&key.kind)).map(|key| key.name).collect()
}

fn collect(table: &Table, place: &str, keys: &BTreeSet<&'static str>, found: &mut Vec<Named>) {
    for (key, node) in table.iter() {
        let place = if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
        match &node.item {
            Item::Text(path) if keys.contains(key) => found.push(Named { key: place, path: path.clone() }),
            Item::Table(table) => collect(table, &place, keys, found),
            Item::List(list) => {
                for (index, node) in list.iter().enumerate() {
                    if let Item::Table(table) = &node.item {
                        collect(table, &format!("{place}.{index}"), keys, found);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_tables_and_lists() {
        let text = "duration = \"1s\"\n[topology]\nkind = \"file\"\npath = \"a.topo\"\n[[workload]]\nkind = \"bulk\"\n\
                    [[workload]]\nsizes = { kind = \"file\", path = \"b.csv\" }\n[[link]]\ntrace = \"c.trace\"\n";
        let found: Vec<_> = named(text).into_iter().map(|file| (file.key, file.path)).collect();
        let expected = [("topology.path", "a.topo"), ("workload.1.sizes.path", "b.csv"), ("link.0.trace", "c.trace")];
        assert_eq!(found, expected.map(|(key, path)| (key.to_owned(), path.to_owned())));
        assert_eq!(named("title = \"no file\"\n"), []);
    }
}
