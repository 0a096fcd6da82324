//! The receiving side of a transfer.

use super::TransferError;
use super::chunks::{Digest, chunk_bytes};
use super::folder::Folder;
use super::message::{Kind, Message, Offer};
use super::name::Name;
use super::patience::{Patience, STALL_TIMEOUT};
use super::writing::{Answer, Attributes, Job, Opening, Writing};
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox};
use crate::disk::{Desk, Disk};
use crate::identity::Fingerprint;
use crate::node::{FlowId, Node, NodeEvent};
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The most items that are open at a time.
const MOST_OPEN: usize = 1024;

/// So many bytes are handed to the disk at once.
const PIECES_BYTES: u64 = 256 << 10;

/// The names that the transfers into one folder are receiving now.
///
/// A transfer that offers a name which an earlier one of the same peer is receiving takes its place: the earlier one is of a sender
/// that was stopped, most likely, and whose silence is not noticed yet.
#[derive(Debug, Default)]
pub struct Busy {
    names: BTreeMap<Name, (AssociationId, Fingerprint)>,
    replaced: BTreeSet<AssociationId>,
}

impl Busy {
    fn is_taken(&self, name: &Name, association: AssociationId, peer: Fingerprint) -> bool {
        self.names.get(name).is_some_and(|holder| holder.0 == association || holder.1 != peer)
    }

    /// Returns whether an earlier transfer has to end before anything is done with the file.
    fn take(&mut self, name: Name, association: AssociationId, peer: Fingerprint) -> bool {
        let earlier = self.names.insert(name, (association, peer));
        let Some((earlier, _)) = earlier else { return false };
        self.replaced.insert(earlier);
        true
    }

    fn free(&mut self, name: &Name, association: AssociationId) {
        if self.names.get(name).is_some_and(|holder| holder.0 == association) {
            self.names.remove(name);
        }
    }

    /// Whether no name is being received.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// An association whose transfer is to be ended before anything else happens, as another has taken its place.
    pub fn poll_replaced(&mut self) -> Option<AssociationId> {
        self.replaced.pop_first()
    }
}

/// What has become of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its name.
    pub name: String,
    /// Bytes of it.
    pub size: u64,
    /// Bytes that an earlier attempt had left.
    pub resumed: u64,
    /// Why it is not there, if it is not.
    pub error: Option<String>,
}

/// How far a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The disk is asked for it.
    Asked,
    /// A file of its name and size is there, and the sender is asked for the digest of its own.
    There,
    /// It is accepted, with so many bytes that are here.
    Accepted(u64),
    /// It comes in a flow.
    Begun,
    /// All of it is there or on its way to the disk, which will say how it went.
    Finishing,
}

#[derive(Debug)]
struct Item {
    opening: Opening,
    name: Name,
    offer: Offer,
    state: State,
    /// Bytes that its flow still brings.
    left: u64,
    resumed: u64,
    whole: Option<Digest>,
    /// Bytes that the sender has hashed, as far as it has told.
    checked_bytes: u64,
}

/// A transfer from a peer into a folder.
#[derive(Debug)]
pub struct ReceiveTransfer {
    association: AssociationId,
    desk: Desk<Writing>,
    openings: Opening,
    items: BTreeMap<u32, Item>,
    /// The items of what is open on the disk.
    by_opening: BTreeMap<Opening, u32>,
    by_flow: BTreeMap<FlowId, u32>,
    /// Flows of which more can be read when the disk has room.
    stalled: BTreeSet<FlowId>,
    /// What waits for the end of the transfers whose place this one has taken.
    held_back: Vec<Job>,
    inbox: Inbox,
    received: VecDeque<Received>,
    ended: bool,
    received_bytes: u64,
    /// Items that were offered until now.
    offered: u64,
    /// What the sender has said until now that brings the transfer on.
    messages: u64,
    patience: Patience,
}

impl ReceiveTransfer {
    /// A transfer over an open association into this folder. Where it `replaces`, files that are there already are replaced. What is
    /// done on the disk is done by its thread, if there is one, and else at once.
    pub fn new(
        association: AssociationId,
        folder: &Arc<Folder>,
        replaces: bool,
        disk: Option<&Disk>,
    ) -> ReceiveTransfer {
        let writing = Writing::new(Arc::clone(folder), replaces);
        ReceiveTransfer {
            association,
            desk: match disk {
                Some(disk) => disk.desk(writing),
                None => Desk::without_thread(writing),
            },
            openings: 0,
            items: BTreeMap::new(),
            by_opening: BTreeMap::new(),
            by_flow: BTreeMap::new(),
            stalled: BTreeSet::new(),
            held_back: Vec::new(),
            inbox: Inbox::default(),
            received: VecDeque::new(),
            ended: false,
            received_bytes: 0,
            offered: 0,
            messages: 0,
            patience: Patience::new(STALL_TIMEOUT),
        }
    }

    /// Sets for how long it waits for a sender of which nothing comes, although it is there.
    pub fn set_stall_timeout(&mut self, most: Dur) {
        self.patience = Patience::new(most);
    }

    /// Whether the sender has nothing more to be waited for; to be asked now and then.
    ///
    /// # Errors
    /// It is there, and does nothing.
    pub fn check_patience(&mut self, now: Time) -> Result<(), TransferError> {
        let works = |item: &Item| matches!(item.state, State::Asked | State::Finishing);
        // Whoever has offered nothing keeps nobody waiting: so the path is measured.
        let works = self.offered == 0 || self.desk.is_busy() || self.items.values().any(works);
        if self.patience.is_over(now, self.messages + self.received_bytes, works) {
            return Err(TransferError::Stalled(self.patience.most()));
        }
        Ok(())
    }

    /// Items that were offered until now.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Whether the sender has nothing more, and all of it has been dealt with.
    pub fn is_done(&self) -> bool {
        self.ended && self.items.is_empty()
    }

    /// Bytes that came until now.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// What has become of an item, once for each.
    pub fn poll_received(&mut self) -> Option<Received> {
        self.received.pop_front()
    }

    /// Something has happened at the node. `busy` has the names that any transfer is receiving now.
    ///
    /// # Errors
    /// The association is over, or the peer breaks the rules; what is there of files stays for the next attempt.
    pub fn handle_event<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        busy: &mut Busy,
        event: &NodeEvent,
    ) -> Result<(), TransferError> {
        match event {
            NodeEvent::Control(association) if *association == self.association => {
                while let Some(bytes) = node.read_control(self.association) {
                    self.inbox.push(&bytes);
                }
                while let Some(message) = self.inbox.pop()? {
                    self.handle_message(node, busy, message)?;
                    self.handle_answers(node, busy)?;
                }
            }
            NodeEvent::Readable(flow) if flow.association == self.association => self.read(node, *flow)?,
            NodeEvent::Closed { association, reason } if *association == self.association => {
                self.release(busy);
                return Err(TransferError::Closed(reason.clone()));
            }
            // Why a flow has failed the sender says on the control stream; one that nobody has begun waits in the node.
            _ => {}
        }
        self.handle_answers(node, busy)
    }

    /// The transfers have ended whose place this one has taken: they have handed their last jobs to the disk.
    pub fn go_on(&mut self) {
        for job in std::mem::take(&mut self.held_back) {
            self.desk.submit(job, 0);
        }
    }

    /// The disk may have answered.
    ///
    /// # Errors
    /// The peer breaks the rules, or does not take its messages.
    pub fn handle_answers<C: Carrier>(&mut self, node: &mut Node<C>, busy: &mut Busy) -> Result<(), TransferError> {
        while let Some(answer) = self.desk.poll() {
            self.handle_answer(node, busy, answer)?;
        }
        if self.desk.has_room() {
            for flow in std::mem::take(&mut self.stalled) {
                self.read(node, flow)?;
            }
        }
        Ok(())
    }

    fn handle_answer<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        busy: &mut Busy,
        answer: Answer,
    ) -> Result<(), TransferError> {
        // Of what is over, answers may still come.
        match answer {
            Answer::Made { opening, result } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                let said = match result {
                    Ok(()) => {
                        self.settle(busy, item, None);
                        Message::Stored { item }
                    }
                    Err(reason) => {
                        self.settle(busy, item, Some(reason.clone()));
                        Message::Refuse { item, reason }
                    }
                };
                node.write_control(self.association, said.encode())?;
            }
            Answer::There { opening } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                if let Some(open) = self.items.get_mut(&item) {
                    (open.state, open.resumed) = (State::There, open.offer.size);
                }
                node.write_control(self.association, Message::There { item }.encode())?;
            }
            Answer::Checked { opening, bytes } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                node.write_control(self.association, Message::Checked { item, bytes }.encode())?;
            }
            Answer::Opened { opening, result } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                let said = match result {
                    Ok((have, chunks)) => {
                        if let Some(open) = self.items.get_mut(&item) {
                            (open.state, open.whole) = (State::Accepted(have), None);
                        }
                        Message::Accept { item, have, chunks }
                    }
                    Err(reason) => {
                        self.settle(busy, item, Some(reason.clone()));
                        Message::Refuse { item, reason }
                    }
                };
                node.write_control(self.association, said.encode())?;
            }
            Answer::Written => {}
            Answer::Failed { opening, reason } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                node.write_control(self.association, Message::Failed { item, reason: reason.clone() }.encode())?;
                self.settle(busy, item, Some(reason));
            }
            Answer::Stored { opening, result } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                let said = match &result {
                    Ok(()) => Message::Stored { item },
                    Err(reason) => Message::Failed { item, reason: reason.clone() },
                };
                self.settle(busy, item, result.err());
                node.write_control(self.association, said.encode())?;
            }
        }
        Ok(())
    }

    /// The transfer is over: its names are free for others.
    pub fn release(&mut self, busy: &mut Busy) {
        if self.items.values().any(|item| item.state == State::Finishing) {
            // A file that is whole may have its name already.
            self.desk.settle();
            while let Some(answer) = self.desk.poll() {
                if let Answer::Stored { opening, result } = answer
                    && let Some(&item) = self.by_opening.get(&opening)
                {
                    self.settle(busy, item, result.err());
                }
            }
        }
        let cut = "the connection ended before it was whole; what is here stays for the next attempt";
        for item in self.items.keys().copied().collect::<Vec<_>>() {
            self.settle(busy, item, Some(cut.to_owned()));
        }
    }

    fn handle_message<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        busy: &mut Busy,
        message: Message,
    ) -> Result<(), TransferError> {
        // Of hashing, only more of it is something new.
        self.messages += u64::from(!matches!(message, Message::Checked { .. }));
        match message {
            Message::Offer(offer) => {
                self.offered += u64::from(offer.kind != Kind::FolderTime);
                if self.ended || self.items.contains_key(&offer.item) || self.items.len() >= MOST_OPEN {
                    return Err(TransferError::Peer("offers an item twice, too many, or after the end"));
                }
                let Some(peer) = node.peer(self.association) else { return Ok(()) };
                let item = offer.item;
                if let Err(reason) = self.open(busy, peer, offer) {
                    node.write_control(self.association, Message::Refuse { item, reason }.encode())?;
                }
            }
            Message::Begin { item, flow, from, again } => {
                let id = FlowId { association: self.association, flow };
                let is_free = !self.by_flow.contains_key(&id);
                let begun = self.items.get_mut(&item).filter(|_| is_free).and_then(|open| open.begin(from, &again));
                let Some(opening) = begun else {
                    return Err(TransferError::Peer("begins an item that it may not begin, or not there"));
                };
                self.desk.submit(Job::Begin { opening, from, again }, 0);
                self.by_flow.insert(id, item);
                self.read(node, id)?;
            }
            Message::Whole { item, digest } => {
                // Nothing is there where the item has failed here meanwhile.
                if let Some(open) = self.items.get_mut(&item) {
                    open.whole = Some(digest);
                    self.conclude(item);
                }
            }
            Message::Checked { item, bytes } => {
                if let Some(open) = self.items.get_mut(&item)
                    && bytes > open.checked_bytes
                    && bytes <= open.offer.size
                {
                    open.checked_bytes = bytes;
                    self.messages += 1;
                }
            }
            // What is whole has its name, or will.
            Message::Abort { item, .. } if self.items.get(&item).is_some_and(|item| item.state == State::Finishing) => {
            }
            Message::Abort { item, reason } => self.settle(busy, item, Some(reason)),
            Message::End => self.ended = true,
            _ => return Err(TransferError::Peer("sends what only a receiver says")),
        }
        Ok(())
    }

    /// Asks the disk for what is offered; the error is for the sender.
    fn open(&mut self, busy: &mut Busy, peer: Fingerprint, offer: Offer) -> Result<(), String> {
        let name = Name::new(offer.name.clone()).map_err(|error| error.to_string())?;
        let (item, opening) = (offer.item, self.openings);
        let mut takes_place = false;
        let job = match offer.kind {
            Kind::Folder => Job::Make { opening, name: name.clone(), mode: offer.mode },
            Kind::FolderTime => Job::Date { opening, name: name.clone(), modified_ns: offer.modified_ns },
            Kind::File => {
                if busy.is_taken(&name, self.association, peer) {
                    return Err("another transfer is receiving a file of this name".to_owned());
                }
                takes_place = busy.take(name.clone(), self.association, peer);
                Job::Open { opening, name: name.clone(), size: offer.size }
            }
        };
        self.openings += 1;
        if takes_place {
            self.held_back.push(job);
        } else {
            self.desk.submit(job, 0);
        }
        self.by_opening.insert(opening, item);
        let (state, left, resumed, whole, checked_bytes) = (State::Asked, 0, 0, None, 0);
        self.items.insert(item, Item { opening, name, offer, state, left, resumed, whole, checked_bytes });
        Ok(())
    }

    /// Hands what has come of a flow to the disk, as far as that has room.
    fn read<C: Carrier>(&mut self, node: &mut Node<C>, flow: FlowId) -> Result<(), TransferError> {
        let Some(&item) = self.by_flow.get(&flow) else { return Ok(()) };
        loop {
            let mut open = self.items.get_mut(&item);
            if open.is_some() && !self.desk.has_room() {
                self.stalled.insert(flow);
                return Ok(());
            }
            let (mut pieces, mut pieces_bytes) = (vec![], 0);
            while pieces_bytes < PIECES_BYTES
                && let Some(bytes) = node.read(flow)
            {
                self.received_bytes += bytes.len() as u64;
                // What comes after a failure is read and thrown away.
                let Some(open) = &mut open else { continue };
                let Some(left) = open.left.checked_sub(bytes.len() as u64) else {
                    return Err(TransferError::Peer("sends more of a file than it has offered"));
                };
                open.left = left;
                pieces_bytes += bytes.len() as u64;
                pieces.push(bytes);
            }
            let Some(open) = open.filter(|_| !pieces.is_empty()) else { break };
            self.desk.submit(Job::Write { opening: open.opening, pieces }, pieces_bytes);
        }
        self.conclude(item);
        Ok(())
    }

    /// Has a file get its name, if all of it has come, or compares the one that has it.
    fn conclude(&mut self, item: u32) {
        let Some(open) = self.items.get_mut(&item) else { return };
        let Some(digest) = open.whole else { return };
        let (opening, &Offer { size, mode, modified_ns, .. }) = (open.opening, &open.offer);
        let attributes = Attributes { mode, modified_ns };
        let job = match open.state {
            State::There => Job::Compare { opening, digest, attributes },
            State::Begun if open.left == 0 => Job::Finish { opening, digest, size, attributes },
            _ => return,
        };
        open.state = State::Finishing;
        self.desk.submit(job, 0);
    }

    /// An item is over, and its name free for others.
    fn forget(&mut self, busy: &mut Busy, item: u32) -> Option<Item> {
        let open = self.items.remove(&item)?;
        if open.offer.kind == Kind::File {
            busy.free(&open.name, self.association);
        }
        self.by_opening.remove(&open.opening);
        self.desk.submit(Job::Close { opening: open.opening }, 0);
        Some(open)
    }

    fn settle(&mut self, busy: &mut Busy, item: u32, error: Option<String>) {
        if let Some(open) = self.forget(busy, item) {
            if open.offer.kind == Kind::FolderTime && error.is_none() {
                return;
            }
            let (name, size, resumed) = (open.name.to_string(), open.offer.size, open.resumed);
            self.received.push_back(Received { name, size, resumed, error });
        }
    }
}

impl Item {
    /// It comes, as *begin* says. Returns its opening, or `None` where it may not come so.
    fn begin(&mut self, from: u64, again: &[u16]) -> Option<Opening> {
        let State::Accepted(have) = self.state else { return None };
        let (size, chunk_bytes) = (self.offer.size, chunk_bytes(self.offer.size));
        let is_place = from == have || (from < have && from.is_multiple_of(chunk_bytes));
        let are_chunks = again.is_sorted_by(|one, next| one < next)
            && again.last().is_none_or(|&last| (u64::from(last) + 1).saturating_mul(chunk_bytes) <= from);
        if !is_place || !are_chunks {
            return None;
        }
        let again_bytes = again.len() as u64 * chunk_bytes;
        (self.state, self.left, self.resumed) = (State::Begun, size - from + again_bytes, from - again_bytes);
        Some(self.opening)
    }
}
