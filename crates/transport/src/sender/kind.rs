//! What kind of connection it is: what its settings and its controller say once, in a form that is quick to ask.

use crate::config::TransportConfig;
use sparelane_cc::{CongestionControl, Needs};

/// The kind of one connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Kind {
    pub(super) uses_tail: bool,
    pub(super) owns_send_clock: bool,
    /// The connection is open, the controller is a window, and neither it nor loss detection wants anything that costs more.
    pub(super) is_window_law: bool,
    /// Round trips are measured without a clock of ticks.
    pub(super) measures_exactly: bool,
    /// Segments do not go in chunks.
    pub(super) goes_one_by_one: bool,
    /// As in the configuration, as the next one.
    pub(super) sack: bool,
    pub(super) limited_transmit: bool,
    /// Needless retransmissions are undone.
    pub(super) undoes: bool,
    /// A short segment may have to wait (Nagle's rule).
    pub(super) waits_to_fill: bool,
    /// Losses are found by time.
    pub(super) detects_by_time: bool,
    /// Loss detection follows the reordering that the path shows.
    pub(super) follows_reordering: bool,
    /// One of these two, or the controller hears of single segments.
    pub(super) notes_arrivals: bool,
    /// Acknowledgments of low classes go to the scoreboard, and nowhere else.
    pub(super) books_low_acks: bool,
    /// Something other than the retransmission timer and the pace has its time.
    pub(super) has_alarms: bool,
    pub(super) needs: Needs,
}

impl Kind {
    /// That of a connection that has yet to open.
    pub(super) fn of(cc: &dyn CongestionControl, config: &TransportConfig) -> Kind {
        let needs = cc.needs();
        let detects_by_time = config.rack_tlp && config.sack;
        let follows_reordering = config.adaptive_reordering && config.sack;
        Kind {
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

    /// The connection opens.
    pub(super) fn open(&mut self, cc: &dyn CongestionControl) {
        let Needs { segments, one_way_delay, receive_time, timer, .. } = self.needs;
        let wants_more = segments || one_way_delay || receive_time || timer;
        let sends_by_its_own = self.owns_send_clock || cc.schedules_departures();
        let is_more = wants_more || sends_by_its_own || self.uses_tail || self.detects_by_time;
        self.is_window_law = !is_more && cc.desired_rate().is_none() && cc.limits().pacing.is_none();
    }
}
