//! The edges of what can be counted, and answers that no receiver gives.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_transport::AckError;

/// Packets carry 32 bits of a segment's number, both ends know 64: nothing changes where the low bits begin anew.
#[test]
fn a_transfer_across_the_end_of_the_low_bits_goes_as_any_other() {
    let transfer = |first: u64| {
        let lost: Vec<u64> = [3, 8, 9, 8, 30].iter().map(|seq| first + seq).collect();
        let mut wire = Wire::new(with_sack(), controller("rc3", &[("initial_window", 8)]), lose(&lost));
        wire.sender.begin_at(first);
        wire.receiver.begin_at(first);
        wire.write(60);
        wire.run();
        assert!(wire.sender.is_done());
        (wire.now, wire.sender.counts(), wire.receiver.next_expected() - first)
    };
    let usual = transfer(0);
    assert_eq!((usual.2, usual.1.timeouts), (60, 0));
    for first in [(1 << 32) - 20, (1 << 32) - 5, (3 << 32) - 1] {
        assert_eq!(transfer(first), usual, "from segment {first}");
    }
}

/// RFC 9293 section 3.10.7.4: an acknowledgment of what was not sent is no news.
#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let mut alone = Alone::new(with_sack(), constant(4), 100);
    assert_eq!(alone.sends(), [0, 1, 2, 3]);
    alone.wait(100);
    assert_eq!(alone.is_told(0, 50, 3, &[]), Err(AckError::NeverSent { cumulative: 50, sent: 4 }));
    let beyond = [(2, 3), (4_000_000_000, 4_000_000_010)];
    assert!(matches!(alone.is_told(0, 0, 3, &beyond), Err(AckError::Block { start: 4_000_000_000, .. })));
    assert_eq!(alone.is_told(0, 0, 70, &[]), Err(AckError::TriggerNeverSent { trigger: 70, sent: 4 }));
    assert_eq!(alone.is_told(1, 0, 3, &[]), Err(AckError::Class { class: 1 }));
    assert_eq!(alone.is_told(0, 0, 3, &[(1, 2); 9]), Err(AckError::TooManyBlocks { count: 9 }));
    assert_eq!(alone.sends(), []);
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
