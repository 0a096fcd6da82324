//! Ready-made networks, and networks from files. Each kind is a file with its keys and its builder, and a line in
//! [`TOPOLOGIES`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod attach;
mod bounds;
mod capacity;
mod chain;
mod dumbbell;
mod error;
mod fat_tree;
mod file;
pub mod hpcc;
pub mod htsim;
mod internet2;
pub mod map;
mod names;
pub mod neutral;
mod spine_leaf;
mod star;

pub use attach::attach_hosts;
pub use capacity::{balanced_rates, pairs_per_cable};
pub use chain::Chain;
pub use dumbbell::Dumbbell;
pub use error::TopologyError;
pub use fat_tree::FatTree;
pub use internet2::{DrawnRates, Internet2};
pub use map::MapDefaults;
pub use spine_leaf::SpineLeaf;
pub use star::Star;

pub(crate) use error::place;

use crate::schema::{Fallback, Field, Form, Key, Kind, ScenarioError, Section, Source, Warnings};
use sparelane_sim::Network;

/// The surroundings in which a topology is read.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The place of other files.
    pub source: &'a Source,
    /// The run's seed.
    pub seed: u64,
    /// Collects warnings about the network.
    pub warnings: &'a Warnings,
}

/// The form of a topology in a scenario.
pub type TopologyForm = Form<fn(&Section<'_>, &Context<'_>) -> Result<Network, ScenarioError>>;

/// Every form of `[topology]`.
pub static TOPOLOGIES: &[&TopologyForm] =
    &[&dumbbell::FORM, &chain::FORM, &fat_tree::FORM, &spine_leaf::FORM, &star::FORM, &internet2::FORM, &file::FORM];

const COUNT: Kind = Kind::Whole { min: 1, max: 1_000_000 };
const ACCESS_RATE: Key = Key::new("access_rate", Kind::Rate, Fallback::Value("1Gbps"), "rate of each host's cable");
const ACCESS_DELAY: Key =
    Key::new("access_delay", Kind::DELAY, Fallback::Value("1ms"), "propagation delay of each host's cable, one way");

/// Builds the network that `field` describes, in one of these forms.
///
/// # Errors
/// Returns the first error, with its place and the allowed values.
pub fn read(
    field: Field<'_>,
    forms: &[&'static TopologyForm],
    context: &Context<'_>,
) -> Result<Network, ScenarioError> {
    let (form, section) = field.form(&[], forms)?;
    (form.read)(&section, context)
}

/// Attributes an error in the network to the whole table.
fn built(section: &Section<'_>, network: Result<Network, TopologyError>) -> Result<Network, ScenarioError> {
    network.map_err(|error| section.whole_table().error(error.to_string()))
}
