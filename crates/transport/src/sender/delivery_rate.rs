//! Delivery rate samples and per-segment losses, for controllers that need them.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation-02. A sample belongs to the segment that triggered the
//! acknowledgment, which is the newest segment that it reports. Only class 0 counts, in full segments.
//!
//! The module also detects lost retransmissions: a retransmission is lost once a segment has arrived that was sent at
//! least three segments later. RFC 6675 leaves that case to the retransmission timer, which marks the whole flight
//! lost. Controllers that need per-segment state are defined for transports that detect such losses (RFC 8985's RACK,
//! or UDT).

use super::{Sender, context};
use crate::scoreboard::DUP_THRESH;
use crate::segment_ring::SegmentRing;
use sparelane_cc::{Cx, Delivery, Lost, Sent};
use sparelane_core::{Seq, Time};
use std::collections::VecDeque;

/// The state of the connection when a segment in flight was sent (the packet state `P` of the draft).
#[derive(Clone, Copy, Debug, Default)]
struct PacketState {
    sent_at: Time,
    /// The time of the last delivery (P.delivered_time), and the bytes delivered until then (P.delivered).
    delivered_at: Time,
    delivered_bytes: u64,
    /// The send time of the segment that was delivered last (P.first_sent_time).
    first_sent_at: Time,
    lost_bytes: u64,
    in_flight_bytes: u64,
    app_limited: bool,
    is_retransmission: bool,
    is_lost: bool,
    /// The number of transmissions before it.
    order: u64,
}

/// The delivery rate state of one connection (`C` in the draft).
#[derive(Debug)]
pub(super) struct DeliveryTracker {
    packets: SegmentRing<PacketState>,
    delivered_bytes: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost_bytes: u64,
    /// Samples are application-limited until this number of bytes is delivered (C.app_limited); 0 if they are not.
    app_limited_until: u64,
    /// The state of the segment that triggered the acknowledgment being processed.
    trigger: Option<PacketState>,
    /// Losses of segments below were reported to the controller.
    reported_below: Seq,
    /// The number of transmissions.
    sent: u64,
    /// The largest [`PacketState::order`] of a transmission that is known to have arrived.
    latest_arrival: u64,
    /// Retransmissions not known to have arrived: sequence number and order, in order of transmission.
    retransmissions: VecDeque<(Seq, u64)>,
}

impl DeliveryTracker {
    pub(super) fn new() -> DeliveryTracker {
        DeliveryTracker {
            packets: SegmentRing::new(),
            delivered_bytes: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            lost_bytes: 0,
            app_limited_until: 0,
            trigger: None,
            reported_below: 0,
            sent: 0,
            latest_arrival: 0,
            retransmissions: VecDeque::new(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let lists = self.packets.list_bytes() + self.retransmissions.capacity() * size_of::<(Seq, u64)>();
        size_of::<DeliveryTracker>() + lists
    }

    /// Lets losses from `una` on be reported again, after a timeout or an undo.
    pub(super) fn report_again_from(&mut self, una: Seq) {
        self.reported_below = una;
    }
}

impl Sender {
    /// Records the transmission of a class-0 segment, which already counts as in flight, and informs the controller.
    #[inline(never)]
    pub(super) fn note_sent(&mut self, now: Time, seq: Seq, is_retransmission: bool) {
        let in_flight_bytes = self.in_flight_bytes();
        let (una, bytes) = (self.una, self.mss_bytes);
        let Some(tracker) = &mut self.delivery_tracker else { return };
        // Nothing else is in flight: a new sampling interval starts, so that the idle time does not count.
        if in_flight_bytes <= bytes {
            (tracker.first_sent_at, tracker.delivered_at) = (now, now);
        }
        let app_limited = tracker.app_limited_until > 0;
        let order = tracker.sent;
        tracker.sent += 1;
        if is_retransmission {
            tracker.retransmissions.push_back((seq, order));
        }
        let packet = PacketState {
            sent_at: now,
            delivered_at: tracker.delivered_at,
            delivered_bytes: tracker.delivered_bytes,
            first_sent_at: tracker.first_sent_at,
            lost_bytes: tracker.lost_bytes,
            in_flight_bytes,
            app_limited,
            is_retransmission,
            is_lost: false,
            order,
        };
        tracker.packets.set(una, seq, packet);
        let bytes = u64::from(self.buffer.payload_bytes(seq));
        let sent = Sent { segment: seq, bytes, in_flight_bytes, is_retransmission, app_limited };
        self.cc.on_sent(&sent, &mut context!(self, now));
        self.refresh();
    }

    /// Stores the state of the segment that triggered an acknowledgment, before the acknowledgment is applied. Only the
    /// last copy of a segment that was not reported before gives a sample.
    #[inline(never)]
    pub(super) fn capture_trigger(&mut self, trigger: Seq, is_retransmission: bool) {
        let is_outstanding = trigger >= self.una && trigger < self.nxt && !self.board.is_sacked(trigger);
        if let Some(tracker) = &mut self.delivery_tracker {
            let packet = tracker.packets.get(trigger);
            tracker.trigger = (is_outstanding && packet.is_retransmission == is_retransmission).then_some(packet);
        }
    }

    /// Counts the `delivered_bytes` of an acknowledgment and returns its delivery rate sample, if it gives one.
    #[inline(never)]
    pub(super) fn sample_delivery_rate(&mut self, now: Time, delivered_bytes: u64) -> Option<Delivery> {
        let tracker = self.delivery_tracker.as_mut()?;
        if delivered_bytes == 0 {
            return None;
        }
        tracker.delivered_bytes += delivered_bytes;
        tracker.delivered_at = now;
        // All segments sent while application-limited are delivered.
        if tracker.delivered_bytes > tracker.app_limited_until {
            tracker.app_limited_until = 0;
        }
        let packet = tracker.trigger.take()?;
        tracker.first_sent_at = packet.sent_at;
        tracker.latest_arrival = tracker.latest_arrival.max(packet.order);
        // The draft's send_elapsed and ack_elapsed; the longer one avoids overestimation.
        let sending = packet.sent_at.saturating_since(packet.first_sent_at);
        let acknowledging = now.saturating_since(packet.delivered_at);
        Some(Delivery {
            sent_at: packet.sent_at,
            prior_delivered_bytes: packet.delivered_bytes,
            total_delivered_bytes: tracker.delivered_bytes,
            lost_bytes: tracker.lost_bytes - packet.lost_bytes,
            in_flight_bytes: packet.in_flight_bytes,
            interval: sending.max(acknowledging),
            app_limited: packet.app_limited,
        })
    }

    /// Marks retransmissions lost if a segment that was sent at least DupThresh transmissions later has arrived.
    pub(super) fn detect_lost_retransmissions_by_order(&mut self, now: Time) {
        while let Some(tracker) = &mut self.delivery_tracker
            && let Some(&(seq, order)) = tracker.retransmissions.front()
            && order + u64::from(DUP_THRESH) <= tracker.latest_arrival
        {
            tracker.retransmissions.pop_front();
            // An acknowledged segment, or one that was retransmitted again, needs no decision.
            let is_this_copy = seq >= self.una && tracker.packets.get(seq).order == order;
            if !(is_this_copy && self.board.is_resent(seq) && self.board.is_lost(seq)) {
                continue;
            }
            self.mark_retransmission_lost(now, seq);
        }
    }

    /// Marks the retransmission of `seq` lost, so that the segment is sent once more. For the oldest outstanding
    /// segment, the retransmission timer restarts.
    pub(super) fn mark_retransmission_lost(&mut self, now: Time, seq: Seq) {
        self.board.mark_segment_lost(seq);
        if seq == self.una {
            self.timers.rto_deadline = now + self.rtt.rto();
        }
        self.report_loss(now, seq);
    }

    /// Reports each segment that was newly marked lost to the controller.
    #[inline(always)]
    pub(super) fn report_losses(&mut self, now: Time) {
        if self.delivery_tracker.is_some() {
            self.report_new_losses(now);
        }
    }

    #[inline(never)]
    fn report_new_losses(&mut self, now: Time) {
        let (una, edge) = (self.una, self.board.lost_edge().min(self.nxt));
        let Some(tracker) = &mut self.delivery_tracker else { return };
        let from = tracker.reported_below.max(una);
        tracker.reported_below = edge.max(una);
        for seq in from..edge {
            if !self.board.is_lost(seq) {
                continue;
            }
            self.report_loss(now, seq);
        }
    }

    /// Reports the loss of `seq` to the controller, once per transmission.
    pub(super) fn report_loss(&mut self, now: Time, seq: Seq) {
        let bytes = self.mss_bytes;
        let Some(tracker) = &mut self.delivery_tracker else { return };
        let packet = tracker.packets.get_mut(seq);
        if std::mem::replace(&mut packet.is_lost, true) {
            return;
        }
        let packet = *packet;
        tracker.lost_bytes += bytes;
        let lost = Lost {
            segment: seq,
            bytes,
            sent_at: packet.sent_at,
            in_flight_bytes: packet.in_flight_bytes,
            lost_bytes: tracker.lost_bytes - packet.lost_bytes,
            app_limited: packet.app_limited,
        };
        self.cc.on_lost(&lost, &mut context!(self, now));
    }

    /// Marks the connection application-limited if there is nothing to send although the window has room. Samples of
    /// the segments in flight, and of the next segment, then underestimate the capacity of the path.
    pub(super) fn mark_app_limited(&mut self) {
        let in_flight_bytes = self.in_flight_bytes();
        if let Some(tracker) = &mut self.delivery_tracker
            && in_flight_bytes < self.limits.cwnd_bytes
        {
            tracker.app_limited_until = (tracker.delivered_bytes + in_flight_bytes).max(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acknowledgment::Acknowledgment;
    use crate::config::TransportConfig;
    use crate::segment::{AckSegment, SackBlock};
    use crate::sender::acknowledge::whole_ticks;
    use sparelane_cc::{Ack, Congestion, CongestionControl, Limits, Needs};
    use sparelane_core::{Domain, Dur, Rate, Stream};
    use std::sync::mpsc;

    const MSS: u64 = 1000;

    #[derive(Debug, PartialEq)]
    enum Input {
        Sent(Sent),
        Lost(Lost),
        Delivered(Option<Delivery>),
        Congestion(Congestion),
        Timer(Time),
    }

    /// A controller with a window of ten segments and a timer at 1 s, which records its input.
    #[derive(Debug)]
    struct Recorder(mpsc::Sender<Input>, Time);

    impl CongestionControl for Recorder {
        fn needs(&self) -> Needs {
            Needs { segments: true, timer: true, ..Needs::default() }
        }
        fn on_ack(&mut self, ack: &Ack, _cx: &mut Cx<'_>) {
            self.0.send(Input::Delivered(ack.delivery)).expect("the test holds the receiver");
        }
        fn on_congestion(&mut self, event: Congestion, _cx: &mut Cx<'_>) {
            self.0.send(Input::Congestion(event)).expect("the test holds the receiver");
        }
        fn on_sent(&mut self, sent: &Sent, _cx: &mut Cx<'_>) {
            self.0.send(Input::Sent(*sent)).expect("the test holds the receiver");
        }
        fn on_lost(&mut self, lost: &Lost, _cx: &mut Cx<'_>) {
            self.0.send(Input::Lost(*lost)).expect("the test holds the receiver");
        }
        fn next_timer(&self) -> Time {
            self.1
        }
        fn on_timer(&mut self, cx: &mut Cx<'_>) {
            self.1 = Time::NEVER;
            self.0.send(Input::Timer(cx.now)).expect("the test holds the receiver");
        }
        fn limits(&self) -> Limits {
            Limits { cwnd_bytes: 10 * MSS, pacing: None }
        }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// Returns a sender that has sent its first ten segments at 10 ms, and the later input of its controller.
    fn connection(segments: u64) -> (Sender, mpsc::Receiver<Input>) {
        let (record, inputs) = mpsc::channel();
        let config = TransportConfig { mss_bytes: MSS, ..TransportConfig::default() };
        let rng = Stream::new(1, Domain::Test, 0);
        let mut sender = Sender::new(config, Box::new(Recorder(record, Time::ZERO + Dur::from_secs(1))), rng);
        sender.write(segments * MSS);
        sender.poll_transmit(Time::ZERO, true);
        sender.handle_syn_ack(ms(10), None);
        send_all(&mut sender, ms(10));
        for sent in 1..=10 {
            let in_flight_bytes = sent * MSS;
            let segment = sent - 1;
            let expected = Sent { segment, bytes: MSS, in_flight_bytes, is_retransmission: false, app_limited: false };
            assert_eq!(inputs.try_recv(), Ok(Input::Sent(expected)));
        }
        (sender, inputs)
    }

    fn send_all(sender: &mut Sender, now: Time) {
        while sender.poll_transmit(now, true).is_some() {}
    }

    fn acknowledge(sender: &mut Sender, now: Time, cumulative: u64, trigger: u64, blocks: &[(u64, u64)]) {
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| SackBlock { start, end }).collect();
        let ack = AckSegment { cumulative, trigger, trigger_retransmitted: false, class: 0, ecn_echo: false };
        sender.handle_ack(now, &Acknowledgment::of(ack, &blocks)).expect("a valid acknowledgment");
    }

    #[test]
    fn a_sample_spans_the_round_trip_of_its_segment() {
        let (mut sender, inputs) = connection(100);
        // One acknowledgment arrives per millisecond and releases one segment.
        for seq in 0..30 {
            let now = ms(21 + seq);
            acknowledge(&mut sender, now, seq + 1, seq, &[]);
            let Ok(Input::Delivered(Some(found))) = inputs.try_recv() else { panic!("no sample of {seq}") };
            assert_eq!(found.total_delivered_bytes, (seq + 1) * MSS);
            if seq >= 20 {
                // Each segment is sent on the arrival of the tenth segment before it: ten segments in 10 ms.
                assert_eq!((found.sent_at, found.delivered_bytes()), (ms(21 + seq - 10), 10 * MSS));
                assert_eq!(found.rate(None), Some(Rate::from_mbps(8)));
                assert_eq!(found.rate(Some(Dur::from_ms(11))), None, "interval below the minimum round-trip time");
                assert!(!found.app_limited && found.lost_bytes == 0 && found.in_flight_bytes == 10 * MSS);
            }
            send_all(&mut sender, now);
            assert!(matches!(inputs.try_recv(), Ok(Input::Sent(sent)) if sent.in_flight_bytes == 10 * MSS));
        }
    }

    #[test]
    fn each_loss_is_reported_once_and_before_its_congestion_event() {
        let (mut sender, inputs) = connection(10);
        for (at, end) in (3..=5).zip([3, 4, 5]) {
            acknowledge(&mut sender, ms(20 + at), 1, end - 1, &[(2, end)]);
        }
        let received: Vec<_> = inputs.try_iter().collect();
        let lost = Lost {
            segment: 1,
            bytes: MSS,
            sent_at: ms(10),
            in_flight_bytes: 2 * MSS,
            lost_bytes: MSS,
            app_limited: false,
        };
        let reported: Vec<_> = received.iter().filter(|input| !matches!(input, Input::Delivered(_))).collect();
        assert_eq!(reported, [&Input::Lost(lost), &Input::Congestion(Congestion::Loss { flight_bytes: 9 * MSS })]);
        send_all(&mut sender, ms(30));
        assert!(matches!(inputs.try_recv(), Ok(Input::Sent(sent)) if sent.is_retransmission));
        // The retransmission and all other segments are lost too. The timeout reports segment 1 again, and the others.
        sender.handle_timer(sender.next_timer());
        let lost = inputs.try_iter().filter(|input| matches!(input, Input::Lost(_))).count();
        assert_eq!(lost, 6, "segment 1 again, and 5 to 9");
    }

    /// The arrival of segment 4 marks segment 1 lost. Its retransmission is sent between segments 12 and 13, and is
    /// lost too.
    #[test]
    fn a_retransmission_is_lost_when_a_segment_sent_three_transmissions_later_arrives() {
        let (mut sender, inputs) = connection(100);
        acknowledge(&mut sender, ms(20), 1, 0, &[]);
        send_all(&mut sender, ms(20));
        let mut reported_at = Vec::new();
        for arrived in 2..=20 {
            let now = ms(20 + arrived);
            acknowledge(&mut sender, now, 1, arrived, &[(2, arrived + 1)]);
            send_all(&mut sender, now);
            reported_at.extend(inputs.try_iter().filter(|input| matches!(input, Input::Lost(_))).map(|_| arrived));
            if arrived == 4 {
                assert_eq!((sender.counts().retransmissions, sender.nxt), (1, 14));
            }
        }
        assert_eq!(reported_at, [4, 15]);
        assert_eq!((sender.counts().retransmissions, sender.counts().timeouts), (2, 0));
    }

    #[test]
    fn round_trip_times_are_whole_ticks_of_a_coarse_clock() {
        let tick = Dur::from_ms(10);
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        let measured = [(9_999, 1), (15_000, 1), (19_999, 10_001), (45_000, 29_999)]
            .map(|(now, then)| whole_ticks(at(now), at(then), tick));
        assert_eq!(measured, [Dur::from_us(1), tick, Dur::from_us(1), tick * 2]);
    }

    #[test]
    fn samples_of_a_sender_without_data_are_app_limited_and_the_timer_fires_once() {
        let (mut sender, inputs) = connection(12);
        acknowledge(&mut sender, ms(21), 4, 3, &[]);
        send_all(&mut sender, ms(21));
        sender.write(5 * MSS);
        send_all(&mut sender, ms(22));
        acknowledge(&mut sender, ms(33), 13, 12, &[]);
        let last = inputs.try_iter().last();
        assert!(matches!(last, Some(Input::Delivered(Some(found))) if found.app_limited), "{last:?}");
        sender.handle_timer(Time::ZERO + Dur::from_secs(1));
        assert!(inputs.try_iter().any(|input| input == Input::Timer(Time::ZERO + Dur::from_secs(1))));
    }
}
