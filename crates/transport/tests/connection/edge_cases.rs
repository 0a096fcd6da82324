//! Edge cases: wraps of sequence numbers, and acknowledgments that no receiver sends.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_transport::AckError;

/// Packets carry the low 32 bits of sequence numbers, and both ends track 64 bits. A wrap of the low bits changes
/// nothing.
#[test]
fn a_wrap_of_the_low_bits_changes_nothing() {
    let transfer = |first: u64| {
        let lost: Vec<u64> = [3, 8, 9, 8, 30].iter().map(|seq| first + seq).collect();
        let mut wire = Wire::new(with_sack(), controller("rc3", &[("initial_window", 8)]), lose(&lost));
        wire.sender.set_initial_seq(first);
        wire.receiver.set_initial_seq(first);
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

/// RFC 9293 section 3.10.7.4: an acknowledgment of segments that were never sent has no effect.
#[test]
fn segments_that_were_never_sent_cannot_be_acknowledged() {
    let mut solo = SoloSender::new(with_sack(), constant(4), 100);
    assert_eq!(solo.send(), [0, 1, 2, 3]);
    solo.wait(100);
    assert_eq!(solo.try_acknowledge(0, 50, 3, &[]), Err(AckError::NeverSent { cumulative: 50, sent: 4 }));
    let beyond = [(2, 3), (4_000_000_000, 4_000_000_010)];
    assert!(matches!(solo.try_acknowledge(0, 0, 3, &beyond), Err(AckError::Block { start: 4_000_000_000, .. })));
    assert_eq!(solo.try_acknowledge(0, 0, 70, &[]), Err(AckError::TriggerNeverSent { trigger: 70, sent: 4 }));
    assert_eq!(solo.try_acknowledge(1, 0, 3, &[]), Err(AckError::Class { class: 1 }));
    assert_eq!(solo.try_acknowledge(0, 0, 3, &[(1, 2); 9]), Err(AckError::TooManyBlocks { count: 9 }));
    assert_eq!(solo.send(), []);
    assert_eq!(solo.sender.in_flight_bytes(), 4 * MSS);
    assert_eq!(solo.acknowledge(1, 0, &[]), [4]);
    assert_eq!(solo.sender.counts().retransmissions, 0);
}

#[test]
fn an_acknowledgment_overtaken_by_a_later_one_is_no_duplicate() {
    let mut solo = SoloSender::new(without_sack(), constant(8), 100);
    solo.send();
    solo.wait(100);
    assert_eq!(solo.acknowledge(4, 3, &[]), [8, 9, 10, 11]);
    for late in 1..4 {
        assert_eq!(solo.acknowledge(late, late - 1, &[]), []);
    }
    assert_eq!(solo.sender.counts().retransmissions, 0);
}

#[test]
fn an_empty_write_is_complete_immediately() {
    let wire = Wire::transfer(with_sack(), newreno(4), 0, lose(&[]));
    assert!(wire.sender.is_done());
}

/// The controller learns of every delivered byte once.
#[test]
fn delivered_bytes_add_up_to_the_bytes_sent() {
    for (config, lost) in [(with_sack(), vec![3, 8, 9, 8]), (without_sack(), vec![3]), (with_sack(), vec![])] {
        let (cc, _, delivered_bytes) = Recorder::around(newreno(10));
        Wire::transfer(config, cc, 100, lose(&lost));
        assert_eq!(*delivered_bytes.lock().expect("one thread"), 100 * MSS);
    }
}
