//! A receive window that the receiver moves, and the probe of one that is shut (RFC 9293, sections 3.8.6.1 and 3.10.7.4).
//!
//! Without a word from the receiver its window is that of the configuration, and moves with what is acknowledged. Once it has
//! advertised one, the window ends where the furthest advertisement said: a late acknowledgment takes nothing back, and a
//! receiver cannot either. Where nothing is in flight and nothing may be sent, the sender asks, after a timeout and then half as
//! often each time, so that an update that was lost does not stop the connection for ever.

use super::Sender;
use crate::config::MAX_WINDOW_SEGMENTS;
use crate::segment::Transmit;
use sparelane_core::{Dur, Seq, Time};

/// The longest that a shut window is not asked about, as in Linux.
const LONGEST_SILENCE: Dur = Dur::from_secs(120);

/// Where a sender gives up after some time, it asks so often in that at least: its own silence is not the receiver's.
const LEAST_PROBES: u64 = 4;

/// What the receiver has advertised.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advertised {
    /// One past the last segment that may be sent.
    edge: Seq,
    /// When a probe goes.
    probe_at: Time,
    probe_is_due: bool,
    /// Probes since there was room.
    probes: u32,
}

impl Advertised {
    pub(super) fn next_timer(&self) -> Time {
        self.probe_at
    }
}

impl Sender {
    /// An acknowledgment of all below `cumulative` advertises a window of so many segments.
    #[cold]
    pub(super) fn take_window(&mut self, now: Time, cumulative: Seq, segments: u32) {
        let ends = cumulative + Seq::from(segments).min(MAX_WINDOW_SEGMENTS);
        // The first advertisement replaces what was configured; from then on the edge only moves on.
        let edge = self.advertised.map_or(ends.max(self.nxt), |old| old.edge.max(ends));
        let moved = self.advertised.is_none_or(|old| edge > old.edge);
        let advertised =
            self.advertised.get_or_insert(Advertised { edge, probe_at: Time::NEVER, probe_is_due: false, probes: 0 });
        advertised.edge = edge;
        if moved {
            (advertised.probe_at, advertised.probe_is_due, advertised.probes) = (Time::NEVER, false, 0);
        }
        // The short way does not look at the edge.
        (self.kind.is_window_law, self.kind.has_alarms) = (false, true);
        self.keep_to_edge(now);
    }

    /// `una` has moved, or the edge.
    pub(super) fn keep_to_edge(&mut self, now: Time) {
        let waits = self.flight() == 0 && self.nxt < self.buffer.end();
        let rto = self.rtt.rto();
        let Some(advertised) = &mut self.advertised else { return };
        self.receive_window_segments = (advertised.edge - self.una.min(advertised.edge)) as u32;
        if waits && self.nxt >= advertised.edge {
            if advertised.probe_at == Time::NEVER {
                advertised.probe_at = now + rto;
            }
        } else {
            advertised.probe_at = Time::NEVER;
        }
    }

    /// The time for a probe may have come.
    pub(super) fn handle_probe_timer(&mut self, now: Time) {
        let (rto, patience) = (self.rtt.rto(), self.config.give_up_after);
        let Some(advertised) = &mut self.advertised else { return };
        if now < advertised.probe_at {
            return;
        }
        let is_first = advertised.probes == 0;
        advertised.probe_is_due = true;
        advertised.probes += 1;
        let longest = patience.map_or(LONGEST_SILENCE, |limit| LONGEST_SILENCE.min(limit / LEAST_PROBES));
        advertised.probe_at = now + rto.saturating_mul(1 << advertised.probes.min(20)).min(longest);
        if patience.is_some() && self.gives_up(now, is_first, rto) {
            return;
        }
        self.refresh();
    }

    /// The receiver has answered, whatever it says of its window: it is there.
    pub(super) fn note_answer_to_probe(&mut self, now: Time) {
        self.life.silent_since = now;
    }

    pub(super) fn poll_probe(&mut self) -> Option<Transmit> {
        let advertised = self.advertised.as_mut()?;
        std::mem::take(&mut advertised.probe_is_due).then_some(Transmit::Probe)
    }
}
