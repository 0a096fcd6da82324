//! A histogram of the time by which packets were late, with eight bins per octave, from a nanosecond to hours.

use sparelane_core::Dur;

const BINS_PER_OCTAVE: u64 = 8;
const BINS: usize = 512;

/// A histogram of lateness. Memory is constant, and percentiles are exact to an eighth.
#[derive(Clone, Debug)]
pub struct Lateness {
    bins: Box<[u64; BINS]>,
    count: u64,
    max: Dur,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { bins: Box::new([0; BINS]), count: 0, max: Dur::ZERO }
    }
}

/// Returns the bin of a number of nanoseconds: one bin per nanosecond below eight, then eight bins per octave.
fn bin(ns: u64) -> usize {
    if ns < BINS_PER_OCTAVE {
        return ns as usize;
    }
    let octave = u64::from(ns.ilog2()) - 3;
    ((octave + 1) * BINS_PER_OCTAVE + ((ns >> octave) - BINS_PER_OCTAVE)) as usize
}

/// Returns the largest number of nanoseconds that belongs to a bin.
fn upper(bin: usize) -> u64 {
    let bin = bin as u64;
    if bin < BINS_PER_OCTAVE {
        return bin;
    }
    let (octave, step) = (bin / BINS_PER_OCTAVE - 1, bin % BINS_PER_OCTAVE);
    ((BINS_PER_OCTAVE + step + 1) << octave) - 1
}

impl Lateness {
    /// Adds a packet that was late by this time.
    pub fn add(&mut self, late: Dur) {
        self.bins[bin(late.as_ps() / 1_000).min(BINS - 1)] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    /// Returns the number of packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the largest lateness.
    pub fn max(&self) -> Dur {
        self.max
    }

    /// Returns the lateness that a `share` of the packets did not exceed, exact to an eighth; zero without packets.
    pub fn percentile(&self, share: f64) -> Dur {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (place, &count) in self.bins.iter().enumerate() {
            seen += count;
            if seen >= wanted && seen > 0 {
                return Dur::from_ns(upper(place)).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_contiguous_and_at_most_an_eighth_wide() {
        for ns in (0..100_000).chain([1 << 40, (1 << 50) + 12345]) {
            let bin = bin(ns);
            let (most, least) = (upper(bin), if bin == 0 { 0 } else { upper(bin - 1) + 1 });
            assert!((least..=most).contains(&ns), "{ns} is in bin {bin}, {least} to {most}");
            assert!(most - least <= ns / 8, "{ns}: {least} to {most}");
        }
    }

    #[test]
    fn percentiles_are_exact_to_an_eighth() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.percentile(0.99), Dur::ZERO);
        (1..=1000).for_each(|us| lateness.add(Dur::from_us(us)));
        assert_eq!((lateness.count(), lateness.max()), (1000, Dur::from_ms(1)));
        for (share, us) in [(0.5, 500), (0.99, 990)] {
            let found = lateness.percentile(share).as_ps() / 1_000_000;
            assert!((us..=us + us / 8).contains(&found), "{share}: {found} us");
        }
        assert_eq!(lateness.percentile(1.0), Dur::from_ms(1));
    }
}
