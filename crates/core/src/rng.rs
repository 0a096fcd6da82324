//! Seeded randomness by counter: one independent stream per purpose and object.
//!
//! A draw depends on the seed, the stream and how many draws came before it in that stream, and on
//! nothing else. Threads, event order and the other streams cannot change it.

/// What a stream is for. The number is part of the stream's key: never reuse one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Domain {
    /// When flows arrive, and between whom, at one source.
    Arrivals = 1,
    /// How large flows are, at one source.
    Sizes = 2,
    /// Random loss on one link.
    Loss = 3,
    /// One flow's controller.
    Controller = 4,
    /// The choice among equal paths: the seed of one flow, and under it the pick at one router.
    Paths = 6,
    /// The rates of core cables that are drawn at random.
    CoreRates = 8,
    /// By which scheme flows are sent, in one workload.
    Schemes = 7,
    /// Which queues differ from the others.
    Queues = 9,
    /// Early drops, and the hash of flows, at one link.
    ActiveQueue = 20,
    /// When datagrams are sent, at one source of cross traffic.
    CrossTraffic = 30,
    /// How long acknowledgments wait at one host.
    AckDelay = 31,
    /// How late the timers of one flow's sender are.
    TimerError = 32,
    /// When one host does not take what its interface has.
    Stalls = 33,
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

/// The streams of all objects in one domain, for those who need many.
#[derive(Clone, Copy, Debug)]
pub struct Streams(u64);

impl Streams {
    /// The streams in `domain`, under `seed`.
    pub const fn new(seed: u64, domain: Domain) -> Streams {
        Streams(mix(seed ^ GOLDEN).wrapping_add(mix((domain as u64).wrapping_mul(GOLDEN))))
    }

    /// The stream of object number `index`.
    pub const fn of(self, index: u64) -> Stream {
        Stream { key: mix(self.0 ^ mix(index.wrapping_add(GOLDEN))), counter: 0 }
    }
}

impl Stream {
    /// The stream of object number `index` in `domain`, under `seed`.
    pub const fn new(seed: u64, domain: Domain, index: u64) -> Stream {
        Streams::new(seed, domain).of(index)
    }

    /// 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(1);
        mix(mix(self.counter.wrapping_mul(GOLDEN) ^ self.key).wrapping_add(self.key))
    }

    /// A uniform number in [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform number in (0, 1]: safe to take the logarithm of.
    pub fn unit_above_zero(&mut self) -> f64 {
        1.0 - self.unit()
    }

    /// A uniform whole number below `bound`, which must not be zero. The bias is below 2^-32 for bounds below 2^32.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw below zero has no answer");
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
