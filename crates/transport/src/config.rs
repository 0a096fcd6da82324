//! What can be set about TCP.

use sparelane_core::Dur;

/// Bytes of IP and TCP header on every packet, where nothing else is [set](TransportConfig::header_bytes).
pub const HEADER_BYTES: u64 = 40;

/// The largest header: IPv4's and TCP's with all their options, and tunnels around them.
pub const MAX_HEADER_BYTES: u64 = 255;

/// The most segments that can be outstanding, so that the low 32 bits of their numbers tell them apart.
pub const MAX_WINDOW_SEGMENTS: u64 = 1 << 30;

/// Delayed acknowledgments (RFC 5681 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// An acknowledgment at least every so many full segments.
    pub every_segments: u32,
    /// And at the latest this long after data arrived.
    pub timeout: Dur,
}

/// The retransmission timer (RFC 6298).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RtoConfig {
    /// Floor of the whole timeout.
    pub min: Dur,
    /// Ceiling, backoff included.
    pub max: Dur,
    /// Floor of the variance term (G of RFC 6298): RTO = SRTT + max(variance_min, 4 RTTVAR).
    pub variance_min: Dur,
    /// Timeout before the first round-trip sample.
    pub initial: Dur,
    /// Timeout of the first SYN.
    pub syn: Dur,
    /// Whether the handshake gives the first round-trip sample.
    pub handshake_sample: bool,
}

/// What the two ends say to each other of marked packets (explicit congestion notification, ECN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Packets are not ECN-capable: queues drop them where they would mark others.
    #[default]
    Off,
    /// RFC 3168: a mark is echoed until the sender says that it has reduced its window.
    Classic,
    /// RFC 8257 section 3.2: each mark is echoed once, so that the sender knows which share of its data was marked.
    Dctcp,
}

/// What a controller is told was in flight when it is to reduce its window: RFC 5681's FlightSize, in its readings.
///
/// The readings differ once recovery is under way: while the first hole is stuck, everything that was sent since counts as
/// not acknowledged, several windows of it, and half of that is no reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlightSize {
    /// What is sent and not cumulatively acknowledged, less what limited transmit sent, and at most the window.
    #[default]
    Clipped,
    /// The congestion window, used or not, as in Linux.
    Window,
    /// What is in flight as loss recovery counts it (RFC 6675's pipe), as in ns-3.
    Pipe,
    /// RFC 5681 to the letter: all that is sent and not cumulatively acknowledged, less what limited transmit sent.
    Outstanding,
}

/// Everything that can be set about one connection, controller apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportConfig {
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// Bytes of header on every packet, whatever the link counts: IP and TCP, or the link's own as well; at most
    /// [`MAX_HEADER_BYTES`]. Acknowledgments are nothing but header.
    pub header_bytes: u64,
    /// Selective acknowledgments (RFC 2018) and recovery by RFC 6675; without, NewReno recovery (RFC 6582).
    pub sack: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// What a reduction of the window starts from.
    pub flight_size: FlightSize,
    /// Proportional rate reduction (RFC 9937) while losses are repaired: what is sent is in proportion to what arrives.
    /// Otherwise nothing new goes until the pipe has drained to the new window (RFC 6675). For windows without a pace.
    pub prr: bool,
    /// Loss detection by time and the tail loss probe (RFC 8985, RACK-TLP) in place of three later arrivals (RFC 6675).
    pub rack_tlp: bool,
    /// By how much the timers of [`rack_tlp`](Self::rack_tlp) are later than RFC 8985 has them, as in Linux: the one that judges what was
    /// overtaken, where no acknowledgment does so before, and that of a probe of more than one segment.
    pub rack_timer_delay: Dur,
    /// A retransmission is taken for lost where data has arrived that was sent for the first time after it, as in Linux before
    /// RACK (with forward acknowledgment, FACK). Needs SACK; losses by time include those of retransmissions anyway.
    pub detect_lost_retransmissions: bool,
    /// Loss detection follows the reordering that the path shows: by order, more than three later arrivals may be waited for, as in
    /// Linux; by time, the margin grows (RFC 8985 section 6.2, step 4). Needs SACK.
    pub adaptive_reordering: bool,
    /// Delayed acknowledgments; `None` acknowledges every segment.
    pub delayed_ack: Option<DelayedAck>,
    /// The retransmission timer.
    pub rto: RtoConfig,
    /// Timestamps (RFC 7323): an acknowledgment says which copy of a segment caused it, so that retransmissions give
    /// round-trip samples as well and progress ends the timer's backoff. Without, Karn's rule.
    pub timestamps: bool,
    /// Whether what SACK reported is kept across a retransmission timeout (RFC 6675 section 5.1).
    pub sack_survives_timeout: bool,
    /// Whether a retransmission that proves needless restores the window (Eifel, RFC 3522 and 4015).
    pub undo_spurious: bool,
    /// Whether a connection whose SYN or answer was lost starts with one segment (RFC 5681 section 3.1).
    pub syn_loss_resets_window: bool,
    /// The clock of timestamps by which round-trip times are measured: a sample is a difference of whole ticks, and one of
    /// none counts as a microsecond, as in ns-3. `None` measures exactly.
    pub rtt_granularity: Option<Dur>,
    /// The clock of timestamps, where controllers hear of the round-trip time of a retransmission that is acknowledged in sequence, as
    /// in Linux: in whole ticks, though one at least, for the timer, too. `None` measures it for the timer alone. Needs timestamps.
    pub resent_rtt_tick: Option<Dur>,
    /// Receive window in bytes; `None` never binds.
    pub receive_window_bytes: Option<u64>,
    /// The most separate ranges that a receiver holds out of order. What would make one more is not taken, so that a sender who
    /// leaves holes everywhere cannot take memory without bound.
    pub held_ranges: usize,
    /// Send buffer in bytes; `None` never binds. A smaller buffer splits a transfer into several writes.
    pub send_buffer_bytes: Option<u64>,
    /// A small write fills up the last segment of the write before, where that is short and was not sent: writes are then no longer
    /// apart, for RC3's priorities either.
    pub coalesce: bool,
    /// Nagle's rule (RFC 896): a short segment waits for more as long as anything is not acknowledged.
    pub nagle: bool,
    /// The connection [gives up](crate::Ending::GaveUp) when nothing has come back for so long (RFC 5482); `None` never does.
    pub give_up_after: Option<Dur>,
    /// How much a pace makes up for where the sender is asked later than it wanted, as by a late timer: what it missed goes
    /// back to back, of so long a time at most, after a silence too. Zero makes up for nothing.
    pub pacing_catch_up: Dur,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Segments of a chunk that is handed to the interface at once (segmentation offload, TSO); 1 has no chunks.
    pub send_batch: u32,
    /// Segments that the receiving host hands over as one chunk at most (receive offload, LRO); 1 has no chunks.
    pub receive_batch: u32,
    /// The longest that a segment waits in its chunk for others.
    pub receive_batch_timeout: Dur,
}

impl TransportConfig {
    /// The receive window in segments, at least one; at most what the low 32 bits of segment numbers tell apart.
    pub fn receive_window_segments(&self) -> u64 {
        self.receive_window_bytes
            .map_or(MAX_WINDOW_SEGMENTS, |bytes| (bytes / self.mss_bytes).clamp(1, MAX_WINDOW_SEGMENTS))
    }

    /// A full segment on the wire, bytes.
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
            sack_survives_timeout: true,
            undo_spurious: false,
            syn_loss_resets_window: true,
            rtt_granularity: None,
            resent_rtt_tick: None,
            receive_window_bytes: None,
            held_ranges: 65_536,
            send_buffer_bytes: None,
            coalesce: false,
            nagle: false,
            give_up_after: None,
            pacing_catch_up: Dur::ZERO,
            ecn: Ecn::Off,
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
