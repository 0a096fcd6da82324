//! The start of flows: both ends, routes, and the least completion time.

use super::flow::{AtInterface, Border, Echo, Echoes, Entries, Flow, OnWire, PathTraits, Span};
use super::kept::Kept;
use super::reading::reading;
use super::{Settings, World};
use crate::engine::fabric::{AT_HOST, AT_INTERFACE, Alarm, Fabric};
use crate::engine::timers::{Entry, TimerOwner};
use crate::flow::{FlowSpec, MAX_FLOW_SEGMENTS};
use crate::hosts::Offload;
use crate::hosts::application::Application;
use crate::observe::Opened;
use crate::records::CLASSES;
use crate::routing::network::NodeId;
use crate::wire::link::PlannedDrop;
use crate::wire::packet::{Flags, Template};
use sparelane_cc::{Blueprint, CongestionControl, Needs, PathFacts};
use sparelane_core::{Domain, Dur, Rate, Seq, Stream, Time};
use sparelane_transport::{Chunk, Ecn, EcnField, EcnFlags, Sender, TransportConfig};
use std::cmp::Reverse;
use std::sync::Arc;

/// The demands of a flow's controller and observers on its packets.
pub(super) struct Demands {
    /// The kind of time that acknowledgments echo.
    echo: Echo,
    needs: Needs,
    uses_tail: bool,
    requests_rate: bool,
    /// True if an observer follows single packets of the flow.
    is_followed: bool,
    /// True if data packets carry their send time.
    stamps: bool,
}

/// Returns `flags` with the ECN field of the data packets of a sender. With accurate ECN, only a scalable controller
/// may use ECT(1) (RFC 9331 section 4.3).
fn ecn_field(ecn: Ecn, is_scalable: bool, flags: Flags) -> Flags {
    match ecn {
        Ecn::Off => flags,
        Ecn::Classic | Ecn::Dctcp => flags.with_if(true, Flags::ECT_0),
        Ecn::L4s => flags.with_if(true, Flags::ECT_1),
        Ecn::Accurate => flags.with_if(true, if is_scalable { Flags::ECT_1 } else { Flags::ECT_0 }),
    }
}

impl Flow {
    /// Handles the flags of the SYN-ACK of a flow that requests accurate ECN: they decide about the ECN field of its
    /// data.
    #[cold]
    #[inline(never)]
    pub(super) fn agree_on_ecn(&mut self, flags: EcnFlags) {
        self.sender.handle_syn_ack_flags(flags);
        let is_scalable = self.sender.needs().scalable;
        let stamp = Flags::DATA.with_if(self.traits.stamps, Flags::STAMPED);
        self.wire.data = Template::new(ecn_field(self.sender.ecn(), is_scalable, stamp), self.wire.base_class);
    }

    /// Returns the ECN field that the segments of a chunk arrived with. A chunk has only marked or only unmarked
    /// segments.
    pub(super) fn field_of(&self, chunk: &Chunk) -> EcnField {
        if chunk.marked {
            return EcnField::Ce;
        }
        // Retransmissions are not ECN-capable.
        if chunk.retransmission { EcnField::NotEct } else { self.wire.data.flags().ecn_field() }
    }
}

/// The place of a new flow among those of its world.
pub(super) struct Place {
    /// The number of the flow.
    pub(super) id: u32,
    pub(super) slot: u32,
    /// The positions of its routes there and back.
    pub(super) positions: [u32; 2],
    /// For a flow whose packets cross domains: true if its sending end is in this one.
    pub(super) border: Option<bool>,
}

/// The sending end of a new flow.
struct Source {
    sender: Sender,
    writing: Writing,
}

/// The application of a flow after its first write.
pub(super) struct Writing {
    pub(super) application: Option<Box<Application>>,
    /// The time until the next write, if there is one.
    pub(super) next_write: Option<Dur>,
}

impl Writing {
    /// Performs the first write of a flow.
    pub(super) fn begin(spec: &FlowSpec, sender: &mut Sender) -> Writing {
        let mut application = spec.writes.map(|writes| Box::new(Application::new(writes, spec.size_bytes)));
        let next_write = match (&mut application, spec.size_bytes) {
            (Some(application), _) => application.write(sender),
            (None, Some(bytes)) => {
                sender.write(bytes);
                None
            }
            (None, None) => {
                sender.write_without_end();
                None
            }
        };
        Writing { application, next_write }
    }
}

impl Settings {
    /// Describes a flow to its controller. `line_rate` is the rate of the sender's interface.
    pub(super) fn blueprint(&self, spec: &FlowSpec, line_rate: Rate) -> Blueprint<'_> {
        let scheme = &self.schemes[usize::from(spec.scheme)];
        Blueprint {
            mss_bytes: scheme.transport.mss_bytes,
            header_bytes: scheme.transport.header_bytes,
            sack: scheme.transport.sack,
            flow_bytes: spec.size_bytes,
            traffic_class: spec.traffic_class.map(|class| self.traffic_classes[usize::from(class)].as_str()),
            line_rate,
            inner: &scheme.inner,
            registry: &scheme.registry,
        }
    }
}

impl<F: Fabric> World<F> {
    pub(super) fn await_next_flow(&mut self) {
        self.arrivals.upcoming = self.arrivals.source.next_flow();
        self.fabric.arm(Alarm::FlowStart, self.arrivals.next_start());
    }

    /// Starts all flows that are due. At the same time, flows from the stream precede those that follow from others.
    pub(super) fn start_flows(&mut self) {
        while self.arrivals.next_start() <= self.now {
            match self.arrivals.upcoming.filter(|spec| spec.start <= self.arrivals.followers.next_start()) {
                Some(spec) => {
                    self.start_flow(spec);
                    self.arrivals.upcoming = self.arrivals.source.next_flow();
                }
                None => {
                    let Some(spec) = self.arrivals.followers.take() else { break };
                    self.start_flow(spec);
                }
            }
        }
        self.fabric.arm(Alarm::FlowStart, self.arrivals.next_start());
    }

    fn start_flow(&mut self, spec: FlowSpec) {
        if let Some(slot) = self.take_idle(&spec) {
            return self.start_on_open_connection(spec, slot);
        }
        let paths = self.paths(&spec, self.records.flows.id.len() as u32);
        let mut cc = self.controller(&spec, [&paths[0], &paths[1]]);
        let transport = &self.settings.schemes[usize::from(spec.scheme)].transport;
        if transport.cached_ssthresh {
            let cached_bytes = self.thresholds.start((spec.src.0, spec.dst.0), transport.mss_bytes);
            cached_bytes.into_iter().for_each(|bytes| cc.start_at_threshold(bytes));
        }
        self.open_flow(spec, paths, cc);
    }

    /// Builds the controller of a connection over the links `there`.
    pub(super) fn controller(&self, spec: &FlowSpec, [there, back]: [&[u32]; 2]) -> Box<dyn CongestionControl> {
        let transport = &self.settings.schemes[usize::from(spec.scheme)].transport;
        let base_rtt = self.cross(there, transport.packet_bytes()) + self.cross(back, transport.header_bytes);
        let plan = self.settings.blueprint(spec, self.line_rate(there));
        let cc = self.settings.schemes[usize::from(spec.scheme)].controller_for(plan);
        let Ok(mut cc) = cc else { unreachable!("schemes were checked before the run: {cc:?}") };
        cc.on_path(PathFacts { routers: there.len() as u32 - 1, base_rtt });
        cc
    }

    /// Returns the links of a connection in both directions.
    pub(super) fn paths(&self, spec: &FlowSpec, connection: u32) -> [Vec<u32>; 2] {
        self.layout.paths(spec, connection)
    }

    /// The rate of the interface that `links` begin with, as configured: later changes do not count, because parameters
    /// were checked against this rate.
    pub(super) fn line_rate(&self, links: &[u32]) -> Rate {
        self.changes.configured(links[0], &self.layout.links[links[0] as usize])
    }

    /// Opens a flow over the links of `paths`, there and back, controlled by `cc`.
    pub(super) fn open_flow(&mut self, spec: FlowSpec, paths: [Vec<u32>; 2], cc: Box<dyn CongestionControl>) {
        let id = self.records.flows.id.len() as u32;
        let demands = self.demands(id, &*cc);
        // Slots are reused, and with them the memory of the flow that ended.
        let slot = self.free_slots.pop().map_or(self.flows.len() as u32, |Reverse(slot)| slot);
        let several = self.sprayed_paths(&spec, &paths, id);
        let [forward, reverse] = match &several {
            None => self.set_routes(&spec, [&paths[0], &paths[1]], demands.is_followed),
            Some(several) => self.set_sprayed_routes(&spec, several, demands.is_followed),
        };
        self.plan_drops(id, slot, 0);
        // Crossings refer to the slot's previous flow, so observers must get them before it is overwritten.
        self.report_crossings();
        let place = Place { id, slot, positions: [forward, reverse], border: None };
        let mut ideal = self.open_at(&place, &spec, &paths, cc, demands);
        if let Some(several) = &several {
            ideal = self.spray(slot, several, &spec);
        }
        self.record_start(id, id, &spec, ideal);
        self.send_allowed(slot);
    }

    /// Creates the flow `spec` at its place. Returns its least completion time, if it has an end.
    pub(super) fn open_at(
        &mut self,
        place: &Place,
        spec: &FlowSpec,
        [there, back]: &[Vec<u32>; 2],
        cc: Box<dyn CongestionControl>,
        demands: Demands,
    ) -> Option<Dur> {
        let &Place { id, slot, positions: [forward, reverse], border } = place;
        let scheme = &self.settings.schemes[usize::from(spec.scheme)];
        let (base_class, transport) = (scheme.class, Arc::clone(&scheme.transport));
        let Demands { echo, needs, uses_tail, requests_rate, is_followed, stamps } = demands;
        let mut source = self.source(id, spec, &transport, cc);
        let handshake = self.handshake(there, back, &transport);
        let (segments, ideal) = self.bounds(spec, &mut source.writing, there, handshake, &transport);
        let (from, to) = (*self.hosts.specs.spec(spec.src), *self.hosts.specs.spec(spec.dst));
        let (receiver, reader) = reading(&transport);
        let reads_slowly = reader.is_some();
        let requests_accurate_ecn = transport.ecn == Ecn::Accurate;
        let acks_carry_extras = requests_accurate_ecn
            || requests_rate
            || needs.telemetry
            || echo != Echo::Nothing
            || !to.ack_cost.is_zero()
            || is_followed
            || reads_slowly;
        let offload = Offload::of(&from, &to, &transport, echo != Echo::Nothing);
        let stamp = Flags::DATA.with_if(stamps, Flags::STAMPED);
        let wire = OnWire {
            in_network: if border.is_some() { Border::NONE_IN_NETWORK } else { 0 },
            forward,
            reverse,
            base_class,
            header_bytes: transport.header_bytes as u8,
            data: Template::new(ecn_field(transport.ecn, needs.scalable, stamp), base_class),
            ack: Template::new(Flags::ACK, base_class),
            sent: [0; CLASSES],
            route_entries: [there.len() as u32 + 1, back.len() as u32 + 1],
        };
        // These decide which fast paths the flow's packets may use.
        let traits = PathTraits {
            receives_plainly: !acks_carry_extras && offload.is_none(),
            reads_extras: requests_accurate_ecn
                || requests_rate
                || needs.telemetry
                || echo != Echo::Nothing
                || needs.nic_backlog
                || is_followed
                || reads_slowly,
            waits_for_interface: uses_tail || self.waiting.queueing.is_some(),
            sends_slow: requests_rate || needs.telemetry || is_followed,
            acks_carry_extras,
            stamps,
            requests_rate,
            is_followed,
            reads_slowly,
            takes_time: reads_slowly || offload.is_some() || requests_accurate_ecn,
            requests_accurate_ecn,
            collects_telemetry: needs.telemetry,
        };
        let flow = Flow {
            wire,
            traits,
            segments,
            entries: Entries { sender: Time::NEVER, receiver: Time::NEVER },
            receiver,
            sender: source.sender,
            id,
            open: true,
            hosts: [spec.src, spec.dst],
            span: Span { start: self.now, finish: Time::NEVER, ideal: ideal.unwrap_or_default() },
            echoes: Echoes { kind: echo, ns: 0, rate: 0, telemetry: 0, ack_cost: to.ack_cost },
            at_interface: AtInterface { uses_tail, reads_backlog: needs.nic_backlog, queueing: false, pulling: false },
            offload,
            application: source.writing.application,
            reader,
            waiter: spec.waiter,
            lost: 0,
            spray: None,
            border: border
                .map(|sends| Box::new(Border { sends, is_reported: false, last: self.borders.instant(self.now) })),
            kept: Kept::of(spec, id),
        };
        match self.flows.get_mut(slot as usize) {
            Some(old) => *old = flow,
            None => self.flows.push(flow),
        }
        debug_assert!((slot as usize) < self.flows.len(), "slots are used in order");
        self.tally.open_flows += 1;
        self.await_next_write(slot, source.writing.next_write);
        ideal
    }

    /// Sets the timer for the next write of the application, if there is one.
    pub(super) fn await_next_write(&mut self, slot: u32, after: Option<Dur>) {
        if let Some(after) = after {
            let flow = self.flows[slot as usize].id;
            self.enter_timer(Entry { at: self.now + after, flow, owner: TimerOwner::Application, slot });
        }
    }

    /// Collects the demands of the controller and the observers of flow `id`.
    pub(super) fn demands(&self, id: u32, cc: &dyn CongestionControl) -> Demands {
        let (requests_rate, needs) = (cc.desired_rate().is_some(), cc.needs());
        let echo = Echo::of(needs);
        // A rate header occupies the field of the send time, so such flows are neither followed nor measured.
        let is_followed = !requests_rate && self.observers.follow(id);
        let measures_delays = !requests_rate && self.observers.wants_receipts;
        let stamps = echo != Echo::Nothing || measures_delays || is_followed;
        Demands { echo, needs, uses_tail: cc.uses_tail(), requests_rate, is_followed, stamps }
    }

    /// Creates the sending end of flow `id` and performs its first write.
    fn source(&self, id: u32, spec: &FlowSpec, tcp: &Arc<TransportConfig>, cc: Box<dyn CongestionControl>) -> Source {
        // Random streams are numbered by flow, so that flows do not disturb each other's draws.
        let stream = |domain| Stream::new(self.settings.seed, domain, u64::from(id));
        let mut sender = Sender::new(Arc::clone(tcp), cc, stream(Domain::Controller));
        let timer_error = self.hosts.specs.spec(spec.src).timer_error;
        if !timer_error.is_zero() {
            sender.set_timer_error(timer_error, stream(Domain::TimerError));
        }
        if !tcp.handshake {
            sender.open_established(self.now, None);
        }
        let writing = Writing::begin(spec, &mut sender);
        Source { sender, writing }
    }

    /// Returns the number of segments of the first write, `Seq::MAX` without end, and the least completion time of the
    /// flow, if it has an end. The application gets the least time of its first write. `handshake` is the time before
    /// the connection opens.
    pub(super) fn bounds(
        &self,
        spec: &FlowSpec,
        writing: &mut Writing,
        there: &[u32],
        handshake: Dur,
        tcp: &TransportConfig,
    ) -> (Seq, Option<Dur>) {
        let application = writing.application.as_deref_mut();
        let at_once_bytes = application.as_ref().map_or(spec.size_bytes, |application| Some(application.first_bytes()));
        let segments = at_once_bytes.map_or(Seq::MAX, |bytes| {
            let segments = bytes.div_ceil(tcp.mss_bytes);
            assert!(
                segments <= MAX_FLOW_SEGMENTS,
                "a flow of {segments} segments; at most {MAX_FLOW_SEGMENTS} have numbers"
            );
            segments
        });
        let at_once = at_once_bytes.map(|bytes| handshake + self.ideal(there, bytes, tcp));
        let mut ideal = spec.size_bytes.and(at_once);
        if let Some(application) = application {
            application.first_least = at_once.unwrap_or_default();
            if writing.next_write.is_some() {
                ideal = self.ideal_of_writes(application, there, handshake, tcp);
            }
        }
        (segments, ideal)
    }

    /// Sets the routes of a flow in both directions, and returns their positions.
    fn set_routes(&mut self, spec: &FlowSpec, [there, back]: [&[u32]; 2], is_followed: bool) -> [u32; 2] {
        let [forward, reverse] = [there, back].map(|links| self.layout.positions.take(links.len() + 1));
        let [forward_end, reverse_end] = self.route_ends(spec, is_followed);
        self.fabric.set_route(self.now, forward, there, forward_end);
        self.fabric.set_route(self.now, reverse, back, reverse_end);
        [forward, reverse]
    }

    /// The entries that end the routes of a flow, there and back.
    pub(super) fn route_ends(&self, spec: &FlowSpec, is_followed: bool) -> [u32; 2] {
        // Packets of a followed flow arrive as events at the interface, so that their arrival can be observed.
        let forward_end = if is_followed { AT_INTERFACE } else { self.route_end(spec.dst) };
        [forward_end, self.route_end(spec.src)]
    }

    /// Adds a flow to the records and totals, and notifies the observers. `connection` is the flow that opened its
    /// connection.
    pub(super) fn record_start(&mut self, id: u32, connection: u32, spec: &FlowSpec, ideal: Option<Dur>) {
        self.records.flows.reserve_until(self.now, self.settings.stop);
        self.records.flows.open(spec, connection, self.now, ideal.map_or(u64::MAX, Dur::as_ps));
        let transport = &self.settings.schemes[usize::from(spec.scheme)].transport;
        self.observers.open(&Opened {
            flow: id,
            connection,
            start: self.now,
            scheme: spec.scheme,
            traffic_class: spec.traffic_class,
            src: spec.src,
            dst: spec.dst,
            mss_bytes: transport.mss_bytes,
            header_bytes: transport.header_bytes,
            uses_ecn: transport.ecn != Ecn::Off,
        });
        self.records.totals.flows += 1;
        self.records.totals.peak_open_flows = self.records.totals.peak_open_flows.max(self.tally.open_flows);
    }

    /// The least completion time on an open connection: propagation, the serialization of the last segment at every
    /// link, and that of all earlier segments at the slowest link.
    fn ideal(&self, there: &[u32], bytes: u64, tcp: &TransportConfig) -> Dur {
        let full_segments = (bytes - 1) / tcp.mss_bytes;
        let last_bytes = bytes - full_segments * tcp.mss_bytes + tcp.header_bytes;
        self.cross(there, last_bytes) + self.queue(there, tcp, full_segments)
    }

    /// The least completion time of a flow that is written in pieces. How pieces share segments depends on the send
    /// buffer, so the last segment counts as one byte.
    fn ideal_of_writes(
        &self,
        application: &Application,
        there: &[u32],
        handshake: Dur,
        tcp: &TransportConfig,
    ) -> Option<Dur> {
        application.least(handshake, |bytes| {
            self.cross(there, tcp.header_bytes + 1) + self.queue(there, tcp, (bytes - 1) / tcp.mss_bytes)
        })
    }

    fn handshake(&self, there: &[u32], back: &[u32], tcp: &TransportConfig) -> Dur {
        if !tcp.handshake {
            return Dur::ZERO;
        }
        self.cross(there, tcp.header_bytes) + self.cross(back, tcp.header_bytes)
    }

    /// The time that a packet takes to cross idle links.
    pub(super) fn cross(&self, links: &[u32], wire_bytes: u64) -> Dur {
        links.iter().fold(Dur::ZERO, |sum, &link| {
            let (byte_time, delay) = self.changes.best(link);
            sum + delay + byte_time.of(wire_bytes)
        })
    }

    /// The time that the slowest of `links` takes to send `segments` full segments.
    pub(super) fn queue(&self, links: &[u32], tcp: &TransportConfig, segments: u64) -> Dur {
        let of = |&link: &u32| self.changes.best(link).0.of(tcp.packet_bytes()) * segments;
        links.iter().map(of).max().unwrap_or_default()
    }

    /// The entry that ends a route to `host`.
    pub(super) fn route_end(&self, host: NodeId) -> u32 {
        if self.hosts.specs.spec(host).interrupts.is_some() { AT_INTERFACE } else { AT_HOST }
    }

    /// Discards the remaining scripted drops of a flow that is over.
    pub(super) fn forget_drops(&mut self, id: u32, slot: u32) {
        for planned in self.settings.drops.iter().filter(|planned| planned.flow == id) {
            if let Some(link) = self.layout.link_between(planned.from, planned.to) {
                self.fabric.forget_drops(link, slot);
            }
        }
    }

    /// Plans the scripted drops of flow `id`, whose segments are numbered from `first` on its connection.
    pub(super) fn plan_drops(&mut self, id: u32, slot: u32, first: u32) {
        for planned in self.settings.drops.iter().filter(|planned| planned.flow == id) {
            if let Some(link) = self.layout.link_between(planned.from, planned.to) {
                let numbers = planned.segments.iter().map(|&segment| segment.wrapping_add(first));
                let segments = numbers.map(|segment| (segment, planned.copies)).collect();
                self.fabric.plan_drop(link, PlannedDrop { flow: slot, segments });
            }
        }
    }
}
