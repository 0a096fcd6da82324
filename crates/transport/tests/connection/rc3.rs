//! RC3 (NSDI 2014 sections 2 and 4.1): the tail is sent at low priority, in addition to any TCP controller.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_core::Dur;
use sparelane_transport::TransportConfig;

fn rc3(initial_window: u64) -> Box<dyn sparelane_cc::CongestionControl> {
    controller("rc3", &[("initial_window", initial_window)])
}

/// Drops the segments `lost` from the tail. Class 0 is delayed by 5 ms, so that the tail is acknowledged before the
/// window opens.
fn lose_from_the_tail(lost: &'static [u64]) -> Script {
    Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.class == 0 => Fate::Late(Dur::from_ms(5)),
        Item::Data(segment) if lost.contains(&segment.seq) => Fate::Lost,
        _ => Fate::Arrive,
    })
}

#[test]
fn the_tail_is_sent_once_in_descending_order_down_to_the_head() {
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
fn the_head_skips_segments_that_the_receiver_holds() {
    let wire = Wire::transfer(with_sack(), rc3(4), 200, lose_from_the_tail(&[150, 90, 91]));
    let head: Vec<_> = wire.data().into_iter().filter(|(_, segment)| segment.class == 0).map(|(_, s)| s.seq).collect();
    assert_eq!(head, [0, 1, 2, 3, 90, 91, 150]);
    assert_eq!(wire.sender.counts().retransmissions, 0);
}

#[test]
fn low_priority_acknowledgments_change_no_window_and_release_no_class_0_segment() {
    let mut solo = SoloSender::new(with_sack(), rc3(4), 30);
    let first = solo.send_segments();
    assert_eq!(first.iter().filter(|segment| segment.class == 0).count(), 4);
    assert_eq!(first.len(), 30);
    solo.wait(100);
    let window = solo.sender.controller().limits().cwnd_bytes;
    for seq in (10..30).rev() {
        assert_eq!(solo.acknowledge_in_class(seq as u8 / 10, 0, seq, &[(seq, 30)]), []);
    }
    assert_eq!(solo.sender.controller().limits().cwnd_bytes, window);
    assert_eq!(solo.sender.in_flight_bytes(), 4 * MSS);
    // A class-0 acknowledgment releases two segments. The low-priority reports start at 10, so they are 4 and 5.
    assert_eq!(solo.acknowledge(1, 0, &[(10, 30)]), [4, 5]);
}

#[test]
fn low_priority_reports_are_no_evidence_of_class_0_losses() {
    let mut solo = SoloSender::new(with_sack(), rc3(4), 30);
    solo.send();
    solo.wait(100);
    // All segments from the tail overtake all segments from the head.
    solo.acknowledge_in_class(1, 0, 4, &[(4, 30)]);
    assert_eq!(solo.acknowledge(1, 0, &[(4, 30)]), []);
    assert_eq!(solo.acknowledge(2, 1, &[(4, 30)]), []);
    assert_eq!(solo.acknowledge(3, 2, &[(4, 30)]), []);
    assert_eq!(solo.acknowledge(30, 3, &[]), []);
    assert!(solo.sender.is_done());
    assert_eq!(solo.sender.counts().retransmissions, 0);
}

/// Section 4.1.2: a cumulative acknowledgment beyond the next new segment advances the head.
#[test]
fn a_cumulative_acknowledgment_bumps_the_head_over_segments_from_the_tail() {
    let mut solo = SoloSender::new(with_sack(), rc3(2), 40);
    solo.send();
    solo.wait(100);
    solo.acknowledge(1, 0, &[]);
    // Segments below 20 arrived from the tail; 20 and 30 were lost.
    assert_eq!(solo.acknowledge(20, 1, &[(21, 30), (31, 40)]), [20, 30]);
    assert_eq!(solo.acknowledge(40, 30, &[]), []);
    assert!(solo.sender.is_done());
}

#[test]
fn a_second_write_starts_at_the_highest_low_priority() {
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
    // Ten class-0 segments, then one segment from the tail per millisecond until the first acknowledgment.
    assert_eq!(wire.sent_at(100), (0..10).collect::<Vec<_>>());
    let before_acks = wire.data().iter().filter(|(ms, segment)| *ms < 200 && segment.class > 0).count();
    assert_eq!(before_acks, 90);
    let mut low: Vec<_> = wire.low().iter().map(|&(seq, _)| seq).collect();
    low.dedup();
    assert!(low.windows(2).all(|pair| pair[0] == pair[1] + 1), "{low:?}");
}

/// Section 2.1, footnote 3: some segments are sent twice, and all arrive.
#[test]
fn without_sack_the_tail_still_helps() {
    let wire = Wire::transfer(without_sack(), rc3(4), 300, lose(&[]));
    // The last acknowledgment of the first window covers all segments that arrived from the tail.
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
fn the_timer_repairs_a_head_that_was_lost_completely() {
    for config in [with_sack(), without_sack()] {
        let wire = Wire::transfer(config, rc3(2), 50, lose(&[0, 1]));
        assert_eq!(wire.receiver.held_bytes(), 50 * MSS);
        assert_eq!(wire.sender.counts().timeouts, 1);
        let low = wire.low();
        assert_eq!(low.len(), 48);
    }
}

/// The last reports that free the buffer are low-priority ones. No class-0 segment is in flight that would trigger a
/// cumulative acknowledgment.
#[test]
fn segments_reported_at_low_priority_free_the_buffer() {
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

/// The class-0 copies of segments that arrived from the tail are lost. At the timeout there is nothing to retransmit.
#[test]
fn a_timeout_without_retransmissions_continues_with_new_data() {
    let config = TransportConfig { send_buffer_bytes: Some(10 * MSS), ..with_sack() };
    let mut solo = SoloSender::new(config, rc3(6), 20);
    solo.send();
    solo.wait(100);
    for seq in 0..4 {
        solo.acknowledge(seq + 1, seq, &[]);
    }
    // Four more segments entered the buffer. Low priority reports all fourteen, class 0 none of the remaining ten.
    assert!(solo.sender.in_flight_bytes() > 0);
    assert_eq!(solo.acknowledge_in_class(1, 14, 13, &[]), []);
    solo.now = solo.sender.next_timer();
    solo.sender.handle_timer(solo.now);
    assert_eq!(solo.send()[..2], [14, 19]);
    assert_eq!(solo.sender.counts().retransmissions, 0);
}

#[test]
fn the_tail_respects_the_receive_window() {
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
            // A bound: the sender learns of this acknowledgment only after the one-way delay.
            Item::Ack(ack) => acknowledged = acknowledged.max(ack.cumulative),
            Item::Data(segment) => assert!(segment.seq < acknowledged + 8, "{sent:?}"),
            _ => {}
        }
    }
}
