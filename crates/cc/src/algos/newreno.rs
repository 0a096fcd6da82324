//! NewReno: additive increase, multiplicative decrease.
//!
//! Source: RFC 5681 (slow start, congestion avoidance), RFC 6582. Recovery itself is the transport's;
//! this law halves what is in flight at a loss and adds one segment per window otherwise.

use crate::contract::{Ack, Congestion, Cx};
use crate::window::{Window, WindowLaw};

/// The law.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewReno;

impl WindowLaw for NewReno {
    /// RFC 5681 eq. (3): cwnd += SMSS * SMSS / cwnd per acknowledgment, and at least a byte.
    #[inline]
    fn grow(&mut self, window: &mut Window, _ack: &Ack, cx: &mut Cx<'_>) {
        window.cwnd += (cx.mss_bytes * cx.mss_bytes / window.cwnd).max(1);
    }

    /// RFC 5681 eq. (4): ssthresh = max(FlightSize / 2, 2 SMSS).
    fn cut(&mut self, _window: &Window, flight_bytes: u64, _event: Congestion, _cx: &mut Cx<'_>) -> u64 {
        flight_bytes / 2
    }
}
