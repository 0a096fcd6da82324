//! Every controller by name, with its parameters: what a scenario may ask for.

use crate::algos::{
    bbr, bbr3, bic, cdg, compound, constant, cubic, dctcp, fast, highspeed, htcp, hybla, illinois, ledbat,
    ledbat_plus_plus, lp, newreno, pcc_allegro, pcc_vivace, rapid, rc3, rcp, rtcp, scalable, timely, vegas, veno,
    westwood, yeah,
};
use crate::contract::CongestionControl;
use crate::param::{Param, ParamError, Values};
use sparelane_core::Rate;
use thiserror::Error;

/// One entry of the catalogue.
#[derive(Debug)]
pub struct Controller {
    /// The name that a scenario uses.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Where the law is defined.
    pub source: &'static str,
    /// What can be set, besides the parameters of a controller inside.
    pub params: &'static [Param],
    pub(crate) make: fn(&Values, &Blueprint<'_>) -> Built,
}

/// A new controller, or why there is none.
pub type Built = Result<Box<dyn CongestionControl>, BuildError>;

/// What a controller is built for.
#[derive(Clone, Copy, Debug)]
pub struct Blueprint<'a> {
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Payload bytes of the flow, if it has an end.
    pub flow_bytes: Option<u64>,
    /// The class of traffic that the flow belongs to, if its workload names one.
    pub traffic_class: Option<&'a str>,
    /// The rate of the sender's interface.
    pub line_rate: Rate,
    /// The values for a controller inside, where there is one.
    pub inner: &'a Values,
}

impl<'a> Blueprint<'a> {
    /// A connection without end, of no class, on an interface of 10 Gb/s: enough to learn about a controller.
    pub const fn of_any(mss_bytes: u64, inner: &'a Values) -> Blueprint<'a> {
        Blueprint { mss_bytes, flow_bytes: None, traffic_class: None, line_rate: Rate::from_gbps(10), inner }
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
    /// A parameter is out of its range.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// Every controller, in the order in which people meet them.
pub const CONTROLLERS: &[Controller] = &[
    newreno::CONTROLLER,
    cubic::CONTROLLER,
    bic::CONTROLLER,
    highspeed::CONTROLLER,
    scalable::CONTROLLER,
    htcp::CONTROLLER,
    hybla::CONTROLLER,
    dctcp::CONTROLLER,
    bbr::CONTROLLER,
    bbr3::CONTROLLER,
    timely::CONTROLLER,
    vegas::CONTROLLER,
    fast::CONTROLLER,
    illinois::CONTROLLER,
    westwood::CONTROLLER,
    veno::CONTROLLER,
    yeah::CONTROLLER,
    ledbat::CONTROLLER,
    ledbat_plus_plus::CONTROLLER,
    lp::CONTROLLER,
    compound::CONTROLLER,
    cdg::CONTROLLER,
    pcc_allegro::CONTROLLER,
    pcc_vivace::CONTROLLER,
    constant::CONTROLLER,
    rcp::CONTROLLER,
    rapid::CONTROLLER,
    rtcp::CONTROLLER,
    rc3::CONTROLLER,
];

/// The controller called `name`.
pub fn find(name: &str) -> Option<&'static Controller> {
    CONTROLLERS.iter().find(|controller| controller.name == name)
}

/// A new controller for one connection, with `values` of its own.
///
/// # Errors
/// The name is unknown, a wrapper would contain itself, or a value is outside its range.
pub fn build(name: &str, values: &Values, plan: &Blueprint<'_>) -> Built {
    let controller = find(name).ok_or_else(|| BuildError::Unknown { name: name.to_owned() })?;
    for param in controller.params {
        if let Some(value) = values.given(param.name) {
            param.check(value)?;
        }
    }
    (controller.make)(values, plan)
}
