//! Explicit congestion notification (RFC 3168).

use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_core::Dur;
use sparelane_transport::{DelayedAck, Ecn, TransportConfig};

fn with_ecn() -> TransportConfig {
    TransportConfig { ecn: Ecn::Classic, ..with_sack() }
}

/// Marks the first transmission of these segments, and loses that of others.
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
fn marks_halve_the_window_once_a_window_of_data() {
    let (cc, log, _) = Noting::around(newreno(10));
    let wire = Wire::transfer(with_ecn(), cc, 100, mark_and_lose(&[2, 5, 6, 9], &[]));
    let log = log.lock().expect("one thread");
    // Two acknowledgments opened the window to 12; the third has the first mark.
    assert!(matches!(log[..], [(200, Congestion::Marked { .. })]), "{log:?}");
    assert!((5 * MSS..8 * MSS).contains(&wire.window_at(250)), "{}", wire.window_at(250));
    assert_eq!(wire.resent(), []);
}

#[test]
fn a_mark_in_the_next_window_halves_it_again() {
    let (cc, log, _) = Noting::around(newreno(10));
    Wire::transfer(with_ecn(), cc, 100, mark_and_lose(&[2, 40], &[]));
    assert_eq!(log.lock().expect("one thread").len(), 2);
}

#[test]
fn the_first_segment_after_a_cut_stops_the_echo() {
    let wire = Wire::transfer(with_ecn(), newreno(10), 100, mark_and_lose(&[2], &[]));
    let answers: Vec<_> = wire.data().into_iter().filter(|(_, segment)| segment.window_reduced).collect();
    assert_eq!(answers.len(), 1);
    let answered = answers[0].1.seq;
    // From the marked segment to the one before the answer.
    assert_eq!(echoes(&wire) as u64, answered - 2);
}

/// RFC 3168 section 6.1.2: at most one reaction to a window of data, whether it was marked, lost or both.
#[test]
fn losses_and_marks_in_one_window_cut_it_once() {
    for (marked, lost) in [(vec![6], vec![2]), (vec![2], vec![6])] {
        let (cc, log, _) = Noting::around(newreno(10));
        let wire = Wire::transfer(with_ecn(), cc, 60, mark_and_lose(&marked, &lost));
        let log = log.lock().expect("one thread");
        assert_eq!(log.len(), 1, "{marked:?} marked, {lost:?} lost: {log:?}");
        assert_eq!(wire.resent().iter().map(|&(_, seq)| seq).collect::<Vec<_>>(), lost);
        assert_eq!(wire.sender.counts().timeouts, 0);
    }
}

/// RFC 3168 section 6.1.2: what is sent again may be lost again, so the answer goes with the first new data.
#[test]
fn the_answer_to_a_mark_goes_with_new_data() {
    let wire = Wire::transfer(with_ecn(), newreno(10), 60, mark_and_lose(&[6], &[2]));
    let answers: Vec<_> = wire.data().into_iter().filter(|(_, segment)| segment.window_reduced).collect();
    assert!(!answers.is_empty());
    assert!(answers.iter().all(|(_, segment)| !segment.retransmission), "{answers:?}");
    assert!(wire.resent().iter().any(|&(ms, _)| ms <= answers[0].0), "the retransmission goes first");
}

/// RC3 lets only class 0 speak to the controller of class 0.
#[test]
fn marks_on_low_priority_segments_cut_nothing() {
    let script: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.class > 0 => Fate::Marked,
        _ => Fate::Arrive,
    });
    let mut wire = Wire::new(with_ecn(), controller("rc3", &[("initial_window", 4)]), script);
    wire.write(100);
    wire.run();
    assert_eq!(echoes(&wire), 0);
}

/// RFC 3168 section 6.1.2, and RFC 8257 section 3.3: the first new segment after each cut carries CWR, whatever the reason for
/// the cut, and no retransmission carries it.
#[test]
fn every_cut_is_announced_once_with_new_data_under_either_kind_of_ecn() {
    let cases: [(&[u64], &[u64]); 4] = [(&[2], &[]), (&[], &[6]), (&[2, 40, 70], &[]), (&[6, 60], &[2, 61])];
    for ecn in [Ecn::Classic, Ecn::Dctcp] {
        for (marked, lost) in cases {
            for name in ["newreno", "cubic", "dctcp", "h-tcp"] {
                let (cc, log, _) = Noting::around(controller(name, &[]));
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

/// RC3's tail is new data of low priority: a cut of the head is announced by the head alone.
#[test]
fn what_rc3_sends_at_low_priority_announces_no_cut() {
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
fn without_ecn_no_cut_is_announced() {
    let wire = Wire::transfer(with_sack(), newreno(10), 100, lose(&[6, 40]));
    assert!(!wire.resent().is_empty());
    assert!(wire.data().iter().all(|(_, segment)| !segment.window_reduced));
}

fn with_dctcp(delayed: bool) -> TransportConfig {
    let delayed_ack = delayed.then_some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) });
    TransportConfig { ecn: Ecn::Dctcp, delayed_ack, ..with_sack() }
}

/// The segments that acknowledgments with this echo cover in sequence.
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

/// RFC 8257 section 3.2: with delayed acknowledgments and without, the sender learns which bytes were marked.
#[test]
fn the_echo_covers_exactly_the_segments_that_were_marked() {
    let marked = [3, 4, 5, 11, 20, 22, 23, 40];
    for delayed in [false, true] {
        let (cc, ..) = Noting::around(constant(7));
        let wire = Wire::transfer(with_dctcp(delayed), cc, 60, mark_and_lose(&marked, &[]));
        assert_eq!(covered(&wire, true), marked, "delayed: {delayed}");
    }
}

#[test]
fn a_lost_segment_leaves_the_marks_of_others_as_they_are() {
    let marked = [3, 4, 5, 11];
    for delayed in [false, true] {
        let (cc, log, _) = Noting::around(constant(7));
        let wire = Wire::transfer(with_dctcp(delayed), cc, 60, mark_and_lose(&marked, &[8, 20]));
        let echoed = covered(&wire, true);
        // What the hole held back is covered by the acknowledgment of the retransmission, which is not marked.
        assert_eq!(echoed, [3, 4, 5], "delayed: {delayed}");
        assert!(!log.lock().expect("one thread").is_empty());
        assert_eq!(wire.sender.counts().timeouts, 0);
    }
}

/// RFC 8257 section 3.3: a cut by half of alpha, 1 at first, at most once per window; losses halve.
#[test]
fn dctcp_cuts_once_a_window_by_the_share_of_marks() {
    let dctcp = || controller("dctcp", &[("initial_window", 16), ("initial_ssthresh", 2)]);
    let window_after = |marked: &[u64]| {
        let wire = Wire::transfer(with_dctcp(false), dctcp(), 400, mark_and_lose(marked, &[]));
        (wire.windows[1].1, wire.window_at(250), wire.window_at(1500))
    };
    // Alpha is 1, and the 15 acknowledgments that follow let the window grow, where they bring no marks themselves.
    let (cut, after_one, later_after_one) = window_after(&[0]);
    assert_eq!(cut, 8 * MSS);
    assert!((9 * MSS..10 * MSS).contains(&after_one), "{after_one}");
    let (cut, after_all, _) = window_after(&(0..16).collect::<Vec<_>>());
    assert_eq!((cut, after_all), (8 * MSS, 8 * MSS), "once a window");
    // Marks in every window, one segment in 16 or all: alpha comes to differ.
    let sparse: Vec<u64> = (0..400).step_by(16).collect();
    let dense: Vec<u64> = (0..400).collect();
    let (.., sparse) = window_after(&sparse);
    let (.., dense) = window_after(&dense);
    assert!(dense <= 3 * MSS && sparse > 5 * MSS && sparse < later_after_one, "{dense} {sparse} {later_after_one}");
}

/// Unmarked acknowledgments grow the window as NewReno's, and none is cut without news.
#[test]
fn dctcp_without_marks_is_newreno() {
    let rounds = |cc| Wire::transfer(with_dctcp(false), cc, 300, lose(&[40])).windows;
    assert_eq!(rounds(controller("dctcp", &[])), rounds(newreno(10)));
}
