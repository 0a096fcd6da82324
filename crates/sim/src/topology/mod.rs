//! Ready-made networks, and networks from files.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod attach;
mod bounds;
mod capacity;
mod chain;
mod dumbbell;
mod error;
mod fat_tree;
pub mod graphml;
mod internet2;
mod names;
pub mod neutral;
mod paths;
mod spine_leaf;
mod star;
mod units;

pub use attach::attach_hosts;
pub use capacity::{balanced_rates, pairs_per_cable};
pub use chain::Chain;
pub use dumbbell::Dumbbell;
pub use error::TopologyError;
pub use fat_tree::FatTree;
pub use graphml::GraphmlDefaults;
pub use internet2::{DrawnRates, Internet2};
pub use paths::{Hop, RouterPaths};
pub use spine_leaf::SpineLeaf;
pub use star::Star;
pub use units::UnitParser;

pub(crate) use error::place;
#[cfg(test)]
pub(crate) use units::tests::PlainUnits;
