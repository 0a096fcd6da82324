//! The features of a connection, derived once from its settings and its controller so that the hot path reads single
//! flags.

use crate::config::TransportConfig;
use sparelane_cc::{CongestionControl, Needs};

/// The features of one connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Features {
    pub(super) uses_tail: bool,
    pub(super) owns_send_clock: bool,
    /// The connection is open, the controller only sets a window, and no feature needs more than the fast path
    /// provides.
    pub(super) is_window_law: bool,
    /// Round-trip times are measured exactly, without ticks.
    pub(super) measures_exactly: bool,
    /// New segments are sent singly, without chunks or the Nagle algorithm.
    pub(super) goes_one_by_one: bool,
    /// Copies of the settings of the same name.
    pub(super) sack: bool,
    pub(super) limited_transmit: bool,
    /// Spurious retransmissions restore the window.
    pub(super) undoes: bool,
    /// The Nagle algorithm is enabled.
    pub(super) waits_to_fill: bool,
    /// RACK-TLP detects losses.
    pub(super) detects_by_time: bool,
    /// Loss detection adapts to the reordering observed on the path.
    pub(super) follows_reordering: bool,
    /// One of the previous two, or the controller needs per-segment state.
    pub(super) notes_arrivals: bool,
    /// Acknowledgments in low classes only update the scoreboard.
    pub(super) books_low_acks: bool,
    /// There are timers other than the retransmission timer and pacing.
    pub(super) has_alarms: bool,
    pub(super) needs: Needs,
}

impl Features {
    /// Derives the features of a connection that is not open yet.
    pub(super) fn of(cc: &dyn CongestionControl, config: &TransportConfig) -> Features {
        let needs = cc.needs();
        let detects_by_time = config.rack_tlp && config.sack;
        let follows_reordering = config.adaptive_reordering && config.sack;
        Features {
            uses_tail: cc.uses_tail(),
            owns_send_clock: cc.owns_send_clock(),
            is_window_law: false,
            measures_exactly: config.rtt_granularity.is_none(),
            goes_one_by_one: config.send_batch <= 1 && !config.nagle,
            sack: config.sack,
            limited_transmit: config.limited_transmit,
            undoes: config.undo_spurious,
            waits_to_fill: config.nagle,
            detects_by_time,
            follows_reordering,
            notes_arrivals: detects_by_time || follows_reordering || needs.segments,
            books_low_acks: config.sack && !needs.tail,
            has_alarms: detects_by_time || needs.timer,
            needs,
        }
    }

    /// Decides on the fast path when the connection opens.
    pub(super) fn open(&mut self, cc: &dyn CongestionControl) {
        let Needs { segments, one_way_delay, receive_time, timer, .. } = self.needs;
        let wants_more = segments || one_way_delay || receive_time || timer;
        let sends_by_its_own = self.owns_send_clock || cc.schedules_departures();
        let is_more = wants_more || sends_by_its_own || self.uses_tail || self.detects_by_time;
        self.is_window_law = !is_more && cc.desired_rate().is_none() && cc.limits().pacing.is_none();
    }
}
