//! What a controller hears of acknowledgments.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, Received};
use sparelane_core::{Domain, Dur, Stream};
use sparelane_transport::{AckSegment, Acknowledgment, Extras, Sender, Transmit, TransportConfig};
use std::sync::{Arc, Mutex};

/// A constant window that notes the receive times of which it hears.
#[derive(Debug)]
struct Listening(Arc<Mutex<Vec<Option<Received>>>>);

impl CongestionControl for Listening {
    fn needs(&self) -> Needs {
        Needs { receive_time: true, ..Needs::default() }
    }

    fn on_ack(&mut self, ack: &Ack, _: &mut Cx<'_>) {
        self.0.lock().expect("one thread").push(ack.received);
    }

    fn on_congestion(&mut self, _: Congestion, _: &mut Cx<'_>) {}

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: 10 * MSS, pacing: None }
    }
}

/// The time at which a second copy came is not that of the first, for which a gap was set.
#[test]
fn receive_times_are_those_of_first_copies() {
    let heard = Arc::default();
    let mut alone = Alone::new(with_sack(), Box::new(Listening(Arc::clone(&heard))), 10);
    alone.sends();
    alone.wait(100);
    for (cumulative, trigger, trigger_retransmitted) in [(1, 0, false), (2, 1, true)] {
        let segment = AckSegment { cumulative, trigger, trigger_retransmitted, class: 0, ecn_echo: false };
        let extras = Extras { received_at: Some(at_ms(150)), ..Extras::default() };
        let ack = Acknowledgment { segment, blocks: &[], extras: Some(&extras) };
        assert_eq!(alone.sender.handle_ack(alone.now, &ack), Ok(()));
    }
    let heard = heard.lock().expect("one thread");
    assert_eq!(*heard, [Some(Received { segment: 0, at: at_ms(150) }), None]);
}

/// A constant window that notes of which round-trip times it hears, of first copies and of others.
#[derive(Debug)]
struct Timing(Arc<Mutex<Vec<Times>>>);

/// The round-trip time of a first copy, and that of another.
type Times = (Option<Dur>, Option<Dur>);

impl CongestionControl for Timing {
    fn on_ack(&mut self, ack: &Ack, _: &mut Cx<'_>) {
        self.0.lock().expect("one thread").push((ack.rtt, ack.resent_rtt));
    }

    fn on_congestion(&mut self, _: Congestion, _: &mut Cx<'_>) {}

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: 10 * MSS, pacing: None }
    }
}

/// Segment 0 is lost and goes again at 200 ms, when three behind it have arrived; the answer comes at 300.75 ms, and clocks of
/// milliseconds say 100. What SACK reports of a retransmission moves nothing on, and Linux reads no timestamp then.
#[test]
fn the_round_trip_of_a_retransmission_is_told_in_whole_ticks_where_that_is_set() {
    let tick = Some(Dur::from_ms(1));
    let told = |config: TransportConfig, cumulative, wait_us| {
        let heard = Arc::default();
        let mut alone = Alone::new(config, Box::new(Timing(Arc::clone(&heard))), 10);
        alone.sends();
        alone.wait(100);
        assert!(alone.hears(0, 3, &[(1, 4)]).contains(&0));
        alone.now += Dur::from_us(wait_us);
        let segment = AckSegment { cumulative, trigger: 0, trigger_retransmitted: true, class: 0, ecn_echo: false };
        assert_eq!(alone.sender.handle_ack(alone.now, &Acknowledgment::of(segment, &[])), Ok(()));
        let news = heard.lock().expect("one thread").last().copied();
        (news, alone.sender.srtt())
    };
    let with = |resent_rtt_tick| TransportConfig { resent_rtt_tick, ..with_sack() };
    let (news, srtt) = told(with(tick), 4, 100_750);
    assert_eq!((news, srtt), (Some((None, Some(Dur::from_ms(100)))), Some(Dur::from_ms(100))));
    let (news, srtt) = told(with(None), 4, 100_750);
    assert_eq!(news, Some((None, None)));
    assert!(srtt > Some(Dur::from_ms(100)), "the timer hears 100.75 ms");
    assert_eq!(told(with(tick), 0, 100_750).0, Some((None, None)), "nothing moves on");
    assert_eq!(told(TransportConfig { timestamps: false, ..with(tick) }, 4, 100_750).0, Some((None, None)));
    // An answer within less than a tick counts as one, and one within less than the least round trip is the first copy's.
    assert_eq!(told(with(tick), 4, 99_000).0, Some((None, None)));
    let coarse = told(with(Some(Dur::from_ms(300))), 4, 100_750);
    assert_eq!(coarse.0, Some((None, Some(Dur::from_ms(300)))));
}

/// Patience begins with the first SYN, not with the clock.
#[test]
fn a_connection_that_opens_late_waits_for_its_syn_as_any_other() {
    let config = TransportConfig { give_up_after: Some(Dur::from_secs(3)), ..with_sack() };
    let mut sender = Sender::new(config, constant(10), Stream::new(1, Domain::Controller, 0));
    sender.write(1);
    assert_eq!(sender.poll_transmit(at_ms(100_000), true), Some(Transmit::Syn));
    assert!(sender.next_timer() >= at_ms(101_000), "{}", sender.next_timer());
}
