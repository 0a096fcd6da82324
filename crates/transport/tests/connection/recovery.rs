//! Fast retransmit and fast recovery: RFC 6675 with SACK, RFC 6582 without SACK.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::Dur;
use sparelane_transport::TransportConfig;

/// RFC 6675, segment by segment: the fourth segment of a window of 10 is lost.
#[test]
fn the_third_report_above_a_hole_triggers_fast_retransmit() {
    let (cc, log, _) = Recorder::around(newreno(10));
    let wire = Wire::transfer(with_sack(), cc, 60, lose(&[3]));
    // Three acknowledgments release two segments each. Two reports of later segments release one each (limited
    // transmit), and the third one triggers the retransmission.
    assert_eq!(wire.sent_at(100), (0..10).collect::<Vec<_>>());
    assert_eq!(wire.sent_at(200), [10, 11, 12, 13, 14, 15, 16, 17, 3]);
    assert_eq!(wire.resent(), [(200, 3)]);
    // FlightSize excludes limited transmit: 13 of the 15 outstanding segments (RFC 5681 section 3.2).
    assert_eq!(*log.lock().expect("one thread"), [(200, Congestion::Loss { flight_bytes: 13 * MSS })]);
    assert_eq!(wire.window_at(200), 6500);
    // The following reports only drain the pipe to the window.
    assert_eq!(wire.window_at(299), 6500);
    assert_eq!(wire.sender.counts().timeouts, 0);
}

/// RFC 5681 section 3.2 and RFC 6582: the same scenario without SACK, with duplicate acknowledgments.
#[test]
fn the_third_duplicate_acknowledgment_triggers_fast_retransmit() {
    let (cc, log, _) = Recorder::around(newreno(10));
    let wire = Wire::transfer(without_sack(), cc, 60, lose(&[3]));
    assert_eq!(wire.sent_at(200), [10, 11, 12, 13, 14, 15, 16, 17, 3]);
    assert_eq!(wire.resent(), [(200, 3)]);
    assert_eq!(*log.lock().expect("one thread"), [(200, Congestion::Loss { flight_bytes: 13 * MSS })]);
    assert_eq!(wire.window_at(200), 6500);
    // Fifteen segments are outstanding after six duplicates. Each further one inflates the window of 6.5 by one, and
    // the fourth opens it. The full acknowledgment deflates it again.
    assert_eq!(wire.sent_at(300)[..4], [18, 19, 20, 21]);
    assert_eq!(wire.sender.counts().timeouts, 0);
}

#[test]
fn two_later_arrivals_are_no_loss() {
    for config in [with_sack(), without_sack()] {
        let script: Script = Box::new(|sent| match sent.item {
            // Overtaken by two segments.
            Item::Data(segment) if segment.seq == 7 => Fate::Late(Dur::from_ms(1)),
            _ => Fate::Arrive,
        });
        let (cc, log, _) = Recorder::around(newreno(10));
        let wire = Wire::transfer(config, cc, 10, script);
        assert_eq!((wire.resent().len(), log.lock().expect("one thread").len()), (0, 0));
    }
}

#[test]
fn with_sack_many_losses_are_repaired_in_one_recovery_and_one_round() {
    let lost = [2, 5, 6, 9, 12, 15];
    let (cc, log, _) = Recorder::around(newreno(20));
    let wire = Wire::transfer(with_sack(), cc, 100, lose(&lost));
    let resent = wire.resent();
    assert_eq!(resent.iter().map(|&(_, seq)| seq).collect::<Vec<_>>(), lost);
    assert!(resent.iter().all(|&(ms, _)| (200..=300).contains(&ms)), "{resent:?}");
    assert_eq!(log.lock().expect("one thread").len(), 1);
    assert_eq!(wire.sender.counts().timeouts, 0);
}

/// RFC 6582 section 3.2: a partial acknowledgment retransmits the next hole.
#[test]
fn without_sack_one_hole_is_repaired_per_round() {
    let (cc, log, _) = Recorder::around(newreno(12));
    let wire = Wire::transfer(without_sack(), cc, 60, lose(&[2, 5, 8]));
    assert_eq!(wire.resent(), [(200, 2), (300, 5), (400, 8)]);
    assert_eq!(log.lock().expect("one thread").len(), 1);
    // A partial acknowledgment of three segments releases one, because it deflates the window.
    assert_eq!(wire.sender.counts().timeouts, 0);
}

#[test]
fn the_window_is_reduced_once_per_recovery() {
    for config in [with_sack(), without_sack()] {
        let (cc, log, _) = Recorder::around(newreno(16));
        let wire = Wire::transfer(config, cc, 200, lose(&[3, 6, 7, 100]));
        let log = log.lock().expect("one thread");
        assert_eq!(log.len(), 2, "{log:?}");
        assert!(log.iter().all(|(_, event)| matches!(event, Congestion::Loss { .. })), "{log:?}");
        assert_eq!(wire.resent().len(), 4);
    }
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_two_duplicates_or_none() {
    for config in [with_sack(), without_sack()] {
        let first_reaction = |limited_transmit| {
            let config = TransportConfig { limited_transmit, ..config };
            Wire::transfer(config, newreno(4), 20, lose(&[0])).sent_at(200)
        };
        assert_eq!(first_reaction(true)[..3], [4, 5, 0]);
        assert_eq!(first_reaction(false)[0], 0);
    }
}

#[test]
fn a_sender_with_a_pending_retransmission_leaves_the_send_fast_path() {
    let mut solo = SoloSender::new(with_sack(), newreno(20), 400);
    solo.send();
    solo.wait(50);
    solo.acknowledge(3, 2, &[]);
    solo.acknowledge(3, 10, &[(4, 11)]);
    assert!(!solo.sender.is_on_send_fast_path());
}

/// RFC 6582 section 3.2: three duplicates halve the window of ten and add three segments, and each further one adds
/// one. A partial acknowledgment subtracts the segments that it covers, adds one and retransmits the next hole.
#[test]
fn without_sack_duplicates_inflate_the_window_and_a_partial_acknowledgment_deflates_it() {
    let config = TransportConfig { sack: false, limited_transmit: false, ..with_sack() };
    let mut solo = SoloSender::new(config, newreno(10), 100);
    assert_eq!(solo.send(), Vec::from_iter(0..10));
    let after: Vec<_> = (1..10).map(|trigger| solo.acknowledge(0, trigger, &[])).collect();
    let none: Vec<u64> = vec![];
    let expected = [
        none.clone(),
        none.clone(),
        vec![0],
        // Windows of 5 + 4 and 5 + 5 segments do not exceed the 10 in flight.
        none.clone(),
        none,
        vec![10],
        vec![11],
        vec![12],
        vec![13],
    ];
    assert_eq!(after, expected);
    // A window of 14 - 4 + 1 segments, with ten in flight.
    assert_eq!(solo.acknowledge(4, 0, &[]), [4, 14]);
}

#[test]
fn recovery_respects_the_receive_window() {
    let config = TransportConfig { receive_window_bytes: Some(20 * MSS), ..with_sack() };
    let mut solo = SoloSender::new(config, constant(40), 400);
    assert_eq!(solo.send(), Vec::from_iter(0..20));
    assert_eq!(solo.acknowledge(5, 4, &[]), Vec::from_iter(20..25));
    let sent: Vec<u64> = (6..25).flat_map(|seq| solo.acknowledge(5, seq, &[(6, seq + 1)])).collect();
    assert_eq!(sent, [5, 24], "the hole, the rescue retransmission (RFC 6675, rule 4), and nothing beyond the window");
    assert_eq!(solo.acknowledge(25, 5, &[]), Vec::from_iter(25..45));
}
