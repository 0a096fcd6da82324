//! The event engine: the event queue, the order of events, timers of flows, and a reference engine for tests.

pub(crate) mod calendar;
pub(crate) mod event_queue;
pub(crate) mod event_tree;
pub(crate) mod exits;
pub(crate) mod fabric;
#[cfg(feature = "oracle")]
pub mod oracle;
pub(crate) mod pfc;
#[cfg(feature = "oracle")]
pub mod recorded;
mod stages;
mod tandems;
pub(crate) mod timers;
