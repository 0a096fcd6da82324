//! Scenarios as text: mistakes with line and column, and edits that keep comments, order and layout.

use crate::{files, network};
use sparelane_catalogue::schema::document::{Document, Item as Found, Node, write_toml};
use sparelane_core::Time;
use sparelane_scenario::{Json, Scenario, ScenarioError, Source, overrides, tables};
use toml::de::DeTable;
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// The name of the scenario in messages, and in the commands that the page shows.
pub const FILE: &str = "scenario.toml";

/// The place of the scenario, which has no folder.
pub fn source() -> Source {
    Source { file: FILE.to_owned(), folder: ".".into() }
}

/// Parses the text of a scenario.
///
/// # Errors
/// The mistakes of the text.
pub fn scenario(text: &str) -> Result<Scenario, Vec<Mistake>> {
    Scenario::parse(text, &source(), &[]).map_err(|error| {
        let mut found = mistakes(text, error);
        add_later_mistakes(text, &mut found);
        found
    })
}

/// The number of mistakes that are shown at most.
const MOST_MISTAKES: usize = 10;

/// Adds the mistakes after the first one, at which parsing stops. Each mistake is taken out of the text, and the rest is
/// parsed again.
///
/// The search ends where the missing line would cause mistakes of its own: a key that is required, or a value of the
/// network, whose nodes other tables name.
fn add_later_mistakes(text: &str, found: &mut Vec<Mistake>) {
    let mut rest: Vec<&str> = text.lines().collect();
    while let Some(Mistake { line: Some(line), key, value, columns: Some((1, _)), .. }) = found.last() {
        let line = *line as usize - 1;
        if found.len() == MOST_MISTAKES || (key.starts_with("topology.") && value.is_some()) || !is_whole(rest[line]) {
            return;
        }
        rest[line] = "";
        let Err(error) = Scenario::parse(&rest.join("\n"), &source(), &[]) else { return };
        let is_new = |one: &Mistake| one.key != error.key && one.line != error.line;
        if error.key.is_empty() || error.line.is_none() || !found.iter().all(is_new) {
            return;
        }
        found.extend(mistakes(text, error));
    }
}

/// True if a line is a key with its whole value.
fn is_whole(line: &str) -> bool {
    DeTable::parse(line).is_ok()
}

/// Checks the text of a scenario: `Parsed` of the protocol.
pub fn parse(text: &str) -> Json {
    let given = || tables(text, FILE, &[]);
    let scenario = match scenario(text) {
        Ok(scenario) => scenario,
        Err(mistakes) => {
            return Json::object([
                ("ok", Json::Flag(false)),
                ("mistakes", to_json(&mistakes)),
                ("scenario", given().unwrap_or(Json::Null)),
            ]);
        }
    };
    let texts = |texts: &[String]| Json::List(texts.iter().map(Json::text).collect());
    Json::object([
        ("ok", Json::Flag(true)),
        ("scenario", given().unwrap_or(Json::Null)),
        ("warnings", texts(scenario.warnings())),
        ("network", network::to_json(scenario.network())),
        ("schemes", texts(&scenario.scheme_names())),
        ("durationS", Json::Number((Time::ZERO + scenario.duration).as_secs_f64())),
        ("seed", Json::whole(scenario.seed)),
        ("bdpBytes", Json::whole(scenario.bdp_bytes)),
    ])
}

/// A mistake in a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, counted from 1.
    pub line: Option<u32>,
    /// The first column and the column after the last, counted from 1 in UTF-16 code units.
    pub columns: Option<(u32, u32)>,
    /// The key as a dotted path; may be empty.
    pub key: String,
    /// The given value.
    pub value: Option<String>,
    /// The cause, and the allowed values.
    pub message: String,
    /// The whole message.
    pub text: String,
}

/// Mistakes as JSON: a list of `Mistake` of the protocol.
pub fn to_json(mistakes: &[Mistake]) -> Json {
    let number = |number: Option<u32>| number.map_or(Json::Null, Json::whole);
    let one = |mistake: &Mistake| {
        Json::object([
            ("line", number(mistake.line)),
            ("column", number(mistake.columns.map(|(first, _)| first))),
            ("endColumn", number(mistake.columns.map(|(_, end)| end))),
            ("key", Json::text(&mistake.key)),
            ("value", mistake.value.as_ref().map_or(Json::Null, Json::text)),
            ("message", Json::text(&mistake.message)),
            ("text", Json::text(&mistake.text)),
        ])
    };
    Json::List(mistakes.iter().map(one).collect())
}

/// The mistakes in `text`, whose first one is `error`. If the text is not valid TOML, all mistakes of its syntax are
/// found; otherwise the first mistake is the only one.
fn mistakes(text: &str, error: ScenarioError) -> Vec<Mistake> {
    let (_, errors) = DeTable::parse_recoverable(text);
    let of_syntax: Vec<_> = errors
        .iter()
        .filter_map(|error| {
            let message = format!("not valid TOML: {}", error.message().lines().collect::<Vec<_>>().join("; "));
            let span = error.span()?;
            let (line, columns) = place(text, span.start, span.end);
            let text = ScenarioError::in_file(FILE, Some(line), &message).to_string();
            Some(Mistake { line: Some(line), columns: Some(columns), key: String::new(), value: None, message, text })
        })
        .collect();
    // The text of another program is no TOML either, but the first error names its format.
    if !of_syntax.is_empty() && error.line.is_some() {
        return of_syntax;
    }
    let files = files::named(text);
    let file = files.iter().find(|file| file.key == error.key);
    let message = match file {
        Some(file) => format!("the page cannot read files; the scenario needs \"{}\"", file.path),
        None => error.message.clone(),
    };
    let whole = ScenarioError { message: message.clone(), ..error.clone() }.to_string();
    let columns = error.line.and_then(|line| columns_of(text, line, &error.key));
    vec![Mistake { line: error.line, columns, key: error.key, value: error.value, message, text: whole }]
}

/// The line of a range of bytes, and its columns in that line. An empty range has the width of one character.
fn place(text: &str, start: usize, end: usize) -> (u32, (u32, u32)) {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(start), floor(end));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let line = text[..start].matches('\n').count() as u32 + 1;
    let width = |part: &str| part.encode_utf16().count() as u32;
    let first = width(&text[line_start..start]) + 1;
    let after = first + width(&text[start..end.clamp(start, line_end)]);
    (line, (first, after.max(first + 1)))
}

/// The columns of the last part of `key` in a line, and of the value that follows it, if the line names the key.
fn columns_of(text: &str, line: u32, key: &str) -> Option<(u32, u32)> {
    let line = text.lines().nth(line as usize - 1)?;
    let path = overrides::split(key)?;
    let width = |part: &str| part.encode_utf16().count() as u32;
    // A number is an element of a list, so the list's own name is in the line.
    let name = path.iter().rev().find(|part| !part.bytes().all(|byte| byte.is_ascii_digit()))?;
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || "_-".contains(letter));
    let (start, _) = line.match_indices(name.as_str()).find(|&(at, _)| {
        let (before, after) = (&line[..at], &line[at + name.len()..]);
        !is_part(before.chars().next_back()) && !is_part(after.chars().next())
    })?;
    let rest = &line[start..];
    // A key alone in its line is marked with its value, others without.
    let is_alone = line[..start].trim().is_empty() && rest[name.len()..].trim_start().starts_with('=');
    let marked = if is_alone { without_comment(rest).trim_end() } else { &rest[..name.len()] };
    let first = width(&line[..start]) + 1;
    Some((first, first + width(marked)))
}

/// A line without its comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, letter) in line.char_indices() {
        match (quote, letter) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
    }
    line
}

/// The result of an edit as JSON: `Edited` of the protocol.
pub fn edited(result: Result<String, Vec<Mistake>>) -> Json {
    match result {
        Ok(toml) => Json::object([("ok", Json::Flag(true)), ("toml", Json::Text(toml))]),
        Err(mistakes) => Json::object([("ok", Json::Flag(false)), ("mistakes", to_json(&mistakes))]),
    }
}

/// Writes a scenario from its tables. `tables` is one inline table of TOML.
///
/// # Errors
/// `tables` is not such a table.
pub fn to_toml(tables: &str) -> Result<String, Vec<Mistake>> {
    let text = format!("root = {tables}");
    let document = Document::parse(&text, FILE).map_err(|error| mistakes(&text, error))?;
    match document.table().find("root") {
        Some(Node { item: Found::Table(table), .. }) => Ok(write_toml(table).trim_start().to_owned()),
        _ => Err(vec![refusal("", "a scenario is a table")]),
    }
}

/// Sets one key in the text of a scenario, and keeps the rest as it is. `value` is a value in TOML; `None` removes the
/// key. In `path`, numbers select elements of lists, as in overrides. Missing tables are added.
///
/// # Errors
/// The text or the value is not valid TOML, or the path leads through something that is not a table.
pub fn set_key(text: &str, path: &[String], value: Option<&str>) -> Result<String, Vec<Mistake>> {
    let key = path.join(".");
    let mut document: DocumentMut = text.parse().map_err(|_| {
        let error = Document::parse(text, FILE).err();
        error.map_or_else(|| vec![refusal(&key, "the text is not valid TOML")], |error| mistakes(text, error))
    })?;
    let value = match value {
        None => None,
        Some(value) => {
            let parsed: Result<Value, _> = value.parse();
            Some(parsed.map_err(|_| vec![refusal(&key, "the value is not valid TOML")])?)
        }
    };
    let Some((last, parents)) = path.split_last() else { return Err(vec![refusal("", "the path is empty")]) };
    let mut item = document.as_item_mut();
    for name in parents {
        // Removing a key from a missing table changes nothing.
        let Some(next) = step(item, name, value.is_some()).map_err(|message| vec![refusal(&key, message)])? else {
            return Ok(text.to_owned());
        };
        item = next;
    }
    match value {
        Some(value) => put(item, last, value, parents.is_empty() || parents == ["scheme"]),
        None => remove(item, last),
    }
    .map_err(|message| vec![refusal(&key, message)])?;
    Ok(document.to_string())
}

fn refusal(key: &str, message: &str) -> Mistake {
    let text = if key.is_empty() { message.to_owned() } else { format!("{key}: {message}") };
    Mistake { line: None, columns: None, key: key.to_owned(), value: None, message: message.to_owned(), text }
}

const NOT_A_TABLE: &str = "the path leads through a value that is not a table";
const NO_ELEMENT: &str = "the list has no such element";

fn index_of(name: &str) -> Option<usize> {
    name.bytes().all(|byte| byte.is_ascii_digit()).then(|| name.parse().ok()).flatten()
}

/// The part of `item` called `name`, which is added if `adds` and it is missing.
fn step<'i>(item: &'i mut Item, name: &str, adds: bool) -> Result<Option<&'i mut Item>, &'static str> {
    // As in overrides, a single table is also the first of a list, and the only table of a list needs no number.
    if name == "0" && item.as_table_like().is_some_and(|table| !table.contains_key(name)) {
        return Ok(Some(item));
    }
    match item {
        Item::ArrayOfTables(_) | Item::Value(Value::Array(_)) => {
            let Some(index) = index_of(name) else {
                return match only_element(item) {
                    Some(only) => step(only, name, adds),
                    None => Err("the list has several tables: name one by its number, counted from 0"),
                };
            };
            item.get_mut(index).map(Some).ok_or(NO_ELEMENT)
        }
        Item::Table(table) => {
            if adds && !table.contains_key(name) {
                let mut added = Table::new();
                // Its header is written only if it gets values of its own.
                added.set_implicit(true);
                table.insert(name, Item::Table(added));
            }
            Ok(table.get_mut(name))
        }
        Item::Value(Value::InlineTable(table)) => {
            if adds && !table.contains_key(name) {
                table.insert(name, Value::InlineTable(InlineTable::new()));
            }
            Ok(TableLike::get_mut(table, name))
        }
        _ => Err(NOT_A_TABLE),
    }
}

fn only_element(item: &mut Item) -> Option<&mut Item> {
    let count = match item {
        Item::ArrayOfTables(list) => list.len(),
        Item::Value(Value::Array(list)) => list.len(),
        _ => 0,
    };
    if count == 1 { item.get_mut(0) } else { None }
}

/// Sets `name` in `item`. In the top level, tables are written under headers.
fn put(item: &mut Item, name: &str, value: Value, has_headers: bool) -> Result<(), &'static str> {
    if let Item::ArrayOfTables(_) | Item::Value(Value::Array(_)) = item {
        let Some(index) = index_of(name) else {
            return put(only_element(item).ok_or(NO_ELEMENT)?, name, value, false);
        };
        return match item.get_mut(index) {
            Some(slot) => replace(slot, value),
            None => append(item, index, value),
        };
    }
    match item {
        Item::Table(table) => match table.get_mut(name) {
            Some(slot) if slot.is_value() && !(has_headers && value.is_inline_table()) => return replace(slot, value),
            _ => {
                let added = if has_headers { under_headers(value) } else { Item::Value(value) };
                table.insert(name, added);
                table.set_implicit(table.is_implicit() && !has_values(table));
            }
        },
        Item::Value(Value::InlineTable(table)) => match TableLike::get_mut(table, name) {
            Some(slot) => return replace(slot, value),
            None => {
                table.insert(name, value);
                table.fmt();
            }
        },
        _ => return Err(NOT_A_TABLE),
    }
    Ok(())
}

/// Adds an element to a list, whose number must be the next one.
fn append(list: &mut Item, index: usize, value: Value) -> Result<(), &'static str> {
    match (list, value) {
        (Item::ArrayOfTables(list), Value::InlineTable(table)) if index == list.len() => list.push(table.into_table()),
        (Item::ArrayOfTables(list), _) if index == list.len() => return Err(NOT_A_TABLE),
        (Item::Value(Value::Array(list)), value) if index == list.len() => list.push(value),
        _ => return Err(NO_ELEMENT),
    }
    Ok(())
}

fn has_values(table: &Table) -> bool {
    table.iter().any(|(_, item)| item.is_value())
}

/// A table as one under a header, a list of tables as several, and any other value as it is.
fn under_headers(value: Value) -> Item {
    let is_tables = |list: &toml_edit::Array| !list.is_empty() && list.iter().all(Value::is_inline_table);
    match value {
        Value::InlineTable(table) => Item::Table(table.into_table()),
        Value::Array(list) if is_tables(&list) => {
            let tables = list.into_iter().filter_map(|value| match value {
                Value::InlineTable(table) => Some(table.into_table()),
                _ => None,
            });
            Item::ArrayOfTables(tables.collect::<ArrayOfTables>())
        }
        value => Item::Value(value),
    }
}

/// Replaces a value, and keeps the blanks and the comment next to it.
fn replace(slot: &mut Item, mut value: Value) -> Result<(), &'static str> {
    if let Item::Value(old) = slot {
        *value.decor_mut() = old.decor().clone();
    }
    *slot = match slot {
        Item::Table(_) => under_headers(value),
        _ => Item::Value(value),
    };
    Ok(())
}

fn remove(item: &mut Item, name: &str) -> Result<(), &'static str> {
    if let (Item::ArrayOfTables(_) | Item::Value(Value::Array(_)), None) = (&*item, index_of(name)) {
        return remove(only_element(item).ok_or(NO_ELEMENT)?, name);
    }
    match (item, index_of(name)) {
        (Item::ArrayOfTables(list), Some(index)) if index < list.len() => {
            list.remove(index);
        }
        (Item::Value(Value::Array(list)), Some(index)) if index < list.len() => {
            list.remove(index);
            // The second element has a blank before it, the first one has none.
            if let (0, Some(first)) = (index, list.get_mut(0)) {
                first.decor_mut().set_prefix("");
            }
        }
        (Item::ArrayOfTables(_) | Item::Value(Value::Array(_)), _) => return Err(NO_ELEMENT),
        (item, _) => {
            item.as_table_like_mut().ok_or(NOT_A_TABLE)?.remove(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# What it shows.\nduration = \"5s\" # a while\n\n[topology]\nkind = \"dumbbell\"\n\n[scheme.tcp]\n\
                        controller = \"cubic\"\n\n[[workload]]\nkind = \"bulk\"\nsize = \"1MB\"\n";

    fn set(text: &str, path: &[&str], value: Option<&str>) -> String {
        let path: Vec<_> = path.iter().map(|&part| part.to_owned()).collect();
        set_key(text, &path, value).unwrap_or_else(|mistakes| panic!("{mistakes:?}"))
    }

    fn refused(text: &str, path: &[&str], value: Option<&str>) -> Vec<Mistake> {
        let path: Vec<_> = path.iter().map(|&part| part.to_owned()).collect();
        set_key(text, &path, value).expect_err("a mistake")
    }

    #[test]
    fn an_edit_keeps_comments_and_order() {
        let after = set(TEXT, &["duration"], Some("\"9s\""));
        assert_eq!(after, TEXT.replace("\"5s\" # a while", "\"9s\" # a while"));
        let after = set(TEXT, &["topology", "kind"], Some("\"star\""));
        assert_eq!(after, TEXT.replace("dumbbell", "star"));
    }

    #[test]
    fn an_edit_adds_missing_keys_and_tables() {
        let after = set(TEXT, &["topology", "pairs"], Some("3"));
        assert_eq!(after, TEXT.replace("\"dumbbell\"\n", "\"dumbbell\"\npairs = 3\n"));
        let after = set(TEXT, &["queue", "limit"], Some("\"20 packets\""));
        assert_eq!(after, format!("{TEXT}\n[queue]\nlimit = \"20 packets\"\n"));
        let after = set(TEXT, &["scheme", "rc3", "controller"], Some("\"rc3\""));
        assert!(after.contains("\n[scheme.rc3]\ncontroller = \"rc3\"\n"), "{after}");
        assert!(!after.contains("[scheme]"), "{after}");
    }

    #[test]
    fn whole_tables_are_written_under_headers() {
        let after = set(TEXT, &["queue"], Some("{ kind = \"codel\", limit = \"1MB\" }"));
        assert_eq!(after, format!("{TEXT}\n[queue]\nkind = \"codel\"\nlimit = \"1MB\"\n"));
        let after = set(TEXT, &["scheme", "b"], Some("{ controller = \"bbr\" }"));
        assert!(after.contains("\n[scheme.b]\ncontroller = \"bbr\"\n"), "{after}");
        let after = set(TEXT, &["workload"], Some("[{ kind = \"bulk\", size = \"2MB\" }, { kind = \"bulk\" }]"));
        assert!(
            after.ends_with("[[workload]]\nkind = \"bulk\"\nsize = \"2MB\"\n\n[[workload]]\nkind = \"bulk\"\n"),
            "{after}"
        );
    }

    #[test]
    fn elements_of_lists_are_named_by_number_and_a_single_one_without() {
        let once = TEXT.replace("1MB", "2MB");
        assert_eq!(set(TEXT, &["workload", "0", "size"], Some("\"2MB\"")), once);
        assert_eq!(set(TEXT, &["workload", "size"], Some("\"2MB\"")), once);
        let table = "[workload]\nsize = 1\n";
        assert_eq!(set(table, &["workload", "0", "size"], Some("2")), "[workload]\nsize = 2\n");
        assert_eq!(set("a = [1, 2]\n", &["a", "1"], Some("7")), "a = [1, 7]\n");
    }

    #[test]
    fn the_element_after_the_last_one_is_added_and_keeps_the_others() {
        let text = format!("{TEXT}# a comment\n[sample]\ninterval = \"1s\"\n");
        let after = set(&text, &["workload", "1"], Some("{ kind = \"bulk\", size = \"2MB\" }"));
        let added = "\n[[workload]]\nkind = \"bulk\"\nsize = \"2MB\"\n";
        assert_eq!(after, text.replace("# a comment", &format!("{}# a comment", &added)));
        assert_eq!(set("a = [1, 2]\n", &["a", "2"], Some("7")), "a = [1, 2, 7]\n");
        for (path, value) in [(&["workload", "2"][..], "{}"), (&["workload", "1"], "3")] {
            assert!(refused(TEXT, path, Some(value))[0].text.contains(&path.join(".")));
        }
    }

    #[test]
    fn keys_of_inline_tables_can_be_set() {
        let text = "sizes = { kind = \"fixed\", size = \"1kB\" } # all\n";
        assert_eq!(set(text, &["sizes", "size"], Some("\"2kB\"")), text.replace("1kB", "2kB"));
        let after = set(text, &["sizes", "cap"], Some("5"));
        assert!(after.contains("cap = 5 }") && after.ends_with("# all\n"), "{after}");
    }

    #[test]
    fn a_removed_key_is_gone_and_a_missing_one_changes_nothing() {
        assert_eq!(set(TEXT, &["workload", "size"], None), TEXT.replace("size = \"1MB\"\n", ""));
        assert_eq!(set(TEXT, &["queue", "limit"], None), TEXT);
        assert_eq!(set("a = [1, 2]\n", &["a", "0"], None), "a = [2]\n");
    }

    #[test]
    fn impossible_edits_are_refused() {
        assert_eq!(refused("a = = 1\n", &["a"], Some("1"))[0].line, Some(1));
        for (path, value) in [(&["duration", "x"][..], "1"), (&["workload", "7", "size"], "1"), (&["a"], "1 2")] {
            let found = refused(TEXT, path, Some(value));
            assert!(found[0].text.contains(&path.join(".")), "{found:?}");
        }
    }

    #[test]
    fn tables_become_a_text_that_parses() {
        let text = to_toml("{ duration = \"1s\", topology = { kind = \"star\" }, workload = [{ kind = \"bulk\" }] }");
        let expected = "duration = \"1s\"\n\n[topology]\nkind = \"star\"\n\n[[workload]]\nkind = \"bulk\"\n";
        assert_eq!(text.as_deref(), Ok(expected));
        assert!(to_toml("3").is_err() && to_toml("{").is_err());
    }

    #[test]
    fn all_mistakes_of_syntax_are_found_with_their_columns() {
        let text = "duration = \"1s\"\na = = 1\n\u{e4} = 2\n[x\n";
        let found = scenario(text).expect_err("mistakes");
        assert!(found.len() >= 2, "{found:?}");
        assert_eq!(found[0].line, Some(2));
        assert!(found.iter().all(|mistake| mistake.message.starts_with("not valid TOML: ")), "{found:?}");
        assert!(found[0].text.starts_with("scenario.toml:2: not valid TOML: "), "{found:?}");
    }

    #[test]
    fn a_mistake_marks_its_key_and_value() {
        let text = TEXT.replace("\"5s\" # a while", "\"5 x\" # a while");
        let found = scenario(&text).expect_err("a mistake");
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].line, found[0].key.as_str(), found[0].value.as_deref()),
            (Some(2), "duration", Some("\"5 x\""))
        );
        assert_eq!(found[0].columns, Some((1, 17)));
        assert!(found[0].text.starts_with("scenario.toml:2: duration = \"5 x\": "), "{found:?}");
        let text = TEXT.replace("kind = \"dumbbell\"", "kind = \"dumbbell\"\npears = 3");
        assert_eq!(scenario(&text).expect_err("a mistake")[0].columns, Some((1, 10)));
    }

    #[test]
    fn later_mistakes_are_found_too() {
        let text = "duration = \"5s\"\nseed = -1\n[topology]\nkind = \"dumbbell\"\npears = 2\n[queue]\nlimit = \"many\"\n\
                    [scheme.tcp]\ncontroller = \"cubic\"\nbeta = 7\n[[workload]]\nkind = \"bulk\"\nsize = [\n1,\n]\nstart = \"x\"\n";
        let found = scenario(text).expect_err("mistakes");
        let mut lines: Vec<_> = found.iter().filter_map(|mistake| mistake.line).collect();
        lines.sort_unstable();
        // The search ends at the value of several lines, or before it.
        assert!(lines.starts_with(&[2, 5, 7, 10]), "{found:?}");
    }

    #[test]
    fn a_mistake_whose_absence_causes_others_is_the_last_one() {
        let text = TEXT.replace("kind = \"dumbbell\"", "kind = \"dumbbell\"\npairs = \"two\"")
            + "pairs = [[\"left1\", \"right1\"]]\n";
        assert_eq!(scenario(&text).expect_err("a mistake").len(), 1);
        let text = TEXT.replace("duration = \"5s\" # a while", "duration = \"5 x\"");
        assert_eq!(scenario(&text).expect_err("a mistake").len(), 1);
        let text = TEXT.replace("\"dumbbell\"", "\"dumbell\"").replace("\"1MB\"", "\"big\"");
        let found = scenario(&text).expect_err("a mistake");
        assert!(found.iter().all(|mistake| [Some(5), Some(12)].contains(&mistake.line)), "{found:?}");
    }

    #[test]
    fn a_scenario_that_needs_a_file_says_so() {
        let text = TEXT.replace("kind = \"dumbbell\"", "kind = \"file\"\npath = \"no.topo\"");
        let found = scenario(&text).expect_err("a mistake");
        assert_eq!(found[0].line, Some(6));
        assert!(found[0].message.contains("cannot read files") && found[0].message.contains("no.topo"), "{found:?}");
    }

    #[test]
    fn parsed_scenarios_come_with_their_network_and_warnings() {
        let text = parse(&TEXT.replace("[topology]", "[host]\n[topology]")).to_string();
        assert!(text.starts_with(r#"{"ok":true,"scenario":{"duration":"5s","#), "{text}");
        assert!(text.contains(r#""layout":"row""#) && text.contains(r#""durationS":5"#), "{text}");
        let text = parse("duration = 3\n").to_string();
        assert!(text.starts_with(r#"{"ok":false,"mistakes":[{"line":1"#), "{text}");
        assert!(text.ends_with(r#""scenario":{"duration":3}}"#), "{text}");
    }
}
