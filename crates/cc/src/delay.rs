//! LEDBAT's delay measurement: a base delay over the last minutes, and a current delay over the last few samples.
//!
//! Source: RFC 6817 section 2.4.2 (update_base_delay, update_current_delay).

use crate::param::{DefaultValue, Kind, Param, Unit, Values};
use sparelane_core::{Dur, Time};
use std::collections::VecDeque;

/// The number of minutes over which the base delay is remembered.
pub const BASE_HISTORY: Param = Param {
    name: "base_history",
    kind: Kind::Whole { min: 1, max: 60, unit: Unit::One },
    default: DefaultValue::Whole(10),
    meaning: "minutes over which the minimum delay counts as that of an empty path",
    source: "RFC 6817 section 2.5",
};

/// The number of samples whose minimum is the current delay.
pub const CURRENT_FILTER: Param = Param {
    name: "current_filter",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::One },
    default: DefaultValue::Whole(4),
    meaning: "number of latest samples whose minimum counts as the current delay",
    source: "RFC 6817 section 2.5 asks for 1 or more; 4 in ns-3",
};

const MINUTE: Dur = Dur::from_secs(60);

/// The delay history of one path.
#[derive(Clone, Debug)]
pub struct Delays {
    /// The minimum of each of the last minutes that had samples, the newest last.
    minima: VecDeque<Dur>,
    minute: u64,
    history: usize,
    /// The latest samples, the newest last.
    samples: VecDeque<Dur>,
    filter: usize,
}

impl Delays {
    /// Creates an empty history from the values of a controller that declares these parameters.
    pub fn of(values: &Values) -> Delays {
        Delays::new(values.whole(&BASE_HISTORY) as usize, values.whole(&CURRENT_FILTER) as usize)
    }

    /// Creates an empty history over `history` minutes and `filter` samples.
    pub fn new(history: usize, filter: usize) -> Delays {
        Delays { minima: VecDeque::new(), minute: 0, history, samples: VecDeque::new(), filter }
    }

    /// Adds a sample.
    pub fn update(&mut self, now: Time, delay: Dur) {
        let minute = now.as_ps() / MINUTE.as_ps();
        match self.minima.back_mut() {
            Some(least) if minute == self.minute => *least = delay.min(*least),
            _ => {
                if self.minima.len() == self.history {
                    self.minima.pop_front();
                }
                self.minima.push_back(delay);
                self.minute = minute;
            }
        }
        if self.samples.len() == self.filter {
            self.samples.pop_front();
        }
        self.samples.push_back(delay);
    }

    /// Returns the delay of the empty path, if there is a sample.
    pub fn base(&self) -> Option<Dur> {
        self.minima.iter().min().copied()
    }

    /// Returns the current queueing delay, if there is a sample.
    pub fn queuing(&self) -> Option<Dur> {
        Some(self.samples.iter().min()?.saturating_sub(self.base()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_the_least_of_the_last_samples_above_the_least_of_the_last_minutes() {
        let mut delays = Delays::new(2, 3);
        assert_eq!(delays.queuing(), None);
        let mut at = |seconds: u64, delay_ms: u64| {
            delays.update(Time::ZERO + Dur::from_secs(seconds), Dur::from_ms(delay_ms));
            (delays.base(), delays.queuing())
        };
        let ms = |base, queuing| (Some(Dur::from_ms(base)), Some(Dur::from_ms(queuing)));
        assert_eq!(at(0, 50), ms(50, 0));
        assert_eq!(at(1, 20), ms(20, 0));
        assert_eq!([at(2, 90), at(3, 70), at(4, 80)], [ms(20, 0), ms(20, 0), ms(20, 50)]);
        // Two minutes later, the 20 ms of the first minute are forgotten.
        assert_eq!(at(61, 60), ms(20, 40));
        assert_eq!(at(119, 65), ms(20, 40));
        assert_eq!(at(120, 75), ms(60, 0));
    }
}
