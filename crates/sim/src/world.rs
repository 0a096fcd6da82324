//! Hosts and their flows on top of a fabric: reactions to packets, timers and the start of flows.
//!
//! [`World`] owns all state of a run. Its loop takes one event from the fabric, reacts to it, and then handles the
//! drops that the reaction caused. Everything a flow needs per packet is in one [`Flow`]; the parts that only some runs
//! need (hosts with costs, observers, cross traffic) are separate, and reached by one test of a flag.

mod acknowledge;
mod changes;
mod datagrams;
mod deliver;
pub(crate) mod domain;
mod finish;
mod flow;
mod follow;
mod interface;
mod kept;
mod layout;
mod positions;
mod reading;
mod receive;
mod send;
mod spray;
mod start;
#[cfg(test)]
mod tests;
mod timers;
mod watch;

pub(crate) use self::changes::Changes;
use self::domain::AtBorders;
use self::flow::Flow;
use self::follow::{Arrivals, Followers};
use self::interface::{Queueing, Waiting};
use self::kept::Pools;
pub(crate) use self::layout::{Layout, Paths, link_specs, paths_of};
pub(crate) use self::positions::Positions;
use crate::config::{FullInterface, RunConfig, Scheme};
use crate::cross::{self, CrossTraffic};
use crate::engine::fabric::{Ahead, Alarm, AnnouncedEvent, Event, Fabric};
use crate::engine::timers::Timers;
use crate::flow::FlowSource;
use crate::hosts::pull::Pullers;
use crate::hosts::{Departures, Hosts, Interfaces, Processors, Thresholds};
use crate::observe::Observers;
use crate::physics::PhysicsViolation;
use crate::records::Records;
use crate::routing::routes::Routes;
use crate::wire::packet::{DATAGRAMS, Flags, Packet};
use crate::wire::sack_slab::BlockSlab;
use crate::wire::telemetry::TelemetrySlab;
use sparelane_cc::Hop;
use sparelane_core::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The state of a run.
pub(crate) struct World<F> {
    pub(crate) fabric: F,
    pub(crate) now: Time,
    pub(crate) flows: Vec<Flow>,
    /// Slots to reuse, lowest first, so that a flow's slot does not depend on the order in which other flows ended.
    free_slots: BinaryHeap<Reverse<u32>>,
    timers: Timers,
    /// SACK blocks of acknowledgments in flight.
    blocks: BlockSlab,
    /// The telemetry of the acknowledgment that is delivered.
    hops: Vec<Hop>,
    waiting: Waiting,
    hosts: AtHosts,
    thresholds: Thresholds,
    arrivals: Arrivals,
    /// Idle connections that flows may take.
    pools: Pools,
    cross_traffic: Vec<cross::Source>,
    /// The state that other domains share, if the world is one of several.
    borders: AtBorders,
    pub(crate) changes: Changes,
    pub(crate) layout: Layout,
    settings: Settings,
    observers: Observers,
    pub(crate) tally: Tally,
    pub(crate) records: Records,
}

/// Settings of the run as a whole.
#[derive(Clone)]
struct Settings {
    schemes: Vec<Scheme>,
    traffic_classes: Vec<String>,
    /// Scripted drops.
    drops: Vec<crate::wire::fault::Drop>,
    seed: u64,
    stop: Time,
}

/// Hosts, and packets in processing there.
struct AtHosts {
    specs: Hosts,
    interfaces: Interfaces,
    processors: Processors,
    departures: Departures,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Event,
    /// The end of a slice of the run.
    Pause,
    /// The end of the run.
    End,
}

/// Counts for the conservation check: packets that entered the network, and their outcomes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) injected: u64,
    pub(crate) delivered: u64,
    pub(crate) dropped: u64,
    open_flows: u64,
}

/// A run before its first event, without the state of its links.
pub(crate) struct Parts {
    hosts: Hosts,
    full_interface: FullInterface,
    observers: Observers,
    pub(crate) layout: Layout,
    pub(crate) changes: Changes,
    pub(crate) flows: Box<dyn FlowSource>,
    cross_traffic: Vec<CrossTraffic>,
    settings: Settings,
}

impl Parts {
    /// The parts of the run of `config`, which must have passed `simulation::check`, with the routes of its network.
    pub(crate) fn of(mut config: RunConfig, routes: Routes) -> Parts {
        let hosts = Hosts::new(config.host, &config.hosts_at);
        let mut observers = Observers::new(std::mem::take(&mut config.observers));
        let queues_in_view = observers.take_queues();
        // A packet that leaves a watched port must leave it as an event, so watched links are never fused.
        let watched = queues_in_view.union(&observers.ports).copied().collect();
        let telemetry = TelemetrySlab::default();
        let links = link_specs(&config, &hosts, &watched, &telemetry);
        let changes = Changes::new(config.changes, &config.network, &links, config.stop);
        let (network, links, routes) = (Arc::new(config.network), Arc::new(links), Arc::new(routes));
        Parts {
            hosts,
            full_interface: config.nic_full,
            observers,
            layout: Layout { network, links, routes, positions: Positions::default(), queues_in_view, telemetry },
            changes,
            flows: config.flows,
            cross_traffic: config.cross_traffic,
            settings: Settings {
                schemes: config.schemes,
                traffic_classes: config.traffic_classes,
                drops: config.drops,
                seed: config.seed,
                stop: config.stop,
            },
        }
    }

    /// The seed of the run.
    pub(crate) fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// The end of the run.
    pub(crate) fn stop(&self) -> Time {
        self.settings.stop
    }
}

impl<F: Fabric> World<F> {
    /// The world before the first event, with the routes of its network. `config` must have passed `simulation::check`.
    pub(crate) fn new(config: RunConfig, routes: Routes) -> World<F> {
        let parts = Parts::of(config, routes);
        let fabric = F::new(&parts.layout.links, parts.seed(), parts.stop());
        World::of(fabric, parts)
    }

    /// The world of `parts` over the links of `fabric`.
    pub(crate) fn of(fabric: F, parts: Parts) -> World<F> {
        let Parts { hosts, full_interface, observers, layout, changes, flows, cross_traffic, settings } = parts;
        let (interfaces, departures) = (Interfaces::new(settings.seed), Departures::new(settings.seed));
        // A vector that grows to a million flows is copied, and its memory written, twice.
        let together = flows.starting_together();
        let mut records = Records::default();
        records.flows.reserve(together);
        let mut world = World {
            fabric,
            now: Time::ZERO,
            flows: Vec::with_capacity(together),
            free_slots: BinaryHeap::new(),
            timers: Timers::default(),
            blocks: BlockSlab::default(),
            hops: Vec::new(),
            waiting: Waiting { pullers: Pullers::default(), queueing: Queueing::of(full_interface) },
            hosts: AtHosts { specs: hosts, interfaces, processors: Processors::default(), departures },
            thresholds: Thresholds::default(),
            arrivals: Arrivals { source: flows, upcoming: None, followers: Followers::default() },
            pools: Pools::default(),
            cross_traffic: Vec::new(),
            borders: AtBorders::default(),
            changes,
            layout,
            settings,
            observers,
            tally: Tally::default(),
            records,
        };
        for &(from, to) in &world.observers.ports {
            if let Some(link) = world.layout.link_between(from, to) {
                world.fabric.watch_crossings(link);
            }
        }
        // The end of the run is inclusive: the alarm fires one picosecond later.
        world.await_next_change();
        world.fabric.arm(Alarm::Stop, Time::from_ps(world.settings.stop.as_ps().saturating_add(1)));
        world.await_next_flow();
        world.start_cross_traffic(cross_traffic);
        world.await_sample();
        world
    }

    /// Handles all events up to and including `until`. Returns true once the run has ended.
    pub(crate) fn advance_to(&mut self, until: Time) -> Result<bool, PhysicsViolation> {
        if until < self.now {
            return Ok(false);
        }
        self.fabric.arm(Alarm::Pause, until);
        let finished = self.advance(u64::MAX)?;
        self.now = self.now.max(until.min(self.settings.stop));
        Ok(finished)
    }

    /// Handles `max_events` events at hosts, and at least one, or those until a pause. Returns true once the run has
    /// ended.
    // Inlined into its caller, the loop has fewer registers: three instructions more per packet-hop.
    #[inline(never)]
    pub(crate) fn advance(&mut self, max_events: u64) -> Result<bool, PhysicsViolation> {
        let mut left = max_events.max(1);
        while left > 0 {
            match self.step()? {
                Step::Event => left -= 1,
                Step::Pause => return Ok(false),
                Step::End => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Handles one event at a host.
    #[inline(always)]
    fn step(&mut self) -> Result<Step, PhysicsViolation> {
        let flows = &self.flows;
        let expect = |ahead: Ahead, packet: &Packet| {
            flows.get(packet.flow() as usize).and_then(|flow| flow.prefetch(ahead, packet))
        };
        let Some((now, event)) = self.fabric.next(expect) else {
            self.now = self.settings.stop;
            return Ok(Step::End);
        };
        self.now = now;
        match event {
            Event::Delivered(packet) => self.deliver(packet)?,
            Event::AtInterface(packet) => self.wait_for_interrupt(packet)?,
            Event::Idle(link) => self.handle_idle(link),
            Event::Announced => self.handle_announced()?,
            Event::Alarm(Alarm::Stop) => {
                self.now = self.settings.stop;
                return Ok(Step::End);
            }
            Event::Alarm(alarm) => {
                self.handle_alarm(alarm)?;
                if alarm == Alarm::Pause {
                    return Ok(Step::Pause);
                }
            }
        }
        if self.fabric.has_dropped() {
            self.handle_losses();
        }
        Ok(Step::Event)
    }

    #[inline(never)]
    fn handle_idle(&mut self, link: u32) {
        if self.waiting.queueing.is_some() {
            self.send_in_turn(link);
        }
        self.pull(link);
    }

    /// Handles an alarm, after the drops that precede it.
    #[inline(never)]
    fn handle_alarm(&mut self, alarm: Alarm) -> Result<(), PhysicsViolation> {
        self.handle_losses();
        match alarm {
            Alarm::Change => self.change_links(),
            Alarm::Timer => self.fire_timers()?,
            Alarm::FlowStart if F::IS_DOMAIN => self.start_planned(),
            Alarm::FlowStart => self.start_flows(),
            Alarm::Sample => self.sample(),
            Alarm::Stop | Alarm::Pause => {}
        }
        Ok(())
    }

    #[inline(always)]
    fn inject(&mut self, packet: Packet) {
        self.tally.injected += 1;
        self.fabric.send(self.now, packet);
    }

    /// Handles an announced event.
    #[cold]
    #[inline(never)]
    fn handle_announced(&mut self) -> Result<(), PhysicsViolation> {
        match self.fabric.take_announced() {
            Some(AnnouncedEvent::Delivered(packet)) => self.deliver_late(packet),
            Some(AnnouncedEvent::AtInterface(packet)) => self.wait_for_interrupt(packet),
            Some(AnnouncedEvent::Doubled(link, packet)) => {
                self.double(link, packet);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Makes the second copy of a packet that `link` doubles.
    fn double(&mut self, link: u32, packet: Packet) {
        self.tally.injected += 1;
        let mut copy = packet;
        match self.flows.get_mut(packet.flow() as usize) {
            Some(flow) => flow.wire.in_network += 1,
            None => self.cross_traffic[(packet.flow() - DATAGRAMS) as usize].doubled += 1,
        }
        if packet.flow() < DATAGRAMS && packet.flags().kind() == Flags::ACK {
            copy.set_blocks(self.blocks.copied(packet.blocks()));
            let telemetry = self.blocks.telemetry_at(copy.blocks());
            if telemetry > 0 {
                copy.set_blocks(self.blocks.with_telemetry(copy.blocks(), self.layout.telemetry.copied(telemetry)));
            }
        } else if packet.telemetry() > 0 {
            copy.set_trigger(self.layout.telemetry.copied(packet.telemetry()));
        }
        self.fabric.add_copy(self.now, link, copy);
    }

    /// Handles the packets that were dropped or lost.
    #[inline(never)]
    fn handle_losses(&mut self) {
        while let Some(packet) = self.fabric.take_dropped() {
            self.handle_loss(packet);
        }
    }

    /// Handles a packet that was dropped or lost.
    #[inline(never)]
    fn handle_loss(&mut self, packet: Packet) {
        self.tally.dropped += 1;
        let Some(flow) = self.flows.get_mut(packet.flow() as usize) else {
            return if F::IS_DOMAIN { self.lose_passing(packet) } else { self.lose_datagram(packet) };
        };
        flow.wire.in_network -= 1;
        flow.lost += u64::from(packet.flags().kind() == Flags::DATA);
        if F::IS_DOMAIN
            && let Some(border) = &mut flow.border
        {
            border.last = self.borders.instant(self.now);
        }
        if flow.traits.is_followed {
            self.report_loss(packet);
        }
        let telemetry = if packet.flags().kind() == Flags::ACK {
            self.blocks.telemetry_at(packet.blocks())
        } else {
            packet.telemetry()
        };
        self.layout.telemetry.release(telemetry);
        if packet.flags().kind() == Flags::ACK {
            self.blocks.release(packet.blocks());
        }
        self.close_if_over(packet.flow());
    }

    /// Closes a flow once both ends are done, the receiver owes no acknowledgment and none of its packets is in flight,
    /// unless its connection is kept.
    #[inline(always)]
    fn close_if_over(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        let is_over = flow.wire.in_network == 0 && flow.span.finish != Time::NEVER && flow.sender.is_done();
        if is_over && flow.receiver.next_timer() == Time::NEVER && flow.kept.is_none() {
            self.close(slot);
        }
    }

    #[inline(never)]
    fn close(&mut self, slot: u32) {
        if F::IS_DOMAIN {
            self.report_end(slot);
        } else {
            self.record(slot);
            self.keep_threshold(slot);
        }
        let flow = &mut self.flows[slot as usize];
        flow.open = false;
        self.layout.telemetry.release(std::mem::take(&mut flow.echoes.telemetry));
        let id = flow.id;
        self.forget_drops(id, slot);
        let flow = &self.flows[slot as usize];
        for (at, entries) in [flow.wire.forward, flow.wire.reverse].into_iter().zip(flow.wire.route_entries) {
            self.layout.positions.give_back(at, entries as usize);
        }
        self.free_slots.push(Reverse(slot));
        self.tally.open_flows -= 1;
    }

    /// Keeps the slow-start threshold of a flow that is over, for later flows between its hosts.
    fn keep_threshold(&mut self, slot: u32) {
        let flow = &self.flows[slot as usize];
        let (table, row) = (&self.records.flows, flow.id as usize);
        if self.settings.schemes[usize::from(table.scheme[row])].transport.cached_ssthresh {
            self.thresholds.end(flow.span.finish, flow.id, (table.src[row], table.dst[row]), &flow.sender);
        }
    }

    /// Entries of the slab in use. Each must belong to a packet in flight, or the slab leaks.
    #[cfg(any(test, feature = "oracle"))]
    pub(crate) fn blocks_in_use(&self) -> usize {
        self.blocks.in_use() + self.layout.telemetry.in_use()
    }
}

/// The time as packets carry it, in 32 bits. It wraps every 4.3 s: a longer delay appears shortened by a multiple of
/// that.
fn nanoseconds(now: Time) -> u32 {
    (now.as_ps() / 1000) as u32
}

/// The latest time up to `now` that packets carry as `ns`.
fn latest_instant(now: Time, ns: u32) -> Time {
    Time::from_ns(now.as_ps() / 1000 - u64::from(nanoseconds(now).wrapping_sub(ns)))
}
