//! The effect of noisy hosts on one flow, as its sender sees it.

use super::World;
use crate::config::{Discipline, FullInterface, Machine, QueueSpec, RoomNeeded, Routing, RunConfig, Scheme, Threads};
use crate::engine::fabric::TreeFabric;
use crate::flow::{FlowSpec, NoFlows};
use crate::hosts::{HostAt, HostSpec, Interrupts, TimestampAt};
use crate::records::Records;
use crate::routing::network::{Limit, Network, NodeId, NodeKind};
use crate::routing::routes::Routes;
use crate::wire::telemetry::TelemetryKind;
use sparelane_cc::{Ack, Congestion, CongestionControl, Cx, Limits, Needs, Registry, Sent, Values};
use sparelane_core::{Dur, Rate, Time};
use sparelane_transport::TransportConfig;
use std::sync::{Arc, Mutex};

const LEFT: NodeId = NodeId(1);
const RIGHT: NodeId = NodeId(2);
/// A packet of 1500 bytes takes 1.2 us on each of the two cables, with a delay of 10 us on each.
const RATE: Rate = Rate::from_gbps(10);
const WAY: Dur = Dur::from_ns(22_400);
/// An acknowledgment takes 32 ns on each.
const WAY_BACK: Dur = Dur::from_ns(20_064);
/// The pace of the flow: a packet of 1500 bytes every 12 us.
const PACE: Rate = Rate::from_gbps(1);
const GAP: Dur = Dur::from_us(12);

/// The actions of a sender and the acknowledgments it got.
#[derive(Debug, Default)]
struct Log {
    /// The send time of each segment, by number.
    sent: Vec<Time>,
    /// The arrival of each acknowledgment, the segment that caused it, and the reported arrival of that segment.
    acknowledged: Vec<(Time, u64, Time)>,
    delays: Vec<Dur>,
}

/// A controller that records all calls. Its window never limits; a pace is optional.
#[derive(Debug)]
struct Spy {
    pacing: Option<Rate>,
    needs: Needs,
    log: Arc<Mutex<Log>>,
}

impl CongestionControl for Spy {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        let mut log = self.log.lock().expect("one thread");
        log.acknowledged.extend(ack.received.map(|received| (cx.now, received.segment, received.at)));
        log.delays.extend(ack.one_way_delay);
    }

    fn on_congestion(&mut self, event: Congestion, _cx: &mut Cx<'_>) {
        panic!("nothing is lost: {event:?}");
    }

    fn on_sent(&mut self, sent: &Sent, cx: &mut Cx<'_>) {
        let mut log = self.log.lock().expect("one thread");
        assert_eq!(sent.segment as usize, log.sent.len(), "order");
        log.sent.push(cx.now);
    }

    fn limits(&self) -> Limits {
        Limits { cwnd_bytes: 1 << 40, pacing: self.pacing }
    }
}

/// A run of one flow from left to right.
struct Case {
    left: HostSpec,
    right: HostSpec,
    transport: TransportConfig,
    pacing: Option<Rate>,
    needs: Needs,
    segments: u64,
}

impl Case {
    /// A paced flow that gets receive times. Only the receiving host may be noisy.
    fn to(right: HostSpec) -> Case {
        let needs = Needs { segments: true, receive_time: true, ..Needs::default() };
        let transport = TransportConfig::default();
        Case { left: HostSpec::default(), right, transport, pacing: Some(PACE), needs, segments: 400 }
    }

    fn run(self) -> (Log, Records) {
        let mut network = Network::default();
        let router = network.add("router", NodeKind::Router);
        let [left, right] = ["left", "right"].map(|name| network.add(name, NodeKind::Host));
        for host in [left, right] {
            network.connect(host, router, RATE, Dur::from_us(10));
        }
        let limit = Limit::Bytes(1 << 30);
        let (discipline, bars_low_priority) = (Discipline::Fifo, false);
        let queue = QueueSpec {
            mark_ramp: None,
            discipline,
            limit,
            mark_at: None,
            bars_low_priority,
            push_out: true,
            room: RoomNeeded::Packet,
            rcp: None,
            telemetry: TelemetryKind::Port,
        };
        let scheme = Scheme {
            name: "it".to_owned(),
            controller: sparelane_cc::algos::constant::CONTROLLER,
            registry: Registry::built_in(),
            values: Values::default(),
            inner: Values::default(),
            transport: self.transport.into(),
            class: 0,
        };
        let config = RunConfig {
            network,
            routing: Routing::SinglePath,
            router_queue: queue.clone(),
            nic_queue: queue,
            nic_full: FullInterface::Drop,
            switch: None,
            queues_at: Vec::new(),
            host: self.left,
            hosts_at: vec![HostAt { host: RIGHT, spec: self.right }],
            schemes: vec![scheme],
            // The tests open flows themselves.
            flows: Box::new(NoFlows),
            cross_traffic: Vec::new(),
            drops: Vec::new(),
            changes: Vec::new(),
            stop: Time::ZERO + Dur::from_secs(10),
            seed: 1,
            observers: Vec::new(),
            threads: Threads::One,
            machine: Machine::default(),
            domains: None,
            traffic_classes: Vec::new(),
        };
        let routes = Routes::of(&config.network, config.routing, config.seed);
        let mut world = World::<TreeFabric<64>>::new(config, routes);
        let log = Arc::default();
        let spy = Spy { pacing: self.pacing, needs: self.needs, log: Arc::clone(&log) };
        let size_bytes = self.segments * self.transport.mss_bytes;
        let paths = [(left, right), (right, left)]
            .map(|(from, to)| world.layout.routes.links(&world.layout.network, from, to, 0).expect("a path"));
        world.open_flow(FlowSpec::new(Time::ZERO, LEFT, RIGHT, Some(size_bytes), 0), paths, Box::new(spy));
        while !world.advance(1_000).expect("the laws hold") {}
        assert!(world.flows.iter().all(|flow| !flow.open), "an end");
        assert_eq!(world.blocks_in_use(), 0);
        let records = world.finish().expect("the laws hold");
        let log = Arc::into_inner(log).expect("the flow is over").into_inner().expect("one thread");
        (log, records)
    }
}

fn gaps(times: impl IntoIterator<Item = Time>) -> Vec<Dur> {
    let times: Vec<_> = times.into_iter().collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn without_noise_every_stamp_is_the_instant_of_arrival() {
    let (log, _) = Case::to(HostSpec::default()).run();
    assert_eq!(log.acknowledged.len(), 400);
    for (&(now, segment, at), &sent) in log.acknowledged.iter().zip(&log.sent) {
        assert_eq!((at, now), (sent + WAY, sent + WAY + WAY_BACK), "segment {segment}");
    }
}

/// Fig. 2c of the RAPID paper (INFOCOM 2017): the first packet after an interrupt has waited for all others.
#[test]
fn coalescing_turns_even_gaps_into_spikes_and_dips() {
    for cost in [Dur::ZERO, Dur::from_us(1)] {
        let interrupts = Some(Interrupts { packets: 8, after: Dur::from_ms(1), ring: u32::MAX, stalls: None });
        let (log, _) = Case::to(HostSpec { interrupts, receive_cost: cost, ..HostSpec::default() }).run();
        let gaps = gaps(log.acknowledged.iter().map(|&(_, _, at)| at));
        for (number, gap) in gaps.into_iter().enumerate() {
            let expected = if (number + 1) % 8 == 0 { (GAP * 8).saturating_sub(cost * 7) } else { cost };
            assert_eq!(gap, expected, "gap {number}");
        }
    }
}

/// A few packets do not wait for more: the SYN, and the last of the data.
#[test]
fn an_interrupt_comes_after_the_longest_wait() {
    let interrupts = Some(Interrupts { packets: u32::MAX, after: Dur::from_us(50), ring: u32::MAX, stalls: None });
    let (log, _) = Case::to(HostSpec { interrupts, ..HostSpec::default() }).run();
    // The SYN waits for 50 us. Segments arrive every 12 us, so five of them arrive within 50 us.
    assert_eq!(log.sent[0], Time::ZERO + Dur::from_ns(20_064 + 50_000) + WAY_BACK);
    for batch in log.sent.chunks(5).zip(log.acknowledged.chunks(5)) {
        let due = batch.0[0] + WAY + Dur::from_us(50);
        assert!(batch.1.iter().all(|&(_, _, at)| at == due), "{batch:?}");
    }
}

/// Acknowledgments wait at the sender as data does at the receiver, and cost its processor as much.
#[test]
fn acknowledgments_are_coalesced_too() {
    let interrupts = Some(Interrupts { packets: 4, after: Dur::from_ms(1), ring: u32::MAX, stalls: None });
    let mut case = Case::to(HostSpec::default());
    case.left = HostSpec { interrupts, receive_cost: Dur::from_us(2), ..HostSpec::default() };
    let (log, _) = case.run();
    let gaps = gaps(log.acknowledged.iter().map(|&(now, ..)| now));
    for (number, gap) in gaps.into_iter().enumerate() {
        let expected = if (number + 1) % 4 == 0 { (GAP * 4).saturating_sub(Dur::from_us(6)) } else { Dur::from_us(2) };
        assert_eq!(gap, expected, "gap {number}");
    }
}

#[test]
fn stamps_are_in_whole_ticks_of_the_clock() {
    for tick in [Dur::from_us(1), Dur::from_ms(1)] {
        let (log, _) = Case::to(HostSpec { timestamp_clock: Some(tick), ..HostSpec::default() }).run();
        assert_eq!(log.acknowledged.len(), 400);
        for (&(_, _, at), &sent) in log.acknowledged.iter().zip(&log.sent) {
            let arrived = sent + WAY;
            assert!(at.as_ps() % tick.as_ps() == 0 && at <= arrived && arrived - at < tick, "{at} for {arrived}");
        }
    }
}

#[test]
fn one_way_delays_go_by_the_clocks_of_both_ends() {
    let noisy = HostSpec { timestamp_clock: Some(Dur::from_us(1)), ..HostSpec::default() };
    let mut case = Case { left: noisy, ..Case::to(noisy) };
    case.needs = Needs { segments: true, one_way_delay: true, ..Needs::default() };
    let (log, _) = case.run();
    let ticks = |at: Time| at.as_ps() / 1_000_000;
    let expected: Vec<_> = log.sent.iter().map(|&sent| Dur::from_us(ticks(sent + WAY) - ticks(sent))).collect();
    assert_eq!((log.delays.len(), log.delays), (400, expected));
}

/// Data arrives every 12 us, so the processor is busy with acknowledgments for a third of the time.
#[test]
fn acknowledgments_leave_late_by_their_cost_and_in_order() {
    let mean = Dur::from_us(4);
    for stamped_at in [TimestampAt::Arrival, TimestampAt::Acknowledgment] {
        let host = HostSpec { ack_cost: mean, timestamp_at: stamped_at, ..HostSpec::default() };
        let (log, _) = Case::to(host).run();
        assert!(log.acknowledged.iter().map(|&(_, segment, _)| segment).eq(0..400), "order");
        let mut late_us = 0;
        for (&(now, _, at), &sent) in log.acknowledged.iter().zip(&log.sent) {
            let (arrived, left) = (sent + WAY, Time::ZERO + (now - Time::ZERO).saturating_sub(WAY_BACK));
            // Those that leave at the same time queue at the interface for their transmission time.
            assert!(arrived <= left && left - arrived <= mean * 20, "{}", left - arrived);
            match stamped_at {
                TimestampAt::Arrival => assert_eq!(at, arrived),
                TimestampAt::Acknowledgment => assert!(at <= left && left - at < Dur::from_ns(200), "{at} {left}"),
            }
            late_us += (left - arrived).as_ps() / 1_000_000;
        }
        // Each is late by the mean on its own; some also wait for earlier ones.
        assert!((3..6).contains(&(late_us / 400)), "{} us on average", late_us / 400);
    }
}

#[test]
fn late_timers_are_late_by_their_mean_and_the_pace_holds() {
    let mean = Dur::from_us(5);
    let mut case = Case::to(HostSpec::default());
    case.left = HostSpec { timer_error: mean, ..HostSpec::default() };
    case.segments = 20_000;
    let (log, _) = case.run();
    let due = |number: u64| log.sent[0] + GAP * number;
    let lateness = |number: u64| log.sent[number as usize].saturating_since(due(number));
    assert!((0..20_000).all(|number| log.sent[number as usize] >= due(number)), "none is early");
    // Segments that are due by then leave with the late one; every other one waits for its own timer.
    let timers: Vec<_> = (1..20_000).filter(|&n| log.sent[n as usize] > log.sent[n as usize - 1]).collect();
    let mean_ns = timers.iter().map(|&number| lateness(number).as_ps() / 1000).sum::<u64>() / timers.len() as u64;
    assert!((4_850..5_150).contains(&mean_ns), "{mean_ns} ns on average");
    // A share of exp(-12/5), or 9 %, of the timers is later than a gap.
    let share = timers.iter().filter(|&&number| lateness(number) >= GAP).count() as f64 / timers.len() as f64;
    assert!((0.08..0.10).contains(&share), "{share}");
    assert!(timers.len() < 19_000, "{} timers", timers.len());
}

#[test]
fn a_host_sends_at_most_one_packet_in_the_time_that_it_costs() {
    let cost = Dur::from_us(5);
    let mut case = Case::to(HostSpec::default());
    case.left = HostSpec { send_cost: cost, ..HostSpec::default() };
    (case.pacing, case.segments) = (None, 1_000);
    let (_, records) = case.run();
    // Of the 5 us, a packet of 1500 bytes is on the cable for 1.2 us. The queue is large enough to lose nothing.
    let handshake = cost + Dur::from_ns(20_032) + WAY_BACK;
    let expected = handshake + cost * 1_000 + WAY.saturating_sub(Dur::from_ns(1_200));
    assert_eq!(Dur::from_ps(records.flows.finish_ps[0]), expected);
    assert_eq!(records.flows.lost_packets, [0]);
}

/// The processor has no effect if bytes take longer on the cable.
#[test]
fn what_sending_costs_is_no_slower_than_the_cable() {
    let finish = |send_cost: Dur| {
        let mut case = Case::to(HostSpec::default());
        case.left = HostSpec { send_cost, ..HostSpec::default() };
        case.pacing = None;
        case.run().1.flows.finish_ps[0]
    };
    assert_eq!(finish(Dur::from_ns(1_200)) - finish(Dur::ZERO), 1_200_000 - 32_000);
}

/// Jumbo frames in chunks, with every kind of noise enabled.
#[test]
fn jumbo_frames_in_chunks_pass_noisy_hosts() {
    let tick = Dur::from_us(1);
    let host = HostSpec {
        receive_cost: Dur::from_us(1),
        interrupts: Some(Interrupts { packets: 16, after: Dur::from_us(40), ring: u32::MAX, stalls: None }),
        timestamp_at: TimestampAt::Arrival,
        timestamp_clock: Some(tick),
        ack_cost: Dur::from_us(60),
        timer_error: Dur::from_us(2),
        send_cost: Dur::from_us(3),
    };
    let mut case = Case { left: host, ..Case::to(host) };
    case.transport = TransportConfig { mss_bytes: 8948, send_batch: 4, receive_batch: 3, ..TransportConfig::default() };
    case.pacing = Some(Rate::from_gbps(8));
    let (log, records) = case.run();
    assert_eq!((log.sent.len(), records.flows.delivered_bytes[0]), (400, 400 * 8948));
    // 400 segments in chunks of three are at least 134 chunks, and each has one acknowledgment, in order.
    assert!((134..=400).contains(&log.acknowledged.len()), "{}", log.acknowledged.len());
    assert!(log.acknowledged.is_sorted(), "{:?}", log.acknowledged);
    for &(now, segment, at) in &log.acknowledged {
        let sent = log.sent[segment as usize];
        // A frame of 8988 bytes takes 7.2 us on each cable; in addition it waits and is processed.
        assert!(at + tick > sent + Dur::from_ns(34_380) && at < now && at.as_ps() % tick.as_ps() == 0, "{at} {sent}");
    }
    assert!(log.acknowledged.last().is_some_and(|&(_, segment, _)| segment == 399));
}

/// The memory of a million flows in docs/speed-and-ns3.md depends on this size.
#[test]
fn a_flow_takes_one_and_a_half_kilobytes() {
    assert!(size_of::<super::flow::Flow>() <= 1024, "{}", size_of::<super::flow::Flow>());
}
