//! Explicit congestion notification (RFC 3168).

use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::Dur;
use sparelane_transport::{DelayedAck, Ecn, TransportConfig};

fn with_ecn() -> TransportConfig {
    TransportConfig { ecn: Ecn::Classic, ..with_sack() }
}

/// Marks the first transmission of some segments, and drops that of others.
fn mark_and_lose(marked: &[u64], lost: &[u64]) -> Script {
    let (marked, lost) = (marked.to_vec(), lost.to_vec());
    Box::new(move |sent| match sent.item {
        Item::Data(segment) if sent.earlier == 0 && marked.contains(&segment.seq) => Fate::Marked,
        Item::Data(segment) if sent.earlier == 0 && lost.contains(&segment.seq) => Fate::Lost,
        _ => Fate::Arrive,
    })
}

fn echoes(wire: &Wire) -> usize {
    wire.sent.iter().filter(|sent| matches!(sent.item, Item::Ack(ack) if ack.ecn_echo)).count()
}

#[test]
fn marks_halve_the_window_once_per_window_of_data() {
    let (cc, log, _) = Recorder::around(newreno(10));
    let wire = Wire::transfer(with_ecn(), cc, 100, mark_and_lose(&[2, 5, 6, 9], &[]));
    let log = log.lock().expect("one thread");
    // Two acknowledgments open the window to 12 segments; the third carries the first ECE.
    assert!(matches!(log[..], [(200, Congestion::Marked { by_ecn: true, .. })]), "{log:?}");
    assert!((5 * MSS..8 * MSS).contains(&wire.window_at(250)), "{}", wire.window_at(250));
    assert_eq!(wire.resent(), []);
}

#[test]
fn a_mark_in_the_next_window_halves_it_again() {
    let (cc, log, _) = Recorder::around(newreno(10));
    Wire::transfer(with_ecn(), cc, 100, mark_and_lose(&[2, 40], &[]));
    assert_eq!(log.lock().expect("one thread").len(), 2);
}

#[test]
fn the_first_segment_after_a_reduction_ends_the_echo() {
    let wire = Wire::transfer(with_ecn(), newreno(10), 100, mark_and_lose(&[2], &[]));
    let cwr_segments: Vec<_> = wire.data().into_iter().filter(|(_, segment)| segment.window_reduced).collect();
    assert_eq!(cwr_segments.len(), 1);
    let cwr_seq = cwr_segments[0].1.seq;
    // All segments from the marked one to the last one before CWR.
    assert_eq!(echoes(&wire) as u64, cwr_seq - 2);
}

/// RFC 3168 section 6.1.2: at most one reduction per window of data, for marks and losses together.
#[test]
fn losses_and_marks_in_one_window_reduce_it_once() {
    for (marked, lost) in [(vec![6], vec![2]), (vec![2], vec![6])] {
        let (cc, log, _) = Recorder::around(newreno(10));
        let wire = Wire::transfer(with_ecn(), cc, 60, mark_and_lose(&marked, &lost));
        let log = log.lock().expect("one thread");
        assert_eq!(log.len(), 1, "{marked:?} marked, {lost:?} lost: {log:?}");
        assert_eq!(wire.resent().iter().map(|&(_, seq)| seq).collect::<Vec<_>>(), lost);
        assert_eq!(wire.sender.counts().timeouts, 0);
    }
}

/// RFC 3168 section 6.1.2: a retransmission may be lost, so the first new segment carries CWR.
#[test]
fn cwr_is_set_on_new_data() {
    let wire = Wire::transfer(with_ecn(), newreno(10), 60, mark_and_lose(&[6], &[2]));
    let cwr_segments: Vec<_> = wire.data().into_iter().filter(|(_, segment)| segment.window_reduced).collect();
    assert!(!cwr_segments.is_empty());
    assert!(cwr_segments.iter().all(|(_, segment)| !segment.retransmission), "{cwr_segments:?}");
    assert!(wire.resent().iter().any(|&(ms, _)| ms <= cwr_segments[0].0), "the retransmission is sent first");
}

/// In RC3, marks in low classes do not reach the controller of class 0.
#[test]
fn marks_on_low_priority_segments_reduce_no_window() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.class > 0 => Fate::Marked,
        _ => Fate::Arrive,
    });
    let mut wire = Wire::new(with_ecn(), controller("rc3", &[("initial_window", 4)]), script);
    wire.write(100);
    wire.run();
    assert_eq!(echoes(&wire), 0);
}

/// RFC 3168 section 6.1.2 and RFC 8257 section 3.3: the first new segment after each reduction carries CWR, whatever
/// the reason for the reduction. Retransmissions never carry it.
#[test]
fn every_reduction_sets_cwr_once_on_new_data_for_both_kinds_of_ecn() {
    let cases: [(&[u64], &[u64]); 4] = [(&[2], &[]), (&[], &[6]), (&[2, 40, 70], &[]), (&[6, 60], &[2, 61])];
    for ecn in [Ecn::Classic, Ecn::Dctcp] {
        for (marked, lost) in cases {
            for name in ["newreno", "cubic", "dctcp", "h-tcp"] {
                let (cc, log, _) = Recorder::around(controller(name, &[]));
                let config = TransportConfig { ecn, ..with_sack() };
                let wire = Wire::transfer(config, cc, 200, mark_and_lose(marked, lost));
                let data = wire.data();
                let announced: Vec<_> = data.iter().filter(|(_, segment)| segment.window_reduced).collect();
                let cuts = log.lock().expect("one thread").len();
                let case = format!("{ecn:?}, {name}, marked {marked:?}, lost {lost:?}");
                assert!(cuts > 0 && announced.len() == cuts, "{case}: {cuts} cuts, {announced:?}");
                assert!(announced.iter().all(|(_, it)| !it.retransmission), "{case}: {announced:?}");
            }
        }
    }
}

/// RC3's tail is new data too, but only the head carries CWR.
#[test]
fn low_priority_segments_of_rc3_never_carry_cwr() {
    for ecn in [Ecn::Classic, Ecn::Dctcp] {
        let config = TransportConfig { ecn, ..with_sack() };
        let wire = Wire::transfer(config, controller("rc3", &[]), 2000, mark_and_lose(&[2, 12], &[]));
        let data = wire.data();
        assert!(data.iter().any(|(_, segment)| segment.class > 0));
        let announced: Vec<_> = data.iter().filter(|(_, segment)| segment.window_reduced).collect();
        assert!(!announced.is_empty() && announced.iter().all(|(_, it)| it.class == 0), "{ecn:?}: {announced:?}");
    }
}

#[test]
fn without_ecn_no_segment_carries_cwr() {
    let wire = Wire::transfer(with_sack(), newreno(10), 100, lose(&[6, 40]));
    assert!(!wire.resent().is_empty());
    assert!(wire.data().iter().all(|(_, segment)| !segment.window_reduced));
}

fn with_dctcp(delayed: bool) -> TransportConfig {
    let delayed_ack = delayed.then_some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) });
    TransportConfig { ecn: Ecn::Dctcp, delayed_ack, ..with_sack() }
}

/// Returns the segments cumulatively acknowledged by acknowledgments with `echo` as their ECE flag.
fn covered(wire: &Wire, echo: bool) -> Vec<u64> {
    let mut covered = Vec::new();
    let mut next = 0;
    for sent in &wire.sent {
        if let Item::Ack(ack) = sent.item {
            covered.extend((next..ack.cumulative).filter(|_| ack.ecn_echo == echo));
            next = next.max(ack.cumulative);
        }
    }
    covered
}

/// RFC 8257 section 3.2: the sender learns which bytes were marked, with and without delayed acknowledgments.
#[test]
fn the_echo_covers_exactly_the_segments_that_were_marked() {
    let marked = [3, 4, 5, 11, 20, 22, 23, 40];
    for delayed in [false, true] {
        let (cc, ..) = Recorder::around(constant(7));
        let wire = Wire::transfer(with_dctcp(delayed), cc, 60, mark_and_lose(&marked, &[]));
        assert_eq!(covered(&wire, true), marked, "delayed: {delayed}");
    }
}

#[test]
fn a_lost_segment_leaves_the_marks_of_others_as_they_are() {
    let marked = [3, 4, 5, 11];
    for delayed in [false, true] {
        let (cc, log, _) = Recorder::around(constant(7));
        let wire = Wire::transfer(with_dctcp(delayed), cc, 60, mark_and_lose(&marked, &[8, 20]));
        let echoed = covered(&wire, true);
        // The unmarked retransmission triggers the acknowledgment of the segments above the hole.
        assert_eq!(echoed, [3, 4, 5], "delayed: {delayed}");
        assert!(!log.lock().expect("one thread").is_empty());
        assert_eq!(wire.sender.counts().timeouts, 0);
    }
}

/// RFC 8257 section 3.3: marks reduce the window by alpha / 2 at most once per window, with alpha = 1 at first. Losses
/// halve it.
#[test]
fn dctcp_reduces_the_window_once_per_window_by_the_fraction_of_marks() {
    let dctcp = || controller("dctcp", &[("initial_window", 16), ("initial_ssthresh", 2)]);
    let window_after = |marked: &[u64]| {
        let wire = Wire::transfer(with_dctcp(false), dctcp(), 400, mark_and_lose(marked, &[]));
        (wire.windows[1].1, wire.window_at(250), wire.window_at(1500))
    };
    // Alpha is 1. The window grows with the 15 following acknowledgments, unless they carry marks.
    let (cut, after_one, later_after_one) = window_after(&[0]);
    assert_eq!(cut, 8 * MSS);
    assert!((9 * MSS..10 * MSS).contains(&after_one), "{after_one}");
    let (cut, after_all, _) = window_after(&(0..16).collect::<Vec<_>>());
    assert_eq!((cut, after_all), (8 * MSS, 8 * MSS), "once per window");
    // With one marked segment in 16, or all marked, alpha converges to different values.
    let sparse: Vec<u64> = (0..400).step_by(16).collect();
    let dense: Vec<u64> = (0..400).collect();
    let (.., sparse) = window_after(&sparse);
    let (.., dense) = window_after(&dense);
    assert!(dense <= 3 * MSS && sparse > 5 * MSS && sparse < later_after_one, "{dense} {sparse} {later_after_one}");
}

/// Without marks, the window grows as NewReno's and is reduced only by losses.
#[test]
fn dctcp_without_marks_is_newreno() {
    let rounds = |cc| Wire::transfer(with_dctcp(false), cc, 300, lose(&[40])).windows;
    assert_eq!(rounds(controller("dctcp", &[])), rounds(newreno(10)));
}
