//! The receive window advertised by the peer, and zero-window probes (RFC 9293 sections 3.8.6.1 and 3.10.7.4).
//!
//! Until the first advertisement the configured window applies, counted from the cumulative acknowledgment. After that,
//! the right edge is the highest one advertised. Neither a late acknowledgment nor the receiver can move it back.
//!
//! If nothing is in flight and the window is closed, the sender probes the window after one RTO and then with
//! exponential backoff. A lost window update therefore cannot stall the connection.

use super::Sender;
use crate::config::MAX_WINDOW_SEGMENTS;
use crate::segment::Transmit;
use sparelane_core::{Dur, Seq, Time};

/// The longest interval between two window probes, as in Linux (`TCP_RTO_MAX`).
const MAX_PROBE_INTERVAL: Dur = Dur::from_secs(120);

/// The minimum number of probes within the user timeout. With fewer, the timeout could expire although the receiver
/// answers each probe.
const MIN_PROBES: u64 = 4;

/// The state of the advertised window and of its probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdvertisedWindow {
    /// The right edge: one past the last segment that may be sent.
    edge: Seq,
    /// The deadline of the persist timer.
    probe_at: Time,
    probe_is_due: bool,
    /// The number of probes since the window was last open.
    probes: u32,
}

impl AdvertisedWindow {
    pub(super) fn next_timer(&self) -> Time {
        self.probe_at
    }
}

impl Sender {
    /// Processes an advertised window of `segments`, counted from `cumulative`.
    #[cold]
    pub(super) fn update_advertised_window(&mut self, now: Time, cumulative: Seq, segments: u32) {
        let ends = cumulative + Seq::from(segments).min(MAX_WINDOW_SEGMENTS);
        // The first advertisement replaces the configured window. After that the edge never moves back.
        let old_edge = self.advertised_window.as_ref().map(|old| old.edge);
        let edge = old_edge.map_or(ends.max(self.nxt), |old| old.max(ends));
        let moved = old_edge.is_none_or(|old| edge > old);
        let advertised_window = self.advertised_window.get_or_insert_with(|| {
            Box::new(AdvertisedWindow { edge, probe_at: Time::NEVER, probe_is_due: false, probes: 0 })
        });
        advertised_window.edge = edge;
        if moved {
            (advertised_window.probe_at, advertised_window.probe_is_due, advertised_window.probes) =
                (Time::NEVER, false, 0);
        }
        // The fast path does not check the edge.
        (self.features.is_window_only, self.features.has_auxiliary_timers) = (false, true);
        self.update_receive_window(now);
    }

    /// Updates the window, and starts or stops the persist timer, after `una` or the edge moved.
    pub(super) fn update_receive_window(&mut self, now: Time) {
        let waits = self.flight() == 0 && self.nxt < self.buffer.end();
        let rto = self.rtt.rto();
        let Some(advertised_window) = &mut self.advertised_window else { return };
        self.receive_window_segments = (advertised_window.edge - self.una.min(advertised_window.edge)) as u32;
        if waits && self.nxt >= advertised_window.edge {
            if advertised_window.probe_at == Time::NEVER {
                advertised_window.probe_at = now + rto;
            }
        } else {
            advertised_window.probe_at = Time::NEVER;
        }
    }

    /// Handles the persist timer: requests a probe and backs off, or ends the connection at the user timeout.
    pub(super) fn handle_persist_timer(&mut self, now: Time) {
        let (rto, user_timeout) = (self.rtt.rto(), self.config.give_up_after);
        let Some(advertised_window) = &mut self.advertised_window else { return };
        if now < advertised_window.probe_at {
            return;
        }
        let is_first = advertised_window.probes == 0;
        advertised_window.probe_is_due = true;
        advertised_window.probes += 1;
        let longest = user_timeout.map_or(MAX_PROBE_INTERVAL, |limit| MAX_PROBE_INTERVAL.min(limit / MIN_PROBES));
        advertised_window.probe_at = now + rto.saturating_mul(1 << advertised_window.probes.min(20)).min(longest);
        if user_timeout.is_some() && self.check_user_timeout(now, is_first, rto) {
            return;
        }
        self.refresh();
    }

    /// Restarts the user timeout after any acknowledgment, even if the window stays closed.
    pub(super) fn restart_user_timeout(&mut self, now: Time) {
        self.lifecycle.silent_since = now;
    }

    /// Returns the probe, if one is due.
    pub(super) fn poll_window_probe(&mut self) -> Option<Transmit> {
        let advertised_window = self.advertised_window.as_mut()?;
        std::mem::take(&mut advertised_window.probe_is_due).then_some(Transmit::Probe)
    }
}
