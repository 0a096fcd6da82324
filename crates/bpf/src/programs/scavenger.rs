//! The scavenger's settings, as its program holds them.

use super::{Constants, Program, Quantity, param, shared, too_much};
use crate::error::BpfError;
use crate::settings::{Settings, fixed};
use sparelane_cc::{DefaultValue, Kind, Param, Unit};
use sparelane_core::Rate;

/// LEDBAT++ for the kernel, with marks.
pub const PROGRAM: Program = Program {
    name: "scavenger",
    summary: "LEDBAT++: takes what others leave, and marks its packets as lower effort",
    object: include_bytes!("../../objects/scavenger.bpf.o"),
    params,
    constants,
    quantities: &[
        Quantity::new("cwnd_bytes", 0, 1.0),
        Quantity::new("ssthresh_bytes", 1, 1.0),
        Quantity::new("queuing_ms", 2, 1e-3),
        Quantity::new("base_rtt_ms", 3, 1e-3),
        Quantity::new("inverse_gain", 4, 1.0),
        Quantity::new("stage", 5, 1.0),
    ],
    needs_route: false,
    needs_line_rate: false,
};

const MARK: Param = Param {
    name: "mark",
    kind: Kind::Choice(&["le", "no"]),
    default: DefaultValue::Word("le"),
    meaning: "whether the controller marks its own sockets LE (DSCP 1) and lowers their priority",
    source: "RFC 8622",
};
const PRIORITY: Param = Param {
    name: "priority",
    kind: Kind::Whole { min: 0, max: 15, unit: Unit::One },
    default: DefaultValue::Whole(1),
    meaning: "SO_PRIORITY of marked sockets; 1 is the last band of pfifo_fast",
    source: "tc-pfifo_fast(8)",
};

/// DSCP 1 in the byte of the header, whose two lowest bits are ECN's.
const LOWER_EFFORT: u64 = 1 << 2;
/// So many minutes and samples have room.
const MOST_KEPT: u64 = 16;

fn params() -> Vec<Param> {
    let names = ["initial_window", "initial_ssthresh", "target", "decrease", "base_history", "current_filter"];
    let mut all = shared("ledbat-plus-plus", &names);
    all.extend([MARK, PRIORITY]);
    all
}

fn constants(settings: &Settings, _line_rate: Rate) -> Result<Constants, BpfError> {
    let (all, values) = (params(), &settings.values);
    let whole = |name: &str| Ok::<u64, BpfError>(values.whole(&param(&all, name)?));
    let (history, filter) = (whole("base_history")?, whole("current_filter")?);
    for (name, kept) in [("base_history", history), ("current_filter", filter)] {
        if kept > MOST_KEPT {
            return Err(too_much(name, &kept.to_string(), "at most 16"));
        }
    }
    let target = values.span(&param(&all, "target")?);
    let constants = [
        ("target_us", target.as_ps() / 1_000_000),
        ("decrease_q16", fixed(values.number(&param(&all, "decrease")?), 16)),
        ("initial_window", whole("initial_window")?),
        ("initial_ssthresh", whole("initial_ssthresh")?),
        ("history", history),
        ("filter", filter),
        ("marks", u64::from(values.word(&MARK) == "le")),
        ("traffic_class", LOWER_EFFORT),
        ("priority", values.whole(&PRIORITY)),
    ];
    Ok(constants.map(|(name, value)| (name.to_owned(), value)).into())
}
