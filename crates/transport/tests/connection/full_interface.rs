//! A sender whose host reports a full interface queue.

use crate::wire::*;
use sparelane_cc::{Congestion, Value, Values, build, registry::Blueprint};
use sparelane_core::{Dur, Rate};
use sparelane_transport::{Ecn, TransportConfig};

/// Transfers `segments` through an interface that sends a packet every 2 ms, 50 per round trip, and queues 20.
fn through_interface(config: TransportConfig, segments: u64, script: Script) -> (Wire, Vec<(u64, Congestion)>) {
    let (cc, log, _) = Recorder::around(newreno(10));
    let mut wire = Wire::new(config, cc, script);
    (wire.busy, wire.queue_limit) = (Dur::from_ms(2), Some(20));
    wire.write(segments);
    wire.run();
    let log = log.lock().expect("one thread").clone();
    (wire, log)
}

/// Returns an open connection without data, and the log of its controller's congestion events.
fn open_with(window: u64) -> (Wire, Log) {
    let (cc, log, _) = Recorder::around(newreno(window));
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    wire.write(0);
    wire.run_until(at_ms(150));
    (wire, log)
}

/// Returns the number of congestion events.
fn event_count(log: &Log) -> usize {
    log.lock().expect("one thread").len()
}

#[test]
fn a_full_interface_reduces_the_window_once_per_window_without_losses() {
    for ecn in [Ecn::Off, Ecn::Classic, Ecn::Dctcp] {
        let (wire, log) = through_interface(TransportConfig { ecn, ..with_sack() }, 2_000, lose(&[]));
        assert!(log.iter().all(|(_, event)| matches!(event, Congestion::Marked { .. })), "{log:?}");
        let times: Vec<u64> = log.iter().map(|&(ms, _)| ms).collect();
        assert!(times.len() > 1 && times.windows(2).all(|pair| pair[1] - pair[0] >= 100), "{times:?}");
        // Rounds of 10, 20 and 40 segments. The last segments do not fit, and the window becomes half of the pipe.
        let Congestion::Marked { flight_bytes, by_ecn: false } = log[0].1 else { panic!("{log:?}") };
        assert!(wire.windows.contains(&(at_ms(300), flight_bytes / 2)) && times[0] == 300, "{times:?}");
        assert!((30 * MSS..40 * MSS).contains(&flight_bytes), "{flight_bytes}");
        assert!(wire.data().iter().map(|(_, segment)| segment.seq).eq(0..2_000), "each once, in order");
        assert!(wire.data().iter().all(|(_, segment)| !segment.window_reduced), "no ECE to answer");
        assert_eq!((wire.resent(), wire.sender.counts().timeouts), (vec![], 0));
    }
}

/// As for marks, the window is reduced at most once per window of data.
#[test]
fn a_loss_does_not_reduce_a_window_that_a_full_interface_has_reduced() {
    let (_, log) = through_interface(with_sack(), 300, lose(&[]));
    let first_ms = log[0].0;
    let (wire, log) = through_interface(with_sack(), 300, lose(&[35]));
    assert_eq!(wire.resent().iter().map(|&(_, seq)| seq).collect::<Vec<_>>(), [35]);
    assert!(wire.resent()[0].0 > first_ms, "lost before the reduction, detected later");
    assert!(log.iter().all(|(_, event)| matches!(event, Congestion::Marked { .. })), "{log:?}");
    assert!(log.len() == 1 || log[1].0 >= first_ms + 200, "no reduction during recovery: {log:?}");
}

/// All data sent before the full interface is acknowledged, except for losses whose recovery is in progress.
#[test]
fn a_full_interface_is_not_reported_during_recovery() {
    let (cc, log, _) = Recorder::around(constant(20));
    let mut wire = Wire::new(with_sack(), cc, lose(&[1, 5]));
    wire.write(4);
    wire.run_until(at_ms(150));
    wire.sender.write(5 * MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(event_count(&log), 1);
    wire.write(0);
    while wire.last_ack.as_ref().is_none_or(|(ack, _)| ack.cumulative != 5) {
        assert!(wire.step(at_ms(1_000)));
    }
    wire.sender.write(MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(event_count(&log), 1);
    wire.run();
    wire.sender.write(MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(event_count(&log), 2);
}

/// The first report comes before anything was sent. The next one needs an acknowledgment of data sent after the first.
#[test]
fn a_full_interface_is_reported_once_per_window_from_the_first_window_on() {
    let (mut wire, log) = open_with(10);
    wire.sender.write(30 * MSS);
    for times in 1..4 {
        for _ in 0..3 {
            wire.sender.handle_full_interface(wire.now);
            assert_eq!(event_count(&log), times);
        }
        wire.write(0);
        wire.run();
        assert_eq!(event_count(&log), times);
        wire.sender.write(MSS);
    }
    assert_eq!(log.lock().expect("one thread")[0], (150, Congestion::Marked { flight_bytes: 0, by_ecn: false }));
    assert_eq!(wire.resent(), []);
}

#[test]
fn a_full_interface_is_not_reported_if_nothing_can_be_sent() {
    let (cc, log, _) = Recorder::around(newreno(10));
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    wire.sender.write(MSS);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(event_count(&log), 0, "during the handshake");

    let (mut wire, log) = open_with(10);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!(event_count(&log), 0, "without data");
    wire.write(30);
    wire.sender.handle_full_interface(wire.now);
    assert_eq!((event_count(&log), wire.data().len()), (0, 10), "with a full window");
}

#[test]
fn a_full_interface_is_not_reported_while_pacing_blocks() {
    let mut values = Values::default();
    values.set("pace", Value::Rate(Some(Rate::from_bps(80_000))));
    let cc = build("constant", &values, &Blueprint::of_any(MSS, &Values::default())).expect("a controller");
    let (cc, log, _) = Recorder::around(cc);
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    wire.write(30);
    wire.run_until(at_ms(150));
    // Segment 0 was sent at 100 ms, and 1040 bytes take 104 ms at this rate.
    wire.sender.handle_full_interface(at_ms(150));
    assert_eq!((wire.data().len(), event_count(&log)), (1, 0));
    wire.sender.handle_full_interface(at_ms(204));
    assert_eq!(event_count(&log), 1);
}

/// Segments from the tail are not in class 0, whose window is reduced.
#[test]
fn a_full_interface_is_not_reported_for_the_tail() {
    let (cc, log, _) = Recorder::around(controller("rc3", &[("initial_window", 4)]));
    let mut wire = Wire::new(with_sack(), cc, lose(&[]));
    (wire.busy, wire.queue_limit) = (Dur::from_ms(2), Some(6));
    wire.write(100);
    wire.run_until(at_ms(150));
    // The window of four segments fits into the queue; most of the tail does not.
    let sent = (wire.sent_at(100).len(), wire.low().len());
    assert!(sent.0 == 4 && (1..96).contains(&sent.1), "{sent:?}");
    assert_eq!(event_count(&log), 0);
}
