//! Effects of `[[link]]` on packets: bursts of loss, corruption, a policer, jitter, reordering and duplicates.

use crate::links::{LINK, SENDING_END, directions};
use sparelane_catalogue::schema::{Fallback, Field, Key, Kind, ScenarioError, Section, Shape};
use sparelane_core::Dur;
use sparelane_sim::Network;
use sparelane_sim::effects::{BurstLoss, Distribution, Jitter, Policer, Reordering};
use std::sync::Arc;

/// The most packets that overtake one that is held back.
const MAX_DISTANCE: u64 = 1_000_000;

const SHARE: Kind = Kind::Share { max: 1.0 };

/// Keys of effects among those of `[[link]]`.
pub static EFFECTS: &[Key] = &[
    Key::new(
        "burst_loss",
        Kind::Special("a table such as { p = \"1%\", r = \"25%\" }", &Shape::Table("burst_loss")),
        Fallback::Nothing("none"),
        "losses in bursts, by the model of Gilbert and Elliott; in addition to loss",
    ),
    Key::new(
        "corrupt",
        SHARE,
        Fallback::Nothing("none"),
        "probability that a packet is corrupted, and lost at the far end",
    ),
    Key::new(
        "policer",
        Kind::Special("a table such as { rate = \"10Mbps\", burst = \"100kB\" }", &Shape::Table("policer")),
        Fallback::Nothing("none"),
        "a token bucket in front of the queue that drops packets above its rate",
    ),
    Key::new("jitter", Kind::DELAY, Fallback::Nothing("none"), "random variation of the delay, with mean zero"),
    Key::new(
        "jitter_distribution",
        Kind::Choice(&["uniform", "normal", "pareto"]),
        Fallback::Value("uniform"),
        "uniform: up to jitter in both directions; normal, pareto: jitter is the standard deviation",
    ),
    Key::new(
        "jitter_correlation",
        SHARE,
        Fallback::Value("0"),
        "correlation of the variations of consecutive packets; the distribution stays the same",
    ),
    Key::new(
        "jitter_reorders",
        Kind::Flag,
        Fallback::Value("false"),
        "true: a packet with a shorter delay overtakes others; false: it waits for those before it",
    ),
    Key::new("reorder", SHARE, Fallback::Nothing("none"), "probability that a packet is held back and overtaken"),
    Key::new(
        "reorder_distance",
        Kind::Whole { min: 1, max: MAX_DISTANCE },
        Fallback::Value("3"),
        "number of later packets that overtake a packet that is held back",
    ),
    Key::new(
        "reorder_within",
        Kind::DELAY,
        Fallback::Value("100ms"),
        "the longest time for which a packet is held back, if fewer packets follow",
    ),
    Key::new("duplicate", SHARE, Fallback::Nothing("none"), "probability that a packet arrives twice"),
    Key::new(
        "effects_from",
        SENDING_END,
        Fallback::Nothing("both directions"),
        "the sending ends whose direction gets the effects of this table; the other direction stays as it was",
    ),
];

/// The effects, each with the keys that need it.
pub const DETAILS: [(&str, &[&str]); 6] = [
    ("burst_loss", &[]),
    ("corrupt", &[]),
    ("policer", &[]),
    ("jitter", &["jitter_distribution", "jitter_correlation", "jitter_reorders"]),
    ("reorder", &["reorder_distance", "reorder_within"]),
    ("duplicate", &[]),
];

/// The keys of `burst_loss = { .. }`, by the names of netem.
pub static BURST_LOSS: &[Key] = &[
    Key::new("p", SHARE, Fallback::Required, "probability that the link turns bad after a packet"),
    Key::new("r", SHARE, Fallback::Required, "probability that the link turns good again after a packet"),
    Key::new("1-h", SHARE, Fallback::Value("100%"), "probability of loss while the link is bad"),
    Key::new("1-k", SHARE, Fallback::Value("0%"), "probability of loss while the link is good"),
];

/// The keys of `policer = { .. }`.
pub static POLICER: &[Key] = &[
    Key::new("rate", Kind::Rate, Fallback::Required, "the rate at which the bucket fills"),
    Key::new(
        "burst",
        Kind::Size { min: 1, max: 1 << 40 },
        Fallback::Required,
        "the size of the bucket, on the wire: a packet or more",
    ),
];

/// Returns true if a table of `[[link]]` has effects.
pub fn are_given(section: &Section<'_>) -> bool {
    DETAILS.iter().any(|(key, _)| section.given(key).is_some())
}

/// Applies the effects of a table to `cables`.
pub fn apply(section: &Section<'_>, cables: &[usize], network: &mut Network) -> Result<(), ScenarioError> {
    for (key, details) in DETAILS {
        if let (None, Some(field)) = (section.given(key), details.iter().find_map(|detail| section.given(detail))) {
            return Err(field.error(format!("without {key}; allowed: together with {key}")));
        }
    }
    let only = section.maybe("effects_from", |field| directions(field, section, cables, network))?;
    if !are_given(section) {
        return match section.given("effects_from") {
            Some(field) => Err(field.error("without an effect; allowed: together with one, such as jitter")),
            None => Ok(()),
        };
    }
    let burst_loss = section.maybe("burst_loss", burst_loss)?;
    let policer = section.maybe("policer", policer)?;
    let (corruption, duplication) =
        (section.maybe("corrupt", Field::share)?, section.maybe("duplicate", Field::share)?);
    let (jitter, reordering) = (jitter(section)?, reordering(section)?);
    for (place, &cable) in cables.iter().enumerate() {
        for way in (0..2).filter(|&way| only.as_ref().is_none_or(|only| only[place] == way)) {
            let effects = Arc::make_mut(network.cables[cable].effects[way].get_or_insert_default());
            effects.burst_loss = burst_loss.or(effects.burst_loss);
            effects.policer = policer.or(effects.policer);
            effects.corruption = corruption.unwrap_or(effects.corruption);
            effects.duplication = duplication.unwrap_or(effects.duplication);
            effects.jitter = jitter.unwrap_or(effects.jitter);
            effects.reordering = reordering.unwrap_or(effects.reordering);
        }
    }
    Ok(())
}

fn burst_loss(field: &Field<'_>) -> Result<BurstLoss, ScenarioError> {
    let section = field.clone().section(&[BURST_LOSS])?;
    let share = |key| section.need(key).and_then(|field| field.share());
    Ok(BurstLoss { to_bad: share("p")?, to_good: share("r")?, loss_in_bad: share("1-h")?, loss_in_good: share("1-k")? })
}

fn policer(field: &Field<'_>) -> Result<Policer, ScenarioError> {
    let section = field.clone().section(&[POLICER])?;
    Ok(Policer { rate: section.need("rate")?.rate()?, burst_bytes: section.need("burst")?.size()? })
}

/// The jitter of a table, if it sets it. A jitter of zero removes that of a table above.
fn jitter(section: &Section<'_>) -> Result<Option<Option<Jitter>>, ScenarioError> {
    let Some(spread) = section.maybe("jitter", Field::time)? else { return Ok(None) };
    let distribution = match section.need("jitter_distribution")?.choice()? {
        "normal" => Distribution::Normal,
        "pareto" => Distribution::Pareto,
        _ => Distribution::Uniform,
    };
    let (correlation, reorders) =
        (section.need("jitter_correlation")?.share()?, section.need("jitter_reorders")?.flag()?);
    Ok(Some((!spread.is_zero()).then_some(Jitter { spread, distribution, correlation, reorders })))
}

/// The reordering of a table, if it sets it.
fn reordering(section: &Section<'_>) -> Result<Option<Option<Reordering>>, ScenarioError> {
    let Some(probability) = section.maybe("reorder", Field::share)? else { return Ok(None) };
    let (distance, within) = (section.need("reorder_distance")?.whole()?, section.need("reorder_within")?.time()?);
    Ok(Some((probability > 0.0).then_some(Reordering { probability, distance, within })))
}

/// Checks that every policer passes a packet of `largest_bytes`.
pub fn check(fields: &[Field<'_>], largest_bytes: u64) -> Result<(), ScenarioError> {
    for field in fields {
        let section = field.clone().section(LINK)?;
        let Some(policer) = section.given("policer") else { continue };
        let section = policer.section(&[POLICER])?;
        let burst = section.need("burst")?;
        if burst.size()? < largest_bytes {
            return Err(burst.error(format!("less than a packet; allowed: {largest_bytes}B or more")));
        }
    }
    Ok(())
}

/// The details of effects that are zero, each with the reason why it has no effect.
pub fn idle_details(section: &Section<'_>) -> Vec<(&'static str, String)> {
    let is_zero = |key: &str| match key {
        "jitter" => section.maybe("jitter", Field::time).ok().flatten() == Some(Dur::ZERO),
        _ => section.maybe(key, Field::share).ok().flatten() == Some(0.0),
    };
    let zero = DETAILS.iter().filter(|(key, details)| !details.is_empty() && is_zero(key));
    zero.flat_map(|(key, details)| details.iter().map(move |&detail| (detail, format!("{key} is 0")))).collect()
}
