//! The controller's input from acknowledgments, and the timer of a late handshake.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, Received};
use sparelane_core::{Domain, Dur, Stream};
use sparelane_transport::{AckSegment, Acknowledgment, Extras, Sender, Transmit, TransportConfig};
use std::sync::{Arc, Mutex};

/// A controller with a constant window that records receive times.
#[derive(Debug)]
struct ReceiveTimes(Arc<Mutex<Vec<Option<Received>>>>);

impl CongestionControl for ReceiveTimes {
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

/// The arrival time of a second copy says nothing about the gap before the first copy.
#[test]
fn receive_times_are_those_of_first_copies() {
    let log = Arc::default();
    let mut solo = SoloSender::new(with_sack(), Box::new(ReceiveTimes(Arc::clone(&log))), 10);
    solo.send();
    solo.wait(100);
    for (cumulative, trigger, trigger_retransmitted) in [(1, 0, false), (2, 1, true)] {
        let segment = AckSegment { cumulative, trigger, trigger_retransmitted, class: 0, ecn_echo: false };
        let extras = Extras { received_at: Some(at_ms(150)), ..Extras::default() };
        let ack = Acknowledgment { segment, blocks: &[], extras: Some(&extras) };
        assert_eq!(solo.sender.handle_ack(solo.now, &ack), Ok(()));
    }
    let log = log.lock().expect("one thread");
    assert_eq!(*log, [Some(Received { segment: 0, at: at_ms(150) }), None]);
}

/// A controller with a constant window that records round-trip time samples.
#[derive(Debug)]
struct RttLog(Arc<Mutex<Vec<Samples>>>);

/// The samples of a first transmission and of a retransmission.
type Samples = (Option<Dur>, Option<Dur>);

impl CongestionControl for RttLog {
    fn on_ack(&mut self, ack: &Ack, _: &mut Cx<'_>) {
        self.0.lock().expect("one thread").push((ack.rtt, ack.resent_rtt));
    }

    fn on_congestion(&mut self, _: Congestion, _: &mut Cx<'_>) {}

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: 10 * MSS, pacing: None }
    }
}

/// Segment 0 is lost and retransmitted at 200 ms, after three later arrivals. Its acknowledgment arrives at 300.75 ms,
/// which is 100 ms on a clock of milliseconds. An acknowledgment that is not cumulative gives no sample, as in Linux.
#[test]
fn retransmissions_give_samples_in_whole_ticks_if_enabled() {
    let tick = Some(Dur::from_ms(1));
    let samples_of = |config: TransportConfig, cumulative, wait_us| {
        let log = Arc::default();
        let mut solo = SoloSender::new(config, Box::new(RttLog(Arc::clone(&log))), 10);
        solo.send();
        solo.wait(100);
        assert!(solo.acknowledge(0, 3, &[(1, 4)]).contains(&0));
        solo.now += Dur::from_us(wait_us);
        let segment = AckSegment { cumulative, trigger: 0, trigger_retransmitted: true, class: 0, ecn_echo: false };
        assert_eq!(solo.sender.handle_ack(solo.now, &Acknowledgment::of(segment, &[])), Ok(()));
        let last = log.lock().expect("one thread").last().copied();
        (last, solo.sender.srtt())
    };
    let with = |resent_rtt_tick| TransportConfig { resent_rtt_tick, ..with_sack() };
    let (last, srtt) = samples_of(with(tick), 4, 100_750);
    assert_eq!((last, srtt), (Some((None, Some(Dur::from_ms(100)))), Some(Dur::from_ms(100))));
    let (last, srtt) = samples_of(with(None), 4, 100_750);
    assert_eq!(last, Some((None, None)));
    assert!(srtt > Some(Dur::from_ms(100)), "the timer gets a sample of 100.75 ms");
    assert_eq!(samples_of(with(tick), 0, 100_750).0, Some((None, None)), "not cumulative");
    assert_eq!(samples_of(TransportConfig { timestamps: false, ..with(tick) }, 4, 100_750).0, Some((None, None)));
    // A sample below the minimum round-trip time belongs to the first copy, and a sample below one tick counts as one
    // tick.
    assert_eq!(samples_of(with(tick), 4, 99_000).0, Some((None, None)));
    let coarse = samples_of(with(Some(Dur::from_ms(300))), 4, 100_750);
    assert_eq!(coarse.0, Some((None, Some(Dur::from_ms(300)))));
}

/// The user timeout starts with the first SYN, not at time zero.
#[test]
fn the_user_timeout_starts_with_the_syn() {
    let config = TransportConfig { give_up_after: Some(Dur::from_secs(3)), ..with_sack() };
    let mut sender = Sender::new(config, constant(10), Stream::new(1, Domain::Controller, 0));
    sender.write(1);
    assert_eq!(sender.poll_transmit(at_ms(100_000), true), Some(Transmit::Syn));
    assert!(sender.next_timer() >= at_ms(101_000), "{}", sender.next_timer());
}
