//! RACK-TLP (RFC 8985): losses found by time, and tails that are probed.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::{Dur, Time};
use sparelane_transport::{RtoConfig, TransportConfig};

fn by_time() -> TransportConfig {
    TransportConfig { rack_tlp: true, prr: true, ..with_sack() }
}

/// Loses the first copy of each segment that `pick` names.
fn lose_first(pick: impl Fn(u64) -> bool + 'static) -> Script {
    Box::new(move |sent| match sent.item {
        Item::Data(segment) if pick(segment.seq) && sent.earlier == 0 => Fate::Lost,
        _ => Fate::Arrive,
    })
}

/// RFC 8985 section 3.2: with fewer than three arrivals behind it, a loss is found a quarter of a round trip later.
#[test]
fn a_loss_with_one_arrival_behind_it_is_found_after_a_quarter_of_a_round_trip() {
    let wire = Wire::transfer(by_time(), newreno(10), 3, lose(&[1]));
    assert_eq!(wire.resent(), [(225, 1)]);
    assert_eq!(wire.sender.counts().timeouts, 0);
    let by_order = Wire::transfer(with_sack(), newreno(10), 3, lose(&[1]));
    assert_eq!(by_order.sender.counts().timeouts, 1);
}

#[test]
fn three_arrivals_behind_a_loss_show_it_at_once() {
    for config in [by_time(), as_linux()] {
        let wire = Wire::transfer(config, newreno(10), 60, lose(&[3]));
        assert_eq!(wire.resent(), [(200, 3)]);
    }
}

/// With Linux's 2 ms at its timers (TCP_TIMEOUT_MIN_US), and its retransmission timer, which leaves room for them.
fn as_linux() -> TransportConfig {
    let rto = RtoConfig { variance_min: Dur::from_ms(200), ..RtoConfig::default() };
    TransportConfig { rack_timer_delay: Dur::from_ms(2), rto, ..by_time() }
}

/// Of one segment alone a probe waits for a delayed acknowledgment instead, 200 ms; of two, at 300 ms, for two round trips.
#[test]
fn timers_of_linux_are_two_milliseconds_late_where_no_acknowledgment_comes_before() {
    let wire = Wire::transfer(as_linux(), newreno(10), 3, lose(&[1]));
    assert_eq!(wire.resent(), [(227, 1)]);
    let tail = |segments: u64| Wire::transfer(as_linux(), newreno(10), 20, lose_first(move |seq| seq >= 20 - segments));
    assert_eq!(tail(2).resent()[0], (502, 19));
    assert_eq!(tail(1).resent()[0], (600, 19), "which is also when the retransmission timer would fire");
}

/// An acknowledgment 1 ms after the margin judges by itself: the timer would do so 1 ms later.
#[test]
fn an_acknowledgment_judges_before_a_late_timer() {
    let mut alone = Alone::new(as_linux(), constant(10), 400);
    assert_eq!(alone.sends().len(), 10);
    alone.wait(100);
    assert!(!alone.hears(0, 1, &[(1, 2)]).contains(&0));
    alone.wait(26);
    alone.sender.handle_timer(alone.now);
    assert!(!alone.sends().contains(&0), "the timer is set to 227 ms");
    assert!(alone.hears(0, 1, &[(1, 2)]).contains(&0), "at 226 ms");
}

/// RFC 8985 section 3.3: a segment that is late by less than the margin is no loss.
#[test]
fn reordering_within_a_quarter_of_a_round_trip_costs_nothing_once_it_was_seen() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq % 8 == 5 => Fate::Late(Dur::from_ms(20)),
        _ => Fate::Arrive,
    });
    let (cc, log, _) = Noting::around(newreno(10));
    let wire = Wire::transfer(by_time(), cc, 400, script);
    // The first time it is taken for a loss: three arrivals are behind it.
    assert_eq!(wire.resent().len(), 1, "{:?}", wire.resent());
    assert_eq!(log.lock().expect("one thread").len(), 1);
}

/// RFC 8985 section 3.1: the loss of a retransmission is found as any other.
#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let wire = Wire::transfer(by_time(), newreno(20), 200, lose(&[3, 3, 3]));
    assert_eq!(wire.sender.counts().timeouts, 0);
    let times: Vec<_> = wire.resent().into_iter().map(|(ms, _)| ms).collect();
    assert_eq!(times, [200, 300, 400]);
    assert_eq!(Wire::transfer(with_sack(), newreno(20), 200, lose(&[3, 3, 3])).sender.counts().timeouts, 2);
}

/// RFC 8985 section 7: nothing comes back of the last segments; two round trips later the last goes again.
#[test]
fn a_lost_tail_is_probed_and_repaired_without_a_timeout() {
    let wire = Wire::transfer(by_time(), newreno(10), 20, lose_first(|seq| seq >= 18));
    // The last news is that of segment 17, at 300 ms.
    assert_eq!(wire.resent()[0], (500, 19));
    assert_eq!(wire.sender.counts().timeouts, 0);
    assert_eq!(wire.receiver.held_bytes(), 20 * MSS);
}

/// RFC 8985 section 7.4.2: the loss that a probe repairs all alone still reduces the window.
#[test]
fn a_probe_that_repairs_a_loss_cuts_the_window_and_one_in_vain_does_not() {
    let told = |script| {
        let (cc, log, _) = Noting::around(newreno(10));
        let wire = Wire::transfer(by_time(), cc, 10, script);
        assert_eq!((wire.resent().len(), wire.sender.counts().timeouts), (1, 0));
        let log = log.lock().expect("one thread");
        log.iter().filter(|(_, event)| matches!(event, Congestion::Marked { .. })).count()
    };
    assert_eq!(told(lose(&[9])), 1);
    // The last segment is late, and arrives before its copy.
    let late: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq == 9 && sent.earlier == 0 => Fate::Late(Dur::from_ms(280)),
        _ => Fate::Arrive,
    });
    assert_eq!(told(late), 0);
}

#[test]
fn a_probe_is_a_new_segment_where_there_is_one() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Ack(_) if sent.at < at_ms(350) => Fate::Lost,
        _ => Fate::Arrive,
    });
    let wire = Wire::transfer(by_time(), newreno(4), 8, script);
    // The handshake took a round trip, and so the probe goes 200 ms after the window.
    assert_eq!(wire.sent_at(300), [4]);
    assert!(wire.resent().is_empty() || wire.sender.counts().timeouts > 0, "{:?}", wire.resent());
}

/// RFC 8985 section 6.3.
#[test]
fn a_timeout_loses_what_is_old_and_keeps_what_was_sent_lately() {
    // The first copy leaves at 100 ms, the probe at 400, and the timer fires at 700; another segment has just left then.
    let mut wire = Wire::new(by_time(), newreno(4), lose(&[0, 0]));
    wire.write(1);
    wire.run_until(at_ms(690));
    wire.write(1);
    wire.run_until(at_ms(705));
    assert_eq!(wire.sender.counts().timeouts, 1);
    assert_eq!(wire.sender.in_flight_bytes(), 2 * MSS, "the segment that was sent again, and the new one");
    wire.run();
}

#[test]
fn what_is_kept_of_each_transmission_counts_as_memory_of_the_sender() {
    let memory_bytes = |config| {
        let mut alone = Alone::new(config, constant(400), 400);
        assert_eq!(alone.sends().len(), 400);
        alone.sender.memory_bytes()
    };
    let (by_time, by_order) = (memory_bytes(by_time()), memory_bytes(with_sack()));
    // Its time and its place in the order of sending, with twice the room at most and what is kept once.
    let more = by_time - by_order;
    assert!((400 * (32 + 8)..400 * 80).contains(&more), "{more} bytes");
}

/// The copy of what was acknowledged before is none that was late: the next loss is found by three arrivals, at once.
#[test]
fn a_copy_of_what_was_acknowledged_shows_no_reordering() {
    let mut alone = Alone::new(by_time(), constant(20), 400);
    alone.sends();
    alone.wait(100);
    alone.hears(3, 2, &[]);
    alone.hears(3, 0, &[]);
    assert!(!alone.hears(3, 5, &[(4, 6)]).contains(&3), "two arrivals are too few");
    assert!(alone.hears(3, 6, &[(4, 7)]).contains(&3));
}

#[test]
fn nothing_is_waited_for_once_all_is_acknowledged() {
    let mut alone = Alone::new(by_time(), constant(20), 4);
    assert_eq!(alone.sends(), [0, 1, 2, 3]);
    assert_ne!(alone.sender.next_timer(), Time::NEVER);
    alone.wait(100);
    alone.hears(4, 3, &[]);
    assert_eq!(alone.sender.next_timer(), Time::NEVER);
}

/// The probe was lost as what it asked for; what the timer then sends again is no answer to it.
#[test]
fn a_timeout_forgets_the_probe() {
    let (cc, log, _) = Noting::around(newreno(10));
    let wire = Wire::transfer(by_time(), cc, 10, lose(&[9, 9]));
    assert_eq!(wire.sender.counts().timeouts, 1);
    let log = log.lock().expect("one thread");
    assert!(!log.iter().any(|(_, event)| matches!(event, Congestion::Marked { .. })), "{log:?}");
}
