//! Byte streams: stream offsets, advertised windows, close, reset and user timeout.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_transport::{AckSegment, Acknowledgment, Ending, Extras, Sender, Transmit, TransportConfig};

#[test]
fn segments_have_byte_ranges_until_they_are_acknowledged() {
    let mut solo = SoloSender::new(with_sack(), constant(100), 0);
    for bytes in [2 * MSS + 300, 1, MSS] {
        solo.sender.write(bytes);
    }
    assert_eq!(solo.send(), [0, 1, 2, 3, 4]);
    let places: Vec<_> = (0..6).map(|seq| solo.sender.bytes_of(seq)).collect();
    let start = 2 * MSS;
    assert_eq!(
        places,
        [
            Some(0..MSS),
            Some(MSS..start),
            Some(start..start + 300),
            Some(start + 300..start + 301),
            Some(start + 301..start + 301 + MSS),
            None
        ]
    );
    assert_eq!([0, 1, 2, 3, 4].map(|seq| solo.sender.ends_write(seq)), [false, false, true, true, true]);
    for (cumulative, bytes) in [(1, MSS), (3, start + 300), (4, start + 301), (5, start + 301 + MSS)] {
        solo.wait(10);
        solo.acknowledge(cumulative, cumulative - 1, &[]);
        assert_eq!(solo.sender.acknowledged_bytes(), bytes);
        assert_eq!(solo.sender.bytes_of(cumulative - 1), None, "acknowledged");
    }
    assert_eq!([0, 2, 4].map(|seq| solo.sender.offset_of(seq)), [0, 2 * MSS, 4 * MSS], "full segments are assumed");
}

#[test]
fn small_writes_fill_up_a_segment_that_was_not_sent() {
    let config = TransportConfig { coalesce: true, ..with_sack() };
    let mut solo = SoloSender::new(config, constant(1), 0);
    solo.sender.write(100);
    assert_eq!(solo.send(), [0]);
    for bytes in [200, 300, MSS] {
        solo.sender.write(bytes);
    }
    solo.wait(10);
    solo.acknowledge(1, 0, &[]);
    assert_eq!(solo.sender.bytes_of(1), Some(100..100 + MSS));
    assert_eq!(solo.sender.bytes_of(2), Some(100 + MSS..600 + MSS));
    let mut apart = SoloSender::new(with_sack(), constant(1), 0);
    [100, 200, 300].into_iter().for_each(|bytes| apart.sender.write(bytes));
    assert_eq!([0, 1, 2].map(|seq| apart.sender.bytes_of(seq)), [Some(0..100), Some(100..300), Some(300..600)]);
}

/// RFC 896: keystrokes of a terminal are sent singly if nothing is outstanding, and together otherwise.
#[test]
fn with_nagle_a_short_segment_waits_for_outstanding_data() {
    for (nagle, expected) in [(false, vec![0, 1, 2]), (true, vec![0])] {
        let mut solo = SoloSender::new(TransportConfig { nagle, coalesce: nagle, ..with_sack() }, constant(100), 0);
        let mut sent = Vec::new();
        for _ in 0..3 {
            solo.sender.write(10);
            sent.extend(solo.send());
        }
        assert_eq!(sent, expected, "nagle: {nagle}");
        solo.wait(100);
        let then = solo.acknowledge(1, 0, &[]);
        assert_eq!(then, if nagle { vec![1] } else { vec![] });
        if nagle {
            assert_eq!(solo.sender.bytes_of(1), Some(10..30));
            solo.sender.write(2 * MSS + 1);
            assert_eq!(solo.send(), [2, 3], "full segments do not wait");
            solo.sender.close();
            assert_eq!(solo.send(), [4, 5], "a closed stream does not wait");
        }
    }
}

#[test]
fn both_ends_learn_of_the_end_of_the_stream_even_after_losses() {
    for lost in [vec![], vec![10], vec![3, 10, 10]] {
        let mut wire = Wire::new(with_sack(), newreno(4), lose(&lost));
        wire.write(10);
        wire.sender.close();
        wire.write(10);
        assert_eq!((wire.sender.ending(), wire.receiver.is_finished()), (None, false));
        wire.run();
        assert_eq!((wire.sender.ending(), wire.receiver.is_finished()), (Some(Ending::Complete), true));
        assert_eq!(wire.receiver.held_bytes(), 10 * MSS, "writes after the end are ignored");
        assert_eq!(wire.sender.acknowledged_bytes(), 10 * MSS);
    }
}

#[test]
fn a_closed_stream_with_a_full_buffer_ends_after_the_last_byte() {
    let config = TransportConfig { send_buffer_bytes: Some(4 * MSS), ..with_sack() };
    let mut wire = Wire::new(config, newreno(4), lose(&[]));
    wire.sender.write(10 * MSS + 5);
    wire.sender.close();
    wire.write(0);
    wire.run();
    assert!(wire.receiver.is_finished());
    assert_eq!(wire.receiver.held_bytes(), 10 * MSS + 5);
}

#[test]
fn segments_beyond_the_end_of_the_stream_are_dropped() {
    let mut wire = Wire::new(with_sack(), newreno(4), lose(&[]));
    wire.write(3);
    wire.sender.close();
    wire.write(0);
    wire.run();
    let refused = wire.receiver.refused();
    let beyond = sparelane_transport::Segment {
        seq: 4,
        payload_bytes: 7,
        class: 0,
        retransmission: false,
        window_reduced: false,
    };
    assert_eq!(wire.receiver.handle_data(wire.now, beyond, false), None);
    assert_eq!((wire.receiver.refused(), wire.receiver.held_bytes()), (refused + 1, 3 * MSS));
}

#[test]
fn a_reset_ends_the_connection_at_both_ends() {
    let mut wire = Wire::new(with_sack(), newreno(4), lose(&[]));
    wire.write(100);
    wire.run_until(at_ms(350));
    wire.sender.reset();
    wire.write(0);
    wire.run_until(at_ms(2000));
    assert_eq!((wire.sender.ending(), wire.was_reset), (Some(Ending::Reset), true));
    assert_eq!((wire.sender.next_timer(), wire.sender.poll_transmit(wire.now, true)), (Time::NEVER, None));
    let mut other = SoloSender::new(with_sack(), newreno(4), 10);
    other.send();
    other.sender.handle_reset();
    assert_eq!((other.sender.ending(), other.sender.next_timer()), (Some(Ending::ResetByPeer), Time::NEVER));
    assert_eq!(other.send(), []);
    assert!(other.try_acknowledge(0, 1, 0, &[]).is_err(), "the connection has ended");
}

/// RFC 5482: the user timeout does not depend on the backoff of the retransmission timer.
#[test]
fn a_sender_gives_up_at_the_user_timeout() {
    for limit_s in [3, 20] {
        let config = TransportConfig { give_up_after: Some(Dur::from_secs(limit_s)), ..with_sack() };
        // All packets are lost after two round trips.
        let script: Script = Box::new(|sent| if sent.at < at_ms(290) { Fate::Arrive } else { Fate::Lost });
        let mut wire = Wire::new(config, newreno(4), script);
        wire.write(100);
        wire.run_until(at_ms(100_000));
        assert_eq!(wire.sender.ending(), Some(Ending::GaveUp));
        let last = wire.sent.last().expect("much was sent").at;
        assert!(last < at_ms(400 + 1000 * limit_s) && wire.sender.next_timer() == Time::NEVER, "{last}");
        // The timeout doubles each time, so the last retransmission is in the last three quarters of the limit.
        assert!(last > at_ms(400 + 1000 * limit_s / 4), "{last}");
        let mut deaf = Wire::new(config, newreno(4), Box::new(|_| Fate::Lost));
        deaf.write(1);
        deaf.run_until(at_ms(100_000));
        assert_eq!(deaf.sender.ending(), Some(Ending::GaveUp), "no SYN-ACK");
        assert!(deaf.sent.last().expect("a SYN").at <= at_ms(1000 * limit_s));
    }
    let patient = Wire::transfer(
        with_sack(),
        newreno(4),
        100,
        Box::new(|sent| if sent.at > at_ms(290) && sent.at < at_ms(90_000) { Fate::Lost } else { Fate::Arrive }),
    );
    assert_eq!((patient.sender.is_done(), patient.sender.ending()), (true, None));
}

#[test]
fn after_an_external_handshake_data_is_sent_with_an_rto_from_its_sample() {
    let mut sender = Sender::new(with_sack(), newreno(2), Stream::new(1, Domain::Controller, 0));
    sender.write(10 * MSS);
    sender.open_established(at_ms(5), Some(Dur::from_ms(100)));
    assert_eq!(sender.srtt(), Some(Dur::from_ms(100)));
    assert!(matches!(sender.poll_transmit(at_ms(5), true), Some(Transmit::Data(segment)) if segment.seq == 0));
    assert_eq!(sender.next_timer(), at_ms(5 + 300));
}

/// The receiving application stops reading. The sender stops at the edge of the window, probes, and continues when the
/// window opens.
#[test]
fn a_closed_window_is_probed_until_it_opens() {
    for lost_answers in [0, 2] {
        let lost: Script = Box::new(move |sent| match sent.item {
            Item::Probe if sent.earlier < lost_answers => Fate::Lost,
            _ => Fate::Arrive,
        });
        let config = TransportConfig { receive_window_bytes: Some(8 * MSS), ..with_sack() };
        let mut wire = Wire::new(config, newreno(10), lost);
        wire.advertises = true;
        wire.receiver.set_window(8);
        wire.write(30);
        wire.run_until(at_ms(10_000));
        assert_eq!(wire.receiver.next_expected(), 8, "not a segment beyond the edge");
        let probes = wire.times_ms(|item| *item == Item::Probe);
        let waits: Vec<_> = probes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(probes.len() >= 3 && waits.windows(2).all(|pair| pair[1] >= pair[0]), "{probes:?}");
        wire.receiver.set_window(30);
        wire.run();
        assert_eq!((wire.receiver.held_bytes(), wire.sender.counts().timeouts), (30 * MSS, 0));
    }
}

/// Answers to window probes restart the user timeout.
#[test]
fn a_closed_window_whose_probes_are_answered_causes_no_user_timeout() {
    let config =
        TransportConfig { receive_window_bytes: Some(8 * MSS), give_up_after: Some(Dur::from_secs(10)), ..with_sack() };
    let mut wire = Wire::new(config, newreno(10), lose(&[]));
    wire.advertises = true;
    wire.receiver.set_window(8);
    wire.write(30);
    wire.run_until(at_ms(100_000));
    assert_eq!((wire.sender.ending(), wire.receiver.next_expected()), (None, 8));
    wire.receiver.set_window(30);
    wire.run();
    assert_eq!(wire.receiver.held_bytes(), 30 * MSS);
}

#[test]
fn a_closed_window_is_not_probed_without_data() {
    let mut solo =
        SoloSender::new(TransportConfig { receive_window_bytes: Some(4 * MSS), ..with_sack() }, constant(100), 4);
    assert_eq!(solo.send(), [0, 1, 2, 3]);
    let shut = Extras { window_segments: Some(0), ..Extras::default() };
    let ack = Acknowledgment { segment: AckSegment::plain(4, 3), blocks: &[], extras: Some(&shut) };
    assert_eq!(solo.sender.handle_ack(solo.now, &ack), Ok(()));
    assert_eq!(solo.sender.next_timer(), Time::NEVER);
    solo.sender.write(1);
    solo.wait(1);
    assert_eq!(solo.sender.handle_ack(solo.now, &ack), Ok(()));
    assert_ne!(solo.sender.next_timer(), Time::NEVER, "probed with data");
}

#[test]
fn the_edge_of_the_window_never_moves_back() {
    let mut solo = SoloSender::new(with_sack(), constant(100), 100);
    let acknowledge = |solo: &mut SoloSender, cumulative: u64, window: u32| {
        let extras = Extras { window_segments: Some(window), ..Extras::default() };
        let segment = AckSegment::plain(cumulative, cumulative - 1);
        solo.wait(1);
        let ack = Acknowledgment { segment, blocks: &[], extras: Some(&extras) };
        assert_eq!(solo.sender.handle_ack(solo.now, &ack), Ok(()));
        solo.send()
    };
    assert_eq!(solo.send().len(), 100, "the configured window");
    let mut small =
        SoloSender::new(TransportConfig { receive_window_bytes: Some(4 * MSS), ..with_sack() }, constant(100), 100);
    assert_eq!(small.send(), [0, 1, 2, 3]);
    assert_eq!(acknowledge(&mut small, 2, 5), [4, 5, 6]);
    assert_eq!(acknowledge(&mut small, 1, 5), [], "an older acknowledgment");
    assert_eq!(acknowledge(&mut small, 3, 4), [], "the edge stays");
    assert_eq!(acknowledge(&mut small, 3, 6), [7, 8]);
    assert_eq!(acknowledge(&mut solo, 1, 3), [], "data sent under the configured window stays in flight");
}
