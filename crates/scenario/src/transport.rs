//! `[transport]`: settings of TCP for all schemes; `transport = { .. }` for a single scheme.

use crate::preset::Preset;
use sparelane_catalogue::schema::Field;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::document::Item;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_cc::RestartRule;
use sparelane_core::{Dur, Rate};
use sparelane_sim::MAX_PACKET_BYTES;
use sparelane_transport::{DelayedAck, Ecn, FlightSize, HEADER_BYTES, MAX_HEADER_BYTES, RdmaRecovery, TransportConfig};

const MSS: Kind = Kind::Size { min: 64, max: MAX_PACKET_BYTES - HEADER_BYTES };
const HEADER: Kind = Kind::Size { min: 20, max: MAX_HEADER_BYTES };
const TIMEOUT: Kind = Kind::Time { min: Dur::from_us(1), max: Dur::from_secs(3600) };
const FLOOR: Kind = Kind::Time { min: Dur::ZERO, max: Dur::from_secs(3600) };
/// The number of segments in a chunk.
const BATCH: Kind = Kind::Whole { min: 1, max: 65_535 };
const ECN_KINDS: [&str; 5] = ["off", "classic", "dctcp", "l4s", "accurate"];
const ECN: Kind = Kind::Special(
    "\"off\" or false, \"classic\" or true, \"dctcp\", \"l4s\", \"accurate\"",
    &Shape::Either(&[Shape::Of(Kind::Flag), Shape::Of(Kind::Choice(&ECN_KINDS))]),
);
/// The tick of a clock.
pub const TICK: Kind = Kind::Special(
    "a time such as \"1ms\", from 1ns to 10s, or \"exact\"",
    &Shape::Either(&[Shape::Of(Kind::SPAN), Shape::Of(Kind::Choice(&["exact"]))]),
);
const TICK_TIME: Kind = Kind::Time { min: Dur::from_ns(1), max: Dur::from_secs(10) };
const RESENT_TICK: Kind = Kind::Special(
    "a time such as \"1ms\", from 1ns to 10s, or \"untold\"",
    &Shape::Either(&[Shape::Of(Kind::SPAN), Shape::Of(Kind::Choice(&["untold"]))]),
);
const BUFFER: Kind = Kind::Size { min: 1, max: 1 << 50 };
const BUFFER_OR_NOT: Kind = Kind::Special(
    "a size such as \"64KiB\", or \"unlimited\"",
    &Shape::Either(&[Shape::Of(BUFFER), Shape::Of(Kind::Choice(&["unlimited"]))]),
);

const READ_RATE: Kind = Kind::Special(
    "a rate such as \"5Mbps\", or \"unlimited\"",
    &Shape::Either(&[Shape::Of(Kind::Rate), Shape::Of(Kind::Choice(&["unlimited"]))]),
);

/// The settings of a connection, without its controller.
pub static TRANSPORT: &[Key] = &[
    Key::new(
        "preset",
        Kind::Choice(&["linux", "rfc", "ns-3"]),
        Fallback::Nothing("the defaults of each key"),
        "the implementation that supplies defaults for all keys, and its own variants of controllers: Linux 6.12, \
         the text of the RFCs, or the ns-3.16 of RC3's authors",
    ),
    Key::new(
        "mode",
        Kind::Choice(&["tcp", "rdma"]),
        Fallback::Value("tcp"),
        "tcp opens connections by a handshake; rdma sends data at once, as RDMA over Ethernet does",
    ),
    Key::new(
        "rdma_recovery",
        Kind::Choice(&["go-back-n", "selective"]),
        Fallback::Value("go-back-n"),
        "with mode = rdma: the receiver drops segments out of order and the sender repeats everything from the missing one \
         on, or the repair of TCP, which repeats the missing ones alone",
    )
    .from("RoCEv2"),
    Key::new("mss", MSS, Fallback::Value("1460B"), "payload of a full segment")
        .from("Ethernet less 40 bytes of headers"),
    Key::new("header", HEADER, Fallback::Value("40B"), "header on every packet, and all of an acknowledgment")
        .from("IPv4 and TCP without options"),
    Key::new("sack", Kind::Flag, Fallback::Value("true"), "selective acknowledgments; NewReno recovery if false")
        .from("RFC 2018, RFC 6675; RFC 6582 without"),
    Key::new(
        "limited_transmit",
        Kind::Flag,
        Fallback::Value("true"),
        "new data on the first two duplicate acknowledgments",
    )
    .from("RFC 3042"),
    Key::new(
        "flight_size",
        Kind::Choice(&FLIGHT_SIZES),
        Fallback::Value("clipped"),
        "the value that a cut of the window starts from: outstanding data, at most the window; the window itself \
         (Linux); data in flight (ns-3); or all outstanding data, the literal reading of RFC 5681",
    )
    .from("RFC 5681 section 3.1"),
    Key::new(
        "prr",
        Kind::Flag,
        Fallback::Value("false"),
        "proportional rate reduction: during recovery, data sent is proportional to data delivered; needs SACK",
    )
    .from("RFC 9937; RFC 6675 without"),
    Key::new(
        "rack_tlp",
        Kind::Flag,
        Fallback::Value("false"),
        "loss detection by time (RACK), also for retransmissions, and tail loss probes; needs SACK",
    )
    .from("RFC 8985; RFC 6675 without"),
    Key::new(
        "rack_timer_delay",
        Kind::Time { min: Dur::ZERO, max: Dur::from_secs(1) },
        Fallback::Value("0s"),
        "lateness of the timers of rack_tlp, for overtaken segments and for a tail of more than one segment",
    )
    .from("RFC 8985; 2ms in Linux"),
    Key::new(
        "detect_lost_retransmissions",
        Kind::Flag,
        Fallback::Value("false"),
        "a retransmission counts as lost if data first sent after it arrives; needs SACK",
    )
    .from("Linux before RACK, with FACK; RFC 6675 leaves it to the timeout"),
    Key::new(
        "adaptive_reordering",
        Kind::Flag,
        Fallback::Value("false"),
        "loss detection adapts to the reordering of the path: it waits for more later arrivals, or with rack_tlp \
         for a longer time; needs SACK",
    )
    .from("RFC 8985 section 6.2; RFC 4653; Linux"),
    Key::new(
        "delayed_ack",
        Kind::Special("true, false, or { every = 2, timeout = \"200ms\" }", &Shape::Either(&[Shape::Of(Kind::Flag), Shape::Table("delayed_ack")])),
        Fallback::Value("false"),
        "acknowledge only every second segment, or when the timeout passes",
    )
    .from("RFC 5681 section 4.2"),
    Key::new(
        "initial_rto",
        TIMEOUT,
        Fallback::Value("1s"),
        "retransmission timeout before the first round-trip sample",
    )
    .from("RFC 6298 section 2.1"),
    Key::new("min_rto", FLOOR, Fallback::Value("200ms"), "floor of the whole timeout").from("Linux"),
    Key::new("max_rto", TIMEOUT, Fallback::Value("60s"), "ceiling of the timeout, backoff included")
        .from("RFC 6298 section 2.5"),
    Key::new("rto_variance_floor", FLOOR, Fallback::Value("1ms"), "G in RTO = SRTT + max(G, 4 RTTVAR)")
        .from("RFC 6298 section 2.3"),
    Key::new("syn_timeout", TIMEOUT, Fallback::Value("1s"), "timeout of the first SYN").from("RFC 6298 section 2.1"),
    Key::new(
        "rtt_from_handshake",
        Kind::Flag,
        Fallback::Value("true"),
        "the handshake gives the first round-trip sample",
    )
    .from("RFC 6298"),
    Key::new(
        "timestamps",
        Kind::Flag,
        Fallback::Value("true"),
        "acknowledgments identify the copy of a segment: retransmissions give round-trip samples, and progress \
         ends the backoff of the timer; Karn's rule if false",
    )
    .from("RFC 7323"),
    Key::new(
        "cached_ssthresh",
        Kind::Flag,
        Fallback::Value("false"),
        "flows start with the slow-start threshold that earlier flows between the same hosts left in the cache of \
         routes, with tcp_no_metrics_save = 0",
    )
    .from("Linux 2.6.32; since 5.6 only with tcp_no_ssthresh_metrics_save = 0"),
    Key::new("sack_survives_timeout", Kind::Flag, Fallback::Value("true"), "keep what SACK reported across a timeout")
        .from("RFC 6675 section 5.1"),
    Key::new(
        "undo_spurious",
        Kind::Flag,
        Fallback::Value("false"),
        "restore the window after a needless retransmission",
    )
    .from("RFC 3522, RFC 4015"),
    Key::new(
        "syn_loss_resets_window",
        Kind::Flag,
        Fallback::Value("true"),
        "a connection whose SYN or its answer was lost starts with one segment; RFC 6928 resets only after several",
    )
    .from("RFC 5681 section 3.1"),
    Key::new(
        "rtt_granularity",
        TICK,
        Fallback::Value("exact"),
        "tick of the timestamps for round-trip times; less than a tick counts as 1us, as in ns-3",
    )
    .from("none; 1ms in ns-3 and in the Linux of before 2024"),
    Key::new(
        "resent_rtt_tick",
        RESENT_TICK,
        Fallback::Value("untold"),
        "controllers also get round-trip times of retransmissions, by timestamps of this tick; untold: only the timer does",
    )
    .from("none; 1ms in Linux"),
    Key::new("receive_window", BUFFER_OR_NOT, Fallback::Value("unlimited"), "the receiver's window"),
    Key::new(
        "read_rate",
        READ_RATE,
        Fallback::Value("unlimited"),
        "the rate at which the application reads at the receiver; receive_window is its buffer, of 64KiB if it is \
         unlimited",
    )
    .from("none; RFC 9293 section 3.8.6 for the window"),
    Key::new(
        "send_buffer",
        BUFFER_OR_NOT,
        Fallback::Value("unlimited"),
        "the send buffer, for data unacknowledged or unsent; a smaller one splits a transfer into several writes",
    ),
    Key::new(
        "pacing_catch_up",
        Kind::Time { min: Dur::ZERO, max: Dur::from_ms(100) },
        Fallback::Value("0s"),
        "the most lateness that a pace makes up for, by sending the missed segments back to back",
    )
    .from("none"),
    Key::new(
        "restart_after_idle",
        Kind::Choice(&RESTARTS),
        Fallback::Value("no"),
        "the window of a connection that sends again after more than one retransmission timeout without sending: as \
         before (no), the initial window (rfc5681), or halved per timeout down to the initial window (linux); for \
         controllers of windows only",
    )
    .from("none; RFC 5681 section 4.1, RFC 2861"),
    Key::new(
        "ecn",
        ECN,
        Fallback::Value("off"),
        "explicit congestion notification: none, marks echoed until the window is cut, each mark echoed once, the same \
         with packets that are ECT(1), for the L queue of dualpi2, or counters of marks, which both ends negotiate, with \
         ECT(1) for scalable controllers",
    )
    .from("RFC 3168 for classic, RFC 8257 for dctcp, RFC 9331 for l4s, RFC 9768 for accurate"),
    Key::new(
        "peer_ecn",
        Kind::Choice(&PEER_KINDS),
        Fallback::Value("accurate"),
        "the ECN that the receiver supports if the sender requests \"accurate\"; the handshake decides between the two",
    )
    .from("RFC 9768 section 3.1"),
    Key::new(
        "ecn_option",
        Kind::Flag,
        Fallback::Value("true"),
        "the AccECN option with counters of bytes on acknowledgments of \"accurate\" ECN; otherwise a counter of three bits",
    )
    .from("RFC 9768 section 3.2.3"),
    Key::new(
        "send_batch",
        BATCH,
        Fallback::Value("1"),
        "segments per chunk that is sent at once, at most a third of the window (segmentation offload, TSO)",
    )
    .from("none; 44 in the Linux of NSDI 2014 section 4.2.3"),
    Key::new(
        "receive_batch",
        BATCH,
        Fallback::Value("1"),
        "the most segments that the receiving host processes and acknowledges as one chunk (receive offload, LRO)",
    )
    .from("none; NSDI 2014 section 4.2.3"),
    Key::new(
        "receive_batch_timeout",
        Kind::Time { min: Dur::from_us(1), max: Dur::from_secs(10) },
        Fallback::Value("100us"),
        "the longest time that a segment waits in its chunk for others",
    ),
];

/// The readings of RFC 5681's FlightSize, by name.
const FLIGHT_SIZES: [&str; 4] = ["clipped", "window", "pipe", "outstanding"];

/// The rules for the window after idle, by name.
const RESTARTS: [&str; 3] = ["no", "rfc5681", "linux"];

/// The keys of `delayed_ack = { .. }`.
pub static DELAYED_ACK: &[Key] = &[
    Key::new(
        "every",
        Kind::Whole { min: 1, max: 1000 },
        Fallback::Value("2"),
        "full segments per acknowledgment, at most",
    )
    .from("RFC 5681 section 4.2"),
    Key::new(
        "timeout",
        Kind::Time { min: Dur::from_us(1), max: Dur::from_secs(10) },
        Fallback::Value("200ms"),
        "the longest delay of an acknowledgment",
    )
    .from("RFC 5681 section 4.2 allows 500 ms; BSD takes 200 ms"),
];

/// Settings of TCP, and the preset that they start from, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transport {
    /// The preset, for settings outside TCP.
    pub preset: Option<Preset>,
    /// The settings.
    pub config: TransportConfig,
}

/// Applies `field` to `base`: keys that it does not give stay as they are, unless it gives a preset.
pub fn read(field: Field<'_>, base: Transport) -> Result<Transport, ScenarioError> {
    let section = field.section(&[TRANSPORT])?;
    // A preset replaces all settings of the base; the keys after it change single settings.
    let given = section.maybe("preset", preset)?;
    let Transport { preset, config: base } =
        given.map_or(base, |preset| Transport { preset: Some(preset), config: preset.transport() });
    let flag = |name: &str, base: bool| section.maybe(name, Field::flag).map(|given| given.unwrap_or(base));
    let time = |name: &str, base: Dur| section.maybe(name, Field::time).map(|given| given.unwrap_or(base));
    let mut config = base;
    config.mss_bytes = section.maybe("mss", Field::size)?.unwrap_or(base.mss_bytes);
    config.header_bytes = section.maybe("header", Field::size)?.unwrap_or(base.header_bytes);
    config.handshake = section.maybe("mode", Field::choice)?.map_or(base.handshake, |mode| mode == "tcp");
    config.rdma_recovery = match section.maybe("rdma_recovery", Field::choice)? {
        Some("selective") => RdmaRecovery::Selective,
        Some(_) => RdmaRecovery::GoBackN,
        None => base.rdma_recovery,
    };
    config.sack = flag("sack", base.sack)?;
    config.limited_transmit = flag("limited_transmit", base.limited_transmit)?;
    config.flight_size = section.maybe("flight_size", flight_size)?.unwrap_or(base.flight_size);
    config.prr = flag("prr", base.prr)?;
    config.rack_tlp = flag("rack_tlp", base.rack_tlp)?;
    config.rack_timer_delay = time("rack_timer_delay", base.rack_timer_delay)?;
    config.detect_lost_retransmissions = flag("detect_lost_retransmissions", base.detect_lost_retransmissions)?;
    config.adaptive_reordering = flag("adaptive_reordering", base.adaptive_reordering)?;
    config.timestamps = flag("timestamps", base.timestamps)?;
    config.delayed_ack = section.maybe("delayed_ack", delayed_ack)?.unwrap_or(base.delayed_ack);
    config.rto.initial = time("initial_rto", base.rto.initial)?;
    config.rto.min = time("min_rto", base.rto.min)?;
    config.rto.max = time("max_rto", base.rto.max)?;
    config.rto.variance_min = time("rto_variance_floor", base.rto.variance_min)?;
    config.rto.syn = time("syn_timeout", base.rto.syn)?;
    config.rto.handshake_sample = flag("rtt_from_handshake", base.rto.handshake_sample)?;
    config.cached_ssthresh = flag("cached_ssthresh", base.cached_ssthresh)?;
    config.sack_survives_timeout = flag("sack_survives_timeout", base.sack_survives_timeout)?;
    config.undo_spurious = flag("undo_spurious", base.undo_spurious)?;
    config.syn_loss_resets_window = flag("syn_loss_resets_window", base.syn_loss_resets_window)?;
    config.rtt_granularity = section.maybe("rtt_granularity", granularity)?.unwrap_or(base.rtt_granularity);
    config.resent_rtt_tick = section.maybe("resent_rtt_tick", resent_tick)?.unwrap_or(base.resent_rtt_tick);
    config.receive_window_bytes = section.maybe("receive_window", buffer)?.unwrap_or(base.receive_window_bytes);
    config.read_rate = section.maybe("read_rate", read_rate)?.unwrap_or(base.read_rate);
    config.send_buffer_bytes = section.maybe("send_buffer", buffer)?.unwrap_or(base.send_buffer_bytes);
    config.pacing_catch_up = time("pacing_catch_up", base.pacing_catch_up)?;
    config.restart_after_idle = section.maybe("restart_after_idle", restart)?.unwrap_or(base.restart_after_idle);
    config.ecn = section.maybe("ecn", ecn)?.unwrap_or(base.ecn);
    config.peer_ecn = section.maybe("peer_ecn", peer_ecn)?.unwrap_or(base.peer_ecn);
    config.ecn_option = section.maybe("ecn_option", |field| field.flag())?.unwrap_or(base.ecn_option);
    let batch = |name: &str, base: u32| section.maybe(name, Field::whole).map(|given| given.map_or(base, |n| n as u32));
    config.send_batch = batch("send_batch", base.send_batch)?;
    config.receive_batch = batch("receive_batch", base.receive_batch)?;
    config.receive_batch_timeout = time("receive_batch_timeout", base.receive_batch_timeout)?;

    // Relations between two settings are checked only if one of the two was given here.
    let rto = &config.rto;
    for (name, value) in [("initial_rto", rto.initial), ("min_rto", rto.min), ("syn_timeout", rto.syn)] {
        if let (Some(field), true) = (section.given(name).or_else(|| section.given("max_rto")), value > rto.max) {
            return Err(field.error(format!("{name} is {value}, above max_rto, {}", rto.max)));
        }
    }
    // These detect losses or count data in flight by the segments that SACK reports.
    let needing_sack = [
        ("prr", config.prr),
        ("rack_tlp", config.rack_tlp),
        ("detect_lost_retransmissions", config.detect_lost_retransmissions),
        ("adaptive_reordering", config.adaptive_reordering),
    ];
    for (name, on) in needing_sack {
        if let (true, false, Some(field)) = (on, config.sack, section.given(name).or_else(|| section.given("sack"))) {
            return Err(field.error(format!("{name} needs sack = true")));
        }
    }
    // The two sizes have bounds of their own, but their sum may still be too large.
    if config.packet_bytes() > MAX_PACKET_BYTES
        && let Some(field) = section.given("header").or_else(|| section.given("mss"))
    {
        let (packet, header) = (config.packet_bytes(), config.header_bytes);
        let message = format!("a packet of {packet}B with its header, {header}B; allowed: up to {MAX_PACKET_BYTES}B");
        return Err(field.error(message));
    }
    // A buffer below one segment would stop every flow.
    for (name, bytes) in [("receive_window", config.receive_window_bytes), ("send_buffer", config.send_buffer_bytes)] {
        let Some(bytes) = bytes.filter(|&bytes| bytes < config.mss_bytes) else { continue };
        if let Some(field) = section.given(name).or_else(|| section.given("mss")) {
            return Err(field.error(format!("{name} is {bytes}B, below one segment, {}B", config.mss_bytes)));
        }
    }
    Ok(Transport { preset, config })
}

fn preset(field: &Field<'_>) -> Result<Preset, ScenarioError> {
    let word = field.word(Preset::NAMES.into_iter().map(|(name, _)| name))?;
    let found = Preset::NAMES.into_iter().find(|(name, _)| *name == word);
    found.map(|(_, preset)| preset).ok_or_else(|| field.refuse("unknown"))
}

fn flight_size(field: &Field<'_>) -> Result<FlightSize, ScenarioError> {
    match field.word(FLIGHT_SIZES.into_iter())? {
        "window" => Ok(FlightSize::Window),
        "pipe" => Ok(FlightSize::Pipe),
        "outstanding" => Ok(FlightSize::Outstanding),
        _ => Ok(FlightSize::Clipped),
    }
}

fn restart(field: &Field<'_>) -> Result<Option<RestartRule>, ScenarioError> {
    Ok(match field.word(RESTARTS.into_iter())? {
        "rfc5681" => Some(RestartRule::Rfc5681),
        "linux" => Some(RestartRule::Linux),
        _ => None,
    })
}

fn delayed_ack(field: &Field<'_>) -> Result<Option<DelayedAck>, ScenarioError> {
    if !field.is_table() && !field.flag()? {
        return Ok(None);
    }
    let table = if field.is_table() { field.clone() } else { field.empty_table() };
    let section = table.section(&[DELAYED_ACK])?;
    let every_segments = section.need("every")?.whole()? as u32;
    Ok(Some(DelayedAck { every_segments, timeout: section.need("timeout")?.time()? }))
}

fn ecn(field: &Field<'_>) -> Result<Ecn, ScenarioError> {
    if let Item::Flag(on) = field.item() {
        return Ok(if *on { Ecn::Classic } else { Ecn::Off });
    }
    match field.word(ECN_KINDS.into_iter())? {
        "classic" => Ok(Ecn::Classic),
        "dctcp" => Ok(Ecn::Dctcp),
        "l4s" => Ok(Ecn::L4s),
        "accurate" => Ok(Ecn::Accurate),
        _ => Ok(Ecn::Off),
    }
}

/// The kinds of ECN that a receiver may support beside a sender with accurate ECN.
const PEER_KINDS: [&str; 3] = ["off", "classic", "accurate"];

fn peer_ecn(field: &Field<'_>) -> Result<Ecn, ScenarioError> {
    match field.word(PEER_KINDS.into_iter())? {
        "accurate" => Ok(Ecn::Accurate),
        "classic" => Ok(Ecn::Classic),
        _ => Ok(Ecn::Off),
    }
}

/// Reads a [`TICK`].
pub fn granularity(field: &Field<'_>) -> Result<Option<Dur>, ScenarioError> {
    tick_or(field, "exact")
}

fn resent_tick(field: &Field<'_>) -> Result<Option<Dur>, ScenarioError> {
    tick_or(field, "untold")
}

/// Reads a tick, or the word `none`.
fn tick_or(field: &Field<'_>, none: &str) -> Result<Option<Dur>, ScenarioError> {
    if field.is_text(none) {
        return Ok(None);
    }
    field.clone().with_kind(TICK_TIME).time().map(Some)
}

fn buffer(field: &Field<'_>) -> Result<Option<u64>, ScenarioError> {
    if field.is_text("unlimited") {
        return Ok(None);
    }
    field.clone().with_kind(BUFFER).size().map(Some)
}

fn read_rate(field: &Field<'_>) -> Result<Option<Rate>, ScenarioError> {
    if field.is_text("unlimited") {
        return Ok(None);
    }
    field.clone().with_kind(Kind::Rate).rate().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_catalogue::schema::document::Document;

    fn parse(text: &str) -> Result<TransportConfig, String> {
        let document = Document::parse(text, "t.toml").map_err(|error| error.to_string())?;
        let read = read(Field::root(&document), Transport::default()).map_err(|error| error.to_string())?;
        Ok(read.config)
    }

    #[test]
    fn the_documented_defaults_are_the_transports_own() {
        // The base differs from the defaults everywhere, so that each default must come from the table.
        let written: String = TRANSPORT
            .iter()
            .filter(|key| key.name != "preset")
            .map(|key| match (key.kind, key.default) {
                (Kind::Flag | Kind::Whole { .. }, Fallback::Value(text)) => format!("{} = {text}\n", key.name),
                (_, Fallback::Value("false")) => format!("{} = false\n", key.name),
                (_, Fallback::Value(text)) => format!("{} = \"{text}\"\n", key.name),
                _ => panic!("{} has no default", key.name),
            })
            .collect();
        let document = Document::parse(&written, "t.toml").expect("valid TOML");
        let config = parse(
            "mode = \"rdma\"\nrdma_recovery = \"selective\"\nheader = \"66B\"\nflight_size = \"pipe\"\nprr = false\nrack_tlp = false\ntimestamps = false\nmss = \"500B\"\nsack = false\nlimited_transmit = false\ndelayed_ack = true\ninitial_rto = \"3s\"\n\
             min_rto = \"1s\"\nmax_rto = \"9s\"\nrto_variance_floor = \"9ms\"\nsyn_timeout = \"3s\"\n\
             rtt_from_handshake = false\n\
             sack_survives_timeout = false\nundo_spurious = true\nsyn_loss_resets_window = false\nreceive_window = \"1MB\"\nread_rate = \"5Mbps\"\n\
             pacing_catch_up = \"1ms\"\nrestart_after_idle = \"linux\"\nrtt_granularity = \"1ms\"\nresent_rtt_tick = \"1ms\"\nrack_timer_delay = \"1ms\"\nsend_buffer = \"1MB\"\necn = true\npeer_ecn = \"classic\"\necn_option = false\nsend_batch = 3\n\
             receive_batch = 3\nreceive_batch_timeout = \"5us\"\n",
        )
        .expect("valid settings");
        let other = Transport { preset: None, config: TransportConfig { prr: true, rack_tlp: true, ..config } };
        assert_eq!(read(Field::root(&document), other), Ok(Transport::default()));
    }

    #[test]
    fn delayed_acknowledgments_are_off_on_or_detailed() {
        let delayed = |text: &str| parse(text).expect("valid").delayed_ack.map(|ack| (ack.every_segments, ack.timeout));
        assert_eq!(delayed("delayed_ack = false"), None);
        assert_eq!(delayed("delayed_ack = true"), Some((2, Dur::from_ms(200))));
        assert_eq!(delayed("delayed_ack = { every = 4 }"), Some((4, Dur::from_ms(200))));
        assert_eq!(delayed("delayed_ack = { timeout = \"40ms\" }"), Some((2, Dur::from_ms(40))));
    }

    #[test]
    fn a_preset_sets_all_keys_and_other_given_keys_override_it() {
        let linux = parse("prr = false\npreset = \"linux\"\nmin_rto = \"50ms\"").expect("valid");
        assert_eq!((linux.mss_bytes, linux.header_bytes, linux.rto.min), (1448, 66, Dur::from_ms(50)));
        assert!(linux.rack_tlp && !linux.prr && linux.flight_size == FlightSize::Window);
        let ns3 = parse("preset = \"ns-3\"").expect("valid");
        assert_eq!((ns3.rto.syn, ns3.timestamps, ns3.flight_size), (Dur::from_secs(3), false, FlightSize::Pipe));
        let message = "t.toml:1: preset = \"windows\": unknown; allowed: linux, rfc, ns-3";
        assert_eq!(parse("preset = \"windows\""), Err(message.to_owned()));
    }

    #[test]
    fn a_scheme_keeps_the_preset_of_all_unless_it_gives_its_own() {
        let linux = Transport { preset: Some(Preset::Linux), config: Preset::Linux.transport() };
        let own = |text: &str| {
            let document = Document::parse(text, "t.toml").expect("valid TOML");
            read(Field::root(&document), linux).expect("valid settings")
        };
        assert_eq!((own("mss = \"1000B\"").preset, own("mss = \"1000B\"").config.prr), (Some(Preset::Linux), true));
        assert_eq!(own("preset = \"ns-3\"").config, Preset::Ns3.transport());
    }

    #[test]
    fn ecn_is_off_or_one_of_four_kinds_and_a_flag_means_one_of_the_first_two() {
        let ecn = |text: &str| parse(text).map(|config| config.ecn);
        assert_eq!([ecn("ecn = \"off\""), ecn("ecn = false"), ecn("")], [const { Ok(Ecn::Off) }; 3]);
        assert_eq!([ecn("ecn = \"classic\""), ecn("ecn = true")], [const { Ok(Ecn::Classic) }; 2]);
        assert_eq!(ecn("ecn = \"dctcp\""), Ok(Ecn::Dctcp));
        assert_eq!([ecn("ecn = \"l4s\""), ecn("ecn = \"accurate\"")], [Ok(Ecn::L4s), Ok(Ecn::Accurate)]);
        let message =
            "t.toml:1: ecn = \"dtcp\": unknown; allowed: off, classic, dctcp, l4s, accurate; did you mean \"dctcp\"?";
        assert_eq!(ecn("ecn = \"dtcp\""), Err(message.to_owned()));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let cases = [
            ("min_rto = \"2min\"", "t.toml:1: min_rto = \"2min\": min_rto is 120s, above max_rto, 60s"),
            ("max_rto = \"0.5s\"", "t.toml:1: max_rto = \"0.5s\": initial_rto is 1s, above max_rto, 500ms"),
            (
                "send_buffer = \"1kB\"",
                "t.toml:1: send_buffer = \"1kB\": send_buffer is 1000B, below one segment, 1460B",
            ),
            ("sack = false\nprr = true", "t.toml:2: prr = true: prr needs sack = true"),
            ("sack = false\npreset = \"linux\"", "t.toml:1: sack = false: prr needs sack = true"),
            (
                "mss = \"65495B\"\nheader = \"66B\"",
                "t.toml:2: header = \"66B\": a packet of 65561B with its header, 66B; allowed: up to 65535B",
            ),
            ("mss = \"10B\"", "t.toml:1: mss = \"10B\": out of range; allowed: a size from 64B to 65495B"),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text), Err(message.to_owned()));
        }
    }
}
