//! Typed values from the tree. Each is read by its key, and each error names its place.

use super::document::{Document, Item, Node, Origin, Table, joined};
use super::error::{ScenarioError, did_you_mean, name_hint};
use super::keys::{Fallback, Form, Key, Kind, RATES, Shape};
use super::overrides::parse_value;
use super::units::{self, Amount, UnitError};
use sparelane_core::{Dur, Rate};
use sparelane_sim::Limit;
use std::borrow::Cow;

/// Maximum length of a value that a warning quotes, in characters.
const LONGEST_VALUE: usize = 60;

/// One value with its place and its allowed kind.
#[derive(Clone, Debug)]
pub struct Field<'d> {
    document: &'d Document,
    /// The dotted path, as `--set` takes it.
    pub path: String,
    node: Cow<'d, Node>,
    kind: Kind,
}

/// A table whose keys are all known.
#[derive(Clone, Debug)]
pub struct Section<'d> {
    field: Field<'d>,
    keys: Vec<Key>,
    /// Another table that supplies the values missing from this one.
    supplement: Option<Field<'d>>,
}

impl<'d> Field<'d> {
    /// Returns the whole file as a field.
    pub fn root(document: &'d Document) -> Field<'d> {
        let kind = Kind::TABLE;
        Field { document, path: String::new(), node: Cow::Borrowed(&document.root), kind }
    }

    /// Returns an error at this value.
    pub fn error(&self, message: impl Into<String>) -> ScenarioError {
        let value = match &self.node.item {
            Item::Table(_) => None,
            item if self.node.origin == Origin::Nowhere => Some(format!("{item} (default)")),
            item => Some(item.to_string()),
        };
        self.error_at(self.path.clone(), value, self.node.origin, message.into())
    }

    /// Returns an error at this value that states the allowed kind.
    pub fn refuse(&self, message: &str) -> ScenarioError {
        self.error(format!("{message}; allowed: {}", self.kind))
    }

    fn error_at(&self, key: String, value: Option<String>, origin: Origin, message: String) -> ScenarioError {
        let (file, line) = match origin {
            Origin::Line(line) => (self.document.file.clone(), Some(line)),
            Origin::Nowhere => (self.document.file.clone(), None),
            Origin::Set => (ScenarioError::OVERRIDE.to_owned(), None),
        };
        ScenarioError { file, line, key, value, message }
    }

    fn child<'n>(&self, name: &str, node: Cow<'n, Node>, kind: Kind) -> Field<'n>
    where
        'd: 'n,
    {
        Field { document: self.document, path: joined(&self.path, name), node, kind }
    }

    /// Returns this value as a field of another kind.
    pub fn with_kind(self, kind: Kind) -> Field<'d> {
        Field { kind, ..self }
    }

    /// Returns the value itself and records that it was read.
    pub fn item(&self) -> &Item {
        self.document.mark_read(&self.path);
        &self.node.item
    }

    /// Returns the warning that this value has no effect, because of `reason`.
    pub fn without_effect(&self, reason: &str) -> String {
        match &self.node.item {
            Item::Table(_) => format!("{} has no effect: {reason}", self.path),
            item => {
                let value = item.to_string();
                let shown = if value.chars().count() > LONGEST_VALUE { "[...]" } else { &value };
                format!("{} = {shown} has no effect: {reason}", self.path)
            }
        }
    }

    /// Returns the allowed kind of this value.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns true if this value is exactly `text`.
    pub fn is_text(&self, text: &str) -> bool {
        matches!(self.item(), Item::Text(given) if given == text)
    }

    /// Returns an empty table in the place of this value.
    pub fn empty_table(&self) -> Field<'d> {
        let node = Node { item: Item::Table(Table::default()), origin: self.node.origin };
        Field { node: Cow::Owned(node), ..self.clone() }
    }

    /// Returns the entry of a table that decides which other keys the table has.
    pub fn entry(&self, name: &str, kind: Kind) -> Result<Field<'_>, ScenarioError> {
        let Item::Table(table) = self.item() else { return Err(self.refuse("not a table")) };
        match table.find(name) {
            Some(node) => Ok(self.child(name, Cow::Borrowed(node), kind)),
            None => Err(self.missing(name, &kind.to_string())),
        }
    }

    /// Returns the error for a missing key `name`; or, if the table has a similar key, the error that this one is
    /// unknown.
    fn missing(&self, name: &str, allowed: &str) -> ScenarioError {
        if let Item::Table(table) = self.item() {
            let misspelt = |(given, _): &(&str, &Node)| !did_you_mean(given, std::iter::once(name)).is_empty();
            if let Some((given, node)) = table.iter().find(misspelt) {
                let path = self.child(given, Cow::Borrowed(node), self.kind).path;
                let message = format!("unknown key{}", did_you_mean(given, std::iter::once(name)));
                return self.error_at(path, None, node.origin, message);
            }
        }
        let key = self.child(name, Cow::Borrowed(&*self.node), self.kind).path;
        self.error_at(key, None, self.node.origin, format!("missing; allowed: {allowed}"))
    }

    /// Returns true if this value is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.item(), Item::Table(_))
    }

    /// Returns the elements of a list as fields of `kind`.
    pub fn list(&self, kind: Kind) -> Result<Vec<Field<'_>>, ScenarioError> {
        let Item::List(list) = self.item() else { return Err(self.refuse("not a list")) };
        let element = |(index, node)| self.child(&format!("{index}"), Cow::Borrowed(node), kind);
        Ok(list.iter().enumerate().map(element).collect())
    }

    /// Returns the elements of an array of tables, or the single table that stands for such an array.
    pub fn tables(&self) -> Result<Vec<Field<'_>>, ScenarioError> {
        if self.is_table() { Ok(vec![self.clone()]) } else { self.list(Kind::TABLE) }
    }

    /// Returns the entries of a table whose keys the user chooses.
    pub fn named(&self) -> Result<Vec<(&str, Field<'_>)>, ScenarioError> {
        let Item::Table(table) = self.item() else { return Err(self.refuse("not a table")) };
        let entry = |(name, node)| (name, self.child(name, Cow::Borrowed(node), Kind::TABLE));
        Ok(table.iter().map(entry).collect())
    }

    /// Reads a string.
    pub fn text(&self) -> Result<&str, ScenarioError> {
        match self.item() {
            Item::Text(text) => Ok(text),
            _ => Err(self.refuse("not text in quotes")),
        }
    }

    /// Reads a time within the key's bounds.
    pub fn time(&self) -> Result<Dur, ScenarioError> {
        let Kind::Time { min, max } = self.kind else { return Err(self.of_another_kind("a time")) };
        let span = self.with_unit(units::time, &units::TIME)?;
        if min <= span && span <= max { Ok(span) } else { Err(self.refuse("out of range")) }
    }

    /// Reads a rate that a link can have.
    pub fn rate(&self) -> Result<Rate, ScenarioError> {
        let rate = self.with_unit(units::rate, &units::RATE)?;
        if RATES.0 <= rate && rate <= RATES.1 { Ok(rate) } else { Err(self.refuse("out of range")) }
    }

    /// Reads a number of bytes within the key's bounds.
    pub fn size(&self) -> Result<u64, ScenarioError> {
        let Kind::Size { min, max } = self.kind else { return Err(self.of_another_kind("a size")) };
        let bytes = self.with_unit(units::size, &units::SIZE)?;
        if min <= bytes && bytes <= max { Ok(bytes) } else { Err(self.refuse("out of range")) }
    }

    /// Reads bytes, packets, or bandwidth-delay products.
    pub fn amount(&self) -> Result<Amount, ScenarioError> {
        self.with_unit(units::amount, &units::AMOUNT)
    }

    /// Reads the size of a queue. `bdp_bytes` is one bandwidth-delay product.
    pub fn limit(&self, bdp_bytes: u64) -> Result<Limit, ScenarioError> {
        Ok(match self.amount()? {
            Amount::Bytes(bytes) => Limit::Bytes(bytes),
            Amount::Packets(packets) => Limit::Packets(packets),
            Amount::Bdp(products) => Limit::Bytes(products.of(bdp_bytes)),
        })
    }

    /// Reads a text with a unit of `measure`, without bounds.
    pub fn with_unit<T>(
        &self,
        parse: fn(&str) -> Result<T, UnitError>,
        measure: &'static units::Measure,
    ) -> Result<T, ScenarioError> {
        match self.item() {
            Item::Text(text) => parse(text).map_err(|error| self.error(error.to_string())),
            Item::Whole(_) | Item::Number(_) => Err(self.error(UnitError::Missing(measure).to_string())),
            _ => Err(self.error(UnitError::NotANumber(measure).to_string())),
        }
    }

    /// Reads a whole number within the key's bounds.
    pub fn whole(&self) -> Result<u64, ScenarioError> {
        let Kind::Whole { min, max } = self.kind else { return Err(self.of_another_kind("a whole number")) };
        let Item::Whole(number) = self.item() else { return Err(self.refuse("not a whole number")) };
        match u64::try_from(*number) {
            Ok(number) if min <= number && number <= max => Ok(number),
            _ => Err(self.refuse("out of range")),
        }
    }

    /// Reads a number above zero within the key's bound.
    pub fn positive(&self) -> Result<f64, ScenarioError> {
        let Kind::Positive { max } = self.kind else { return Err(self.of_another_kind("a positive number")) };
        let number = self.number()?;
        if number > 0.0 && number <= max { Ok(number) } else { Err(self.refuse("out of range")) }
    }

    /// Reads a share of one: a number, or a percentage in quotes.
    pub fn share(&self) -> Result<f64, ScenarioError> {
        let Kind::Share { max } = self.kind else { return Err(self.of_another_kind("a share")) };
        let share = match self.item() {
            Item::Text(text) => units::share(text).ok_or_else(|| self.refuse("not a share"))?,
            _ => self.number()?,
        };
        if (0.0..=max).contains(&share) { Ok(share) } else { Err(self.refuse("out of range")) }
    }

    /// Reads any number.
    pub fn number(&self) -> Result<f64, ScenarioError> {
        match self.item() {
            Item::Whole(number) => Ok(*number as f64),
            Item::Number(number) => Ok(*number),
            _ => Err(self.refuse("not a number")),
        }
    }

    /// Reads true or false.
    pub fn flag(&self) -> Result<bool, ScenarioError> {
        match self.item() {
            Item::Flag(flag) => Ok(*flag),
            _ => Err(self.refuse("neither true nor false")),
        }
    }

    /// Reads one of the key's words.
    pub fn choice(&self) -> Result<&'static str, ScenarioError> {
        let Kind::Choice(words) = self.kind else { return Err(self.of_another_kind("a word")) };
        let word = self.word(words.iter().copied())?;
        Ok(words.iter().copied().find(|other| *other == word).unwrap_or_default())
    }

    /// Reads one of `words`.
    pub fn word<'w>(&self, words: impl Iterator<Item = &'w str> + Clone) -> Result<&str, ScenarioError> {
        let allowed = words.clone().collect::<Vec<_>>().join(", ");
        let Item::Text(text) = self.item() else { return Err(self.error(format!("not a word; allowed: {allowed}"))) };
        if words.clone().any(|word| word == text) {
            return Ok(text);
        }
        Err(self.error(format!("unknown; allowed: {allowed}{}", name_hint(text, words))))
    }

    /// Returns a table as a section with these keys. Any other key is an error.
    pub fn section(self, keys: &[&[Key]]) -> Result<Section<'d>, ScenarioError> {
        let keys = keys.concat();
        let Item::Table(table) = self.item() else { return Err(self.refuse("not a table")) };
        let unknown = table.iter().find(|(name, _)| keys.iter().all(|key| key.name != *name));
        if let Some((name, node)) = unknown {
            let names = || keys.iter().map(|key| key.name);
            let allowed = names().collect::<Vec<_>>().join(", ");
            let message = format!("unknown key; allowed: {allowed}{}", did_you_mean(name, names()));
            let child = self.child(name, Cow::Borrowed(node), self.kind);
            return Err(self.error_at(child.path, None, node.origin, message));
        }
        Ok(Section { field: self, keys, supplement: None })
    }

    /// Returns the form that a table's `kind` names and the table as a section with that form's keys.
    ///
    /// # Errors
    /// Fails if `kind` is missing or unknown, or a key is unknown.
    pub fn form<R>(
        self,
        shared: &[Key],
        forms: &[&'static Form<R>],
    ) -> Result<(&'static Form<R>, Section<'d>), ScenarioError> {
        let names = forms.iter().map(|form| form.name);
        let field = match self.entry("kind", self.kind) {
            Ok(field) => field,
            Err(_) if self.is_table() => {
                return Err(self.missing("kind", &names.collect::<Vec<_>>().join(", ")));
            }
            Err(error) => return Err(error),
        };
        let name = field.word(names)?;
        let Some(form) = forms.iter().copied().find(|form| form.name == name) else {
            return Err(field.refuse("unknown"));
        };
        let kind = Key::new(
            "kind",
            Kind::Special("a kind", &Shape::Of(Kind::Text)),
            Fallback::Required,
            "which form this table has",
        );
        drop(field);
        Ok((form, self.section(&[&[kind], shared, form.keys])?))
    }

    /// Returns the error for a key that is read as a kind other than its declared one. This is a programming error,
    /// which fails only debug builds.
    fn of_another_kind(&self, expected: &str) -> ScenarioError {
        debug_assert!(false, "{} is declared as {:?}, and read as {expected}", self.path, self.kind);
        self.refuse(&format!("not {expected}"))
    }
}

impl<'d> Section<'d> {
    /// Returns the table as a field, for errors about it as a whole.
    pub fn whole_table(&self) -> &Field<'d> {
        &self.field
    }

    /// Returns this section with the values of `supplement` for missing keys.
    pub fn or(&self, supplement: &Section<'d>) -> Section<'d> {
        Section { supplement: Some(supplement.field.clone()), ..self.clone() }
    }

    /// Returns this section with the additional declared `keys`.
    pub fn with_keys(&self, keys: &[Key]) -> Section<'d> {
        Section { keys: [keys, &self.keys].concat(), ..self.clone() }
    }

    /// Returns the value of `name` if it is given, in this table or in the one that supplies missing values.
    pub fn given(&self, name: &str) -> Option<Field<'_>> {
        self.own(name).or_else(|| self.entry_of(self.supplement.as_ref()?, name))
    }

    /// Returns the value of `name` if it is given in this table itself.
    pub fn own(&self, name: &str) -> Option<Field<'_>> {
        self.entry_of(&self.field, name)
    }

    /// Returns the value of `name` if it is given in this table itself and differs from the default.
    pub fn changed(&self, name: &str) -> Option<Field<'_>> {
        let field = self.own(name)?;
        let given = field.node.item.to_string();
        let is_default = match self.key(name).default {
            Fallback::Value(text) => given.trim_matches('"') == text,
            Fallback::Declared(value) => given.trim_matches('"') == value.to_string(),
            Fallback::Required | Fallback::Nothing(_) => false,
        };
        (!is_default).then_some(field)
    }

    fn entry_of<'s>(&self, field: &'s Field<'d>, name: &str) -> Option<Field<'s>> {
        let Item::Table(table) = field.item() else { return None };
        let node = table.find(name)?;
        Some(field.child(name, Cow::Borrowed(node), self.key(name).kind))
    }

    /// Returns the value of `name`, given or default. Fails if it has neither.
    pub fn need(&self, name: &str) -> Result<Field<'_>, ScenarioError> {
        let key = self.key(name);
        if let Some(field) = self.given(name) {
            return Ok(field);
        }
        let item = match (key.default, key.kind) {
            (Fallback::Value(text), Kind::Text | Kind::Choice(_)) => Item::Text(text.to_owned()),
            (Fallback::Value(text), _) => parse_value(text),
            _ => return Err(self.missing(name)),
        };
        Ok(self.field.child(name, Cow::Owned(Node { item, origin: Origin::Nowhere }), key.kind))
    }

    /// Returns the error that `name` is missing.
    pub fn missing(&self, name: &str) -> ScenarioError {
        self.field.missing(name, &self.key(name).kind.to_string())
    }

    /// Returns the error that `name` is missing, for keys whose allowed values depend on the rest of the file.
    pub fn missing_of(&self, name: &str, allowed: &str) -> ScenarioError {
        self.field.missing(name, allowed)
    }

    /// Reads `name` with `read`, or returns `None` if it is not given.
    pub fn maybe<'s, T>(
        &'s self,
        name: &str,
        read: impl FnOnce(&Field<'s>) -> Result<T, ScenarioError>,
    ) -> Result<Option<T>, ScenarioError> {
        self.given(name).map(|field| read(&field)).transpose()
    }

    fn key(&self, name: &str) -> Key {
        let found = self.keys.iter().find(|key| key.name == name);
        assert!(found.is_some(), "`{name}` is read from `{}` but not declared there", self.field.path);
        found.copied().unwrap_or(self.keys[0])
    }
}
