//! Hosts and their flows on top of a fabric: what happens when a packet arrives, a timer fires or a
//! flow starts.

mod acknowledge;
mod datagrams;
mod deliver;
mod finish;
mod follow;
mod interface;
mod positions;
mod receive;
mod start;
#[cfg(test)]
mod tests;
mod watch;

use self::follow::Followers;
use self::interface::Queueing;
use self::positions::Positions;
use crate::config::{RunConfig, Scheme};
use crate::cross;
use crate::engine::fabric::{Alarm, Event, Fabric};
use crate::engine::timers::{Entry, Side, Timers};
use crate::flow::{FlowSource, FlowSpec};
use crate::hosts::application::Application;
use crate::hosts::pull::{Puller, Pullers};
use crate::hosts::{Departures, Hosts, Interfaces, Offload, Processors};
use crate::observe::Observers;
use crate::physics::PhysicsViolation;
use crate::records::{CLASSES, Records};
use crate::routing::network::{Cable, Network, NodeId, NodeKind};
use crate::routing::routes::{Routes, link_of};
use crate::wire::link::LinkSpec;
use crate::wire::memory::SharedMemory;
use crate::wire::packet::{Fields, Flags, Form, NO_BLOCKS, Packet};
use crate::wire::rate_header::decode_rate;
use crate::wire::sack_slab::BlockSlab;
use sparelane_cc::Needs;
use sparelane_core::{Dur, Seq, Time};
use sparelane_transport::{AckSegment, Extras, Receiver, Segment, Sender, Transmit};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// What the acknowledgments of a flow say of the time at which their triggers arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Nothing,
    /// How long they were under way.
    Delay,
    ReceiveTime,
}

impl Echo {
    fn of(needs: Needs) -> Echo {
        match (needs.one_way_delay, needs.receive_time) {
            (false, false) => Echo::Nothing,
            (true, false) => Echo::Delay,
            (false, true) => Echo::ReceiveTime,
            (true, true) => unreachable!("no controller needs both delays and receive times"),
        }
    }
}

/// One open flow: both ends of its connection. What every packet touches comes first.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// Its packets in queues and on wires.
    in_network: u32,
    /// Where its routes start in the fabric's table.
    forward: u32,
    reverse: u32,
    /// Segments that make it complete, or its first write; `Seq::MAX` for a flow without end that is written at once.
    segments: Seq,
    /// The earliest live entry of the sender in the timers.
    sender_entry: Time,
    /// What the network adds to the classes that both ends know: class 0 of the transport is this one on the wire.
    base_class: u8,
    /// Whether plain data packets are with the receiver as they arrive, and it answers with plain acknowledgments.
    receives_plainly: bool,
    /// Whether its sender hears more than usual: a rate, a time, or what waits at its interface.
    reads_extras: bool,
    /// Whether it has to know whether its interface is idle, or has room.
    waits_for_interface: bool,
    /// Whether it asks for a rate, or is followed.
    sends_by_long_way: bool,
    /// Whether its acknowledgments echo anything, leave late, or are followed.
    acks_carry_extras: bool,
    /// Whether its data packets carry the time at which they were sent: delays are echoed or measured.
    stamps: bool,
    /// Bytes of header on each of its packets.
    header_bytes: u8,
    /// Its data packets that are sent for the first time, and its acknowledgments: class 0, with nothing to report.
    data: Form,
    ack: Form,
    /// Data packets, by class on the wire.
    sent: [u64; CLASSES],
    pub(crate) receiver: Receiver,
    pub(crate) sender: Sender,
    /// Its number, in order of start; also its row in the results.
    pub(crate) id: u32,
    start: Time,
    finish: Time,
    /// What its packets pass before they are with the receiver, if anything.
    offload: Option<Box<Offload>>,
    /// The least completion time that its path allows.
    ideal: Dur,
    /// The earliest live entry of the receiver in the timers.
    receiver_entry: Time,
    uses_tail: bool,
    /// Whether its packets towards the receiver carry a rate header.
    asks_for_rate: bool,
    /// Whether observers follow its packets.
    is_followed: bool,
    /// What the next acknowledgments echo of a rate header; zero before there was one.
    echoed_rate: u32,
    /// What its acknowledgments say of the time at which their triggers arrived.
    echo: Echo,
    /// What the next acknowledgment echoes, nanoseconds, where `offload` does not say.
    echo_ns: u32,
    /// The most by which its acknowledgments leave late.
    ack_cost: Dur,
    /// Whether its controller reads what waits in the queue of its interface.
    reads_backlog: bool,
    pub(crate) open: bool,
    /// Whether it waits for room in the queue of its interface.
    queueing: bool,
    /// Whether it waits for its interface to be idle.
    pulling: bool,
    lost: u64,
    /// Who writes it, where it is written in pieces.
    application: Option<Box<Application>>,
    /// Who waits for it, as its source says.
    waiter: Option<u64>,
    /// How many links its routes have, there and back.
    route_lengths: [u32; 2],
}

impl Flow {
    /// What acknowledgment `packet` says besides the usual, and what waits at the interface of the sender.
    #[inline(never)]
    fn extras<F: Fabric>(&self, blocks: &BlockSlab, fabric: &mut F, now: Time, packet: Packet) -> Extras {
        let mut extras = Extras::default();
        if packet.flags().has(Flags::RATE_HEADER) {
            extras.explicit_rate = Some(decode_rate(blocks.rate_at(packet.blocks())));
        }
        if packet.flags().has(Flags::STAMPED) {
            let echo_ns = blocks.echo_at(packet.blocks());
            match self.echo {
                Echo::ReceiveTime => extras.received_at = Some(latest_instant(now, echo_ns)),
                _ => extras.one_way_delay = Some(Dur::from_ns(u64::from(echo_ns))),
            }
        }
        if self.reads_backlog {
            let uplink = fabric.first_link(self.forward);
            extras.nic_backlog_bytes = fabric.backlog_bytes(now, uplink);
        }
        extras
    }

    /// The receiver holds every byte in order; or, where the flow is written in pieces, the first write.
    fn reach(&mut self, now: Time) -> Result<(), PhysicsViolation> {
        let (flow, took) = (self.id, now - self.start);
        let check = |least| {
            if took < least { Err(PhysicsViolation::FasterThanItsPath { flow, took, least }) } else { Ok(()) }
        };
        if let Some(application) = &mut self.application {
            if application.first_held == Time::NEVER {
                application.first_held = now;
                check(application.first_least)?;
            }
            if !application.is_complete(self.receiver.held_bytes()) {
                return Ok(());
            }
        }
        self.finish = now;
        check(self.ideal)
    }
}

impl Flow {
    /// A data packet of this flow, which is in `slot`, on its way from now on.
    #[inline(always)]
    fn data_packet(&mut self, slot: u32, segment: Segment, now: Time) -> Packet {
        let wire_bytes = segment.payload_bytes + u32::from(self.header_bytes);
        let mut packet = Packet::of(self.data, slot, segment.seq as u32, self.forward, 0, wire_bytes);
        packet.lower(segment.class);
        if segment.retransmission || segment.window_reduced || self.stamps {
            self.add_uncommon_fields(&mut packet, segment, now);
        }
        self.in_network += 1;
        self.sent[usize::from(packet.class()) & (CLASSES - 1)] += 1;
        packet
    }

    /// Adds to a data packet what is not in its form.
    fn add_uncommon_fields(&self, packet: &mut Packet, segment: Segment, now: Time) {
        if segment.retransmission {
            // RFC 3168 section 6.1.5: what is sent again is not ECN-capable.
            packet.clear(Flags::ECN_CAPABLE);
            packet.set(Flags::RETRANSMISSION);
        }
        if segment.window_reduced {
            packet.set(Flags::ECN_ANSWER);
        }
        if self.stamps {
            packet.set_blocks(nanoseconds(now));
        }
    }

    /// An acknowledgment of this flow, which is in `slot`, on its way from now on.
    #[inline(always)]
    fn ack_packet(&mut self, slot: u32, ack: AckSegment, blocks: &mut BlockSlab) -> Packet {
        let mut packet = self.plain_ack(slot, ack.cumulative as u32, ack.trigger as u32);
        packet.set_blocks(blocks.store(self.receiver.sack_blocks()));
        if ack.trigger_retransmitted {
            packet.set(Flags::RETRANSMISSION);
        }
        if ack.ecn_echo {
            packet.set(Flags::ECN_ANSWER);
        }
        packet.lower(ack.class);
        packet
    }

    /// As `ack_packet`, with nothing else to report than these low bits of numbers.
    #[inline(always)]
    fn plain_ack(&mut self, slot: u32, cumulative: u32, trigger: u32) -> Packet {
        self.in_network += 1;
        Packet::of(self.ack, slot, cumulative, self.reverse, trigger, u32::from(self.header_bytes))
    }

    /// The class on the wire of the segment that waits for the interface to be idle, if one does.
    fn tail_class(&self) -> Option<u8> {
        self.sender.tail_class().map(|class| self.base_class + class)
    }
}

/// The whole simulated world.
pub(crate) struct World<F> {
    pub(crate) fabric: F,
    pub(crate) flows: Vec<Flow>,
    /// Slots to use again, the lowest first: so a flow's slot does not depend on the order in which others ended.
    free_slots: BinaryHeap<Reverse<u32>>,
    timers: Timers,
    blocks: BlockSlab,
    pullers: Pullers,
    /// Where senders wait for room in the queue of their interface.
    queueing: Option<Box<Queueing>>,
    hosts: Hosts,
    interfaces: Interfaces,
    processors: Processors,
    departures: Departures,
    source: Box<dyn FlowSource>,
    upcoming: Option<FlowSpec>,
    followers: Followers,
    network: Network,
    links: Vec<LinkSpec>,
    routes: Routes,
    /// Where routes are in the fabric's table.
    positions: Positions,
    cross_traffic: Vec<cross::Source>,
    schemes: Vec<Scheme>,
    drops: Vec<crate::wire::fault::Drop>,
    observers: Observers,
    /// Queues that may be looked at between packets.
    queues_in_view: BTreeSet<(NodeId, NodeId)>,
    traffic_classes: Vec<String>,
    seed: u64,
    stop: Time,
    pub(crate) now: Time,
    pub(crate) records: Records,
    open_flows: u64,
    injected: u64,
    delivered: u64,
    dropped: u64,
}

/// Both directions of every cable, in the order of `link_of`.
fn link_specs(config: &RunConfig, hosts: &Hosts, in_view: &BTreeSet<(NodeId, NodeId)>) -> Vec<LinkSpec> {
    let datagrams = config.cross_traffic.iter().map(|traffic| u64::from(traffic.packet_bytes));
    let largest_bytes = largest_packet_bytes(&config.schemes).max(datagrams.max().unwrap_or(0));
    let differing: BTreeMap<_, _> =
        config.queues_at.iter().map(|at| ((at.cable, at.from), Arc::new(at.queue.clone()))).collect();
    let dropping = config.drops.iter().map(|drop| (drop.from, drop.to));
    let watched: BTreeSet<_> = dropping.chain(in_view.iter().copied()).collect();
    let (router_queue, nic_queue) = (Arc::new(config.router_queue.clone()), Arc::new(config.nic_queue.clone()));
    let spec = |index: usize, cable: &Cable, from: NodeId| {
        let is_host = config.network.nodes[from.index()].kind == NodeKind::Host;
        let usual = if is_host { &nic_queue } else { &router_queue };
        let differs = differing.get(&(index, from));
        let queue = Arc::clone(differs.unwrap_or(usual));
        let limit = cable.limit.filter(|_| differs.is_none()).unwrap_or(queue.limit);
        let memory = config.switch.filter(|_| !is_host).map(|spec| SharedMemory { router: from, spec });
        let (rate, delay, loss) = (cable.rate_from(from), cable.delay, cable.loss_from(from));
        let least = if is_host { hosts.spec(from).send_cost } else { Dur::ZERO };
        let is_watched = watched.contains(&(from, if from == cable.a { cable.b } else { cable.a }));
        LinkSpec { rate, delay, queue, limit, loss, least, memory, is_watched, largest_bytes }
    };
    let cables = config.network.cables.iter().enumerate();
    cables.flat_map(|(index, cable)| [spec(index, cable, cable.a), spec(index, cable, cable.b)]).collect()
}

impl<F: Fabric> World<F> {
    /// The world before anything happens, with the routes of its network. `config` has passed `simulation::check`.
    pub(crate) fn new(mut config: RunConfig, routes: Routes) -> World<F> {
        let hosts = Hosts::new(config.host, &config.hosts_at);
        let mut observers = Observers::new(std::mem::take(&mut config.observers));
        let queues_in_view = observers.take_queues();
        let links = link_specs(&config, &hosts, &queues_in_view);
        let fabric = F::new(&links, config.seed, config.stop);
        let mut world = World {
            fabric,
            flows: Vec::new(),
            free_slots: BinaryHeap::new(),
            timers: Timers::default(),
            blocks: BlockSlab::default(),
            pullers: Pullers::default(),
            queueing: Queueing::of(config.nic_full),
            hosts,
            interfaces: Interfaces::new(config.seed),
            processors: Processors::default(),
            departures: Departures::new(config.seed),
            source: config.flows,
            upcoming: None,
            followers: Followers::default(),
            network: config.network,
            links,
            routes,
            positions: Positions::default(),
            cross_traffic: Vec::new(),
            schemes: config.schemes,
            drops: config.drops,
            observers,
            queues_in_view,
            traffic_classes: config.traffic_classes,
            seed: config.seed,
            stop: config.stop,
            now: Time::ZERO,
            records: Records::default(),
            open_flows: 0,
            injected: 0,
            delivered: 0,
            dropped: 0,
        };
        world.fabric.arm(Alarm::Stop, Time::from_ps(world.stop.as_ps().saturating_add(1)));
        world.await_next_flow();
        world.start_cross_traffic(config.cross_traffic);
        world.await_sample();
        world
    }

    /// Handles all events until `until`, that instant's among them. Returns whether the run is over.
    pub(crate) fn advance_to(&mut self, until: Time) -> Result<bool, PhysicsViolation> {
        if until < self.now {
            return Ok(false);
        }
        self.fabric.arm(Alarm::Pause, until);
        let finished = self.advance(u64::MAX)?;
        self.now = self.now.max(until.min(self.stop));
        Ok(finished)
    }

    /// Handles `max_events` events at hosts, and at least one, or those until a pause. Returns whether the run is over.
    pub(crate) fn advance(&mut self, max_events: u64) -> Result<bool, PhysicsViolation> {
        for _ in 0..max_events.max(1) {
            let Some((now, event)) = self.fabric.next() else {
                self.now = self.stop;
                return Ok(true);
            };
            self.now = now;
            match event {
                Event::Delivered(packet) => self.deliver(packet)?,
                Event::AtInterface(packet) => self.wait_for_interrupt(packet)?,
                Event::Idle(link) => self.handle_idle(link),
                Event::Alarm(Alarm::Stop) => {
                    self.now = self.stop;
                    return Ok(true);
                }
                Event::Alarm(alarm) => {
                    self.handle_alarm(alarm)?;
                    if alarm == Alarm::Pause {
                        return Ok(false);
                    }
                }
            }
            while let Some(packet) = self.fabric.take_dropped() {
                self.handle_loss(packet);
            }
        }
        Ok(false)
    }

    #[inline(never)]
    fn handle_idle(&mut self, link: u32) {
        if self.queueing.is_some() {
            self.take_turns(link);
        }
        self.pull(link);
    }

    /// Whatever was dropped before an alarm is known when it goes off.
    #[inline(never)]
    fn handle_alarm(&mut self, alarm: Alarm) -> Result<(), PhysicsViolation> {
        while let Some(packet) = self.fabric.take_dropped() {
            self.handle_loss(packet);
        }
        match alarm {
            Alarm::Timer => self.fire_timers()?,
            Alarm::FlowStart => self.start_flows(),
            Alarm::Sample => self.sample(),
            Alarm::Stop | Alarm::Pause => {}
        }
        Ok(())
    }

    #[inline(always)]
    fn inject(&mut self, packet: Packet) {
        self.injected += 1;
        self.fabric.send(self.now, packet);
    }

    /// Lets a sender send what it may.
    #[inline(never)]
    fn send_allowed(&mut self, slot: u32) {
        self.send_allowed_inline(slot);
    }

    #[inline(always)]
    fn send_allowed_inline(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.waits_for_interface || flow.sends_by_long_way || !flow.sender.sends_plainly() {
            return self.send_allowed_by_long_way(slot);
        }
        while let Some(segment) = flow.sender.poll_plainly(self.now) {
            self.injected += 1;
            self.fabric.send(self.now, flow.data_packet(slot, segment, self.now));
        }
        self.watch_sender(slot);
    }

    #[inline(never)]
    fn send_allowed_by_long_way(&mut self, slot: u32) {
        loop {
            let flow = &mut self.flows[slot as usize];
            let next = if flow.waits_for_interface {
                self.poll_if_interface_allows(slot)
            } else {
                flow.sender.poll_transmit(self.now, false)
            };
            let Some(transmit) = next else { break };
            self.transmit(slot, transmit);
        }
        self.watch_sender(slot);
        if self.flows[slot as usize].waits_for_interface {
            self.await_idle(slot);
        }
    }

    #[inline(always)]
    fn transmit(&mut self, slot: u32, transmit: Transmit) {
        let flow = &mut self.flows[slot as usize];
        let packet = match transmit {
            Transmit::Syn => {
                flow.in_network += 1;
                control_packet(slot, flow.forward, Flags::SYN, flow)
            }
            Transmit::Data(segment) => flow.data_packet(slot, segment, self.now),
            // Windows are not advertised here, and nobody resets a connection.
            Transmit::Probe | Transmit::Reset => return,
        };
        if flow.sends_by_long_way {
            return self.send_by_long_way(packet);
        }
        self.inject(packet);
    }

    /// Sends a packet of a flow that asks for a rate, or whose packets are followed: not both.
    #[inline(never)]
    fn send_by_long_way(&mut self, mut packet: Packet) {
        let flow = &self.flows[packet.flow() as usize];
        if flow.is_followed {
            return self.send_followed(packet);
        }
        self.ask_for_rate(&mut packet);
        self.inject(packet);
    }

    /// Fills the rate header of a packet towards the receiver. A host asks for no more than its interface carries.
    fn ask_for_rate(&self, packet: &mut Packet) {
        let sender = &self.flows[packet.flow() as usize].sender;
        let interface = self.links[self.fabric.first_link(packet.route()) as usize].rate;
        let rate = sender.desired_rate().unwrap_or(interface);
        packet.ask_for(rate.min(interface), sender.srtt());
    }

    /// A flow with a tail left to send waits for its interface.
    fn await_idle(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        if flow.pulling {
            return;
        }
        let Some(class) = flow.tail_class() else { return };
        flow.pulling = true;
        let uplink = self.fabric.first_link(flow.forward);
        if self.pullers.wait(uplink, class, Puller { slot, flow: flow.id }) {
            self.fabric.wake_when_idle(self.now, uplink);
        }
    }

    /// The interface before `uplink` may be idle: those who wait send, one segment at a time.
    fn pull(&mut self, uplink: u32) {
        while self.fabric.is_idle(self.now, uplink) {
            let Some((waited_in, puller)) = self.pullers.next(uplink) else { return };
            let flow = &mut self.flows[puller.slot as usize];
            if !flow.open || flow.id != puller.flow {
                continue;
            }
            flow.pulling = false;
            if flow.tail_class() == Some(waited_in) {
                self.send_pulled(puller.slot);
            }
            self.await_idle(puller.slot);
        }
        if self.pullers.is_waiting(uplink) {
            self.fabric.wake_when_idle(self.now, uplink);
        }
    }

    /// One segment goes, or one chunk.
    fn send_pulled(&mut self, slot: u32) {
        while let Some(transmit) = self.flows[slot as usize].sender.poll_transmit(self.now, true) {
            self.transmit(slot, transmit);
            if !self.flows[slot as usize].sender.is_inside_chunk() {
                break;
            }
        }
        self.watch_sender(slot);
    }

    /// Enters the sender's timer if it is earlier than its entry.
    #[inline(always)]
    fn watch_sender(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let at = flow.sender.next_timer();
        if at < flow.sender_entry {
            flow.sender_entry = at;
            let entry = Entry { at, flow: flow.id, side: Side::Sender, slot };
            self.enter_timer(entry);
        }
    }

    fn watch_receiver(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let at = flow.receiver.next_timer();
        if at < flow.receiver_entry {
            flow.receiver_entry = at;
            let entry = Entry { at, flow: flow.id, side: Side::Receiver, slot };
            self.enter_timer(entry);
        }
    }

    fn enter_timer(&mut self, entry: Entry) {
        if self.timers.push(entry) {
            self.fabric.arm(Alarm::Timer, entry.at);
        }
    }

    fn fire_timers(&mut self) -> Result<(), PhysicsViolation> {
        while let Some(entry) = self.timers.pop_due(self.now) {
            if entry.side >= Side::Processor {
                self.fire_other_timer(entry)?;
                continue;
            }
            let flow = &mut self.flows[entry.slot as usize];
            if !flow.open || flow.id != entry.flow {
                continue;
            }
            match entry.side {
                Side::Sender if flow.sender_entry == entry.at => {
                    flow.sender_entry = Time::NEVER;
                    if flow.sender.next_timer() <= self.now {
                        flow.sender.handle_timer(self.now);
                        self.send_allowed(entry.slot);
                    } else {
                        self.watch_sender(entry.slot);
                    }
                }
                Side::Receiver if flow.receiver_entry == entry.at => {
                    flow.receiver_entry = Time::NEVER;
                    match flow.receiver.handle_timer(self.now) {
                        Some(ack) => self.send_ack(entry.slot, ack),
                        None => self.watch_receiver(entry.slot),
                    }
                }
                Side::Application => self.write_more(entry.slot),
                Side::Offload => self.time_out_chunk(entry.slot)?,
                _ => {}
            }
        }
        self.fabric.arm(Alarm::Timer, self.timers.earliest());
        Ok(())
    }

    /// A timer that is no flow's.
    fn fire_other_timer(&mut self, entry: Entry) -> Result<(), PhysicsViolation> {
        let host = NodeId(entry.slot);
        match entry.side {
            Side::Processor => self.finish_work(host)?,
            Side::Interface => self.time_out_interface(host)?,
            Side::Departure => self.let_acks_leave(host),
            _ => self.send_datagrams(entry.slot),
        }
        Ok(())
    }

    /// The application writes again.
    fn write_more(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        let Some(application) = &mut flow.application else { return };
        if let Some(after) = application.write(&mut flow.sender) {
            let entry = Entry { at: self.now + after, flow: flow.id, side: Side::Application, slot };
            self.enter_timer(entry);
        }
        self.send_allowed(slot);
    }

    /// A packet was dropped or lost.
    #[inline(never)]
    fn handle_loss(&mut self, packet: Packet) {
        self.dropped += 1;
        let Some(flow) = self.flows.get_mut(packet.flow() as usize) else { return self.lose_datagram(packet) };
        flow.in_network -= 1;
        flow.lost += u64::from(packet.flags().kind() == Flags::DATA);
        if flow.is_followed {
            self.tell_loss(packet);
        }
        if packet.flags().kind() == Flags::ACK {
            self.blocks.release(packet.blocks());
        }
        self.close_if_over(packet.flow());
    }

    /// A flow is over when both ends are done and none of its packets is under way.
    #[inline(always)]
    fn close_if_over(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        if flow.in_network == 0 && flow.finish != Time::NEVER && flow.sender.is_done() {
            self.close(slot);
        }
    }

    #[inline(never)]
    fn close(&mut self, slot: u32) {
        self.record(slot);
        let flow = &mut self.flows[slot as usize];
        flow.open = false;
        let id = flow.id;
        self.forget_drops(id, slot);
        let flow = &self.flows[slot as usize];
        for (at, links) in [flow.forward, flow.reverse].into_iter().zip(flow.route_lengths) {
            self.positions.give_back(at, links as usize + 1);
        }
        self.free_slots.push(Reverse(slot));
        self.open_flows -= 1;
    }

    /// Whether nothing of the slab is lost: every entry belongs to a packet under way.
    #[cfg(feature = "oracle")]
    pub(crate) fn blocks_in_use(&self) -> usize {
        self.blocks.in_use()
    }

    /// The link from one node to another, if a cable joins them.
    pub(crate) fn link_between(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let cable = self
            .network
            .cables
            .iter()
            .position(|cable| (cable.a, cable.b) == (from, to) || (cable.b, cable.a) == (from, to))?;
        Some(link_of(&self.network, cable, from))
    }
}

/// The time as packets carry it. It comes round every 4.3 s: a packet that is under way for longer shows so much less.
fn nanoseconds(now: Time) -> u32 {
    (now.as_ps() / 1000) as u32
}

/// The latest instant up to `now` that packets carry as `ns`.
fn latest_instant(now: Time, ns: u32) -> Time {
    Time::from_ns(now.as_ps() / 1000 - u64::from(nanoseconds(now).wrapping_sub(ns)))
}

/// The largest packet that any of the schemes sends.
fn largest_packet_bytes(schemes: &[Scheme]) -> u64 {
    schemes.iter().map(|scheme| scheme.transport.packet_bytes()).max().unwrap_or(0)
}

/// A packet of the handshake.
fn control_packet(slot: u32, route: u32, flags: Flags, flow: &Flow) -> Packet {
    let (wire_bytes, class) = (u16::from(flow.header_bytes), flow.base_class);
    Packet::new(Fields { flow: slot, seq: 0, trigger: 0, route, blocks: NO_BLOCKS, wire_bytes, flags, class })
}
