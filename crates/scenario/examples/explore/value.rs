//! Random values for keys and parameters, from their declarations, as TOML. Most are spread evenly over the allowed
//! orders of magnitude; some are at an end of the range.

use sparelane_catalogue::schema::{Key, Kind};
use sparelane_cc::{Kind as Declared, Param};
use sparelane_core::{Dur, Stream};

/// The largest window in segments. A flow without end sends a whole window at once, so larger ones would take long.
const MOST_SEGMENTS: u64 = 20_000;

/// One of `choices`.
pub fn one_of<T: Copy>(rng: &mut Stream, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// Returns true with a probability of one in `n`.
pub fn one_in(rng: &mut Stream, n: u64) -> bool {
    rng.below(n) == 0
}

/// A whole number in a closed range: an end of it one time in eight.
pub fn whole(rng: &mut Stream, min: u64, max: u64) -> u64 {
    match rng.below(16) {
        0 => min,
        1 => max,
        _ => {
            let (low, high) = ((min.max(1) as f64).ln(), (max.max(1) as f64).ln());
            ((low + rng.unit() * (high - low)).exp() as u64).clamp(min, max)
        }
    }
}

/// A number in a closed range: an end of it one time in eight.
fn number(rng: &mut Stream, min: f64, max: f64) -> f64 {
    let max = max.min(min.max(1e6));
    match rng.below(16) {
        0 => min,
        1 => max,
        2..6 if max > 0.0 => {
            let (low, high) = (min.max(max * 1e-6).ln(), max.ln());
            (low + rng.unit() * (high - low)).exp().clamp(min, max)
        }
        _ => min + rng.unit() * (max - min),
    }
}

/// A span in a closed range, below a minute if the range allows it.
pub fn span(rng: &mut Stream, min: Dur, max: Dur) -> String {
    let max = max.min(min.max(Dur::from_secs(60)));
    let least = if min == Dur::ZERO && rng.below(3) > 0 { Dur::from_ns(100) } else { min };
    format!("\"{}ps\"", whole(rng, least.as_ps(), max.as_ps()))
}

/// A queue's size in one of its units, at least one large packet.
pub fn limit(rng: &mut Stream) -> String {
    match rng.below(4) {
        0 => format!("\"{}B\"", whole(rng, 10_000, 1_000_000)),
        1 | 2 => format!("\"{}packets\"", whole(rng, 1, 500)),
        3 if one_in(rng, 3) => format!("\"{}bdp\"", one_of(rng, &[1, 5, 20])),
        _ => format!("\"{}B\"", whole(rng, 10_000, 40_000)),
    }
}

/// A value of a key; `None` if only the context determines valid values.
pub fn of_key(rng: &mut Stream, key: &Key) -> Option<String> {
    Some(match key.kind {
        Kind::Time { min, max } => span(rng, min, max),
        Kind::Size { min, max } => format!("\"{}B\"", whole(rng, min, max)),
        Kind::Whole { min, max } => whole(rng, min, max).to_string(),
        Kind::Positive { max } => format!("{:?}", number(rng, max.min(1.0) * 1e-6, max.min(1e3))),
        Kind::Share { max } => format!("{:?}", number(rng, 0.0, max)),
        Kind::Flag => one_in(rng, 2).to_string(),
        Kind::Choice(words) => format!("\"{}\"", one_of(rng, words)),
        Kind::Limit => limit(rng),
        _ => return None,
    })
}

/// A value of a controller's parameter; `None` if it is another controller or a list of names.
pub fn of_param(rng: &mut Stream, param: &Param) -> Option<String> {
    Some(match param.kind {
        Declared::Whole { min, max, .. } => whole(rng, min, max.min(min.max(MOST_SEGMENTS))).to_string(),
        Declared::Bound { .. } if one_in(rng, 4) => "\"unbounded\"".to_owned(),
        Declared::Bound { min, .. } => whole(rng, min, min.max(1) * 10_000).to_string(),
        Declared::Number { min, max, .. } => format!("{:?}", number(rng, min, max)),
        Declared::Flag => one_in(rng, 2).to_string(),
        Declared::Choice(words) => format!("\"{}\"", one_of(rng, words)),
        Declared::Span { min, max } => span(rng, min, max),
        Declared::OptionalRate if one_in(rng, 3) => "\"none\"".to_owned(),
        Declared::OptionalRate => rate(rng, 100_000, 1_000_000_000),
        Declared::Rate { min, max } => rate(rng, min.as_bps(), max.as_bps()),
        Declared::Size { min, max } => format!("\"{}B\"", whole(rng, min, max)),
        Declared::Increasing { max_len } => {
            let mut list = Vec::new();
            for _ in 0..rng.below(max_len as u64 + 1) {
                list.push(list.last().map_or(0, |last| last + 1) + whole(rng, 1, 1_000));
            }
            format!("{list:?}")
        }
        Declared::Weights | Declared::Numbers | Declared::Controller => return None,
    })
}

/// A rate in a closed range.
pub fn rate(rng: &mut Stream, min: u64, max: u64) -> String {
    format!("\"{}bps\"", whole(rng, min, max))
}
