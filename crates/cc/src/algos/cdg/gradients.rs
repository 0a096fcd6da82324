//! CDG's gradients: the changes of the minimum and maximum round-trip times from round to round.

use crate::contract::Ack;
use sparelane_core::Dur;
use std::collections::VecDeque;

/// Smaller changes of a sum of gradients count as noise when its sign is tested.
const NOISE_PS: i64 = 32_000_000;

/// Maximum number of single-segment acknowledgments that are distrusted after acknowledgments of several segments.
const MOST_DISTRUST: u32 = 5;

/// The extreme round-trip times of a round, or their change between two rounds, picoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Extremes {
    least: i64,
    largest: i64,
}

impl Extremes {
    fn add(&mut self, other: Extremes) {
        self.least += other.least;
        self.largest += other.largest;
    }

    const fn minus(self, other: Extremes) -> Extremes {
        Extremes { least: self.least - other.least, largest: self.largest - other.largest }
    }
}

/// The state of the queue inferred from the gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// No inference yet.
    Unknown,
    /// The maximum round-trip time rises with the minimum, or falls.
    NotFull,
    /// The minimum round-trip time rises, and the maximum no longer can.
    Full,
}

/// The sums of the last gradients.
#[derive(Clone, Debug)]
pub struct Gradients {
    /// Number of gradients in a sum.
    window: usize,
    rtt: Option<Extremes>,
    rtt_before: Option<Extremes>,
    /// The last gradients, the newest last.
    gradients: VecDeque<Extremes>,
    sum: Extremes,
    /// Number of single-segment acknowledgments to come that may be delayed ones.
    distrust: u32,
    queue: Queue,
}

impl Gradients {
    /// Creates sums over the last `window` gradients, initially without any.
    pub fn over(window: usize) -> Gradients {
        Gradients {
            window,
            rtt: None,
            rtt_before: None,
            gradients: VecDeque::new(),
            sum: Extremes::default(),
            distrust: 0,
            queue: Queue::Unknown,
        }
    }

    /// Adds the round-trip time of the handshake before any other sample.
    pub fn begin(&mut self, handshake: Dur) {
        let rtt = handshake.as_ps() as i64;
        self.rtt = Some(Extremes { least: rtt, largest: rtt });
    }

    /// Adds a round-trip time. An acknowledgment of one segment, after ones of several, may have been delayed by the
    /// receiver: it only counts if it is the minimum of its round.
    pub fn sample(&mut self, ack: &Ack, mss_bytes: u64) {
        let Some(rtt) = ack.rtt.filter(|_| ack.acked_bytes > 0) else { return };
        let rtt = rtt.as_ps() as i64;
        let is_one = ack.acked_bytes <= mss_bytes;
        let is_plain = ack.delivered_bytes == ack.acked_bytes;
        if is_plain && is_one && self.distrust > 0 {
            self.distrust -= 1;
            if let Some(extremes) = &mut self.rtt {
                extremes.least = extremes.least.min(rtt);
            }
            return;
        }
        if is_plain && !is_one {
            self.distrust = (self.distrust + 1).min(MOST_DISTRUST);
        }
        let Extremes { least, largest } = self.rtt.unwrap_or(Extremes { least: rtt, largest: rtt });
        self.rtt = Some(Extremes { least: least.min(rtt), largest: largest.max(rtt) });
    }

    /// Returns the minimum round-trip time of this round so far.
    pub fn least_rtt(&self) -> Option<Dur> {
        self.rtt.map(|rtt| Dur::from_ps(rtt.least.unsigned_abs()))
    }

    /// Ends a round. Returns the sum that counts in picoseconds, if this round and the previous one had samples.
    pub fn end_round(&mut self) -> Option<i64> {
        let rtt = self.rtt.take()?;
        let before = self.rtt_before.replace(rtt)?;
        Some(self.sum_with(rtt.minus(before)))
    }

    /// Ends a round in which the window was reduced: only the next round is compared with it.
    pub fn skip_round(&mut self) {
        self.rtt_before = self.rtt.take();
        self.queue = Queue::Unknown;
    }

    /// Returns true if a sum falls by more than noise.
    pub const fn is_falling(&self) -> bool {
        self.sum.least <= -NOISE_PS || self.sum.largest <= -NOISE_PS
    }

    /// Returns the inferred state of the queue.
    pub const fn queue(&self) -> Queue {
        self.queue
    }

    /// Reports the sums.
    pub fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("least_gradients_s", self.sum.least as f64 / 1e12);
        put("largest_gradients_s", self.sum.largest as f64 / 1e12);
    }

    /// Adds the gradient of a round. Returns the sum that counts, scaled to a full window of gradients, in picoseconds.
    fn sum_with(&mut self, newest: Extremes) -> i64 {
        if self.gradients.len() == self.window {
            let oldest = self.gradients.pop_front().unwrap_or_default();
            self.sum = self.sum.minus(oldest);
        }
        self.gradients.push_back(newest);
        self.sum.add(newest);

        let Extremes { least, largest } = self.sum;
        if least >= NOISE_PS && largest < NOISE_PS {
            self.queue = Queue::Full;
        } else if least >= NOISE_PS || largest <= -NOISE_PS {
            self.queue = Queue::NotFull;
        }
        let sum = if least > 0 { least } else { largest };
        sum * self.window as i64 / self.gradients.len() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn the_sum_is_of_the_last_gradients_of_the_least_or_else_of_the_largest() {
        let mut law = Gradients::over(4);
        let mut sum = |least, largest| law.sum_with(Extremes { least, largest });
        assert_eq!(sum(30, 0), 120, "one gradient, times 4");
        assert_eq!(sum(-10, 5), 40, "two gradients that add up to 20, times 2");
        assert_eq!(sum(-20, 4), 12, "three gradients that add up to 0 (least) and 9 (largest), times 4/3");
        assert_eq!(sum(-5, 1), 10);
        assert_eq!(sum(100, 0), 65, "without the first: -10 - 20 - 5 + 100");
    }

    #[test]
    fn one_segment_alone_after_two_at_once_counts_only_as_the_least() {
        let mut law = Gradients::over(8);
        let mut after = |segments: u64, rtt_ms| {
            let rtt = Some(Dur::from_ms(rtt_ms));
            law.sample(&Ack { rtt, ..Ack::in_sequence(segments * MSS) }, MSS);
            law.rtt.map(|rtt| (rtt.least / 1_000_000_000, rtt.largest / 1_000_000_000))
        };
        assert_eq!(after(2, 100), Some((100, 100)));
        assert_eq!(after(1, 140), Some((100, 100)));
        assert_eq!(after(1, 140), Some((100, 140)), "only the first single segment after two is ignored");
        assert_eq!([after(2, 120), after(1, 90)], [Some((100, 140)), Some((90, 140))]);
    }
}
