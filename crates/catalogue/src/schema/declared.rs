//! Values in the types that controllers declare their parameters in.

use super::document::Item;
use super::error::ScenarioError;
use super::field::Field;
use super::{keys, units};
use sparelane_cc::{Kind, Param, UNBOUNDED, Value};
use sparelane_sim::Limit;

impl Field<'_> {
    /// Reads the value by the kind of its key. A limit is in bytes: `"1bdp"` is `bdp_bytes`, and a packet is
    /// `packet_bytes`. A value with a structure of its own is text in the notation of TOML.
    ///
    /// # Errors
    /// Fails if the value is not of its kind, or out of range.
    pub fn value(&self, bdp_bytes: u64, packet_bytes: u64) -> Result<Value, ScenarioError> {
        Ok(match self.kind() {
            keys::Kind::Time { .. } => Value::Span(self.time()?),
            keys::Kind::Rate => Value::Rate(Some(self.rate()?)),
            keys::Kind::Size { .. } => Value::Size(self.size()?),
            keys::Kind::Limit => Value::Size(match self.limit(bdp_bytes)? {
                Limit::Bytes(bytes) => bytes,
                Limit::Packets(packets) => packets.saturating_mul(packet_bytes),
            }),
            keys::Kind::Whole { .. } => Value::Whole(self.whole()?),
            keys::Kind::Positive { .. } => Value::Number(self.positive()?),
            keys::Kind::Share { .. } => Value::Number(self.share()?),
            keys::Kind::Flag => Value::Flag(self.flag()?),
            keys::Kind::Declared(param) => self.declared(param)?,
            _ => match self.item() {
                Item::Text(text) => Value::Word(text.clone()),
                item => Value::Word(item.to_string()),
            },
        })
    }

    /// Reads a parameter's value and checks it against its declaration.
    ///
    /// # Errors
    /// Fails if the value is not of the parameter's kind or outside its range.
    pub fn declared(&self, param: &Param) -> Result<Value, ScenarioError> {
        let value = match (param.kind, self.item()) {
            (Kind::Whole { .. } | Kind::Bound { .. }, Item::Whole(_)) => Value::Whole(self.any_whole()?),
            (Kind::Bound { .. }, Item::Text(text)) if text == "unbounded" => Value::Whole(UNBOUNDED),
            (Kind::Number { .. }, Item::Whole(_) | Item::Number(_)) => Value::Number(self.number()?),
            (Kind::Flag, _) => Value::Flag(self.flag()?),
            (Kind::Choice(words), _) => Value::Word(self.word(words.iter().copied())?.to_owned()),
            (Kind::Span { .. }, _) => Value::Span(self.with_unit(units::time, &units::TIME)?),
            (Kind::OptionalRate, Item::Text(text)) if text == "none" => Value::Rate(None),
            (Kind::OptionalRate | Kind::Rate { .. }, _) => Value::Rate(Some(self.rate()?)),
            (Kind::Size { .. }, _) => Value::Size(self.with_unit(units::size, &units::SIZE)?),
            (Kind::Weights, _) => {
                let weight = |(name, weight): (&str, Field<'_>)| Ok((name.to_owned(), weight.number()?));
                Value::Weights(self.named()?.into_iter().map(weight).collect::<Result<_, _>>()?)
            }
            (Kind::Increasing { .. } | Kind::Numbers, _) => {
                Value::List(self.list(self.kind())?.iter().map(Field::any_whole).collect::<Result<_, _>>()?)
            }
            _ => return Err(self.refuse("of the wrong type")),
        };
        param.check(&value).map_err(|_| self.refuse("out of range"))?;
        Ok(value)
    }

    /// Reads a whole number. The parameter's own check applies the range.
    fn any_whole(&self) -> Result<u64, ScenarioError> {
        match self.item() {
            Item::Whole(number) => u64::try_from(*number).map_err(|_| self.refuse("out of range")),
            _ => Err(self.refuse("not a whole number")),
        }
    }
}
