//! The simulator for a page in the browser.
//!
//! The crate has no simulator of its own: it calls `sparelane-scenario`, and watches runs through the observers of
//! `sparelane-sim`. Digests are therefore equal to those of `sparelane run`. All of it but `bindings` compiles natively
//! and is tested so; `bindings` exports it to JavaScript. `web/src/engine/protocol.ts` documents the JSON that the
//! functions here return.
//!
//! | module | contents |
//! |---|---|
//! | [`catalogue`] | the names and keys of scenarios, as JSON |
//! | [`text`] | scenarios as text: mistakes with line and column, and edits that keep comments |
//! | [`files`] | the files that a scenario names, which a page cannot read |
//! | [`network`] | the network with positions, for drawing |
//! | [`series`], [`packets`] | observers: time series for plots, and packets for the animation |
//! | [`columns`] | JSON with columns that become typed arrays |
//! | [`run`] | one run, in steps |

#[cfg(target_arch = "wasm32")]
mod bindings;
pub mod catalogue;
pub mod columns;
pub mod files;
pub mod network;
pub mod packets;
pub mod run;
pub mod series;
pub mod text;

/// The version of sparelane.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
