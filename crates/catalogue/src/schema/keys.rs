//! Every key of a scenario as data. The parser reads by these tables, and `sparelane list` prints them.

use sparelane_cc::{DefaultValue, Param};
use sparelane_core::{Dur, Rate};
use std::fmt;

/// One key of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// The name in the file.
    pub name: &'static str,
    /// The allowed values.
    pub kind: Kind,
    /// The value if the file does not set the key.
    pub default: Fallback,
    /// The description.
    pub meaning: &'static str,
    /// The origin of the default; `sparelane` if it is the project's own.
    pub source: &'static str,
}

/// The value of a key that the file does not set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fallback {
    /// No value; the file must set the key.
    Required,
    /// This value, as a scenario would write it (strings without quotes).
    Value(&'static str),
    /// The default that a controller declares.
    Declared(DefaultValue),
    /// No value, with the meaning of its absence.
    Nothing(&'static str),
}

/// The values that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// The path of a file, relative to the scenario's folder.
    Path,
    /// The name of a node of the network.
    Node,
    /// A span of time in a closed range.
    Time {
        /// Minimum.
        min: Dur,
        /// Maximum.
        max: Dur,
    },
    /// A data rate that a link can have.
    Rate,
    /// Bytes, in a closed range.
    Size {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// A whole number in a closed range.
    Whole {
        /// Minimum.
        min: u64,
        /// Maximum.
        max: u64,
    },
    /// A number above zero, up to a maximum.
    Positive {
        /// Maximum.
        max: f64,
    },
    /// A share of one: a number from 0 to `max`, or a percentage.
    Share {
        /// Maximum.
        max: f64,
    },
    /// True or false.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The size of a queue.
    Limit,
    /// The size of a flow.
    Volume,
    /// A parameter that a controller declares.
    Declared(&'static Param),
    /// A value with a structure of its own: its description and its shape.
    Special(&'static str, &'static Shape),
}

/// The structure of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A value of another kind.
    Of(Kind),
    /// The name of something in the catalogue, given by its kind of entry in the listing.
    Entry(&'static str),
    /// A list whose entries have the same shape.
    List(&'static Shape),
    /// A list of two entries of the same shape.
    Pair(&'static Shape),
    /// A table with the keys of this table in the listing, named with or without brackets.
    Table(&'static str),
    /// Such a table, or a list of such tables.
    Tables(&'static str),
    /// A table with names that the author chooses; all values have the same shape.
    Named(&'static Shape),
    /// Any of these shapes.
    Either(&'static [Shape]),
}

/// One of several forms of a table, selected by its `kind`, and its reader.
///
/// `R` is a function that builds the object from the table's section.
#[derive(Clone, Copy)]
pub struct Form<R: 'static> {
    /// The word in `kind`.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// The paper, RFC or program that defines it.
    pub source: &'static str,
    /// The keys that only this form has.
    pub keys: &'static [Key],
    /// The reader of a section with these keys.
    pub read: R,
}

impl<R> fmt::Debug for Form<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("name", &self.name).field("keys", &self.keys).finish_non_exhaustive()
    }
}

/// The minimum and maximum rate of a link.
pub const RATES: (Rate, Rate) = (Rate::from_bps(1_000), Rate::from_gbps(100_000));

/// The longest propagation delay.
pub const MAX_DELAY: Dur = Dur::from_secs(3600);

/// The longest run.
pub const MAX_DURATION: Dur = Dur::from_secs(1_000_000);

/// The largest flow, in bytes.
pub const MAX_FLOW_BYTES: u64 = 1_000_000_000_000_000;

impl Kind {
    /// A propagation delay.
    pub const DELAY: Kind = Kind::Time { min: Dur::ZERO, max: MAX_DELAY };
    /// A time within the run.
    pub const MOMENT: Kind = Kind::Time { min: Dur::ZERO, max: MAX_DURATION };
    /// A table whose keys are described elsewhere.
    pub const TABLE: Kind = Kind::Special("a table", &Shape::Named(&Shape::Either(&[])));
    /// A time above zero.
    pub const SPAN: Kind = Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION };
}

impl Key {
    /// Creates a key of sparelane's own, whose default needs no source.
    pub const fn new(name: &'static str, kind: Kind, default: Fallback, meaning: &'static str) -> Key {
        Key { name, kind, default, meaning, source: "sparelane" }
    }

    /// Returns true if a table must have this key.
    pub const fn is_required(&self) -> bool {
        matches!(self.default, Fallback::Required)
    }

    /// Creates a key from a controller's parameter.
    pub const fn declared(param: &'static Param) -> Key {
        Key {
            name: param.name,
            kind: Kind::Declared(param),
            default: Fallback::Declared(param.default),
            meaning: param.meaning,
            source: param.source,
        }
    }

    /// Returns this key with the given source of its default.
    pub const fn from(self, source: &'static str) -> Key {
        Key { source, ..self }
    }
}

impl fmt::Display for Kind {
    /// Writes the allowed values, for error messages and tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Text => f.write_str("text"),
            Kind::Path => f.write_str("the path of a file, relative to the scenario's folder"),
            Kind::Node => f.write_str("the name of a node"),
            Kind::Time { min, max } if *min == Dur::from_ps(1) => write!(f, "a time above 0s, up to {max}"),
            Kind::Time { min, max } => write!(f, "a time from {min} to {max}"),
            Kind::Rate => f.write_str("a rate from 1kbps to 100Tbps"),
            Kind::Size { min, max } => write!(f, "a size from {min}B to {max}B"),
            Kind::Whole { min, max: u64::MAX } => write!(f, "a whole number from {min}"),
            Kind::Whole { min, max } => write!(f, "a whole number from {min} to {max}"),
            Kind::Positive { max } => write!(f, "a number above 0, up to {max}"),
            Kind::Share { max } => write!(f, "a number from 0 to {max}, or a percentage such as \"30%\""),
            Kind::Flag => f.write_str("true or false"),
            Kind::Choice(words) => f.write_str(&words.join(", ")),
            Kind::Limit => {
                f.write_str("bytes (\"5MB\"), packets (\"9packets\") or bandwidth-delay products (\"1bdp\")")
            }
            Kind::Volume => f.write_str(
                "bytes (\"9MB\"), full segments (\"9packets\"), bandwidth-delay products (\"1bdp\"), or \"unlimited\"",
            ),
            Kind::Declared(param) => f.write_str(param.kind.to_string().trim_end()),
            Kind::Special(words, _) => f.write_str(words),
        }
    }
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fallback::Required => f.write_str("required"),
            Fallback::Value(text) => f.write_str(text),
            Fallback::Declared(value) => value.fmt(f),
            Fallback::Nothing(meaning) => write!(f, "({meaning})"),
        }
    }
}
