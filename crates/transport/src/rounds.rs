//! A transfer in lockstep rounds, as in the walk-throughs of papers.
//!
//! In each round the sender transmits until its window or the link's capacity per round trip is exhausted. All packets
//! that are not dropped arrive, and all acknowledgments return before the next round. There is no queueing and no
//! packet spacing. The model reproduces walk-throughs such as RC3's (NSDI 2014 section 2.2) segment for segment.

use crate::acknowledgment::Acknowledgment;
use crate::config::TransportConfig;
use crate::receiver::Receiver;
use crate::segment::{AckSegment, SackBlock, Segment, Transmit};
use crate::sender::Sender;
use sparelane_cc::CongestionControl;
use sparelane_core::{Domain, Dur, Seq, Stream, Time};

/// The transfer to walk through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The number of segments in the transfer.
    pub segments: u32,
    /// The number of packets that the link carries per round trip.
    pub capacity: usize,
    /// The segments whose first transmission is dropped, counted from 0. A segment listed twice is dropped twice.
    pub drops: Vec<Seq>,
}

/// The packets of one round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The segments sent in class 0, in sending order.
    pub normal: Vec<Seq>,
    /// The segments sent at low priority, in sending order, with their class.
    pub low: Vec<(Seq, u8)>,
    /// The segments that were dropped, of any class.
    pub dropped: Vec<Seq>,
}

/// The duration of one round.
const ROUND: Dur = Dur::from_ms(100);

/// The number of rounds after which a walk is aborted.
const MAX_ROUNDS: usize = 10_000;

/// Runs a transfer under the controller `cc` and returns one item for each round in which a packet was sent.
///
/// The handshake is not counted. Timers never fire, so a transfer that needs a timeout ends early.
pub fn walk(plan: &Walk, config: TransportConfig, cc: Box<dyn CongestionControl>) -> Vec<Round> {
    let mut sender = Sender::new(config, cc, Stream::new(0, Domain::Controller, 0));
    let mut receiver = Receiver::new(&config);
    sender.write(u64::from(plan.segments) * config.mss_bytes);
    // The handshake: its SYN needs no delivery, because the receiver opens with the first segment.
    let mut now = Time::ZERO;
    sender.poll_transmit(now, true);
    sender.handle_syn_ack(now + ROUND, None);
    let mut to_drop = plan.drops.clone();
    let mut rounds = Vec::new();
    while !sender.is_done() && rounds.len() < MAX_ROUNDS {
        now += ROUND;
        let mut round = Round::default();
        let mut acks = Vec::new();
        for _ in 0..plan.capacity {
            let Some(Transmit::Data(segment)) = sender.poll_transmit(now, true) else { break };
            send(segment, now, &mut round, &mut to_drop, &mut receiver, &mut acks);
        }
        if round == Round::default() {
            break;
        }
        // Acknowledgments return after all transmissions of the round.
        for (ack, blocks) in acks {
            let result = sender.handle_ack(now + ROUND, &Acknowledgment::of(ack, &blocks));
            debug_assert_eq!(result, Ok(()), "the receiver of a walk sends valid acknowledgments");
        }
        rounds.push(round);
    }
    rounds
}

/// Delivers or drops one segment, and collects the acknowledgment that it triggers.
fn send(
    segment: Segment,
    now: Time,
    round: &mut Round,
    to_drop: &mut Vec<Seq>,
    receiver: &mut Receiver,
    acks: &mut Vec<(AckSegment, Vec<SackBlock>)>,
) {
    match segment.class {
        0 => round.normal.push(segment.seq),
        class => round.low.push((segment.seq, class)),
    }
    if let Some(at) = to_drop.iter().position(|&seq| seq == segment.seq) {
        to_drop.swap_remove(at);
        round.dropped.push(segment.seq);
    } else if let Some(ack) = receiver.handle_data(now, segment, false) {
        acks.push((ack, receiver.sack_blocks().to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_cc::Blueprint;
    use sparelane_cc::{Value, Values, build};

    fn controller(name: &str, initial_window: u64) -> Box<dyn CongestionControl> {
        let mut window = Values::default();
        window.set("initial_window", Value::Whole(initial_window));
        let none = Values::default();
        let (own, inner) = if name == "rc3" { (&none, &window) } else { (&window, &none) };
        build(name, own, &Blueprint::of_any(1460, inner)).expect("a known controller")
    }

    fn walk_through(name: &str, initial_window: u64, plan: &Walk) -> Vec<Round> {
        walk(plan, TransportConfig::default(), controller(name, initial_window))
    }

    /// NSDI 2014 section 2.2 and Fig. 3; the paper counts segments from 1.
    #[test]
    fn rc3_sends_66_packets_as_in_the_paper() {
        let plan = Walk { segments: 66, capacity: 50, drops: vec![20, 21] };
        let rounds = walk_through("rc3", 4, &plan);
        let normal: Vec<Vec<u64>> = rounds.iter().map(|round| round.normal.clone()).collect();
        assert_eq!(normal, [(0..4).collect(), (4..12).collect(), vec![20, 21]]);
        // Round 1: 40 packets at priority 1 and 6 at priority 2, from the last one down to the 21st.
        let first: Vec<(u64, u8)> = (20..66).rev().map(|seq| (seq, if seq >= 26 { 1 } else { 2 })).collect();
        assert_eq!(rounds[0].low, first);
        assert_eq!(rounds[0].dropped, [21, 20]);
        // Round 2: the remaining segments, down to the point at which the two loops meet.
        let second: Vec<(u64, u8)> = (12..20).rev().map(|seq| (seq, 2)).collect();
        assert_eq!(rounds[1].low, second);
        // Three rounds of sending; the last acknowledgments arrive in the fourth.
        assert_eq!(rounds.len() + 1, 4);
    }

    #[test]
    fn tcp_doubles_until_the_link_is_full() {
        let plan = Walk { segments: 66, capacity: 50, drops: vec![] };
        let sizes: Vec<usize> = walk_through("newreno", 4, &plan).iter().map(|round| round.normal.len()).collect();
        assert_eq!(sizes, [4, 8, 16, 32, 6]);
    }

    /// The example of the NSDI 2014 slides: 7 packets and an initial window of 1.
    #[test]
    fn seven_packets_take_tcp_three_rounds_and_rc3_one() {
        let plan = Walk { segments: 7, capacity: 1000, drops: vec![] };
        let sizes: Vec<usize> = walk_through("newreno", 1, &plan).iter().map(|round| round.normal.len()).collect();
        assert_eq!(sizes, [1, 2, 4]);
        let rounds = walk_through("rc3", 1, &plan);
        assert_eq!(rounds.len(), 1);
        assert_eq!((rounds[0].normal.clone(), rounds[0].low.len()), (vec![0], 6));
    }
}
