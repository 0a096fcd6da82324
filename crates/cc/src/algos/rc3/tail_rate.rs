//! A bound on RC3's low-priority traffic that follows the delivery rate. The rule is not from the papers.
//!
//! The tail is unbounded until the first acknowledgment, as in the papers, because nothing is known about the path.
//! From then on each segment reported as delivered, in any class, lets the tail send `gain` segments. So the tail
//! leaves about as fast as the path delivers. If the path's narrowest link is the limit, that is its rate, and few
//! tail packets are dropped there. The head's segments are not deducted. A rule that deducted them lost fewer segments
//! but took longer, because the tail then did not refill the room that the head leaves after a loss.
//!
//! Unused credit accumulates up to `burst` segments, so a busy interface costs nothing and a long pause earns no large
//! burst. The bound is a count, not a pace: acknowledgments are the clock, and no timer is needed. A flow that sends
//! its whole tail within its first round trip is never bounded.

use super::Rc3;
use crate::contract::{
    Ack, Congestion, CongestionControl, Cx, Limits, Lost, Needs, Offer, PathFacts, Permit, Restart, Sent, TailOffer,
    Telemetry,
};
use crate::param::Values;
use crate::registry::Blueprint;
use sparelane_core::{Rate, Time};

/// Slightly above 1, so that the tail claims bandwidth that becomes free on the path.
pub(super) const DEFAULT_GAIN: f64 = 1.25;

/// The maximum credit in segments: several of the largest chunks that interfaces take.
pub(super) const DEFAULT_BURST: u64 = 128;

/// The number of segments that the tail may still send.
#[derive(Clone, Copy, Debug)]
struct Credit {
    gain: f64,
    burst: f64,
    /// Credit in segments; `None` until the first delivery.
    segments: Option<f64>,
    /// The number of tail segments of the write that had been sent when `segments` was last updated.
    charged: u32,
}

impl Credit {
    /// Returns the credit left once `sent` tail segments of the write were sent; `None` if there is no bound. If the
    /// count has fallen, a new write has begun.
    fn left(&self, sent: u32) -> Option<f64> {
        let since = sent.checked_sub(self.charged).unwrap_or(sent);
        self.segments.map(|segments| segments - f64::from(since))
    }

    /// Returns whether there is credit for one more segment.
    fn allows(&self, tail: &TailOffer) -> bool {
        self.left(tail.sent_in_write).is_none_or(|left| left >= 1.0)
    }

    /// Deducts the tail segments sent since the last call.
    fn charge(&mut self, tail: &TailOffer) {
        self.segments = self.left(tail.sent_in_write);
        self.charged = tail.sent_in_write;
    }

    /// Adds credit for delivered segments.
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
    /// Wraps `rc3` so that its tail sends `gain` segments per delivered segment, with at most `burst` segments of
    /// credit.
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

    fn slow_start_threshold(&self) -> Option<u64> {
        self.rc3.slow_start_threshold()
    }

    fn start_at_threshold(&mut self, bytes: u64) {
        self.rc3.start_at_threshold(bytes);
    }

    fn on_path(&mut self, path: PathFacts) {
        self.rc3.on_path(path);
    }

    fn on_telemetry(&mut self, telemetry: &Telemetry<'_>, cx: &mut Cx<'_>) {
        self.rc3.on_telemetry(telemetry, cx);
    }

    fn repaces(&self) -> bool {
        self.rc3.repaces()
    }

    fn reacts_to_marks(&self) -> bool {
        self.rc3.reacts_to_marks()
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

    fn on_restart(&mut self, restart: &Restart, cx: &mut Cx<'_>) {
        self.rc3.on_restart(restart, cx);
    }

    fn on_next_flow(&mut self, values: &Values, plan: &Blueprint<'_>) {
        self.rc3.on_next_flow(values, plan);
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
    fn the_tail_is_unbounded_until_the_first_delivery_and_then_follows_deliveries() {
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
    fn the_gain_multiplies_deliveries_and_fractions_are_kept() {
        let mut credit = credit(1.5, 100.0);
        credit.earn(1.0);
        assert!(credit.allows(&tail(0)) && !credit.allows(&tail(1)));
        credit.earn(1.0);
        assert!(credit.allows(&tail(2)) && !credit.allows(&tail(3)));
    }

    #[test]
    fn credit_is_capped_at_the_burst() {
        let mut credit = credit(1.0, 8.0);
        (0..1000).for_each(|_| credit.earn(1.0));
        assert!(credit.allows(&tail(7)) && !credit.allows(&tail(8)));
    }

    #[test]
    fn a_new_write_is_charged_from_its_first_segment() {
        let mut credit = credit(1.0, 100.0);
        credit.charge(&tail(40));
        credit.earn(10.0);
        credit.charge(&tail(4));
        assert!(credit.allows(&tail(9)) && !credit.allows(&tail(10)));
    }
}
