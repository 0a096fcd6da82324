//! The growth of the congestion window, and the other limits of a sender.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_cc::{Blueprint, Value, Values, build};
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
fn congestion_avoidance_adds_one_segment_per_round() {
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
fn the_send_buffer_limits_the_sender() {
    let config = TransportConfig { send_buffer_bytes: Some(6 * MSS), ..with_sack() };
    let wire = Wire::transfer(config, newreno(100), 60, lose(&[]));
    assert!(wire.rounds().iter().all(|&sent| sent <= 6), "{:?}", wire.rounds());
}

#[test]
fn the_send_buffer_limits_an_endless_stream() {
    let config = TransportConfig { send_buffer_bytes: Some(6 * MSS), ..with_sack() };
    let mut solo = SoloSender::endless(config, newreno(100));
    assert_eq!(solo.send(), (0..6).collect::<Vec<_>>());
    for una in 1..100 {
        solo.acknowledge(una, una - 1, &[]);
        assert!(solo.sender.in_flight_bytes() <= 6 * MSS);
    }
    assert!(solo.sender.in_flight_bytes() >= 4 * MSS);
}

#[test]
fn a_limited_send_buffer_accepts_a_second_write_after_the_first_is_acknowledged() {
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
    // The sample includes the delay of the acknowledgment.
    assert_eq!(wire.sender.srtt(), Some(Dur::from_ms(105)));
}

/// RFC 3465: a delayed acknowledgment counts as one segment, or as the two that it covers.
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

/// RFC 7661: an application that uses a sixteenth of its window keeps the window. A loss then reduces it to half of the
/// part in use, less the retransmitted data.
#[test]
fn a_window_that_is_not_in_use_is_kept_until_congestion() {
    let mut values = Values::default();
    values.set("window_validation", Value::Word("rfc7661".to_owned()));
    values.set("initial_ssthresh", Value::Whole(160));
    let cc = build("newreno", &values, &Blueprint::of_any(MSS, &Values::default())).expect("newreno");
    let lost: Script = Box::new(|sent| match sent.item {
        Item::Data(segment) if segment.seq == 522 && sent.earlier == 0 => Fate::Lost,
        _ => Fate::Arrive,
    });
    let mut wire = Wire::new(with_sack(), cc, lost);
    // Slow start to a window of 160 segments, which is fully used.
    wire.write(10 + 20 + 40 + 80);
    wire.run();
    let full = wire.window_at(600);
    assert_eq!(full, 160 * MSS);
    for tenth in 0..38 {
        wire.run_until(at_ms(700 + 100 * tenth));
        wire.write(10);
    }
    assert!((160 * MSS..162 * MSS).contains(&wire.window_at(4400)), "{}", wire.window_at(4400));
    wire.run();
    // Ten segments are in use. The lost one and the rescue are retransmitted. Then one acknowledgment opens the window.
    let cuts: Vec<u64> = wire.windows.windows(2).filter(|pair| pair[1].1 < pair[0].1).map(|pair| pair[1].1).collect();
    assert_eq!((cuts.len(), cuts[0], wire.resent().len()), (2, 5 * MSS, 2));
    assert!((4 * MSS..4 * MSS + MSS / 2).contains(&cuts[1]), "{cuts:?}");
}

#[test]
fn the_minimum_round_trip_time_is_the_smallest_sample() {
    let mut solo = SoloSender::new(with_sack(), constant(10), 3);
    assert_eq!(solo.sender.min_rtt(), Some(Dur::from_ms(100)), "sample of the handshake");
    solo.send();
    for (wait_ms, cumulative, least_ms) in [(120, 1, 100), (0, 2, 100)] {
        solo.wait(wait_ms);
        solo.acknowledge(cumulative, cumulative - 1, &[]);
        assert_eq!(solo.sender.min_rtt(), Some(Dur::from_ms(least_ms)));
    }
}
