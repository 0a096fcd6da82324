//! The sending side of a transfer.

use super::TransferError;
use super::message::{Message, Offer};
use super::source::{Source, changed};
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox};
use crate::node::{FlowId, Node, NodeEvent};
use bytes::Bytes;
use sparelane_core::Time;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};

/// So many items are offered ahead of those that are sent.
const MOST_OFFERED: usize = 64;

/// So many files are on their way at a time.
const MOST_ACTIVE: usize = 16;

/// What is read from a file at once, bytes: one write, of which the tail is the end.
const PIECE_BYTES: u64 = 16 << 20;

/// What has become of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it is called at the receiver.
    pub name: String,
    /// Bytes of it.
    pub size: u64,
    /// Bytes that had not to be sent, as an earlier attempt had left them.
    pub resumed: u64,
    /// Why it is not there, if it is not.
    pub error: Option<String>,
}

#[derive(Debug)]
struct Active {
    flow: FlowId,
    file: File,
    /// Bytes of it that are not read.
    left: u64,
    from: u64,
    hasher: blake3::Hasher,
}

/// A transfer to a peer.
#[derive(Debug)]
pub struct SendTransfer {
    association: AssociationId,
    sources: Vec<Source>,
    next_offer: usize,
    /// Items that are wanted, with what is there.
    wanted: VecDeque<(u32, u64, [u8; 32])>,
    active: BTreeMap<u32, Active>,
    /// Items of which nothing has come back, and those of which all is sent.
    open: usize,
    settled: Vec<bool>,
    inbox: Inbox,
    outcomes: VecDeque<Outcome>,
    resumed: BTreeMap<u32, u64>,
    ended: bool,
    sent_bytes: u64,
    window_bytes: u64,
}

impl SendTransfer {
    /// A transfer of `sources` over an open association.
    pub fn new<C: Carrier>(association: AssociationId, sources: Vec<Source>, node: &Node<C>) -> SendTransfer {
        let settled = vec![false; sources.len()];
        SendTransfer {
            association,
            sources,
            next_offer: 0,
            wanted: VecDeque::new(),
            active: BTreeMap::new(),
            open: 0,
            settled,
            inbox: Inbox::default(),
            outcomes: VecDeque::new(),
            resumed: BTreeMap::new(),
            ended: false,
            sent_bytes: 0,
            window_bytes: node.config().window_bytes,
        }
    }

    /// Whether every item is there, or is known not to be.
    pub fn is_done(&self) -> bool {
        self.next_offer == self.sources.len() && self.open == 0
    }

    /// Whether something of an item is on its way.
    pub fn is_waiting(&self) -> bool {
        !self.active.is_empty()
    }

    /// The items of which nothing is known yet, to be sent by another transfer.
    pub fn into_unsettled(self) -> Vec<Source> {
        self.sources.into_iter().zip(self.settled).filter(|(_, settled)| !settled).map(|(source, _)| source).collect()
    }

    /// What has become of an item, once for each.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Bytes that the receiver has, and bytes of all files.
    pub fn progress<C: Carrier>(&self, node: &Node<C>) -> (u64, u64) {
        let under_way: u64 = self
            .active
            .values()
            .map(|active| active.from + node.sending(active.flow).map_or(0, |flow| flow.acknowledged_bytes()))
            .sum();
        (self.sent_bytes + under_way, self.sources.iter().map(|source| source.size).sum())
    }

    /// Something has happened at the node.
    ///
    /// # Errors
    /// The association is over, or the peer's messages are none.
    pub fn handle_event<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        event: &NodeEvent,
    ) -> Result<(), TransferError> {
        match event {
            NodeEvent::Control(association) if *association == self.association => {
                while let Some(bytes) = node.read_control(self.association) {
                    self.inbox.push(&bytes);
                }
                while let Some(message) = self.inbox.pop()? {
                    self.handle_message(message)?;
                }
            }
            NodeEvent::SendFailed(flow) if flow.association == self.association => {
                return Err(TransferError::Stuck);
            }
            NodeEvent::Closed { association, reason } if *association == self.association => {
                return Err(TransferError::Closed(reason.clone()));
            }
            _ => {}
        }
        self.advance(now, node)
    }

    fn handle_message(&mut self, message: Message) -> Result<(), TransferError> {
        match message {
            Message::Accept { item, have, digest } => {
                self.check(item)?;
                let source = &self.sources[item as usize];
                if have > source.size || self.active.contains_key(&item) || self.is_wanted(item) || source.folder {
                    return Err(TransferError::Peer("accepts an item in a way that cannot be"));
                }
                self.wanted.push_back((item, have, digest));
            }
            Message::Stored { item } => {
                self.check(item)?;
                let is_sent = self.active.get(&item).is_some_and(|active| active.left == 0);
                if !is_sent && !self.sources[item as usize].folder {
                    return Err(TransferError::Peer("has stored an item that was not sent"));
                }
                self.settle(item, None);
            }
            Message::Refuse { item, reason } | Message::Failed { item, reason } => {
                self.check(item)?;
                self.wanted.retain(|wanted| wanted.0 != item);
                self.settle(item, Some(reason));
            }
            _ => return Err(TransferError::Peer("sends what only a sender says")),
        }
        Ok(())
    }

    fn is_wanted(&self, item: u32) -> bool {
        self.wanted.iter().any(|wanted| wanted.0 == item)
    }

    /// The item was offered and is not settled.
    fn check(&self, item: u32) -> Result<(), TransferError> {
        let is_open = (item as usize) < self.next_offer && !self.settled[item as usize];
        if is_open { Ok(()) } else { Err(TransferError::Peer("speaks of an item that is not open")) }
    }

    fn settle(&mut self, item: u32, error: Option<String>) {
        let source = &self.sources[item as usize];
        self.settled[item as usize] = true;
        self.open -= 1;
        self.active.remove(&item);
        self.sent_bytes += source.size;
        let resumed = self.resumed.remove(&item).unwrap_or(0);
        let (name, size) = (source.name.to_string(), source.size);
        self.outcomes.push_back(Outcome { name, size, resumed, error });
    }

    /// Offers, begins and reads what can be.
    ///
    /// # Errors
    /// The node refuses.
    pub fn advance<C: Carrier>(&mut self, now: Time, node: &mut Node<C>) -> Result<(), TransferError> {
        while self.next_offer < self.sources.len() && self.open < MOST_OFFERED {
            let source = &self.sources[self.next_offer];
            let Source { folder, size, mode, modified_ns, .. } = *source;
            let (item, name) = (self.next_offer as u32, source.name.parts().to_vec());
            let offer = Message::Offer(Offer { item, folder, size, mode, modified_ns, name });
            node.write_control(self.association, offer.encode())?;
            self.next_offer += 1;
            self.open += 1;
        }
        while self.active.len() < MOST_ACTIVE
            && let Some((item, have, digest)) = self.wanted.pop_front()
        {
            if let Err(error) = self.begin(now, node, item, have, digest)? {
                self.abort(node, item, &error)?;
            }
        }
        let items: Vec<u32> = self.active.keys().copied().collect();
        for item in items {
            if let Err(error) = self.read(node, item)? {
                if let Some(active) = self.active.get(&item) {
                    node.reset(active.flow);
                }
                self.abort(node, item, &error)?;
            }
        }
        if self.is_done() && !self.ended {
            self.ended = true;
            node.write_control(self.association, Message::End.encode())?;
        }
        Ok(())
    }

    fn abort<C: Carrier>(&mut self, node: &mut Node<C>, item: u32, error: &io::Error) -> Result<(), TransferError> {
        let reason = error.to_string();
        node.write_control(self.association, Message::Abort { item, reason: reason.clone() }.encode())?;
        self.settle(item, Some(reason));
        Ok(())
    }

    /// Opens a file and its flow, behind what the receiver has of it, if that is right.
    fn begin<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        item: u32,
        have: u64,
        digest: [u8; 32],
    ) -> Result<io::Result<()>, TransferError> {
        let source = &self.sources[item as usize];
        let opened = source.open().and_then(|file| behind(file, source, have, digest));
        let (file, from, hasher) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let left = source.size - from;
        let flow = node.open_flow(now, self.association, Some(left))?;
        node.write_control(self.association, Message::Begin { item, flow: flow.flow, from }.encode())?;
        self.resumed.insert(item, from);
        self.active.insert(item, Active { flow, file, left, from, hasher });
        if left == 0 {
            return self.end_of(node, item);
        }
        Ok(Ok(()))
    }

    /// Reads on in a file, as far as the window goes.
    fn read<C: Carrier>(&mut self, node: &mut Node<C>, item: u32) -> Result<io::Result<()>, TransferError> {
        loop {
            let Some(active) = self.active.get_mut(&item) else { return Ok(Ok(())) };
            let buffered = node.sending(active.flow).map_or(u64::MAX, |flow| flow.buffered_bytes());
            if active.left == 0 || buffered > self.window_bytes / 2 {
                return Ok(Ok(()));
            }
            let most = active.left.min(PIECE_BYTES).min(self.window_bytes / 2 + 1);
            let mut piece = Vec::with_capacity(most as usize);
            match (&active.file).take(most).read_to_end(&mut piece) {
                Ok(0) => return Ok(Err(changed())),
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
            active.hasher.update(&piece);
            active.left -= piece.len() as u64;
            node.write(active.flow, Bytes::from(piece));
            if active.left == 0 {
                return self.end_of(node, item);
            }
        }
    }

    /// All of a file has been read.
    fn end_of<C: Carrier>(&mut self, node: &mut Node<C>, item: u32) -> Result<io::Result<()>, TransferError> {
        let Some(active) = self.active.get_mut(&item) else { return Ok(Ok(())) };
        match self.sources[item as usize].is_unchanged(&active.file) {
            Ok(true) => {}
            Ok(false) => return Ok(Err(changed())),
            Err(error) => return Ok(Err(error)),
        }
        node.finish(active.flow);
        let digest = *active.hasher.finalize().as_bytes();
        node.write_control(self.association, Message::Whole { item, digest }.encode())?;
        Ok(Ok(()))
    }
}

/// The file, behind its first `have` bytes if these have this digest, or else at its beginning; with the digest so far.
fn behind(file: File, source: &Source, have: u64, digest: [u8; 32]) -> io::Result<(File, u64, blake3::Hasher)> {
    let mut hasher = blake3::Hasher::new();
    if have > 0 {
        let mut prefix = (&file).take(have);
        hasher.update_reader(&mut prefix)?;
        if *hasher.finalize().as_bytes() == digest {
            return Ok((file, have, hasher));
        }
    }
    Ok((source.open()?, 0, blake3::Hasher::new()))
}
