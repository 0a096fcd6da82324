//! One run on several cores: the network in domains, each with its own event queue.
//!
//! A packet that leaves for another domain arrives there no earlier than one delay of the cable between them later. So
//! each domain can handle the events of a *window* as long as the least such delay on its own. At the end of a window,
//! the domains exchange the packets that crossed. Within a domain, events keep their order, and nothing else passes
//! between domains: records and digests are equal for any number of domains and threads.
//!
//! What the domains share is decided between windows: flows get their numbers, routes and slots before they start
//! (`planning.rs`), and flows between domains end (`accounts.rs`). See `world/domain.rs` for the part of it inside a domain,
//! `unsuited.rs` for the runs that need a single domain, and ARCHITECTURE.md for the reasons.

mod accounts;
mod crew;
pub(crate) mod exchange;
pub(crate) mod fabric;
mod flows;
mod pace;
mod planning;
mod sides;
mod traffic;
mod unsuited;

use self::accounts::{Accounts, Crossing, Letters};
use self::crew::Crew;
use self::exchange::{Barrier, Broken, Exchange, Summary};
use self::fabric::DomainFabric;
use self::flows::Flows;
use self::pace::Pace;
use self::planning::Batch;
use self::sides::Sides;
use self::traffic::loaded_network;
pub use self::unsuited::Unsuited;
use crate::config::{Machine, RunConfig};
use crate::engine::event_queue::EventQueue;
use crate::engine::fabric::Fabric;
use crate::observe::{FlowView, Inside};
use crate::physics::{PhysicsViolation, check_conserved};
use crate::records::{LinkRows, Records};
use crate::routing::network::{Cable, Loss, Network, NodeId};
use crate::routing::partition::{Partition, labelled, partition};
use crate::routing::routes::Routes;
use crate::wire::link::LinkCounts;
use crate::world::{Changes, Layout, Parts, Tally, World};
use sparelane_cc::CongestionControl;
use sparelane_core::{Dur, Rate, Time};
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A domain.
struct Domain<Q> {
    world: World<DomainFabric<Q>>,
    accounts: Accounts,
    /// Events at hosts since the run began.
    events: u64,
}

/// A run in several domains.
pub(crate) struct Domains<Q> {
    domains: Vec<Domain<Q>>,
    pace: Pace,
    machine: Machine,
    crew: Crew<Shared<Q>>,
    exchange: Exchange,
    letters: Letters,
    /// The number of windows so far.
    windows: u64,
    /// The end of the last window: everything before it has happened.
    reached: Time,
    /// The least delay between domains.
    lookahead: Dur,
    sides: Sides,
    flows: Flows,
    layout: Layout,
    changes: Changes,
    stop: Time,
    /// A lower bound for the time of the next event.
    next: Time,
    pub(crate) now: Time,
}

/// The number of events at hosts in a slice: some milliseconds of work.
const SLICE_EVENTS: u64 = 50_000;

/// The limits of a slice of a run.
#[derive(Clone, Copy)]
struct Slice {
    /// Events at hosts, from the beginning of the run, after which the slice ends.
    events: u64,
    /// The last instant.
    until: Time,
}

/// The division of the network of `config`, whose flows are an open loop. Without one in `config`, the domains are as many
/// as `threads`, if possible, and have equal shares of the expected traffic.
pub(crate) fn division_of(config: &mut RunConfig, routes: &Routes, threads: usize) -> Partition {
    let has_effects = |cable: &Cable| {
        let loses = [cable.a, cable.b].iter().any(|&from| cable.loss_from(from) != Loss::NONE);
        loses || cable.effects.iter().any(Option::is_some) || cable.traces.iter().any(Option::is_some)
    };
    if let Some(labels) = &config.domains {
        return labelled(&config.network, labels, |cable| has_effects(&config.network.cables[cable]));
    }
    let loaded = loaded_network(config, routes);
    partition(&loaded, threads, |cable| has_effects(&config.network.cables[cable]))
}

/// The number of full packets that the links of a domain can send in a window of this length: the mean over `domains`.
pub(crate) fn hops_in_window(network: &Network, domains: usize, window: Dur) -> u64 {
    let rates = network.cables.iter().flat_map(|cable| cable.rates).map(Rate::as_bps);
    let all = Rate::from_bps(rates.fold(0, u64::saturating_add) / domains as u64);
    all.bytes_in(window) / FULL_PACKET_BYTES
}

/// The size of a usual packet.
const FULL_PACKET_BYTES: u64 = 1_500;

/// The number of links of the largest domain, wires from others included.
pub(crate) fn largest_domain(config: &RunConfig, partition: &Partition) -> usize {
    let mut links = vec![0; partition.domains];
    for cable in &config.network.cables {
        let [a, b] = [cable.a, cable.b].map(|node| usize::from(partition.domain_of[node.index()]));
        links[a] += 2;
        if a != b {
            links[b] += 2;
        }
    }
    links.into_iter().max().unwrap_or(0)
}

impl<Q: EventQueue + Send + 'static> Domains<Q> {
    /// The run of `parts` in the domains of `partition`, on this number of threads.
    pub(crate) fn new(parts: Parts, partition: &Partition, threads: usize, machine: Machine) -> Domains<Q> {
        let domain_of = |node: NodeId| partition.domain_of[node.index()];
        let cables = parts.layout.network.cables.iter().map(|cable| [domain_of(cable.a), domain_of(cable.b)]);
        let sides = Sides::of(cables.flat_map(|[a, b]| [[a, b], [b, a]]));
        let count = partition.domains as u16;
        let threads = threads.clamp(1, partition.domains);
        let stop = parts.stop();
        let of_domains = (0..count).map(|domain| (domain, parts.of_domain())).collect();
        let domains = built(of_domains, threads, |(domain, own)| {
            let fabric = DomainFabric::of([domain, count], &own.layout.links, &sides, own.seed(), own.stop());
            Domain { world: World::of(fabric, own), accounts: Accounts::new(domain), events: 0 }
        });
        Domains {
            domains,
            pace: Pace::new(threads),
            machine,
            crew: Crew::new(),
            exchange: Exchange::new(partition.domains),
            letters: Letters::new(partition.domains),
            windows: 0,
            reached: Time::ZERO,
            lookahead: partition.lookahead,
            sides,
            layout: parts.layout.clone(),
            changes: parts.changes.clone(),
            stop,
            flows: Flows::new(parts.flows, stop),
            next: Time::ZERO,
            now: Time::ZERO,
        }
    }

    /// Handles about `max_events` events at hosts: whole windows. Returns true once the run has ended.
    pub(crate) fn advance(&mut self, max_events: u64) -> Result<bool, PhysicsViolation> {
        self.run(max_events.max(1), self.stop)?;
        let ended = self.next.min(self.flows.horizon()) > self.stop;
        self.set_now(if ended { self.stop } else { Time::from_ps(self.reached.as_ps().saturating_sub(1)) });
        Ok(ended)
    }

    /// Handles all events up to and including `until`. Returns true once the run has ended.
    pub(crate) fn advance_to(&mut self, until: Time) -> Result<bool, PhysicsViolation> {
        if until < self.now {
            return Ok(false);
        }
        self.run(u64::MAX, until.min(self.stop))?;
        self.set_now(self.now.max(until.min(self.stop)));
        Ok(until > self.stop)
    }

    /// Ends a slice at `now`: everything up to then has happened. Views of the run then see the flows that are open.
    fn set_now(&mut self, now: Time) {
        self.now = now;
        self.domains.iter_mut().for_each(|domain| domain.world.now = now);
        self.settle(after(now));
    }

    /// Ends the flows that are over at `reached`.
    fn settle(&mut self, reached: Time) {
        let Domains { domains, letters, flows, .. } = self;
        domains.iter_mut().for_each(|domain| domain.accounts.ask(&mut domain.world, letters));
        flows.address(letters);
        domains.iter().for_each(|domain| domain.accounts.answer(&domain.world, letters));
        domains.iter_mut().for_each(|domain| domain.accounts.settle(&mut domain.world, letters));
        flows.keep(letters, reached);
        domains.iter_mut().for_each(|domain| domain.accounts.release(&mut domain.world, letters));
    }

    /// A flow between domains.
    fn crossing_view(&self, crossing: &Crossing) -> FlowView<'_> {
        let [sender, receiver] =
            crossing.ends.map(|(domain, slot)| self.domains[usize::from(domain)].world.end_in(slot));
        sender.view(receiver)
    }

    /// Events at hosts since the run began.
    fn events(&self) -> u64 {
        self.domains.iter().map(|domain| domain.events).sum()
    }

    /// Runs until about `max_events` events at hosts were handled, or all up to and including `until`: a slice after another,
    /// each on the number of threads that was faster so far.
    fn run(&mut self, max_events: u64, until: Time) -> Result<(), PhysicsViolation> {
        let last = self.events().saturating_add(max_events);
        loop {
            let done = self.events();
            if done >= last || self.next.min(self.flows.horizon()) > until {
                return Ok(());
            }
            let slice = Slice { events: last.min(done + SLICE_EVENTS), until };
            let threads = self.pace.threads();
            let clock = self.machine.clock;
            let began = clock.map(|now| now());
            self.run_slice(slice, threads)?;
            if let (Some(began), Some(ended)) = (began, clock.map(|now| now())) {
                self.pace.note(threads, self.events() - done, ended.saturating_sub(began));
            }
        }
    }

    fn run_slice(&mut self, slice: Slice, threads: usize) -> Result<(), PhysicsViolation> {
        let plan = Plan { next: self.next, horizon: self.flows.horizon() };
        let begin = Progress { windows: self.windows, reached: self.reached };
        let shared = Arc::new(Shared {
            domains: self.domains.drain(..).map(Mutex::new).collect(),
            exchange: std::mem::take(&mut self.exchange),
            letters: std::mem::take(&mut self.letters),
            barrier: Barrier::new(threads, self.machine.cores),
            violation: Mutex::new(None),
            threads,
            lookahead: self.lookahead,
            slice,
            begin,
            first: plan,
            plan: Mutex::new(plan),
            batch: Mutex::default(),
            network: Arc::clone(&self.layout.network),
            routes: Arc::clone(&self.layout.routes),
            sides: self.sides.clone(),
        });
        let flows = &mut self.flows;
        let work = |shared: &Shared<Q>, thread| _ = shared.work(thread, None);
        let (end, next) = self.crew.work(threads - 1, &shared, work, |shared| shared.work(0, Some(flows)));
        let Some(Shared { domains, exchange, letters, violation, .. }) = Arc::into_inner(shared) else {
            unreachable!("all threads have let go")
        };
        self.domains.extend(domains.into_iter().map(inner));
        (self.exchange, self.letters) = (exchange, letters);
        (self.windows, self.reached, self.next) = (end.windows, end.reached, next);
        // Packets of the last window are taken in here, so that nothing is underway between domains while the run rests.
        for (number, domain) in self.domains.iter_mut().enumerate() {
            self.exchange.take(end.windows, number, |parcel| domain.world.take_in_parcel(parcel));
        }
        inner(violation).map_or(Ok(()), |(_, violation)| Err(violation))
    }

    /// Ends the run at the current time and returns its records.
    pub(crate) fn finish(mut self) -> Result<Records, PhysicsViolation> {
        self.domains.iter_mut().for_each(|domain| domain.world.end_links());
        self.settle(after(self.now));
        let in_network = self.flows.finish(&mut self.domains);
        let mut worlds = worlds(&mut self.domains);
        let mut records = self.flows.into_records();
        let (mut held, mut packet_hops) = (0, 0);
        let columns = self.layout.link_columns();
        let mut rows = LinkRows::for_links(self.layout.links.len());
        for link in 0..self.sides.links() {
            let (counts, held_here) = link_state(&mut worlds, &self.sides, self.now, link);
            self.layout.add_link(&mut rows, &self.changes, self.now, (link, &counts, held_here), columns)?;
            held += held_here;
            packet_hops += counts.delivered_packets;
        }
        held += worlds.iter().map(|world| world.held_by_hosts()).sum::<u64>();
        let total = |count: fn(&Tally) -> u64| worlds.iter().map(|world| count(&world.tally)).sum::<u64>();
        let (came, went) = (total(|tally| tally.injected), total(|tally| tally.delivered + tally.dropped));
        for held in [in_network, held] {
            check_conserved("in the network", came, went, held)?;
        }
        records.flows.complete();
        records.links = rows.into_table();
        records.totals.events = worlds.iter().map(|world| world.fabric.events()).sum();
        records.totals.packet_hops = packet_hops;
        records.totals.end_ps = self.now.as_ps();
        Ok(records)
    }

    /// Passes the controller of the open flow `id` to `steer`, then lets its sender send. Returns false if no such flow
    /// is open.
    pub(crate) fn steer(&mut self, id: u32, steer: &mut dyn FnMut(&mut dyn CongestionControl)) -> bool {
        let is_steered = self.domains.iter_mut().any(|domain| domain.world.steer_sender(id, steer));
        // What was sent may be due before the next event of all domains.
        self.next = self.next.min(self.now);
        is_steered
    }
}

/// Builds each of `parts` with `build`, on this number of threads. Returns the results in order.
fn built<P: Send, D: Send>(parts: Vec<P>, threads: usize, build: impl Fn(P) -> D + Sync) -> Vec<D> {
    let each = parts.len().div_ceil(threads);
    let mut parts = parts.into_iter();
    thread::scope(|scope| {
        let build = &build;
        let mut start = |_| {
            let own: Vec<P> = parts.by_ref().take(each).collect();
            scope.spawn(move || own.into_iter().map(build).collect::<Vec<D>>())
        };
        let builders: Vec<_> = (0..threads).map(&mut start).collect();
        builders.into_iter().flat_map(|builder| builder.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// The time right after `now`.
fn after(now: Time) -> Time {
    Time::from_ps(now.as_ps().saturating_add(1))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn worlds<Q>(domains: &mut [Domain<Q>]) -> Vec<&mut World<DomainFabric<Q>>> {
    domains.iter_mut().map(|domain| &mut domain.world).collect()
}

/// The counters of a link at `now`, and the packets that it holds.
fn link_state<Q: EventQueue>(
    worlds: &mut [&mut World<DomainFabric<Q>>],
    sides: &Sides,
    now: Time,
    link: u32,
) -> (LinkCounts, u64) {
    let [from, to] = sides.domains(link).map(usize::from);
    let owner = &mut worlds[from].fabric;
    let mut counts = owner.counts(now, link);
    let mut held = owner.held_packets(link) + owner.staged_packets(link);
    if owner.is_without_wire(link) {
        // What has left the transmitter is on the wire, which is in the other domain.
        let (packets, bytes) = worlds[to].fabric.on_wire(link);
        counts.delivered_packets -= packets;
        counts.delivered_bytes -= bytes;
        held += packets;
    }
    (counts, held)
}

/// The state of a run between windows that planning changes.
#[derive(Clone, Copy)]
struct Plan {
    /// A lower bound for the time of the next event.
    next: Time,
    /// Flows that start before this time have been planned.
    horizon: Time,
}

/// The number of windows, and the end of the last one: everything before it has happened.
#[derive(Clone, Copy)]
struct Progress {
    windows: u64,
    reached: Time,
}

/// The state that all threads of a slice share.
struct Shared<Q> {
    domains: Vec<Mutex<Domain<Q>>>,
    exchange: Exchange,
    letters: Letters,
    barrier: Barrier,
    /// A broken law of physics, with the domain that broke it.
    violation: Mutex<Option<(usize, PhysicsViolation)>>,
    threads: usize,
    lookahead: Dur,
    slice: Slice,
    /// The state at the beginning of the slice.
    begin: Progress,
    first: Plan,
    /// The state after the last planning.
    plan: Mutex<Plan>,
    /// The flows that are being planned.
    batch: Mutex<Arc<Batch>>,
    network: Arc<Network>,
    routes: Arc<Routes>,
    sides: Sides,
}

/// Releases the other threads if this one panics.
struct Watch<'a>(&'a Barrier);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.break_up();
        }
    }
}

impl<Q: EventQueue> Shared<Q> {
    /// Runs windows until the end of the slice. All threads decide alike: by what they have read since they met. The first
    /// thread has the flows.
    fn work(&self, thread: usize, mut flows: Option<&mut Flows>) -> (Progress, Time) {
        let (mut at, mut plan) = (self.begin, self.first);
        let _watch = Watch(&self.barrier);
        let beyond = after(self.slice.until);
        while plan.next.min(plan.horizon) <= self.slice.until {
            if plan.next >= plan.horizon {
                // After planning, the next event is before the horizon, so that no thread plans twice without a window.
                match self.plan_together(thread, flows.as_deref_mut(), at.reached, plan.next) {
                    Ok(next) => plan = next,
                    Err(Broken) => break,
                }
                continue;
            }
            let end = plan.next.as_ps().saturating_add(self.lookahead.as_ps());
            let end = Time::from_ps(end).min(plan.horizon).min(beyond);
            for domain in self.domains_of(thread) {
                self.run_window(at.windows, domain, end);
            }
            if self.barrier.meet().is_err() {
                break;
            }
            let summary = self.exchange.summary(at.windows);
            at = Progress { windows: at.windows + 1, reached: end };
            plan.next = summary.next.max(end);
            if summary.failed || summary.events >= self.slice.events {
                break;
            }
        }
        (at, plan.next)
    }

    /// The domains that a thread runs.
    fn domains_of(&self, thread: usize) -> impl Iterator<Item = usize> {
        (thread..self.domains.len()).step_by(self.threads)
    }

    /// Runs one domain until `end`.
    fn run_window(&self, window: u64, number: usize, end: Time) {
        let mut domain = locked(&self.domains[number]);
        let Domain { world, events, .. } = &mut *domain;
        self.exchange.take(window, number, |parcel| world.take_in_parcel(parcel));
        let failed = match world.run_until(end) {
            Ok(more) => {
                *events += more;
                false
            }
            Err(violation) => {
                let mut first = locked(&self.violation);
                if first.as_ref().is_none_or(|(other, _)| number < *other) {
                    *first = Some((number, violation));
                }
                true
            }
        };
        let departs = world.complete_parcels(end);
        for (to, parcel) in world.fabric.parcels().iter_mut().enumerate() {
            self.exchange.put(window, number, to, parcel);
        }
        let summary = Summary { next: world.next_time().min(departs), events: *events, failed };
        self.exchange.publish(window, number, summary);
    }

    /// Plans the flows that start next, and ends those that are over; see `planning.rs` and `accounts.rs`. Everything before
    /// `reached` has happened.
    fn plan_together(
        &self,
        thread: usize,
        mut flows: Option<&mut Flows>,
        reached: Time,
        next: Time,
    ) -> Result<Plan, Broken> {
        let letters = &self.letters;
        self.for_own_domains(thread, |_, domain| domain.accounts.ask(&mut domain.world, letters));
        if let Some(flows) = flows.as_deref_mut() {
            *locked(&self.batch) = Arc::new(flows.next_batch());
        }
        self.barrier.meet()?;
        let batch = Arc::clone(&locked(&self.batch));
        if let Some(flows) = flows.as_deref_mut() {
            flows.address(letters);
        }
        self.for_own_domains(thread, |_, domain| domain.accounts.answer(&domain.world, letters));
        self.barrier.meet()?;
        self.for_own_domains(thread, |_, domain| domain.accounts.settle(&mut domain.world, letters));
        self.barrier.meet()?;
        if let Some(flows) = flows.as_deref_mut() {
            // Meanwhile, the other threads outline flows.
            flows.keep(letters, reached);
            flows.draw_ahead();
            let first = batch.specs().first().map_or(Time::NEVER, |spec| spec.start);
            *locked(&self.plan) = Plan { next: next.min(first), horizon: flows.horizon() };
        }
        batch.outline(&self.network, &self.routes, &self.sides);
        self.barrier.meet()?;
        self.for_own_domains(thread, |number, domain| {
            domain.accounts.release(&mut domain.world, letters);
            batch.allot(number, &mut domain.world);
        });
        self.barrier.meet()?;
        if let Some(flows) = flows {
            flows.add(&batch);
        }
        self.for_own_domains(thread, |number, domain| batch.enter(number, reached, domain));
        self.barrier.meet()?;
        Ok(*locked(&self.plan))
    }

    /// Calls `act` with the number and the state of each domain that a thread runs.
    fn for_own_domains(&self, thread: usize, mut act: impl FnMut(u16, &mut Domain<Q>)) {
        for number in self.domains_of(thread) {
            act(number as u16, &mut locked(&self.domains[number]));
        }
    }
}

impl<Q: EventQueue + Send + 'static> Inside for Domains<Q> {
    fn now(&self) -> Time {
        self.now
    }

    fn open_flow(&self, id: u32) -> Option<FlowView<'_>> {
        let inner = self.domains.iter().find_map(|domain| domain.world.inner_flow(id));
        inner.or_else(|| {
            let (domain, slot) = self.flows.home(id)?;
            let crossing = self.domains[usize::from(domain)].accounts.of_slot(slot)?;
            (crossing.id == id).then(|| self.crossing_view(crossing))
        })
    }

    fn for_each_open_flow(&self, see: &mut dyn FnMut(FlowView<'_>)) {
        self.domains.iter().for_each(|domain| domain.world.for_each_inner_flow(see));
        let crossing = self.domains.iter().flat_map(|domain| domain.accounts.all());
        let open = crossing.filter(|crossing| self.flows.has_started(crossing.id));
        open.for_each(|crossing| see(self.crossing_view(crossing)));
    }

    fn link(&self, from: NodeId, to: NodeId) -> Option<u32> {
        self.layout.link_between(from, to)
    }

    fn is_in_view(&self, _: NodeId, _: NodeId) -> bool {
        // A run with observers is not in several domains.
        false
    }

    fn backlog_bytes(&mut self, link: u32) -> u64 {
        let (owner, now) = (self.sides.owner(link), self.now);
        self.domains[owner].world.fabric.backlog_bytes(now, link)
    }

    fn explicit_rate(&self, link: u32) -> Option<Rate> {
        self.domains[self.sides.owner(link)].world.fabric.explicit_rate(self.now, link)
    }

    fn counts(&mut self, link: u32) -> LinkCounts {
        link_state(&mut worlds(&mut self.domains), &self.sides, self.now, link).0
    }

    fn offered_bytes(&self, link: u32) -> Option<u64> {
        self.changes.offered_bytes(link, &self.layout.links[link as usize], self.now)
    }
}
