//! The physics check: invariants that every run must satisfy, verified at its end.
//!
//! No flow beats its path, no packet appears or vanishes, no link exceeds its rate and no queue its limit. The check
//! runs in release builds too: it is cheap, and a wrong result is worse than none.

use sparelane_core::{Dur, Time};
use thiserror::Error;

/// A violated invariant. It shows a defect of the simulator, not of the scenario.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PhysicsViolation {
    /// A flow finished earlier than its path allows.
    #[error("flow {flow} finished in {took}, but its path allows no less than {least}")]
    FasterThanItsPath {
        /// The flow's number.
        flow: u32,
        /// Its completion time.
        took: Dur,
        /// The least time that its path allows.
        least: Dur,
    },
    /// Packets appeared or vanished.
    #[error("packets are not conserved {place}: {came} came, {went} left or were dropped, {held} are there")]
    NotConserved {
        /// The place of the count: a link or the whole network.
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
        /// The limit in bytes.
        limit: u64,
    },
}

/// Checks that what came to a place, packets, is what went and what it holds.
pub(crate) fn check_conserved(place: &str, came: u64, went: u64, held: u64) -> Result<(), PhysicsViolation> {
    if came == went + held {
        return Ok(());
    }
    Err(PhysicsViolation::NotConserved { place: place.to_owned(), came, went, held })
}
