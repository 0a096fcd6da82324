//! The event engine: whose turn it is, on links and among timers; and a second one, for tests.

mod event_tree;
pub(crate) mod fabric;
#[cfg(feature = "oracle")]
pub mod oracle;
#[cfg(feature = "oracle")]
pub mod recorded;
mod tandems;
pub(crate) mod timers;
