//! BASS, Buffering-Aware Spike Smoothing: removes the noise of buffering from the gaps of a p-stream (section IV-D).
//!
//! Some devices collect packets and hand them on together, for example an interface that coalesces interrupts. The
//! first packet of such an event then shows a receive gap that is far too long (a spike), and the others show gaps
//! that are far too short (dips). The average over a whole event is right. BASS finds the events and replaces the gaps
//! of each by their average send gap and average receive gap. It repeats this up to three times.
//!
//! The paper gives the idea but not the thresholds (its source is Yin, Kaur, Smith, ICNP 2014). This implementation
//! reads it as:
//! - A spike is a receive gap that exceeds the previous one by more than a threshold: [`Bass::factor`] medians of the
//!   receive gaps, and at least [`Bass::floor`]. The authors' logs use 50 us at 1 Gb/s.
//! - An event ends before the next spike. It also ends once the delayed packets have caught up (the receive gaps add
//!   up to no more than the send gaps) and the next gap is not a dip (it is longer than half its send gap).
//! - The event at the end of a p-stream is usually incomplete, so it is carried over to the next p-stream, as in the
//!   logs.

use sparelane_core::Dur;

/// The thresholds of BASS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bass {
    /// The maximum number of passes; zero leaves all gaps unchanged.
    pub passes: u32,
    /// The increase over the previous gap that makes a spike, in medians of the receive gaps.
    pub factor: f64,
    /// The minimum increase that makes a spike.
    pub floor: Dur,
}

/// A send gap and a receive gap, or the averages of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The gap at which the packet was sent.
    pub send: Dur,
    /// The gap at which it arrived.
    pub receive: Dur,
}

impl Bass {
    /// Smooths `gaps` in place. `in_event` is set if the first gap is the spike of an event carried over.
    /// Returns the index at which the incomplete event at the end begins. The gaps from there on are unchanged and
    /// belong to the next p-stream.
    pub fn smooth(&self, gaps: &mut [Pair], in_event: bool) -> usize {
        let mut end = gaps.len();
        for pass in 0..self.passes {
            let spikes = self.spikes(&gaps[..end], in_event && pass == 0);
            if spikes.is_empty() {
                break;
            }
            for (at, &start) in spikes.iter().enumerate() {
                let next = spikes.get(at + 1).copied();
                match event_end(&gaps[..next.unwrap_or(end)], start) {
                    Some(stop) => average(&mut gaps[start..stop]),
                    // The next spike ends an event that has not caught up.
                    None if next.is_some() => average(&mut gaps[start..next.unwrap_or(end)]),
                    // Only the first pass may cut off an incomplete event: later passes see averages, which must stay.
                    None if pass == 0 => {
                        end = start;
                        break;
                    }
                    None => {}
                }
            }
        }
        end
    }

    /// Returns the indices of the spikes.
    fn spikes(&self, gaps: &[Pair], in_event: bool) -> Vec<usize> {
        let mut receive: Vec<Dur> = gaps.iter().map(|gap| gap.receive).collect();
        if receive.is_empty() {
            return Vec::new();
        }
        let middle = receive.len() / 2;
        let (_, median, _) = receive.select_nth_unstable(middle);
        let threshold = Dur::from_ps((median.as_ps() as f64 * self.factor) as u64).max(self.floor);
        let first = in_event.then_some(0);
        let rises = |pair: &[Pair]| pair[1].receive.saturating_sub(pair[0].receive) > threshold;
        let others = gaps.windows(2).enumerate().filter(|(_, pair)| rises(pair)).map(|(at, _)| at + 1);
        first.into_iter().chain(others).collect()
    }
}

/// Returns the end (exclusive) of the event that begins at `start`, or `None` if it does not catch up within `gaps`.
fn event_end(gaps: &[Pair], start: usize) -> Option<usize> {
    let (mut send, mut receive) = (Dur::ZERO, Dur::ZERO);
    for (at, gap) in gaps.iter().enumerate().skip(start) {
        send += gap.send;
        receive += gap.receive;
        let has_caught_up = receive <= send;
        let dips_on = gaps.get(at + 1).is_some_and(|next| next.receive + next.receive <= next.send);
        if has_caught_up && !dips_on {
            return Some(at + 1);
        }
    }
    None
}

/// Replaces each of `gaps` by their average.
fn average(gaps: &mut [Pair]) {
    let count = gaps.len() as u64;
    let send = gaps.iter().fold(Dur::ZERO, |sum, gap| sum + gap.send);
    let receive = gaps.iter().fold(Dur::ZERO, |sum, gap| sum + gap.receive);
    gaps.fill(Pair { send: Dur::from_ps(send.as_ps() / count), receive: Dur::from_ps(receive.as_ps() / count) });
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASS: Bass = Bass { passes: 3, factor: 2.0, floor: Dur::from_us(5) };

    /// Builds pairs from send gaps and receive gaps in microseconds.
    fn gaps(sent: &[u64], received: &[u64]) -> Vec<Pair> {
        let pair = |(&send, &receive): (&u64, &u64)| Pair { send: Dur::from_us(send), receive: Dur::from_us(receive) };
        sent.iter().zip(received).map(pair).collect()
    }

    fn received(gaps: &[Pair]) -> Vec<u64> {
        gaps.iter().map(|gap| gap.receive.as_ps() / 1_000_000).collect()
    }

    /// Packets every 10 us are handed over four at a time; the last three still wait for a fourth.
    #[test]
    fn events_are_averaged_and_an_incomplete_event_is_carried_over() {
        let mut stream = gaps(&[10; 11], &[37, 1, 1, 1, 37, 1, 1, 1, 37, 1, 1]);
        let end = BASS.smooth(&mut stream, true);
        assert_eq!(end, 8);
        assert_eq!(received(&stream[..end]), [10; 8]);
        assert_eq!(received(&stream[end..]), [37, 1, 1], "unchanged");
    }

    /// The same with a bottleneck that passes a packet every 12 us.
    #[test]
    fn queueing_shows_through_the_events() {
        let mut stream = gaps(&[10; 8], &[45, 1, 1, 1, 45, 1, 1, 1]);
        let end = BASS.smooth(&mut stream, true);
        assert_eq!(end, 4, "the second event may continue");
        assert_eq!(stream[..4], [Pair { send: Dur::from_us(10), receive: Dur::from_us(12) }; 4]);
    }

    /// A burst of cross traffic delays one packet by 30 us; the packets behind it arrive as fast as the link allows.
    #[test]
    fn a_burst_is_averaged_until_the_delayed_packets_have_caught_up() {
        let mut stream = gaps(&[10; 10], &[10, 10, 40, 5, 5, 5, 5, 5, 5, 10]);
        let end = BASS.smooth(&mut stream, false);
        assert_eq!(end, 10);
        assert_eq!(received(&stream), [10; 10]);
    }

    #[test]
    fn gaps_without_spikes_are_unchanged() {
        let smooth = gaps(&[10, 10, 9, 9, 8, 8], &[10, 11, 9, 10, 9, 10]);
        let mut stream = smooth.clone();
        assert_eq!(BASS.smooth(&mut stream, false), 6);
        assert_eq!(stream, smooth);
    }

    #[test]
    fn without_passes_spikes_stay() {
        let mut stream = gaps(&[10; 4], &[10, 37, 1, 1]);
        assert_eq!(Bass { passes: 0, ..BASS }.smooth(&mut stream, false), 4);
        assert_eq!(received(&stream), [10, 37, 1, 1]);
    }

    /// Three events of two packets have averages that still rise and fall: the second pass treats them as one event.
    #[test]
    fn a_second_pass_smooths_the_averages_of_the_first() {
        let smoothed = |passes| {
            let mut stream = gaps(&[10; 8], &[10, 30, 0, 25, 1, 7, 1, 10]);
            let end = Bass { passes, factor: 0.0, floor: Dur::from_us(4) }.smooth(&mut stream, false);
            received(&stream[..end])
        };
        assert_eq!(smoothed(1), [10, 15, 15, 13, 13, 4, 4, 10]);
        assert_eq!(smoothed(2), [10, 10, 10, 10, 10, 10, 10, 10]);
    }
}
