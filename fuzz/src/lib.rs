//! What each target does with the bytes that it is given. The same functions run in `cargo test` on a few thousand random inputs.

pub mod acknowledgments;
mod bytes;
pub mod files;
pub mod overrides;
pub mod scenario;
pub mod segments;
