//! The receiving side of a transfer.

use super::TransferError;
use super::folder::Folder;
use super::message::{Digest, Message, Offer};
use super::name::Name;
use super::writing::{Answer, Job, Opening, Writing};
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox};
use crate::disk::{Desk, Disk};
use crate::identity::Fingerprint;
use crate::node::{FlowId, Node, NodeEvent};
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

#[derive(Debug)]
struct Item {
    opening: Opening,
    name: Name,
    offer: Offer,
    /// Whether it was accepted: the disk has said what there is of it.
    accepted: bool,
    /// Bytes that are there or on their way to the disk.
    have: u64,
    resumed: u64,
    flow: Option<FlowId>,
    whole: Option<Digest>,
    /// All of it is there or on its way to the disk, which will say how it went.
    finishing: bool,
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
        }
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
            Answer::Opened { opening, result } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                let said = match result {
                    Ok((have, digest)) => {
                        if let Some(open) = self.items.get_mut(&item) {
                            (open.accepted, open.have, open.resumed) = (true, have, have);
                        }
                        Message::Accept { item, have, digest }
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
        if self.items.values().any(|item| item.finishing) {
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
        match message {
            Message::Offer(offer) => {
                if self.ended || self.items.contains_key(&offer.item) || self.items.len() >= MOST_OPEN {
                    return Err(TransferError::Peer("offers an item twice, too many, or after the end"));
                }
                let Some(peer) = node.peer(self.association) else { return Ok(()) };
                let item = offer.item;
                if let Err(reason) = self.open(busy, peer, offer) {
                    node.write_control(self.association, Message::Refuse { item, reason }.encode())?;
                }
            }
            Message::Begin { item, flow, from } => {
                let id = FlowId { association: self.association, flow };
                let may_begin = |item: &&mut Item| {
                    item.accepted && item.flow.is_none() && (from == item.have || from == 0) && !item.offer.folder
                };
                let open = self.items.get_mut(&item).filter(may_begin);
                let Some(open) = open.filter(|_| !self.by_flow.contains_key(&id)) else {
                    return Err(TransferError::Peer("begins an item that it may not begin, or not there"));
                };
                open.flow = Some(id);
                if from == 0 {
                    (open.have, open.resumed) = (0, 0);
                }
                self.desk.submit(Job::Begin { opening: open.opening, from }, 0);
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
            // What is whole has its name, or will.
            Message::Abort { item, .. } if self.items.get(&item).is_some_and(|item| item.finishing) => {}
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
        let job = if offer.folder {
            Job::Make { opening, name: name.clone(), mode: offer.mode }
        } else {
            if busy.is_taken(&name, self.association, peer) {
                return Err("another transfer is receiving a file of this name".to_owned());
            }
            takes_place = busy.take(name.clone(), self.association, peer);
            Job::Open { opening, name: name.clone(), size: offer.size }
        };
        self.openings += 1;
        if takes_place {
            self.held_back.push(job);
        } else {
            self.desk.submit(job, 0);
        }
        let (accepted, have, resumed, flow, whole, finishing) = (false, 0, 0, None, None, false);
        self.by_opening.insert(opening, item);
        self.items.insert(item, Item { opening, name, offer, accepted, have, resumed, flow, whole, finishing });
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
                open.have += bytes.len() as u64;
                if open.have > open.offer.size {
                    return Err(TransferError::Peer("sends more of a file than it has offered"));
                }
                pieces_bytes += bytes.len() as u64;
                pieces.push(bytes);
            }
            let Some(open) = open.filter(|_| !pieces.is_empty()) else { break };
            self.desk.submit(Job::Write { opening: open.opening, pieces }, pieces_bytes);
        }
        self.conclude(item);
        Ok(())
    }

    /// Has a file get its name, if all of it has come.
    fn conclude(&mut self, item: u32) {
        let Some(open) = self.items.get_mut(&item).filter(|open| !open.finishing) else { return };
        let Some(digest) = open.whole.filter(|_| open.flow.is_some() && open.have == open.offer.size) else { return };
        open.finishing = true;
        let (opening, &Offer { size, mode, modified_ns, .. }) = (open.opening, &open.offer);
        self.desk.submit(Job::Finish { opening, digest, size, mode, modified_ns }, 0);
    }

    /// An item is over, and its name free for others.
    fn forget(&mut self, busy: &mut Busy, item: u32) -> Option<Item> {
        let open = self.items.remove(&item)?;
        if !open.offer.folder {
            busy.free(&open.name, self.association);
        }
        self.by_opening.remove(&open.opening);
        self.desk.submit(Job::Close { opening: open.opening }, 0);
        Some(open)
    }

    fn settle(&mut self, busy: &mut Busy, item: u32, error: Option<String>) {
        if let Some(open) = self.forget(busy, item) {
            let (name, size, resumed) = (open.name.to_string(), open.offer.size, open.resumed);
            self.received.push_back(Received { name, size, resumed, error });
        }
    }
}
