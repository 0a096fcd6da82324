//! The allowed values of keys as JSON Schema (draft 7), with which editors check and complete scenarios.
//!
//! JSON Schema cannot express bounds of times, rates and sizes, because these are texts with units. Everything else is
//! included.

use super::keys::{Key, Kind, Shape};
use super::units::{AMOUNT, Measure, RATE, SIZE, TIME};
use sparelane_cc::Kind as Declared;
use std::fmt::{self, Write};

/// The pattern of a number in texts with units.
const NUMBER: &str = "[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?";

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// No value.
    Null,
    /// True or false.
    Flag(bool),
    /// A number.
    Number(f64),
    /// A whole number.
    Whole(i128),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object whose keys keep their order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Creates a string.
    pub fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    /// Creates a whole number.
    pub fn whole(number: impl Into<i128>) -> Json {
        Json::Whole(number.into())
    }

    /// Creates an object with these keys.
    pub fn object<const N: usize>(entries: [(&str, Json); N]) -> Json {
        Json::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Appends a key to this object. Other values are returned unchanged.
    pub fn with(mut self, key: &str, value: Json) -> Json {
        if let Json::Object(entries) = &mut self {
            entries.push((key.to_owned(), value));
        }
        self
    }

    /// Appends the keys of `other` to this object.
    pub fn and(self, other: Json) -> Json {
        match other {
            Json::Object(entries) => entries.into_iter().fold(self, |object, (key, value)| object.with(&key, value)),
            _ => self,
        }
    }

    /// Returns this table schema without its list of required keys.
    pub fn without_required(mut self) -> Json {
        if let Json::Object(entries) = &mut self {
            entries.retain(|(key, _)| key != "required");
        }
        self
    }

    /// Adds a required key to this table schema, in place of one of the same name.
    pub fn with_property(self, key: &str, schema: Json) -> Json {
        let Json::Object(mut entries) = self else { return self };
        for (name, value) in &mut entries {
            match (name.as_str(), value) {
                ("properties", Json::Object(properties)) => {
                    properties.retain(|(other, _)| other != key);
                    properties.insert(0, (key.to_owned(), schema.clone()));
                }
                ("required", Json::List(keys)) if !keys.contains(&Json::text(key)) => keys.push(Json::text(key)),
                _ => {}
            }
        }
        if entries.iter().all(|(name, _)| name != "required") {
            entries.push(("required".to_owned(), Json::List(vec![Json::text(key)])));
        }
        Json::Object(entries)
    }

    /// Creates a schema that requires all of `schemas`.
    pub fn all_of(schemas: Vec<Json>) -> Json {
        Json::object([("allOf", Json::List(schemas))])
    }

    /// Creates a schema that requires one of `schemas`.
    pub fn any_of(schemas: Vec<Json>) -> Json {
        Json::object([("anyOf", Json::List(schemas))])
    }

    /// Creates a reference to a schema in the definitions.
    pub fn reference(definition: &str) -> Json {
        Json::object([("$ref", Json::text(format!("#/definitions/{definition}")))])
    }

    /// Creates a schema of these words.
    pub fn words<'w>(words: impl IntoIterator<Item = &'w str>) -> Json {
        Json::object([("enum", Json::List(words.into_iter().map(Json::text).collect()))])
    }

    /// Creates a schema of lists whose entries match `entries`.
    pub fn list_of(entries: Json) -> Json {
        Json::object([("type", Json::text("array")), ("items", entries)])
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Flag(flag) => write!(f, "{flag}"),
            Json::Number(number) => write!(f, "{number}"),
            Json::Whole(number) => write!(f, "{number}"),
            Json::Text(text) => write_quoted(text, f),
            Json::List(list) => {
                f.write_char('[')?;
                for (place, value) in list.iter().enumerate() {
                    write!(f, "{}{value}", if place == 0 { "" } else { "," })?;
                }
                f.write_char(']')
            }
            Json::Object(entries) => {
                f.write_char('{')?;
                for (place, (key, value)) in entries.iter().enumerate() {
                    f.write_str(if place == 0 { "" } else { "," })?;
                    write_quoted(key, f)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

impl Key {
    /// Returns the description of the key for people: its meaning, its allowed values and its default.
    pub fn description(&self) -> String {
        format!("{}.\nAllowed: {}.\nDefault: {}.", self.meaning, self.kind, self.default)
    }
}

impl Kind {
    /// Returns the schema of the values of this kind. It refers to definitions named `table.` plus the name of a table
    /// in the listing, and to the names of kinds of entries.
    pub fn json_schema(&self) -> Json {
        match self {
            Kind::Text | Kind::Path | Kind::Node => of_type("string"),
            Kind::Time { .. } => with_unit(&TIME),
            Kind::Rate => with_unit(&RATE),
            Kind::Size { .. } => with_unit(&SIZE),
            Kind::Whole { min, max } => whole(*min, *max),
            Kind::Positive { max } => {
                of_type("number").with("exclusiveMinimum", Json::Whole(0)).with("maximum", Json::Number(*max))
            }
            Kind::Share { max } => {
                let number = of_type("number").with("minimum", Json::Whole(0)).with("maximum", Json::Number(*max));
                Json::any_of(vec![number, pattern(&format!("{NUMBER}[ \\t]*%?"))])
            }
            Kind::Flag => of_type("boolean"),
            Kind::Choice(words) => Json::words(words.iter().copied()),
            Kind::Limit => with_unit(&AMOUNT),
            Kind::Volume => Json::any_of(vec![with_unit(&AMOUNT), Json::words(["unlimited"])]),
            Kind::Declared(param) => declared(&param.kind),
            Kind::Special(_, shape) => shape.json_schema(),
        }
    }
}

impl Shape {
    /// Returns the schema of the values of this shape.
    fn json_schema(&self) -> Json {
        match self {
            Shape::Of(kind) => kind.json_schema(),
            Shape::Entry(kind) => Json::reference(kind),
            Shape::List(of) => Json::list_of(of.json_schema()),
            Shape::Pair(of) => {
                Json::list_of(of.json_schema()).with("minItems", Json::Whole(2)).with("maxItems", Json::Whole(2))
            }
            Shape::Table(name) => Json::reference(&format!("table.{name}")),
            Shape::Tables(name) => {
                let table = Json::reference(&format!("table.{name}"));
                Json::any_of(vec![table.clone(), Json::list_of(table)])
            }
            Shape::Named(of) => of_type("object").with("additionalProperties", of.json_schema()),
            Shape::Either([]) => Json::Flag(true),
            Shape::Either(shapes) => Json::any_of(shapes.iter().map(Shape::json_schema).collect()),
        }
    }

    /// Returns whether this shape accepts a list and whether it accepts a table, in that order.
    pub fn takes(&self) -> (bool, bool) {
        match self {
            Shape::Of(Kind::Special(_, shape)) => shape.takes(),
            Shape::Of(_) | Shape::Entry(_) => (false, false),
            Shape::List(_) | Shape::Pair(_) => (true, false),
            Shape::Table(_) | Shape::Named(_) => (false, true),
            Shape::Tables(_) => (true, true),
            Shape::Either(shapes) => {
                shapes.iter().map(Shape::takes).fold((false, false), |all, one| (all.0 || one.0, all.1 || one.1))
            }
        }
    }
}

impl Kind {
    /// Returns whether this kind accepts a list and whether it accepts a table, in that order.
    pub fn takes(&self) -> (bool, bool) {
        match self {
            Kind::Special(_, shape) => shape.takes(),
            Kind::Declared(param) => {
                let is_table = matches!(param.kind, Declared::Weights | Declared::Controller);
                (matches!(param.kind, Declared::Increasing { .. }), is_table)
            }
            _ => (false, false),
        }
    }
}

fn of_type(name: &str) -> Json {
    Json::object([("type", Json::text(name))])
}

fn whole(min: u64, max: u64) -> Json {
    let least = of_type("integer").with("minimum", Json::whole(min));
    if max == u64::MAX { least } else { least.with("maximum", Json::whole(max)) }
}

fn pattern(inside: &str) -> Json {
    of_type("string").with("pattern", Json::text(format!("^[ \\t]*{inside}[ \\t]*$")))
}

/// Returns the schema of texts such as `"40ms"`: a reference to `definitions`.
fn with_unit(measure: &Measure) -> Json {
    let (name, _) = MEASURES.iter().find(|(_, other)| std::ptr::eq(*other, measure)).unwrap_or(&MEASURES[0]);
    Json::reference(name)
}

/// The names of texts with units in the definitions.
static MEASURES: [(&str, &Measure); 4] = [("time", &TIME), ("rate", &RATE), ("size", &SIZE), ("amount", &AMOUNT)];

/// Returns the definitions of texts with units, to which schemas of keys refer.
pub fn definitions() -> Vec<(String, Json)> {
    MEASURES.iter().map(|(name, measure)| ((*name).to_owned(), texts_of(measure))).collect()
}

fn texts_of(measure: &Measure) -> Json {
    // The micro sign has two code points, and each may stand for the u. A single packet is also written "packet".
    let names = measure.names().map(|name| match name {
        "us" => "[u\u{b5}\u{3bc}]s".to_owned(),
        "packets" => "packets?".to_owned(),
        name => name.to_owned(),
    });
    let texts = pattern(&format!("{NUMBER}[ \\t]*({})", names.collect::<Vec<_>>().join("|")));
    texts.with("description", Json::text(measure.examples()))
}

/// Returns the schema of a parameter that a controller declares.
fn declared(kind: &Declared) -> Json {
    match kind {
        Declared::Whole { min, max, .. } => whole(*min, *max),
        Declared::Number { min, max, .. } => {
            of_type("number").with("minimum", Json::Number(*min)).with("maximum", Json::Number(*max))
        }
        Declared::Flag => of_type("boolean"),
        Declared::Choice(words) => Json::words(words.iter().copied()),
        Declared::Span { .. } => with_unit(&TIME),
        Declared::OptionalRate => Json::any_of(vec![with_unit(&RATE), Json::words(["none"])]),
        Declared::Rate { .. } => with_unit(&RATE),
        Declared::Size { .. } => with_unit(&SIZE),
        Declared::Weights => {
            let weight = of_type("number").with("exclusiveMinimum", Json::Whole(0));
            of_type("object").with("additionalProperties", weight)
        }
        Declared::Increasing { max_len } => {
            Json::list_of(whole(0, u64::MAX)).with("maxItems", Json::whole(*max_len as u64))
        }
        Declared::Numbers => Json::list_of(whole(0, u64::MAX)).with("minItems", Json::Whole(1)),
        Declared::Bound { min, .. } => Json::any_of(vec![whole(*min, u64::MAX), Json::words(["unbounded"])]),
        Declared::Controller => Json::any_of(vec![Json::reference("controller"), Json::reference("table.inner")]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_in_json() {
        assert_eq!(Json::text("a \"b\"\\\n").to_string(), r#""a \"b\"\\\u000a""#);
        let object = Json::object([("a", Json::List(vec![Json::whole(u64::MAX), Json::Number(0.5)]))]);
        assert_eq!(object.with("b", Json::Flag(true)).to_string(), r#"{"a":[18446744073709551615,0.5],"b":true}"#);
    }

    #[test]
    fn bounds_of_numbers_are_included_and_units_are_references() {
        let whole = Kind::Whole { min: 1, max: 9 }.json_schema();
        assert_eq!(whole.to_string(), r#"{"type":"integer","minimum":1,"maximum":9}"#);
        assert_eq!(Kind::SPAN.json_schema().to_string(), r##"{"$ref":"#/definitions/time"}"##);
        assert_eq!(Kind::Limit.json_schema().to_string(), r##"{"$ref":"#/definitions/amount"}"##);
        assert_eq!(definitions().len(), 4);
    }

    #[test]
    fn lists_and_tables_are_distinguished_from_single_values() {
        assert_eq!(Kind::SPAN.takes(), (false, false));
        assert_eq!(Kind::TABLE.takes(), (false, true));
        assert_eq!(Kind::Special("", &Shape::Tables("drop")).takes(), (true, true));
        let either = Kind::Special("", &Shape::Either(&[Shape::Of(Kind::Flag), Shape::Pair(&Shape::Of(Kind::Node))]));
        assert_eq!(either.takes(), (true, false));
    }
}
