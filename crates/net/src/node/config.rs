//! Configuration of a node.

use super::controller::ControllerChoice;
use super::path::Unmarked;
use crate::carrier::DEFAULT_DSCP;
use crate::flow::{MAX_LATENESS, TailConfig, WIRE_HEADER_BYTES};
use crate::frame::DATA_HEADER_BYTES;
use crate::line::{ASSUMED_LINE_RATE, LineSource};
use sparelane_cc::Registry;
use sparelane_core::{Dur, Rate};
use sparelane_transport::{Ecn, RtoConfig, TransportConfig};
use std::sync::Arc;

/// Known properties of a new flow, for controllers that distinguish flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowKind {
    /// The size in bytes, if it is known.
    pub bytes: Option<u64>,
    /// The port of the application, for example of a tunnel's target.
    pub port: Option<u16>,
}

impl FlowKind {
    /// Describes a flow of unknown size for the application at this port.
    pub fn of_port(port: u16) -> FlowKind {
        FlowKind { bytes: None, port: Some(port) }
    }
}

impl From<Option<u64>> for FlowKind {
    fn from(bytes: Option<u64>) -> FlowKind {
        FlowKind { bytes, port: None }
    }
}

/// Configuration of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The controller of sent flows.
    pub controller: ControllerChoice,
    /// The registry of controllers.
    pub registry: Arc<Registry>,
    /// The line rate of this host, for controllers that need it.
    pub line_rate: Rate,
    /// The source of the line rate.
    pub line_source: LineSource,
    /// The UDP port of this host, for the classification of flows by port.
    pub port: Option<u16>,
    /// Configuration of the tail.
    pub tail: TailConfig,
    /// The interval at which a paced flow sends, with everything that is due by then together; for hosts that send
    /// batches. Zero sends each segment when it is due.
    pub chunk_time: Dur,
    /// The number of priority classes, as in the carrier.
    pub classes: u8,
    /// The DSCP of each class.
    pub dscp: Vec<u8>,
    /// The policy for the tail on a path that does not keep these code points.
    pub unmarked: Unmarked,
    /// The receive window of a flow, bytes: the limit of data that is out of order or unread.
    pub window_bytes: u64,
    /// The limit of such data of all flows of an association, bytes. Beyond it, only the next segment of a flow is
    /// accepted; beyond twice the limit, none.
    pub held_bytes: u64,
    /// The limit of such data of all associations of a key, bytes. Keys that compete have less; see `node/budget.rs`.
    pub memory_per_key_bytes: u64,
    /// The limit of such data of all associations, bytes.
    pub memory_bytes: u64,
    /// The maximum number of flows of an association, in each direction.
    pub max_flows: usize,
    /// The maximum number of flows that all associations of a key may have open to this node.
    pub max_flows_per_key: usize,
    /// The minimum retransmission timeout.
    pub min_rto: Dur,
    /// Enables loss detection by time with tail loss probes (RFC 8985).
    pub rack_tlp: bool,
    /// The time without acknowledgments after which a flow fails.
    pub give_up_after: Dur,
    /// The seed of the controllers' random numbers.
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
            memory_per_key_bytes: 250_000_000,
            memory_bytes: 1_000_000_000,
            max_flows: 256,
            max_flows_per_key: 1024,
            min_rto: Dur::from_ms(200),
            rack_tlp: false,
            give_up_after: Dur::from_secs(60),
            seed: 1,
        }
    }
}

impl NodeConfig {
    /// The payload of a full segment in frames of `frame_bytes`.
    pub(crate) fn mss_bytes(&self, frame_bytes: usize) -> u64 {
        frame_bytes.saturating_sub(DATA_HEADER_BYTES).max(1) as u64
    }

    /// The transport's configuration for frames of at most `max_frame_bytes`.
    pub(crate) fn transport(&self, max_frame_bytes: usize) -> TransportConfig {
        TransportConfig {
            mss_bytes: self.mss_bytes(max_frame_bytes),
            header_bytes: WIRE_HEADER_BYTES,
            receive_window_bytes: Some(self.window_bytes),
            // Real paths reorder packets. Without the undo, each false retransmission costs seconds.
            undo_spurious: true,
            rack_tlp: self.rack_tlp,
            ecn: Ecn::Classic,
            give_up_after: Some(self.give_up_after),
            // Acknowledgments arrive between two bursts of a paced flow. Without this, they would move earlier due
            // times to the time of arrival, which BBR took for the rate of the path.
            pacing_catch_up: MAX_LATENESS,
            rto: RtoConfig { min: self.min_rto, ..RtoConfig::default() },
            ..TransportConfig::default()
        }
    }
}
