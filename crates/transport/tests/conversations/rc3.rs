//! RC3 (NSDI 2014 sections 2 and 4.1): the tail at low priority beside any TCP.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_core::Dur;
use sparelane_transport::TransportConfig;

fn rc3(initial_window: u64) -> Box<dyn sparelane_cc::CongestionControl> {
    controller("rc3", &[("initial_window", initial_window)])
}

/// Loses these segments from the tail; the head is a little late, so that the sender knows what the tail brought
/// before the window opens.
fn lose_from_the_tail(lost: &'static [u64]) -> Script {
    Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.class == 0 => Fate::Late(Dur::from_ms(5)),
        Item::Data(segment) if lost.contains(&segment.seq) => Fate::Lost,
        _ => Fate::Arrive,
    })
}

#[test]
fn the_tail_goes_once_and_backwards_and_stops_where_it_meets_the_head() {
    let wire = Wire::transfer(with_sack(), rc3(4), 500, lose_from_the_tail(&[]));
    let expected: Vec<_> = (4..500)
        .rev()
        .map(|seq| {
            (
                seq,
                if seq >= 460 {
                    1
                } else if seq >= 60 {
                    2
                } else {
                    3
                },
            )
        })
        .collect();
    assert_eq!(wire.low(), expected);
    assert_eq!(wire.data().len(), 500);
}

#[test]
fn the_head_does_not_send_what_the_receiver_has() {
    let wire = Wire::transfer(with_sack(), rc3(4), 200, lose_from_the_tail(&[150, 90, 91]));
    let head: Vec<_> = wire.data().into_iter().filter(|(_, segment)| segment.class == 0).map(|(_, s)| s.seq).collect();
    assert_eq!(head, [0, 1, 2, 3, 90, 91, 150]);
    assert_eq!(wire.sender.counts().retransmissions, 0);
}

#[test]
fn low_priority_acknowledgments_move_no_window_and_send_nothing_of_class_0() {
    let mut alone = Alone::new(with_sack(), rc3(4), 30);
    let first = alone.sends_segments();
    assert_eq!(first.iter().filter(|segment| segment.class == 0).count(), 4);
    assert_eq!(first.len(), 30);
    alone.wait(100);
    let window = alone.sender.controller().limits().cwnd_bytes;
    for seq in (10..30).rev() {
        assert_eq!(alone.hears_in_class(seq as u8 / 10, 0, seq, &[(seq, 30)]), []);
    }
    assert_eq!(alone.sender.controller().limits().cwnd_bytes, window);
    assert_eq!(alone.sender.in_flight_bytes(), 4 * MSS);
    // One of class 0 lets two go, and what they are the low-priority reports have decided: from 4 on.
    assert_eq!(alone.hears(1, 0, &[(10, 30)]), [4, 5]);
}

#[test]
fn low_priority_reports_are_no_evidence_of_class_0_losses() {
    let mut alone = Alone::new(with_sack(), rc3(4), 30);
    alone.sends();
    alone.wait(100);
    // Everything from the tail overtook everything from the head.
    alone.hears_in_class(1, 0, 4, &[(4, 30)]);
    assert_eq!(alone.hears(1, 0, &[(4, 30)]), []);
    assert_eq!(alone.hears(2, 1, &[(4, 30)]), []);
    assert_eq!(alone.hears(3, 2, &[(4, 30)]), []);
    assert_eq!(alone.hears(30, 3, &[]), []);
    assert!(alone.sender.is_done());
    assert_eq!(alone.sender.counts().retransmissions, 0);
}

/// Section 4.1.2: a cumulative acknowledgment beyond the next new segment moves it there.
#[test]
fn a_cumulative_acknowledgment_bumps_the_head_over_what_the_tail_brought() {
    let mut alone = Alone::new(with_sack(), rc3(2), 40);
    alone.sends();
    alone.wait(100);
    alone.hears(1, 0, &[]);
    // The tail filled everything to 20; 20 and 30 were lost.
    assert_eq!(alone.hears(20, 1, &[(21, 30), (31, 40)]), [20, 30]);
    assert_eq!(alone.hears(40, 30, &[]), []);
    assert!(alone.sender.is_done());
}

#[test]
fn a_second_write_counts_its_levels_anew() {
    let mut wire = Wire::new(with_sack(), rc3(2), lose(&[]));
    wire.write(60);
    wire.run();
    wire.write(50);
    wire.run();
    let low = wire.low();
    let (first, second) = low.split_at(low.iter().position(|&(seq, _)| seq >= 60).expect("a second write"));
    assert_eq!(first.iter().filter(|&&(_, class)| class == 1).count(), 40);
    assert_eq!(second.iter().filter(|&&(_, class)| class == 1).count(), 40);
    assert_eq!((second[0], second[39], second[40].1), ((109, 1), (70, 1), 2));
}

#[test]
fn a_tail_that_waits_for_its_interface_yields_to_the_head() {
    let none = sparelane_cc::Values::default();
    let cc = sparelane_cc::build("rc3", &none, &sparelane_cc::Blueprint::of_any(MSS, &none)).expect("rc3 that pulls");
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    wire.busy = Dur::from_ms(1);
    wire.write(400);
    wire.run();
    // Ten of class 0 at once, then one from the tail every millisecond until the first acknowledgment.
    assert_eq!(wire.sent_at(100), (0..10).collect::<Vec<_>>());
    let before_acks = wire.data().iter().filter(|(ms, segment)| *ms < 200 && segment.class > 0).count();
    assert_eq!(before_acks, 90);
    let mut low: Vec<_> = wire.low().iter().map(|&(seq, _)| seq).collect();
    low.dedup();
    assert!(low.windows(2).all(|pair| pair[0] == pair[1] + 1), "{low:?}");
}

/// Section 2.1, footnote 3: some is sent twice, all arrives.
#[test]
fn without_sack_the_tail_still_helps() {
    let wire = Wire::transfer(without_sack(), rc3(4), 300, lose(&[]));
    // The first window's last acknowledgment covers all that the tail brought meanwhile.
    let head = wire.data().iter().filter(|(_, segment)| segment.class == 0).count();
    assert!(head < 20, "{head}");
    let lossy = Wire::transfer(without_sack(), rc3(4), 300, lose(&[100, 200, 201]));
    assert_eq!(lossy.receiver.held_bytes(), 300 * MSS);
}

#[test]
fn a_hole_at_the_head_is_repaired_by_class_0() {
    for config in [with_sack(), without_sack()] {
        let wire = Wire::transfer(config, rc3(10), 100, lose(&[2]));
        assert_eq!(wire.receiver.held_bytes(), 100 * MSS);
        assert_eq!(wire.resent().first().map(|&(_, seq)| seq), Some(2));
    }
}

#[test]
fn the_timer_repairs_a_head_that_was_lost_altogether() {
    for config in [with_sack(), without_sack()] {
        let wire = Wire::transfer(config, rc3(2), 50, lose(&[0, 1]));
        assert_eq!(wire.receiver.held_bytes(), 50 * MSS);
        assert_eq!(wire.sender.counts().timeouts, 1);
        let low = wire.low();
        assert_eq!(low.len(), 48);
    }
}

/// The last word on a full buffer comes in low priority, and nothing of class 0 is outstanding to confirm it.
#[test]
fn what_the_tail_brought_frees_the_buffer() {
    let config = TransportConfig { send_buffer_bytes: Some(30 * MSS), ..with_sack() };
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.class > 0 => Fate::Late(Dur::from_ms(20)),
        Item::Ack(ack) if ack.class == 0 => Fate::Late(Dur::from_ms(30)),
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(config, rc3(4), 200, script);
    assert_eq!(wire.receiver.held_bytes(), 200 * MSS);
    assert_eq!(wire.sender.counts().timeouts, 0);
}

/// As above, but the class-0 copies of what the tail brought are lost: the timer fires, and finds nothing to resend.
#[test]
fn a_timeout_with_nothing_to_resend_goes_on_with_what_is_new() {
    let config = TransportConfig { send_buffer_bytes: Some(10 * MSS), ..with_sack() };
    let mut alone = Alone::new(config, rc3(6), 20);
    alone.sends();
    alone.wait(100);
    for seq in 0..4 {
        alone.hears(seq + 1, seq, &[]);
    }
    // Four more fitted into the buffer then. Low priority brings all fourteen, and class 0 nothing.
    assert!(alone.sender.in_flight_bytes() > 0);
    assert_eq!(alone.hears_in_class(1, 14, 13, &[]), []);
    alone.now = alone.sender.next_timer();
    alone.sender.handle_timer(alone.now);
    assert_eq!(alone.sends()[..2], [14, 19]);
    assert_eq!(alone.sender.counts().retransmissions, 0);
}

#[test]
fn the_tail_keeps_to_the_receive_window() {
    let config = TransportConfig { receive_window_bytes: Some(8 * MSS), ..with_sack() };
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.class > 0 && segment.seq % 7 == 0 => Fate::Lost,
        Item::Data(segment) if segment.class > 0 => Fate::Late(Dur::from_ms(20)),
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(config, rc3(4), 60, script);
    let mut acknowledged = 0;
    for sent in &wire.sent {
        match sent.item {
            // At the latest this much was known to the sender when it sent what follows.
            Item::Ack(ack) => acknowledged = acknowledged.max(ack.cumulative),
            Item::Data(segment) => assert!(segment.seq < acknowledged + 8, "{sent:?}"),
            _ => {}
        }
    }
}
