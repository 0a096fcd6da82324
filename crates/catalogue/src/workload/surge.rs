//! The behaviour of a web user according to SURGE: pages of a base object and embedded objects, with pauses in between.
//!
//! Source: Barford and Crovella, "Generating representative web workloads for network and server performance
//! evaluation", SIGMETRICS 1998. The parameters are unverified: they are those that later work commonly attributes to
//! it.
//!
//! Differences: sizes of objects are independent draws from the distribution of files, without SURGE's popularity and
//! locality of requests. The number of embedded objects is Pareto distributed and rounded up or down at random, which
//! preserves the mean. Of the two parameters of the Weibull distribution, the larger one is taken as the shape: almost
//! all pauses within a page are then below a second.

use crate::workload::draws::{pareto, pareto_left, weibull, weibull_left, weibull_mean};
use crate::workload::{BodyAndTail, SizeDistribution, WorkloadError};
use sparelane_core::{Dur, Stream};

/// The parameters of SURGE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surge {
    /// The sizes of objects in bytes.
    pub files: BodyAndTail,
    /// The minimum number of embedded objects in a page before rounding: the Pareto's k.
    pub embedded_least: f64,
    /// The Pareto's alpha of that number, above 1.
    pub embedded_alpha: f64,
    /// Scale of the Weibull-distributed pause between the objects of a page (active OFF).
    pub active_off_scale: Dur,
    /// Shape of that pause.
    pub active_off_shape: f64,
    /// Minimum of the Pareto-distributed pause after a page (inactive OFF).
    pub inactive_off_least: Dur,
    /// Alpha of that pause, above 1.
    pub inactive_off_alpha: f64,
}

impl Surge {
    /// Returns the published parameters, with objects of at most `largest_bytes`.
    pub fn published(largest_bytes: u64) -> Surge {
        Surge {
            files: BodyAndTail {
                body_mu: 9.357,
                body_sigma: 1.318,
                tail_share: 0.07,
                tail_from_bytes: 133_000,
                tail_alpha: 1.1,
                largest_bytes,
            },
            embedded_least: 1.0,
            embedded_alpha: 2.43,
            active_off_scale: Dur::from_ms(382),
            active_off_shape: 1.46,
            inactive_off_least: Dur::from_secs(1),
            inactive_off_alpha: 1.5,
        }
    }
}

/// The distributions from which users draw.
#[derive(Clone, Debug)]
pub(super) struct Behaviour {
    surge: Surge,
    sizes: SizeDistribution,
}

impl Behaviour {
    /// Creates the distributions of `surge`.
    ///
    /// # Errors
    /// Fails if a parameter is out of bounds.
    pub(super) fn new(surge: Surge) -> Result<Behaviour, WorkloadError> {
        let bounded = [
            ("embedded_least", surge.embedded_least, 0.0),
            ("embedded_alpha", surge.embedded_alpha, 1.0),
            ("active_off_shape", surge.active_off_shape, 0.0),
            ("inactive_off_alpha", surge.inactive_off_alpha, 1.0),
        ];
        // The comparison also rejects NaN.
        let is_above = |value: f64, least: f64| value > least;
        if let Some((name, value, least)) = bounded.into_iter().find(|&(_, value, least)| !is_above(value, least)) {
            return Err(WorkloadError::new(format!("{name} is {value}; allowed: above {least}")));
        }
        Ok(Behaviour { surge, sizes: SizeDistribution::body_and_tail(surge.files)? })
    }

    pub(super) fn size_bytes(&self, stream: &mut Stream) -> u64 {
        self.sizes.draw(stream)
    }

    /// Draws the number of embedded objects of a page.
    pub(super) fn embedded(&self, stream: &mut Stream) -> u32 {
        let number = pareto(self.surge.embedded_least, self.surge.embedded_alpha, stream);
        (number + stream.unit()) as u32
    }

    /// Draws the pause between two objects of a page.
    pub(super) fn active_off(&self, stream: &mut Stream) -> Dur {
        let Surge { active_off_scale, active_off_shape, .. } = self.surge;
        Dur::from_secs_f64(weibull(active_off_scale.as_secs_f64(), active_off_shape, stream))
    }

    /// Draws the pause after a page.
    pub(super) fn inactive_off(&self, stream: &mut Stream) -> Dur {
        let Surge { inactive_off_least, inactive_off_alpha, .. } = self.surge;
        Dur::from_secs_f64(pareto(inactive_off_least.as_secs_f64(), inactive_off_alpha, stream))
    }

    /// Draws the state of a user at a random time, assuming transfers take no time: the remaining pause, and the number
    /// of embedded objects of the page after the next object.
    pub(super) fn at_random(&self, stream: &mut Stream) -> (Dur, u32) {
        let Surge { embedded_least, embedded_alpha, active_off_shape, inactive_off_alpha, .. } = self.surge;
        let (active, inactive) =
            (self.surge.active_off_scale.as_secs_f64(), self.surge.inactive_off_least.as_secs_f64());
        let pareto_mean = |least: f64, alpha: f64| least * alpha / (alpha - 1.0);
        let in_page = pareto_mean(embedded_least, embedded_alpha) * weibull_mean(active, active_off_shape);
        let after_page = pareto_mean(inactive, inactive_off_alpha);
        if stream.unit() * (in_page + after_page) < after_page {
            let pause = pareto_left(inactive, inactive_off_alpha, stream);
            return (Dur::from_secs_f64(pause), self.embedded(stream));
        }
        // Rounding at random leaves as many objects as whole ones fit into the remainder of the Pareto.
        let left = pareto_left(embedded_least, embedded_alpha, stream) as u32;
        (Dur::from_secs_f64(weibull_left(active, active_off_shape, stream)), left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::Domain;

    const DRAWS: u32 = 200_000;

    fn behaviour() -> Behaviour {
        Behaviour::new(Surge::published(1_000_000_000)).unwrap()
    }

    #[test]
    fn a_page_has_at_least_one_embedded_object_and_the_mean_of_the_pareto() {
        let (behaviour, mut stream) = (behaviour(), Stream::new(1, Domain::Test, 0));
        let numbers: Vec<_> = (0..DRAWS).map(|_| behaviour.embedded(&mut stream)).collect();
        assert!(numbers.iter().all(|&number| number >= 1));
        let mean = numbers.iter().map(|&number| f64::from(number)).sum::<f64>() / f64::from(DRAWS);
        assert!((mean - 2.43 / 1.43).abs() < 0.02, "{mean}");
    }

    /// Pages begin at the same rate from the start: one in 3 s + 1.7 x 0.35 s per user, and so do objects.
    #[test]
    fn users_in_random_states_start_at_the_steady_rate() {
        let (behaviour, users) = (behaviour(), 40_000_u32);
        let seconds = 8;
        let (mut pages, mut objects) = (vec![0_u32; seconds], vec![0_u32; seconds]);
        for user in 0..users {
            let mut stream = Stream::new(2, Domain::Test, u64::from(user));
            let (pause, mut left) = behaviour.at_random(&mut stream);
            let (mut at, mut is_base) = (pause, false);
            while at < Dur::from_secs(seconds as u64) {
                let second = at.as_secs_f64() as usize;
                objects[second] += 1;
                pages[second] += u32::from(is_base);
                is_base = left == 0;
                if is_base {
                    at += behaviour.inactive_off(&mut stream);
                    left = behaviour.embedded(&mut stream);
                } else {
                    at += behaviour.active_off(&mut stream);
                    left -= 1;
                }
            }
        }
        let cycle = 3.0 + 2.43 / 1.43 * weibull_mean(0.382, 1.46);
        let expected = f64::from(users) * (1.0 + 2.43 / 1.43) / cycle;
        for (second, &objects) in objects.iter().enumerate() {
            assert!((f64::from(objects) / expected - 1.0).abs() < 0.05, "second {second}: {objects}, not {expected}");
        }
        assert!((f64::from(pages[seconds - 1]) / (f64::from(users) / cycle) - 1.0).abs() < 0.05, "{pages:?}");
    }

    #[test]
    fn a_parameter_without_a_mean_is_refused() {
        let surge = Surge { inactive_off_alpha: 1.0, ..Surge::published(1_000_000) };
        assert_eq!(Behaviour::new(surge).unwrap_err().to_string(), "inactive_off_alpha is 1; allowed: above 1");
    }
}
