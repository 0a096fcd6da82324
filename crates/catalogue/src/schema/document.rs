//! A scenario file as a tree that keeps the origin of each value.

use super::error::ScenarioError;
use super::formats::{self, Purpose};
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::{self, Write};
use toml::de::{DeTable, DeValue};

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of the scenario file, counted from 1.
    Line(u32),
    /// An override (`--set`).
    Set,
    /// No place: a default, or the file as a whole.
    Nowhere,
}

/// A value and its origin.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub item: Item,
    /// The place of its key or, in a list, of the value itself.
    pub origin: Origin,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub enum Item {
    /// A string.
    Text(String),
    /// A whole number.
    Whole(i128),
    /// A number with a decimal point or an exponent.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A date or a time of day, which no key accepts.
    Moment(String),
    /// An array.
    List(Vec<Node>),
    /// A table.
    Table(Table),
}

/// The entries of a table, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    entries: Vec<(String, Node)>,
}

/// A scenario file, parsed but not yet interpreted.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file's name in messages.
    pub file: String,
    /// The whole file; always a table.
    pub root: Node,
    /// The dotted paths of the values that have been read.
    reads: RefCell<HashSet<String>>,
}

static NO_TABLE: Table = Table { entries: Vec::new() };

impl Document {
    /// Parses TOML, with or without a byte order mark.
    ///
    /// # Errors
    /// Names the line of a syntax error, or the format of the text if it is a known other format.
    pub fn parse(text: &str, file: &str) -> Result<Document, ScenarioError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let table = DeTable::parse(text).map_err(|error| {
            if let Some(what) = formats::recognized(text, Purpose::Scenario, None) {
                return ScenarioError::in_file(file, None, what);
            }
            let line = error.span().map(|span| line_of(text, span.start));
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            ScenarioError::in_file(file, line, format!("not valid TOML: {message}"))
        })?;
        let item = Item::Table(Table::read(text, table.get_ref()));
        Ok(Document { file: file.to_owned(), root: Node { item, origin: Origin::Nowhere }, reads: RefCell::default() })
    }

    /// Records that the value at `path` was read. Elements of lists are not recorded, only their list.
    pub(super) fn mark_read(&self, path: &str) {
        let is_element = path.rsplit('.').next().is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_element && !self.reads.borrow().contains(path) {
            self.reads.borrow_mut().insert(path.to_owned());
        }
    }

    /// Returns the dotted paths of the keys whose values have not been read, in the order of the file.
    pub fn unread(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect_unread(&self.root.item, "", &mut found);
        found
    }

    fn collect_unread(&self, item: &Item, path: &str, found: &mut Vec<String>) {
        match item {
            Item::Table(table) => {
                for (key, node) in table.iter() {
                    self.collect_unread(&node.item, &joined(path, key), found);
                }
            }
            Item::List(list) if item.is_list_of_tables() => {
                for (place, node) in list.iter().enumerate() {
                    self.collect_unread(&node.item, &joined(path, &place.to_string()), found);
                }
            }
            _ if self.reads.borrow().contains(path) => {}
            _ => found.push(path.to_owned()),
        }
    }

    /// Returns the whole file as a table.
    pub fn table(&self) -> &Table {
        if let Item::Table(table) = &self.root.item { table } else { &NO_TABLE }
    }
}

/// Returns the dotted path of `key` in the table at `path`.
pub(super) fn joined(path: &str, key: &str) -> String {
    let key = bare_or_quoted(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Returns the line of a byte offset, counted from 1.
fn line_of(text: &str, offset: usize) -> u32 {
    text.as_bytes()[..offset.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() as u32 + 1
}

impl Table {
    fn read(text: &str, table: &DeTable<'_>) -> Table {
        let entry = |(key, value): (&toml::Spanned<std::borrow::Cow<'_, str>>, &toml::Spanned<DeValue<'_>>)| {
            let origin = Origin::Line(line_of(text, key.span().start));
            (key.get_ref().to_string(), Node { item: Item::read(text, value.get_ref()), origin })
        };
        Table { entries: table.iter().map(entry).collect() }
    }

    /// Iterates over keys and values, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.entries.iter().map(|(key, node)| (key.as_str(), node))
    }

    /// Iterates over the values, mutably.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.entries.iter_mut().map(|(_, node)| node)
    }

    /// Returns the value of `key`.
    pub fn find(&self, key: &str) -> Option<&Node> {
        self.iter().find(|(other, _)| *other == key).map(|(_, node)| node)
    }

    /// Removes `key` if it exists.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|(other, _)| other != key);
    }

    /// Returns the value of `key`. A missing key is added as an empty table.
    pub fn entry(&mut self, key: &str) -> &mut Node {
        let found = self.entries.iter().position(|(other, _)| other == key);
        let index = found.unwrap_or_else(|| {
            let node = Node { item: Item::Table(Table::default()), origin: Origin::Set };
            self.entries.push((key.to_owned(), node));
            self.entries.len() - 1
        });
        &mut self.entries[index].1
    }
}

impl Item {
    /// Converts a parsed value. `text` is the source that its positions refer to.
    pub fn read(text: &str, value: &DeValue<'_>) -> Item {
        match value {
            DeValue::String(string) => Item::Text(string.to_string()),
            DeValue::Integer(whole) => match i128::from_str_radix(whole.as_str(), whole.radix()) {
                Ok(number) => Item::Whole(number),
                Err(_) => Item::Number(f64::INFINITY),
            },
            DeValue::Float(number) => Item::Number(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Item::Flag(*flag),
            DeValue::Datetime(moment) => Item::Moment(moment.to_string()),
            DeValue::Array(list) => Item::List(
                list.iter()
                    .map(|value| Node {
                        item: Item::read(text, value.get_ref()),
                        origin: Origin::Line(line_of(text, value.span().start)),
                    })
                    .collect(),
            ),
            DeValue::Table(table) => Item::Table(Table::read(text, table)),
        }
    }

    /// Returns true for an array of tables, which TOML writes under `[[...]]`.
    fn is_list_of_tables(&self) -> bool {
        matches!(self, Item::List(list) if !list.is_empty()
            && list.iter().all(|node| matches!(node.item, Item::Table(_))))
    }
}

impl fmt::Display for Item {
    /// Writes the value on one line, as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Text(text) => f.write_str(&quoted(text)),
            Item::Whole(number) => write!(f, "{number}"),
            Item::Number(number) => write!(f, "{number:?}"),
            Item::Flag(flag) => write!(f, "{flag}"),
            Item::Moment(text) => f.write_str(text),
            Item::List(list) => {
                f.write_char('[')?;
                for (index, node) in list.iter().enumerate() {
                    write!(f, "{}{}", if index == 0 { "" } else { ", " }, node.item)?;
                }
                f.write_char(']')
            }
            Item::Table(table) => {
                f.write_str("{ ")?;
                for (index, (key, node)) in table.iter().enumerate() {
                    write!(f, "{}{} = {}", if index == 0 { "" } else { ", " }, bare_or_quoted(key), node.item)?;
                }
                f.write_str(" }")
            }
        }
    }
}

/// Returns a string in TOML's quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns a key as TOML writes it: bare if possible, otherwise quoted.
pub fn bare_or_quoted(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare { key.to_owned() } else { quoted(key) }
}

/// Returns the document as TOML text: values first, then tables under their headers.
pub fn write_toml(table: &Table) -> String {
    let mut out = String::new();
    write_table(table, "", &mut out);
    out
}

fn write_table(table: &Table, path: &str, out: &mut String) {
    let has_header = |item: &Item| matches!(item, Item::Table(_)) || item.is_list_of_tables();
    for (key, node) in table.iter().filter(|(_, node)| !has_header(&node.item)) {
        out.push_str(&format!("{} = {}\n", bare_or_quoted(key), node.item));
    }
    for (key, node) in table.iter() {
        let key = bare_or_quoted(key);
        let path = if path.is_empty() { key } else { format!("{path}.{key}") };
        match &node.item {
            Item::Table(table) => write_section(table, &path, "[", "]", out),
            Item::List(list) if node.item.is_list_of_tables() => {
                for node in list {
                    if let Item::Table(table) = &node.item {
                        write_section(table, &path, "[[", "]]", out);
                    }
                }
            }
            _ => {}
        }
    }
}

fn write_section(table: &Table, path: &str, open: &str, close: &str, out: &mut String) {
    out.push_str(&format!("\n{open}{path}{close}\n"));
    write_table(table, path, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Table {
        let document = Document::parse(text, "t.toml").expect("valid TOML");
        let Item::Table(table) = document.root.item else { panic!("a table") };
        table
    }

    #[test]
    fn every_value_keeps_its_line() {
        let table = root("a = 1\n\n[b]\nc = [\n  1,\n  2]\n[[d]]\n[[d]]\ne = 2\n");
        let lines: Vec<_> = table.iter().map(|(key, node)| (key, node.origin)).collect();
        assert_eq!(lines, [("a", Origin::Line(1)), ("b", Origin::Line(3)), ("d", Origin::Line(7))]);
        let Some(Item::List(list)) = table.find("d").map(|node| &node.item) else { panic!("a list") };
        assert_eq!(list[1].origin, Origin::Line(8));
    }

    #[test]
    fn a_syntax_error_names_its_line() {
        let error = Document::parse("a = 1\nb = = 2\n", "t.toml").expect_err("not TOML");
        assert_eq!((error.file.as_str(), error.line), ("t.toml", Some(2)));
        assert!(error.message.starts_with("not valid TOML: "), "{error}");
    }

    #[test]
    fn written_text_reads_back_the_same() {
        let text = "a = \"x \\\"y\\\" \\\\ \\n\"\nb = [1, [0.5, true]]\n\n[c]\nd = 1e-7\n\n[c.\"e f\"]\ng = -3\n\n\
                    [[h]]\ni = 1\n\n[h.j]\nk = 2\n\n[[h]]\n";
        let written = write_toml(&root(text));
        assert_eq!(written, text);
        assert_eq!(write_toml(&root(&written)), written);
    }
}
