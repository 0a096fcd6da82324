//! Accurate ECN (RFC 9768): negotiation, counters, and the controller's view of marks.

use crate::wire::*;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits};
use sparelane_core::Dur;
use sparelane_transport::{DelayedAck, Ecn, TransportConfig};
use std::sync::{Arc, Mutex};

fn accurate() -> TransportConfig {
    TransportConfig { ecn: Ecn::Accurate, ..with_sack() }
}

fn delayed(every_segments: u32) -> TransportConfig {
    let delayed_ack = Some(DelayedAck { every_segments, timeout: Dur::from_ms(40) });
    TransportConfig { delayed_ack, ..accurate() }
}

/// Marks these segments, whenever they are sent.
fn mark(marks: impl Fn(u64) -> bool + 'static) -> Script {
    Box::new(move |sent| match sent.item {
        Item::Data(segment) if marks(segment.seq) => Fate::Marked,
        _ => Fate::Arrive,
    })
}

/// The sums of what a controller saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    segments: u64,
    bytes: u64,
    /// Acknowledgments with an echo.
    echoes: u64,
    /// Reports of congestion by marks.
    events: u64,
}

#[derive(Debug)]
struct Counter {
    window: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Counter {
    fn watched(window: u64) -> (Box<dyn CongestionControl>, Arc<Mutex<Seen>>) {
        let seen = Arc::default();
        (Box::new(Counter { window: window * MSS, seen: Arc::clone(&seen) }), seen)
    }
}

impl CongestionControl for Counter {
    fn on_ack(&mut self, ack: &Ack, _cx: &mut Cx<'_>) {
        let mut seen = self.seen.lock().expect("one thread");
        seen.segments += ack.marked_segments;
        seen.bytes += ack.marked_bytes;
        seen.echoes += u64::from(ack.ecn_echo);
    }

    fn on_congestion(&mut self, event: Congestion, _cx: &mut Cx<'_>) {
        let is_mark = matches!(event, Congestion::Marked { by_ecn: true, .. });
        self.seen.lock().expect("one thread").events += u64::from(is_mark);
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: self.window, pacing: None }
    }
}

/// Transfers 200 segments with a window of 40, and returns the connection and what its controller saw.
fn transfer(config: TransportConfig, script: Script) -> (Wire, Seen) {
    let (cc, seen) = Counter::watched(40);
    let wire = Wire::transfer(config, cc, 200, script);
    let seen = *seen.lock().expect("one thread");
    (wire, seen)
}

#[test]
fn both_ends_agree_to_accurate_ecn_and_the_controller_learns_of_every_mark() {
    let (wire, seen) = transfer(accurate(), mark(|seq| seq % 3 == 0));
    assert_eq!((wire.handshake_flags, wire.sender.ecn()), ([0b111, 0b010], Ecn::Accurate));
    assert_eq!((seen.segments, seen.bytes, seen.echoes), (67, 67 * MSS, 67));
    assert_eq!(wire.feedback[0].ace, 6, "five, and the first segment");
    // The option has the last counters: 67 marked segments and 133 others.
    let last = wire.feedback.last().and_then(|echo| echo.option).expect("an option");
    assert_eq!((last.ect0_bytes, u64::from(last.ce_bytes), u64::from(last.ect1_bytes)), (1, 67 * MSS, 1 + 133 * MSS));
    // Congestion is reported once per window of data, and CWR is not used.
    assert!((4..=6).contains(&seen.events), "{seen:?}");
    assert!(wire.data().iter().all(|(_, segment)| !segment.window_reduced));
}

#[test]
fn delayed_acknowledgments_lose_no_mark() {
    for every in [2, 4, 16] {
        for ecn_option in [true, false] {
            let config = TransportConfig { ecn_option, ..delayed(every) };
            let (wire, seen) = transfer(config, mark(|seq| seq % 3 == 0));
            assert_eq!((seen.segments, seen.bytes), (67, 67 * MSS), "every {every}, option: {ecn_option}");
            assert_eq!(wire.feedback.iter().all(|echo| echo.option.is_some()), ecn_option);
        }
    }
}

/// RFC 9768 section 3.2.2.5.1: the first mark after unmarked data, and every second mark, cause an acknowledgment.
#[test]
fn marks_end_the_delay_of_acknowledgments() {
    let (wire, _) = transfer(delayed(1000), mark(|seq| [20, 21, 22, 23, 24].contains(&seq)));
    let acks: Vec<u64> = wire
        .sent
        .iter()
        .filter_map(|sent| if let Item::Ack(ack) = sent.item { Some(ack.cumulative) } else { None })
        .collect();
    assert_eq!(acks[..3], [21, 23, 25]);
}

#[test]
fn lost_acknowledgments_lose_no_mark() {
    for ecn_option in [true, false] {
        let config = TransportConfig { ecn_option, ..accurate() };
        // Two of three acknowledgments are lost, and each segment is marked with probability 1/2.
        let script: Script = Box::new(|sent| match sent.item {
            Item::Data(segment) if segment.seq % 2 == 0 => Fate::Marked,
            Item::Ack(_) if sent.earlier % 3 != 2 => Fate::Lost,
            _ => Fate::Arrive,
        });
        let (_, seen) = transfer(config, script);
        // The last acknowledgments are repeated after a timeout, whose segments are marked again.
        assert!((100..=103).contains(&seen.segments), "{seen:?}, option: {ecn_option}");
    }
}

#[test]
fn an_overtaken_acknowledgment_reports_nothing() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq % 2 == 0 => Fate::Marked,
        Item::Ack(ack) if ack.cumulative % 7 == 0 => Fate::Late(Dur::from_ms(30)),
        _ => Fate::Arrive,
    });
    let (_, seen) = transfer(accurate(), script);
    assert_eq!(seen.segments, 100);
}

/// Classic ECN follows, with one report per window and CWR.
#[test]
fn a_receiver_with_classic_ecn_gets_classic_ecn() {
    let config = TransportConfig { peer_ecn: Ecn::Classic, ..accurate() };
    let (wire, seen) = transfer(config, mark(|seq| seq == 10));
    assert_eq!((wire.handshake_flags, wire.sender.ecn()), ([0b111, 0b001], Ecn::Classic));
    assert_eq!((seen.segments, seen.events), (0, 1));
    assert!(seen.echoes > 30, "the echo lasts until CWR: {seen:?}");
    assert_eq!(wire.data().iter().filter(|(_, segment)| segment.window_reduced).count(), 1);
    assert_eq!(wire.feedback, []);
}

#[test]
fn a_receiver_without_ecn_gets_none() {
    let config = TransportConfig { peer_ecn: Ecn::Off, ..accurate() };
    let (wire, seen) = transfer(config, lose(&[]));
    assert_eq!((wire.handshake_flags, wire.sender.ecn()), ([0b111, 0], Ecn::Off));
    assert_eq!((seen, wire.feedback), (Seen::default(), vec![]));
}

#[test]
fn four_sack_blocks_leave_no_room_for_the_option() {
    let lost: Vec<u64> = (20..40).step_by(3).collect();
    let (wire, seen) = transfer(accurate(), {
        let lost = lost.clone();
        Box::new(move |sent| match sent.item {
            Item::Data(segment) if sent.earlier == 0 && lost.contains(&segment.seq) => Fate::Lost,
            Item::Data(segment) if segment.seq % 2 == 0 => Fate::Marked,
            _ => Fate::Arrive,
        })
    });
    assert!(wire.feedback.iter().any(|echo| echo.option.is_none()));
    assert_eq!(seen.segments, 100, "each even segment arrives once, marked");
}
