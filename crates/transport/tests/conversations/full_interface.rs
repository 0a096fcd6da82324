//! A sender that is told that its interface has no room.

use crate::wire::*;
use sparelane_cc::{Congestion, Value, Values, build, registry::Blueprint};
use sparelane_core::{Dur, Rate};
use sparelane_transport::{Ecn, TransportConfig};

/// A packet every 2 ms, and so 50 in a round trip, from an interface that holds 20.
fn through_interface(config: TransportConfig, segments: u64, script: Script) -> (Wire, Vec<(u64, Congestion)>) {
    let (cc, log, _) = Noting::around(newreno(10));
    let mut wire = Wire::new(config, cc, script);
    (wire.busy, wire.holds) = (Dur::from_ms(2), Some(20));
    wire.write(segments);
    wire.run();
    let log = log.lock().expect("one thread").clone();
    (wire, log)
}

/// A sender whose connection is open, with nothing written yet, and what its controller is told.
fn open_with(window: u64) -> (Wire, Log) {
    let (cc, log, _) = Noting::around(newreno(window));
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    wire.write(0);
    wire.run_until(at_ms(150));
    (wire, log)
}

fn told(log: &Log) -> usize {
    log.lock().expect("one thread").len()
}

#[test]
fn a_full_interface_ends_slow_start_once_a_window_and_nothing_is_lost_or_sent_again() {
    for ecn in [Ecn::Off, Ecn::Classic, Ecn::Dctcp] {
        let (wire, log) = through_interface(TransportConfig { ecn, ..with_sack() }, 2_000, lose(&[]));
        assert!(log.iter().all(|(_, event)| matches!(event, Congestion::Marked { .. })), "{log:?}");
        let times: Vec<u64> = log.iter().map(|&(ms, _)| ms).collect();
        assert!(times.len() > 1 && times.windows(2).all(|pair| pair[1] - pair[0] >= 100), "{times:?}");
        // Rounds of 10, 20 and 40 segments, of which the last do not fit; the window is half of what was in flight.
        let Congestion::Marked { flight_bytes } = log[0].1 else { panic!("{log:?}") };
        assert!(wire.windows.contains(&(at_ms(300), flight_bytes / 2)) && times[0] == 300, "{times:?}");
        assert!((30 * MSS..40 * MSS).contains(&flight_bytes), "{flight_bytes}");
        assert!(wire.data().iter().map(|(_, segment)| segment.seq).eq(0..2_000), "each once, in order");
        assert!(wire.data().iter().all(|(_, segment)| !segment.window_reduced), "no echo to answer");
        assert_eq!((wire.resent(), wire.sender.counts().timeouts), (vec![], 0));
    }
}

/// At most one reaction to a window of data, as for marks.
#[test]
fn a_loss_in_the_window_that_a_full_interface_had_cut_does_not_cut_it_again() {
    let (_, log) = through_interface(with_sack(), 300, lose(&[]));
    let first_ms = log[0].0;
    let (wire, log) = through_interface(with_sack(), 300, lose(&[35]));
    assert_eq!(wire.resent().iter().map(|&(_, seq)| seq).collect::<Vec<_>>(), [35]);
    assert!(wire.resent()[0].0 > first_ms, "lost before the cut, found later");
    assert!(log.iter().all(|(_, event)| matches!(event, Congestion::Marked { .. })), "{log:?}");
    assert!(log.len() == 1 || log[1].0 >= first_ms + 200, "none before it is repaired: {log:?}");
}

/// What was sent before the interface was full is acknowledged, but losses from then are still being repaired.
#[test]
fn who_repairs_losses_is_not_told_of_a_full_interface() {
    let (cc, log, _) = Noting::around(constant(20));
    let mut wire = Wire::new(with_sack(), cc, lose(&[1, 5]));
    wire.write(4);
    wire.run_until(at_ms(150));
    wire.sender.write(5 * MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(told(&log), 1);
    wire.write(0);
    while wire.heard.as_ref().is_none_or(|(ack, _)| ack.cumulative != 5) {
        assert!(wire.step(at_ms(1_000)));
    }
    wire.sender.write(MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(told(&log), 1);
    wire.run();
    wire.sender.write(MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(told(&log), 2);
}

/// Told before anything was sent, and then again only once something that was sent since is acknowledged.
#[test]
fn the_first_window_is_told_of_a_full_interface_and_only_once() {
    let (mut wire, log) = open_with(10);
    wire.sender.write(30 * MSS);
    for times in 1..4 {
        for _ in 0..3 {
            wire.sender.handle_full_interface(wire.now);
            assert_eq!(told(&log), times);
        }
        wire.write(0);
        wire.run();
        assert_eq!(told(&log), times);
        wire.sender.write(MSS);
    }
    assert_eq!(log.lock().expect("one thread")[0], (150, Congestion::Marked { flight_bytes: 0 }));
    assert_eq!(wire.resent(), []);
}

#[test]
fn who_has_nothing_to_send_is_not_told_of_a_full_interface() {
    let (cc, log, _) = Noting::around(newreno(10));
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    wire.sender.write(MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(told(&log), 0, "a handshake");

    let (mut wire, log) = open_with(10);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(told(&log), 0, "nothing written");
    wire.write(30);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!((told(&log), wire.data().len()), (0, 10), "a full window");
}

#[test]
fn who_waits_for_the_pace_is_not_told_of_a_full_interface() {
    let mut values = Values::default();
    values.set("pace", Value::Rate(Some(Rate::from_bps(80_000))));
    let cc = build("constant", &values, &Blueprint::of_any(MSS, &Values::default())).expect("a controller");
    let (cc, log, _) = Noting::around(cc);
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    wire.write(30);
    wire.run_until(at_ms(150));
    // Segment 0 went at 100 ms; 1040 bytes last 104 ms at this pace.
    wire.sender.handle_full_interface(at_ms(150));
    assert_eq!((wire.data().len(), told(&log)), (1, 0));
    wire.sender.handle_full_interface(at_ms(204));
    assert_eq!(told(&log), 1);
}

/// What waits at the tail is not of class 0, whose window this is.
#[test]
fn a_tail_is_not_told_of_a_full_interface() {
    let (cc, log, _) = Noting::around(controller("rc3", &[("initial_window", 4)]));
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    (wire.busy, wire.holds) = (Dur::from_ms(2), Some(6));
    wire.write(100);
    wire.run_until(at_ms(150));
    // Of the window of four, none waits for room; of the tail, all but a few do.
    let sent = (wire.sent_at(100).len(), wire.low().len());
    assert!(sent.0 == 4 && (1..96).contains(&sent.1), "{sent:?}");
    assert_eq!(told(&log), 0);
}
