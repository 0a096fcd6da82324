//! HyStart++: slow start that slows down where delay rises, and goes on if that was a mistake.
//!
//! Source: RFC 9406. Where the least round-trip time of a round, after eight samples, exceeds that of the round before by an
//! eighth of it, though by 4 ms at least and 16 ms at most, conservative slow start (CSS) begins: the window grows at a
//! quarter of the speed. Where in CSS the least round-trip time of a round falls below the one that began it, slow start goes
//! on; after five rounds, the one counted in which it began, congestion avoidance begins.
//!
//! It is for the first slow start of a connection, as the RFC recommends. The RFC lets an acknowledgment count for eight segments
//! at most where segments are not paced (L): `slow_start_limit = 8`.
//!
//! Where we differ: acknowledgments that may not grow the window, because it was not full, are not looked at.

use crate::contract::Ack;
use crate::round::Round;
use sparelane_core::Dur;

/// The least rise of delay that counts.
const MIN_RTT_THRESH: Dur = Dur::from_ms(4);

/// The rise of delay that counts always.
const MAX_RTT_THRESH: Dur = Dur::from_ms(16);

/// Between these the rise that counts is the least round-trip time of the round before divided by this.
const MIN_RTT_DIVISOR: u64 = 8;

/// So many samples show the delay of a round.
const N_RTT_SAMPLE: u32 = 8;

/// In CSS the window grows by what it would otherwise, divided by this.
const CSS_GROWTH_DIVISOR: u64 = 4;

/// Rounds of CSS.
const CSS_ROUNDS: u32 = 5;

/// CSS, as far as it has come.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// The least round-trip time of the round that began it.
    baseline: Dur,
    /// Rounds that it has been in.
    rounds: u32,
}

/// What was seen of the first slow start.
#[derive(Clone, Debug)]
pub struct HyStartPlusPlus {
    round: Round,
    /// The least round-trip time of the round before.
    last: Dur,
    /// That of this round, and its samples.
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
    /// Takes one acknowledgment, of which `counted_bytes` count: those by which the window grows, or nothing where slow start
    /// is over.
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
        // The growth of an acknowledgment is that of the stage in which it came.
        let divisor = if self.css.is_some() { CSS_GROWTH_DIVISOR } else { 1 };
        self.judge();
        Some(counted_bytes / divisor)
    }

    fn judge(&mut self) {
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

    /// What a round of twenty acknowledgments of 1000 bytes adds to the window, as long as slow start goes on. The first is that
    /// of the segment that was sent when the round before began.
    fn round(slow_start: &mut HyStartPlusPlus, rtt_us: u64) -> Option<u64> {
        let ack =
            Ack { rtt: Some(Dur::from_us(rtt_us)), in_flight_bytes: (SEGMENTS - 1) * 1000, ..Ack::in_sequence(1000) };
        (0..SEGMENTS).map(|_| slow_start.growth_bytes(&ack, 1000)).sum()
    }

    fn after(rounds_us: &[u64]) -> Vec<Option<u64>> {
        let mut slow_start = HyStartPlusPlus::default();
        rounds_us.iter().map(|&us| round(&mut slow_start, us)).collect()
    }

    /// The eighth sample of the second round shows the rise, and the other twelve acknowledgments count for a quarter.
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
    fn slow_start_goes_on_where_delay_falls_again() {
        let growth = after(&[100_000, 120_000, 119_999, 119_999]);
        assert_eq!(growth, [Some(20_000), Some(SLOWED), Some(8 * 250 + 12_000), Some(20_000)]);
    }

    #[test]
    fn delay_that_does_not_jump_between_rounds_is_no_sign() {
        assert_eq!(after(&[100_000, 110_000, 120_000, 130_000]), [Some(20_000); 4]);
    }
}
