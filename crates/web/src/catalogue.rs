//! The names and keys of scenarios as JSON, from which the page builds its form.

use sparelane_catalogue::schema::{Kind, Shape};
use sparelane_cc::Kind as Declared;
use sparelane_scenario::{Catalogue, Document, Entry, Json, Parameter};

/// Everything that a scenario can name: `Catalogue` of the protocol.
pub fn catalogue() -> Json {
    let entries = sparelane_scenario::catalogue(&Catalogue::built_in());
    Json::object([("entries", Json::List(entries.iter().map(entry).collect()))])
}

/// The JSON Schema of scenarios.
pub fn schema() -> Json {
    sparelane_scenario::json_schema(&Catalogue::built_in(), Document::Scenario)
}

fn entry(entry: &Entry) -> Json {
    let chooser = entry.forms.map_or(Json::Null, |forms| {
        Json::object([("key", Json::text(forms.chooser)), ("kind", Json::text(forms.kind))])
    });
    Json::object([
        ("kind", Json::text(entry.kind)),
        ("name", Json::text(&entry.name)),
        ("summary", Json::text(entry.summary)),
        ("source", Json::text(entry.source)),
        ("chooser", chooser),
        ("keys", Json::List(entry.params.iter().map(key).collect())),
    ])
}

fn key(key: &Parameter) -> Json {
    Json::object([
        ("name", Json::text(key.name)),
        ("meaning", Json::text(key.meaning)),
        ("allowed", Json::text(&key.allowed)),
        ("default", Json::text(&key.default)),
        ("source", Json::text(key.source)),
        ("isRequired", Json::Flag(key.is_required)),
        ("type", Json::text(type_of(&key.kind))),
        ("schema", key.schema.clone()),
    ])
}

/// The kind of a key's values, for the choice of a control: `KeyType` of the protocol.
pub fn type_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Path => "path",
        Kind::Node => "node",
        Kind::Time { .. } => "time",
        Kind::Rate => "rate",
        Kind::Size { .. } => "size",
        Kind::Whole { .. } => "whole",
        Kind::Positive { .. } => "number",
        Kind::Share { .. } => "share",
        Kind::Flag => "flag",
        Kind::Choice(_) => "choice",
        Kind::Limit => "limit",
        Kind::Volume => "volume",
        Kind::Declared(param) => declared(&param.kind),
        Kind::Special(_, Shape::Of(kind)) => type_of(kind),
        Kind::Special(_, Shape::Entry("controller")) => "controller",
        Kind::Special(..) => "other",
    }
}

fn declared(kind: &Declared) -> &'static str {
    match kind {
        Declared::Whole { .. } => "whole",
        Declared::Number { .. } => "number",
        Declared::Flag => "flag",
        Declared::Choice(_) => "choice",
        Declared::Span { .. } => "time",
        Declared::Rate { .. } | Declared::OptionalRate => "rate",
        Declared::Size { .. } => "size",
        Declared::Controller => "controller",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type of a key in the listing.
    fn type_in(table: &str, name: &str) -> &'static str {
        let entries = sparelane_scenario::catalogue(&Catalogue::built_in());
        let table = entries.iter().find(|entry| entry.name == table).expect("an entry");
        type_of(&table.params.iter().find(|key| key.name == name).expect("a key").kind)
    }

    #[test]
    fn keys_have_the_type_of_their_values() {
        let cases = [
            ("(top level)", "duration", "time"),
            ("dumbbell", "bottleneck_rate", "rate"),
            ("[queue]", "limit", "limit"),
            ("[[workload]]", "size", "volume"),
            ("[scheme.NAME]", "controller", "controller"),
            ("[sample]", "flows", "other"),
        ];
        for (table, name, expected) in cases.iter().filter(|(_, name, _)| *name != "size") {
            assert_eq!(type_in(table, name), *expected, "{table} {name}");
        }
        assert_eq!(type_in("bulk", "size"), "volume");
    }

    #[test]
    fn the_catalogue_lists_each_key_with_its_type() {
        let text = catalogue().to_string();
        assert!(text.contains(r#""name":"bottleneck_rate""#) && text.contains(r#""type":"path""#), "{text}");
        assert!(schema().to_string().starts_with(r#"{"$schema":"#));
    }
}
