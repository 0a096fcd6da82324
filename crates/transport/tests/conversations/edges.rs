//! The edges of what can be counted, and answers that no receiver gives.

use crate::alone::Alone;
use crate::wire::*;
use std::collections::BTreeSet;

/// Segment numbers have 32 bits and never wrap: 4,294,967,295 segments are the end of any stream.
#[test]
fn the_last_segments_of_the_number_space_are_sent_repaired_and_acknowledged() {
    let mut alone = Alone::new(with_sack(), controller("rc3", &[("initial_window", 8)]), 0);
    alone.sender.write_without_end();
    assert_eq!(alone.sends(), (0..8).collect::<Vec<_>>());
    alone.wait(100);
    // A bump to near the end, as if the tail had brought all below.
    let mut cumulative = u64::MAX - 40;
    let mut sent = alone.hears(cumulative, 7, &[]);
    let mut lost = vec![cumulative + 2, u64::MAX - 5];
    let mut held = BTreeSet::new();
    while !sent.is_empty() {
        alone.wait(100);
        let mut next = Vec::new();
        for seq in sent {
            assert!(seq < u64::MAX);
            if let Some(at) = lost.iter().position(|&lost| lost == seq) {
                lost.swap_remove(at);
                continue;
            }
            held.insert(seq);
            while held.contains(&cumulative) {
                cumulative += 1;
            }
            let blocks: Vec<_> = held.range(cumulative..).map(|&seq| (seq, seq + 1)).collect();
            next.extend(alone.hears(cumulative, seq, &blocks[blocks.len().saturating_sub(4)..]));
        }
        sent = next;
        if sent.is_empty() && cumulative < u64::MAX {
            alone.now = alone.sender.next_timer();
            alone.sender.handle_timer(alone.now);
            sent = alone.sends();
        }
    }
    assert_eq!(cumulative, u64::MAX);
    assert!(alone.sender.is_done());
}

/// RFC 9293 section 3.10.7.4: an acknowledgment of what was not sent is no news.
#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut alone = Alone::new(with_sack(), constant(4), 100);
    assert_eq!(alone.sends(), [0, 1, 2, 3]);
    alone.wait(100);
    assert_eq!(alone.hears(50, 3, &[]), []);
    assert_eq!(alone.hears(0, 3, &[(60, 70), (4_000_000_000, 4_000_000_010)]), []);
    assert_eq!(alone.sender.in_flight_bytes(), 4 * MSS);
    assert_eq!(alone.hears(1, 0, &[]), [4]);
    assert_eq!(alone.sender.counts().retransmissions, 0);
}

#[test]
fn an_acknowledgment_overtaken_by_a_later_one_is_no_duplicate() {
    let mut alone = Alone::new(without_sack(), constant(8), 100);
    alone.sends();
    alone.wait(100);
    assert_eq!(alone.hears(4, 3, &[]), [8, 9, 10, 11]);
    for late in 1..4 {
        assert_eq!(alone.hears(late, late - 1, &[]), []);
    }
    assert_eq!(alone.sender.counts().retransmissions, 0);
}

#[test]
fn a_write_of_nothing_is_done_at_once() {
    let wire = Wire::transfer(with_sack(), newreno(4), 0, lose(&[]));
    assert!(wire.sender.is_done());
}

/// Every byte delivered is reported to the controller once.
#[test]
fn delivered_bytes_add_up_to_what_was_sent() {
    for (config, lost) in [(with_sack(), vec![3, 8, 9, 8]), (without_sack(), vec![3]), (with_sack(), vec![])] {
        let (cc, _, delivered_bytes) = Noting::around(newreno(10));
        Wire::transfer(config, cc, 100, lose(&lost));
        assert_eq!(*delivered_bytes.lock().expect("one thread"), 100 * MSS);
    }
}
