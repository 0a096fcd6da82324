//! The parameters of RAPID.

use super::adaptor::Filter;
use super::bass::Bass;
use super::estimator::Excursion;
use crate::param::{DefaultValue, Kind, Param, ParamError, Unit, Values};
use crate::registry::{Blueprint, BuildError};
use crate::wire::WireValue;
use sparelane_core::{Dur, Rate};

const PAPER: &str = "Yin, Kaur, Smith, INFOCOM 2017";

const RATES: Param = Param {
    name: "rates",
    kind: Kind::Whole { min: 2, max: 64, unit: Unit::Named("rates") },
    default: DefaultValue::Whole(4),
    meaning: "N_r: number of rates that one p-stream probes",
    source: PAPER,
};

const PACKETS_PER_RATE: Param = Param {
    name: "packets_per_rate",
    kind: Kind::Whole { min: 1, max: 1024, unit: Unit::Named("packets") },
    default: DefaultValue::Whole(16),
    meaning: "N_p: number of packets of a p-stream at each rate",
    source: PAPER,
};

const SPREAD: Param = Param {
    name: "spread",
    kind: Kind::Number { min: 1.001, max: 8.0, unit: Unit::One },
    default: DefaultValue::Number(1.1487),
    meaning: "s: ratio of each rate of a p-stream to the previous one",
    source: "gaps in the authors' development logs: 2^(1/5)",
};

const TAU: Param = Param {
    name: "tau",
    kind: Kind::Span { min: Dur::from_us(1), max: Dur::from_secs(100) },
    default: DefaultValue::Span(Dur::from_ms(10)),
    meaning: "time constant with which the rate converges to more bandwidth",
    source: PAPER,
};

const ETA: Param = Param {
    name: "eta",
    kind: Kind::Number { min: 1.0, max: 1000.0, unit: Unit::Named("updates") },
    default: DefaultValue::Number(3.0),
    meaning: "number of updates in which the rate converges to less bandwidth; the paper's Table VI prints 1/eta",
    source: PAPER,
};

const GAMMA: Param = Param {
    name: "gamma",
    kind: Kind::Whole { min: 1, max: 1000, unit: Unit::Named("p-streams") },
    default: DefaultValue::Whole(3),
    meaning: "number of p-streams whose mean estimate makes one update of the rate",
    source: PAPER,
};

const UPDATE_SPAN: Param = Param {
    name: "update_span",
    kind: Kind::Choice(&["last", "all"]),
    default: DefaultValue::Word("last"),
    meaning: "l of the filter: the duration of the last p-stream of an update, or of all its gamma p-streams together",
    source: "section II has the just-acked p-stream, with one update for each; open for gamma of them",
};

const BASS_PASSES: Param = Param {
    name: "bass_passes",
    kind: Kind::Whole { min: 0, max: 10, unit: Unit::Named("passes") },
    default: DefaultValue::Whole(3),
    meaning: "maximum number of passes of spike smoothing (BASS); 0 uses the raw gaps",
    source: PAPER,
};

const SPIKE_FACTOR: Param = Param {
    name: "spike_factor",
    kind: Kind::Number { min: 0.0, max: 1000.0, unit: Unit::Named("medians") },
    default: DefaultValue::Number(0.5),
    meaning: "a spike exceeds the previous receive gap by this many medians of the receive gaps",
    source: "open in the paper; with 1, a coalesced event of one or two samples is no spike, and the noise keeps \
              rates low",
};

const SPIKE_FLOOR: Param = Param {
    name: "spike_floor",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(1) },
    default: DefaultValue::Span(Dur::from_us(5)),
    meaning: "minimum excess of a spike over the previous receive gap",
    source: "open in the paper; 50us at 1 Gb/s in the authors' development logs",
};

const EXCURSION_SHARE: Param = Param {
    name: "excursion_share",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.03),
    meaning: "share by which the receive gap of a delayed packet exceeds its send gap; also required of a whole \
               excursion",
    source: "open in the paper; the authors' development logs have 1us to 2us for two packets at 10 Gb/s",
};

const EXCURSION_PERSISTENCE: Param = Param {
    name: "excursion_persistence",
    kind: Kind::Number { min: 0.0, max: 1.0, unit: Unit::One },
    default: DefaultValue::Number(0.45),
    meaning: "minimum share of an excursion's packets that were delayed",
    source: "the authors' development logs have 4 of 8; at that value, constant-rate cross traffic suffers losses",
};

const EXCURSION_SAMPLES: Param = Param {
    name: "excursion_samples",
    kind: Kind::Whole { min: 1, max: 64, unit: Unit::Named("samples") },
    default: DefaultValue::Whole(8),
    meaning: "minimum number of samples in an excursion",
    source: "the authors' development logs",
};

const WINDOW: Param = Param {
    name: "window",
    kind: Kind::Whole { min: 1, max: 10_000_000, unit: Unit::Segments },
    default: DefaultValue::Whole(16_000),
    meaning: "fixed congestion window, far above the path's capacity; includes packets waiting in the scheduler",
    source: PAPER,
};

const INITIAL_RATE: Param = Param {
    name: "initial_rate",
    kind: Kind::Rate { min: Rate::from_bps(1_000), max: Rate::from_gbps(400) },
    default: DefaultValue::Rate(Some(Rate::from_bps(100_000))),
    meaning: "R_avg of a new connection and after a timeout; a rate on the wire",
    source: PAPER,
};

const MIN_RATE: Param = Param {
    name: "min_rate",
    kind: Kind::Rate { min: Rate::from_bps(1_000), max: Rate::from_gbps(400) },
    default: DefaultValue::Rate(Some(Rate::from_bps(100_000))),
    meaning: "minimum of R_avg, at most initial_rate; a rate on the wire",
    source: "sparelane: the paper states none; the default is its initial rate",
};

const AFTER_TIMEOUT: Param = Param {
    name: "after_timeout",
    kind: Kind::Choice(&["start", "continue"]),
    default: DefaultValue::Word("start"),
    meaning: "whether a timeout resets R_avg to initial_rate (start) or leaves it unchanged (continue)",
    source: "open in the paper",
};

const LOSSY_STREAMS: Param = Param {
    name: "lossy_streams",
    kind: Kind::Choice(&["skipped", "until-repaired"]),
    default: DefaultValue::Word("skipped"),
    meaning: "a p-stream with losses is skipped, or judged once all its packets are acknowledged: its estimate is \
               its size over the time until then (until-repaired)",
    source: "the authors' development logs skip it; section II judges a p-stream once all its acknowledgments have \
              returned",
};

const MOST_MISSING: Param = Param {
    name: "most_missing",
    kind: Kind::Whole { min: 1, max: 65_536, unit: Unit::Named("packets") },
    default: DefaultValue::Whole(1),
    meaning: "with lossy_streams = until-repaired: maximum number of missing packets in a p-stream that is judged; \
               others are skipped",
    source: "open in the paper",
};

const MOST_LATENESS: Param = Param {
    name: "most_lateness",
    kind: Kind::Span { min: Dur::ZERO, max: Dur::from_secs(10) },
    default: DefaultValue::Span(Dur::from_ms(1)),
    meaning: "a packet that leaves later than this starts a new p-stream",
    source: "open in the paper",
};

/// All parameters of RAPID.
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
    MIN_RATE,
    AFTER_TIMEOUT,
    LOSSY_STREAMS,
    MOST_MISSING,
    MOST_LATENESS,
];

/// Defaults on a real network.
pub(super) const WIRE_VALUES: &[WireValue] = &[
    // At 2 Mb/s the first 64 packets take about 400 ms. At the paper's 100 kb/s they take seven seconds.
    WireValue::new(INITIAL_RATE.name, DefaultValue::Rate(Some(Rate::from_mbps(2)))),
    // Busy hosts are late by more than the simulator's millisecond, and an interrupted p-stream yields no estimate.
    WireValue::new(MOST_LATENESS.name, DefaultValue::Span(Dur::from_ms(10))),
];

/// The parsed values of [`PARAMS`].
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) rates: u32,
    pub(super) packets_per_rate: u32,
    pub(super) spread: f64,
    pub(super) filter: Filter,
    pub(super) bass: Bass,
    pub(super) excursion: Excursion,
    /// The fixed window in segments.
    pub(super) window: u64,
    pub(super) initial_rate: Rate,
    pub(super) min_rate: Rate,
    pub(super) starts_after_timeout: bool,
    /// The maximum number of missing packets in a p-stream that is judged once repaired; 0 judges none.
    pub(super) judged_missing: u64,
    pub(super) most_lateness: Dur,
}

impl Config {
    /// Reads the configuration from `values`.
    ///
    /// # Errors
    /// Fails if `initial_rate` exceeds the rate of the interface, or is less than `min_rate`.
    pub(super) fn of(values: &Values, plan: &Blueprint<'_>) -> Result<Config, BuildError> {
        let initial_rate = values.some_rate(&INITIAL_RATE);
        if initial_rate > plan.line_rate {
            let allowed = format!("at most {}, the rate of the interface", plan.line_rate);
            let given = initial_rate.to_string();
            return Err(BuildError::Param(ParamError { name: INITIAL_RATE.name, given, allowed }));
        }
        let min_rate = values.some_rate(&MIN_RATE);
        if min_rate > initial_rate {
            let allowed = format!("at most initial_rate, which is {initial_rate}");
            return Err(BuildError::Param(ParamError { name: MIN_RATE.name, given: min_rate.to_string(), allowed }));
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
                // Without a pass, no thresholds are needed.
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
            min_rate,
            starts_after_timeout: values.word(&AFTER_TIMEOUT) == "start",
            judged_missing: match values.word(&LOSSY_STREAMS) {
                "until-repaired" => values.whole(&MOST_MISSING),
                _ => 0,
            },
            most_lateness: values.span(&MOST_LATENESS),
        })
    }
}
