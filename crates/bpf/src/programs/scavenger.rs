//! The settings of the scavenger (LEDBAT++) and their conversion to the constants of its program.

use super::{Constants, Program, Quantity, out_of_range, param, shared};
use crate::error::BpfError;
use crate::settings::{Settings, fixed};
use sparelane_cc::{DefaultValue, Kind, Param, Unit};
use sparelane_core::Rate;

/// The program of LEDBAT++, which can also mark its packets as lower effort.
pub const PROGRAM: Program = Program {
    name: "scavenger",
    summary: "LEDBAT++: uses only the capacity that others leave, and marks its packets as lower effort",
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

/// DSCP 1 (RFC 8622) in the traffic-class byte of the IP header. The two lowest bits of the byte belong to ECN.
const LOWER_EFFORT: u64 = 1 << 2;
/// The size of the program's arrays of base delays (one per minute) and of recent delay samples.
const MAX_KEPT: u64 = 16;

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
        if kept > MAX_KEPT {
            return Err(out_of_range(name, &kept.to_string(), "at most 16"));
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
