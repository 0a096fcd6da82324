//! How the window opens, and what binds beside it.

use crate::wire::*;
use sparelane_core::Dur;
use sparelane_transport::{DelayedAck, TransportConfig};

#[test]
fn slow_start_doubles_the_window_every_round() {
    let wire = Wire::transfer(with_sack(), newreno(2), 62, lose(&[]));
    assert_eq!(wire.rounds(), [2, 4, 8, 16, 32]);
}

#[test]
fn slow_start_ends_at_the_threshold() {
    let cc = controller("newreno", &[("initial_window", 2), ("initial_ssthresh", 7)]);
    let wire = Wire::transfer(with_sack(), cc, 40, lose(&[]));
    assert_eq!(wire.rounds()[..4], [2, 4, 7, 8]);
}

/// RFC 5681 section 3.1.
#[test]
fn congestion_avoidance_adds_one_segment_a_round() {
    let cc = controller("newreno", &[("initial_window", 8), ("initial_ssthresh", 8)]);
    let wire = Wire::transfer(with_sack(), cc, 1000, lose(&[]));
    let rounds = wire.rounds();
    assert!(rounds[..30].windows(2).all(|pair| pair[1] == pair[0] || pair[1] == pair[0] + 1), "{rounds:?}");
    assert!((36..=38).contains(&rounds[30]), "{rounds:?}");
}

#[test]
fn the_window_does_not_grow_while_the_application_is_the_limit() {
    let mut wire = Wire::new(with_sack(), newreno(10), lose(&[]));
    for _ in 0..20 {
        wire.write(5);
        wire.run();
    }
    assert_eq!(wire.windows.last().map(|&(_, window)| window), Some(10 * MSS));
}

#[test]
fn the_window_does_not_grow_while_the_receive_window_is_the_limit() {
    for sack in [true, false] {
        let config = TransportConfig { sack, receive_window_bytes: Some(6 * MSS), ..with_sack() };
        let wire = Wire::transfer(config, newreno(4), 100, lose(&[]));
        assert!(wire.rounds()[1..16].iter().all(|&sent| sent == 6), "{:?}", wire.rounds());
        let window = wire.windows.last().map_or(0, |&(_, window)| window);
        assert!(window <= 8 * MSS, "{window} bytes");
    }
}

#[test]
fn the_send_buffer_binds() {
    let config = TransportConfig { send_buffer_bytes: Some(6 * MSS), ..with_sack() };
    let wire = Wire::transfer(config, newreno(100), 60, lose(&[]));
    assert!(wire.rounds().iter().all(|&sent| sent <= 6), "{:?}", wire.rounds());
}

#[test]
fn a_bounded_send_buffer_takes_a_second_write_after_the_first_is_acknowledged() {
    for name in ["newreno", "rc3"] {
        let config = TransportConfig { send_buffer_bytes: Some(6 * MSS), ..with_sack() };
        let mut wire = Wire::new(config, controller(name, &[]), lose(&[]));
        for _ in 0..3 {
            wire.write(6);
            wire.run();
        }
        assert_eq!(wire.receiver.held_bytes(), 18 * MSS);
    }
}

#[test]
fn a_receiver_acknowledges_every_second_segment_and_a_lone_one_after_the_timeout() {
    let delayed_ack = Some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) });
    let wire = Wire::transfer(TransportConfig { delayed_ack, ..with_sack() }, newreno(5), 5, lose(&[]));
    assert_eq!(wire.times_ms(|item| matches!(item, Item::Ack(_))), [150, 150, 190]);
    // What the timeout adds is not part of the path, but it is of the sample.
    assert_eq!(wire.sender.srtt(), Some(Dur::from_ms(105)));
}

/// RFC 3465: an acknowledgment counts for one segment, or for the two that it covers.
#[test]
fn delayed_acknowledgments_slow_the_start_unless_bytes_are_counted() {
    let rounds = |slow_start_limit| {
        let delayed_ack = Some(DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) });
        let cc = controller("newreno", &[("initial_window", 4), ("slow_start_limit", slow_start_limit)]);
        Wire::transfer(TransportConfig { delayed_ack, ..with_sack() }, cc, 120, lose(&[])).rounds()
    };
    assert_eq!(rounds(1)[..3], [4, 6, 9]);
    assert_eq!(rounds(2)[..4], [4, 8, 16, 32]);
}
