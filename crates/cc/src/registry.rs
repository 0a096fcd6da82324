//! Controllers by name, with their parameters.
//!
//! A [`Registry`] holds the controllers that a scenario can name. It is a value, not a global: callers can pass one
//! that includes controllers from other crates.

use crate::contract::CongestionControl;
use crate::pace::PacketSize;
use crate::param::{Param, ParamError, Values};
use crate::wire::{WireDefaults, WireValue};
use sparelane_core::Rate;
use std::fmt;
use thiserror::Error;

/// A kind of controller: its name, its parameters and its constructor.
#[derive(Clone, Copy)]
pub struct Controller {
    /// The name in a scenario.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// The paper, RFC or implementation that defines the law.
    pub source: &'static str,
    /// The controller's own parameters, without those of a controller inside it.
    pub params: &'static [Param],
    /// Its differences on a real network, if it has any.
    pub wire: Option<WireDefaults>,
    /// The constructor. The values it receives have been checked against their ranges.
    pub make: &'static Make,
}

/// Constructs a controller from its values for the connection of a [`Blueprint`].
pub type Make = dyn Fn(&Values, &Blueprint<'_>) -> Built + Sync;

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).field("params", &self.params).finish_non_exhaustive()
    }
}

/// Controllers are equal if their names and parameters are: a registry holds one controller of each name.
impl PartialEq for Controller {
    fn eq(&self, other: &Controller) -> bool {
        self.name == other.name && self.params == other.params
    }
}

impl Controller {
    /// Creates a controller for one connection from its `values`.
    ///
    /// # Errors
    /// Fails if a value is outside its range or the controller refuses the connection.
    pub fn build(&self, values: &Values, plan: &Blueprint<'_>) -> Built {
        for (name, value) in values.iter() {
            if let Some(param) = self.params.iter().find(|param| param.name == name) {
                param.check(value)?;
            }
        }
        (self.make)(values, plan)
    }
}

/// A new controller, or the reason why it could not be built.
pub type Built = Result<Box<dyn CongestionControl>, BuildError>;

/// The connection that a controller is built for.
#[derive(Clone, Copy, Debug)]
pub struct Blueprint<'a> {
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Header bytes on every packet.
    pub header_bytes: u64,
    /// True if the receiver reports each arrival (SACK), so that several losses per round trip are detected.
    pub sack: bool,
    /// Payload bytes of the flow, if it has a fixed size.
    pub flow_bytes: Option<u64>,
    /// The traffic class of the flow, if its workload names one.
    pub traffic_class: Option<&'a str>,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
    /// The values for a controller inside this one, if there is one.
    pub inner: &'a Values,
    /// The registry in which a controller inside this one is looked up.
    pub registry: &'a Registry,
}

impl Blueprint<'_> {
    /// Returns the packet sizes of the connection.
    pub fn packets(&self) -> PacketSize {
        PacketSize { mss_bytes: self.mss_bytes, header_bytes: self.header_bytes }
    }
}

/// The reason why a controller cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// No controller has this name.
    #[error("there is no controller \"{name}\"")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// A wrapper was asked to contain itself, or a controller that it cannot contain.
    #[error("\"{outer}\" cannot contain \"{inner}\"")]
    Nested {
        /// The wrapper.
        outer: &'static str,
        /// The controller that it was asked to contain.
        inner: String,
    },
    /// The connection's traffic class has no weight.
    #[error("there is no weight for traffic class \"{class}\"")]
    NoWeight {
        /// The traffic class.
        class: String,
    },
    /// The controller refused for a reason of its own. For controllers of other crates.
    #[error("{0}")]
    Refused(String),
    /// A parameter is outside its range.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// The controllers that a scenario can name.
///
/// ```
/// use sparelane_cc::registry::Registry;
/// use sparelane_cc::{Controller, Values, Blueprint, algos::newreno};
///
/// // A real controller would have its own `make`; this one is NewReno under another name.
/// const OWN: Controller = Controller { name: "own", ..newreno::CONTROLLER };
/// let registry = Registry::clone(&Registry::built_in()).with(OWN)?;
/// let none = Values::default();
/// let plan = Blueprint { registry: &registry, ..Blueprint::of_any(1460, &none) };
/// assert_eq!(registry.build("own", &none, &plan).expect("a controller").limits().cwnd_bytes, 14_600);
/// # Ok::<(), sparelane_cc::registry::RegistryError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Registry {
    controllers: Vec<Controller>,
}

/// The reason why a controller cannot be added to a registry.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RegistryError {
    /// The name is taken.
    #[error("there is a controller \"{0}\" already")]
    Taken(&'static str),
    /// The name is not allowed in a scenario.
    #[error(
        "\"{0}\" is not a controller name; allowed: lower-case letters, digits and hyphens, starting with a letter"
    )]
    Name(&'static str),
    /// Two parameters share a name, or a parameter has the name of a key that every scheme has.
    #[error(
        "controller \"{controller}\" cannot declare \"{param}\": the name is already declared, or a key of every scheme"
    )]
    Param {
        /// The controller.
        controller: &'static str,
        /// The parameter's name.
        param: &'static str,
    },
    /// A default for real networks concerns a parameter that the controller does not have.
    #[error(
        "controller \"{controller}\" has a default on the wire for \"{param}\", which is not one of its parameters"
    )]
    Undeclared {
        /// The controller.
        controller: &'static str,
        /// The parameter's name.
        param: &'static str,
    },
    /// A default is outside its parameter's range.
    #[error("controller \"{controller}\": {error}")]
    Default {
        /// The controller.
        controller: &'static str,
        /// The parameter and its range.
        error: ParamError,
    },
}

/// The keys that every scheme has; no parameter may use them.
const KEYS_OF_SCHEMES: [&str; 3] = ["controller", "transport", "class"];

impl Registry {
    /// Creates a registry of `controllers`, whose names must differ.
    pub(crate) const fn of(controllers: Vec<Controller>) -> Registry {
        Registry { controllers }
    }

    /// Returns this registry with one more controller.
    ///
    /// # Errors
    /// Fails if the name is taken or not allowed in a scenario, or if the parameters contradict one another.
    pub fn with(mut self, controller: Controller) -> Result<Registry, RegistryError> {
        let Controller { name, params, wire, .. } = controller;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_plain) {
            return Err(RegistryError::Name(name));
        }
        if self.find(name).is_some() {
            return Err(RegistryError::Taken(name));
        }
        for (at, param) in params.iter().enumerate() {
            let is_twice = params[..at].iter().any(|other| other.name == param.name);
            if is_twice || KEYS_OF_SCHEMES.contains(&param.name) {
                return Err(RegistryError::Param { controller: name, param: param.name });
            }
            let default = param.check(&param.default.into());
            default.map_err(|error| RegistryError::Default { controller: name, error })?;
        }
        for &WireValue { param, value, .. } in wire.map_or(&[][..], |wire| wire.values) {
            let declared = params.iter().find(|declared| declared.name == param);
            let declared = declared.ok_or(RegistryError::Undeclared { controller: name, param })?;
            let default = declared.check(&value.into());
            default.map_err(|error| RegistryError::Default { controller: name, error })?;
        }
        self.controllers.push(controller);
        Ok(self)
    }

    /// Returns all controllers, in order of registration.
    pub fn all(&self) -> &[Controller] {
        &self.controllers
    }

    /// Returns the controller called `name`.
    pub fn find(&self, name: &str) -> Option<&Controller> {
        self.controllers.iter().find(|controller| controller.name == name)
    }

    /// Creates a controller for one connection from its `values`.
    ///
    /// # Errors
    /// Fails if the name is unknown, a wrapper would contain itself, or a value is outside its range.
    pub fn build(&self, name: &str, values: &Values, plan: &Blueprint<'_>) -> Built {
        let controller = self.find(name).ok_or_else(|| BuildError::Unknown { name: name.to_owned() })?;
        controller.build(values, plan)
    }
}

/// Creates a controller from the registry in `plan`; see [`Registry::build`].
///
/// # Errors
/// Fails as [`Registry::build`] does.
pub fn build(name: &str, values: &Values, plan: &Blueprint<'_>) -> Built {
    plan.registry.build(name, values, plan)
}
