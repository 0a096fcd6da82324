//! The retransmission timer (RFC 6298), what it forgets, and what proves needless (RFC 3522, 4015).

use crate::alone::Alone;
use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::Dur;
use sparelane_transport::TransportConfig;

fn times_of(wire: &Wire, seq: u64) -> Vec<u64> {
    wire.data().into_iter().filter(|(_, segment)| segment.seq == seq).map(|(ms, _)| ms).collect()
}

#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    for config in [with_sack(), without_sack()] {
        let (cc, log, _) = Noting::around(newreno(10));
        let wire = Wire::transfer(config, cc, 60, lose(&[3, 3]));
        let times = times_of(&wire, 3);
        // The last progress was at 200 ms. The timeout is SRTT, 100 ms, and four times RTTVAR, at first 50 ms and
        // a quarter less with every one of the first samples; its floor is 200 ms.
        assert_eq!(times[..2], [100, 200]);
        assert!((400..500).contains(&times[2]), "{times:?}");
        assert_eq!(wire.sender.counts().timeouts, 1);
        let log = log.lock().expect("one thread");
        let expected = [(200, "Loss"), (times[2], "Timeout")];
        let told = log
            .iter()
            .map(|(ms, event)| (*ms, if matches!(event, Congestion::Loss { .. }) { "Loss" } else { "Timeout" }));
        assert_eq!(told.collect::<Vec<_>>(), expected);
        assert_eq!(wire.window_at(times[2]), MSS);
    }
}

/// Linux before RACK (`tcp_mark_lost_retrans`, with forward acknowledgment): what was sent for the first time after the retransmission
/// has arrived, so that this is lost. A retransmission that arrives is left alone.
#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it_where_that_is_set() {
    let config = TransportConfig { detect_lost_retransmissions: true, ..with_sack() };
    let wire = Wire::transfer(config, newreno(20), 200, lose(&[3, 3, 3]));
    // New data goes right after the first retransmission, and is known to have arrived a round trip later. After the second the
    // window has room for new data only at 400 ms.
    assert_eq!((times_of(&wire, 3), wire.sender.counts().timeouts), (vec![100, 200, 300, 500], 0));
    let once = Wire::transfer(config, newreno(20), 200, lose(&[3, 7]));
    assert_eq!(once.resent().len(), 2);
}

/// RFC 6298 rules 5.4 to 5.6; the first sample gives a timeout of three round trips.
#[test]
fn every_timeout_doubles_the_next() {
    let (cc, log, _) = Noting::around(newreno(10));
    let wire = Wire::transfer(with_sack(), cc, 1, lose(&[0, 0, 0, 0]));
    assert_eq!(times_of(&wire, 0), [100, 400, 1000, 2200, 4600]);
    let first = |event| matches!(event, Congestion::Timeout { first: true, .. });
    let firsts: Vec<_> = log.lock().expect("one thread").iter().map(|&(_, event)| first(event)).collect();
    assert_eq!(firsts, [true, false, false, false]);
}

/// RFC 6298 section 5: what was backed off stays so until a segment that was sent once is acknowledged, unless timestamps
/// tell that the answer is to the last copy.
#[test]
fn the_backoff_lasts_until_there_is_a_new_sample() {
    let times = |timestamps| {
        let config = TransportConfig { timestamps, ..with_sack() };
        let wire = Wire::transfer(config, newreno(2), 2, lose(&[0, 0, 0, 1, 1]));
        assert_eq!(times_of(&wire, 0), [100, 400, 1000, 2200]);
        times_of(&wire, 1)
    };
    // Acknowledged at 2300 ms with a timeout backed off to 2400 ms; segment 1 goes then, and is lost.
    assert_eq!(times(false), [100, 2300, 4700]);
    // The retransmission of segment 0 took 100 ms as well: RTTVAR falls from 50 to 37.5 ms.
    assert_eq!(times(true), [100, 2300, 2550]);
}

/// Of forty segments every second is lost, and its first retransmission as well.
#[test]
fn progress_ends_the_backoff_so_that_many_lost_repairs_take_a_timeout_each() {
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
fn a_timeout_after_progress_cuts_again_and_one_without_does_not() {
    let (cc, log, _) = Noting::around(newreno(8));
    let wire = Wire::transfer(with_sack(), cc, 8, lose(&[0, 1, 2, 3, 4, 5, 6, 7, 0, 2]));
    let log = log.lock().expect("one thread");
    let firsts: Vec<_> =
        log.iter().map(|(_, event)| matches!(event, Congestion::Timeout { first: true, .. })).collect();
    assert_eq!(firsts, [true, false, true], "{log:?}");
    assert_eq!(wire.receiver.held_bytes(), 8 * MSS);
}

/// Of twenty segments every second is lost, from the first on, and so is its retransmission before the timeout.
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
fn what_was_reported_is_not_sent_again_after_a_timeout() {
    assert_eq!(resent_after_timeout(with_sack()), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
}

/// An acknowledgment repeats the latest four blocks only; what came before them is sent again.
#[test]
fn a_sender_that_forgets_its_reports_goes_back() {
    let config = TransportConfig { sack_survives_timeout: false, ..with_sack() };
    let resent = resent_after_timeout(config);
    assert!(resent.contains(&3) && !resent.contains(&19), "{resent:?}");
}

#[test]
fn without_sack_a_timeout_goes_back_to_the_first_segment() {
    let wire = Wire::transfer(without_sack(), newreno(10), 10, lose(&[0, 5, 0]));
    let resent: Vec<_> = wire.resent().into_iter().map(|(_, seq)| seq).collect();
    // In vain at once, and then after the timeout; that is answered by all below 5, and the window is two.
    assert_eq!(resent, [0, 0, 5, 6]);
}

/// RFC 6582 section 3.2, step 1: duplicates of what a timeout resent in vain are no news of loss.
#[test]
fn duplicates_after_a_timeout_cause_no_fast_retransmit() {
    let (cc, log, _) = Noting::around(newreno(20));
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
fn late_window(undo_spurious: bool) -> (Wire, Log) {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if sent.earlier == 0 && segment.seq < 8 => Fate::Late(Dur::from_ms(350)),
        _ => Fate::Arrive,
    });
    let (cc, log, _) = Noting::around(newreno(8));
    (Wire::transfer(TransportConfig { undo_spurious, ..with_sack() }, cc, 60, script), log)
}

#[test]
fn a_needless_timeout_is_undone_where_asked_for() {
    let (wire, log) = late_window(true);
    let log = log.lock().expect("one thread");
    assert!(matches!(log[..], [(400, Congestion::Timeout { .. }), (550, Congestion::Spurious)]), "{log:?}");
    // The answer to the retransmission came just before, and opened the window to two.
    assert_eq!((wire.window_at(400), wire.window_at(549)), (MSS, 2 * MSS));
    assert!(wire.window_at(550) >= 8 * MSS);
}

#[test]
fn a_needless_timeout_is_not_undone_unless_asked_for() {
    let (wire, log) = late_window(false);
    assert!(log.lock().expect("one thread").iter().all(|(_, event)| *event != Congestion::Spurious));
    assert!(wire.window_at(550) < 8 * MSS);
}

#[test]
fn a_needless_fast_retransmit_is_undone_where_asked_for() {
    for config in [with_sack(), without_sack()] {
        let after = |undo_spurious| {
            let script: Script = Box::new(|sent| match sent.item {
                Item::Data(segment) if sent.earlier == 0 && segment.seq == 2 => Fate::Late(Dur::from_ms(30)),
                _ => Fate::Arrive,
            });
            let (cc, log, _) = Noting::around(newreno(10));
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

/// The timer runs while anything of class 0 is outstanding, and not otherwise.
#[test]
fn the_timer_runs_with_the_first_segment_out_and_stops_with_the_last_one_in() {
    let mut alone = Alone::new(with_sack(), constant(10), 2);
    assert_eq!(alone.sends(), [0, 1]);
    assert_eq!(alone.sender.next_timer(), at_ms(400));
    alone.wait(100);
    alone.hears(1, 0, &[]);
    assert!(alone.sender.next_timer() > at_ms(400));
    alone.hears(2, 1, &[]);
    assert_eq!(alone.sender.next_timer(), sparelane_core::Time::NEVER);
}

/// What waits below TCP is not lost, but what has left and does not arrive is.
#[test]
fn the_timer_repairs_the_end_of_a_flow_below_which_a_scheduler_sends() {
    let wire = Wire::transfer(with_sack(), controller("rapid", &[]), 40, lose(&[39]));
    assert_eq!((wire.sender.counts().timeouts, wire.receiver.held_bytes()), (1, 40 * MSS));
    assert_eq!(Wire::transfer(with_sack(), controller("rapid", &[]), 40, lose(&[])).sender.counts().timeouts, 0);
}
