//! BASS, Buffering-Aware Spike Smoothing (section IV-D): takes the noise of buffering out of the gaps of a p-stream.
//!
//! Where packets wait somewhere and are then handed on together (an interface that coalesces interrupts), the first of
//! them shows a gap that is far too long, a spike, and the others gaps that are far too short, dips. The average over one whole
//! such event is right. So BASS finds the events, and puts the averages of the send gaps and of the receive gaps of each in the
//! place of its gaps; up to three times.
//!
//! The paper names the idea and not the thresholds (its source is Yin, Kaur, Smith, ICNP 2014). The readings taken here:
//! - A spike is a receive gap that exceeds the one before it by more than the threshold: [`Bass::factor`] medians of the receive gaps,
//!   and [`Bass::floor`] at least. The authors' logs have 50 us, at 1 Gb/s.
//! - An event ends before the next spike, or where what the spike delayed has caught up (its receive gaps add up to no more than
//!   its send gaps) and the next gap is no dip (more than half of its send gap).
//! - The event at the end of a p-stream is mostly incomplete: it is left to the next p-stream, as in the logs.

use sparelane_core::Dur;

/// Thresholds of BASS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bass {
    /// At most so many passes; zero leaves all gaps as they are.
    pub passes: u32,
    /// A spike exceeds the gap before it by so many medians of the gaps,
    pub factor: f64,
    /// and by this at least.
    pub floor: Dur,
}

/// A send gap and a receive gap, or their averages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// The gap with which the packet was sent.
    pub send: Dur,
    /// The gap with which it arrived.
    pub receive: Dur,
}

impl Bass {
    /// Smooths `gaps`; `in_event` tells that the first is a spike. Returns where the incomplete event at the end begins: those
    /// gaps are as they were, and belong in front of the next p-stream's.
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
                    None if next.is_some() => average(&mut gaps[start..next.unwrap_or(end)]),
                    // What later passes take for an event has averages in it: it stays.
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

    /// Where spikes are.
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

/// One past the event that begins at `start`, if it ends within `gaps` by having caught up.
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

/// Puts the averages in the place of `gaps`.
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

    /// Gaps in microseconds: sent, received.
    fn gaps(sent: &[u64], received: &[u64]) -> Vec<Pair> {
        let pair = |(&send, &receive): (&u64, &u64)| Pair { send: Dur::from_us(send), receive: Dur::from_us(receive) };
        sent.iter().zip(received).map(pair).collect()
    }

    fn received(gaps: &[Pair]) -> Vec<u64> {
        gaps.iter().map(|gap| gap.receive.as_ps() / 1_000_000).collect()
    }

    /// Packets every 10 us, handed over four at a time; the last three wait for a fourth.
    #[test]
    fn events_are_averaged_and_the_incomplete_one_is_left_to_the_next() {
        let mut stream = gaps(&[10; 11], &[37, 1, 1, 1, 37, 1, 1, 1, 37, 1, 1]);
        let end = BASS.smooth(&mut stream, true);
        assert_eq!(end, 8);
        assert_eq!(received(&stream[..end]), [10; 8]);
        assert_eq!(received(&stream[end..]), [37, 1, 1], "as they were");
    }

    /// The same with a bottleneck that lets a packet pass every 12 us.
    #[test]
    fn queueing_shows_through_the_events() {
        let mut stream = gaps(&[10; 8], &[45, 1, 1, 1, 45, 1, 1, 1]);
        let end = BASS.smooth(&mut stream, true);
        assert_eq!(end, 4, "the second event may go on");
        assert_eq!(stream[..4], [Pair { send: Dur::from_us(10), receive: Dur::from_us(12) }; 4]);
    }

    /// A burst of cross traffic delays one packet by 30 us; its followers come as fast as the link lets them.
    #[test]
    fn a_lone_burst_is_averaged_until_what_it_delayed_has_caught_up() {
        let mut stream = gaps(&[10; 10], &[10, 10, 40, 5, 5, 5, 5, 5, 5, 10]);
        let end = BASS.smooth(&mut stream, false);
        assert_eq!(end, 10);
        assert_eq!(received(&stream), [10; 10]);
    }

    #[test]
    fn gaps_without_spikes_stay_as_they_are() {
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

    /// Three events of two whose averages still rise and fall are one event to the second pass.
    #[test]
    fn a_second_pass_smooths_what_the_first_left() {
        let smoothed = |passes| {
            let mut stream = gaps(&[10; 8], &[10, 30, 0, 25, 1, 7, 1, 10]);
            let end = Bass { passes, factor: 0.0, floor: Dur::from_us(4) }.smooth(&mut stream, false);
            received(&stream[..end])
        };
        assert_eq!(smoothed(1), [10, 15, 15, 13, 13, 4, 4, 10]);
        assert_eq!(smoothed(2), [10, 10, 10, 10, 10, 10, 10, 10]);
    }
}
