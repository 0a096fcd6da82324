//! Estimates of a workload's demand on the simulator before a run, so that an impossible run fails at once instead of
//! after an hour.

use crate::schema::{Field, ScenarioError};
use sparelane_core::{Dur, Time};

/// Maximum number of flows in a run: each produces a row of results, about 250 bytes.
const MAX_FLOWS: f64 = 40_000_000.0;

/// Maximum number of concurrent flows in a run: each has two endpoints and a controller, about 2.5 kB.
const MAX_OPEN_FLOWS: f64 = 4_000_000.0;

/// The assumed duration of a flow of unknown length.
const USUAL_LENGTH: Dur = Dur::from_secs(1);

/// The expected demand of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Total number of flows.
    pub flows: f64,
    /// Number of concurrent flows.
    pub at_once: f64,
}

impl Demand {
    /// Returns the demand of `flows` flows that start over a span of `spread`.
    pub(super) fn spread_over(flows: f64, spread: Dur) -> Demand {
        let share = USUAL_LENGTH.as_secs_f64() / spread.as_secs_f64().max(USUAL_LENGTH.as_secs_f64());
        Demand { flows, at_once: flows * share }
    }

    /// Returns the demand of `per_second` flows per second, from `start` until `end` or the end of the run.
    pub(super) fn of_rate(per_second: f64, (start, end): (Time, Time), duration: Dur) -> Demand {
        let span = end.min(Time::ZERO + duration).saturating_since(start);
        Demand { flows: per_second * span.as_secs_f64(), at_once: 0.0 }
    }

    /// Adds two demands.
    pub fn and(self, other: Demand) -> Demand {
        Demand { flows: self.flows + other.flows, at_once: self.at_once + other.at_once }
    }

    /// Fails if no run has room for the demand. `field` is the origin named in the error.
    ///
    /// # Errors
    /// Fails with more flows than a run may have, in total or concurrently.
    pub fn check(self, field: &Field<'_>) -> Result<(), ScenarioError> {
        if self.flows > MAX_FLOWS {
            let message = format!("about {:.3e} flows in the run, each a row of results", self.flows);
            return Err(field.error(format!("{message}; allowed: at most {MAX_FLOWS:.0}")));
        }
        if self.at_once > MAX_OPEN_FLOWS {
            let message = format!("about {:.3e} flows open at once, of some 2.5 kB each", self.at_once);
            return Err(field.error(format!("{message}; allowed: at most {MAX_OPEN_FLOWS:.0}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_start_over_a_long_time_are_not_open_at_once() {
        assert_eq!(Demand::spread_over(1e6, Dur::ZERO), Demand { flows: 1e6, at_once: 1e6 });
        assert_eq!(Demand::spread_over(1e6, Dur::from_secs(100)), Demand { flows: 1e6, at_once: 1e4 });
    }

    #[test]
    fn a_rate_counts_while_the_workload_and_the_run_last() {
        let second = |s| Time::ZERO + Dur::from_secs(s);
        let of = |start, end| Demand::of_rate(10.0, (second(start), second(end)), Dur::from_secs(8)).flows;
        assert_eq!([of(0, 4), of(2, 100), of(9, 20)], [40.0, 60.0, 0.0]);
    }
}
