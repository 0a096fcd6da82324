//! RFC 6675's NextSeg, rule by rule. The window is constant, so only the pipe limits the sender.

use crate::solo_sender::SoloSender;
use crate::wire::*;

/// Returns a sender after reports of segments 1, 2 and 3, and the segments that it sent in response. The window is 10,
/// segments 0 to 9 are outstanding, and `written` segments are written in total.
fn after_three_reports(written: u64) -> (SoloSender, Vec<u64>) {
    let mut solo = SoloSender::new(with_sack(), constant(10), written);
    assert_eq!(solo.send(), (0..10).collect::<Vec<_>>());
    solo.wait(100);
    let mut sent = Vec::new();
    for seq in 1..4 {
        sent.extend(solo.acknowledge(0, seq, &[(1, seq + 1)]));
    }
    (solo, sent)
}

#[test]
fn lost_segments_are_sent_before_new_ones() {
    // Limited transmit sends 10 and 11, then the first hole is retransmitted. Of the 12 segments sent, three arrived
    // and one is lost and retransmitted. The pipe is 9, so one new segment follows.
    let (solo, sent) = after_three_reports(20);
    assert_eq!(sent, [10, 11, 0, 12]);
    assert_eq!(solo.sender.in_flight_bytes(), 10 * MSS);
}

#[test]
fn every_report_releases_one_segment() {
    let (mut solo, _) = after_three_reports(30);
    assert_eq!(solo.acknowledge(0, 4, &[(1, 5)]), [13]);
    // Segment 5 is overtaken by 6 and 7, and is lost once 8 arrives.
    assert_eq!(solo.acknowledge(0, 6, &[(6, 7), (1, 5)]), [14]);
    assert_eq!(solo.acknowledge(0, 7, &[(6, 8), (1, 5)]), [15]);
    assert_eq!(solo.acknowledge(0, 8, &[(6, 9), (1, 5)]), [5, 16]);
    // The acknowledgment of the first hole causes no second retransmission.
    assert_eq!(solo.acknowledge(5, 0, &[(6, 9)]), [17]);
}

/// Rule 3 selects segments above all retransmissions and below the highest report; rule 4 is the rescue retransmission.
#[test]
fn without_new_data_rules_3_and_4_apply() {
    let (mut solo, sent) = after_three_reports(10);
    // Segment 0 is lost. Rules 2 and 3 select nothing, so rule 4 selects the last segment.
    assert_eq!(sent, [0, 9]);
    assert_eq!(solo.acknowledge(0, 6, &[(6, 7), (1, 4)]), [4, 5]);
    assert_eq!(solo.acknowledge(0, 7, &[(6, 8), (1, 4)]), []);
    assert_eq!(solo.acknowledge(4, 0, &[(6, 8)]), []);
}

#[test]
fn a_segment_whose_retransmission_is_in_flight_is_not_rescued() {
    let mut solo = SoloSender::new(with_sack(), constant(10), 4);
    solo.send();
    solo.wait(100);
    let mut sent = Vec::new();
    for seq in 1..4 {
        sent.extend(solo.acknowledge(0, seq, &[(1, seq + 1)]));
    }
    assert_eq!(sent, [0]);
}

#[test]
fn a_rescue_is_sent_once_per_recovery() {
    let mut solo = SoloSender::new(with_sack(), constant(20), 12);
    solo.send();
    solo.wait(100);
    let mut sent = Vec::new();
    for seq in 1..8 {
        sent.extend(solo.acknowledge(0, seq, &[(1, seq + 1)]));
    }
    assert_eq!(sent, [0, 11]);
    // The next recovery has its own rescue.
    assert_eq!(solo.acknowledge(12, 11, &[]), []);
    solo.sender.write(8 * MSS);
    assert_eq!(solo.send(), (12..20).collect::<Vec<_>>());
    solo.wait(100);
    let again: Vec<_> = (13..16).flat_map(|seq| solo.acknowledge(12, seq, &[(13, seq + 1)])).collect();
    assert_eq!(again, [12, 19]);
}

/// The pipe counts segments that are neither reported nor lost, and retransmissions.
#[test]
fn the_pipe_is_the_number_of_segments_in_the_network() {
    let (mut solo, _) = after_three_reports(20);
    let pipe = |solo: &SoloSender| solo.sender.in_flight_bytes() / MSS;
    assert_eq!(pipe(&solo), 10);
    solo.wait(100);
    solo.acknowledge(4, 0, &[]);
    assert_eq!(pipe(&solo), 10);
    for seq in 4..20 {
        solo.acknowledge(seq + 1, seq, &[]);
    }
    assert_eq!(pipe(&solo), 0);
    assert!(solo.sender.is_done());
}
