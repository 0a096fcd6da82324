//! Hostile peers: invalid acknowledgments are rejected, and valid but false ones harm only their own connection.

use crate::wire::MSS;
use sparelane_cc::{Blueprint, Registry};
use sparelane_cc::{Value, Values, build};
use sparelane_core::{Domain, Dur, Rate, Seq, Stream, Time};
use sparelane_transport::{
    AccEcnOption, AccurateEcho, AckError, AckSegment, Acknowledgment, Chunk, CounterOrder, DelayedAck, Ecn, Extras,
    Receiver, SackBlock, Segment, Sender, Transmit, TransportConfig,
};

/// The number of random acknowledgments per sender.
const ACKNOWLEDGMENTS: u32 = 3_000;

/// The number of segments written at the start.
const SEGMENTS: u64 = 5_000;

fn config(rng: &mut Stream) -> TransportConfig {
    let mut coin = || rng.below(2) == 0;
    TransportConfig {
        mss_bytes: MSS,
        sack: coin() || coin(),
        limited_transmit: coin(),
        prr: coin(),
        rack_tlp: coin(),
        timestamps: coin(),
        sack_survives_timeout: coin(),
        undo_spurious: coin(),
        ecn: match (coin(), coin()) {
            (true, true) => Ecn::Classic,
            (true, false) => Ecn::Dctcp,
            (false, _) => Ecn::Accurate,
        },
        send_batch: if coin() { 1 } else { 10 },
        receive_window_bytes: Some(2_000 * MSS),
        ..TransportConfig::default()
    }
}

/// Draws a sequence number that is usually close to `near`, and sometimes arbitrary.
fn number(rng: &mut Stream, near: Seq) -> Seq {
    match rng.below(20) {
        0 => rng.next_u64(),
        1 => [0, Seq::MAX, Seq::from(u32::MAX), near][rng.below(4) as usize],
        _ => (near + rng.below(60)).saturating_sub(rng.below(60)),
    }
}

/// A sender under attack.
struct Victim {
    sender: Sender,
    now: Time,
    highest: Seq,
    handled: u32,
    rejected: u32,
}

impl Victim {
    fn send(&mut self) {
        for _ in 0..50 {
            match self.sender.poll_transmit(self.now, true) {
                Some(Transmit::Data(segment)) => self.highest = self.highest.max(segment.seq + 1),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Passes in a random acknowledgment, valid or not.
    fn acknowledge_at_random(&mut self, rng: &mut Stream) {
        let near = self.sender.acknowledged();
        let mut blocks = Vec::new();
        for _ in 0..rng.below(7).saturating_sub(1) {
            let (start, length) = (number(rng, near + 10), rng.below(30));
            let end = if rng.below(30) == 0 { rng.next_u64() } else { start.saturating_add(length) };
            blocks.push(SackBlock { start, end });
        }
        let segment = AckSegment {
            cumulative: if rng.below(3) == 0 { near } else { number(rng, near + 2) },
            trigger: number(rng, near + 5),
            trigger_retransmitted: rng.below(5) == 0,
            class: if rng.below(10) == 0 { rng.below(256) as u8 } else { 0 },
            ecn_echo: rng.below(10) == 0,
        };
        let any_time = |rng: &mut Stream| Time::ZERO + Dur::from_ps(rng.next_u64() >> rng.below(64));
        let extras = Extras {
            explicit_rate: (rng.below(2) == 0).then(|| Rate::from_bps((rng.next_u64() >> rng.below(63)).max(1))),
            one_way_delay: (rng.below(2) == 0).then(|| Dur::from_ps(rng.next_u64() >> rng.below(64))),
            received_at: (rng.below(2) == 0).then(|| any_time(rng)),
            host_delay: (rng.below(2) == 0).then(|| Dur::from_ps(rng.next_u64() >> rng.below(64))),
            accurate_ecn: (rng.below(2) == 0).then(|| any_feedback(rng)),
            window_segments: (rng.below(6) == 0).then(|| rng.next_u64() as u32 >> rng.below(32)),
            nic_backlog_bytes: rng.below(1_000_000),
        };
        let ack = Acknowledgment { segment, blocks: &blocks, extras: (rng.below(4) > 0).then_some(&extras) };
        self.handled += 1;
        if let Err(error) = self.sender.handle_ack(self.now, &ack) {
            self.rejected += 1;
            assert!(!error.to_string().is_empty());
        }
    }
}

fn any_feedback(rng: &mut Stream) -> AccurateEcho {
    let mut counter = || rng.next_u64() as u32 >> rng.below(32);
    let [ect0_bytes, ce_bytes, ect1_bytes] = [counter(), counter(), counter()];
    let option = AccEcnOption { order: CounterOrder::Ect1First, ect0_bytes, ce_bytes, ect1_bytes };
    AccurateEcho { ace: rng.below(256) as u8, option: (rng.below(2) == 0).then_some(option) }
}

/// A peer sends random acknowledgments to each controller under random settings. The sender does not panic, with
/// overflow checks enabled, and never has more in flight than was written. An honest peer can still complete the
/// transfer at the end.
#[test]
fn no_peer_can_break_a_sender() {
    for (index, controller) in Registry::built_in().all().iter().enumerate() {
        for seed in 0..6 {
            let mut rng = Stream::new(seed, Domain::Test, index as u64);
            let config = config(&mut rng);
            let cc = build(controller.name, &Values::default(), &Blueprint::of_any(MSS, &Values::default()));
            let mut victim = Victim {
                sender: Sender::new(
                    config,
                    cc.expect("defaults are allowed"),
                    Stream::new(seed, Domain::Controller, 0),
                ),
                now: Time::ZERO,
                highest: 0,
                handled: 0,
                rejected: 0,
            };
            victim.sender.write(SEGMENTS * MSS);
            victim.send();
            victim.acknowledge_at_random(&mut rng);
            assert_eq!((victim.handled, victim.rejected), (1, 1), "rejected before the connection is open");
            victim.now += Dur::from_ms(20);
            victim.sender.handle_syn_ack_flags(rng.below(256) as u8);
            victim.sender.handle_syn_ack(victim.now, Some(Rate::from_mbps(10)));
            for _ in 0..ACKNOWLEDGMENTS {
                victim.now += Dur::from_us(rng.below(2_000));
                victim.send();
                victim.acknowledge_at_random(&mut rng);
                if victim.sender.next_timer() <= victim.now {
                    victim.sender.handle_timer(victim.now);
                }
                assert!(victim.sender.in_flight_bytes() <= 2 * SEGMENTS * MSS, "{}", controller.name);
                assert!(victim.sender.acknowledged() <= SEGMENTS && victim.highest <= SEGMENTS, "{}", controller.name);
            }
            assert!(victim.rejected > victim.handled / 10 && victim.rejected < victim.handled, "{}", controller.name);
            finish(controller.name, victim);
        }
    }
}

/// Completes the transfer with a peer that acknowledges everything.
fn finish(name: &str, mut victim: Victim) {
    let mut rounds = 0;
    while !victim.sender.is_done() {
        victim.send();
        let segment = AckSegment::plain(victim.highest, victim.highest.saturating_sub(1));
        match victim.sender.handle_ack(victim.now, &Acknowledgment::of(segment, &[])) {
            // Segments below the highest one from the tail were not all sent. An honest peer reports those from the
            // tail by SACK.
            Err(AckError::NeverSent { .. }) => {
                let first = victim.sender.acknowledged();
                let segment = AckSegment::plain(first, first);
                let all = [SackBlock { start: first, end: victim.highest }];
                let result = victim.sender.handle_ack(victim.now, &Acknowledgment::of(segment, &all));
                assert_eq!(result, Ok(()), "{name}");
            }
            result => assert_eq!(result, Ok(()), "{name}"),
        }
        let timer = victim.sender.next_timer();
        if timer != Time::NEVER {
            victim.now = victim.now.max(timer);
            victim.sender.handle_timer(victim.now);
        }
        rounds += 1;
        assert!(rounds < 200_000, "{name} is stuck: {:?}", victim.sender);
    }
}

/// Without validation, blocks beyond the data sent would make the scoreboard allocate gigabytes.
#[test]
fn blocks_beyond_the_data_sent_allocate_no_memory() {
    let mut values = Values::default();
    values.set("initial_window", Value::Whole(10));
    let cc = build("newreno", &values, &Blueprint::of_any(MSS, &Values::default())).expect("allowed");
    let config = TransportConfig { mss_bytes: MSS, ..TransportConfig::default() };
    let mut sender = Sender::new(config, cc, Stream::new(1, Domain::Controller, 0));
    sender.write_without_end();
    sender.poll_transmit(Time::ZERO, true);
    let now = Time::ZERO + Dur::from_ms(10);
    sender.handle_syn_ack(now, None);
    while sender.poll_transmit(now, true).is_some() {}
    let in_flight = sender.in_flight_bytes();
    for (start, end) in [(4_000_000_000, 4_100_000_000), (1, 2_000_000_000), (5, 4), (9, 11)] {
        let block = [SackBlock { start, end }];
        let result = sender.handle_ack(now, &Acknowledgment::of(AckSegment::plain(0, 3), &block));
        assert_eq!(result, Err(AckError::Block { start, end, sent: 10 }));
    }
    assert_eq!((sender.in_flight_bytes(), sender.counts().retransmissions), (in_flight, 0));
    assert!(sender.memory_bytes() < 4_000, "{} bytes", sender.memory_bytes());
}

/// For arbitrary segments, a receiver stays within its window and its number of ranges, and acknowledges only segments
/// that have arrived.
#[test]
fn no_peer_can_break_a_receiver() {
    for seed in 0..300 {
        let mut rng = Stream::new(seed, Domain::Test, 7);
        let config = TransportConfig {
            receive_window_bytes: Some(100 * MSS),
            held_ranges: 1 + rng.below(20) as usize,
            delayed_ack: (seed % 3 == 0).then(|| DelayedAck { every_segments: 2, timeout: Dur::from_ms(40) }),
            ..config(&mut rng)
        };
        let config = TransportConfig { mss_bytes: MSS, ..config };
        let mut receiver = Receiver::new(&config);
        let mut arrived = std::collections::BTreeSet::new();
        for step in 0..2_000 {
            let now = Time::ZERO + Dur::from_ms(step);
            let seq = number(&mut rng, receiver.next_expected() + 20);
            let (class, marked) = (rng.below(3) as u8, rng.below(9) == 0);
            let ack = if rng.below(4) == 0 {
                let segments = 1 + rng.below(5) as u32;
                arrived.extend((0..u64::from(segments)).filter_map(|more| seq.checked_add(more)));
                receiver.handle_chunk(
                    now,
                    Chunk {
                        first: seq,
                        segments: if rng.below(50) == 0 { u32::MAX } else { segments },
                        payload_bytes: 1_000,
                        last_payload_bytes: 1_000,
                        class,
                        retransmission: rng.below(4) == 0,
                        window_reduced: rng.below(20) == 0,
                        marked,
                    },
                )
            } else {
                arrived.insert(seq);
                let window_reduced = rng.below(20) == 0;
                let segment = Segment { seq, payload_bytes: 1_000, class, retransmission: false, window_reduced };
                receiver.handle_data(now, segment, marked)
            };
            let first_missing = (0..).find(|seq| !arrived.contains(seq)).unwrap_or(0);
            assert!(receiver.next_expected() <= first_missing, "seed {seed}");
            assert!(ack.is_none_or(|ack| ack.cumulative == receiver.next_expected()));
            for block in receiver.sack_blocks() {
                assert!((block.start..block.end).all(|seq| arrived.contains(&seq)), "seed {seed}: {block:?}");
            }
            assert!(receiver.held_bytes() <= (receiver.next_expected() + 100) * 1_000);
            assert!(receiver.memory_bytes() < 5_000, "{} bytes", receiver.memory_bytes());
            receiver.handle_timer(now);
        }
        assert!(receiver.refused() > 0 && receiver.next_expected() > 0, "seed {seed}");
    }
}
