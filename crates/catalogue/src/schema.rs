//! Reads scenarios.
//!
//! A text becomes a tree that keeps line numbers. Its tables become sections whose keys are declared as data. Each
//! value is read by its key, with its unit and its bounds. Every error names the place in the file.

mod declared;
pub mod document;
mod error;
mod field;
pub mod files;
mod foreign_units;
pub mod formats;
pub mod json;
mod keys;
pub mod nodes;
mod number;
pub mod overrides;
pub mod units;
pub mod volume;
mod warnings;

pub use document::Document;
pub use error::{ScenarioError, did_you_mean, name_hint};
pub use field::{Field, Section};
pub use files::{Input, Source, open_capture, read_text};
pub use formats::{FileFormat, Purpose};
pub use keys::{Fallback, Form, Key, Kind, MAX_DELAY, MAX_DURATION, MAX_FLOW_BYTES, RATES, Shape};
pub use warnings::Warnings;
