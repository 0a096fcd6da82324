//! The settings of a TCP connection.

use sparelane_cc::RestartRule;
use sparelane_core::{Dur, Rate};

/// The default [header size](TransportConfig::header_bytes): IPv4 and TCP without options, in bytes.
pub const HEADER_BYTES: u64 = 40;

/// The largest header size in bytes: IPv4 and TCP with all options, plus encapsulation.
pub const MAX_HEADER_BYTES: u64 = 255;

/// The largest number of outstanding segments. It keeps the low 32 bits of their sequence numbers unambiguous.
pub const MAX_WINDOW_SEGMENTS: u64 = 1 << 30;

/// The receive window of an application with a [read rate](TransportConfig::read_rate), unless one is given: Linux's
/// first one.
pub const DEFAULT_READ_BUFFER_BYTES: u64 = 64 << 10;

/// Settings of delayed acknowledgments (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// The number of full segments after which an acknowledgment is sent.
    pub every_segments: u32,
    /// The longest delay of an acknowledgment after data arrived.
    pub timeout: Dur,
}

/// Settings of the retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RtoConfig {
    /// The minimum RTO (RFC 6298 rule 2.4).
    pub min: Dur,
    /// The maximum RTO, including backoff (RFC 6298 rule 2.5).
    pub max: Dur,
    /// The minimum of the variance term, which is G in RFC 6298 rule 2.3: RTO = SRTT + max(G, 4 RTTVAR).
    pub variance_min: Dur,
    /// The RTO before the first round-trip sample (RFC 6298 rule 2.1).
    pub initial: Dur,
    /// The timeout of the first SYN.
    pub syn: Dur,
    /// Use the handshake as the first round-trip sample.
    pub handshake_sample: bool,
}

/// Explicit congestion notification (ECN): how the receiver echoes marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Packets are not ECN-capable, so queues drop them instead of marking them.
    #[default]
    Off,
    /// RFC 3168: the receiver sets ECE from a mark until the sender's CWR.
    Classic,
    /// RFC 8257 section 3.2: the receiver echoes each mark once, so that the sender can compute the marked fraction.
    Dctcp,
    /// The same echo, from a sender whose packets are ECT(1), so that coupled dual queues (RFC 9332) give them low
    /// latency. RFC 9331 section 4 has the requirements on its congestion control.
    L4s,
    /// RFC 9768 (AccECN): both ends negotiate it, and the receiver reports counters of marked packets and bytes.
    /// Packets of [scalable](sparelane_cc::Needs::scalable) controllers are ECT(1).
    Accurate,
}

impl Ecn {
    /// Returns true if the receiver echoes each mark once.
    #[inline(always)]
    pub const fn is_exact(self) -> bool {
        matches!(self, Ecn::Dctcp | Ecn::L4s)
    }

    /// Returns true if the sender learns of every mark, by an echo or by counters.
    #[inline(always)]
    pub const fn reports_every_mark(self) -> bool {
        matches!(self, Ecn::Dctcp | Ecn::L4s | Ecn::Accurate)
    }
}

/// The definition of FlightSize (RFC 5681 section 2) that is passed to the controller with each congestion event.
///
/// The definitions differ during recovery. While the first hole persists, the data above it is not cumulatively
/// acknowledged and can grow to several windows; half of that would be no reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlightSize {
    /// The data sent but not cumulatively acknowledged, without limited transmit's segments, limited to the congestion
    /// window.
    #[default]
    Clipped,
    /// The congestion window, even if it is not fully used, as in Linux.
    Window,
    /// The pipe of RFC 6675, as in ns-3.
    Pipe,
    /// The data sent but not cumulatively acknowledged, without limited transmit's segments (RFC 5681 section 3.2).
    Outstanding,
}

/// The repair of losses on connections without a handshake, as RDMA over Ethernet has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RdmaRecovery {
    /// Go-back-N: the receiver drops segments out of order and names the one that it expects, from which on the sender
    /// repeats everything.
    #[default]
    GoBackN,
    /// The receiver keeps segments out of order, and the sender repeats the missing ones alone.
    Selective,
}

/// The settings of one connection, except for its congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportConfig {
    /// Payload bytes of a full segment (SMSS).
    pub mss_bytes: u64,
    /// Header bytes of every packet, at most [`MAX_HEADER_BYTES`]: IP, TCP and, if links count them, link-layer
    /// headers. A pure acknowledgment has this size.
    pub header_bytes: u64,
    /// Open the connection by a handshake. Without one, the first data segment leaves at once, as with RDMA.
    pub handshake: bool,
    /// The repair of losses on connections without a handshake.
    pub rdma_recovery: RdmaRecovery,
    /// Enable selective acknowledgments (RFC 2018) with recovery by RFC 6675. If disabled, recovery is NewReno's (RFC
    /// 6582).
    pub sack: bool,
    /// Enable limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// The FlightSize from which the controller computes a reduced window.
    pub flight_size: FlightSize,
    /// Enable proportional rate reduction (RFC 9937) during recovery. If disabled, no new data is sent until the pipe
    /// has drained to the reduced window (RFC 6675). It has no effect on controllers that pace.
    pub prr: bool,
    /// Enable RACK-TLP (RFC 8985): time-based loss detection and tail loss probes, instead of RFC 6675's DupThresh.
    /// Needs SACK.
    pub rack_tlp: bool,
    /// The extra delay of two timers of [`rack_tlp`](Self::rack_tlp), as in Linux: the reordering timer, and the probe
    /// timeout with more than one segment in flight. RFC 8985 has no such delay.
    pub rack_timer_delay: Dur,
    /// Mark a retransmission lost once new data that was sent after it has arrived, as Linux did before RACK (forward
    /// acknowledgment, FACK). Needs SACK. It has no effect with RACK-TLP, which detects lost retransmissions anyway.
    pub detect_lost_retransmissions: bool,
    /// Adapt loss detection to the reordering observed on the path. DupThresh rises above 3, as in Linux; with
    /// RACK-TLP, the reordering window grows (RFC 8985 section 6.2, step 4). Needs SACK.
    pub adaptive_reordering: bool,
    /// Delayed acknowledgments. `None` acknowledges every segment immediately.
    pub delayed_ack: Option<DelayedAck>,
    /// Settings of the retransmission timer.
    pub rto: RtoConfig,
    /// Enable timestamps (RFC 7323): each acknowledgment identifies the copy of the segment that triggered it.
    /// Retransmissions then give round-trip samples, and progress ends the timer's backoff. If disabled, Karn's
    /// algorithm applies (RFC 6298 section 3).
    pub timestamps: bool,
    /// Start with the slow-start threshold that earlier connections between the same hosts left, as Linux does. The
    /// caller keeps a [`CachedThreshold`](crate::CachedThreshold) for each pair of hosts; the connection itself does
    /// not read this.
    pub cached_ssthresh: bool,
    /// Keep SACK information across a retransmission timeout (RFC 6675 section 5.1).
    pub sack_survives_timeout: bool,
    /// Restore the window after a spurious retransmission (Eifel detection, RFC 3522, and response, RFC 4015).
    pub undo_spurious: bool,
    /// Start with a window of one segment if the SYN or SYN-ACK was lost (RFC 5681 section 3.1).
    pub syn_loss_resets_window: bool,
    /// The tick of the timestamp clock that measures round-trip times. A sample is a whole number of ticks; zero ticks
    /// count as a microsecond, as in ns-3. `None` measures exactly.
    pub rtt_granularity: Option<Dur>,
    /// The tick of the timestamp clock that measures the round-trip times of retransmissions for the controller and the
    /// timer, as in Linux. Only cumulatively acknowledged retransmissions give such a sample, of at least one tick.
    /// `None` measures retransmissions for the timer only. Needs timestamps.
    pub resent_rtt_tick: Option<Dur>,
    /// The receive window in bytes. `None` is unlimited, or [`DEFAULT_READ_BUFFER_BYTES`] with a `read_rate`.
    pub receive_window_bytes: Option<u64>,
    /// The rate at which the application reads at the receiver, with the receive window as its buffer. `None` reads
    /// everything at once. This setting is for the simulator; on the wire, applications read as they do.
    pub read_rate: Option<Rate>,
    /// The largest number of out-of-order ranges that a receiver buffers. A segment that would create one more is
    /// dropped, so that a sender that leaves many holes cannot exhaust the receiver's memory.
    pub held_ranges: usize,
    /// The send buffer in bytes, which limits the data that is unacknowledged or unsent. `None` is unlimited. A buffer
    /// smaller than a transfer splits it into several writes.
    pub send_buffer_bytes: Option<u64>,
    /// Let a write fill the short last segment of the previous write, if that segment was not sent yet. RC3 then also
    /// counts its priorities across such writes.
    pub coalesce: bool,
    /// Enable the Nagle algorithm (RFC 896): a short segment waits while any data is outstanding.
    pub nagle: bool,
    /// The user timeout (RFC 5482): the connection [ends](crate::Ending::GaveUp) after this time without an
    /// acknowledgment. `None` disables it.
    pub give_up_after: Option<Dur>,
    /// The largest pacing delay that is made up for when the sender is polled later than it requested, for example by a
    /// late timer. The segments missed in this time are sent back to back, also after an idle period. Zero makes up for
    /// nothing.
    pub pacing_catch_up: Dur,
    /// The rule for the window of a connection that sends again after it was idle for longer than its retransmission
    /// timeout. `None` keeps the window.
    pub restart_after_idle: Option<RestartRule>,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// The ECN that the receiver supports, if the sender requests [`Ecn::Accurate`]: that, [`Ecn::Classic`] or
    /// [`Ecn::Off`].
    pub peer_ecn: Ecn,
    /// Send the AccECN option (RFC 9768 section 3.2.3). If disabled, acknowledgments have the three flags only.
    pub ecn_option: bool,
    /// The number of segments per chunk passed to the interface (segmentation offload, TSO). 1 disables chunks.
    pub send_batch: u32,
    /// The largest number of segments that the receiving host merges into one chunk (large receive offload, LRO). 1
    /// disables chunks.
    pub receive_batch: u32,
    /// The longest time that a received segment waits in its chunk for further segments.
    pub receive_batch_timeout: Dur,
}

impl TransportConfig {
    /// Returns the receive window in segments, between 1 and [`MAX_WINDOW_SEGMENTS`].
    pub fn receive_window_segments(&self) -> u64 {
        let buffer = self.read_rate.map(|_| DEFAULT_READ_BUFFER_BYTES);
        self.receive_window_bytes
            .or(buffer)
            .map_or(MAX_WINDOW_SEGMENTS, |bytes| (bytes / self.mss_bytes).clamp(1, MAX_WINDOW_SEGMENTS))
    }

    /// Returns true if losses are repaired by go-back-N.
    pub fn goes_back(&self) -> bool {
        !self.handshake && self.rdma_recovery == RdmaRecovery::GoBackN
    }

    /// Returns true if acknowledgments report segments out of order, which go-back-N does not keep.
    pub fn uses_sack(&self) -> bool {
        self.sack && !self.goes_back()
    }

    /// Returns the size of a full segment with its header, in bytes.
    pub const fn packet_bytes(&self) -> u64 {
        self.mss_bytes + self.header_bytes
    }
}

impl Default for RtoConfig {
    fn default() -> RtoConfig {
        RtoConfig {
            initial: Dur::from_secs(1),
            min: Dur::from_ms(200),
            max: Dur::from_secs(60),
            variance_min: Dur::from_ms(1),
            syn: Dur::from_secs(1),
            handshake_sample: true,
        }
    }
}

impl Default for TransportConfig {
    fn default() -> TransportConfig {
        TransportConfig {
            mss_bytes: 1460,
            header_bytes: HEADER_BYTES,
            handshake: true,
            rdma_recovery: RdmaRecovery::GoBackN,
            sack: true,
            limited_transmit: true,
            flight_size: FlightSize::Clipped,
            prr: false,
            rack_tlp: false,
            rack_timer_delay: Dur::ZERO,
            detect_lost_retransmissions: false,
            adaptive_reordering: false,
            delayed_ack: None,
            rto: RtoConfig::default(),
            timestamps: true,
            cached_ssthresh: false,
            sack_survives_timeout: true,
            undo_spurious: false,
            syn_loss_resets_window: true,
            rtt_granularity: None,
            resent_rtt_tick: None,
            receive_window_bytes: None,
            read_rate: None,
            held_ranges: 65_536,
            send_buffer_bytes: None,
            coalesce: false,
            nagle: false,
            give_up_after: None,
            pacing_catch_up: Dur::ZERO,
            restart_after_idle: None,
            ecn: Ecn::Off,
            peer_ecn: Ecn::Accurate,
            ecn_option: true,
            send_batch: 1,
            receive_batch: 1,
            receive_batch_timeout: Dur::from_us(100),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_its_payload_and_its_header() {
        let config = TransportConfig { mss_bytes: 1448, header_bytes: 66, ..TransportConfig::default() };
        assert_eq!(config.packet_bytes(), 1514);
    }

    #[test]
    fn a_receive_window_is_one_segment_at_least() {
        let window = |bytes| TransportConfig { receive_window_bytes: bytes, ..TransportConfig::default() };
        let segments = [Some(1), Some(1460), Some(2919), Some(14_600), Some(u64::MAX), None]
            .map(|bytes| window(bytes).receive_window_segments());
        assert_eq!(segments, [1, 1, 1, 10, MAX_WINDOW_SEGMENTS, MAX_WINDOW_SEGMENTS]);
    }
}
