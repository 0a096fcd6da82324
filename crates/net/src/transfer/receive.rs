//! The receiving side of a transfer.

use super::TransferError;
use super::folder::{Folder, Partial};
use super::message::{Digest, Message, Offer};
use super::name::Name;
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox};
use crate::identity::Fingerprint;
use crate::node::{FlowId, Node, NodeEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read, Seek, SeekFrom, Write};

/// The most items that are open at a time.
const MOST_OPEN: usize = 1024;

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

    fn take(&mut self, name: Name, association: AssociationId, peer: Fingerprint) {
        if let Some((earlier, _)) = self.names.insert(name, (association, peer)) {
            self.replaced.insert(earlier);
        }
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
    name: Name,
    offer: Offer,
    partial: Partial,
    hasher: blake3::Hasher,
    /// Bytes that are there and in the digest.
    have: u64,
    resumed: u64,
    flow: Option<FlowId>,
    whole: Option<Digest>,
}

/// A transfer from a peer into a folder.
#[derive(Debug)]
pub struct ReceiveTransfer {
    association: AssociationId,
    replaces: bool,
    items: BTreeMap<u32, Item>,
    by_flow: BTreeMap<FlowId, u32>,
    inbox: Inbox,
    received: VecDeque<Received>,
    ended: bool,
    received_bytes: u64,
}

impl ReceiveTransfer {
    /// A transfer over an open association. Where it `replaces`, files that are there already are replaced.
    pub fn new(association: AssociationId, replaces: bool) -> ReceiveTransfer {
        ReceiveTransfer {
            association,
            replaces,
            items: BTreeMap::new(),
            by_flow: BTreeMap::new(),
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
        folder: &Folder,
        busy: &mut Busy,
        event: &NodeEvent,
    ) -> Result<(), TransferError> {
        match event {
            NodeEvent::Control(association) if *association == self.association => {
                while let Some(bytes) = node.read_control(self.association) {
                    self.inbox.push(&bytes);
                }
                while let Some(message) = self.inbox.pop()? {
                    self.handle_message(node, folder, busy, message)?;
                }
            }
            NodeEvent::Readable(flow) if flow.association == self.association => self.read(node, busy, *flow)?,
            NodeEvent::Closed { association, reason } if *association == self.association => {
                self.release(busy);
                return Err(TransferError::Closed(reason.clone()));
            }
            // Why a flow has failed the sender says on the control stream; one that nobody has begun waits in the node.
            _ => {}
        }
        Ok(())
    }

    /// The transfer is over: its names are free for others.
    pub fn release(&mut self, busy: &mut Busy) {
        for item in std::mem::take(&mut self.items).into_values() {
            busy.free(&item.name, self.association);
            let (name, size, resumed) = (item.name.to_string(), item.offer.size, item.resumed);
            let error =
                Some("the connection ended before it was whole; what is here stays for the next attempt".to_owned());
            self.received.push_back(Received { name, size, resumed, error });
        }
    }

    fn handle_message<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        folder: &Folder,
        busy: &mut Busy,
        message: Message,
    ) -> Result<(), TransferError> {
        match message {
            Message::Offer(offer) => {
                if self.ended || self.items.contains_key(&offer.item) || self.items.len() >= MOST_OPEN {
                    return Err(TransferError::Peer("offers an item twice, too many, or after the end"));
                }
                let Some(peer) = node.peer(self.association) else { return Ok(()) };
                let (item, answer) = (offer.item, self.answer(folder, busy, peer, offer));
                let answer = answer.unwrap_or_else(|reason| Message::Refuse { item, reason });
                node.write_control(self.association, answer.encode())?;
            }
            Message::Begin { item, flow, from } => {
                let id = FlowId { association: self.association, flow };
                let open =
                    self.items.get_mut(&item).filter(|item| item.flow.is_none() && (from == item.have || from == 0));
                let Some(open) = open.filter(|_| !self.by_flow.contains_key(&id)) else {
                    return Err(TransferError::Peer("begins an item that it may not begin, or not there"));
                };
                open.flow = Some(id);
                if from == 0 && open.have > 0 {
                    (open.have, open.resumed) = (0, 0);
                    open.hasher.reset();
                }
                // What is behind would be taken for new bytes by a later attempt.
                let file = open.partial.file();
                let rewound = file.set_len(from).and_then(|()| file.seek(SeekFrom::Start(from)));
                if let Err(error) = rewound {
                    return self.fail(node, busy, item, error.to_string());
                }
                self.by_flow.insert(id, item);
                self.read(node, busy, id)?;
            }
            Message::Whole { item, digest } => {
                // Nothing is there where the item has failed here meanwhile.
                if let Some(open) = self.items.get_mut(&item) {
                    open.whole = Some(digest);
                    self.conclude(node, busy, item)?;
                }
            }
            Message::Abort { item, reason } => self.settle(busy, item, Some(reason)),
            Message::End => self.ended = true,
            _ => return Err(TransferError::Peer("sends what only a receiver says")),
        }
        Ok(())
    }

    /// What an offer is answered; the error is for the sender.
    fn answer(&mut self, folder: &Folder, busy: &mut Busy, peer: Fingerprint, offer: Offer) -> Result<Message, String> {
        let item = offer.item;
        let told = |error: std::io::Error| error.to_string();
        let name = Name::new(offer.name.clone()).map_err(|error| error.to_string())?;
        if offer.folder {
            folder.make(&name, offer.mode).map_err(told)?;
            let (name, size, resumed) = (name.to_string(), 0, 0);
            self.received.push_back(Received { name, size, resumed, error: None });
            return Ok(Message::Stored { item });
        }
        if busy.is_taken(&name, self.association, peer) {
            return Err("another transfer is receiving a file of this name".to_owned());
        }
        if !self.replaces && folder.has(&name).map_err(told)? {
            return Err("it is there already".to_owned());
        }
        let mut partial = folder.begin(&name).map_err(told)?;
        let mut hasher = blake3::Hasher::new();
        let have = if partial.had_bytes() <= offer.size { partial.had_bytes() } else { 0 };
        let read = hasher.update_reader(partial.file().take(have));
        read.map_err(told)?;
        let digest = *hasher.finalize().as_bytes();
        busy.take(name.clone(), self.association, peer);
        let open = Item { name, offer, partial, hasher, have, resumed: have, flow: None, whole: None };
        self.items.insert(item, open);
        Ok(Message::Accept { item, have, digest })
    }

    /// Writes what has come of a flow.
    fn read<C: Carrier>(&mut self, node: &mut Node<C>, busy: &mut Busy, flow: FlowId) -> Result<(), TransferError> {
        let Some(&item) = self.by_flow.get(&flow) else { return Ok(()) };
        while let Some(bytes) = node.read(flow) {
            self.received_bytes += bytes.len() as u64;
            // What comes after a failure is read and thrown away.
            let Some(open) = self.items.get_mut(&item) else { continue };
            if open.have + bytes.len() as u64 > open.offer.size {
                return Err(TransferError::Peer("sends more of a file than it has offered"));
            }
            // Zeros are left out, so that holes stay holes; what is behind has its place all the same.
            let file = open.partial.file();
            let written = if bytes.iter().all(|&byte| byte == 0) {
                file.seek(SeekFrom::Current(bytes.len() as i64)).map(drop)
            } else {
                file.write_all(&bytes)
            };
            if let Err(error) = written {
                self.fail(node, busy, item, error.to_string())?;
                continue;
            }
            open.hasher.update(&bytes);
            open.have += bytes.len() as u64;
        }
        self.conclude(node, busy, item)
    }

    /// Gives a file its name, if all of it is here and right.
    fn conclude<C: Carrier>(&mut self, node: &mut Node<C>, busy: &mut Busy, item: u32) -> Result<(), TransferError> {
        let Some(open) = self.items.get(&item) else { return Ok(()) };
        let Some(digest) = open.whole.filter(|_| open.flow.is_some() && open.have == open.offer.size) else {
            return Ok(());
        };
        let is_right = *open.hasher.finalize().as_bytes() == digest;
        let Some(open) = self.items.remove(&item) else { return Ok(()) };
        busy.free(&open.name, self.association);
        let Item { name, offer, partial, resumed, .. } = open;
        let stored = if is_right {
            partial.finish(offer.size, offer.mode, offer.modified_ns, self.replaces).map_err(|error| error.to_string())
        } else {
            let _ = partial.discard();
            Err("what came is not what was sent: the digests differ".to_owned())
        };
        let answer = match &stored {
            Ok(()) => Message::Stored { item },
            Err(reason) => Message::Failed { item, reason: reason.clone() },
        };
        self.received.push_back(Received { name: name.to_string(), size: offer.size, resumed, error: stored.err() });
        node.write_control(self.association, answer.encode())?;
        Ok(())
    }

    fn fail<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        busy: &mut Busy,
        item: u32,
        reason: String,
    ) -> Result<(), TransferError> {
        node.write_control(self.association, Message::Failed { item, reason: reason.clone() }.encode())?;
        self.settle(busy, item, Some(reason));
        Ok(())
    }

    fn settle(&mut self, busy: &mut Busy, item: u32, error: Option<String>) {
        if let Some(open) = self.items.remove(&item) {
            busy.free(&open.name, self.association);
            let (name, size, resumed) = (open.name.to_string(), open.offer.size, open.resumed);
            self.received.push_back(Received { name, size, resumed, error });
        }
    }
}
