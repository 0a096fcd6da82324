//! What can be set about a node.

use super::path::Unmarked;
use crate::carrier::DEFAULT_DSCP;
use crate::flow::{MOST_LATENESS, TailConfig, WIRE_HEADER_BYTES};
use crate::frame::DATA_HEADER_BYTES;
use sparelane_cc::{Blueprint, BuildError, CongestionControl, Needs, Registry, Value, Values};
use sparelane_core::{Dur, Rate};
use sparelane_transport::{Ecn, RtoConfig, TransportConfig};
use std::sync::Arc;

/// A controller by name, with its values and those of a controller inside.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerChoice {
    /// Its name in the registry.
    pub name: String,
    /// What is set of it.
    pub values: Values,
    /// What is set of a controller inside.
    pub inner: Values,
}

impl ControllerChoice {
    /// A controller with its defaults, and what Linux has on: CUBIC leaves slow start by HyStart, BBR allows for acknowledgments
    /// that come in bundles and for segments that leave so; inside of another, too.
    pub fn named(name: &str) -> ControllerChoice {
        let mut choice =
            ControllerChoice { name: name.to_owned(), values: Values::default(), inner: Values::default() };
        match name {
            "cubic" => choice.values.set("hystart", Value::Flag(true)),
            "bbr" => {
                choice.values.set("ack_aggregation", Value::Flag(true));
                // 64 kB.
                choice.values.set("quantum", Value::Whole(46));
                // Acknowledgments and timers of real hosts are late by so much at times.
                choice.values.set("rtt_floor", Value::Span(Dur::from_ms(1)));
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
        Ok(self.build(registry, 1400, None, line_rate)?.needs())
    }

    /// The controller for a flow of so many bytes, if that is known.
    pub(crate) fn build(
        &self,
        registry: &Registry,
        mss_bytes: u64,
        flow_bytes: Option<u64>,
        line_rate: Rate,
    ) -> Result<Box<dyn CongestionControl>, BuildError> {
        let plan = Blueprint {
            mss_bytes,
            header_bytes: WIRE_HEADER_BYTES,
            flow_bytes,
            traffic_class: None,
            line_rate,
            inner: &self.inner,
            registry,
        };
        registry.build(&self.name, &self.values, &plan)
    }
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
            line_rate: Rate::from_gbps(1),
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
