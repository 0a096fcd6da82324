//! A typed scenario file -> one run -> columns of results.

pub mod document;
pub mod error;
pub mod field;
pub mod files;
pub mod keys;
pub mod overrides;
pub mod reach;
pub mod schemes;
pub mod topology;
pub mod transport;
pub mod units;

pub use error::ScenarioError;
