//! What acknowledgments prove is kept per class: it does not matter which of them are lost, nor how those of the classes interleave.

use crate::alone::Alone;
use crate::wire::*;
use sparelane_cc::{Blueprint, CongestionControl, Value, Values, build};
use sparelane_core::{Domain, Stream};
use sparelane_transport::{AckSegment, Acknowledgment, Receiver, SackBlock};

const HEAD: u64 = 30;
const SEGMENTS: u64 = 70;

/// RC3 that pushes, around a window of [`HEAD`] segments that nothing changes.
fn rc3_around_a_constant_window() -> Box<dyn CongestionControl> {
    let (mut own, mut inner) = (Values::default(), Values::default());
    own.set("feed", Value::Word("push".to_owned()));
    own.set("inner", Value::Word("constant".to_owned()));
    inner.set("window", Value::Whole(HEAD));
    build("rc3", &own, &Blueprint::of_any(MSS, &inner)).expect("rc3 around a constant window")
}

/// An acknowledgment on its way.
#[derive(Clone)]
struct OnTheWay {
    segment: AckSegment,
    blocks: Vec<SackBlock>,
}

/// A connection that has sent a window of class 0 and all else from the tail, and the acknowledgments of what arrives: of
/// class 0 all but one or two segments in order, of the tail the upper part in its order, the two interleaved at random.
fn first_flight(rng: &mut Stream) -> (Alone, Vec<OnTheWay>) {
    let config = with_sack();
    let mut alone = Alone::new(config, rc3_around_a_constant_window(), SEGMENTS);
    let sent = alone.sends_segments();
    alone.wait(100);
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
        let ack = receiver.handle_data(alone.now, segment, false).expect("every segment is acknowledged at once");
        acks.push(OnTheWay { segment: ack, blocks: receiver.sack_blocks().to_vec() });
    }
    (alone, acks)
}

/// What the sender makes of these acknowledgments: the bytes that it thinks are in flight, and what it sends then.
fn told(mut alone: Alone, acks: &[OnTheWay]) -> (u64, Vec<u64>) {
    for ack in acks {
        let said = Acknowledgment::of(ack.segment, &ack.blocks);
        assert_eq!(alone.sender.handle_ack(alone.now, &said), Ok(()));
    }
    let in_flight_bytes = alone.sender.in_flight_bytes();
    (in_flight_bytes, alone.sends())
}

/// The last acknowledgment of each class arrives; of the others each with one chance in three.
fn thinned(acks: &[OnTheWay], rng: &mut Stream) -> Vec<OnTheWay> {
    let is_last =
        |at: usize| acks[at + 1..].iter().all(|later| (later.segment.class == 0) != (acks[at].segment.class == 0));
    (0..acks.len()).filter(|&at| is_last(at) || rng.below(3) == 0).map(|at| acks[at].clone()).collect()
}

/// Those of class 0 and those of all others keep their own order, and nothing else is kept.
fn interleaved_anew(acks: &[OnTheWay], rng: &mut Stream) -> Vec<OnTheWay> {
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
fn thinned_or_interleaved_acknowledgments_prove_the_same() {
    for seed in 0..2_000 {
        let flight = || first_flight(&mut Stream::new(seed, Domain::Test, 0));
        let mut rng = Stream::new(seed, Domain::Test, 1);
        let (alone, acks) = flight();
        let all = told(alone, &acks);
        let few = thinned(&acks, &mut rng);
        assert_eq!(told(flight().0, &few), all, "seed {seed}: thinned");
        let otherwise = interleaved_anew(&acks, &mut rng);
        assert_eq!(told(flight().0, &otherwise), all, "seed {seed}: interleaved anew");
        let both = interleaved_anew(&few, &mut rng);
        assert_eq!(told(flight().0, &both), all, "seed {seed}: thinned and interleaved anew");
    }
}
