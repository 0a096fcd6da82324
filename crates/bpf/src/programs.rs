//! The shipped programs, with the settings and the telemetry of each.
//!
//! The simulator has a controller of the same kind for each program. Programs take their parameters from it, and report
//! quantities under the same names.

pub mod rapid;
pub mod rtcp;
pub mod scavenger;

use crate::error::BpfError;
use crate::settings::Settings;
use sparelane_cc::{Param, Registry};
use sparelane_core::Rate;

/// A congestion controller for the kernel.
#[derive(Clone, Copy)]
pub struct Program {
    /// The name.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The compiled program, an ELF object file.
    pub object: &'static [u8],
    /// Returns the parameters that users can set.
    pub params: fn() -> Vec<Param>,
    /// Computes the program's constants from settings, for an interface of the given rate.
    pub constants: fn(&Settings, Rate) -> Result<Constants, BpfError>,
    /// The quantities in the values of its samples.
    pub quantities: &'static [Quantity],
    /// True if the program needs routes with microsecond timestamps and one acknowledgment per packet, and interfaces
    /// without segmentation offload.
    pub needs_route: bool,
    /// True if the program needs the rate of the interface.
    pub needs_line_rate: bool,
}

/// The constants of a program: pairs of path and value for all numbers in its `settings`, in the order of that
/// structure.
pub type Constants = Vec<(String, u64)>;

/// A program with its constants, ready to be loaded.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The program.
    pub program: Program,
    /// The values of its constants.
    pub constants: Constants,
}

impl Prepared {
    /// Returns the constants as the bytes of the program's `settings` structure.
    pub fn settings(&self) -> Vec<u8> {
        self.constants.iter().flat_map(|(_, value)| value.to_le_bytes()).collect()
    }
}

/// A quantity that a program reports in its samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// The name, the same as in the traces of the simulator's controller.
    pub name: &'static str,
    /// The index among the sample's values.
    pub slot: usize,
    /// The factor from the sample's integer to the unit in the quantity's name.
    pub unit: f64,
    /// True if the value is reported with departures; otherwise it is reported with all other events.
    pub of_departures: bool,
}

impl Quantity {
    const fn new(name: &'static str, slot: usize, unit: f64) -> Quantity {
        Quantity { name, slot, unit, of_departures: false }
    }
}

/// All programs.
pub const PROGRAMS: [Program; 3] = [rtcp::PROGRAM, rapid::PROGRAM, scavenger::PROGRAM];

/// Returns the program of this name.
///
/// # Errors
/// [`BpfError::NoProgram`] if no such program exists.
pub fn find(name: &str) -> Result<&'static Program, BpfError> {
    PROGRAMS.iter().find(|program| program.name == name).ok_or_else(|| {
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        BpfError::NoProgram { name: name.to_owned(), known: known.join(", ") }
    })
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Program {
    /// Computes the program's constants from settings and the line rate.
    ///
    /// # Errors
    /// [`BpfError::Setting`] if a setting does not exist or its value is not allowed.
    pub fn prepared(&self, given: &[(String, String)], line_rate: Rate) -> Result<Prepared, BpfError> {
        let settings = Settings::parse(self.name, &(self.params)(), given)?;
        Ok(Prepared { program: *self, constants: (self.constants)(&settings, line_rate)? })
    }
}

/// Returns the named parameters of the simulator's controller `controller`, in this order.
fn shared(controller: &str, names: &[&str]) -> Vec<Param> {
    let registry = Registry::built_in();
    let all = registry.find(controller).map(|controller| controller.params).unwrap_or_default();
    names.iter().filter_map(|name| all.iter().find(|param| param.name == *name)).copied().collect()
}

/// Returns the parameter of this name.
fn param(params: &[Param], name: &str) -> Result<Param, BpfError> {
    let found = params.iter().find(|param| param.name == name).copied();
    found.ok_or_else(|| BpfError::Setting(format!("no parameter is named {name}")))
}

/// Returns the error for a value that the simulator allows but the program's integers cannot hold.
fn out_of_range(name: &str, given: &str, allowed: &str) -> BpfError {
    BpfError::Setting(format!("`{name}` is {given}; allowed in the kernel: {allowed}"))
}
