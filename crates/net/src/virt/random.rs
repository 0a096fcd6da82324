//! Random paths, and the seeds of the tests that use them.

use super::Path;
use sparelane_core::{Dur, Rate, Stream};
use std::ops::Range;

/// The seeds of a random test: `WIRE_RUNS` of them from `EXPLORE_SEED` on. By default, `count` from
/// zero on.
pub(crate) fn seeds(count: u64) -> Range<u64> {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = asked("EXPLORE_SEED").unwrap_or(0);
    first..first + asked("WIRE_RUNS").unwrap_or(count)
}

/// Draws a path with losses, reordering and duplicates. Its rate is one of `rates_mbps`.
pub(crate) fn path(rng: &mut Stream, rates_mbps: Range<u64>) -> Path {
    Path {
        rate: Rate::from_mbps(rates_mbps.start + rng.below(rates_mbps.end - rates_mbps.start)),
        delay: Dur::from_us(100 + rng.below(30_000)),
        queue_packets: 30 + rng.below(300) as usize,
        priorities: rng.below(2) == 0,
        loss: rng.unit() * 0.05,
        reordered: rng.unit() * 0.05,
        reordered_by: Dur::from_us(rng.below(20_000)),
        duplicated: rng.unit() * 0.05,
        ..Path::default()
    }
}
