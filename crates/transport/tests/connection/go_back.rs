//! Go-back-N: the receiver drops segments out of order, and the sender repeats everything from the missing one on.

use crate::wire::*;
use sparelane_cc::Congestion;
use sparelane_transport::TransportConfig;

fn going_back() -> TransportConfig {
    TransportConfig { handshake: false, ..with_sack() }
}

/// The fourth of ten segments is lost. The first three acknowledgments release three more, and the next one shows the loss.
#[test]
fn the_first_dropped_segment_makes_the_sender_repeat_everything_from_the_missing_one() {
    let (cc, log, _) = Recorder::around(constant(10));
    let wire = Wire::transfer(going_back(), cc, 30, lose(&[3]));
    assert_eq!(wire.resent(), (3..13).map(|seq| (200, seq)).collect::<Vec<_>>());
    assert_eq!(*log.lock().expect("one thread"), [(200, Congestion::Loss { flight_bytes: 10 * MSS })]);
    // Segments 4 to 12 were dropped, once each.
    assert_eq!((wire.receiver.refused(), wire.receiver.next_expected()), (9, 30));
    assert!(wire.receiver.sack_blocks().is_empty());
    assert_eq!(wire.sender.counts().timeouts, 0);
}

/// The repeated segment is lost, too. The next repeated one shows it, a round trip later.
#[test]
fn a_lost_repetition_makes_the_sender_go_back_again() {
    let wire = Wire::transfer(going_back(), constant(10), 30, lose(&[3, 3]));
    let again = |at| (3..13).map(move |seq| (at, seq));
    assert_eq!(wire.resent(), again(200).chain(again(300)).collect::<Vec<_>>());
    assert_eq!((wire.receiver.next_expected(), wire.sender.counts().timeouts), (30, 0));
}

/// The last segment has no later one that would be dropped, so only the timer repeats it.
#[test]
fn the_loss_of_the_last_segment_is_repaired_by_the_timer() {
    let wire = Wire::transfer(going_back(), constant(10), 30, lose(&[29]));
    assert_eq!(wire.resent().iter().map(|&(_, seq)| seq).collect::<Vec<_>>(), [29]);
    assert_eq!((wire.receiver.next_expected(), wire.sender.counts().timeouts), (30, 1));
}

/// With the repair of TCP, the same loss costs one segment.
#[test]
fn selective_repair_repeats_the_missing_segment_alone() {
    let config = TransportConfig { rdma_recovery: sparelane_transport::RdmaRecovery::Selective, ..going_back() };
    let wire = Wire::transfer(config, constant(10), 30, lose(&[3]));
    assert_eq!(wire.resent(), [(200, 3)]);
}
