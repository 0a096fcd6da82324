//! BBRv3's return to the state before a spurious recovery (draft-ietf-ccwg-bbr-06 section 5.5.11).

use super::{Bbr3, State};
use sparelane_core::{Rate, Time};

/// The state before an episode of recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// STARTUP or UP, if the losses of the episode ended it.
    pub(super) state: Option<State>,
    pub(super) bw_shortterm: Option<Rate>,
    pub(super) inflight_shortterm: Option<u64>,
    pub(super) inflight_longterm: Option<u64>,
}

/// Returns the larger of two bounds, of which `None` is infinite.
fn larger<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    Some(one?.max(other?))
}

impl Bbr3 {
    pub(super) fn undo_now(&self) -> Undo {
        Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        }
    }

    /// Saves the state before an episode that begins now. The losses that begin it have been processed already.
    pub(super) fn save_undo(&mut self, now: Time) {
        self.undo = if self.newly_lost_at == now { self.before_losses } else { self.undo_now() };
    }

    /// Records that losses end STARTUP or UP, to which an undo returns.
    pub(super) fn leave_by_losses(&mut self, state: State) {
        (self.undo.state, self.before_losses.state) = (Some(state), Some(state));
    }

    pub(super) fn undo_losses(&mut self) {
        self.restore_cwnd();
        self.loss_in_round = false;
        self.reset_full_bw(Rate::default());
        let Undo { state, bw_shortterm, inflight_shortterm, inflight_longterm } = std::mem::take(&mut self.undo);
        self.bw_shortterm = larger(self.bw_shortterm, bw_shortterm);
        self.inflight_shortterm = larger(self.inflight_shortterm, inflight_shortterm);
        self.inflight_longterm = larger(self.inflight_longterm, inflight_longterm);
        match state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => self.start_refill(),
            _ => {}
        }
    }
}
