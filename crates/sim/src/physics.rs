//! The physics check: what no simulation may do, checked on every run.

use sparelane_core::{Dur, Time};
use thiserror::Error;

/// A broken law. It shows a defect of the simulator, not of the scenario.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PhysicsViolation {
    /// A flow finished earlier than its path allows.
    #[error("flow {flow} finished in {took}, but its path allows no less than {least}")]
    FasterThanItsPath {
        /// The flow's number.
        flow: u32,
        /// Its completion time.
        took: Dur,
        /// The least that its path allows.
        least: Dur,
    },
    /// Packets appeared or vanished.
    #[error("packets are not conserved {place}: {came} came, {went} left or were dropped, {held} are there")]
    NotConserved {
        /// Where.
        place: String,
        /// Packets that came.
        came: u64,
        /// Packets that left or were dropped.
        went: u64,
        /// Packets that are still there.
        held: u64,
    },
    /// A link carried more than its rate allows.
    #[error("link {link} carried {bytes} bytes by {now}, but its rate allows {allowed}")]
    FasterThanItsRate {
        /// The link's number.
        link: usize,
        /// Bytes that arrived at its far end.
        bytes: u64,
        /// Bytes that its rate allows.
        allowed: u64,
        /// The time of the count.
        now: Time,
    },
    /// A queue held more than its limit.
    #[error("the queue of link {link} held {held} bytes, but its limit is {limit}")]
    QueueOverLimit {
        /// The link's number.
        link: usize,
        /// The most bytes it held.
        held: u64,
        /// What it may hold.
        limit: u64,
    },
}
