//! The tables of a scenario as the user wrote them, with overrides, for programs that look at single keys.

use sparelane_catalogue::schema::document::{Document, Item, Table};
use sparelane_catalogue::schema::json::Json;
use sparelane_catalogue::schema::{ScenarioError, overrides};

/// Reads the text of a scenario or sweep without checking its keys and values. `file` is its name in messages, and
/// `settings` are overrides of the form `key=value`. Dates are text.
///
/// # Errors
/// The text is not valid TOML, or an override is not valid.
pub fn tables(text: &str, file: &str, settings: &[String]) -> Result<Json, ScenarioError> {
    let mut document = Document::parse(text, file)?;
    for setting in settings {
        overrides::apply(&mut document.root, setting)?;
    }
    Ok(as_written(document.table()))
}

/// A table as the user wrote it.
pub fn as_written(table: &Table) -> Json {
    Json::Object(table.iter().map(|(key, node)| (key.to_owned(), value(&node.item))).collect())
}

fn value(item: &Item) -> Json {
    match item {
        Item::Text(text) | Item::Moment(text) => Json::text(text),
        Item::Whole(number) => Json::Whole(*number),
        Item::Number(number) => Json::Number(*number),
        Item::Flag(flag) => Json::Flag(*flag),
        Item::List(items) => Json::List(items.iter().map(|node| value(&node.item)).collect()),
        Item::Table(table) => as_written(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_types_and_overrides_their_places() {
        let text = "a = -1\nb = 0.5\nc = [true, 'x']\n[[w]]\nd = 2026-01-01\n";
        let settings = ["b=1.5", "w.0.e=2ms", "new.key=[1, 2]"].map(str::to_owned);
        let found = tables(text, "t.toml", &settings).expect("tables").to_string();
        let expected = r#"{"a":-1,"b":1.5,"c":[true,"x"],"w":[{"d":"2026-01-01","e":"2ms"}],"new":{"key":[1,2]}}"#;
        assert_eq!(found, expected);
    }

    #[test]
    fn mistakes_name_the_file_and_line_or_the_override() {
        let failed = |text: &str, settings: &[&str]| {
            let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
            tables(text, "t.toml", &settings).expect_err("a mistake").to_string()
        };
        assert!(failed("a = 1\nb = \n", &[]).starts_with("t.toml:2: not valid TOML"));
        assert!(failed("a = 1\n", &["a.b=2"]).starts_with("--set a.b = 2: \"a\" is not a table"));
    }
}
