//! RFC 6675's NextSeg, rule by rule, under a constant window, so that only the pipe decides.

use crate::alone::Alone;
use crate::wire::*;

/// Segments 0 to 9 are outstanding under a window of 10; `written` are there in all. Returns the sender after
/// reports of 1, 2 and 3, and what it sent for them.
fn after_three_reports(written: u64) -> (Alone, Vec<u64>) {
    let mut alone = Alone::new(with_sack(), constant(10), written);
    assert_eq!(alone.sends(), (0..10).collect::<Vec<_>>());
    alone.wait(100);
    let mut sent = Vec::new();
    for seq in 1..4 {
        sent.extend(alone.hears(0, seq, &[(1, seq + 1)]));
    }
    (alone, sent)
}

#[test]
fn what_is_lost_goes_before_what_is_new() {
    // Two new ones by limited transmit; then the first hole. Of the pipe of 12, three arrived, one is lost
    // and again on its way: nine are in flight, so that one new segment goes.
    let (alone, sent) = after_three_reports(20);
    assert_eq!(sent, [10, 11, 0, 12]);
    assert_eq!(alone.sender.in_flight_bytes(), 10 * MSS);
}

#[test]
fn every_report_lets_one_segment_go() {
    let (mut alone, _) = after_three_reports(30);
    assert_eq!(alone.hears(0, 4, &[(1, 5)]), [13]);
    // Segment 5 is overtaken by 6 and 7 alone, and then by 8 as well.
    assert_eq!(alone.hears(0, 6, &[(6, 7), (1, 5)]), [14]);
    assert_eq!(alone.hears(0, 7, &[(6, 8), (1, 5)]), [15]);
    assert_eq!(alone.hears(0, 8, &[(6, 9), (1, 5)]), [5, 16]);
    // The repaired first hole brings no second retransmission of either.
    assert_eq!(alone.hears(5, 0, &[(6, 9)]), [17]);
}

/// Rules 3 and 4. Rule 3: above every retransmission and below the highest report.
#[test]
fn without_new_data_the_doubtful_go_and_then_the_last_one_once() {
    let (mut alone, sent) = after_three_reports(10);
    // Segment 0 is lost. Nothing is new, nothing doubtful, and the last segment goes to the rescue.
    assert_eq!(sent, [0, 9]);
    assert_eq!(alone.hears(0, 6, &[(6, 7), (1, 4)]), [4, 5]);
    assert_eq!(alone.hears(0, 7, &[(6, 8), (1, 4)]), []);
    assert_eq!(alone.hears(4, 0, &[(6, 8)]), []);
}

#[test]
fn the_rescue_is_not_of_a_segment_that_is_on_its_way_again() {
    let mut alone = Alone::new(with_sack(), constant(10), 4);
    alone.sends();
    alone.wait(100);
    let mut sent = Vec::new();
    for seq in 1..4 {
        sent.extend(alone.hears(0, seq, &[(1, seq + 1)]));
    }
    assert_eq!(sent, [0]);
}

#[test]
fn a_rescue_is_sent_once_an_episode() {
    let mut alone = Alone::new(with_sack(), constant(20), 12);
    alone.sends();
    alone.wait(100);
    let mut sent = Vec::new();
    for seq in 1..8 {
        sent.extend(alone.hears(0, seq, &[(1, seq + 1)]));
    }
    assert_eq!(sent, [0, 11]);
    // The next episode has its own.
    assert_eq!(alone.hears(12, 11, &[]), []);
    alone.sender.write(8 * MSS);
    assert_eq!(alone.sends(), (12..20).collect::<Vec<_>>());
    alone.wait(100);
    let again: Vec<_> = (13..16).flat_map(|seq| alone.hears(12, seq, &[(13, seq + 1)])).collect();
    assert_eq!(again, [12, 19]);
}

/// The pipe counts what the receiver has not reported and is not lost, and retransmissions.
#[test]
fn the_pipe_is_what_is_in_the_network() {
    let (mut alone, _) = after_three_reports(20);
    let pipe = |alone: &Alone| alone.sender.in_flight_bytes() / MSS;
    assert_eq!(pipe(&alone), 10);
    alone.wait(100);
    alone.hears(4, 0, &[]);
    assert_eq!(pipe(&alone), 10);
    for seq in 4..20 {
        alone.hears(seq + 1, seq, &[]);
    }
    assert_eq!(pipe(&alone), 0);
    assert!(alone.sender.is_done());
}
