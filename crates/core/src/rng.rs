//! Counter-based seeded randomness: one independent stream per purpose and object.
//!
//! A draw depends only on the seed, the stream and the number of earlier draws in that stream. Threads, the order of
//! events and other streams cannot change it.

/// The purpose of a stream. The number is part of the stream's key: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Domain {
    /// Arrival times and endpoints of flows at one source.
    Arrivals = 1,
    /// Flow sizes at one source.
    Sizes = 2,
    /// Random loss on one link.
    Loss = 3,
    /// One flow's controller.
    Controller = 4,
    /// The choice among equal-cost paths: the seed of one flow, and below it the choice at one router.
    Paths = 6,
    /// Randomly drawn rates of core cables.
    CoreRates = 8,
    /// The scheme of each flow in one workload.
    Schemes = 7,
    /// The choice of queues that differ from the others.
    Queues = 9,
    /// Early drops and flow hashes at one link.
    ActiveQueue = 20,
    /// Departure times of datagrams at one source of cross traffic.
    CrossTraffic = 30,
    /// Delays of acknowledgments at one host.
    AckDelay = 31,
    /// Timer errors of one flow's sender.
    TimerError = 32,
    /// Stalls of one host's receive processing.
    Stalls = 33,
    /// States and losses of bursts on one link.
    BurstLoss = 34,
    /// Corrupted packets on one link.
    Corruption = 35,
    /// Variations of the delay of one link.
    Jitter = 36,
    /// Packets that one link holds back.
    Reordering = 37,
    /// Packets that one link doubles.
    Duplication = 38,
    /// The path of each packet of a flow.
    Spraying = 40,
    /// Marks by a probability that rises with the backlog.
    Marking = 41,
    /// Random tests and generated scenarios.
    Test = 5,
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream {
    key: u64,
    counter: u64,
}

/// David Stafford's thirteenth variant of the 64-bit finalizer (as in SplitMix64).
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The streams of all objects in one domain. Cheaper than [`Stream::new`] for many objects.
#[derive(Clone, Copy, Debug)]
pub struct Streams(u64);

impl Streams {
    /// Creates the streams of `domain` under `seed`.
    pub const fn new(seed: u64, domain: Domain) -> Streams {
        Streams(mix(seed ^ GOLDEN).wrapping_add(mix((domain as u64).wrapping_mul(GOLDEN))))
    }

    /// Returns the stream of object number `index`.
    pub const fn of(self, index: u64) -> Stream {
        Stream { key: mix(self.0 ^ mix(index.wrapping_add(GOLDEN))), counter: 0 }
    }
}

impl Stream {
    /// Creates the stream of object number `index` in `domain` under `seed`.
    pub const fn new(seed: u64, domain: Domain, index: u64) -> Stream {
        Streams::new(seed, domain).of(index)
    }

    /// Returns 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        mix(mix(self.counter.wrapping_mul(GOLDEN) ^ self.key).wrapping_add(self.key))
    }

    /// Returns a uniform number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a uniform number in (0, 1], which has a finite logarithm.
    pub fn unit_above_zero(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// Returns a uniform whole number below `bound`. The bias is below 2^-32 for bounds below 2^32.
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "the bound of a draw must be above zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_gives_the_same_numbers_and_another_does_not() {
        let draw = |seed, domain, index| {
            let mut stream = Stream::new(seed, domain, index);
            [stream.next_u64(), stream.next_u64(), stream.next_u64()]
        };
        let base = draw(1, Domain::Loss, 0);
        assert_eq!(base, draw(1, Domain::Loss, 0));
        for other in [draw(2, Domain::Loss, 0), draw(1, Domain::Sizes, 0), draw(1, Domain::Loss, 1)] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn uniform_draws_have_the_moments_of_a_uniform() {
        let mut stream = Stream::new(3, Domain::Test, 0);
        let n = 200_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = stream.unit();
            assert!((0.0..1.0).contains(&x));
            sum += x;
            squares += x * x;
        }
        assert!((sum / f64::from(n) - 0.5).abs() < 0.003);
        assert!((squares / f64::from(n) - 1.0 / 3.0).abs() < 0.003);
    }

    #[test]
    fn bounded_draws_reach_every_value_and_no_other() {
        let mut stream = Stream::new(4, Domain::Test, 0);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[stream.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (9_000..11_000).contains(&count)), "{seen:?}");
    }
}
