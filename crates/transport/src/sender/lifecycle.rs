//! The start and the end of a connection: external handshakes, end of stream, reset and user timeout.

use super::{Sender, State, context};
use crate::segment::Transmit;
use sparelane_cc::Cx;
use sparelane_core::{Dur, Rate, Time};

/// The state of a connection's start and end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lifecycle {
    pub(super) opened_at: Time,
    pub(super) syn_timeouts: u32,
    /// The time since which no acknowledgment has arrived, while the retransmission timer expires.
    pub(super) silent_since: Time,
    /// The next poll sends a reset.
    reset_pending: bool,
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The stream was [closed](Sender::close), and the receiver has acknowledged all of it, including its end.
    Complete,
    /// This end [reset](Sender::reset) the connection.
    Reset,
    /// The peer reset the connection.
    ResetByPeer,
    /// No acknowledgment arrived within the user timeout ([`give_up_after`](crate::TransportConfig::give_up_after)).
    GaveUp,
}

impl Sender {
    /// Opens the connection after an external handshake, whose round-trip time is the first sample if `rtt` is given.
    pub fn open_established(&mut self, now: Time, rtt: Option<Dur>) {
        if self.state != State::SendSyn {
            return;
        }
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        self.open(now, None);
    }

    /// Ends the stream after the data written so far. A last segment without payload (FIN) follows, and later writes
    /// are ignored.
    pub fn close(&mut self) {
        self.buffer.close(self.una);
        self.refresh();
    }

    /// Aborts the connection. Unacknowledged data may be lost. The next poll returns [`Transmit::Reset`].
    pub fn reset(&mut self) {
        if self.ending().is_none() {
            self.end(Ending::Reset);
            self.lifecycle.reset_pending = true;
        }
    }

    /// Handles a reset from the peer.
    pub fn handle_reset(&mut self) {
        if self.ending().is_none() {
            self.end(Ending::ResetByPeer);
        }
    }

    /// Returns the reason why the connection ended, or `None` if it has not.
    pub fn ending(&self) -> Option<Ending> {
        match self.state {
            State::Ended(ending) => Some(ending),
            _ if self.buffer.is_closed() && self.is_done() => Some(Ending::Complete),
            _ => None,
        }
    }

    fn end(&mut self, ending: Ending) {
        self.state = State::Ended(ending);
        self.features.is_window_only = false;
        self.timers.rto_deadline = Time::NEVER;
        self.timers.pace_at = Time::NEVER;
        self.timers.auxiliary_at = Time::NEVER;
        self.refresh();
    }

    /// Returns the pending reset of an ended connection, if there is one.
    pub(super) fn poll_ended(&mut self) -> Option<Transmit> {
        std::mem::take(&mut self.lifecycle.reset_pending).then_some(Transmit::Reset)
    }

    /// Checks the user timeout after the retransmission timer expired, and ends the connection if it is over.
    ///
    /// `first` is set at the first expiration since the last acknowledgment; `waited` is the time since the timer was
    /// started. Returns whether the connection was ended.
    pub(super) fn check_user_timeout(&mut self, now: Time, first: bool, waited: Dur) -> bool {
        let Some(limit) = self.config.give_up_after else { return false };
        if first {
            self.lifecycle.silent_since = Time::ZERO + (now - Time::ZERO).saturating_sub(waited);
        }
        if now - self.lifecycle.silent_since < limit {
            return false;
        }
        self.end(Ending::GaveUp);
        true
    }

    /// Returns the deadline of the user timeout.
    pub(super) fn user_timeout_deadline(&self) -> Time {
        self.config.give_up_after.map_or(Time::NEVER, |limit| self.lifecycle.silent_since + limit)
    }

    /// Enters the established state and informs the controller.
    pub(super) fn open(&mut self, now: Time, explicit_rate: Option<Rate>) {
        self.state = State::Established;
        self.last_sent = now;
        self.features.open(&*self.cc);
        self.timers.rto_deadline = Time::NEVER;
        self.cc.on_established(explicit_rate, &mut context!(self, now));
        self.refresh();
    }
}
