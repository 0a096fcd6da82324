//! How a connection begins and ends: on a path that is open already, with the end of its stream, by a reset, or by giving up.

use super::{Sender, State, context};
use crate::segment::Transmit;
use sparelane_cc::Cx;
use sparelane_core::{Dur, Rate, Time};

/// What is to be known of a connection's beginning and end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Life {
    pub(super) opened_at: Time,
    pub(super) syn_timeouts: u32,
    /// Since when nothing came back, while the retransmission timer fires.
    pub(super) silent_since: Time,
    /// A reset is to be sent.
    says_reset: bool,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The stream was [closed](Sender::close), and the receiver holds all of it and knows that.
    Complete,
    /// This end [reset](Sender::reset) it.
    Reset,
    /// The other end did.
    ResetByPeer,
    /// Nothing came back for [`give_up_after`](crate::TransportConfig::give_up_after).
    GaveUp,
}

impl Sender {
    /// Opens the connection without a handshake of its own, where something else has made one, which took `rtt`.
    pub fn open_established(&mut self, now: Time, rtt: Option<Dur>) {
        if self.state != State::SendSyn {
            return;
        }
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        self.open(now, None);
    }

    /// The stream ends with what is written: a last segment without payload says so. What is written later is not taken.
    pub fn close(&mut self) {
        self.buffer.close(self.una);
        self.refresh();
    }

    /// Ends the connection at once: what is not acknowledged may be lost. The next poll gives [`Transmit::Reset`].
    pub fn reset(&mut self) {
        if self.ending().is_none() {
            self.end(Ending::Reset);
            self.life.says_reset = true;
        }
    }

    /// The other end has ended the connection at once.
    pub fn handle_reset(&mut self) {
        if self.ending().is_none() {
            self.end(Ending::ResetByPeer);
        }
    }

    /// How the connection ended, once it has.
    pub fn ending(&self) -> Option<Ending> {
        match self.state {
            State::Ended(ending) => Some(ending),
            _ if self.buffer.is_closed() && self.is_done() => Some(Ending::Complete),
            _ => None,
        }
    }

    fn end(&mut self, ending: Ending) {
        self.state = State::Ended(ending);
        self.kind.is_window_law = false;
        self.timers.rto_deadline = Time::NEVER;
        self.timers.pace_at = Time::NEVER;
        self.timers.alarm_at = Time::NEVER;
        self.refresh();
    }

    /// What an ended connection has still to say.
    pub(super) fn poll_ended(&mut self) -> Option<Transmit> {
        std::mem::take(&mut self.life.says_reset).then_some(Transmit::Reset)
    }

    /// The retransmission timer fired, after `waited` without an answer to anything; it is the `first` time that it did since
    /// there was one. Returns whether that was too long.
    pub(super) fn gives_up(&mut self, now: Time, first: bool, waited: Dur) -> bool {
        let Some(limit) = self.config.give_up_after else { return false };
        if first {
            self.life.silent_since = Time::ZERO + (now - Time::ZERO).saturating_sub(waited);
        }
        if now - self.life.silent_since < limit {
            return false;
        }
        self.end(Ending::GaveUp);
        true
    }

    /// When patience ends, where it does and where nothing comes back.
    pub(super) fn patience_ends(&self) -> Time {
        self.config.give_up_after.map_or(Time::NEVER, |limit| self.life.silent_since + limit)
    }

    /// The connection is open.
    pub(super) fn open(&mut self, now: Time, explicit_rate: Option<Rate>) {
        self.state = State::Established;
        self.kind.open(&*self.cc);
        self.timers.rto_deadline = Time::NEVER;
        self.cc.on_established(explicit_rate, &mut context!(self, now));
        self.refresh();
    }
}
