//! Controllers by name, with their parameters: what a scenario may ask for. The list is a value: whoever runs scenarios
//! can add laws of another crate.

use crate::contract::CongestionControl;
use crate::pace::PacketSize;
use crate::param::{Param, ParamError, Values};
use sparelane_core::Rate;
use std::fmt;
use thiserror::Error;

/// A kind of controller: its name, what can be set, and how one is made.
#[derive(Clone, Copy)]
pub struct Controller {
    /// The name that a scenario uses.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Where the law is defined.
    pub source: &'static str,
    /// What can be set, besides the parameters of a controller inside.
    pub params: &'static [Param],
    /// Makes one for a connection, with values of its own that are in their ranges.
    pub make: &'static Make,
}

/// Makes a controller from its values, for the connection of a [`Blueprint`].
pub type Make = dyn Fn(&Values, &Blueprint<'_>) -> Built + Sync;

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.name).field("params", &self.params).finish_non_exhaustive()
    }
}

/// Two are the same where their names and parameters are: a registry has one of each name.
impl PartialEq for Controller {
    fn eq(&self, other: &Controller) -> bool {
        self.name == other.name && self.params == other.params
    }
}

impl Controller {
    /// A new controller for one connection, with `values` of its own.
    ///
    /// # Errors
    /// A value is outside its range, or the controller refuses the connection.
    pub fn build(&self, values: &Values, plan: &Blueprint<'_>) -> Built {
        for (name, value) in values.iter() {
            if let Some(param) = self.params.iter().find(|param| param.name == name) {
                param.check(value)?;
            }
        }
        (self.make)(values, plan)
    }
}

/// A new controller, or why there is none.
pub type Built = Result<Box<dyn CongestionControl>, BuildError>;

/// What a controller is built for.
#[derive(Clone, Copy, Debug)]
pub struct Blueprint<'a> {
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Bytes of header on every packet.
    pub header_bytes: u64,
    /// Payload bytes of the flow, if it has an end.
    pub flow_bytes: Option<u64>,
    /// The class of traffic that the flow belongs to, if its workload names one.
    pub traffic_class: Option<&'a str>,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
    /// The values for a controller inside, where there is one.
    pub inner: &'a Values,
    /// Where a controller inside is found.
    pub registry: &'a Registry,
}

impl Blueprint<'_> {
    /// How large its packets are.
    pub fn packets(&self) -> PacketSize {
        PacketSize { mss_bytes: self.mss_bytes, header_bytes: self.header_bytes }
    }
}

/// Why a controller cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// No such controller.
    #[error("there is no controller \"{name}\"")]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// A controller that wraps others was asked to wrap itself, or one that it cannot.
    #[error("\"{outer}\" cannot contain \"{inner}\"")]
    Nested {
        /// The wrapper.
        outer: &'static str,
        /// What it was given.
        inner: String,
    },
    /// A connection is of a class of traffic that the controller has no weight for.
    #[error("there is no weight for traffic class \"{class}\"")]
    NoWeight {
        /// The class.
        class: String,
    },
    /// The controller itself says why: for those of other crates.
    #[error("{0}")]
    Refused(String),
    /// A parameter is out of its range.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// The controllers that a scenario can name: those of this crate, and any others.
///
/// ```
/// use sparelane_cc::registry::Registry;
/// use sparelane_cc::{Controller, Values, Blueprint, algos::newreno};
///
/// // A law of one's own would have its own `make`; this one is NewReno under another name.
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

/// Why a controller cannot be added to a registry.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RegistryError {
    /// There is one of that name.
    #[error("there is a controller \"{0}\" already")]
    Taken(&'static str),
    /// The name cannot stand in a scenario.
    #[error("\"{0}\" is no name for a controller; allowed: lower-case letters, digits and hyphens, a letter first")]
    Name(&'static str),
    /// Two parameters share a name, or one has the name of a key that every scheme has.
    #[error("controller \"{controller}\" cannot have a parameter \"{param}\": it has one already, or every scheme has")]
    Param {
        /// The controller.
        controller: &'static str,
        /// The parameter's name.
        param: &'static str,
    },
    /// A default is not in its own range.
    #[error("controller \"{controller}\": {error}")]
    Default {
        /// The controller.
        controller: &'static str,
        /// What is wrong.
        error: ParamError,
    },
}

/// The keys of every scheme, which no parameter can have.
const KEYS_OF_SCHEMES: [&str; 3] = ["controller", "transport", "class"];

impl Registry {
    /// A registry of `controllers`, whose names differ.
    pub(crate) const fn of(controllers: Vec<Controller>) -> Registry {
        Registry { controllers }
    }

    /// This registry with one more controller.
    ///
    /// # Errors
    /// Its name is taken or cannot stand in a scenario, or its parameters contradict themselves.
    pub fn with(mut self, controller: Controller) -> Result<Registry, RegistryError> {
        let Controller { name, params, .. } = controller;
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
        self.controllers.push(controller);
        Ok(self)
    }

    /// All controllers, in order.
    pub fn all(&self) -> &[Controller] {
        &self.controllers
    }

    /// The controller called `name`.
    pub fn find(&self, name: &str) -> Option<&Controller> {
        self.controllers.iter().find(|controller| controller.name == name)
    }

    /// A new controller for one connection, with `values` of its own.
    ///
    /// # Errors
    /// The name is unknown, a wrapper would contain itself, or a value is outside its range.
    pub fn build(&self, name: &str, values: &Values, plan: &Blueprint<'_>) -> Built {
        let controller = self.find(name).ok_or_else(|| BuildError::Unknown { name: name.to_owned() })?;
        controller.build(values, plan)
    }
}

/// A new controller of the registry that `plan` has: see [`Registry::build`].
///
/// # Errors
/// As [`Registry::build`].
pub fn build(name: &str, values: &Values, plan: &Blueprint<'_>) -> Built {
    plan.registry.build(name, values, plan)
}
