//! Overrides from the command line: `--set scheme.rc3.levels=[10,100]`.

use super::document::{Item, Node, Origin};
use super::error::ScenarioError;
use toml::de::{DeTable, DeValue};

/// Keys of a workload that exclude each other: overriding one removes the other.
const ALTERNATIVES: [&str; 2] = ["scheme", "mix"];

/// Writes one override, `key=value`, into the tree.
///
/// The key is a dotted path; within a list, a number selects the element. The value is TOML if it parses as such,
/// otherwise a string. Unknown keys are detected later, as for any key of the file.
///
/// # Errors
/// Fails if the override does not have this form, or its path leads through something that is not a table.
pub fn apply(root: &mut Node, text: &str) -> Result<(), ScenarioError> {
    let refuse = |key: &str, value: Option<&str>, message: String| ScenarioError {
        file: ScenarioError::OVERRIDE.to_owned(),
        line: None,
        key: key.to_owned(),
        value: value.map(str::to_owned),
        message,
    };
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| refuse(text.trim(), None, "an override is KEY=VALUE, as in duration=10s".to_owned()))?;
    let (key, value) = (key.trim(), value.trim());
    let path = split(key).ok_or_else(|| {
        refuse(key, Some(value), "not a key; allowed: names joined by dots, as in queue.limit".to_owned())
    })?;
    let mut node = root;
    for (depth, name) in path.iter().enumerate() {
        // Setting a scheme replaces a mix and vice versa, because a workload may have only one of them.
        if depth > 0 && path[0] == "workload" {
            drop_alternative(node, name);
        }
        node = step(node, name).map_err(|message| {
            let place = path[..depth].join(".");
            refuse(key, Some(value), format!("\"{place}\" {message}"))
        })?;
    }
    *node = Node { item: parse_value(value), origin: Origin::Set };
    set_origin(node);
    Ok(())
}

/// Removes from `node` the key that excludes `name`.
fn drop_alternative(node: &mut Node, name: &str) {
    let other = match name {
        _ if name == ALTERNATIVES[0] => ALTERNATIVES[1],
        _ if name == ALTERNATIVES[1] => ALTERNATIVES[0],
        _ => return,
    };
    match &mut node.item {
        Item::Table(table) => table.remove(other),
        Item::List(list) => {
            if let [Node { item: Item::Table(table), .. }] = list.as_mut_slice() {
                table.remove(other);
            }
        }
        _ => {}
    }
}

/// Returns the child of `node` called `name`. A missing key of a table is added.
fn step<'n>(node: &'n mut Node, name: &str) -> Result<&'n mut Node, String> {
    let is_index = name.bytes().all(|byte| byte.is_ascii_digit());
    // A single table may be addressed as the first of a list, and the only element of a list as itself.
    if name == "0" && matches!(&node.item, Item::Table(table) if table.find(name).is_none()) {
        return Ok(node);
    }
    let list = match &mut node.item {
        Item::Table(table) => return Ok(table.entry(name)),
        Item::List(list) => list,
        _ => return Err("is not a table; allowed: keys below tables alone".to_owned()),
    };
    let count = list.len();
    if is_index {
        let index = name.parse().unwrap_or(usize::MAX);
        return list.get_mut(index).ok_or_else(|| format!("has {count} elements, counted from 0"));
    }
    match list.as_mut_slice() {
        [Node { item: Item::Table(table), .. }] => Ok(table.entry(name)),
        _ => Err(format!("has {count} elements: name one by its number, counted from 0")),
    }
}

/// Returns the parts of a dotted key, which may be quoted as in TOML; `None` if it is not a key.
pub fn split(key: &str) -> Option<Vec<String>> {
    let text = format!("{key} = 0");
    let document = DeTable::parse(&text).ok()?;
    let mut path = Vec::new();
    let mut table = document.get_ref();
    loop {
        let (name, value) = table.iter().next()?;
        path.push(name.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) if table.len() == 1 => table = inner,
            DeValue::Integer(_) if table.len() == 1 => return Some(path),
            _ => return None,
        }
    }
}

/// Parses a value as TOML, or returns it as a string.
pub fn parse_value(text: &str) -> Item {
    let line = format!("value = {text}");
    match DeTable::parse(&line) {
        Ok(table) if table.get_ref().len() == 1 => match table.get_ref().get("value") {
            Some(value) => Item::read(&line, value.get_ref()),
            None => Item::Text(text.to_owned()),
        },
        _ => Item::Text(text.to_owned()),
    }
}

/// Marks `node` and everything below it as written by an override.
fn set_origin(node: &mut Node) {
    node.origin = Origin::Set;
    match &mut node.item {
        Item::List(list) => list.iter_mut().for_each(set_origin),
        Item::Table(table) => table.values_mut().for_each(set_origin),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::document::{Document, write_toml};

    fn after(text: &str, overrides: &[&str]) -> Result<String, String> {
        let mut root = Document::parse(text, "t.toml").expect("valid TOML").root;
        for text in overrides {
            apply(&mut root, text).map_err(|error| error.to_string())?;
        }
        let Item::Table(table) = root.item else { panic!("a table") };
        Ok(write_toml(&table))
    }

    #[test]
    fn values_are_toml_or_else_strings() {
        let overrides = ["a=5s", "b = [10, 100]", "c=true", "d=0.5", "e=\"5\"", "f=2 x", "g=50%"];
        let written = "a = \"5s\"\nb = [10, 100]\nc = true\nd = 0.5\ne = \"5\"\nf = \"2 x\"\ng = \"50%\"\n";
        assert_eq!(after("", &overrides).as_deref(), Ok(written));
    }

    #[test]
    fn paths_reach_into_tables_and_lists() {
        let text = "[[w]]\nload = 1\n\n[[w]]\nload = 2\n\n[v]\nload = 3\n";
        let overrides = ["w.1.load=7", "v.0.load=8", "v.\"x.y\"=9", "new.deep.key=1"];
        let written =
            "\n[[w]]\nload = 1\n\n[[w]]\nload = 7\n\n[v]\nload = 8\n\"x.y\" = 9\n\n[new]\n\n[new.deep]\nkey = 1\n";
        assert_eq!(after(text, &overrides).as_deref(), Ok(written));
        assert_eq!(after("[[w]]\nload = 1\n", &["w.load=2"]).as_deref(), Ok("\n[[w]]\nload = 2\n"));
    }

    #[test]
    fn an_override_of_a_workloads_mix_replaces_its_scheme_and_vice_versa() {
        let mixed = "\n[[workload]]\nload = 1\n\n[workload.mix]\na = 0.5\nb = 0.5\n";
        for path in ["workload.mix", "workload.0.mix"] {
            let after = after("[[workload]]\nscheme = \"a\"\nload = 1\n", &[&format!("{path}={{a=0.5,b=0.5}}")]);
            assert_eq!(after.as_deref(), Ok(mixed));
        }
        let schemed = "\n[[workload]]\nload = 1\nscheme = \"b\"\n";
        assert_eq!(after(mixed, &["workload.scheme=b"]).as_deref(), Ok(schemed));
        let elsewhere = "\n[scheme]\n\n[scheme.scheme]\nclass = 1\n\n[scheme.mix]\nclass = 2\n";
        assert_eq!(after("[scheme.scheme]\nclass = 1\n", &["scheme.mix.class=2"]).as_deref(), Ok(elsewhere));
    }

    #[test]
    fn a_path_to_a_missing_element_is_refused() {
        let cases = [
            ("load", "--set load: an override is KEY=VALUE, as in duration=10s"),
            ("=3", "--set not a key; allowed: names joined by dots, as in queue.limit"),
            ("a b=3", "--set a b = 3: not a key; allowed: names joined by dots, as in queue.limit"),
            ("t.x=3", "--set t.x = 3: \"t\" is not a table; allowed: keys below tables alone"),
            ("w.2.load=3", "--set w.2.load = 3: \"w\" has 2 elements, counted from 0"),
            ("w.load=3", "--set w.load = 3: \"w\" has 2 elements: name one by its number, counted from 0"),
        ];
        for (text, message) in cases {
            let outcome = after("t = 1\n[[w]]\n[[w]]\n", &[text]);
            assert_eq!(outcome, Err(message.to_owned()), "{text}");
        }
    }
}
