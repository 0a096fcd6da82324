//! The controller of a node's flows: its name, its values on a real network, and their parsing.

use super::settings::{ChoiceError, rate, size, span};
use super::weights::WeightSettings;
use crate::flow::WIRE_HEADER_BYTES;
use sparelane_cc::{
    Blueprint, BuildError, CongestionControl, Controller, DefaultValue, Kind, Needs, Param, Registry, UNBOUNDED, Value,
    Values, WireDefaults,
};
use sparelane_core::{Dur, Rate};
use std::borrow::Cow;

/// The parameter that names the inner controller of a wrapper, and the prefix of the inner controller's own parameters.
const INNER: &str = "inner";

/// The known facts about a new flow, for the construction of its controller.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowFacts {
    /// The size in bytes, if it is known.
    pub bytes: Option<u64>,
    /// The ports by which the flow can be classified, in order of precedence.
    pub ports: Vec<u16>,
    /// The round-trip time of the path, if it is known.
    pub round_trip: Option<Dur>,
}

/// A controller with its values and those of its inner controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerChoice {
    /// The name in the registry.
    pub name: String,
    /// The values that differ from the defaults.
    pub values: Values,
    /// The values of the inner controller that differ from its defaults.
    pub inner: Values,
    /// The ports with a weight of their own, if flows are classified by port.
    pub ports: Vec<u16>,
}

impl ControllerChoice {
    /// Chooses a controller of this project with its defaults on a real network.
    pub fn named(name: &str) -> ControllerChoice {
        ControllerChoice::of(&Registry::built_in(), name)
    }

    /// Chooses a controller of `registry` with its defaults on a real network ([`Controller::wire`]). A name that the
    /// registry does not contain has no defaults; [`needs`](Self::needs) reports it.
    pub fn of(registry: &Registry, name: &str) -> ControllerChoice {
        let values = wire_values(registry, name);
        let choice = ControllerChoice { name: name.to_owned(), values, inner: Values::default(), ports: vec![] };
        match choice.inner_name() {
            Some(inner) => {
                let inner = inner.to_owned();
                choice.around_in(registry, &inner)
            }
            None => choice,
        }
    }

    /// Replaces the inner controller by another one of this project, with its defaults on a real network.
    pub fn around(self, inner: &str) -> ControllerChoice {
        self.around_in(&Registry::built_in(), inner)
    }

    /// Replaces the inner controller by one of `registry`. A wrapper inside a wrapper has no values of its own.
    fn around_in(mut self, registry: &Registry, inner: &str) -> ControllerChoice {
        self.values.set(INNER, Value::Word(inner.to_owned()));
        let values = wire_values(registry, inner);
        self.inner = if values.given(INNER).is_some() { Values::default() } else { values };
        self
    }

    /// Parses a choice: the name of a controller and its settings, each a key and a text. A key such as `inner.beta`
    /// belongs to the inner controller.
    ///
    /// # Errors
    /// A name or key is unknown, or a value is not allowed.
    pub fn parse(
        name: &str,
        settings: &[(String, String)],
        registry: &Registry,
    ) -> Result<ControllerChoice, ChoiceError> {
        let controller = find(registry, name)?;
        let mut choice = ControllerChoice::of(registry, name);
        // The inner controller comes first, since it determines the other keys.
        for (key, text) in settings {
            let Some(param) = controller.params.iter().find(|param| param.name == key) else { continue };
            if param.kind == Kind::Controller {
                find(registry, text)?;
                choice = choice.around_in(registry, text);
            }
        }
        let inside = choice.inner_name().map(|inner| find(registry, inner)).transpose()?;
        let (mut weights, mut inner_weights) = (WeightSettings::default(), WeightSettings::default());
        for (key, text) in settings {
            match key.strip_prefix(INNER).and_then(|key| key.strip_prefix('.')) {
                None => set(controller, &mut choice.values, &mut weights, key, text)?,
                Some(inner_key) => {
                    let no_inner = || ChoiceError::NoInner { key: key.clone(), controller: name.to_owned() };
                    set(inside.ok_or_else(no_inner)?, &mut choice.inner, &mut inner_weights, inner_key, text)?;
                }
            }
        }
        choice.ports = weights.finish(controller, &mut choice.values)?;
        if let Some(inside) = inside {
            choice.ports.extend(inner_weights.finish(inside, &mut choice.inner)?);
        }
        Ok(choice)
    }

    /// The needs of the controller.
    ///
    /// # Errors
    /// The controller cannot be built.
    pub fn needs(&self, registry: &Registry, line_rate: Rate) -> Result<Needs, BuildError> {
        Ok(self.build(registry, 1400, &FlowFacts::default(), line_rate)?.needs())
    }

    /// Builds the controller of a flow.
    pub(crate) fn build(
        &self,
        registry: &Registry,
        mss_bytes: u64,
        flow: &FlowFacts,
        line_rate: Rate,
    ) -> Result<Box<dyn CongestionControl>, BuildError> {
        let port = flow.ports.iter().find(|port| self.ports.contains(port)).map(u16::to_string);
        let inner = match self.inner_name() {
            Some(name) => adjusted(registry, name, &self.inner, flow),
            None => Cow::Borrowed(&self.inner),
        };
        let plan = Blueprint {
            mss_bytes,
            header_bytes: WIRE_HEADER_BYTES,
            sack: true,
            flow_bytes: flow.bytes,
            traffic_class: port.as_deref(),
            line_rate,
            inner: &inner,
            registry,
        };
        registry.build(&self.name, &adjusted(registry, &self.name, &self.values, flow), &plan)
    }

    /// The wire defaults of the controller and of its inner controller, as far as they have any.
    pub(super) fn wire_defaults<'a>(&'a self, registry: &'a Registry) -> impl Iterator<Item = WireDefaults> + 'a {
        [Some(self.name.as_str()), self.inner_name()].into_iter().flatten().filter_map(|name| wire(registry, name))
    }

    /// The name of the inner controller, if there is one.
    fn inner_name(&self) -> Option<&str> {
        match self.values.given(INNER) {
            Some(Value::Word(name)) => Some(name),
            _ => None,
        }
    }
}

fn wire(registry: &Registry, name: &str) -> Option<WireDefaults> {
    registry.find(name)?.wire
}

/// Returns the defaults of a controller on a real network.
fn wire_values(registry: &Registry, name: &str) -> Values {
    let mut values = Values::default();
    for default in wire(registry, name).map_or(&[][..], |wire| wire.values) {
        values.set(default.param, default.value.into());
    }
    values
}

/// Returns the value of a parameter that cannot be changed on a real network, with the reason.
fn fixed(controller: &Controller, param: &Param) -> Option<(DefaultValue, &'static str)> {
    let default = controller.wire?.values.iter().find(|default| default.param == param.name)?;
    Some((default.value, default.fixed?))
}

/// Adjusts the values of a controller to the round-trip time of a flow's path, if the controller asks for it.
fn adjusted<'a>(registry: &Registry, name: &str, values: &'a Values, flow: &FlowFacts) -> Cow<'a, Values> {
    let adjust = wire(registry, name).and_then(|wire| wire.adjust);
    let (Some(adjust), Some(round_trip)) = (adjust, flow.round_trip) else { return Cow::Borrowed(values) };
    let mut values = values.clone();
    adjust(&mut values, round_trip);
    Cow::Owned(values)
}

/// Parses and sets one parameter.
fn set(
    controller: &Controller,
    values: &mut Values,
    weights: &mut WeightSettings,
    key: &str,
    text: &str,
) -> Result<(), ChoiceError> {
    if weights.take(controller, key, text)? {
        return Ok(());
    }
    let param = param(controller, key)?;
    if param.kind == Kind::Weights {
        let allowed = "weight.NAME=BYTES for one name at a time, with classify=by-size or classify=by-port";
        return Err(ChoiceError::Form { key: key.to_owned(), text: text.to_owned(), allowed: allowed.to_owned() });
    }
    let value = parse_value(param, key, text)?;
    if let Some((fixed, reason)) = fixed(controller, param)
        && value != fixed.into()
    {
        let allowed = format!("{fixed}: {reason}");
        return Err(ChoiceError::Form { key: key.to_owned(), text: text.to_owned(), allowed });
    }
    values.set(param.name, value);
    Ok(())
}

fn find<'a>(registry: &'a Registry, name: &str) -> Result<&'a Controller, ChoiceError> {
    let known = || registry.all().iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    registry.find(name).ok_or_else(|| ChoiceError::Controller { name: name.to_owned(), known: known() })
}

fn param<'a>(controller: &'a Controller, key: &str) -> Result<&'a Param, ChoiceError> {
    controller.params.iter().find(|param| param.name == key).ok_or_else(|| {
        let names: Vec<_> = controller.params.iter().map(|param| param.name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ChoiceError::Key { controller: controller.name.to_owned(), key: key.to_owned(), known }
    })
}

/// Parses the text of a parameter and checks it against the declaration.
///
/// # Errors
/// The text is not of the parameter's kind, or the value is out of range.
pub(crate) fn parse_value(param: &Param, key: &str, text: &str) -> Result<Value, ChoiceError> {
    let parsed = match param.kind {
        Kind::Whole { .. } => text.parse().ok().map(Value::Whole),
        Kind::Bound { .. } if text == "unbounded" => Some(Value::Whole(UNBOUNDED)),
        Kind::Bound { .. } => text.parse().ok().map(Value::Whole),
        Kind::Number { .. } => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Number),
        Kind::Flag => text.parse().ok().map(Value::Flag),
        Kind::Choice(_) | Kind::Controller => Some(Value::Word(text.to_owned())),
        Kind::Span { .. } => span(text).map(Value::Span),
        Kind::OptionalRate if text == "none" => Some(Value::Rate(None)),
        Kind::OptionalRate | Kind::Rate { .. } => rate(text).map(|rate| Value::Rate(Some(rate))),
        Kind::Size { .. } => size(text).map(Value::Size),
        Kind::Increasing { .. } => numbers(text).map(Value::List),
        Kind::Numbers => numbers(text).filter(|list| !list.is_empty()).map(Value::List),
        // Weights are set one by one: see `WeightSettings`.
        Kind::Weights => None,
    };
    let form = || ChoiceError::Form { key: key.to_owned(), text: text.to_owned(), allowed: param.kind.to_string() };
    let parsed = parsed.ok_or_else(form)?;
    param.check(&parsed)?;
    Ok(parsed)
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    if text.is_empty() {
        return Some(vec![]);
    }
    text.split(',').map(|number| number.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, settings: &[(&str, &str)]) -> Result<ControllerChoice, String> {
        let settings: Vec<_> = settings.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        ControllerChoice::parse(name, &settings, &Registry::built_in()).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_reach_the_controller_and_its_inner_controller() {
        let choice =
            parsed("rc3", &[("inner.hystart", "false"), ("inner", "cubic"), ("levels", "10,20")]).expect("rc3");
        assert_eq!(choice.values.given("levels"), Some(&Value::List(vec![10, 20])));
        assert_eq!(choice.values.given("inner"), Some(&Value::Word("cubic".to_owned())));
        assert_eq!(choice.inner.given("hystart"), Some(&Value::Flag(false)));
        let around = parsed("rc3", &[("inner", "bbr")]).expect("rc3");
        assert_eq!(around.inner.given("hystart"), None, "CUBIC's defaults are not BBR's");
        for controller in Registry::built_in().all() {
            let built = parsed(controller.name, &[]).map(|choice| {
                choice
                    .build(&Registry::built_in(), 1400, &FlowFacts::default(), Rate::from_gbps(1))
                    .map(|_| ())
                    .map_err(|e| e.to_string())
            });
            assert_eq!(built, Ok(Ok(())), "{}", controller.name);
        }
    }

    #[test]
    fn errors_state_the_allowed_values() {
        let cases = [
            (parsed("rc4", &[]), "there is no controller \"rc4\"; there are newreno"),
            (parsed("rc3", &[("inner", "x")]), "there is no controller \"x\""),
            (
                parsed("rc3", &[("lanes", "3")]),
                "controller \"rc3\" has no parameter \"lanes\"; it has inner, levels, feed",
            ),
            (parsed("rc3", &[("levels", "a")]), "levels = \"a\"; allowed: at most 6 increasing whole numbers"),
            (parsed("cubic", &[("inner.beta", "1")]), "\"inner.beta\": controller \"cubic\" has no controller inside"),
        ];
        for (result, start) in cases {
            let message = result.expect_err(start);
            assert!(message.starts_with(start), "{message}");
        }
        assert!(parsed("rc3", &[("levels", "20,10")]).is_err() && parsed("rc3", &[("feed", "shove")]).is_err());
    }
}
