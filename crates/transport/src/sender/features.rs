//! The features of a connection, derived once from its settings and its controller so that the hot path reads single
//! flags.

use crate::config::{Ecn, TransportConfig};
use sparelane_cc::{CongestionControl, Needs};

/// The features of one connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Features {
    pub(super) uses_tail: bool,
    pub(super) owns_send_clock: bool,
    /// The connection is open, the controller only sets a window, and no feature needs more than the fast path
    /// provides.
    pub(super) is_window_only: bool,
    /// Round-trip times are measured exactly, without ticks.
    pub(super) exact_rtt: bool,
    /// New segments are sent singly, without chunks or the Nagle algorithm.
    pub(super) sends_single_segments: bool,
    /// Copies of the settings of the same name.
    pub(super) sack: bool,
    /// Losses are repaired by go-back-N.
    pub(super) goes_back: bool,
    pub(super) limited_transmit: bool,
    /// Spurious retransmissions restore the window.
    pub(super) undo_spurious: bool,
    /// The Nagle algorithm is enabled.
    pub(super) nagle: bool,
    /// RACK-TLP detects losses.
    pub(super) rack_tlp: bool,
    /// Loss detection adapts to the reordering observed on the path.
    pub(super) adaptive_reordering: bool,
    /// One of the previous two, or the controller needs per-segment state.
    pub(super) tracks_arrivals: bool,
    /// Retransmissions are tracked, because their losses are detected as Linux did before RACK.
    pub(super) tracks_retransmissions: bool,
    /// Acknowledgments in low classes only update the scoreboard.
    pub(super) low_acks_only_sack: bool,
    /// There are timers other than the retransmission timer and pacing.
    pub(super) has_auxiliary_timers: bool,
    /// A change of the pace moves the departure of the next segment.
    pub(super) repaces: bool,
    /// The ECN in use. With accurate ECN, the handshake decides.
    pub(super) ecn: Ecn,
    /// Some of the needs of the controller.
    pub(super) needs_segments: bool,
    pub(super) needs_timer: bool,
    pub(super) needs_tail: bool,
}

impl Features {
    /// Derives the features of a connection that is not open yet.
    pub(super) fn of(cc: &dyn CongestionControl, config: &TransportConfig) -> Features {
        let needs = cc.needs();
        let sack = config.uses_sack();
        let rack_tlp = config.rack_tlp && sack;
        let adaptive_reordering = config.adaptive_reordering && sack;
        Features {
            uses_tail: cc.uses_tail(),
            owns_send_clock: cc.owns_send_clock(),
            is_window_only: false,
            exact_rtt: config.rtt_granularity.is_none(),
            sends_single_segments: config.send_batch <= 1 && !config.nagle,
            sack,
            goes_back: config.goes_back(),
            limited_transmit: config.limited_transmit,
            undo_spurious: config.undo_spurious,
            nagle: config.nagle,
            rack_tlp,
            adaptive_reordering,
            tracks_arrivals: rack_tlp || adaptive_reordering || needs.segments,
            tracks_retransmissions: config.detect_lost_retransmissions && !rack_tlp && !needs.segments,
            low_acks_only_sack: sack && !needs.tail,
            has_auxiliary_timers: rack_tlp || needs.timer,
            repaces: cc.repaces(),
            ecn: config.ecn,
            needs_segments: needs.segments,
            needs_timer: needs.timer,
            needs_tail: needs.tail,
        }
    }

    /// Decides on the fast path when the connection opens.
    pub(super) fn open(&mut self, cc: &dyn CongestionControl) {
        let Needs { segments, one_way_delay, receive_time, host_delay, timer, .. } = cc.needs();
        let wants_more = segments || one_way_delay || receive_time || host_delay || timer;
        let sends_by_its_own = self.owns_send_clock || cc.schedules_departures();
        let is_more = wants_more || sends_by_its_own || self.uses_tail || self.rack_tlp;
        self.is_window_only = !is_more && cc.desired_rate().is_none() && cc.limits().pacing.is_none();
    }
}
