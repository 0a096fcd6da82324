//! The memory that a connection says it takes.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_cc::CongestionControl;
use sparelane_core::Dur;
use sparelane_transport::TransportConfig;

/// Memory before and after the first window of so many segments is sent, bytes.
fn first_window(config: TransportConfig, cc: Box<dyn CongestionControl>) -> (usize, usize) {
    let mut alone = Alone::new(config, cc, 400);
    let before = alone.sender.memory_bytes();
    let mut sent = alone.sends().len();
    // A pace lets it go within a round trip.
    for _ in 0..100 {
        alone.wait(1);
        sent += alone.sends().len();
    }
    assert_eq!(sent, 400);
    (before, alone.sender.memory_bytes())
}

#[test]
fn what_is_kept_of_segments_in_flight_counts() {
    let (before, after) = first_window(with_sack(), constant(400));
    let grown = after - before;
    assert!((400 * 8..400 * 40).contains(&grown), "the time of each: {grown} bytes");
    let catches_up = TransportConfig { pacing_catch_up: Dur::from_ms(10), ..with_sack() };
    let (_, with_books) = first_window(catches_up, controller("bbr", &[("initial_window", 400)]));
    assert!(with_books > after + 400 * 16, "and with books of deliveries more: {with_books} for {after} bytes");
}

#[test]
fn what_is_kept_of_losses_counts() {
    let mut alone = Alone::new(with_sack(), constant(4000), 4000);
    assert_eq!(alone.sends().len(), 4000);
    let before = alone.sender.memory_bytes();
    alone.wait(100);
    let resent = alone.hears(0, 3999, &[(3990, 4000)]);
    assert_eq!(resent.len(), 3990);
    let grown = alone.sender.memory_bytes() - before;
    assert!(grown > 4000 * 6 / 8 + 3990 * 8, "six bits of each, and when it went again: {grown} bytes");
    assert!(grown < 4000 * 64, "{grown} bytes");
}

#[test]
fn what_is_kept_of_writes_counts() {
    let mut alone = Alone::new(with_sack(), constant(1), 1);
    let before = alone.sender.memory_bytes();
    for bytes in 0..1000 {
        alone.sender.write(100 + bytes % 7);
    }
    let grown = alone.sender.memory_bytes() - before;
    assert!(grown >= 1000 * 8, "{grown} bytes");
}

#[test]
fn a_scheduler_below_the_connection_counts() {
    let mut alone = Alone::new(with_sack(), controller("rapid", &[]), 400);
    alone.sends();
    let plain = Alone::new(with_sack(), controller("newreno", &[]), 400).sender.memory_bytes();
    assert!(alone.sender.memory_bytes() > plain + 400, "{} for {plain} bytes", alone.sender.memory_bytes());
}
