//! The scoreboard does not depend on the loss of acknowledgments, nor on the order in which those of different classes
//! arrive.

use crate::solo_sender::SoloSender;
use crate::wire::*;
use sparelane_cc::{Blueprint, CongestionControl, Value, Values, build};
use sparelane_core::{Domain, Stream};
use sparelane_transport::{AckSegment, Acknowledgment, Receiver, SackBlock};

const HEAD: u64 = 30;
const SEGMENTS: u64 = 70;

/// Returns RC3 with `feed = "push"` around a constant window of [`HEAD`] segments.
fn rc3_around_a_constant_window() -> Box<dyn CongestionControl> {
    let (mut own, mut inner) = (Values::default(), Values::default());
    own.set("feed", Value::Word("push".to_owned()));
    own.set("inner", Value::Word("constant".to_owned()));
    inner.set("window", Value::Whole(HEAD));
    build("rc3", &own, &Blueprint::of_any(MSS, &inner)).expect("rc3 around a constant window")
}

/// An acknowledgment in flight.
#[derive(Clone)]
struct InFlight {
    segment: AckSegment,
    blocks: Vec<SackBlock>,
}

/// Returns a sender that has sent one window in class 0 and all other segments from the tail, and the acknowledgments.
///
/// In class 0, all segments arrive in order except for one or two. From the tail, the upper part arrives. Arrivals of
/// the two are interleaved at random.
fn first_flight(rng: &mut Stream) -> (SoloSender, Vec<InFlight>) {
    let config = with_sack();
    let mut solo = SoloSender::new(config, rc3_around_a_constant_window(), SEGMENTS);
    let sent = solo.send_segments();
    solo.wait(100);
    let lost = [1 + rng.below(HEAD - 4), 1 + rng.below(HEAD - 4)];
    let from_tail = HEAD + 1 + rng.below(SEGMENTS - HEAD - 1);
    let (head, tail): (Vec<_>, Vec<_>) = sent.into_iter().partition(|segment| segment.class == 0);
    assert_eq!((head.len(), tail.len()), (HEAD as usize, (SEGMENTS - HEAD) as usize));
    let mut head = head.into_iter().filter(|segment| !lost.contains(&segment.seq)).peekable();
    let mut tail = tail.into_iter().filter(|segment| segment.seq >= from_tail).peekable();
    let mut receiver = Receiver::new(&config);
    let mut acks = Vec::new();
    while head.peek().is_some() || tail.peek().is_some() {
        let is_head = tail.peek().is_none() || (head.peek().is_some() && rng.below(2) == 0);
        let segment = if is_head { head.next() } else { tail.next() }.expect("one of the two has more");
        let ack = receiver.handle_data(solo.now, segment, false).expect("every segment is acknowledged at once");
        acks.push(InFlight { segment: ack, blocks: receiver.sack_blocks().to_vec() });
    }
    (solo, acks)
}

/// Applies the acknowledgments, and returns the pipe in bytes and the segments that are sent afterwards.
fn outcome(mut solo: SoloSender, acks: &[InFlight]) -> (u64, Vec<u64>) {
    for InFlight { segment, blocks } in acks {
        let ack = Acknowledgment::of(*segment, blocks);
        assert_eq!(solo.sender.handle_ack(solo.now, &ack), Ok(()));
    }
    let in_flight_bytes = solo.sender.in_flight_bytes();
    (in_flight_bytes, solo.send())
}

/// Drops two thirds of the acknowledgments at random, but neither the last one of class 0 nor the last one of the low
/// classes.
fn thin_out(acks: &[InFlight], rng: &mut Stream) -> Vec<InFlight> {
    let is_last =
        |at: usize| acks[at + 1..].iter().all(|later| (later.segment.class == 0) != (acks[at].segment.class == 0));
    (0..acks.len()).filter(|&at| is_last(at) || rng.below(3) == 0).map(|at| acks[at].clone()).collect()
}

/// Interleaves class 0 and the low classes at random. Each of the two keeps its order.
fn reinterleave(acks: &[InFlight], rng: &mut Stream) -> Vec<InFlight> {
    let (head, tail): (Vec<_>, Vec<_>) = acks.iter().cloned().partition(|ack| ack.segment.class == 0);
    let (mut head, mut tail) = (head.into_iter().peekable(), tail.into_iter().peekable());
    let mut acks = Vec::new();
    let share = 1 + rng.below(9);
    while head.peek().is_some() || tail.peek().is_some() {
        let is_head = tail.peek().is_none() || (head.peek().is_some() && rng.below(10) < share);
        acks.extend(if is_head { head.next() } else { tail.next() });
    }
    acks
}

#[test]
fn lost_or_reinterleaved_acknowledgments_lead_to_the_same_state() {
    for seed in 0..2_000 {
        let flight = || first_flight(&mut Stream::new(seed, Domain::Test, 0));
        let mut rng = Stream::new(seed, Domain::Test, 1);
        let (solo, acks) = flight();
        let all = outcome(solo, &acks);
        let few = thin_out(&acks, &mut rng);
        assert_eq!(outcome(flight().0, &few), all, "seed {seed}: thin_out");
        let reordered = reinterleave(&acks, &mut rng);
        assert_eq!(outcome(flight().0, &reordered), all, "seed {seed}: reinterleaved");
        let both = reinterleave(&few, &mut rng);
        assert_eq!(outcome(flight().0, &both), all, "seed {seed}: thin_out and reinterleaved");
    }
}
