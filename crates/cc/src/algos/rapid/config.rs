//! What can be set about RAPID.

use super::adaptor::Filter;
use super::bass::Bass;
use super::estimator::Excursion;
use crate::param::{DefaultValue, Kind, Param, ParamError, Unit, Values};
use crate::registry::{Blueprint, BuildError};
use sparelane_core::{Dur, Rate};

const PAPER: &str = "Yin, Kaur, Smith, INFOCOM 2017";

const RATES: Param = Param {
    name: "rates",
    kind: Kind::Whole { min: 2, max: 64, unit: Unit::Named("rates") },
    default: DefaultValue::Whole(4),
    meaning: "N_r: rates that one p-stream probes",
    source: PAPER,
};

const PACKETS_PER_RATE: Param = Param {
    name: "packets_per_rate",
    kind: Kind::Whole { min: 1, max: 1024, unit: Unit::Named("packets") },
    default: DefaultValue::Whole(16),
    meaning: "N_p: packets of a p-stream at each rate",
    source: PAPER,
};

const SPREAD: Param = Param {
    name: "spread",
    kind: Kind::Number { min: 1.001, max: 8.0, unit: Unit::One },
    default: DefaultValue::Number(1.1487),
    meaning: "s: each rate of a p-stream over the one before",
    source: "gaps in the authors' development logs: 2^(1/5)",
};

const TAU: Param = Param {
    name: "tau",
    kind: Kind::Span { min: Dur::from_us(1), max: Dur::from_secs(100) },
    default: DefaultValue::Span(Dur::from_ms(10)),
    meaning: "time in which the rate converges to more bandwidth",
    source: PAPER,
};

const ETA: Param = Param {
    name: "eta",
    kind: Kind::Number { min: 1.0, max: 1000.0, unit: Unit::Named("updates") },
    default: DefaultValue::Number(3.0),
    meaning: "updates in which the rate converges to less bandwidth; the paper's Table VI prints 1/eta",
    source: PAPER,
};

const GAMMA: Param = Param {
    name: "gamma",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::Named("p-streams") },
    default: DefaultValue::Whole(3),
    meaning: "p-streams whose mean estimate makes one update of the rate",
    source: PAPER,
};

const UPDATE_SPAN: Param = Param {
    name: "update_span",
    kind: Kind::Choice(&["last", "all"]),
    default: DefaultValue::Word("last"),
    meaning: "l of the filter: how long the last p-stream of an update lasted, or all of its gamma p-streams together",
    source: "section II says of the just-acked p-stream, where each makes an update; open for gamma of them",
};

const BASS_PASSES: Param = Param {
    name: "bass_passes",
    kind: Kind::Whole { min: 0, max: 10, unit: Unit::Named("passes") },
    default: DefaultValue::Whole(3),
    meaning: "passes of spike smoothing (BASS) at most; 0 uses the raw gaps",
    source: PAPER,
};

const SPIKE_FACTOR: Param = Param {
    name: "spike_factor",
    kind: Kind::Number { min: 0.0, max: 1000.0, unit: Unit::Named("medians") },
    default: DefaultValue::Number(0.5),
    meaning: "a spike exceeds the receive gap before it by so many medians of the receive gaps",
    source: "open in the paper; with 1, what an interrupt brings of one or two samples is no spike, and the noise keeps rates low",
};

const SPIKE_FLOOR: Param = Param {
    name: "spike_floor",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(1) },
    default: DefaultValue::Span(Dur::from_us(5)),
    meaning: "and by this at least",
    source: "open in the paper; 50us at 1 Gb/s in the authors' development logs",
};

const EXCURSION_SHARE: Param = Param {
    name: "excursion_share",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.03),
    meaning: "a packet waited if its receive gap exceeds its send gap by more than this share; so must an excursion",
    source: "open in the paper; the authors' development logs have 1us to 2us for two packets at 10 Gb/s",
};

const EXCURSION_PERSISTENCE: Param = Param {
    name: "excursion_persistence",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.45),
    meaning: "least share of an excursion's packets that waited",
    source: "the authors' development logs have 4 of 8; with as much, constant-rate cross traffic costs losses",
};

const EXCURSION_SAMPLES: Param = Param {
    name: "excursion_samples",
    kind: Kind::Whole { min: 1, max: 64, unit: Unit::Named("samples") },
    default: DefaultValue::Whole(8),
    meaning: "samples of the shortest excursion",
    source: "the authors' development logs",
};

const WINDOW: Param = Param {
    name: "window",
    kind: Kind::Whole { min: 1, max: 10_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(16_000),
    meaning: "congestion window, fixed, far above what the path holds; what waits in the scheduler counts",
    source: PAPER,
};

const INITIAL_RATE: Param = Param {
    name: "initial_rate",
    kind: Kind::Rate { min: Rate::from_bps(1_000), max: Rate::from_gbps(400) },
    default: DefaultValue::Rate(Some(Rate::from_bps(100_000))),
    meaning: "R_avg of a new connection and after a timeout, and the least R_avg ever; on the wire",
    source: PAPER,
};

const AFTER_TIMEOUT: Param = Param {
    name: "after_timeout",
    kind: Kind::Choice(&["start", "continue"]),
    default: DefaultValue::Word("start"),
    meaning: "a timeout sets R_avg to initial_rate (start) or leaves it as it is (continue)",
    source: "open in the paper",
};

const LOSSY_STREAMS: Param = Param {
    name: "lossy_streams",
    kind: Kind::Choice(&["skipped", "until-repaired"]),
    default: DefaultValue::Word("skipped"),
    meaning: "a p-stream with a lost packet says nothing (skipped), or that the path had its packets over all the time until the last \
              of them was acknowledged (until-repaired)",
    source: "the authors' development logs skip it; section II judges a p-stream once its acknowledgments have all returned",
};

const MOST_MISSING: Param = Param {
    name: "most_missing",
    kind: Kind::Whole { min: 1, max: 65_536, unit: Unit::Named("packets") },
    default: DefaultValue::Whole(1),
    meaning: "with lossy_streams = until-repaired: up to how many packets may be missing from a p-stream that is judged; one with more \
              says nothing",
    source: "open in the paper",
};

const MOST_LATENESS: Param = Param {
    name: "most_lateness",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(10) },
    default: DefaultValue::Span(Dur::from_ms(1)),
    meaning: "a packet that leaves later than this begins a new p-stream",
    source: "open in the paper",
};

/// Everything that can be set.
pub(super) const PARAMS: &[Param] = &[
    RATES,
    PACKETS_PER_RATE,
    SPREAD,
    TAU,
    ETA,
    GAMMA,
    UPDATE_SPAN,
    BASS_PASSES,
    SPIKE_FACTOR,
    SPIKE_FLOOR,
    EXCURSION_SHARE,
    EXCURSION_PERSISTENCE,
    EXCURSION_SAMPLES,
    WINDOW,
    INITIAL_RATE,
    AFTER_TIMEOUT,
    LOSSY_STREAMS,
    MOST_MISSING,
    MOST_LATENESS,
];

/// The values of [`PARAMS`].
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) rates: u32,
    pub(super) packets_per_rate: u32,
    pub(super) spread: f64,
    pub(super) filter: Filter,
    pub(super) bass: Bass,
    pub(super) excursion: Excursion,
    /// Segments.
    pub(super) window: u64,
    pub(super) initial_rate: Rate,
    pub(super) starts_after_timeout: bool,
    /// Up to how many packets may be missing from a p-stream that is judged once it is repaired: with 0, none is.
    pub(super) judged_missing: u64,
    pub(super) most_lateness: Dur,
}

impl Config {
    /// The configuration in `values`, for an interface whose rate `initial_rate` must not exceed.
    pub(super) fn of(values: &Values, plan: &Blueprint<'_>) -> Result<Config, BuildError> {
        let initial_rate = values.some_rate(&INITIAL_RATE);
        if initial_rate > plan.line_rate {
            let allowed = format!("at most {}, the rate of the interface", plan.line_rate);
            let given = initial_rate.to_string();
            return Err(BuildError::Param(ParamError { name: INITIAL_RATE.name, given, allowed }));
        }
        Ok(Config {
            rates: values.whole(&RATES) as u32,
            packets_per_rate: values.whole(&PACKETS_PER_RATE) as u32,
            spread: values.number(&SPREAD),
            filter: Filter {
                tau: values.span(&TAU),
                eta: values.number(&ETA),
                gamma: values.whole(&GAMMA) as u32,
                spans_all: values.word(&UPDATE_SPAN) == "all",
            },
            bass: match values.whole(&BASS_PASSES) as u32 {
                // Without a pass, no gap is compared.
                0 => Bass { passes: 0, factor: 0.0, floor: Dur::ZERO },
                passes => Bass { passes, factor: values.number(&SPIKE_FACTOR), floor: values.span(&SPIKE_FLOOR) },
            },
            excursion: Excursion {
                share: values.number(&EXCURSION_SHARE),
                persistence: values.number(&EXCURSION_PERSISTENCE),
                samples: values.whole(&EXCURSION_SAMPLES) as u32,
            },
            window: values.whole(&WINDOW),
            initial_rate,
            starts_after_timeout: values.word(&AFTER_TIMEOUT) == "start",
            judged_missing: match values.word(&LOSSY_STREAMS) {
                "until-repaired" => values.whole(&MOST_MISSING),
                _ => 0,
            },
            most_lateness: values.span(&MOST_LATENESS),
        })
    }
}
