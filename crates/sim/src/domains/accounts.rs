//! Flows between domains: where their ends and routes are, and when they are over.
//!
//! The domain of its sender keeps the account of a flow. The flow is over once its sender is done and no packet of it is
//! in the network, which follows from the counts at both of its ends and from its losses in other domains. Domains learn
//! this from each other between windows, in steps. All domains complete a step before any of them begins the next one:
//!
//! 1. [`Accounts::ask`]: each domain asks for the receivers of its flows whose sender is done.
//! 2. [`Accounts::answer`]: each domain answers for its receivers. Losses get to the accounts ([`Flows::address`]).
//! 3. [`Accounts::settle`]: each domain ends its flows that are over.
//! 4. [`Accounts::release`]: each domain frees its slots and routes of flows that were ended.
//!
//! [`Flows::address`]: super::flows::Flows::address

use super::fabric::DomainFabric;
use super::locked;
use super::planning::Outline;
use crate::engine::event_queue::EventQueue;
use crate::records::Outcome;
use crate::world::World;
use crate::world::domain::{Ended, FlowEnd, Instant, LostPassing};
use sparelane_core::{Time, prefetch};
use std::sync::{Mutex, MutexGuard};

/// A flow whose packets pass through several domains.
#[derive(Debug)]
pub(super) struct Crossing {
    pub(super) id: u32,
    /// The domain and slot of its sender, and those of its receiver.
    pub(super) ends: [(u16, u32); 2],
    /// The parts of its routes, each with its domain, position and number of entries.
    parts: Box<[(u16, u32, u32)]>,
    /// Packets, and data packets among them, that were lost where the flow has no end.
    lost_packets: u32,
    lost_data: u64,
    /// The last of these losses.
    last_loss: Option<Instant>,
}

impl Crossing {
    /// True if one entry holds both ends.
    fn is_in_one_domain(&self) -> bool {
        self.ends[0] == self.ends[1]
    }

    /// The domains and slots of its entries.
    fn entries(&self) -> &[(u16, u32)] {
        if self.is_in_one_domain() { &self.ends[..1] } else { &self.ends }
    }

    /// Packets of the flow in the network, from the state of both of its ends.
    fn in_network(&self, sender: FlowEnd<'_>, receiver: Option<&EndState>) -> u32 {
        let at_receiver = receiver.map_or(0, |end| end.in_network);
        sender.in_network().wrapping_add(at_receiver).wrapping_sub(self.lost_packets)
    }

    /// The results of the flow, from both of its ends.
    fn outcome(&self, sender: FlowEnd<'_>, receiver: Option<&EndState>) -> Outcome {
        let sent = sender.outcome();
        let received = receiver.map(|end| (end.finish, end.delivered_bytes, end.lost));
        let (finish, delivered_bytes, lost) = received.unwrap_or((sent.finish, sent.delivered_bytes, 0));
        Outcome { finish, delivered_bytes, lost: sent.lost + lost + self.lost_data, ..sent }
    }
}

/// The state of the receiver of a flow in another domain than the sender.
#[derive(Clone, Copy, Debug)]
struct EndState {
    in_network: u32,
    /// The last event that may have ended the flow.
    last: Option<Instant>,
    finish: Time,
    delivered_bytes: u64,
    /// Data packets that were lost in its domain.
    lost: u64,
}

impl EndState {
    fn of(end: FlowEnd<'_>) -> EndState {
        let Outcome { finish, delivered_bytes, lost, .. } = end.outcome();
        EndState { in_network: end.in_network(), last: end.last(), finish, delivered_bytes, lost }
    }
}

/// Letters from one domain to another.
#[derive(Debug, Default)]
struct Mail {
    /// Receivers in the other domain, by slot, each with the slot of its sender.
    questions: Vec<[u32; 2]>,
    /// The state of receivers, each with the slot of its sender in the other domain.
    answers: Vec<(u32, EndState)>,
    /// Slots of flows that are over.
    slots: Vec<u32>,
    /// Positions of routes of flows that are over, each with the number of its entries.
    positions: Vec<(u32, u32)>,
}

/// Everything that domains write to each other and to the first thread while they settle.
#[derive(Debug, Default)]
pub(super) struct Letters {
    domains: usize,
    /// The letters from each domain to each: first all of those to domain 0.
    mail: Vec<Mutex<Mail>>,
    /// The flows that each domain has ended.
    ended: Vec<Mutex<Vec<Ended>>>,
    /// Losses in domains in which their flows have no end.
    unaddressed: Mutex<Vec<LostPassing>>,
    /// Losses for each domain, with the slots of their flows' senders.
    losses: Vec<Mutex<Vec<(u32, LostPassing)>>>,
}

impl Letters {
    pub(super) fn new(domains: usize) -> Letters {
        Letters {
            domains,
            mail: (0..domains * domains).map(|_| Mutex::default()).collect(),
            ended: (0..domains).map(|_| Mutex::default()).collect(),
            unaddressed: Mutex::default(),
            losses: (0..domains).map(|_| Mutex::default()).collect(),
        }
    }

    fn mail(&self, from: u16, to: u16) -> MutexGuard<'_, Mail> {
        locked(&self.mail[usize::from(to) * self.domains + usize::from(from)])
    }

    /// All domains but `domain`.
    fn others(&self, domain: u16) -> impl Iterator<Item = u16> + use<> {
        (0..self.domains as u16).filter(move |&other| other != domain)
    }

    /// The flows that each domain has ended in the last step. The caller removes them.
    pub(super) fn ended(&self) -> Vec<MutexGuard<'_, Vec<Ended>>> {
        self.ended.iter().map(locked).collect()
    }

    /// Sends each loss to the domain of its flow's sender, whose domain and slot `home` returns.
    pub(super) fn address(&self, home: impl Fn(u32) -> (u16, u32)) {
        for lost in locked(&self.unaddressed).drain(..) {
            let (domain, slot) = home(lost.flow);
            locked(&self.losses[usize::from(domain)]).push((slot, lost));
        }
    }
}

/// The accounts of the flows between domains whose sender is in one of them.
#[derive(Debug)]
pub(super) struct Accounts {
    domain: u16,
    /// Each account is at the slot of its flow's sender.
    crossing: Vec<Option<Box<Crossing>>>,
    /// The slots of those whose sender is done.
    done: Vec<u32>,
}

/// Flows for which memory is prefetched ahead: first the account, then the end.
const AHEAD: [usize; 2] = [8, 4];

impl Accounts {
    pub(super) fn new(domain: u16) -> Accounts {
        Accounts { domain, crossing: Vec::new(), done: Vec::new() }
    }

    /// Opens the account of a flow that is going to start, if it crosses domains and its sender is in this one.
    pub(super) fn open(&mut self, outline: &Outline) {
        let ends = outline.places();
        let (domain, slot) = (ends[0].0, ends[0].1 as usize);
        if domain != self.domain || !outline.crosses() {
            return;
        }
        if self.crossing.len() <= slot {
            self.crossing.resize_with(slot + 1, || None);
        }
        let parts = outline.positions().collect();
        let crossing = Crossing { id: outline.id, ends, parts, lost_packets: 0, lost_data: 0, last_loss: None };
        self.crossing[slot] = Some(Box::new(crossing));
    }

    /// All flows with an account, also those that have not started and those that are over and not settled yet.
    pub(super) fn all(&self) -> impl Iterator<Item = &Crossing> {
        self.crossing.iter().flatten().map(Box::as_ref)
    }

    /// The flow whose sender is in this slot.
    pub(super) fn of_slot(&self, slot: u32) -> Option<&Crossing> {
        self.crossing.get(slot as usize)?.as_deref()
    }

    /// Asks other domains for the receivers of flows whose sender is done. Those with both ends here stay in `done`.
    pub(super) fn ask<Q: EventQueue>(&mut self, world: &mut World<DomainFabric<Q>>, letters: &Letters) {
        let reports = world.reports();
        self.done.append(&mut reports.done);
        if !reports.lost.is_empty() {
            locked(&letters.unaddressed).append(&mut reports.lost);
        }
        let done = std::mem::take(&mut self.done);
        for (place, &slot) in done.iter().enumerate() {
            if let Some(next) = done.get(place + AHEAD[0]).and_then(|&slot| self.of_slot(slot)) {
                prefetch(next);
            }
            let Some(crossing) = self.of_slot(slot) else { continue };
            let (domain, receiver) = crossing.ends[1];
            if crossing.is_in_one_domain() {
                self.done.push(slot);
            } else {
                letters.mail(self.domain, domain).questions.push([receiver, slot]);
            }
        }
    }

    /// Answers for the receivers in this domain.
    pub(super) fn answer<Q: EventQueue>(&self, world: &World<DomainFabric<Q>>, letters: &Letters) {
        for other in letters.others(self.domain) {
            // No thread holds the letters of two pairs of domains, so none waits for another.
            let mut questions = std::mem::take(&mut letters.mail(other, self.domain).questions);
            let mut reply = letters.mail(self.domain, other);
            for (place, &[receiver, sender]) in questions.iter().enumerate() {
                if let Some(&[ahead, _]) = questions.get(place + AHEAD[1]) {
                    world.end_in(ahead).prefetch();
                }
                reply.answers.push((sender, EndState::of(world.end_in(receiver))));
            }
            drop(reply);
            questions.clear();
            letters.mail(other, self.domain).questions = questions;
        }
    }

    /// Ends the flows that are over.
    pub(super) fn settle<Q: EventQueue>(&mut self, world: &mut World<DomainFabric<Q>>, letters: &Letters) {
        for (slot, lost) in locked(&letters.losses[usize::from(self.domain)]).drain(..) {
            self.lose(slot, lost);
        }
        for slot in std::mem::take(&mut self.done) {
            self.end(slot, None, world, letters);
        }
        for other in letters.others(self.domain) {
            let mut answers = std::mem::take(&mut letters.mail(other, self.domain).answers);
            for (place, (slot, receiver)) in answers.iter().enumerate() {
                if let Some(&(ahead, _)) = answers.get(place + AHEAD[1]) {
                    world.end_in(ahead).prefetch();
                }
                self.end(*slot, Some(receiver), world, letters);
            }
            answers.clear();
            letters.mail(other, self.domain).answers = answers;
        }
        std::mem::swap(&mut world.reports().ended, &mut *locked(&letters.ended[usize::from(self.domain)]));
    }

    fn lose(&mut self, slot: u32, lost: LostPassing) {
        let Some(crossing) = self.crossing.get_mut(slot as usize).and_then(Option::as_deref_mut) else { return };
        debug_assert_eq!(crossing.id, lost.flow, "a flow ended before all of its packets");
        crossing.lost_packets = crossing.lost_packets.wrapping_add(1);
        crossing.lost_data += u64::from(lost.is_data);
        crossing.last_loss = crossing.last_loss.max(Some(lost.at));
    }

    /// Ends the flow whose sender is in this slot and done, if it is over. Otherwise it stays among those whose sender is.
    fn end<Q: EventQueue>(
        &mut self,
        slot: u32,
        receiver: Option<&EndState>,
        world: &mut World<DomainFabric<Q>>,
        letters: &Letters,
    ) {
        let Some(account) = self.crossing.get_mut(slot as usize) else { return };
        let sender = world.end_in(slot);
        let Some(crossing) = account.take_if(|crossing| crossing.in_network(sender, receiver) == 0) else {
            self.done.push(slot);
            return;
        };
        let lasts = [sender.last(), receiver.and_then(|end| end.last), crossing.last_loss];
        let Some(at) = lasts.into_iter().flatten().max() else { unreachable!("a flow that is over had an event") };
        let outcome = crossing.outcome(sender, receiver);
        world.reports().ended.push(Ended { outcome, at });
        for &(domain, slot) in crossing.entries() {
            letters.mail(self.domain, domain).slots.push(slot);
        }
        for &(domain, at, entries) in &crossing.parts {
            letters.mail(self.domain, domain).positions.push((at, entries));
        }
    }

    /// Frees the slots and routes of flows that this domain and others have ended.
    pub(super) fn release<Q: EventQueue>(&self, world: &mut World<DomainFabric<Q>>, letters: &Letters) {
        for from in 0..letters.domains as u16 {
            let mut mail = letters.mail(from, self.domain);
            mail.slots.drain(..).for_each(|slot| world.free_slot(slot));
            for (at, entries) in mail.positions.drain(..) {
                world.layout.positions.give_back(at, entries as usize);
            }
        }
    }
}

/// Packets of an open flow in the network, and its results so far.
pub(super) fn state_of<'a>(crossing: &Crossing, end: impl Fn((u16, u32)) -> FlowEnd<'a>) -> (u32, Outcome) {
    let sender = end(crossing.ends[0]);
    let receiver = (!crossing.is_in_one_domain()).then(|| EndState::of(end(crossing.ends[1])));
    (crossing.in_network(sender, receiver.as_ref()), crossing.outcome(sender, receiver.as_ref()))
}
