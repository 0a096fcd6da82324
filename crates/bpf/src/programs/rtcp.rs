//! The settings of RTCP and their conversion to the constants of its program.

use super::{Constants, Program, Quantity, out_of_range, param, shared};
use crate::cgroup;
use crate::error::BpfError;
use crate::settings::{MAX_WEIGHT_BYTES, Settings, fixed};
use sparelane_cc::{DefaultValue, Kind, Param, Unit, Values};
use sparelane_core::Rate;

/// The program of RTCP.
pub const PROGRAM: Program = Program {
    name: "rtcp",
    summary: "Regulated TCP: doubles or halves the window by comparing a counter with congestion; weights by class",
    object: include_bytes!("../../objects/rtcp.bpf.o"),
    params,
    constants,
    quantities: &[
        Quantity::new("counter_bytes", 0, 1.0 / 65_536.0),
        Quantity::new("congestion_kb", 1, 1.0 / 65_536.0),
        Quantity::new("delay_ms", 2, 1e-3),
        Quantity::new("base_rtt_ms", 3, 1e-3),
        Quantity::new("cwnd_bytes", 4, 1.0),
        Quantity::new("weight_bytes", 5, 1.0 / 65_536.0),
    ],
    needs_route: false,
    needs_line_rate: true,
};

/// The smallest window. One segment would wait for the receiver's delayed-acknowledgment timer.
const MIN_WINDOW: Param = Param {
    name: "min_window",
    kind: Kind::Whole { min: 1, max: 1_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(2),
    meaning: "least window",
    source: "sparelane: 1 in the simulator; with delayed acknowledgments one segment waits for the receiver's timer",
};
const CLASSIFY: Param = Param {
    name: "classify",
    kind: Kind::Choice(&["no", "by-size", "by-priority", "by-port", "by-cgroup"]),
    default: DefaultValue::Word("no"),
    meaning: "what gives a flow a weight of its own (weight.CLASS): its size so far, SO_PRIORITY, a port, or its cgroup",
    source: "RTCP section V-A1 for sizes",
};

fn params() -> Vec<Param> {
    let mut all = shared(
        "rtcp",
        &[
            "initial_window",
            "alpha",
            "alpha_unit",
            "delta",
            "delta_unit",
            "smoothing",
            "weight",
            "urgent_below",
            "x_max",
        ],
    );
    all.extend(shared("rtcp", &["max_rate", "unit_rate"]));
    all.extend([MIN_WINDOW, CLASSIFY]);
    all
}

/// The size of the program's array of weights, including that of unclassified flows.
const MAX_WEIGHTS: usize = 16;
/// The members of one weight in the program.
const WEIGHT_MEMBERS: [&str; 5] = ["of", "bytes_q16", "straight_q16", "fall_us_q48", "horizon_us"];
/// The largest ratio of the maximum rate M to the unit rate U whose products fit in 64 bits.
const MAX_RATIO: f64 = 1024.0;
/// The largest rate in bits per second whose products fit in 64 bits.
const MAX_BPS: f64 = 500e9;
/// The number of time constants after which the counter has reached its limit: e^-40 is below the program's resolution.
const HORIZON: f64 = 40.0;

fn constants(settings: &Settings, line_rate: Rate) -> Result<Constants, BpfError> {
    let (all, values) = (params(), &settings.values);
    let number = |name: &str| Ok::<f64, BpfError>(values.number(&param(&all, name)?));
    let alpha = number("alpha")? * number("alpha_unit")?;
    let delta = number("delta")? * number("delta_unit")?;
    let max_rate = values.rate(&param(&all, "max_rate")?).unwrap_or(line_rate);
    let unit_rate = values.rate(&param(&all, "unit_rate")?).unwrap_or(max_rate);
    // The program's products of rates and times fit in 64 bits only within these limits.
    let (max_bps, unit_bps) = (max_rate.as_bps() as f64, unit_rate.as_bps() as f64);
    let x_max_bps = number("x_max")? * line_rate.as_bps() as f64;
    for (name, bps) in [("max_rate", max_bps), ("unit_rate", unit_bps), ("x_max times the line's rate", x_max_bps)] {
        if !(1e5..=MAX_BPS).contains(&bps) {
            return Err(out_of_range(name, &format!("{bps} b/s"), "100 kb/s to 500 Gb/s"));
        }
    }
    if max_bps / unit_bps > MAX_RATIO {
        return Err(out_of_range("unit_rate", &unit_rate.to_string(), "at least max_rate / 1024"));
    }
    if alpha > 1e9 {
        return Err(out_of_range("alpha", &alpha.to_string(), "at most 1e9 bytes/KB"));
    }
    if delta > 1e7 {
        return Err(out_of_range("delta", &delta.to_string(), "at most 1e7 KB/ms"));
    }
    let class_kind = values.word(&CLASSIFY);
    let weights = weights(class_kind, settings, number("weight")?, values)?;
    let classify = ["no", "by-size", "by-priority", "by-port", "by-cgroup"].iter().position(|kind| *kind == class_kind);
    // The order is that of the program's structure; a test compares both. 8e6 converts bits per second to bytes per
    // microsecond.
    let mut constants: Constants = [
        ("alpha_q16", fixed(alpha, 16)),
        ("delta_us_q16", fixed(delta / 1e3, 16)),
        ("past_q16", fixed(number("smoothing")?, 16)),
        ("max_rate_q16", fixed(max_bps / 8e6, 16)),
        ("x_max_q16", fixed(x_max_bps / 8e6, 16)),
        ("initial_window", values.whole(&param(&all, "initial_window")?)),
        ("min_window", values.whole(&MIN_WINDOW)),
        ("classify", classify.unwrap_or_default() as u64),
        ("urgent_below", values.size(&param(&all, "urgent_below")?)),
        ("weight_count", weights.len() as u64),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for at in 0..MAX_WEIGHTS {
        let Some(&(of, weight)) = weights.get(at) else {
            constants.extend(WEIGHT_MEMBERS.map(|name| (format!("weights[{at}].{name}"), 0)));
            continue;
        };
        // The counter H rises linearly up to w U / (U + M), and then approaches the weight w.
        let (unit_bytes_us, max_bytes_us) = (unit_bps / 8e6, max_bps / 8e6);
        let straight = weight * unit_bps / (unit_bps + max_bps);
        let horizon_us = straight / max_bytes_us + HORIZON * weight / unit_bytes_us;
        let fall_us_q48 = fixed(unit_bytes_us / weight, 48);
        let values = [of, fixed(weight, 16), fixed(straight, 16), fall_us_q48, libm::ceil(horizon_us) as u64];
        let members = WEIGHT_MEMBERS.iter().zip(values);
        constants.extend(members.map(|(name, value)| (format!("weights[{at}].{name}"), value)));
    }
    Ok(constants)
}

/// Returns the weights in bytes, each with the class ID by which the program recognizes its flows.
///
/// The first entry is the weight of unclassified flows.
fn weights(class_kind: &str, settings: &Settings, default: f64, values: &Values) -> Result<Vec<(u64, f64)>, BpfError> {
    let given = &settings.weights;
    let mut weights = vec![(0, default)];
    // Sizes have two fixed classes with default weights: 0 for large flows, 1 for small ones.
    if class_kind == "by-size" {
        let weight_of = |class: &str, default: f64| {
            given.iter().find(|(name, _)| name == class).map_or(default, |&(_, weight)| weight)
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| name != "urgent" && name != "high-volume") {
            return Err(out_of_range("weight", name, "weight.urgent and weight.high-volume, if `classify` is by-size"));
        }
        weights = vec![(0, weight_of("high-volume", 12_000.0)), (1, weight_of("urgent", 24_000.0))];
    } else if class_kind == "no" && !given.is_empty() {
        return Err(BpfError::Setting(
            "weights of classes need a `classify` other than no, but `classify` is no".to_owned(),
        ));
    } else {
        for (class, weight) in given {
            weights.push((class_id(class_kind, class)?, *weight));
        }
    }
    if weights.len() > MAX_WEIGHTS {
        return Err(out_of_range("weight", &format!("given for {} classes", given.len()), "at most 15 classes"));
    }
    let is_allowed = |weight: f64| (1.0..=MAX_WEIGHT_BYTES).contains(&weight);
    match weights.iter().find(|&&(_, weight)| !is_allowed(weight)) {
        Some((_, weight)) => Err(out_of_range("weight", &weight.to_string(), "1 to 1073741824 bytes")),
        // The program divides by whole bytes.
        None => Ok(weights.into_iter().map(|(of, weight)| (of, weight.round())).collect()),
    }
    .inspect(|_| debug_assert!(values.given("weights").is_none(), "weights are set one by one"))
}

/// Returns the number by which the program recognizes flows of a class: a priority, a port, or the ID of a cgroup.
fn class_id(class_kind: &str, class: &str) -> Result<u64, BpfError> {
    let refused = |allowed: &str| BpfError::Setting(format!("weight.{class}; allowed: {allowed}"));
    match class_kind {
        "by-priority" => class.parse::<u32>().map(u64::from).map_err(|_| refused("a priority, as in weight.6")),
        "by-port" => class.parse::<u16>().map(u64::from).map_err(|_| refused("a port, as in weight.443")),
        _ => cgroup::id(class),
    }
}
