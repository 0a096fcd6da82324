//! The JSON Schema (draft 7) of scenarios and sweeps, for editors. It is derived from the tables that the parser uses.

use crate::listing::{Entry, Forms, Parameter, catalogue};
use crate::scenario::SCENARIO;
use sparelane_catalogue::Catalogue;
use sparelane_catalogue::schema::json::{Json, definitions};
use sparelane_catalogue::schema::{Kind, Shape};

/// The identifier of the draft.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// One scenario.
    Scenario,
    /// A sweep: a scenario in which some keys have several values.
    Sweep,
}

/// The JSON Schema of scenarios, or of sweeps, with the names of `in_catalogue`.
pub fn json_schema(in_catalogue: &Catalogue, document: Document) -> Json {
    let entries = catalogue(in_catalogue);
    let mut definitions = definitions();
    for kind in ["controller", "queue"] {
        definitions.push((kind.to_owned(), Json::words(named(&entries, kind).map(|entry| entry.name.as_str()))));
    }
    for table in entries.iter().filter(|entry| entry.kind == "table" && entry.name != TOP_LEVEL) {
        let name = format!("table.{}", table.name.trim_matches(['[', ']']));
        definitions.push((name, table_schema(table, &entries, document)));
    }
    if document == Document::Sweep {
        definitions.push(("range".to_owned(), range()));
    }
    let what = match document {
        Document::Scenario => "a scenario of sparelane",
        Document::Sweep => "a sweep of sparelane: a scenario in which lists and ranges stand in place of values",
    };
    let properties = SCENARIO.iter().map(|key| {
        let takes = key.kind.takes();
        // `[scheme.NAME]` holds tables by their names; a list of `[[workload]]` tables is one value.
        let holds_tables = matches!(key.kind, Kind::Special(_, Shape::Named(_))) || takes.0;
        let schema = key.kind.json_schema();
        let schema = if document == Document::Sweep && !holds_tables { several(schema, takes) } else { schema };
        (key.name.to_owned(), described(key.description(), schema))
    });
    let required = SCENARIO.iter().filter(|key| key.is_required()).map(|key| Json::text(key.name));
    Json::object([
        ("$schema", Json::text(DRAFT)),
        ("title", Json::text(what)),
        ("type", Json::text("object")),
        ("properties", Json::Object(properties.collect())),
        ("required", Json::List(required.collect())),
        ("additionalProperties", Json::Flag(false)),
        ("definitions", Json::Object(definitions)),
    ])
}

/// The key that sets the label of a table in a sweep.
const LABEL: &str = "name";

/// The entry for keys outside any table.
pub(crate) const TOP_LEVEL: &str = "(top level)";

fn named<'e>(entries: &'e [Entry], kind: &'e str) -> impl Iterator<Item = &'e Entry> {
    entries.iter().filter(move |entry| entry.kind == kind)
}

/// The schema of a table: its keys and, if one of them selects further keys, a schema for each of its values.
fn table_schema(table: &Entry, entries: &[Entry], document: Document) -> Json {
    let Some(Forms { chooser, kind, .. }) = table.forms else { return keys_schema(&[table], document) };
    let forms: Vec<&Entry> = named(entries, kind).collect();
    let all: Vec<&Entry> = std::iter::once(table).chain(forms.iter().copied()).collect();
    // A table that does not give this key takes the keys of any form, unless the key is required. So does a table with
    // several values of it.
    let has_word = table.params.iter().all(|param| param.name != chooser || param.is_required);
    let mut choices: Vec<Json> = forms.iter().map(|form| form_schema(table, form, document)).collect();
    if !has_word {
        choices.push(keys_schema(&all, document).without_required().with("not", required(&[chooser])));
    }
    let word = match document {
        Document::Scenario => Json::words(forms.iter().map(|form| form.name.as_str())),
        Document::Sweep => {
            let text = Json::object([("type", Json::text("string"))]);
            let is_varied = Json::object([(chooser, Json::object([("not", text)]))]);
            let varied = keys_schema(&all, document).without_required();
            let varied = varied.with("required", Json::List(vec![Json::text(chooser)]));
            choices.push(Json::all_of(vec![varied, Json::object([("properties", is_varied)])]));
            Json::Flag(true)
        }
    };
    let schema = Json::object([("type", Json::text("object")), ("properties", Json::object([(chooser, word)]))]);
    let schema = if has_word { schema.and(required(&[chooser])) } else { schema };
    schema.with("anyOf", Json::List(choices))
}

/// The schema of a table that selects `form`: its own keys and those of the form.
fn form_schema(table: &Entry, form: &Entry, document: Document) -> Json {
    let Some(Forms { chooser, inherits, .. }) = table.forms else { return keys_schema(&[table, form], document) };
    let word = Json::object([("description", Json::text(form.summary)), ("const", Json::text(form.name.as_str()))]);
    let schema = keys_schema(&[table, form], document);
    let schema = if inherits { schema.without_required() } else { schema };
    schema.with_property(chooser, word)
}

/// A schema of tables that must have these keys.
fn required(keys: &[&str]) -> Json {
    Json::object([("required", Json::List(keys.iter().copied().map(Json::text).collect()))])
}

/// The schema of a table with all keys of `entries`. Keys without a default are required.
fn keys_schema(entries: &[&Entry], document: Document) -> Json {
    let mut properties: Vec<(String, Json)> = Vec::new();
    let mut needed: Vec<&str> = Vec::new();
    for param in entries.iter().flat_map(|entry| &entry.params) {
        if properties.iter().all(|(name, _)| name != param.name) {
            properties.push((param.name.to_owned(), parameter_schema(param, document)));
            needed.extend(param.is_required.then_some(param.name));
        }
    }
    // A table in a list of several values can set its own label.
    if document == Document::Sweep && properties.iter().all(|(name, _)| name != LABEL) {
        let text = Json::object([("type", Json::text("string")), ("pattern", Json::text("[^ ]"))]);
        let words = "A label for this table, if it stands in a list of values. It changes no result.";
        properties.push((LABEL.to_owned(), described(words.to_owned(), text)));
    }
    let schema = Json::object([("type", Json::text("object")), ("properties", Json::Object(properties))]);
    let schema = if needed.is_empty() { schema } else { schema.and(required(&needed)) };
    schema.with("additionalProperties", Json::Flag(false))
}

fn parameter_schema(param: &Parameter, document: Document) -> Json {
    let schema = param.schema.clone();
    let schema = if document == Document::Sweep { several(schema, param.takes) } else { schema };
    described(param.words.clone(), schema)
}

/// Adds a description to a schema.
fn described(words: String, schema: Json) -> Json {
    // Readers of a schema ignore keys next to a reference, so a reference is wrapped.
    let schema = match &schema {
        Json::Object(entries) if entries.iter().any(|(key, _)| key == "$ref") => Json::all_of(vec![schema]),
        _ => schema,
    };
    Json::object([("description", Json::Text(words))]).and(schema)
}

/// The schema of a key that can have several values in a sweep: a list or a range, unless lists or tables are values of
/// the key themselves.
fn several(value: Json, (is_list, is_table): (bool, bool)) -> Json {
    let mut choices = vec![value.clone()];
    if !is_list {
        choices.push(Json::list_of(value.clone()).with("minItems", Json::Whole(1)));
    }
    if !is_table {
        choices.push(Json::reference("range"));
    }
    let each = Json::object([("each", Json::list_of(value))]);
    choices.push(
        Json::object([("type", Json::text("object")), ("properties", each)])
            .and(required(&["each"]))
            .with("additionalProperties", Json::Flag(false)),
    );
    Json::any_of(choices)
}

/// `{ from = .., to = .. }` with a step, a factor, or a number of points.
fn range() -> Json {
    let quantity = || Json::object([("type", Json::List(vec![Json::text("number"), Json::text("string")]))]);
    let flag = Json::object([("type", Json::text("boolean"))]);
    let points = Json::object([("type", Json::text("integer")), ("minimum", Json::Whole(2))]);
    let properties = Json::object([
        ("from", quantity()),
        ("to", quantity()),
        ("step", quantity()),
        ("factor", quantity()),
        ("points", points),
        ("log", flag),
    ]);
    Json::object([
        ("type", Json::text("object")),
        ("properties", properties),
        ("required", Json::List(vec![Json::text("from"), Json::text("to")])),
        ("oneOf", Json::List(["step", "factor", "points"].map(|way| required(&[way])).to_vec())),
        ("additionalProperties", Json::Flag(false)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_schema_refers_to_is_defined_there() {
        for document in [Document::Scenario, Document::Sweep] {
            let schema = json_schema(&Catalogue::built_in(), document);
            let text = schema.to_string();
            let Json::Object(entries) = &schema else { panic!("an object") };
            let Some((_, Json::Object(definitions))) = entries.last() else { panic!("definitions") };
            let mut references = 0;
            for part in text.split("\"#/definitions/").skip(1) {
                let name = part.split('"').next().unwrap_or_default();
                assert!(definitions.iter().any(|(other, _)| other == name), "{name} is not defined");
                references += 1;
            }
            assert!(references > 20, "{references}");
        }
    }
}
