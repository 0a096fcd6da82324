//! Choosing a controller and its parameters by words, as on a command line.

use super::ControllerChoice;
use super::path::Unmarked;
use super::weights::Weighing;
use crate::flow::{MAX_WINDOW_BYTES, TailConfig};
use sparelane_cc::{Controller, Kind, Param, ParamError, Registry, UNBOUNDED, Value, Values};
use sparelane_core::{Dur, Rate};
use thiserror::Error;

/// Why a setting is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ChoiceError {
    /// No such controller.
    #[error("there is no controller \"{name}\"; there are {known}")]
    Controller {
        /// The name asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// No such parameter.
    #[error("controller \"{controller}\" has no parameter \"{key}\"; it has {known}")]
    Key {
        /// The controller.
        controller: String,
        /// The key asked for.
        key: String,
        /// All of its parameters.
        known: String,
    },
    /// The text is no value of that kind.
    #[error("{key} = \"{text}\": allowed is {allowed}")]
    Form {
        /// The key.
        key: String,
        /// What was given.
        text: String,
        /// What is allowed.
        allowed: String,
    },
    /// The value is out of its range.
    #[error(transparent)]
    Range(#[from] ParamError),
    /// Only a wrapper has a controller inside.
    #[error("\"{key}\": controller \"{controller}\" has no controller inside")]
    NoInner {
        /// The key.
        key: String,
        /// The controller.
        controller: String,
    },
}

impl ControllerChoice {
    /// The controller of this name with these settings, each a key and a text; a key such as `inner.beta` is of the controller
    /// inside.
    ///
    /// # Errors
    /// A name or key is unknown, or a value is not allowed.
    pub fn parse(
        name: &str,
        settings: &[(String, String)],
        registry: &Registry,
    ) -> Result<ControllerChoice, ChoiceError> {
        let controller = find(registry, name)?;
        let mut choice = ControllerChoice::named(name);
        // Which one is inside decides what else can be set.
        for (key, text) in settings {
            let Some(param) = controller.params.iter().find(|param| param.name == key) else { continue };
            if param.kind == Kind::Controller {
                find(registry, text)?;
                choice = choice.around(text);
            }
        }
        let inside = match choice.values.given("inner") {
            Some(Value::Word(inner)) => Some(find(registry, inner)?),
            _ => None,
        };
        let (mut weighing, mut weighing_inside) = (Weighing::default(), Weighing::default());
        for (key, text) in settings {
            match key.strip_prefix("inner.") {
                None => set(controller, &mut choice.values, &mut weighing, key, text)?,
                Some(inner_key) => {
                    let no_inner = || ChoiceError::NoInner { key: key.clone(), controller: name.to_owned() };
                    set(inside.ok_or_else(no_inner)?, &mut choice.inner, &mut weighing_inside, inner_key, text)?;
                }
            }
        }
        choice.ports = weighing.finish(controller, &mut choice.values)?;
        if let Some(inside) = inside {
            choice.ports.extend(weighing_inside.finish(inside, &mut choice.inner)?);
        }
        Ok(choice)
    }
}

/// Sets one parameter.
fn set(
    controller: &Controller,
    values: &mut Values,
    weighing: &mut Weighing,
    key: &str,
    text: &str,
) -> Result<(), ChoiceError> {
    if weighing.take(controller, key, text)? {
        return Ok(());
    }
    let param = param(controller, key)?;
    if param.kind == Kind::Weights {
        let allowed = "weight.NAME=BYTES for one name at a time, beside classify=by-size or classify=by-port";
        return Err(ChoiceError::Form { key: key.to_owned(), text: text.to_owned(), allowed: allowed.to_owned() });
    }
    if controller.name == "rtcp" && key == "interface" && text != "delay" {
        let allowed = "delay: what waits at this host's own interface is not known on the wire";
        return Err(ChoiceError::Form { key: key.to_owned(), text: text.to_owned(), allowed: allowed.to_owned() });
    }
    values.set(param.name, value(param, key, text)?);
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

fn value(param: &Param, key: &str, text: &str) -> Result<Value, ChoiceError> {
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
        // One by one: see `Weighing`.
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

/// A number with one of these units, in the smallest of them.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let number: f64 = number.trim().parse().ok()?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = number * factor;
    (value.is_finite() && (0.0..1e19).contains(&value)).then_some(value.round() as u64)
}

/// A time such as `20ms`.
pub fn span(text: &str) -> Option<Dur> {
    let units = [("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)];
    scaled(text, &units).map(Dur::from_ps)
}

/// A rate such as `100Mbps`.
pub fn rate(text: &str) -> Option<Rate> {
    let units = [("bps", 1.0), ("kbps", 1e3), ("Mbps", 1e6), ("Gbps", 1e9)];
    scaled(text, &units).map(Rate::from_bps)
}

/// A size such as `64KB`, bytes.
pub fn size(text: &str) -> Option<u64> {
    let units = [("B", 1.0), ("KB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0), ("MiB", 1048576.0)];
    scaled(text, &units)
}

/// What is wrong with a setting of the node itself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{what} \"{text}\": allowed is {allowed}")]
pub struct SettingError {
    what: &'static str,
    text: String,
    allowed: &'static str,
}

fn rate_of(what: &'static str, text: &str) -> Result<Rate, SettingError> {
    let rate = rate(text).filter(|&rate| rate >= Rate::from_mbps(1) && rate <= Rate::from_gbps(1000));
    let allowed = "a rate such as \"100Mbps\", from 1Mbps to 1000Gbps";
    rate.ok_or_else(|| SettingError { what, text: text.to_owned(), allowed })
}

/// The rate of this host's line.
///
/// # Errors
/// It is none, or below 1 Mb/s.
pub fn line_rate(text: &str) -> Result<Rate, SettingError> {
    rate_of("the line's rate", text)
}

/// The tail's greatest rate.
///
/// # Errors
/// It is none, or below 1 Mb/s.
pub fn tail(text: &str) -> Result<TailConfig, SettingError> {
    let rate = rate_of("the tail's rate", text)?;
    Ok(TailConfig { rate, measured: false, ..TailConfig::default() })
}

/// The most that a measured tail is sent at.
///
/// # Errors
/// It is none, or below 1 Mb/s.
pub fn tail_cap(text: &str) -> Result<Rate, SettingError> {
    Ok(tail(text)?.rate)
}

/// What is done with the tail where the path does not keep marks.
///
/// # Errors
/// It is none of the words.
pub fn unmarked(text: &str) -> Result<Unmarked, SettingError> {
    match text {
        "none" => Ok(Unmarked::NoTail),
        "scavenger" => Ok(Unmarked::Scavenger),
        "ignore" => Ok(Unmarked::Ignore),
        _ => Err(SettingError {
            what: "the tail of a path without marks",
            text: text.to_owned(),
            allowed: "none, scavenger or ignore",
        }),
    }
}

/// The receive window of a flow, bytes.
///
/// # Errors
/// It is no size, or too small or too large for one.
pub fn window(text: &str) -> Result<u64, SettingError> {
    let size = size(text).filter(|size| (20_000..=MAX_WINDOW_BYTES).contains(size));
    let allowed = "a size such as \"32MB\", from 20KB to 1073MB";
    size.ok_or_else(|| SettingError { what: "the window", text: text.to_owned(), allowed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::config::FlowFacts;

    fn parsed(name: &str, settings: &[(&str, &str)]) -> Result<ControllerChoice, String> {
        let settings: Vec<_> = settings.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        ControllerChoice::parse(name, &settings, &Registry::built_in()).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_reach_the_controller_and_the_one_inside() {
        let choice =
            parsed("rc3", &[("inner.hystart", "false"), ("inner", "cubic"), ("levels", "10,20")]).expect("rc3");
        assert_eq!(choice.values.given("levels"), Some(&Value::List(vec![10, 20])));
        assert_eq!(choice.values.given("inner"), Some(&Value::Word("cubic".to_owned())));
        assert_eq!(choice.inner.given("hystart"), Some(&Value::Flag(false)));
        let around = parsed("rc3", &[("inner", "bbr")]).expect("rc3");
        assert_eq!(around.inner.given("hystart"), None, "CUBIC's settings are not BBR's");
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
    fn what_is_wrong_is_told_with_what_is_allowed() {
        let cases = [
            (parsed("rc4", &[]), "there is no controller \"rc4\"; there are newreno"),
            (parsed("rc3", &[("inner", "x")]), "there is no controller \"x\""),
            (
                parsed("rc3", &[("lanes", "3")]),
                "controller \"rc3\" has no parameter \"lanes\"; it has inner, levels, feed",
            ),
            (parsed("rc3", &[("levels", "a")]), "levels = \"a\": allowed is at most 6 increasing whole numbers"),
            (parsed("cubic", &[("inner.beta", "1")]), "\"inner.beta\": controller \"cubic\" has no controller inside"),
        ];
        for (result, start) in cases {
            let message = result.expect_err(start);
            assert!(message.starts_with(start), "{message}");
        }
        assert!(parsed("rc3", &[("levels", "20,10")]).is_err() && parsed("rc3", &[("feed", "shove")]).is_err());
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(rate("2.5Gbps"), Some(Rate::from_bps(2_500_000_000)));
        assert_eq!(span("20ms"), Some(Dur::from_ms(20)));
        assert_eq!((size("64KB"), size("1MiB")), (Some(64_000), Some(1 << 20)));
        for wrong in ["", "5", "Mbps", "-5Mbps", "5 mbps", "1e400Gbps", "infbps"] {
            assert_eq!(rate(wrong), None, "{wrong}");
        }
    }
}
