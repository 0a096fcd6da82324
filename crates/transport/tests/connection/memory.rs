//! The memory that a connection reports.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_cc::CongestionControl;
use sparelane_core::Dur;
use sparelane_transport::TransportConfig;

/// Returns the memory in bytes before and after the first window of 400 segments is sent.
fn first_window(config: TransportConfig, cc: Box<dyn CongestionControl>) -> (usize, usize) {
    let mut solo = SoloSender::new(config, cc, 400);
    let before = solo.sender.memory_bytes();
    let mut sent = solo.send().len();
    // Pacing spreads the window over a round trip.
    for _ in 0..100 {
        solo.wait(1);
        sent += solo.send().len();
    }
    assert_eq!(sent, 400);
    (before, solo.sender.memory_bytes())
}

#[test]
fn the_state_of_segments_in_flight_counts() {
    let (before, after) = first_window(with_sack(), constant(400));
    let grown = after - before;
    assert!((400 * 8..400 * 40).contains(&grown), "a send time per segment: {grown} bytes");
    let catches_up = TransportConfig { pacing_catch_up: Dur::from_ms(10), ..with_sack() };
    let (_, with_books) = first_window(catches_up, controller("bbr", &[("initial_window", 400)]));
    assert!(with_books > after + 400 * 16, "with delivery rate state: {with_books} bytes, without: {after}");
}

#[test]
fn only_connections_with_losses_have_state_for_losses() {
    let memory = |wire: &Wire| (wire.sender.memory_bytes(), wire.receiver.memory_bytes());
    let new = memory(&Wire::new(with_sack(), constant(16), lose(&[])));
    let without = Wire::transfer(with_sack(), constant(16), 400, lose(&[]));
    assert_eq!(without.receiver.held_bytes(), 400 * MSS);
    assert_eq!(memory(&without), new);
    // The bits of 256 segments and a report at the sender, and the blocks at the receiver.
    let with = memory(&Wire::transfer(with_sack(), constant(16), 400, lose(&[5])));
    assert!(with.0 > new.0 + 192 + 64 && with.1 > new.1 + 64, "{with:?}, new: {new:?}");
}

#[test]
fn the_state_of_losses_counts() {
    let mut solo = SoloSender::new(with_sack(), constant(4000), 4000);
    assert_eq!(solo.send().len(), 4000);
    let before = solo.sender.memory_bytes();
    solo.wait(100);
    let resent = solo.acknowledge(0, 3999, &[(3990, 4000)]);
    assert_eq!(resent.len(), 3990);
    let grown = solo.sender.memory_bytes() - before;
    assert!(grown > 4000 * 6 / 8 + 3990 * 8, "six bits and a retransmission time per segment: {grown} bytes");
    assert!(grown < 4000 * 64, "{grown} bytes");
}

#[test]
fn the_list_of_writes_counts() {
    let mut solo = SoloSender::new(with_sack(), constant(1), 1);
    let before = solo.sender.memory_bytes();
    for bytes in 0..1000 {
        solo.sender.write(100 + bytes % 7);
    }
    let grown = solo.sender.memory_bytes() - before;
    assert!(grown >= 1000 * 8, "{grown} bytes");
}

#[test]
fn a_scheduler_below_the_connection_counts() {
    let mut solo = SoloSender::new(with_sack(), controller("rapid", &[]), 400);
    solo.send();
    let plain = SoloSender::new(with_sack(), controller("newreno", &[]), 400).sender.memory_bytes();
    assert!(solo.sender.memory_bytes() > plain + 400, "{} bytes, NewReno: {plain}", solo.sender.memory_bytes());
}
