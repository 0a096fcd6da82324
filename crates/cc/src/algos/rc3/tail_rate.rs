//! A tail that follows what arrives: a bound on what RC3 sends at low priority. The rule is ours, not the papers'.
//!
//! Until the first acknowledgment the tail is unbounded, as in the papers: nothing is known of the path. From then on each
//! segment that is reported to have arrived, in whatever class, lets the tail send `gain` segments. So the tail leaves about as fast
//! as the path delivers, which is the rate of its narrowest link where that is the limit, and little of it is dropped there. What the
//! head sends comes on top: a rule that takes it off lost fewer segments, but took longer, as the tail then does not refill
//! what the head leaves free after a loss.
//!
//! What is not used is saved up to `burst` segments, so that a busy interface costs nothing and a long silence earns no flood. The
//! bound is a count and not a pace: acknowledgments are the clock, and there is no timer. Nothing is bounded in a flow that hands
//! over its whole tail within its first round trip.

use super::Rc3;
use crate::contract::{Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Offer, Permit, Sent, TailOffer};
use sparelane_core::{Rate, Time};

/// A quarter more than arrives, so that the tail takes room that becomes free on the path.
pub(super) const DEFAULT_GAIN: f64 = 1.25;

/// What the tail may have saved up, segments: some of the largest chunks that interfaces take.
pub(super) const DEFAULT_BURST: u64 = 128;

/// What the tail may still send.
#[derive(Clone, Copy, Debug)]
struct Credit {
    gain: f64,
    burst: f64,
    /// Segments; `None` as long as nothing has arrived.
    segments: Option<f64>,
    /// Segments of the write that had been sent from the tail when `segments` was last brought up to date.
    charged: u32,
}

impl Credit {
    /// What is left when `sent` segments of the write went from the tail; `None` for no bound. A count that falls is that of a
    /// new write.
    fn left(&self, sent: u32) -> Option<f64> {
        let since = sent.checked_sub(self.charged).unwrap_or(sent);
        self.segments.map(|segments| segments - f64::from(since))
    }

    fn allows(&self, tail: &TailOffer) -> bool {
        self.left(tail.sent_in_write).is_none_or(|left| left >= 1.0)
    }

    fn charge(&mut self, tail: &TailOffer) {
        self.segments = self.left(tail.sent_in_write);
        self.charged = tail.sent_in_write;
    }

    fn earn(&mut self, arrived: f64) {
        let earned = self.segments.unwrap_or(0.0) + self.gain * arrived;
        self.segments = Some(earned.min(self.burst));
    }
}

/// RC3 with a bounded tail.
#[derive(Debug)]
pub struct BoundedRc3 {
    rc3: Rc3,
    credit: Credit,
}

impl BoundedRc3 {
    /// `rc3`, of which the tail sends `gain` segments for each that arrived, and saves up at most `burst`.
    pub fn new(rc3: Rc3, gain: f64, burst: u64) -> BoundedRc3 {
        BoundedRc3 { rc3, credit: Credit { gain, burst: burst as f64, segments: None, charged: 0 } }
    }
}

impl CongestionControl for BoundedRc3 {
    fn needs(&self) -> Needs {
        Needs { tail: true, ..self.rc3.needs() }
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        self.rc3.on_sent(sent, cx);
    }

    fn on_lost(&mut self, lost: &Lost, cx: &mut Cx<'_>) {
        self.rc3.on_lost(lost, cx);
    }

    fn next_timer(&self) -> Time {
        self.rc3.next_timer()
    }

    fn on_timer(&mut self, cx: &mut Cx<'_>) {
        self.rc3.on_timer(cx);
    }

    fn desired_rate(&self) -> Option<Rate> {
        self.rc3.desired_rate()
    }

    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        self.rc3.on_established(explicit_rate, cx);
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.credit.earn(ack.delivered_bytes as f64 / cx.mss_bytes as f64);
        self.rc3.on_ack(ack, cx);
    }

    fn on_tail_delivered(&mut self, segments: u32, _: &mut Cx<'_>) {
        self.credit.earn(f64::from(segments));
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        self.rc3.on_congestion(event, cx);
    }

    fn on_repaired(&mut self, resent_bytes: u64, cx: &mut Cx<'_>) {
        self.rc3.on_repaired(resent_bytes, cx);
    }

    fn limits(&self) -> Limits {
        self.rc3.limits()
    }

    fn poll_send(&mut self, offer: &Offer, cx: &mut Cx<'_>) -> Permit {
        if let Some(tail) = &offer.tail {
            self.credit.charge(tail);
        }
        let tail = offer.tail.filter(|tail| self.credit.allows(tail));
        self.rc3.poll_send(&Offer { tail, ..*offer }, cx)
    }

    fn owns_send_clock(&self) -> bool {
        true
    }

    fn uses_tail(&self) -> bool {
        true
    }

    fn lowest_class(&self) -> u8 {
        self.rc3.lowest_class()
    }

    fn tail_class(&self, tail: &TailOffer) -> Option<u8> {
        self.rc3.tail_class(tail).filter(|_| self.credit.allows(tail))
    }

    fn trace(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.rc3.trace(put);
        if let Some(segments) = self.credit.segments {
            put("tail_credit", segments);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credit(gain: f64, burst: f64) -> Credit {
        Credit { gain, burst, segments: None, charged: 0 }
    }

    fn tail(sent_in_write: u32) -> TailOffer {
        TailOffer { sent_in_write }
    }

    #[test]
    fn the_tail_is_unbounded_until_something_arrives_and_then_sends_what_arrived() {
        let mut credit = credit(1.0, 100.0);
        credit.charge(&tail(500));
        assert!(credit.allows(&tail(500)));
        credit.earn(3.0);
        let allowed = [500, 501, 502, 503, 504].map(|sent| credit.allows(&tail(sent)));
        assert_eq!(allowed, [true, true, true, false, false]);
        credit.charge(&tail(503));
        credit.earn(1.0);
        assert!(credit.allows(&tail(503)) && !credit.allows(&tail(504)));
    }

    #[test]
    fn a_gain_multiplies_what_arrived_and_fractions_are_kept() {
        let mut credit = credit(1.5, 100.0);
        credit.earn(1.0);
        assert!(credit.allows(&tail(0)) && !credit.allows(&tail(1)));
        credit.earn(1.0);
        assert!(credit.allows(&tail(2)) && !credit.allows(&tail(3)));
    }

    #[test]
    fn no_more_than_the_burst_is_saved_up() {
        let mut credit = credit(1.0, 8.0);
        (0..1000).for_each(|_| credit.earn(1.0));
        assert!(credit.allows(&tail(7)) && !credit.allows(&tail(8)));
    }

    #[test]
    fn what_a_new_write_has_sent_is_charged_from_its_start() {
        let mut credit = credit(1.0, 100.0);
        credit.charge(&tail(40));
        credit.earn(10.0);
        credit.charge(&tail(4));
        assert!(credit.allows(&tail(9)) && !credit.allows(&tail(10)));
    }
}
