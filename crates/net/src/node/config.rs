//! What can be set about a node.

use super::path::Unmarked;
use crate::carrier::DEFAULT_DSCP;
use crate::flow::{MOST_LATENESS, TailConfig, WIRE_HEADER_BYTES};
use crate::frame::DATA_HEADER_BYTES;
use crate::route::{ASSUMED_LINE_RATE, LineSource};
use sparelane_cc::{Blueprint, BuildError, CongestionControl, Needs, Registry, Value, Values};
use sparelane_core::{Dur, Rate};
use sparelane_transport::{Ecn, RtoConfig, TransportConfig};
use std::borrow::Cow;
use std::sync::Arc;

/// RAPID begins with this on the wire: some ten packets in 60 ms. The paper's 100 kb/s, at which its first 64 packets take seven
/// seconds, are for networks whose hosts have days.
const RAPID_INITIAL_RATE: Rate = Rate::from_mbps(2);

/// A packet of RAPID that is later than this begins a new p-stream on the wire. Hosts that have other work to do are late by more
/// than the millisecond of the simulator's, and a p-stream that is cut short says nothing.
const RAPID_MOST_LATENESS: Dur = Dur::from_ms(10);

/// RTCP's least window on the wire: what a flow begins with. Losses are repaired at this pace, a window in each round trip.
const RTCP_MIN_WINDOW: u64 = 10;

/// RTCP's delta, KB/ms, on paths of a round trip below half a millisecond: that of the paper's testbed. A smaller delay than this asks
/// for is the hosts' own.
const RTCP_MOST_DELTA: f64 = 125.0;

/// What is known of a flow when it begins: for controllers whose flows are not all alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKind {
    /// Its bytes, if they are known.
    pub bytes: Option<u64>,
    /// The port of the application that it is for, as in a tunnel.
    pub port: Option<u16>,
}

impl FlowKind {
    /// A flow of unknown length for the application at this port.
    pub fn of_port(port: u16) -> FlowKind {
        FlowKind { bytes: None, port: Some(port) }
    }
}

impl From<Option<u64>> for FlowKind {
    fn from(bytes: Option<u64>) -> FlowKind {
        FlowKind { bytes, port: None }
    }
}

/// What a controller is built for.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowFacts {
    /// Its bytes, if they are known.
    pub bytes: Option<u64>,
    /// The ports that it may be told by, the most telling one first.
    pub ports: Vec<u16>,
    /// The path's round trip, as far as it is known.
    pub round_trip: Option<Dur>,
}

/// A controller by name, with its values and those of a controller inside.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerChoice {
    /// Its name in the registry.
    pub name: String,
    /// What is set of it.
    pub values: Values,
    /// What is set of a controller inside.
    pub inner: Values,
    /// The ports that have a weight of their own, where flows are told apart by them.
    pub ports: Vec<u16>,
}

impl ControllerChoice {
    /// A controller with its defaults, and what Linux has on: CUBIC leaves slow start by HyStart, BBR allows for acknowledgments
    /// that come in bundles and for segments that leave so; inside of another, too. RAPID and RTCP have the wire's own, which the
    /// constants of this file name.
    pub fn named(name: &str) -> ControllerChoice {
        let (values, inner) = Default::default();
        let mut choice = ControllerChoice { name: name.to_owned(), values, inner, ports: vec![] };
        match name {
            "cubic" => choice.values.set("hystart", Value::Flag(true)),
            "bbr" => {
                choice.values.set("ack_aggregation", Value::Flag(true));
                // 64 kB.
                choice.values.set("quantum", Value::Whole(46));
                // Acknowledgments and timers of real hosts are late by so much at times.
                choice.values.set("rtt_floor", Value::Span(Dur::from_ms(1)));
            }
            "rapid" => {
                choice.values.set("initial_rate", Value::Rate(Some(RAPID_INITIAL_RATE)));
                choice.values.set("most_lateness", Value::Span(RAPID_MOST_LATENESS));
            }
            "rtcp" => {
                // What waits at this host's own interface is not known here: it counts as delay, as on the paper's testbed.
                choice.values.set("interface", Value::Word("delay".to_owned()));
                // Windows double until congestion is felt, a round trip later; what is beyond the path's own would be lost.
                choice.values.set("x_max", Value::Number(1.0));
                choice.values.set("min_window", Value::Whole(RTCP_MIN_WINDOW));
            }
            "rc3" => choice = choice.around("cubic"),
            _ => {}
        }
        choice
    }

    /// This one around another, with that one's defaults.
    pub fn around(mut self, inner: &str) -> ControllerChoice {
        self.values.set("inner", Value::Word(inner.to_owned()));
        self.inner = if inner == "rc3" { Values::default() } else { ControllerChoice::named(inner).values };
        self
    }

    /// What the controller wants to be told.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn needs(&self, registry: &Registry, line_rate: Rate) -> Result<Needs, BuildError> {
        Ok(self.build(registry, 1400, &FlowFacts::default(), line_rate)?.needs())
    }

    /// The controller for a flow.
    pub(crate) fn build(
        &self,
        registry: &Registry,
        mss_bytes: u64,
        flow: &FlowFacts,
        line_rate: Rate,
    ) -> Result<Box<dyn CongestionControl>, BuildError> {
        let port = flow.ports.iter().find(|port| self.ports.contains(port)).map(u16::to_string);
        let inner = for_path(self.inner_name(), &self.inner, flow);
        let plan = Blueprint {
            mss_bytes,
            header_bytes: WIRE_HEADER_BYTES,
            flow_bytes: flow.bytes,
            traffic_class: port.as_deref(),
            line_rate,
            inner: &inner,
            registry,
        };
        registry.build(&self.name, &for_path(&self.name, &self.values, flow), &plan)
    }

    /// The name of the controller inside, if there is one.
    fn inner_name(&self) -> &str {
        match self.values.given("inner") {
            Some(Value::Word(name)) => name,
            _ => "",
        }
    }

    /// Whether this controller, or the one inside, is of this name.
    pub fn has(&self, name: &str) -> bool {
        self.name == name || self.inner_name() == name
    }
}

/// What is set of a controller, for the path that a flow takes. RTCP's delta says how much delay is congestion: where nothing else is
/// set, half a round trip halves the window of a flow that has what it is to have (H = w / 2, eq. 6). The datacentre's delta would take
/// the transmission of a packet for congestion.
fn for_path<'a>(name: &str, values: &'a Values, flow: &FlowFacts) -> Cow<'a, Values> {
    let Some(round_trip) = flow.round_trip.filter(|_| name == "rtcp" && values.given("delta").is_none()) else {
        return Cow::Borrowed(values);
    };
    let number = |key: &str, default: f64| match values.given(key) {
        Some(Value::Number(number)) => *number,
        _ => default,
    };
    // The defaults of the controller.
    let (weight, alpha) = (number("weight", 24_000.0), number("alpha", 500.0) * number("alpha_unit", 1.0));
    let half_ms = round_trip.as_secs_f64() * 1e3 / 2.0;
    let delta = (weight / 2.0 / (alpha * half_ms).max(1e-9)).min(RTCP_MOST_DELTA);
    let mut values = values.clone();
    values.set("delta", Value::Number(delta / number("delta_unit", 1.0)));
    Cow::Owned(values)
}

/// Everything that can be set about a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The controller of flows that this node sends.
    pub controller: ControllerChoice,
    /// Where it is found.
    pub registry: Arc<Registry>,
    /// The rate of this host's interface, for controllers that want to know it.
    pub line_rate: Rate,
    /// From where that is known.
    pub line_source: LineSource,
    /// The UDP port of this host, where flows are told apart by ports.
    pub port: Option<u16>,
    /// The tail's pace.
    pub tail: TailConfig,
    /// A paced flow sends so often at most, and all that is due by then together: for hosts that send batches. Zero sends segment by
    /// segment.
    pub chunk_time: Dur,
    /// Classes of priority; as many as the carrier has.
    pub classes: u8,
    /// The code point of each.
    pub dscp: Vec<u8>,
    /// What is done with the tail where the path does not keep these.
    pub unmarked: Unmarked,
    /// The receive window of a flow: so much of it is held at most that is out of order or not read, bytes.
    pub window_bytes: u64,
    /// What is held of all flows of an association together at most, bytes: beyond it nothing is taken but what a flow waits for
    /// next, and beyond twice as much nothing at all.
    pub held_bytes: u64,
    /// The most flows of one association that are received, and that are sent, at a time.
    pub max_flows: usize,
    /// Floor of the retransmission timeout.
    pub min_rto: Dur,
    /// Loss detection by time, with a probe of tails (RFC 8985).
    pub rack_tlp: bool,
    /// Flows give up when nothing has come back for so long.
    pub give_up_after: Dur,
    /// For the random numbers of controllers.
    pub seed: u64,
}

impl Default for NodeConfig {
    fn default() -> NodeConfig {
        NodeConfig {
            controller: ControllerChoice::named("rc3"),
            registry: Registry::built_in(),
            line_rate: ASSUMED_LINE_RATE,
            line_source: LineSource::Assumed,
            port: None,
            tail: TailConfig::default(),
            chunk_time: Dur::ZERO,
            classes: 4,
            dscp: DEFAULT_DSCP.to_vec(),
            unmarked: Unmarked::default(),
            window_bytes: 32 << 20,
            held_bytes: 64 << 20,
            max_flows: 256,
            min_rto: Dur::from_ms(200),
            rack_tlp: false,
            give_up_after: Dur::from_secs(60),
            seed: 1,
        }
    }
}

impl NodeConfig {
    /// Payload of a full segment in frames of so many bytes.
    pub(crate) fn mss_bytes(&self, frame_bytes: usize) -> u64 {
        frame_bytes.saturating_sub(DATA_HEADER_BYTES).max(1) as u64
    }

    /// The transport's settings where frames have so many bytes at most.
    pub(crate) fn transport(&self, max_frame_bytes: usize) -> TransportConfig {
        TransportConfig {
            mss_bytes: self.mss_bytes(max_frame_bytes),
            header_bytes: WIRE_HEADER_BYTES,
            receive_window_bytes: Some(self.window_bytes),
            // A real path reorders; what it costs without is seconds.
            undo_spurious: true,
            rack_tlp: self.rack_tlp,
            ecn: Ecn::Classic,
            give_up_after: Some(self.give_up_after),
            // Acknowledgments come between two chunks of a pace, and would move what is due before them to their time: BBR took that
            // for the rate of the path.
            pacing_catch_up: MOST_LATENESS,
            rto: RtoConfig { min: self.min_rto, ..RtoConfig::default() },
            ..TransportConfig::default()
        }
    }
}
