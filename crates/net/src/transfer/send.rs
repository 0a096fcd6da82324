//! The sending side of a transfer.

use super::TransferError;
use super::message::{Digest, Message, Offer};
use super::reading::{Answer, Job, Reading, Step};
use super::source::Source;
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox};
use crate::disk::{Desk, Disk};
use crate::node::{FlowId, Node, NodeEvent};
use sparelane_core::Time;
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

#[derive(Debug)]
struct Active {
    flow: FlowId,
    /// Bytes of it that the disk has not given.
    left: u64,
    from: u64,
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
    /// Items that are wanted, with what is there.
    wanted: VecDeque<(u32, u64, Digest)>,
    /// Items that the disk is opening.
    opening: BTreeSet<u32>,
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
                if have > source.size || self.is_under_way(item) || source.folder {
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

    /// Whether an item was accepted.
    fn is_under_way(&self, item: u32) -> bool {
        let is_wanted = || self.wanted.iter().any(|wanted| wanted.0 == item);
        self.active.contains_key(&item) || self.opening.contains(&item) || is_wanted()
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
        if self.active.remove(&item).is_some() | self.opening.remove(&item) {
            self.desk.submit(Job::Close { item }, 0);
        }
        self.sent_bytes += source.size;
        let resumed = self.resumed.remove(&item).unwrap_or(0);
        let (name, size) = (source.name.to_string(), source.size);
        self.outcomes.push_back(Outcome { name, size, resumed, error });
    }

    /// Offers, begins and sends what can be; to be called where the disk has news.
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
            && let Some((item, have, digest)) = self.wanted.pop_front()
        {
            self.opening.insert(item);
            let source = Box::new(self.sources[item as usize].clone());
            self.desk.submit(Job::Open { item, source, have, digest }, 0);
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
            Ok(Step::Opened { from, whole }) => {
                self.opening.remove(&item);
                let left = self.sources[item as usize].size - from;
                let flow = node.open_flow(now, self.association, Some(left))?;
                node.write_control(self.association, Message::Begin { item, flow: flow.flow, from }.encode())?;
                self.resumed.insert(item, from);
                self.active.insert(item, Active { flow, left, from, is_asked: false });
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
