//! BBRv3's propagation delay estimate and the PROBE_RTT state (draft-ietf-ccwg-bbr-06 section 5.3.4).

use super::{AckPhase, Bbr3, MIN_RTT_WINDOW, MIN_WINDOW_SEGMENTS, PROBE_RTT_CWND_GAIN, State};
use crate::contract::{Ack, Cx};

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, ack: &Ack, cx: &Cx<'_>) {
        // Two filters: one decides when to enter PROBE_RTT, the other, of 10 s, is the estimate.
        self.probe_rtt_expired = cx.now - self.probe_rtt_min_at > self.config.probe_rtt_interval;
        if let Some(rtt) = ack.rtt
            && (self.probe_rtt_expired || self.probe_rtt_min.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_min, self.probe_rtt_min_at) = (Some(rtt), cx.now);
        }
        let is_expired = cx.now - self.min_rtt_at > MIN_RTT_WINDOW;
        if let Some(rtt) = self.probe_rtt_min
            && (is_expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), self.probe_rtt_min_at);
        }
    }

    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        // A flow that was idle has drained its queue already.
        if self.probe_rtt_expired && !self.idle_restart && self.state != State::ProbeRtt {
            // The state comes first, so that the larger of the windows before this and earlier cuts is saved.
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt.begin(&self.rounds);
            self.probe_rtt_began = cx.now;
            self.ack_phase = AckPhase::ProbeStopping;
            self.rounds.begin();
        }
        if self.state == State::ProbeRtt {
            let (window_bytes, time) = (self.probe_rtt_cwnd(), self.config.probe_rtt_time);
            if self.probe_rtt.advance(ack, &mut self.rounds, window_bytes, time, cx.now) {
                self.end_probe_rtt(cx);
            }
        }
        if ack.delivered_bytes > 0 {
            self.idle_restart = false;
        }
    }

    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN).max(self.segments(MIN_WINDOW_SEGMENTS))
    }

    pub(super) fn end_probe_rtt(&mut self, cx: &mut Cx<'_>) {
        self.probe_rtt_min_at = cx.now;
        self.restore_cwnd();
        self.reset_shortterm();
        if self.full_bw_reached {
            self.start_down(cx);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
