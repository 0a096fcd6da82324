//! The bandwidth estimator: computes the available bandwidth from the send and receive gaps of a p-stream (sections
//! II, IV-D).
//!
//! A packet whose receive gap is longer than its send gap queued at the bottleneck, so its rate exceeded the available
//! bandwidth. ABest is the largest rate beyond which packets queue consistently. That is the rate just before an
//! excursion (a run of packets over which the queue grows) that lasts to the end of the p-stream. It is the highest
//! rate if there is no excursion, and the lowest if the excursion starts with the p-stream. Excursions are found in
//! smoothed gaps; rates are those of the packets themselves.
//!
//! The paper leaves the meaning of "consistently" to its source. The authors' logs require four of eight packets, and
//! a gap that is longer by 1 to 2 us at 10 Gb/s (about 5 to 10 % of the gap of two packets). Here an excursion begins
//! where the queue was shortest, after allowing for the share [`Excursion::share`] of the send gaps. At least the
//! share [`Excursion::persistence`] of its packets must have been delayed. Summing many gaps averages out the noise of
//! single gaps, which a decision per packet does not.

use super::bass::{Bass, Pair};
use sparelane_core::Rate;

/// The definition of an excursion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excursion {
    /// The share by which the receive gap of a delayed packet exceeds its send gap. A whole excursion must exceed it
    /// as well.
    pub share: f64,
    /// The minimum share of delayed packets in an excursion.
    pub persistence: f64,
    /// The minimum number of samples in an excursion.
    pub samples: u32,
}

impl Excursion {
    /// Returns the index at which the excursion that lasts to the end of `gaps` begins, if there is one.
    pub fn find(&self, gaps: &[Pair]) -> Option<usize> {
        let (mut growth, mut most, mut start) = (0.0, 0.0, gaps.len());
        for (at, gap) in gaps.iter().enumerate().rev() {
            growth += self.growth(gap);
            // The start with the largest growth up to the end is where the queue was shortest.
            if growth > most && gaps.len() - at >= self.samples as usize {
                (most, start) = (growth, at);
            }
        }
        let row = &gaps[start..];
        let waited = row.iter().filter(|gap| self.growth(gap) > 0.0).count();
        (!row.is_empty() && waited as f64 >= self.persistence * row.len() as f64).then_some(start)
    }

    /// Returns the growth of the queue before a packet, beyond the allowed share, in picoseconds.
    fn growth(&self, gap: &Pair) -> f64 {
        gap.receive.as_ps() as f64 - gap.send.as_ps() as f64 * (1.0 + self.share)
    }
}

/// One sample of a p-stream: the gaps between two packets with known arrival times, and the rate that the second one
/// probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The gaps.
    pub gap: Pair,
    /// The probed rate, including headers.
    pub rate: Rate,
}

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub struct Estimator {
    bass: Bass,
    excursion: Excursion,
    /// Samples of an incomplete event that the last p-stream left.
    carried: Vec<Sample>,
    /// The maximum number of carried samples.
    most_carried: usize,
    gaps: Vec<Pair>,
}

impl Estimator {
    /// Creates an estimator that carries at most `most_carried` samples from one p-stream to the next.
    pub fn new(bass: Bass, excursion: Excursion, most_carried: usize) -> Estimator {
        Estimator { bass, excursion, carried: Vec::new(), most_carried, gaps: Vec::new() }
    }

    /// Returns the available bandwidth (ABest) from the samples of a p-stream, in order; `None` for fewer than two
    /// samples.
    pub fn estimate(&mut self, samples: &[Sample]) -> Option<Rate> {
        if samples.len() < 2 {
            self.forget();
            return None;
        }
        // An event that the previous p-stream left incomplete continues with this one.
        let in_event = !self.carried.is_empty();
        self.carried.extend_from_slice(samples);
        self.gaps.clear();
        self.gaps.extend(self.carried.iter().map(|sample| sample.gap));
        let end = self.bass.smooth(&mut self.gaps, in_event);
        let highest = samples.iter().map(|sample| sample.rate).max()?;
        let lowest = samples.iter().map(|sample| sample.rate).min()?;
        let estimate = match self.excursion.find(&self.gaps[..end]) {
            None => highest,
            Some(0) => lowest,
            Some(start) => self.carried[start - 1].rate,
        };
        // Keep the incomplete event at the end for the next p-stream, within bounds.
        self.carried.drain(..end);
        let excess = self.carried.len().saturating_sub(self.most_carried);
        self.carried.drain(..excess);
        Some(estimate)
    }

    /// Discards the carried samples, because the next p-stream does not continue the last.
    pub fn forget(&mut self) {
        self.carried.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::Dur;

    const EXCURSION: Excursion = Excursion { share: 0.02, persistence: 0.5, samples: 2 };
    const BASS: Bass = Bass { passes: 3, factor: 2.0, floor: Dur::from_us(5) };

    fn estimator(bass: Bass) -> Estimator {
        Estimator::new(bass, EXCURSION, 64)
    }

    /// Two packets at each of 1, 2, 4 and 8 Gb/s: gaps of 80, 40, 20 and 10 us.
    fn stream(received: [u64; 8]) -> Vec<Sample> {
        let sample = |(index, &receive): (usize, &u64)| {
            let gap = Pair { send: Dur::from_us(80 >> (index / 2)), receive: Dur::from_us(receive) };
            Sample { gap, rate: Rate::from_gbps(1 << (index / 2)) }
        };
        received.iter().enumerate().map(sample).collect()
    }

    fn gbps(received: [u64; 8]) -> Option<u64> {
        estimator(BASS).estimate(&stream(received)).map(|rate| rate.as_bps() / 1_000_000_000)
    }

    #[test]
    fn the_estimate_is_the_rate_before_the_excursion_that_lasts_to_the_end() {
        assert_eq!(gbps([80, 80, 40, 40, 20, 20, 15, 15]), Some(4));
        assert_eq!(gbps([80, 80, 40, 40, 25, 25, 25, 25]), Some(2));
    }

    #[test]
    fn without_an_excursion_it_is_the_highest_rate_and_with_a_full_one_the_lowest() {
        assert_eq!(gbps([80, 80, 40, 40, 20, 20, 10, 10]), Some(8));
        assert_eq!(gbps([90, 90, 90, 90, 90, 90, 90, 90]), Some(1));
    }

    #[test]
    fn an_excursion_that_ends_does_not_count() {
        assert_eq!(gbps([80, 80, 45, 45, 18, 18, 9, 9]), Some(8));
    }

    #[test]
    fn one_packet_without_delay_does_not_end_an_excursion() {
        assert_eq!(gbps([80, 80, 40, 40, 25, 20, 15, 15]), Some(2));
    }

    /// The bottleneck has 4 Gb/s, and packets are handed over four at a time. Three in four raw gaps are dips, so no
    /// packet seems to be delayed.
    #[test]
    fn without_bass_dips_hide_the_queue() {
        let sample = |(index, receive): (usize, u64)| {
            let level = (index / 4).min(3);
            let gap = Pair { send: Dur::from_us(80 >> level), receive: Dur::from_us(receive) };
            Sample { gap, rate: Rate::from_gbps(1 << level) }
        };
        let received = [320, 0, 0, 0, 160, 0, 0, 0, 80, 0, 0, 0, 80, 0, 0, 0, 80, 0];
        let samples: Vec<Sample> = received.into_iter().enumerate().map(sample).collect();
        let mut without = estimator(Bass { passes: 0, ..BASS });
        assert_eq!(without.estimate(&samples), Some(Rate::from_gbps(8)));
        let mut with = estimator(Bass { passes: 1, ..BASS });
        assert_eq!(with.estimate(&samples), Some(Rate::from_gbps(4)));
        assert_eq!(with.carried.len(), 2, "the last event may continue");
    }

    /// A growth of 2 % is allowed for; noise around the send gaps makes no excursion.
    #[test]
    fn noise_without_growth_is_no_excursion() {
        assert_eq!(gbps([84, 76, 42, 38, 21, 19, 12, 8]), Some(8));
        assert_eq!(gbps([80, 80, 40, 40, 20, 20, 8, 12]), Some(8), "the last two packets together took no longer");
    }

    #[test]
    fn a_single_sample_gives_no_estimate() {
        assert_eq!(estimator(BASS).estimate(&stream([80; 8])[..1]), None);
    }
}
