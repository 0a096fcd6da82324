//! The window of a connection that sends again after it was idle (RFC 5681 section 4.1).

use crate::wire::*;
use sparelane_cc::RestartRule;
use sparelane_transport::TransportConfig;

/// The window after 60 segments in slow start from 4: the last acknowledgments find no data that waits for the window.
const WINDOW: usize = 33;

/// Returns the number of segments that leave at once when the application writes at `ms`. The connection has an initial
/// window of 4 and an RTO of 200 ms. It sent its last segments at 400 ms, and all were acknowledged at 500 ms.
fn burst_at(config: TransportConfig, ms: u64) -> usize {
    let mut wire = Wire::transfer(config, newreno(4), 60, lose(&[]));
    assert_eq!(to_ms(wire.now), 500);
    wire.run_until(at_ms(ms));
    wire.write(100);
    wire.sent_at(ms).len()
}

fn with(rule: Option<RestartRule>) -> TransportConfig {
    TransportConfig { restart_after_idle: rule, ..with_sack() }
}

#[test]
fn the_window_restarts_after_more_than_a_timeout_without_sending() {
    let bursts = |rule| [600, 601, 801, 1401, 60_000].map(|ms| burst_at(with(rule), ms));
    assert_eq!(bursts(None), [WINDOW; 5]);
    assert_eq!(bursts(Some(RestartRule::Rfc5681)), [WINDOW, 4, 4, 4, 4]);
    assert_eq!(bursts(Some(RestartRule::Linux)), [WINDOW, 16, 8, 4, 4]);
}

/// Off the fast path, the time of the last transmission comes from another place.
#[test]
fn it_restarts_off_the_fast_path_too() {
    let bursts = |rule| {
        let config = TransportConfig { nagle: true, ..with(Some(rule)) };
        [600, 601, 801].map(|ms| burst_at(config, ms))
    };
    let [kept, halved, quarter] = bursts(RestartRule::Linux);
    assert!(kept > 30, "{kept}");
    assert_eq!([halved, quarter], [kept / 2, kept / 4]);
    assert_eq!(bursts(RestartRule::Rfc5681), [kept, 4, 4]);
}

/// A retransmission is a transmission. The last segment is lost at 400 ms, and repaired after the timeout.
#[test]
fn idleness_begins_with_the_last_transmission_of_any_kind() {
    let config = with(Some(RestartRule::Rfc5681));
    let mut wire = Wire::transfer(config, newreno(4), 60, lose(&[59]));
    let repaired = wire.resent().last().map(|&(ms, _)| ms).expect("a retransmission");
    assert!(repaired >= 600, "{repaired}");
    let timeout_is_over = to_ms(wire.now) + 190;
    wire.run_until(at_ms(timeout_is_over - 100));
    let before = wire.sender.controller().limits().cwnd_bytes;
    wire.write(100);
    assert_eq!(wire.sender.controller().limits().cwnd_bytes, before, "less than a timeout since the repair");
}

/// Data in flight is not idleness: RFC 5681 restarts a connection that has received all acknowledgments.
#[test]
fn a_write_while_data_is_in_flight_does_not_restart() {
    let mut config = with(Some(RestartRule::Rfc5681));
    config.rto.min = sparelane_core::Dur::from_ms(10);
    let mut wire = Wire::transfer(config, newreno(4), 60, lose(&[]));
    wire.write(10);
    let ms = to_ms(wire.now);
    wire.run_until(at_ms(ms + 50));
    wire.write(100);
    assert_eq!(wire.sent_at(ms + 50).len(), WINDOW - 10, "the rest of the window");
}

/// The low priorities send the rest of the burst in any case: the paper's flows that resume after idleness.
#[test]
fn inside_rc3_only_the_head_restarts() {
    for rule in [None, Some(RestartRule::Rfc5681)] {
        let inner = controller("rc3", &[("initial_window", 4)]);
        let mut wire = Wire::transfer(with(rule), inner, 60, lose(&[]));
        wire.run_until(at_ms(5000));
        let before = wire.sender.controller().limits().cwnd_bytes / MSS;
        assert!(before > 4, "{before}");
        wire.write(100);
        let sent: Vec<_> = wire.data().into_iter().filter(|(ms, _)| *ms == 5000).collect();
        let in_class0 = sent.iter().filter(|(_, segment)| segment.class == 0).count() as u64;
        assert_eq!((in_class0, sent.len()), (if rule.is_none() { before } else { 4 }, 100), "{rule:?}");
    }
}

#[test]
fn controllers_that_pace_keep_their_window() {
    let mut wire = Wire::transfer(with(Some(RestartRule::Rfc5681)), controller("bbr", &[]), 60, lose(&[]));
    let before = wire.sender.controller().limits();
    let ms = to_ms(wire.now) + 5000;
    wire.run_until(at_ms(ms));
    wire.write(100);
    assert_eq!(wire.sender.controller().limits().cwnd_bytes, before.cwnd_bytes);
}
