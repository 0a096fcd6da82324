//! Adaptation of loss detection to reordering on the path.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_core::{Dur, Time};
use sparelane_transport::{AckSegment, Acknowledgment, TransportConfig};

fn adaptive(by_time: bool) -> TransportConfig {
    TransportConfig { adaptive_reordering: true, rack_tlp: by_time, prr: by_time, ..with_sack() }
}

/// Delays every 25th segment by `late`, and drops each of `segments` as often as it is listed.
fn late_and_lost(late: Dur, segments: &[u64]) -> Script {
    let mut lost = lose(segments);
    Box::new(move |sent| match (lost(sent), sent.item) {
        (Fate::Lost, _) => Fate::Lost,
        (_, Item::Data(segment)) if segment.seq % 25 == 7 && sent.earlier == 0 => Fate::Late(late),
        _ => Fate::Arrive,
    })
}

/// Transfers `segments` at a pacing rate of 8 Mb/s, at which fourteen segments overtake one that is late by 15 ms.
fn paced_transfer(config: TransportConfig, segments: u64, script: Script) -> Wire {
    use sparelane_cc::{Blueprint, Value, Values, build};
    let mut values = Values::default();
    values.set("window", Value::Whole(400));
    values.set("pace", Value::Rate(Some(sparelane_core::Rate::from_mbps(8))));
    let cc = build("constant", &values, &Blueprint::of_any(MSS, &Values::default())).expect("a pace");
    Wire::transfer(config, cc, segments, script)
}

#[test]
fn dup_thresh_rises_after_reordering() {
    let late = Dur::from_ms(15);
    let spurious = paced_transfer(with_sack(), 2000, late_and_lost(late, &[])).resent().len();
    assert!(spurious >= 75, "{spurious}: nearly every late segment is retransmitted");
    let wire = paced_transfer(adaptive(false), 2000, late_and_lost(late, &[]));
    assert!(wire.resent().len() <= 1, "{:?}: at most the first one", wire.resent());
}

#[test]
fn losses_are_still_detected_without_a_timeout() {
    let lost = [500, 501, 900, 1400];
    let wire = paced_transfer(adaptive(false), 2000, late_and_lost(Dur::from_ms(15), &lost));
    let resent: Vec<u64> = wire.resent().iter().map(|&(_, seq)| seq).collect();
    assert!(lost.iter().all(|seq| resent.contains(seq)), "{resent:?}");
    assert_eq!(wire.sender.counts().timeouts, 0);
    assert!(resent.len() <= lost.len() + 2, "{resent:?}");
}

/// RFC 8985 section 6.2, step 4: the initial window of a quarter of the round trip is too short for segments that are
/// late by 60 % of it.
#[test]
fn the_reordering_window_grows_with_spurious_retransmissions() {
    let late = Dur::from_ms(60);
    let fixed = TransportConfig { adaptive_reordering: false, ..adaptive(true) };
    let spurious = paced_transfer(fixed, 3000, late_and_lost(late, &[])).resent().len();
    let wire = paced_transfer(adaptive(true), 3000, late_and_lost(late, &[]));
    let found = wire.resent().len();
    assert!(spurious > 80 && found < spurious / 4, "{found} retransmissions, {spurious} with a fixed window");
    let last = wire.resent().last().map_or(0, |&(_, seq)| seq);
    assert!(last < 1000, "the window is large enough after segment {last}");
}

/// The network duplicates an acknowledged segment while seven segments above a hole have arrived.
#[test]
fn a_duplicate_of_an_acknowledged_segment_is_no_reordering() {
    let mut solo = SoloSender::new(adaptive(false), constant(20), 400);
    solo.send();
    solo.wait(50);
    solo.acknowledge(3, 2, &[]);
    let repair = solo.acknowledge(3, 10, &[(4, 11)]);
    assert_eq!(repair[0], 3, "the hole is resent");
    let later = solo.acknowledge(3, 0, &[(4, 11)]);
    let end = 1 + repair.into_iter().chain(later).max().expect("the repair at least");
    solo.wait(100);
    let next = solo.acknowledge(end, end - 1, &[]);
    assert_eq!(next[0], end, "recovery is over");
    let after_three = solo.acknowledge(end, end + 3, &[(end + 1, end + 4)]);
    assert!(after_three.contains(&end), "DupThresh is still three: {after_three:?}");
}

/// Returns the detection time of a loss with one later arrival. It follows a recovery whose retransmission is
/// acknowledged late, with `cumulative` as the acknowledgment number, after all twenty segments were acknowledged.
fn detection_after_a_late_acknowledgment(cumulative: u64) -> Time {
    let mut solo = SoloSender::new(adaptive(true), constant(20), 400);
    assert_eq!(solo.send(), Vec::from_iter(0..20));
    solo.wait(100);
    assert_eq!(solo.acknowledge(0, 3, &[(1, 4)])[0], 0, "lost after three later arrivals");
    solo.wait(100);
    let last = solo.acknowledge(20, 19, &[]).into_iter().max().expect("new segments");
    let late = AckSegment { cumulative, trigger: 0, trigger_retransmitted: true, class: 0, ecn_echo: false };
    assert_eq!(solo.sender.handle_ack(solo.now, &Acknowledgment::of(late, &[])), Ok(()));
    solo.wait(100);
    let hole = last - 1;
    solo.acknowledge(hole, last, &[(last, last + 1)]);
    while !solo.send().contains(&hole) {
        solo.wait(1);
        solo.sender.handle_timer(solo.now);
        assert!(solo.now < at_ms(1000), "the loss is not detected");
    }
    solo.now
}

/// If the late acknowledgment only covers data before the other segments, another acknowledgment has overtaken it. If
/// it covers all twenty segments, the receiver held them before the retransmission arrived, so that was spurious.
#[test]
fn a_spurious_retransmission_widens_the_reordering_window_and_a_late_acknowledgment_does_not() {
    let overtaken = detection_after_a_late_acknowledgment(4);
    let spurious = detection_after_a_late_acknowledgment(20);
    assert_eq!(spurious - overtaken, Dur::from_ms(25), "another quarter of the round trip");
}
