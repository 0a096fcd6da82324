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

/// Patience begins with the first SYN, not with the clock.
#[test]
fn a_connection_that_opens_late_waits_for_its_syn_as_any_other() {
    let config = TransportConfig { give_up_after: Some(Dur::from_secs(3)), ..with_sack() };
    let mut sender = Sender::new(config, constant(10), Stream::new(1, Domain::Controller, 0));
    sender.write(1);
    assert_eq!(sender.poll_transmit(at_ms(100_000), true), Some(Transmit::Syn));
    assert!(sender.next_timer() >= at_ms(101_000), "{}", sender.next_timer());
}
