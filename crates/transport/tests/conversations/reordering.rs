//! Paths that reorder, and loss detection that follows what they show.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_core::{Dur, Time};
use sparelane_transport::{AckSegment, Acknowledgment, TransportConfig};

fn adaptive(by_time: bool) -> TransportConfig {
    TransportConfig { adaptive_reordering: true, rack_tlp: by_time, prr: by_time, ..with_sack() }
}

/// Every 25th segment is late by so much, and these are lost, each as often as it is listed.
fn late_and_lost(late: Dur, segments: &[u64]) -> Script {
    let mut lost = lose(segments);
    Box::new(move |sent| match (lost(sent), sent.item) {
        (Fate::Lost, _) => Fate::Lost,
        (_, Item::Data(segment)) if segment.seq % 25 == 7 && sent.earlier == 0 => Fate::Late(late),
        _ => Fate::Arrive,
    })
}

/// A path of 8 Mb/s, on which a segment that is late by 15 ms is overtaken by fourteen others.
fn paced_conversation(config: TransportConfig, segments: u64, script: Script) -> Wire {
    use sparelane_cc::{Blueprint, Value, Values, build};
    let mut values = Values::default();
    values.set("window", Value::Whole(400));
    values.set("pace", Value::Rate(Some(sparelane_core::Rate::from_mbps(8))));
    let cc = build("constant", &values, &Blueprint::of_any(MSS, &Values::default())).expect("a pace");
    Wire::transfer(config, cc, segments, script)
}

#[test]
fn what_was_overtaken_once_is_waited_for_longer() {
    let late = Dur::from_ms(15);
    let needless = paced_conversation(with_sack(), 2000, late_and_lost(late, &[])).resent().len();
    assert!(needless >= 75, "{needless}: nearly every late segment is taken for lost");
    let wire = paced_conversation(adaptive(false), 2000, late_and_lost(late, &[]));
    assert!(wire.resent().len() <= 1, "{:?}: at most the first one", wire.resent());
}

#[test]
fn what_is_lost_is_still_found_without_the_timer() {
    let lost = [500, 501, 900, 1400];
    let wire = paced_conversation(adaptive(false), 2000, late_and_lost(Dur::from_ms(15), &lost));
    let resent: Vec<u64> = wire.resent().iter().map(|&(_, seq)| seq).collect();
    assert!(lost.iter().all(|seq| resent.contains(seq)), "{resent:?}");
    assert_eq!(wire.sender.counts().timeouts, 0);
    assert!(resent.len() <= lost.len() + 2, "{resent:?}");
}

/// RFC 8985 section 6.2, step 4: a margin of a quarter of the round trip is too short for segments that are late by three.
#[test]
fn the_margin_by_time_grows_with_needless_retransmissions() {
    let late = Dur::from_ms(60);
    let fixed = TransportConfig { adaptive_reordering: false, ..adaptive(true) };
    let needless = paced_conversation(fixed, 3000, late_and_lost(late, &[])).resent().len();
    let wire = paced_conversation(adaptive(true), 3000, late_and_lost(late, &[]));
    let found = wire.resent().len();
    assert!(needless > 80 && found < needless / 4, "{found} needless retransmissions, {needless} with a fixed margin");
    let last = wire.resent().last().map_or(0, |&(_, seq)| seq);
    assert!(last < 1000, "the margin is wide enough after segment {last}");
}

/// The network brings a second copy of what was acknowledged long ago, while seven segments above a hole have arrived.
#[test]
fn a_copy_of_what_was_acknowledged_before_is_no_sign_of_reordering() {
    let mut alone = Alone::new(adaptive(false), constant(20), 400);
    alone.sends();
    alone.wait(50);
    alone.hears(3, 2, &[]);
    let repair = alone.hears(3, 10, &[(4, 11)]);
    assert_eq!(repair[0], 3, "the hole is resent");
    let later = alone.hears(3, 0, &[(4, 11)]);
    let end = 1 + repair.into_iter().chain(later).max().expect("the repair at least");
    alone.wait(100);
    let next = alone.hears(end, end - 1, &[]);
    assert_eq!(next[0], end, "all is well again");
    let after_three = alone.hears(end, end + 3, &[(end + 1, end + 4)]);
    assert!(after_three.contains(&end), "three arrivals are enough as before: {after_three:?}");
}

/// When a loss is found that one arrival has overtaken, after a repair whose own acknowledgment came when `cumulative` of twenty
/// segments were acknowledged to the receiver's knowledge, and all twenty to the sender's.
fn found_after_repair_was_acknowledged_late(cumulative: u64) -> Time {
    let mut alone = Alone::new(adaptive(true), constant(20), 400);
    assert_eq!(alone.sends(), Vec::from_iter(0..20));
    alone.wait(100);
    assert_eq!(alone.hears(0, 3, &[(1, 4)])[0], 0, "three arrivals show the loss");
    alone.wait(100);
    let last = alone.hears(20, 19, &[]).into_iter().max().expect("new segments");
    let late = AckSegment { cumulative, trigger: 0, trigger_retransmitted: true, class: 0, ecn_echo: false };
    assert_eq!(alone.sender.handle_ack(alone.now, &Acknowledgment::of(late, &[])), Ok(()));
    alone.wait(100);
    let hole = last - 1;
    alone.hears(hole, last, &[(last, last + 1)]);
    while !alone.sends().contains(&hole) {
        alone.wait(1);
        alone.sender.handle_timer(alone.now);
        assert!(alone.now < at_ms(1000), "the loss is found");
    }
    alone.now
}

/// The acknowledgment of a repair that was overtaken by a later one says nothing of a second copy; one that says that the receiver
/// had everything does: the first copy was not lost.
#[test]
fn a_late_acknowledgment_of_a_repair_does_not_widen_the_margin_and_a_needless_repair_does() {
    let overtaken = found_after_repair_was_acknowledged_late(4);
    let needless = found_after_repair_was_acknowledged_late(20);
    assert_eq!(needless - overtaken, Dur::from_ms(25), "another quarter of the round trip");
}
