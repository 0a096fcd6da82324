//! RACK-TLP (RFC 8985): time-based loss detection and tail loss probes.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::{Dur, Time};
use sparelane_transport::{RtoConfig, TransportConfig};

fn by_time() -> TransportConfig {
    TransportConfig { rack_tlp: true, prr: true, ..with_sack() }
}

/// Drops the first copy of each segment for which `pick` returns `true`.
fn lose_first(pick: impl Fn(u64) -> bool + 'static) -> Script {
    Box::new(move |sent| match sent.item {
        Item::Data(segment) if pick(segment.seq) && sent.earlier == 0 => Fate::Lost,
        _ => Fate::Arrive,
    })
}

/// RFC 8985 section 3.2: with fewer than three later arrivals, a loss is detected a quarter of a round trip later.
#[test]
fn a_loss_with_one_later_arrival_is_detected_after_a_quarter_of_a_round_trip() {
    let wire = Wire::transfer(by_time(), newreno(10), 3, lose(&[1]));
    assert_eq!(wire.resent(), [(225, 1)]);
    assert_eq!(wire.sender.counts().timeouts, 0);
    let by_order = Wire::transfer(with_sack(), newreno(10), 3, lose(&[1]));
    assert_eq!(by_order.sender.counts().timeouts, 1);
}

#[test]
fn a_loss_with_three_later_arrivals_is_detected_immediately() {
    for config in [by_time(), as_linux()] {
        let wire = Wire::transfer(config, newreno(10), 60, lose(&[3]));
        assert_eq!(wire.resent(), [(200, 3)]);
    }
}

/// Linux's timers: an extra delay of 2 ms (`TCP_TIMEOUT_MIN_US`), and a retransmission timer that expires later.
fn as_linux() -> TransportConfig {
    let rto = RtoConfig { variance_min: Dur::from_ms(200), ..RtoConfig::default() };
    TransportConfig { rack_timer_delay: Dur::from_ms(2), rto, ..by_time() }
}

/// The probe timeout is two round trips plus 2 ms, or with a single segment in flight plus 200 ms for a delayed
/// acknowledgment.
#[test]
fn linux_timers_have_an_extra_delay_of_two_milliseconds() {
    let wire = Wire::transfer(as_linux(), newreno(10), 3, lose(&[1]));
    assert_eq!(wire.resent(), [(227, 1)]);
    let tail = |segments: u64| Wire::transfer(as_linux(), newreno(10), 20, lose_first(move |seq| seq >= 20 - segments));
    assert_eq!(tail(2).resent()[0], (502, 19));
    assert_eq!(tail(1).resent()[0], (600, 19), "the retransmission timer would expire at the same time");
}

/// An acknowledgment arrives 1 ms after the end of the reordering window and 1 ms before the timer.
#[test]
fn an_acknowledgment_detects_a_loss_before_a_late_timer() {
    let mut solo = SoloSender::new(as_linux(), constant(10), 400);
    assert_eq!(solo.send().len(), 10);
    solo.wait(100);
    assert!(!solo.acknowledge(0, 1, &[(1, 2)]).contains(&0));
    solo.wait(26);
    solo.sender.handle_timer(solo.now);
    assert!(!solo.send().contains(&0), "the timer is set to 227 ms");
    assert!(solo.acknowledge(0, 1, &[(1, 2)]).contains(&0), "at 226 ms");
}

/// RFC 8985 section 3.3: a segment that is late by less than the reordering window is not lost.
#[test]
fn known_reordering_within_a_quarter_of_a_round_trip_causes_no_retransmission() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq % 8 == 5 => Fate::Late(Dur::from_ms(20)),
        _ => Fate::Arrive,
    });
    let (cc, log, _) = Recorder::around(newreno(10));
    let wire = Wire::transfer(by_time(), cc, 400, script);
    // The first late segment is marked lost after three later arrivals.
    assert_eq!(wire.resent().len(), 1, "{:?}", wire.resent());
    assert_eq!(log.lock().expect("one thread").len(), 1);
}

/// RFC 8985 section 3.1: the loss of a retransmission is detected as any other.
#[test]
fn a_lost_retransmission_is_repaired_without_a_timeout() {
    let wire = Wire::transfer(by_time(), newreno(20), 200, lose(&[3, 3, 3]));
    assert_eq!(wire.sender.counts().timeouts, 0);
    let times: Vec<_> = wire.resent().into_iter().map(|(ms, _)| ms).collect();
    assert_eq!(times, [200, 300, 400]);
    assert_eq!(Wire::transfer(with_sack(), newreno(20), 200, lose(&[3, 3, 3])).sender.counts().timeouts, 2);
}

/// RFC 8985 section 7: the last segments are lost, and two round trips later the last one is sent again.
#[test]
fn a_lost_tail_is_probed_and_repaired_without_a_timeout() {
    let wire = Wire::transfer(by_time(), newreno(10), 20, lose_first(|seq| seq >= 18));
    // The last acknowledgment is that of segment 17, at 300 ms.
    assert_eq!(wire.resent()[0], (500, 19));
    assert_eq!(wire.sender.counts().timeouts, 0);
    assert_eq!(wire.receiver.held_bytes(), 20 * MSS);
}

/// RFC 8985 section 7.4.2: a loss that a probe repairs still reduces the window.
#[test]
fn a_probe_that_repairs_a_loss_reduces_the_window_and_a_spurious_one_does_not() {
    let marks_reported = |script| {
        let (cc, log, _) = Recorder::around(newreno(10));
        let wire = Wire::transfer(by_time(), cc, 10, script);
        assert_eq!((wire.resent().len(), wire.sender.counts().timeouts), (1, 0));
        let log = log.lock().expect("one thread");
        log.iter().filter(|(_, event)| matches!(event, Congestion::Marked { .. })).count()
    };
    assert_eq!(marks_reported(lose(&[9])), 1);
    // The last segment is late, and arrives before its copy.
    let late: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq == 9 && sent.earlier == 0 => Fate::Late(Dur::from_ms(280)),
        _ => Fate::Arrive,
    });
    assert_eq!(marks_reported(late), 0);
}

#[test]
fn a_probe_is_a_new_segment_if_there_is_one() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Ack(_) if sent.at < at_ms(350) => Fate::Lost,
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(by_time(), newreno(4), 8, script);
    // The handshake measured a round trip of 100 ms, so the probe is sent 200 ms after the window.
    assert_eq!(wire.sent_at(300), [4]);
    assert!(wire.resent().is_empty() || wire.sender.counts().timeouts > 0, "{:?}", wire.resent());
}

/// RFC 8985 section 6.3.
#[test]
fn a_timeout_marks_old_segments_lost_and_keeps_recent_ones_in_flight() {
    // The first copy is sent at 100 ms and the probe at 400 ms. The timer expires at 700 ms, shortly after a new
    // segment.
    let mut wire = Wire::new(by_time(), newreno(4), lose(&[0, 0]));
    wire.write(1);
    wire.run_until(at_ms(690));
    wire.write(1);
    wire.run_until(at_ms(705));
    assert_eq!(wire.sender.counts().timeouts, 1);
    assert_eq!(wire.sender.in_flight_bytes(), 2 * MSS, "the retransmission and the new segment");
    wire.run();
}

#[test]
fn the_list_of_transmissions_counts_as_memory() {
    let memory_bytes = |config| {
        let mut solo = SoloSender::new(config, constant(400), 400);
        assert_eq!(solo.send().len(), 400);
        solo.sender.memory_bytes()
    };
    let (by_time, by_order) = (memory_bytes(by_time()), memory_bytes(with_sack()));
    // The list entry and the order per segment, with at most twice the capacity, plus the constant part.
    let more = by_time - by_order;
    assert!((400 * (32 + 8)..400 * 80).contains(&more), "{more} bytes");
}

/// A duplicate of an acknowledged segment is no evidence of reordering, so three later arrivals still suffice for a
/// loss.
#[test]
fn a_duplicate_of_an_acknowledged_segment_is_no_reordering() {
    let mut solo = SoloSender::new(by_time(), constant(20), 400);
    solo.send();
    solo.wait(100);
    solo.acknowledge(3, 2, &[]);
    solo.acknowledge(3, 0, &[]);
    assert!(!solo.acknowledge(3, 5, &[(4, 6)]).contains(&3), "two arrivals are too few");
    assert!(solo.acknowledge(3, 6, &[(4, 7)]).contains(&3));
}

#[test]
fn no_timer_runs_once_all_data_is_acknowledged() {
    let mut solo = SoloSender::new(by_time(), constant(20), 4);
    assert_eq!(solo.send(), [0, 1, 2, 3]);
    assert_ne!(solo.sender.next_timer(), Time::NEVER);
    solo.wait(100);
    solo.acknowledge(4, 3, &[]);
    assert_eq!(solo.sender.next_timer(), Time::NEVER);
}

/// The probe is lost too. The acknowledgment of the later retransmission does not end a probe.
#[test]
fn a_timeout_cancels_the_probe() {
    let (cc, log, _) = Recorder::around(newreno(10));
    let wire = Wire::transfer(by_time(), cc, 10, lose(&[9, 9]));
    assert_eq!(wire.sender.counts().timeouts, 1);
    let log = log.lock().expect("one thread");
    assert!(!log.iter().any(|(_, event)| matches!(event, Congestion::Marked { .. })), "{log:?}");
}
