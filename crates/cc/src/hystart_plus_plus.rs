//! HyStart++ (RFC 9406): slow start that slows down when delay rises, and resumes if the rise was temporary.
//!
//! After eight samples, the minimum round-trip time of a round is compared with that of the previous round. If it is
//! larger by an eighth (at least 4 ms, at most 16 ms), conservative slow start (CSS) begins: the window grows at a
//! quarter of the speed. If a round in CSS has a smaller minimum round-trip time than the round in which CSS began,
//! slow start resumes. After five rounds of CSS, including the one in which it began, congestion avoidance begins.
//!
//! HyStart++ applies to the first slow start of a connection, as the RFC recommends. For unpaced senders the RFC lets
//! an acknowledgment count for at most eight segments (L): set `slow_start_limit = 8`.
//!
//! Difference from the RFC: acknowledgments are ignored while the sender does not fill the window.

use crate::contract::Ack;
use crate::round::Round;
use sparelane_core::Dur;

/// The lower limit of the required rise.
const MIN_RTT_THRESH: Dur = Dur::from_ms(4);

/// The upper limit of the required rise.
const MAX_RTT_THRESH: Dur = Dur::from_ms(16);

/// The required rise is the previous round's minimum round-trip time divided by this, within the limits.
const MIN_RTT_DIVISOR: u64 = 8;

/// Number of samples that determine a round's delay.
const N_RTT_SAMPLE: u32 = 8;

/// Divisor of the window's growth in CSS.
const CSS_GROWTH_DIVISOR: u64 = 4;

/// Duration of CSS in rounds.
const CSS_ROUNDS: u32 = 5;

/// The progress of CSS.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// The minimum round-trip time of the round that began CSS.
    baseline: Dur,
    /// Number of rounds so far.
    rounds: u32,
}

/// The HyStart++ state of the first slow start.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    round: Round,
    /// The minimum round-trip time of the previous round.
    last: Dur,
    /// The minimum round-trip time of this round. `samples` counts its samples.
    current: Dur,
    samples: u32,
    css: Option<Css>,
}

impl Default for HyStartPlusPlus {
    fn default() -> HyStartPlusPlus {
        HyStartPlusPlus { round: Round::default(), last: Dur::MAX, current: Dur::MAX, samples: 0, css: None }
    }
}

impl HyStartPlusPlus {
    /// Processes one acknowledgment that counts for `counted_bytes`. Returns the bytes by which the window grows, or
    /// `None` if slow start is over.
    pub fn growth_bytes(&mut self, ack: &Ack, counted_bytes: u64) -> Option<u64> {
        if self.round.is_over(ack) {
            (self.last, self.current, self.samples) = (self.current, Dur::MAX, 0);
            if let Some(css) = &mut self.css {
                css.rounds += 1;
                if css.rounds > CSS_ROUNDS {
                    return None;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            self.current = self.current.min(rtt);
            self.samples += 1;
        }
        // An acknowledgment that begins or ends CSS still grows the window at the previous speed.
        let divisor = if self.css.is_some() { CSS_GROWTH_DIVISOR } else { 1 };
        self.update_css();
        Some(counted_bytes / divisor)
    }

    /// Begins CSS if the delay has risen, or ends it if the rise was temporary.
    fn update_css(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.css {
            Some(css) if self.current < css.baseline => self.css = None,
            Some(_) => {}
            None if self.last < Dur::MAX => {
                let rise = (self.last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current >= self.last + rise {
                    self.css = Some(Css { baseline: self.current, rounds: 1 });
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: u64 = 20;

    /// Returns the growth of a round of twenty acknowledgments of 1000 bytes, or `None` if slow start ended. The first
    /// acknowledgment is that of the segment sent at the start of the previous round.
    fn round(slow_start: &mut HyStartPlusPlus, rtt_us: u64) -> Option<u64> {
        let ack =
            Ack { rtt: Some(Dur::from_us(rtt_us)), in_flight_bytes: (SEGMENTS - 1) * 1000, ..Ack::in_sequence(1000) };
        (0..SEGMENTS).map(|_| slow_start.growth_bytes(&ack, 1000)).sum()
    }

    fn after(rounds_us: &[u64]) -> Vec<Option<u64>> {
        let mut slow_start = HyStartPlusPlus::default();
        rounds_us.iter().map(|&us| round(&mut slow_start, us)).collect()
    }

    /// The eighth sample of the second round shows the rise; the other twelve acknowledgments count for a quarter.
    const SLOWED: u64 = 8000 + 12 * 250;

    #[test]
    fn a_rise_by_an_eighth_between_4_and_16_ms_slows_growth_to_a_quarter() {
        for (least_us, rise_us) in [(100_000, 12_500), (20_000, 4000), (400_000, 16_000)] {
            assert_eq!(after(&[least_us, least_us + rise_us - 1]), [Some(20_000), Some(20_000)], "{least_us} us");
            assert_eq!(after(&[least_us, least_us + rise_us]), [Some(20_000), Some(SLOWED)], "{least_us} us");
        }
    }

    #[test]
    fn five_rounds_later_slow_start_is_over() {
        let growth = after(&[100_000, 120_000, 120_000, 120_000, 120_000, 120_000, 120_000]);
        let slow = Some(5000);
        assert_eq!(growth, [Some(20_000), Some(SLOWED), slow, slow, slow, slow, None]);
    }

    #[test]
    fn slow_start_resumes_when_delay_falls_again() {
        let growth = after(&[100_000, 120_000, 119_999, 119_999]);
        assert_eq!(growth, [Some(20_000), Some(SLOWED), Some(8 * 250 + 12_000), Some(20_000)]);
    }

    #[test]
    fn delay_that_rises_slowly_does_not_begin_css() {
        assert_eq!(after(&[100_000, 110_000, 120_000, 130_000]), [Some(20_000); 4]);
    }
}
