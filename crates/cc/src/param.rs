//! Parameters as data.
//!
//! A controller declares its parameters as [`Param`]s. Scenario files, Python, the command line and the docs are
//! derived from these declarations, so that names, ranges and defaults are stated once.

use sparelane_core::{Dur, Rate};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain ratio or count without unit.
    One,
    /// Segments.
    Segments,
    /// Another unit, by name.
    Named(&'static str),
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::One => "",
            Unit::Segments => "segments",
            Unit::Named(name) => name,
        })
    }
}

/// The values that a parameter accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number in a closed range.
    Whole {
        /// Smallest allowed value.
        min: u64,
        /// Largest allowed value.
        max: u64,
        /// Unit.
        unit: Unit,
    },
    /// A number in a closed range.
    Number {
        /// Smallest allowed value.
        min: f64,
        /// Largest allowed value.
        max: f64,
        /// Unit.
        unit: Unit,
    },
    /// True or false.
    Flag,
    /// One of these identifiers.
    Choice(&'static [&'static str]),
    /// A span of time in a closed range.
    Span {
        /// Smallest allowed value.
        min: Dur,
        /// Largest allowed value.
        max: Dur,
    },
    /// A data rate, or absent.
    OptionalRate,
    /// A data rate in a closed range.
    Rate {
        /// Smallest allowed value.
        min: Rate,
        /// Largest allowed value.
        max: Rate,
    },
    /// Bytes in a closed range.
    Size {
        /// Smallest allowed value.
        min: u64,
        /// Largest allowed value.
        max: u64,
    },
    /// A positive number for each of several names.
    Weights,
    /// Increasing whole numbers; the list may be empty.
    Increasing {
        /// The longest list allowed.
        max_len: usize,
    },
    /// Whole numbers, at least one.
    Numbers,
    /// A whole number, or [`UNBOUNDED`].
    Bound {
        /// Smallest allowed value.
        min: u64,
        /// Unit.
        unit: Unit,
    },
    /// Another controller, by name.
    Controller,
}

/// The whole number that stands for "no bound".
pub const UNBOUNDED: u64 = u64::MAX;

impl fmt::Display for Kind {
    /// Writes the allowed values for error messages and tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Whole { min, max, unit } => write!(f, "a whole number from {min} to {max} {unit}"),
            Kind::Number { min, max, unit } => write!(f, "a number from {min} to {max} {unit}"),
            Kind::Flag => f.write_str("true or false"),
            Kind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Kind::Span { min, max } => write!(f, "a time from {min} to {max}"),
            Kind::OptionalRate => f.write_str("a rate such as \"100Mbps\", or \"none\""),
            Kind::Rate { min, max } => write!(f, "a rate such as \"100Mbps\", from {min} to {max}"),
            Kind::Size { min, max } => write!(f, "a size such as \"64KB\", from {min} to {max} bytes"),
            Kind::Weights => {
                f.write_str("a table of names with numbers above zero, such as { urgent = 2.0, bulk = 1.0 }")
            }
            Kind::Increasing { max_len } => write!(f, "at most {max_len} increasing whole numbers"),
            Kind::Numbers => f.write_str("whole numbers such as 0,3,11,19"),
            Kind::Bound { min, unit } => write!(f, "a whole number from {min} {unit}, or \"unbounded\""),
            Kind::Controller => f.write_str("the name of a controller"),
        }
    }
}

/// One declared parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// The key in a scenario.
    pub name: &'static str,
    /// The accepted values.
    pub kind: Kind,
    /// The value if a scenario does not set it.
    pub default: DefaultValue,
    /// The description that the docs and `sparelane list` print.
    pub meaning: &'static str,
    /// The origin of the default: a paper, an RFC or an implementation.
    pub source: &'static str,
}

/// The default value of a parameter. It prints as a scenario would write it, without quotes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DefaultValue {
    /// Value of [`Kind::Whole`] and [`Kind::Bound`] parameters.
    Whole(u64),
    /// Value of [`Kind::Number`] parameters.
    Number(f64),
    /// Value of [`Kind::Flag`] parameters.
    Flag(bool),
    /// Value of [`Kind::Choice`] and [`Kind::Controller`] parameters.
    Word(&'static str),
    /// Value of [`Kind::Span`] parameters.
    Span(Dur),
    /// Value of [`Kind::OptionalRate`] and [`Kind::Rate`] parameters.
    Rate(Option<Rate>),
    /// Value of [`Kind::Size`] parameters, in bytes.
    Size(u64),
    /// Value of [`Kind::Weights`] parameters.
    Weights(&'static [(&'static str, f64)]),
    /// Value of [`Kind::Increasing`] and [`Kind::Numbers`] parameters.
    List(&'static [u64]),
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Value of [`Kind::Whole`] and [`Kind::Bound`] parameters.
    Whole(u64),
    /// Value of [`Kind::Number`] parameters.
    Number(f64),
    /// Value of [`Kind::Flag`] parameters.
    Flag(bool),
    /// Value of [`Kind::Choice`] and [`Kind::Controller`] parameters.
    Word(String),
    /// Value of [`Kind::Span`] parameters.
    Span(Dur),
    /// Value of [`Kind::OptionalRate`] and [`Kind::Rate`] parameters.
    Rate(Option<Rate>),
    /// Value of [`Kind::Size`] parameters, in bytes.
    Size(u64),
    /// Value of [`Kind::Weights`] parameters.
    Weights(Vec<(String, f64)>),
    /// Value of [`Kind::Increasing`] and [`Kind::Numbers`] parameters.
    List(Vec<u64>),
}

/// A value that a parameter does not accept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{name}` is {given}; allowed: {allowed}")]
pub struct ParamError {
    /// The parameter's name.
    pub name: &'static str,
    /// The value that was given.
    pub given: String,
    /// The allowed values, in words.
    pub allowed: String,
}

impl Param {
    /// Checks that `value` is of this parameter's kind and within its range.
    ///
    /// The error names the parameter, the value and the allowed values.
    pub fn check(&self, value: &Value) -> Result<(), ParamError> {
        let fits = match (&self.kind, value) {
            (Kind::Whole { min, max, .. }, Value::Whole(x)) => min <= x && x <= max,
            (Kind::Bound { min, .. }, Value::Whole(x)) => min <= x,
            (Kind::Number { min, max, .. }, Value::Number(x)) => min <= x && x <= max,
            (Kind::Flag, Value::Flag(_)) | (Kind::OptionalRate, Value::Rate(None)) => true,
            (Kind::OptionalRate, Value::Rate(Some(rate))) => rate.as_bps() > 0,
            (Kind::Rate { min, max }, Value::Rate(Some(rate))) => min <= rate && rate <= max,
            (Kind::Size { min, max }, Value::Size(bytes)) => min <= bytes && bytes <= max,
            (Kind::Weights, Value::Weights(weights)) => {
                let is_once = |at: usize| weights[..at].iter().all(|(name, _)| *name != weights[at].0);
                (0..weights.len()).all(|at| weights[at].1 > 0.0 && weights[at].1.is_finite() && is_once(at))
            }
            (Kind::Choice(words), Value::Word(word)) => words.contains(&word.as_str()),
            (Kind::Span { min, max }, Value::Span(span)) => min <= span && span <= max,
            (Kind::Increasing { max_len }, Value::List(list)) => {
                list.len() <= *max_len && list.windows(2).all(|pair| pair[0] < pair[1])
            }
            (Kind::Numbers, Value::List(list)) => !list.is_empty(),
            (Kind::Controller, Value::Word(_)) => true,
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(ParamError { name: self.name, given: value.to_string(), allowed: self.kind.to_string() })
    }
}

impl From<DefaultValue> for Value {
    fn from(default: DefaultValue) -> Value {
        match default {
            DefaultValue::Whole(x) => Value::Whole(x),
            DefaultValue::Number(x) => Value::Number(x),
            DefaultValue::Flag(x) => Value::Flag(x),
            DefaultValue::Word(x) => Value::Word(x.to_owned()),
            DefaultValue::Span(x) => Value::Span(x),
            DefaultValue::Rate(x) => Value::Rate(x),
            DefaultValue::Size(x) => Value::Size(x),
            DefaultValue::Weights(x) => {
                Value::Weights(x.iter().map(|&(name, weight)| (name.to_owned(), weight)).collect())
            }
            DefaultValue::List(x) => Value::List(x.to_vec()),
        }
    }
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Word(x) => f.write_str(x),
            other => Value::from(*other).fmt(f),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Whole(UNBOUNDED) => f.write_str("unbounded"),
            Value::Whole(x) => write!(f, "{x}"),
            Value::Number(x) => write!(f, "{x}"),
            Value::Flag(x) => write!(f, "{x}"),
            Value::Word(x) => write!(f, "\"{x}\""),
            Value::Span(x) => write!(f, "{x}"),
            Value::Rate(Some(x)) => write!(f, "{x}"),
            Value::Rate(None) => f.write_str("none"),
            Value::Size(x) => write!(f, "{x}B"),
            Value::Weights(x) => {
                let entries: Vec<_> = x.iter().map(|(name, weight)| format!("{name} = {weight}")).collect();
                write!(f, "{{ {} }}", entries.join(", "))
            }
            Value::List(x) => write!(f, "{x:?}"),
        }
    }
}

/// Values by name. A name that is not set has its declared default.
#[derive(Clone, Debug, Default)]
pub struct Values {
    list: Vec<(&'static str, Value)>,
    /// The names that were read, if reads are recorded.
    reads: Option<Reads>,
}

/// The names of the values that a controller has read; see [`Values::recorded`].
#[derive(Clone, Debug, Default)]
pub struct Reads(Arc<Mutex<BTreeSet<String>>>);

impl Reads {
    /// Returns true if the value of `name` was read.
    pub fn has(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    fn add(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }
}

/// Values are equal if the names and values set are equal, whether or not reads are recorded.
impl PartialEq for Values {
    fn eq(&self, other: &Values) -> bool {
        self.list == other.list
    }
}

impl Values {
    /// Sets `name`, replacing any earlier value.
    pub fn set(&mut self, name: &'static str, value: Value) {
        self.list.retain(|(other, _)| *other != name);
        self.list.push((name, value));
    }

    /// Returns the value set for `name`, if any.
    pub fn given(&self, name: &str) -> Option<&Value> {
        if let Some(reads) = &self.reads {
            reads.add(name);
        }
        self.list.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// Iterates over the names that are set and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.list.iter().map(|(name, value)| (*name, value))
    }

    /// Returns a copy that records which names are read from it. A parameter that the controller never reads has no
    /// effect.
    pub fn recorded(&self) -> (Values, Reads) {
        let reads = Reads::default();
        (Values { list: self.list.clone(), reads: Some(reads.clone()) }, reads)
    }

    /// Returns the value of `param`: the one set, or its default.
    fn of(&self, param: &Param) -> Value {
        self.given(param.name).cloned().unwrap_or_else(|| param.default.into())
    }

    /// The value of a [`Kind::Whole`] or [`Kind::Bound`].
    pub fn whole(&self, param: &Param) -> u64 {
        if let Value::Whole(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::Number`].
    pub fn number(&self, param: &Param) -> f64 {
        if let Value::Number(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::Flag`].
    pub fn flag(&self, param: &Param) -> bool {
        if let Value::Flag(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::Choice`] or [`Kind::Controller`].
    pub fn word<'a>(&'a self, param: &Param) -> &'a str {
        match (self.given(param.name), param.default) {
            (Some(Value::Word(x)), _) => x,
            (None, DefaultValue::Word(x)) => x,
            _ => self.mistyped(param),
        }
    }

    /// The value of a [`Kind::Span`].
    pub fn span(&self, param: &Param) -> Dur {
        if let Value::Span(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::OptionalRate`].
    pub fn rate(&self, param: &Param) -> Option<Rate> {
        if let Value::Rate(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::Rate`].
    pub fn some_rate(&self, param: &Param) -> Rate {
        if let Value::Rate(Some(x)) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::Size`], bytes.
    pub fn size(&self, param: &Param) -> u64 {
        if let Value::Size(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::Weights`].
    pub fn weights(&self, param: &Param) -> Vec<(String, f64)> {
        if let Value::Weights(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// The value of a [`Kind::Increasing`] or [`Kind::Numbers`].
    pub fn list(&self, param: &Param) -> Vec<u64> {
        if let Value::List(x) = self.of(param) { x } else { self.mistyped(param) }
    }

    /// Panics: values are checked against their declarations before they are read.
    fn mistyped(&self, param: &Param) -> ! {
        unreachable!("`{}` is read as a kind other than the declared one: {:?}", param.name, self.of(param))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: Param = Param {
        name: "levels",
        kind: Kind::Increasing { max_len: 3 },
        default: DefaultValue::List(&[40, 440]),
        meaning: "limits",
        source: "test",
    };

    #[test]
    fn a_value_outside_its_kind_is_refused_by_name() {
        assert!(LEVELS.check(&Value::List(vec![1, 2, 3])).is_ok());
        let error = LEVELS.check(&Value::List(vec![2, 2])).expect_err("not increasing");
        assert_eq!(error.to_string(), "`levels` is [2, 2]; allowed: at most 3 increasing whole numbers");
        assert!(LEVELS.check(&Value::Flag(true)).is_err());
    }

    #[test]
    fn the_last_value_set_wins_over_the_default() {
        let mut values = Values::default();
        assert_eq!(values.list(&LEVELS), [40, 440]);
        values.set("levels", Value::List(vec![5]));
        values.set("levels", Value::List(vec![7]));
        assert_eq!(values.list(&LEVELS), [7]);
    }

    #[test]
    fn a_default_prints_as_a_scenario_writes_it() {
        let printed = [
            DefaultValue::Whole(10),
            DefaultValue::Whole(UNBOUNDED),
            DefaultValue::Number(0.4),
            DefaultValue::Flag(true),
            DefaultValue::Word("pull"),
            DefaultValue::Span(Dur::from_ms(40)),
            DefaultValue::Rate(None),
            LEVELS.default,
        ]
        .map(|default| default.to_string());
        assert_eq!(printed, ["10", "unbounded", "0.4", "true", "pull", "40ms", "none", "[40, 440]"]);
    }
}
