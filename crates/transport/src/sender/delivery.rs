//! Rate samples and losses, segment by segment, for controllers that need them.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation-02. The sample is of the segment that caused the acknowledgment, the
//! newest that it tells of. Only class 0 counts, in full segments.
//!
//! The books also tell when a retransmission was lost: where a segment arrives that was sent three segments later or more. RFC
//! 6675 leaves that to the timeout, but the laws that need these books are defined over transports that know (RFC 8985's RACK,
//! or UDT); a timeout would count the whole flight as lost.

use super::{Sender, context};
use crate::scoreboard::DUP_THRESH;
use crate::segment_ring::SegmentRing;
use sparelane_cc::{Cx, Delivery, Lost, Sent};
use sparelane_core::{Seq, Time};
use std::collections::VecDeque;

/// What is remembered of a segment in flight: the connection's state when it was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    sent_at: Time,
    /// When the connection had last delivered something, and how much it had then.
    delivered_at: Time,
    delivered_bytes: u64,
    /// When the segment was sent that had then been delivered last.
    first_sent_at: Time,
    lost_bytes: u64,
    in_flight_bytes: u64,
    app_limited: bool,
    is_retransmission: bool,
    is_lost: bool,
    /// How many segments were sent before it.
    order: u64,
}

/// The books of one connection.
#[derive(Debug)]
pub(super) struct Deliveries {
    flights: SegmentRing<Flight>,
    delivered_bytes: u64,
    delivered_at: Time,
    first_sent_at: Time,
    lost_bytes: u64,
    /// Until so much is delivered, samples are limited by the application; zero where they are not.
    app_limited_until: u64,
    /// The segment that causes the acknowledgment at hand.
    trigger: Option<Flight>,
    /// Losses below are told.
    told_below: Seq,
    /// Segments sent.
    sent: u64,
    /// The latest of those that are known to have arrived, by [`Flight::order`].
    latest_arrival: u64,
    /// Retransmissions that were in flight when last looked at, by segment number and order.
    resends: VecDeque<(Seq, u64)>,
}

impl Deliveries {
    pub(super) fn new() -> Deliveries {
        Deliveries {
            flights: SegmentRing::new(),
            delivered_bytes: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            lost_bytes: 0,
            app_limited_until: 0,
            trigger: None,
            told_below: 0,
            sent: 0,
            latest_arrival: 0,
            resends: VecDeque::new(),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let lists = self.flights.list_bytes() + self.resends.capacity() * size_of::<(Seq, u64)>();
        size_of::<Deliveries>() + lists
    }

    /// Everything may be lost again, or be told to be.
    pub(super) fn tell_again_from(&mut self, una: Seq) {
        self.told_below = una;
    }
}

impl Sender {
    /// A class-0 segment was sent, and counts as in flight.
    #[inline(never)]
    pub(super) fn note_sent(&mut self, now: Time, seq: Seq, is_retransmission: bool) {
        let in_flight_bytes = self.in_flight_bytes();
        let (una, bytes) = (self.una, self.mss_bytes);
        let Some(books) = &mut self.deliveries else { return };
        if in_flight_bytes <= bytes {
            (books.first_sent_at, books.delivered_at) = (now, now);
        }
        let app_limited = books.app_limited_until > 0;
        let order = books.sent;
        books.sent += 1;
        if is_retransmission {
            books.resends.push_back((seq, order));
        }
        let flight = Flight {
            sent_at: now,
            delivered_at: books.delivered_at,
            delivered_bytes: books.delivered_bytes,
            first_sent_at: books.first_sent_at,
            lost_bytes: books.lost_bytes,
            in_flight_bytes,
            app_limited,
            is_retransmission,
            is_lost: false,
            order,
        };
        books.flights.set(una, seq, flight);
        let bytes = u64::from(self.buffer.payload_bytes(seq));
        let sent = Sent { segment: seq, bytes, in_flight_bytes, is_retransmission, app_limited };
        self.cc.on_sent(&sent, &mut context!(self, now));
        self.refresh();
    }

    /// Remembers the segment that causes an acknowledgment, before that is handled, where it was in flight: its arrival is
    /// news, and the copy that arrived is the one that was sent last.
    #[inline(never)]
    pub(super) fn note_trigger(&mut self, trigger: Seq, is_retransmission: bool) {
        let is_outstanding = trigger >= self.una && trigger < self.nxt && !self.board.is_sacked(trigger);
        if let Some(books) = &mut self.deliveries {
            let flight = books.flights.get(trigger);
            books.trigger = (is_outstanding && flight.is_retransmission == is_retransmission).then_some(flight);
        }
    }

    /// An acknowledgment told of `delivered_bytes`: the sample that it gives.
    #[inline(never)]
    pub(super) fn note_delivered(&mut self, now: Time, delivered_bytes: u64) -> Option<Delivery> {
        let books = self.deliveries.as_mut()?;
        if delivered_bytes == 0 {
            return None;
        }
        books.delivered_bytes += delivered_bytes;
        books.delivered_at = now;
        if books.delivered_bytes > books.app_limited_until {
            books.app_limited_until = 0;
        }
        let flight = books.trigger.take()?;
        books.first_sent_at = flight.sent_at;
        books.latest_arrival = books.latest_arrival.max(flight.order);
        let sending = flight.sent_at.saturating_since(flight.first_sent_at);
        let acknowledging = now.saturating_since(flight.delivered_at);
        Some(Delivery {
            sent_at: flight.sent_at,
            prior_delivered_bytes: flight.delivered_bytes,
            total_delivered_bytes: books.delivered_bytes,
            lost_bytes: books.lost_bytes - flight.lost_bytes,
            in_flight_bytes: flight.in_flight_bytes,
            interval: sending.max(acknowledging),
            app_limited: flight.app_limited,
        })
    }

    /// Finds retransmissions that were lost: what was sent well after them has arrived.
    pub(super) fn detect_lost_resends(&mut self, now: Time) {
        while let Some(books) = &mut self.deliveries
            && let Some(&(seq, order)) = books.resends.front()
            && order + u64::from(DUP_THRESH) <= books.latest_arrival
        {
            books.resends.pop_front();
            let is_this_copy = seq >= self.una && books.flights.get(seq).order == order;
            if !(is_this_copy && self.board.is_resent(seq) && self.board.is_lost(seq)) {
                continue;
            }
            self.lose_resend(now, seq);
        }
    }

    /// The retransmission of `seq` was lost: it goes once more, and where it is the first outstanding segment the timer starts anew.
    pub(super) fn lose_resend(&mut self, now: Time, seq: Seq) {
        self.board.lose(seq);
        if seq == self.una {
            self.timers.rto_deadline = now + self.rtt.rto();
        }
        self.tell_loss(now, seq);
    }

    /// Tells the controller of every segment that came to be presumed lost.
    #[inline(always)]
    pub(super) fn tell_losses(&mut self, now: Time) {
        if self.deliveries.is_some() {
            self.tell_new_losses(now);
        }
    }

    #[inline(never)]
    fn tell_new_losses(&mut self, now: Time) {
        let (una, edge) = (self.una, self.board.lost_edge().min(self.nxt));
        let Some(books) = &mut self.deliveries else { return };
        let from = books.told_below.max(una);
        books.told_below = edge.max(una);
        for seq in from..edge {
            if !self.board.is_lost(seq) {
                continue;
            }
            self.tell_loss(now, seq);
        }
    }

    /// Tells the controller that `seq` is lost, once for each time that it was sent.
    pub(super) fn tell_loss(&mut self, now: Time, seq: Seq) {
        let bytes = self.mss_bytes;
        let Some(books) = &mut self.deliveries else { return };
        let flight = books.flights.get_mut(seq);
        if std::mem::replace(&mut flight.is_lost, true) {
            return;
        }
        let flight = *flight;
        books.lost_bytes += bytes;
        let lost = Lost {
            segment: seq,
            bytes,
            sent_at: flight.sent_at,
            in_flight_bytes: flight.in_flight_bytes,
            lost_bytes: books.lost_bytes - flight.lost_bytes,
            app_limited: flight.app_limited,
        };
        self.cc.on_lost(&lost, &mut context!(self, now));
    }

    /// There is nothing to send, though the window may have room: samples of what is in flight now, and of the next
    /// segment, show less than the path can carry.
    pub(super) fn note_idle(&mut self) {
        let in_flight_bytes = self.in_flight_bytes();
        if let Some(books) = &mut self.deliveries
            && in_flight_bytes < self.limits.cwnd_bytes
        {
            books.app_limited_until = (books.delivered_bytes + in_flight_bytes).max(1);
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
    enum News {
        Sent(Sent),
        Lost(Lost),
        Delivered(Option<Delivery>),
        Congestion(Congestion),
        Timer(Time),
    }

    /// Passes on all news; a window of ten segments, and a timer at 1 s.
    #[derive(Debug)]
    struct Reporter(mpsc::Sender<News>, Time);

    impl CongestionControl for Reporter {
        fn needs(&self) -> Needs {
            Needs { segments: true, timer: true, ..Needs::default() }
        }
        fn on_ack(&mut self, ack: &Ack, _cx: &mut Cx<'_>) {
            self.0.send(News::Delivered(ack.delivery)).expect("somebody listens");
        }
        fn on_congestion(&mut self, event: Congestion, _cx: &mut Cx<'_>) {
            self.0.send(News::Congestion(event)).expect("somebody listens");
        }
        fn on_sent(&mut self, sent: &Sent, _cx: &mut Cx<'_>) {
            self.0.send(News::Sent(*sent)).expect("somebody listens");
        }
        fn on_lost(&mut self, lost: &Lost, _cx: &mut Cx<'_>) {
            self.0.send(News::Lost(*lost)).expect("somebody listens");
        }
        fn next_timer(&self) -> Time {
            self.1
        }
        fn on_timer(&mut self, cx: &mut Cx<'_>) {
            self.1 = Time::NEVER;
            self.0.send(News::Timer(cx.now)).expect("somebody listens");
        }
        fn limits(&self) -> Limits {
            Limits { cwnd_bytes: 10 * MSS, pacing: None }
        }
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// A sender that has sent its first ten segments at 10 ms, and what it tells its controller from then on.
    fn connection(segments: u64) -> (Sender, mpsc::Receiver<News>) {
        let (tell, news) = mpsc::channel();
        let config = TransportConfig { mss_bytes: MSS, ..TransportConfig::default() };
        let rng = Stream::new(1, Domain::Test, 0);
        let mut sender = Sender::new(config, Box::new(Reporter(tell, Time::ZERO + Dur::from_secs(1))), rng);
        sender.write(segments * MSS);
        sender.poll_transmit(Time::ZERO, true);
        sender.handle_syn_ack(ms(10), None);
        send_all(&mut sender, ms(10));
        for sent in 1..=10 {
            let in_flight_bytes = sent * MSS;
            let segment = sent - 1;
            let expected = Sent { segment, bytes: MSS, in_flight_bytes, is_retransmission: false, app_limited: false };
            assert_eq!(news.try_recv(), Ok(News::Sent(expected)));
        }
        (sender, news)
    }

    fn send_all(sender: &mut Sender, now: Time) {
        while sender.poll_transmit(now, true).is_some() {}
    }

    fn acknowledge(sender: &mut Sender, now: Time, cumulative: u64, trigger: u64, blocks: &[(u64, u64)]) {
        let blocks: Vec<_> = blocks.iter().map(|&(start, end)| SackBlock { start, end }).collect();
        let ack = AckSegment { cumulative, trigger, trigger_retransmitted: false, class: 0, ecn_echo: false };
        sender.handle_ack(now, &Acknowledgment::of(ack, &blocks)).expect("the truth");
    }

    #[test]
    fn a_sample_spans_the_round_trip_in_which_its_segment_was_under_way() {
        let (mut sender, news) = connection(100);
        // One segment a millisecond comes back, and lets another go.
        for seq in 0..30 {
            let now = ms(21 + seq);
            acknowledge(&mut sender, now, seq + 1, seq, &[]);
            let Ok(News::Delivered(Some(found))) = news.try_recv() else { panic!("no sample of {seq}") };
            assert_eq!(found.total_delivered_bytes, (seq + 1) * MSS);
            if seq >= 20 {
                // Sent when the tenth before it arrived: ten segments in ten milliseconds.
                assert_eq!((found.sent_at, found.delivered_bytes()), (ms(21 + seq - 10), 10 * MSS));
                assert_eq!(found.rate(None), Some(Rate::from_mbps(8)));
                assert_eq!(found.rate(Some(Dur::from_ms(11))), None, "faster than the path can tell");
                assert!(!found.app_limited && found.lost_bytes == 0 && found.in_flight_bytes == 10 * MSS);
            }
            send_all(&mut sender, now);
            assert!(matches!(news.try_recv(), Ok(News::Sent(sent)) if sent.in_flight_bytes == 10 * MSS));
        }
    }

    #[test]
    fn each_loss_is_told_once_and_before_the_congestion_that_it_is() {
        let (mut sender, news) = connection(10);
        for (at, end) in (3..=5).zip([3, 4, 5]) {
            acknowledge(&mut sender, ms(20 + at), 1, end - 1, &[(2, end)]);
        }
        let heard: Vec<_> = news.try_iter().collect();
        let lost = Lost {
            segment: 1,
            bytes: MSS,
            sent_at: ms(10),
            in_flight_bytes: 2 * MSS,
            lost_bytes: MSS,
            app_limited: false,
        };
        let told: Vec<_> = heard.iter().filter(|news| !matches!(news, News::Delivered(_))).collect();
        assert_eq!(told, [&News::Lost(lost), &News::Congestion(Congestion::Loss { flight_bytes: 9 * MSS })]);
        send_all(&mut sender, ms(30));
        assert!(matches!(news.try_recv(), Ok(News::Sent(sent)) if sent.is_retransmission));
        // The retransmission is lost as well, and all others: the timer loses what is left, and the one again.
        sender.handle_timer(sender.next_timer());
        let lost = news.try_iter().filter(|news| matches!(news, News::Lost(_))).count();
        assert_eq!(lost, 6, "segment 1 again, and 5 to 9");
    }

    /// Segment 1 is lost, and found to be by the arrival of 4. Its retransmission leaves after segment 12 and before 13,
    /// and is lost as well.
    #[test]
    fn a_retransmission_is_lost_where_what_was_sent_three_later_arrives() {
        let (mut sender, news) = connection(100);
        acknowledge(&mut sender, ms(20), 1, 0, &[]);
        send_all(&mut sender, ms(20));
        let mut told = Vec::new();
        for arrived in 2..=20 {
            let now = ms(20 + arrived);
            acknowledge(&mut sender, now, 1, arrived, &[(2, arrived + 1)]);
            send_all(&mut sender, now);
            told.extend(news.try_iter().filter(|news| matches!(news, News::Lost(_))).map(|_| arrived));
            if arrived == 4 {
                assert_eq!((sender.counts().retransmissions, sender.nxt), (1, 14));
            }
        }
        assert_eq!(told, [4, 15]);
        assert_eq!((sender.counts().retransmissions, sender.counts().timeouts), (2, 0));
    }

    #[test]
    fn round_trip_times_are_of_whole_ticks_where_the_clock_is_coarse() {
        let tick = Dur::from_ms(10);
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        let measured = [(9_999, 1), (15_000, 1), (19_999, 10_001), (45_000, 29_999)]
            .map(|(now, then)| whole_ticks(at(now), at(then), tick));
        assert_eq!(measured, [Dur::from_us(1), tick, Dur::from_us(1), tick * 2]);
    }

    #[test]
    fn a_sender_without_data_says_so_in_its_samples_and_the_timer_fires_once() {
        let (mut sender, news) = connection(12);
        acknowledge(&mut sender, ms(21), 4, 3, &[]);
        send_all(&mut sender, ms(21));
        sender.write(5 * MSS);
        send_all(&mut sender, ms(22));
        acknowledge(&mut sender, ms(33), 13, 12, &[]);
        let last = news.try_iter().last();
        assert!(matches!(last, Some(News::Delivered(Some(found))) if found.app_limited), "{last:?}");
        sender.handle_timer(Time::ZERO + Dur::from_secs(1));
        assert!(news.try_iter().any(|news| news == News::Timer(Time::ZERO + Dur::from_secs(1))));
    }
}
