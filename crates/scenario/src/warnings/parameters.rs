//! Warnings about parameters that a controller does not read, given its other parameters, and about schemes without
//! flows.

use super::Facts;
use crate::schemes::{INNER, SCHEME};
use sparelane_catalogue::schema::{Field, Key, Kind, ScenarioError, Warnings};
use sparelane_cc::{Blueprint, Controller, Kind as ParamKind, Value, Values};
use sparelane_sim::Scheme;
use sparelane_transport::Ecn;
use std::collections::BTreeSet;

/// The parameters that set the reaction to ECN marks.
const OF_MARKS: [&str; 1] = ["beta_ecn"];

/// The start of the warning that names schemes without flows. In a sweep, it names the schemes that no run uses.
const UNUSED_SCHEMES: &str = "no workload has flows of scheme ";

pub(super) fn check(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let used: BTreeSet<usize> = facts.used().map(|(place, _)| place).collect();
    let schemes = facts.root.need("scheme")?;
    let mut unused = Vec::new();
    for (place, ((name, table), scheme)) in schemes.named()?.into_iter().zip(&facts.schemes.all).enumerate() {
        if !used.contains(&place) {
            unused.push(name.to_owned());
            continue;
        }
        let ecn = scheme.transport.ecn;
        ineffective(&table, SCHEME, &scheme.controller, (&scheme.values, ecn), warnings, |values| {
            reads(scheme, values, &scheme.inner)
        })?;
        inside(&table, scheme, warnings)?;
    }
    if !unused.is_empty() {
        warnings.add(format!("{UNUSED_SCHEMES}{}", unused.join(", ")));
    }
    Ok(())
}

/// The parameters of a nested controller.
fn inside(table: &Field<'_>, scheme: &Scheme, warnings: &Warnings) -> Result<(), ScenarioError> {
    let outer = scheme.controller.params.iter().find(|param| param.kind == ParamKind::Controller);
    let Some(param) = outer else { return Ok(()) };
    let Ok(field) = table.entry(param.name, Kind::TABLE) else { return Ok(()) };
    let name = scheme.values.word(param);
    match scheme.registry.find(name).filter(|_| field.is_table()) {
        Some(controller) => {
            ineffective(&field, INNER, controller, (&scheme.inner, scheme.transport.ecn), warnings, |values| {
                let (inner, names) = values.recorded();
                build(scheme, &scheme.values, &inner);
                controller.params.iter().map(|param| param.name).filter(|name| names.has(name)).collect()
            })
        }
        None => Ok(()),
    }
}

/// Warns about the parameters of `controller` that `table` gives and that have no effect: those that `reads` does not
/// contain, and those for marks if segments are never marked.
fn ineffective(
    table: &Field<'_>,
    shared: &[Key],
    controller: &Controller,
    (values, ecn): (&Values, Ecn),
    warnings: &Warnings,
    reads: impl Fn(&Values) -> BTreeSet<&'static str>,
) -> Result<(), ScenarioError> {
    let params: Vec<Key> = controller.params.iter().map(Key::declared).collect();
    let section = table.clone().section(&[shared, &params])?;
    let read = reads(values);
    for param in controller.params {
        let Some(field) = section.changed(param.name) else { continue };
        if !read.contains(param.name) {
            warnings.add(field.without_effect(&reason(param.name, controller, values, &reads)));
        }
        if ecn == Ecn::Off && OF_MARKS.contains(&param.name) {
            warnings.add(field.without_effect("the scheme is not ECN-capable; transport.ecn makes it so"));
        }
    }
    Ok(())
}

/// The reason for a parameter not being read: the value of another one that it depends on.
fn reason(
    name: &str,
    controller: &Controller,
    values: &Values,
    reads: impl Fn(&Values) -> BTreeSet<&'static str>,
) -> String {
    for other in controller.params {
        let alternatives: Vec<Value> = match other.kind {
            ParamKind::Flag => [true, false].map(Value::Flag).into(),
            ParamKind::Choice(words) => words.iter().map(|word| Value::Word((*word).to_owned())).collect(),
            _ => continue,
        };
        for value in alternatives {
            let mut changed = values.clone();
            changed.set(other.name, value.clone());
            if reads(&changed).contains(name) {
                return format!("{} uses it only with {} = {value}", controller.name, other.name);
            }
        }
    }
    format!("{} does not use it with its other parameters", controller.name)
}

/// The parameters that the controller of a scheme reads from `values`, for any flow.
fn reads(scheme: &Scheme, values: &Values, inner: &Values) -> BTreeSet<&'static str> {
    let (values, names) = values.recorded();
    build(scheme, &values, inner);
    scheme.controller.params.iter().map(|param| param.name).filter(|name| names.has(name)).collect()
}

/// Builds the controller for flows with and without an end, and with and without a traffic class. Controllers may read
/// different parameters for each.
fn build(scheme: &Scheme, values: &Values, inner: &Values) {
    let config = &scheme.transport;
    let any = Blueprint {
        header_bytes: config.header_bytes,
        registry: &scheme.registry,
        ..Blueprint::of_any(config.mss_bytes, inner)
    };
    let ended = Blueprint { flow_bytes: Some(1), ..any };
    let classed = Blueprint { traffic_class: Some(""), ..any };
    for plan in [any, ended, classed] {
        // A controller may refuse a class; its reads until then are recorded.
        let _ = scheme.controller.build(values, &plan);
    }
}
