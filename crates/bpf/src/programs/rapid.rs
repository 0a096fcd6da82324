//! The settings of RAPID and their conversion to the constants of its program.

use super::{Constants, Program, Quantity, out_of_range, param, shared};
use crate::error::BpfError;
use crate::settings::{Settings, fixed};
use sparelane_cc::Param;
use sparelane_cc::algos::rapid::Shape;
use sparelane_core::{Dur, Rate};

/// The program of TCP RAPID.
pub const PROGRAM: Program = Program {
    name: "rapid",
    summary: "TCP RAPID: every packet probes the available bandwidth by its gap",
    object: include_bytes!("../../objects/rapid.bpf.o"),
    params,
    constants,
    quantities: &[
        Quantity::new("rate_bps", 0, 1.0),
        Quantity::new("estimate_bps", 1, 1.0),
        Quantity { name: "gap_us", slot: 2, unit: 1e-3, of_departures: true },
        Quantity { name: "kept_gap_us", slot: 5, unit: 1e-3, of_departures: true },
        Quantity::new("streams_judged", 3, 1.0),
        Quantity::new("streams_skipped", 4, 1.0),
    ],
    needs_route: true,
    needs_line_rate: true,
};

fn params() -> Vec<Param> {
    let probing = ["rates", "packets_per_rate", "spread", "tau", "eta", "gamma", "bass_passes", "spike_factor"];
    let mut all = shared("rapid", &probing);
    all.extend(shared("rapid", &["spike_floor", "excursion_share", "excursion_persistence", "excursion_samples"]));
    all.extend(shared("rapid", &["window", "initial_rate", "min_rate", "after_timeout", "most_lateness"]));
    all
}

/// Sizes of the program's arrays: rates and packets of a p-stream, and passes of BASS.
const MAX_RATES: u64 = 16;
const MAX_PACKETS: u64 = 64;
const MAX_PASSES: u64 = 3;

fn constants(settings: &Settings, line_rate: Rate) -> Result<Constants, BpfError> {
    let (all, values) = (params(), &settings.values);
    let whole = |name: &str| Ok::<u64, BpfError>(values.whole(&param(&all, name)?));
    let number = |name: &str| Ok::<f64, BpfError>(values.number(&param(&all, name)?));
    let ns = |span: Dur| span.as_ps() / 1000;
    let (rates, per_rate, passes) = (whole("rates")?, whole("packets_per_rate")?, whole("bass_passes")?);
    // The simulator has no such limits: these are the sizes of the program's arrays.
    if rates > MAX_RATES {
        return Err(out_of_range("rates", &rates.to_string(), "2 to 16 rates"));
    }
    if rates * per_rate > MAX_PACKETS {
        return Err(out_of_range(
            "rates times packets_per_rate",
            &(rates * per_rate).to_string(),
            "at most 64 packets",
        ));
    }
    if passes > MAX_PASSES {
        return Err(out_of_range("bass_passes", &passes.to_string(), "0 to 3 passes"));
    }
    // The median times the factor must fit in 64 bits.
    if number("spike_factor")? > 1000.0 {
        return Err(out_of_range("spike_factor", &number("spike_factor")?.to_string(), "0 to 1000 medians"));
    }
    let initial = values.some_rate(&param(&all, "initial_rate")?);
    if initial > line_rate {
        return Err(out_of_range(
            "initial_rate",
            &initial.to_string(),
            &format!("at most {line_rate}, the rate of the interface"),
        ));
    }
    let lowest = values.some_rate(&param(&all, "min_rate")?);
    if lowest > initial {
        let allowed = format!("at most initial_rate, which is {initial}");
        return Err(out_of_range("min_rate", &lowest.to_string(), &allowed));
    }
    // The program multiplies its average rate by these ratios. The rate from which they are computed cancels out.
    let shape = Shape::new(rates as u32, per_rate as u32, number("spread")?);
    let average = Rate::from_gbps(100);
    // The order is that of the program's structure; a test compares both.
    let before = [("packets", rates * per_rate), ("packets_per_rate", per_rate)];
    let after = [
        ("tau_us", ns(values.span(&param(&all, "tau")?)) / 1000),
        ("eta_q16", fixed(number("eta")?, 16)),
        ("gamma", whole("gamma")?),
        ("window", whole("window")?),
        ("initial_bps", initial.as_bps()),
        ("lowest_bps", lowest.as_bps()),
        ("highest_bps", line_rate.as_bps()),
        ("starts_after_timeout", u64::from(values.word(&param(&all, "after_timeout")?) == "start")),
        ("most_lateness_ns", ns(values.span(&param(&all, "most_lateness")?))),
        ("estimator.bass_passes", passes),
        ("estimator.spike_factor_q16", fixed(number("spike_factor")?, 16)),
        ("estimator.spike_floor_ns", ns(values.span(&param(&all, "spike_floor")?))),
        ("estimator.excursion_share_q16", fixed(number("excursion_share")?, 16)),
        ("estimator.excursion_persistence_q16", fixed(number("excursion_persistence")?, 16)),
        ("estimator.excursion_samples", whole("excursion_samples")?),
    ];
    let multiple = |at: u64| shape.rate((at * per_rate) as u32, average).as_bps() as f64 / average.as_bps() as f64;
    // Unused entries of the array are zero.
    let multiples = (0..MAX_RATES).map(|at| {
        let value = if at < rates { fixed(multiple(at), 16) } else { 0 };
        (format!("multiples_q16[{at}]"), value)
    });
    let owned = |(name, value): (&str, u64)| (name.to_owned(), value);
    Ok(before.map(owned).into_iter().chain(multiples).chain(after.map(owned)).collect())
}
