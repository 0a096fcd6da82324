//! The programs that are shipped: what can be set about each, and what each tells.

pub mod rapid;
pub mod rtcp;
pub mod scavenger;

use crate::error::BpfError;
use crate::settings::Settings;
use sparelane_cc::{Param, Registry};
use sparelane_core::Rate;

/// A controller for the kernel.
#[derive(Clone, Copy)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Compiled, as it is shipped.
    pub object: &'static [u8],
    /// What can be set.
    pub params: fn() -> Vec<Param>,
    /// The program's constants, by their paths, for an interface of that rate.
    pub constants: fn(&Settings, Rate) -> Result<Constants, BpfError>,
    /// What it tells, by the slots of a sample's values.
    pub quantities: &'static [Quantity],
    /// Whether routes must have time stamps in microseconds and one acknowledgment a packet, and interfaces single packets.
    pub needs_route: bool,
    /// Whether it must know the rate of the interface.
    pub needs_line_rate: bool,
}

/// The constants of a program: the paths of all numbers in its `settings`, in their order there, and what they are.
pub type Constants = Vec<(String, u64)>;

/// A program with its constants, ready to be loaded.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Which one.
    pub program: Program,
    /// Its constants.
    pub constants: Constants,
}

impl Prepared {
    /// The constants as the program holds them, byte for byte.
    pub fn settings(&self) -> Vec<u8> {
        self.constants.iter().flat_map(|(_, value)| value.to_le_bytes()).collect()
    }
}

/// A value of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantity {
    /// Its name, as the simulator's controller of the same name traces it.
    pub name: &'static str,
    /// Which of the sample's values it is.
    pub slot: usize,
    /// What a count of one is worth.
    pub unit: f64,
    /// Whether it is told with departures, and not with acknowledgments.
    pub of_departures: bool,
}

impl Quantity {
    const fn new(name: &'static str, slot: usize, unit: f64) -> Quantity {
        Quantity { name, slot, unit, of_departures: false }
    }
}

/// All programs.
pub const PROGRAMS: [Program; 3] = [rtcp::PROGRAM, rapid::PROGRAM, scavenger::PROGRAM];

/// The program of that name.
///
/// # Errors
/// [`BpfError::NoProgram`] where there is none.
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
    /// The program with its constants, ready to be loaded.
    ///
    /// # Errors
    /// A setting that does not exist or is not allowed.
    pub fn prepared(&self, given: &[(String, String)], line_rate: Rate) -> Result<Prepared, BpfError> {
        let settings = Settings::parse(self.name, &(self.params)(), given)?;
        Ok(Prepared { program: *self, constants: (self.constants)(&settings, line_rate)? })
    }
}

/// Parameters that the controller of this name has in the simulator, too, in this order.
fn shared(controller: &str, names: &[&str]) -> Vec<Param> {
    let registry = Registry::built_in();
    let all = registry.find(controller).map(|controller| controller.params).unwrap_or_default();
    names.iter().filter_map(|name| all.iter().find(|param| param.name == *name)).copied().collect()
}

/// One of them.
fn param(params: &[Param], name: &str) -> Result<Param, BpfError> {
    let found = params.iter().find(|param| param.name == name).copied();
    found.ok_or_else(|| BpfError::Setting(format!("no parameter is named {name}")))
}

/// A setting that the simulator allows and the kernel's integers do not hold.
fn too_much(name: &str, given: &str, allowed: &str) -> BpfError {
    BpfError::Setting(format!("`{name}` is {given}; allowed in the kernel: {allowed}"))
}
