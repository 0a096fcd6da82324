//! The sending side of a transfer.

use super::TransferError;
use super::chunks::{Digest, chunk_bytes};
use super::message::{Kind, Message, Offer};
use super::patience::{Patience, STALL_TIMEOUT};
use super::reading::{Answer, Job, Reading, Step};
use super::source::Source;
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox, Service};
use crate::disk::{Desk, Disk};
use crate::node::{FlowId, Node, NodeEvent};
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

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

/// What the receiver wants of an item.
#[derive(Debug)]
enum Wanted {
    /// What of it is not here, or not right, with these digests.
    Rest { have: u64, chunks: Vec<Digest> },
    /// The digest of all of it: a file of its name is there.
    Digest,
}

#[derive(Debug)]
struct Active {
    flow: FlowId,
    /// Bytes of it that the disk has not given.
    left: u64,
    /// Bytes that had not to be sent.
    resumed: u64,
    /// The disk has been asked for more.
    is_asked: bool,
}

/// A transfer to a peer.
#[derive(Debug)]
pub struct SendTransfer {
    association: AssociationId,
    desk: Desk<Reading>,
    sources: Vec<Source>,
    next_offer: usize,
    /// Items of which something is wanted.
    wanted: VecDeque<(u32, Wanted)>,
    /// Items that the disk is opening.
    opening: BTreeSet<u32>,
    active: BTreeMap<u32, Active>,
    /// Items of which the receiver knows the digest, and has not said whether its file has it.
    compared: BTreeSet<u32>,
    /// Bytes that the receiver has hashed of items, as far as it has told.
    checked: BTreeMap<u32, u64>,
    /// Items of which nothing has come back, and those of which all is sent.
    open: usize,
    settled: Vec<bool>,
    inbox: Inbox,
    outcomes: VecDeque<Outcome>,
    resumed: BTreeMap<u32, u64>,
    ended: bool,
    /// The times of folders are offered: everything else is settled.
    sets_times: bool,
    sent_bytes: u64,
    window_bytes: u64,
    /// What the receiver has said until now that brings the transfer on.
    messages: u64,
    patience: Patience,
}

impl SendTransfer {
    /// A transfer of `sources` over an open association. They are read by the thread of `disk`, if there is one, and else at once.
    pub fn new<C: Carrier>(
        association: AssociationId,
        sources: Vec<Source>,
        node: &Node<C>,
        disk: Option<&Disk>,
    ) -> SendTransfer {
        let settled = vec![false; sources.len()];
        SendTransfer {
            association,
            desk: match disk {
                Some(disk) => disk.desk(Reading::default()),
                None => Desk::without_thread(Reading::default()),
            },
            sources,
            next_offer: 0,
            wanted: VecDeque::new(),
            opening: BTreeSet::new(),
            active: BTreeMap::new(),
            compared: BTreeSet::new(),
            checked: BTreeMap::new(),
            open: 0,
            settled,
            inbox: Inbox::default(),
            outcomes: VecDeque::new(),
            resumed: BTreeMap::new(),
            ended: false,
            sets_times: false,
            sent_bytes: 0,
            window_bytes: node.config().window_bytes,
            messages: 0,
            patience: Patience::new(STALL_TIMEOUT),
        }
    }

    /// Sets for how long it waits for a receiver that takes nothing, although it is there.
    pub fn set_stall_timeout(&mut self, most: Dur) {
        self.patience = Patience::new(most);
    }

    /// Whether the receiver has nothing more to be waited for; to be asked now and then.
    ///
    /// # Errors
    /// It is there, and does nothing.
    pub fn check_patience<C: Carrier>(&mut self, now: Time, node: &Node<C>) -> Result<(), TransferError> {
        let works = !self.opening.is_empty() || self.active.values().any(|active| active.is_asked);
        let acknowledged = |active: &Active| node.sending(active.flow).map_or(0, |flow| flow.acknowledged_bytes());
        let taken: u64 = self.active.values().map(acknowledged).sum();
        if self.patience.is_over(now, self.messages + self.sent_bytes + taken, works) {
            return Err(TransferError::Stalled(self.patience.most()));
        }
        Ok(())
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
            .map(|active| active.resumed + node.sending(active.flow).map_or(0, |flow| flow.acknowledged_bytes()))
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
                    self.handle_message(node, message)?;
                }
                if self.inbox.peer_serves() == Some(Service::Tunnel) {
                    return Err(TransferError::Peer("serves a tunnel, and receives no files"));
                }
            }
            // A flow that this side has reset is nobody's any more.
            NodeEvent::SendFailed(flow) if self.active.values().any(|active| active.flow == *flow) => {
                return Err(TransferError::Stuck);
            }
            NodeEvent::Closed { association, reason } if *association == self.association => {
                return Err(TransferError::Closed(reason.clone()));
            }
            _ => {}
        }
        self.advance(now, node)
    }

    fn handle_message<C: Carrier>(&mut self, node: &mut Node<C>, message: Message) -> Result<(), TransferError> {
        self.messages += u64::from(!matches!(message, Message::Checked { .. }));
        match message {
            Message::Accept { item, have, chunks } => {
                self.check(item)?;
                let source = &self.sources[item as usize];
                let count = have.div_ceil(chunk_bytes(source.size));
                if have > source.size || chunks.len() as u64 != count || !self.may_want(item) {
                    return Err(TransferError::Peer("accepts an item in a way that cannot be"));
                }
                self.compared.remove(&item);
                self.wanted.push_back((item, Wanted::Rest { have, chunks }));
            }
            Message::There { item } => {
                self.check(item)?;
                if !self.may_want(item) || self.compared.contains(&item) {
                    return Err(TransferError::Peer("asks for the digest of an item that it has accepted, or twice"));
                }
                self.wanted.push_back((item, Wanted::Digest));
            }
            Message::Checked { item, bytes } => {
                self.check(item)?;
                let checked = self.checked.entry(item).or_default();
                if bytes > *checked && bytes <= self.sources[item as usize].size {
                    *checked = bytes;
                    self.messages += 1;
                }
            }
            Message::Stored { item } => {
                self.check(item)?;
                let is_sent = self.active.get(&item).is_some_and(|active| active.left == 0);
                let source = &self.sources[item as usize];
                if self.compared.contains(&item) {
                    self.resumed.insert(item, source.size);
                } else if !is_sent && source.kind == Kind::File {
                    return Err(TransferError::Peer("has stored an item that was not sent"));
                }
                self.settle(item, None);
            }
            Message::Refuse { item, reason } | Message::Failed { item, reason } => {
                self.check(item)?;
                self.wanted.retain(|wanted| wanted.0 != item);
                if let Some(active) = self.active.get(&item) {
                    // What is not sent yet would be thrown away.
                    node.reset(active.flow);
                }
                self.settle(item, Some(reason));
            }
            _ => return Err(TransferError::Peer("sends what only a sender says")),
        }
        Ok(())
    }

    /// Whether something of an item may be wanted: it is a file, and nothing is yet.
    fn may_want(&self, item: u32) -> bool {
        let is_wanted = || self.wanted.iter().any(|wanted| wanted.0 == item);
        let is_under_way = self.active.contains_key(&item) || self.opening.contains(&item) || is_wanted();
        !is_under_way && self.sources[item as usize].kind == Kind::File
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
        self.compared.remove(&item);
        self.checked.remove(&item);
        if self.active.remove(&item).is_some() | self.opening.remove(&item) {
            self.desk.submit(Job::Close { item }, 0);
        }
        self.sent_bytes += source.size;
        let resumed = self.resumed.remove(&item).unwrap_or(0);
        let (name, size) = (source.name.to_string(), source.size);
        if source.kind != Kind::FolderTime || error.is_some() {
            self.outcomes.push_back(Outcome { name, size, resumed, error });
        }
    }

    /// Offers, begins and sends what can be; to be called where the disk has news.
    ///
    /// # Errors
    /// The node refuses.
    pub fn advance<C: Carrier>(&mut self, now: Time, node: &mut Node<C>) -> Result<(), TransferError> {
        while self.next_offer < self.sources.len() && self.open < MOST_OFFERED {
            let source = &self.sources[self.next_offer];
            let Source { kind, size, mode, modified_ns, .. } = *source;
            if kind == Kind::FolderTime && !self.sets_times {
                if self.open > 0 {
                    break;
                }
                self.sets_times = true;
            }
            let (item, name) = (self.next_offer as u32, source.name.parts().to_vec());
            let offer = Message::Offer(Offer { item, kind, size, mode, modified_ns, name });
            node.write_control(self.association, offer.encode())?;
            self.next_offer += 1;
            self.open += 1;
        }
        loop {
            self.open_wanted();
            self.ask(node);
            let Some(answer) = self.desk.poll() else { break };
            self.handle_answer(now, node, answer)?;
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

    /// Has the disk open what is wanted, as far as so many files may be on their way.
    fn open_wanted(&mut self) {
        while self.active.len() + self.opening.len() < MOST_ACTIVE
            && let Some((item, wanted)) = self.wanted.pop_front()
        {
            self.opening.insert(item);
            let source = Box::new(self.sources[item as usize].clone());
            let job = match wanted {
                Wanted::Rest { have, chunks } => Job::Open { item, source, have, chunks },
                Wanted::Digest => Job::Digest { item, source },
            };
            self.desk.submit(job, 0);
        }
    }

    /// Asks the disk for more of each file of which little waits to be sent.
    fn ask<C: Carrier>(&mut self, node: &Node<C>) {
        let most_waiting = self.window_bytes / 2;
        for (&item, active) in self.active.iter_mut().filter(|(_, active)| !active.is_asked && active.left > 0) {
            let waiting = node.sending(active.flow).map_or(u64::MAX, |flow| flow.buffered_bytes());
            if waiting <= most_waiting {
                active.is_asked = true;
                self.desk.submit(Job::Read { item, most: PIECE_BYTES.min(most_waiting + 1) }, 0);
            }
        }
    }

    fn handle_answer<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        answer: Answer,
    ) -> Result<(), TransferError> {
        let Answer { item, result } = answer;
        // Of what is settled, answers may still come.
        let is_open = self.opening.contains(&item) || self.active.contains_key(&item);
        match result {
            _ if !is_open => Ok(()),
            Err(error) => {
                if let Some(active) = self.active.get(&item) {
                    node.reset(active.flow);
                }
                self.abort(node, item, &error)
            }
            Ok(Step::Checked(bytes)) => {
                node.write_control(self.association, Message::Checked { item, bytes }.encode())?;
                Ok(())
            }
            Ok(Step::Digest(digest)) => {
                self.opening.remove(&item);
                self.compared.insert(item);
                node.write_control(self.association, Message::Whole { item, digest }.encode())?;
                Ok(())
            }
            Ok(Step::Opened { from, again, left, whole }) => {
                self.opening.remove(&item);
                let flow = node.open_flow(now, self.association, Some(left))?;
                node.write_control(self.association, Message::Begin { item, flow: flow.flow, from, again }.encode())?;
                let resumed = self.sources[item as usize].size - left;
                self.resumed.insert(item, resumed);
                self.active.insert(item, Active { flow, left, resumed, is_asked: false });
                self.finish(node, item, whole)
            }
            Ok(Step::Piece { bytes, whole }) => {
                if let Some(active) = self.active.get_mut(&item) {
                    active.is_asked = false;
                    active.left = active.left.saturating_sub(bytes.len() as u64);
                    node.write(active.flow, bytes);
                }
                self.finish(node, item, whole)
            }
        }
    }

    /// Ends the flow of a file of which all has been read.
    fn finish<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        item: u32,
        whole: Option<Digest>,
    ) -> Result<(), TransferError> {
        if let Some(active) = self.active.get(&item)
            && let Some(digest) = whole
        {
            node.finish(active.flow);
            node.write_control(self.association, Message::Whole { item, digest }.encode())?;
        }
        Ok(())
    }
}
