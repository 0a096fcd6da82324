//! Bounds of every network, whatever its source: plausible rates, delays and sizes.
//!
//! The bounds are sparelane's own. They keep times below the overflow of 64-bit picoseconds and catch wrong units.

use crate::topology::TopologyError;
use sparelane_core::{Dur, Rate};
use sparelane_sim::simulation::MAX_CABLES;

/// The minimum rate in bits per second; a time per byte is not defined below it.
const MIN_RATE_BPS: u64 = 1_000;
/// The maximum rate: 100 Tb/s, at which 1500 bytes take 120 ps.
const MAX_RATE_BPS: u64 = 100_000_000_000_000;
/// The maximum delay: one hour, about the distance to Jupiter.
const MAX_DELAY: Dur = Dur::from_secs(3600);
/// The maximum number of nodes of a network.
const MAX_NODES: u64 = 4_000_000;

/// Returns `rate` if a link may have it. `what` names it in the error.
pub(super) fn rate(line: Option<usize>, what: &str, rate: Rate) -> Result<Rate, TopologyError> {
    if (MIN_RATE_BPS..=MAX_RATE_BPS).contains(&rate.as_bps()) {
        return Ok(rate);
    }
    let message = format!("{what} is {} b/s; allowed: {MIN_RATE_BPS} to {MAX_RATE_BPS} b/s", rate.as_bps());
    Err(TopologyError { line, message })
}

/// Returns `delay` if a link may have it. `what` names it in the error.
pub(super) fn delay(line: Option<usize>, what: &str, delay: Dur) -> Result<Dur, TopologyError> {
    if delay <= MAX_DELAY {
        return Ok(delay);
    }
    Err(TopologyError { line, message: format!("{what} is {delay}; allowed: 0s to {MAX_DELAY}") })
}

/// Returns `count` if it is at least `least`. `what` names it in the error.
pub(super) fn at_least(what: &str, count: u32, least: u32) -> Result<u32, TopologyError> {
    if count >= least {
        return Ok(count);
    }
    Err(TopologyError::new(format!("{what} is {count}; allowed: {least} or more")))
}

/// Fails if a network may not have `count` nodes.
pub(super) fn nodes(count: u64) -> Result<(), TopologyError> {
    if count <= MAX_NODES {
        return Ok(());
    }
    Err(TopologyError::new(format!("the network has {count} nodes; allowed: at most {MAX_NODES}")))
}

/// Fails if a network may not have `count` cables.
pub(super) fn cables(count: u64) -> Result<(), TopologyError> {
    if count <= MAX_CABLES as u64 {
        return Ok(());
    }
    Err(TopologyError::new(format!("the network has {count} cables; allowed: at most {MAX_CABLES}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_errors_state_the_allowed_values() {
        for bps in [MIN_RATE_BPS, MAX_RATE_BPS] {
            assert_eq!(rate(None, "the rate", Rate::from_bps(bps)), Ok(Rate::from_bps(bps)));
        }
        let error = rate(Some(4), "the rate of the link", Rate::from_bps(999)).unwrap_err().to_string();
        assert_eq!(error, "line 4: the rate of the link is 999 b/s; allowed: 1000 to 100000000000000 b/s");
        let error = delay(None, "the delay", Dur::from_secs(3601)).unwrap_err().to_string();
        assert_eq!(error, "the delay is 3601s; allowed: 0s to 3600s");
        assert!(at_least("the number of pairs", 0, 1).is_err());
        assert!(nodes(MAX_NODES).is_ok() && nodes(MAX_NODES + 1).is_err());
        assert!(cables(MAX_CABLES as u64).is_ok() && cables(MAX_CABLES as u64 + 1).is_err());
    }
}
