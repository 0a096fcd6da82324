//! The functions behind the fuzz targets. `cargo test` runs the same functions on a few thousand random inputs.

pub mod acknowledgments;
mod bytes;
pub mod files;
pub mod overrides;
pub mod scenario;
pub mod segments;
