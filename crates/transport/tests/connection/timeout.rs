//! The retransmission timer (RFC 6298), and the undo of spurious retransmissions (RFC 3522 and 4015).

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::Dur;
use sparelane_transport::{DelayedAck, TransportConfig};

fn times_of(wire: &Wire, seq: u64) -> Vec<u64> {
    wire.data().into_iter().filter(|(_, segment)| segment.seq == seq).map(|(ms, _)| ms).collect()
}

#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    for config in [with_sack(), without_sack()] {
        let (cc, log, _) = Recorder::around(newreno(10));
        let wire = Wire::transfer(config, cc, 60, lose(&[3, 3]));
        let times = times_of(&wire, 3);
        // The last progress is at 200 ms. The RTO is SRTT = 100 ms plus four times RTTVAR, but at least 200 ms. RTTVAR
        // starts at 50 ms and falls by a quarter with each sample.
        assert_eq!(times[..2], [100, 200]);
        assert!((400..500).contains(&times[2]), "{times:?}");
        assert_eq!(wire.sender.counts().timeouts, 1);
        let log = log.lock().expect("one thread");
        let expected = [(200, "Loss"), (times[2], "Timeout")];
        let events = log
            .iter()
            .map(|(ms, event)| (*ms, if matches!(event, Congestion::Loss { .. }) { "Loss" } else { "Timeout" }));
        assert_eq!(events.collect::<Vec<_>>(), expected);
        assert_eq!(wire.window_at(times[2]), MSS);
    }
}

/// Linux before RACK (`tcp_mark_lost_retrans`, with forward acknowledgment): a retransmission is lost once new data
/// that was sent after it has arrived.
#[test]
fn a_lost_retransmission_is_detected_by_later_new_data_if_enabled() {
    let config = TransportConfig { detect_lost_retransmissions: true, ..with_sack() };
    let wire = Wire::transfer(config, newreno(20), 200, lose(&[3, 3, 3]));
    // New data follows the first retransmission immediately and is acknowledged a round trip later. After the second
    // one, the window has room for new data only at 400 ms.
    assert_eq!((times_of(&wire, 3), wire.sender.counts().timeouts), (vec![100, 200, 300, 500], 0));
    let once = Wire::transfer(config, newreno(20), 200, lose(&[3, 7]));
    assert_eq!(once.resent().len(), 2);
}

/// RFC 6298 rules 5.4 to 5.6. After the first sample the RTO is three round trips.
#[test]
fn every_timeout_doubles_the_next() {
    let (cc, log, _) = Recorder::around(newreno(10));
    let wire = Wire::transfer(with_sack(), cc, 1, lose(&[0, 0, 0, 0]));
    assert_eq!(times_of(&wire, 0), [100, 400, 1000, 2200, 4600]);
    let first = |event| matches!(event, Congestion::Timeout { first: true, .. });
    let firsts: Vec<_> = log.lock().expect("one thread").iter().map(|&(_, event)| first(event)).collect();
    assert_eq!(firsts, [true, false, false, false]);
}

/// RFC 6298 section 5: the backoff lasts until a segment that was sent only once is acknowledged, or until timestamps
/// identify the acknowledgment of a retransmission.
#[test]
fn the_backoff_lasts_until_there_is_a_new_sample() {
    let times = |timestamps| {
        let config = TransportConfig { timestamps, ..with_sack() };
        let wire = Wire::transfer(config, newreno(2), 2, lose(&[0, 0, 0, 1, 1]));
        assert_eq!(times_of(&wire, 0), [100, 400, 1000, 2200]);
        times_of(&wire, 1)
    };
    // Segment 0 is acknowledged at 2300 ms, with an RTO of 2400 ms after backoff. Segment 1 is sent then and lost.
    assert_eq!(times(false), [100, 2300, 4700]);
    // The retransmission of segment 0 gives a sample of 100 ms, which lowers RTTVAR from 50 to 37.5 ms.
    assert_eq!(times(true), [100, 2300, 2550]);
}

/// Every second of forty segments is lost, and its first retransmission too.
#[test]
fn progress_ends_the_backoff_after_many_lost_retransmissions() {
    for (config, most) in [(with_sack(), 10), (without_sack(), 30)] {
        let script: Script = Box::new(|sent| match sent.item {
            Item::Data(segment) if segment.seq % 2 == 0 && sent.earlier < 2 => Fate::Lost,
            _ => Fate::Arrive,
        });
        let wire = Wire::transfer(config, newreno(10), 40, script);
        assert_eq!(wire.receiver.held_bytes(), 40 * MSS);
        assert!(wire.now < at_ms(most * 1000), "{}, {} timeouts", wire.now, wire.sender.counts().timeouts);
    }
}

/// RFC 5681 section 4.3: the loss of a retransmission is a second indication of congestion.
#[test]
fn a_timeout_after_progress_is_a_first_timeout_again() {
    let (cc, log, _) = Recorder::around(newreno(8));
    let wire = Wire::transfer(with_sack(), cc, 8, lose(&[0, 1, 2, 3, 4, 5, 6, 7, 0, 2]));
    let log = log.lock().expect("one thread");
    let firsts: Vec<_> =
        log.iter().map(|(_, event)| matches!(event, Congestion::Timeout { first: true, .. })).collect();
    assert_eq!(firsts, [true, false, true], "{log:?}");
    assert_eq!(wire.receiver.held_bytes(), 8 * MSS);
}

/// Returns the segments retransmitted after a timeout. Every second of twenty segments is lost, and its retransmission
/// before the timeout too.
fn resent_after_timeout(config: TransportConfig) -> Vec<u64> {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq % 2 == 0 && sent.at < at_ms(350) => Fate::Lost,
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(config, newreno(20), 20, script);
    assert_eq!(wire.sender.counts().timeouts, 1);
    let timeout = times_of(&wire, 0)[2];
    wire.resent().into_iter().filter(|&(ms, _)| ms >= timeout).map(|(_, seq)| seq).collect()
}

#[test]
fn reported_segments_are_not_retransmitted_after_a_timeout() {
    assert_eq!(resent_after_timeout(with_sack()), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
}

/// An acknowledgment repeats only the latest four blocks, so segments in earlier blocks are retransmitted.
#[test]
fn a_sender_that_discards_sack_information_retransmits_reported_segments() {
    let config = TransportConfig { sack_survives_timeout: false, ..with_sack() };
    let resent = resent_after_timeout(config);
    assert!(resent.contains(&3) && !resent.contains(&19), "{resent:?}");
}

#[test]
fn without_sack_a_timeout_returns_to_the_first_segment() {
    let wire = Wire::transfer(without_sack(), newreno(10), 10, lose(&[0, 5, 0]));
    let resent: Vec<_> = wire.resent().into_iter().map(|(_, seq)| seq).collect();
    // The fast retransmission is lost, and the one after the timeout arrives. All below 5 is acknowledged, and the
    // window is two.
    assert_eq!(resent, [0, 0, 5, 6]);
}

/// RFC 6582 section 3.2, step 1: duplicate acknowledgments of unnecessary retransmissions are no evidence of loss.
#[test]
fn duplicates_after_a_timeout_cause_no_fast_retransmit() {
    let (cc, log, _) = Recorder::around(newreno(20));
    let mut wire = Wire::new(without_sack(), cc, lose(&[0, 1, 2, 3, 8, 0]));
    wire.write(20);
    wire.run_until(at_ms(450));
    wire.write(40);
    wire.run();
    let log = log.lock().expect("one thread");
    let losses = log.iter().filter(|(_, event)| matches!(event, Congestion::Loss { .. })).count();
    assert_eq!(losses, 1, "{log:?}");
}

/// The first window is late by more than the timeout, then all of it arrives.
fn late_window(config: TransportConfig) -> (Wire, Log) {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if sent.earlier == 0 && segment.seq < 8 => Fate::Late(Dur::from_ms(350)),
        _ => Fate::Arrive,
    });
    let (cc, log, _) = Recorder::around(newreno(8));
    (Wire::transfer(config, cc, 60, script), log)
}

#[test]
fn a_spurious_timeout_is_undone_if_enabled() {
    let (wire, log) = late_window(TransportConfig { undo_spurious: true, ..with_sack() });
    let log = log.lock().expect("one thread");
    assert!(matches!(log[..], [(400, Congestion::Timeout { .. }), (550, Congestion::Spurious)]), "{log:?}");
    // The acknowledgment of the retransmission arrives just before, and opens the window to two segments.
    assert_eq!((wire.window_at(400), wire.window_at(549)), (MSS, 2 * MSS));
    assert!(wire.window_at(550) >= 8 * MSS);
}

/// The trigger of a delayed acknowledgment is its second segment, but it echoes the timestamp of the first one (RFC 7323
/// section 4.2).
#[test]
fn a_spurious_timeout_is_undone_by_a_delayed_acknowledgment() {
    let (at_once, _) = late_window(TransportConfig { undo_spurious: true, ..with_sack() });
    for every_segments in [2, 3] {
        let delayed_ack = Some(DelayedAck { every_segments, timeout: Dur::from_ms(40) });
        let (wire, log) = late_window(TransportConfig { undo_spurious: true, delayed_ack, ..with_sack() });
        let log = log.lock().expect("one thread");
        assert!(matches!(log[..], [(_, Congestion::Timeout { .. }), (550, Congestion::Spurious)]), "{log:?}");
        assert!(wire.window_at(550) >= 8 * MSS);
        assert_eq!(wire.sender.counts().retransmissions, at_once.sender.counts().retransmissions);
    }
}

/// The retransmission of segment 0 repaired a loss, and its acknowledgment was lost. The next one was triggered by a first
/// transmission that arrived out of order.
#[test]
fn a_timeout_is_not_undone_if_the_acknowledgment_of_its_repair_was_lost() {
    let (cc, log, _) = Recorder::around(newreno(10));
    let mut solo = SoloSender::new(TransportConfig { undo_spurious: true, ..with_sack() }, cc, 40);
    assert_eq!(solo.send().len(), 10);
    solo.wait(500);
    solo.sender.handle_timer(solo.now);
    assert_eq!(solo.send(), [0]);
    solo.acknowledge(5, 9, &[(9, 10)]);
    let log = log.lock().expect("one thread");
    assert!(matches!(log[..], [(_, Congestion::Timeout { .. })]), "{log:?}");
}

#[test]
fn a_spurious_timeout_is_not_undone_if_disabled() {
    let (wire, log) = late_window(with_sack());
    assert!(log.lock().expect("one thread").iter().all(|(_, event)| *event != Congestion::Spurious));
    assert!(wire.window_at(550) < 8 * MSS);
}

#[test]
fn a_spurious_fast_retransmit_is_undone_if_enabled() {
    for config in [with_sack(), without_sack()] {
        let after = |undo_spurious| {
            let script: Script = Box::new(|sent| match sent.item {
                Item::Data(segment) if sent.earlier == 0 && segment.seq == 2 => Fate::Late(Dur::from_ms(30)),
                _ => Fate::Arrive,
            });
            let (cc, log, _) = Recorder::around(newreno(10));
            let wire = Wire::transfer(TransportConfig { undo_spurious, ..config }, cc, 100, script);
            let spurious =
                log.lock().expect("one thread").iter().filter(|(_, event)| *event == Congestion::Spurious).count();
            (spurious, wire.window_at(230), wire.sender.counts().timeouts)
        };
        let (spurious, window, timeouts) = after(true);
        assert_eq!((spurious, timeouts), (1, 0));
        assert!(window >= 12 * MSS, "{window} bytes");
        let (spurious, window, _) = after(false);
        assert_eq!(spurious, 0);
        assert!(window < 8 * MSS, "{window} bytes");
    }
}

/// The timer runs while class-0 data is outstanding.
#[test]
fn the_timer_runs_from_the_first_segment_to_the_last_acknowledgment() {
    let mut solo = SoloSender::new(with_sack(), constant(10), 2);
    assert_eq!(solo.send(), [0, 1]);
    assert_eq!(solo.sender.next_timer(), at_ms(400));
    solo.wait(100);
    solo.acknowledge(1, 0, &[]);
    assert!(solo.sender.next_timer() > at_ms(400));
    solo.acknowledge(2, 1, &[]);
    assert_eq!(solo.sender.next_timer(), sparelane_core::Time::NEVER);
}

/// Segments that wait in the scheduler are not lost. The last segment, which has departed and does not arrive, is.
#[test]
fn the_timer_repairs_the_tail_of_a_flow_with_a_scheduler() {
    let wire = Wire::transfer(with_sack(), controller("rapid", &[]), 40, lose(&[39]));
    assert_eq!((wire.sender.counts().timeouts, wire.receiver.held_bytes()), (1, 40 * MSS));
    assert_eq!(Wire::transfer(with_sack(), controller("rapid", &[]), 40, lose(&[])).sender.counts().timeouts, 0);
}
