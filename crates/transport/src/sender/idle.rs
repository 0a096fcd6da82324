//! The restart of the window after an idle period (RFC 5681 section 4.1).
//!
//! The rule is [`restart_after_idle`](crate::TransportConfig::restart_after_idle); the controller applies it. A write
//! while nothing is in flight notes that the window may have to restart, and the next poll decides, as Linux does
//! (tcp_slow_start_after_idle_check). Other connections pay nothing.
//!
//! Differences from Linux: the time since the last transmission is exact, and not in ticks of the kernel. Linux also
//! lowers the window of an application that keeps sending less than the window allows (tcp_cwnd_application_limited);
//! here such a window only stops growing.

use super::{Sender, State, context};
use sparelane_cc::{Cx, Restart};
use sparelane_core::Time;

impl Sender {
    /// Notes that the application writes, and that this may end an idle period.
    #[inline(always)]
    pub(super) fn note_write(&mut self) {
        self.may_restart |=
            self.config.restart_after_idle.is_some() && self.state == State::Established && self.is_done();
    }

    /// Informs the controller if the connection was idle for longer than its retransmission timeout.
    #[inline(never)]
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        self.may_restart = false;
        let (idle, rto) = (now.saturating_since(self.last_transmission()), self.rtt.rto());
        if let Some(rule) = self.config.restart_after_idle
            && idle > rto
        {
            self.cc.on_restart(&Restart { idle, rto, rule }, &mut context!(self, now));
        }
        self.refresh();
    }

    /// Returns the time of the last transmission, on the fast path or off it.
    fn last_transmission(&self) -> Time {
        // The fast path only sets send times of segments. Segments that only the tail has sent have none.
        if self.features.uses_tail || self.nxt == 0 {
            return self.last_sent;
        }
        self.last_sent.max(self.send_time(self.nxt - 1))
    }
}
