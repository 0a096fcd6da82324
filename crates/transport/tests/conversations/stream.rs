//! A stream of bytes with a beginning and an end: where segments lie in it, a receive window that moves, close, reset, giving up.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_core::{Domain, Dur, Stream, Time};
use sparelane_transport::{AckSegment, Acknowledgment, Ending, Extras, Sender, Transmit, TransportConfig};

#[test]
fn a_segment_lies_where_its_bytes_are_and_what_is_acknowledged_can_be_forgotten() {
    let mut alone = Alone::new(with_sack(), constant(100), 0);
    for bytes in [2 * MSS + 300, 1, MSS] {
        alone.sender.write(bytes);
    }
    assert_eq!(alone.sends(), [0, 1, 2, 3, 4]);
    let places: Vec<_> = (0..6).map(|seq| alone.sender.bytes_of(seq)).collect();
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
    assert_eq!([0, 1, 2, 3, 4].map(|seq| alone.sender.ends_write(seq)), [false, false, true, true, true]);
    for (cumulative, bytes) in [(1, MSS), (3, start + 300), (4, start + 301), (5, start + 301 + MSS)] {
        alone.wait(10);
        alone.hears(cumulative, cumulative - 1, &[]);
        assert_eq!(alone.sender.acknowledged_bytes(), bytes);
        assert_eq!(alone.sender.bytes_of(cumulative - 1), None, "nobody asks for it again");
    }
    assert_eq!([0, 2, 4].map(|seq| alone.sender.offset_of(seq)), [0, 2 * MSS, 4 * MSS], "as if all had been full");
}

#[test]
fn small_writes_fill_up_a_segment_that_has_not_gone() {
    let config = TransportConfig { coalesce: true, ..with_sack() };
    let mut alone = Alone::new(config, constant(1), 0);
    alone.sender.write(100);
    assert_eq!(alone.sends(), [0]);
    for bytes in [200, 300, MSS] {
        alone.sender.write(bytes);
    }
    alone.wait(10);
    alone.hears(1, 0, &[]);
    assert_eq!(alone.sender.bytes_of(1), Some(100..100 + MSS));
    assert_eq!(alone.sender.bytes_of(2), Some(100 + MSS..600 + MSS));
    let mut apart = Alone::new(with_sack(), constant(1), 0);
    [100, 200, 300].into_iter().for_each(|bytes| apart.sender.write(bytes));
    assert_eq!([0, 1, 2].map(|seq| apart.sender.bytes_of(seq)), [Some(0..100), Some(100..300), Some(300..600)]);
}

/// RFC 896: the keystrokes of a terminal go one at a time where nothing is on its way, and together where something is.
#[test]
fn with_nagles_rule_a_short_segment_waits_for_what_is_on_its_way() {
    for (nagle, expected) in [(false, vec![0, 1, 2]), (true, vec![0])] {
        let mut alone = Alone::new(TransportConfig { nagle, coalesce: nagle, ..with_sack() }, constant(100), 0);
        let mut sent = Vec::new();
        for _ in 0..3 {
            alone.sender.write(10);
            sent.extend(alone.sends());
        }
        assert_eq!(sent, expected, "nagle: {nagle}");
        alone.wait(100);
        let then = alone.hears(1, 0, &[]);
        assert_eq!(then, if nagle { vec![1] } else { vec![] });
        if nagle {
            assert_eq!(alone.sender.bytes_of(1), Some(10..30));
            alone.sender.write(2 * MSS + 1);
            assert_eq!(alone.sends(), [2, 3], "full segments do not wait");
            alone.sender.close();
            assert_eq!(alone.sends(), [4, 5], "nothing more will come");
        }
    }
}

#[test]
fn the_end_of_the_stream_arrives_like_any_segment_and_both_ends_know() {
    for lost in [vec![], vec![10], vec![3, 10, 10]] {
        let mut wire = Wire::new(with_sack(), newreno(4), lose(&lost));
        wire.write(10);
        wire.sender.close();
        wire.write(10);
        assert_eq!((wire.sender.ending(), wire.receiver.is_finished()), (None, false));
        wire.run();
        assert_eq!((wire.sender.ending(), wire.receiver.is_finished()), (Some(Ending::Complete), true));
        assert_eq!(wire.receiver.held_bytes(), 10 * MSS, "what is written after the end is not taken");
        assert_eq!(wire.sender.acknowledged_bytes(), 10 * MSS);
    }
}

#[test]
fn a_closed_stream_that_waits_for_room_in_its_buffer_ends_behind_the_last_byte() {
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
fn nothing_behind_the_end_of_the_stream_is_taken() {
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
fn a_reset_ends_both_ends_at_once() {
    let mut wire = Wire::new(with_sack(), newreno(4), lose(&[]));
    wire.write(100);
    wire.run_until(at_ms(350));
    wire.sender.reset();
    wire.write(0);
    wire.run_until(at_ms(2000));
    assert_eq!((wire.sender.ending(), wire.was_reset), (Some(Ending::Reset), true));
    assert_eq!((wire.sender.next_timer(), wire.sender.poll_transmit(wire.now, true)), (Time::NEVER, None));
    let mut other = Alone::new(with_sack(), newreno(4), 10);
    other.sends();
    other.sender.handle_reset();
    assert_eq!((other.sender.ending(), other.sender.next_timer()), (Some(Ending::ResetByPeer), Time::NEVER));
    assert_eq!(other.sends(), []);
    assert!(other.is_told(0, 1, 0, &[]).is_err(), "nobody is heard any more");
}

/// RFC 5482: after so long without a word, whatever the backoff has made of the timer.
#[test]
fn a_sender_gives_up_when_nothing_has_come_back_for_as_long_as_it_was_told() {
    for limit_s in [3, 20] {
        let config = TransportConfig { give_up_after: Some(Dur::from_secs(limit_s)), ..with_sack() };
        // After two round trips nothing comes through.
        let script: Script = Box::new(|sent| if sent.at < at_ms(290) { Fate::Arrive } else { Fate::Lost });
        let mut wire = Wire::new(config, newreno(4), script);
        wire.write(100);
        wire.run_until(at_ms(100_000));
        assert_eq!(wire.sender.ending(), Some(Ending::GaveUp));
        let last = wire.sent.last().expect("much was sent").at;
        assert!(last < at_ms(400 + 1000 * limit_s) && wire.sender.next_timer() == Time::NEVER, "{last}");
        // Not before: the timer's waits double, and half of the limit is the last but one at least.
        assert!(last > at_ms(400 + 1000 * limit_s / 4), "{last}");
        let mut deaf = Wire::new(config, newreno(4), Box::new(|_| Fate::Lost));
        deaf.write(1);
        deaf.run_until(at_ms(100_000));
        assert_eq!(deaf.sender.ending(), Some(Ending::GaveUp), "nobody answers the SYN");
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
fn a_connection_that_is_open_already_sends_at_once_with_the_timeout_of_its_round_trip() {
    let mut sender = Sender::new(with_sack(), newreno(2), Stream::new(1, Domain::Controller, 0));
    sender.write(10 * MSS);
    sender.open_established(at_ms(5), Some(Dur::from_ms(100)));
    assert_eq!(sender.srtt(), Some(Dur::from_ms(100)));
    assert!(matches!(sender.poll_transmit(at_ms(5), true), Some(Transmit::Data(segment)) if segment.seq == 0));
    assert_eq!(sender.next_timer(), at_ms(5 + 300));
}

/// The application takes nothing for a while: the sender stops at the edge, asks, and goes on when there is room.
#[test]
fn a_shut_window_stops_the_sender_who_asks_until_it_opens() {
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

/// A receiver that answers is there, however long it has no room.
#[test]
fn a_shut_window_of_a_receiver_that_answers_is_waited_for() {
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
fn a_shut_window_is_not_asked_about_where_nothing_waits_to_be_sent() {
    let mut alone =
        Alone::new(TransportConfig { receive_window_bytes: Some(4 * MSS), ..with_sack() }, constant(100), 4);
    assert_eq!(alone.sends(), [0, 1, 2, 3]);
    let shut = Extras { window_segments: Some(0), ..Extras::default() };
    let ack = Acknowledgment { segment: AckSegment::plain(4, 3), blocks: &[], extras: Some(&shut) };
    assert_eq!(alone.sender.handle_ack(alone.now, &ack), Ok(()));
    assert_eq!(alone.sender.next_timer(), Time::NEVER);
    alone.sender.write(1);
    alone.wait(1);
    assert_eq!(alone.sender.handle_ack(alone.now, &ack), Ok(()));
    assert_ne!(alone.sender.next_timer(), Time::NEVER, "but where something does");
}

#[test]
fn a_late_acknowledgment_takes_no_window_back() {
    let mut alone = Alone::new(with_sack(), constant(100), 100);
    let hears = |alone: &mut Alone, cumulative: u64, window: u32| {
        let extras = Extras { window_segments: Some(window), ..Extras::default() };
        let segment = AckSegment::plain(cumulative, cumulative - 1);
        alone.wait(1);
        let ack = Acknowledgment { segment, blocks: &[], extras: Some(&extras) };
        assert_eq!(alone.sender.handle_ack(alone.now, &ack), Ok(()));
        alone.sends()
    };
    assert_eq!(alone.sends().len(), 100, "the whole window of the configuration");
    let mut small =
        Alone::new(TransportConfig { receive_window_bytes: Some(4 * MSS), ..with_sack() }, constant(100), 100);
    assert_eq!(small.sends(), [0, 1, 2, 3]);
    assert_eq!(hears(&mut small, 2, 5), [4, 5, 6]);
    assert_eq!(hears(&mut small, 1, 5), [], "an older one");
    assert_eq!(hears(&mut small, 3, 4), [], "the edge stays");
    assert_eq!(hears(&mut small, 3, 6), [7, 8]);
    assert_eq!(hears(&mut alone, 1, 3), [], "what was sent under the old window may be in flight");
}
