//! The sending side of a transfer.

use super::TransferError;
use super::chunks::{Digest, chunk_bytes};
use super::message::{Kind, Message, Offer};
use super::name::Name;
use super::reader::{Answer, FileReader, Job, Step};
use super::source::Source;
use super::stall::{STALL_TIMEOUT, StallTimer};
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox, Service};
use crate::disk::{Disk, JobQueue};
use crate::node::{FlowId, Node, NodeEvent};
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

/// The number of items that are offered ahead.
const MAX_OFFERED: usize = 64;

/// The maximum number of files being sent at a time.
const MAX_ACTIVE: usize = 16;

/// The number of bytes read from a file at once. Each piece is one write, and the tail is its end.
const PIECE_BYTES: u64 = 16 << 20;

/// The result of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its name at the receiver.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The bytes that did not have to be sent, because an earlier attempt had left them.
    pub resumed: u64,
    /// True if the receiver had an equal file of the same name.
    pub unchanged: bool,
    /// True for a folder.
    pub is_folder: bool,
    /// The error, if it was not stored.
    pub error: Option<String>,
}

/// The comparison with files that the receiver has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// A file is the same if its size and its digest are equal.
    #[default]
    Hash,
    /// A file is the same if its size and its modification time are equal.
    Time,
}

/// A request of the receiver.
#[derive(Debug)]
enum Request {
    /// The missing and wrong parts of a file, given the receiver's digests.
    Rest { have: u64, chunks: Vec<Digest> },
    /// The digest of the whole file, because a file of its name exists.
    Digest,
}

#[derive(Debug)]
struct Active {
    flow: FlowId,
    /// The bytes that the disk has still to deliver.
    left: u64,
    /// The bytes that do not have to be sent.
    resumed: u64,
    /// True while the disk is reading.
    is_reading: bool,
}

/// A transfer to a peer.
#[derive(Debug)]
pub struct SendTransfer {
    association: AssociationId,
    queue: JobQueue<FileReader>,
    /// The queue of streams, whose reading may wait without limit.
    streams: Option<JobQueue<FileReader>>,
    sources: Vec<Source>,
    next_offer: usize,
    /// Requested items.
    requested: VecDeque<(u32, Request)>,
    /// Items that the disk is opening.
    opening: BTreeSet<u32>,
    active: BTreeMap<u32, Active>,
    /// Items whose digest the receiver is comparing.
    compared: BTreeSet<u32>,
    /// The bytes of each item that the receiver has hashed, according to its last report.
    checked: BTreeMap<u32, u64>,
    /// The number of offered items without a result, and the items with one.
    open: usize,
    settled: Vec<bool>,
    inbox: Inbox,
    outcomes: VecDeque<Outcome>,
    resumed: BTreeMap<u32, u64>,
    unchanged: BTreeSet<u32>,
    compare: Compare,
    /// The number of files without a result.
    files_left: u64,
    /// The bytes of finished items that did not have to be sent.
    resumed_bytes: u64,
    ended: bool,
    /// True once the times of folders are offered, after everything else has a result.
    sets_times: bool,
    sent_bytes: u64,
    window_bytes: u64,
    /// The number of messages that show progress of the receiver.
    messages: u64,
    stall_timer: StallTimer,
}

impl SendTransfer {
    /// Creates a transfer of `sources` over an open association. The thread of `disk` reads them; without it, they are
    /// read at once.
    pub fn new<C: Carrier>(
        association: AssociationId,
        mut sources: Vec<Source>,
        node: &Node<C>,
        disk: Option<&Disk>,
    ) -> SendTransfer {
        let settled = vec![false; sources.len()];
        let files_left = sources.iter().filter(|source| source.counts()).count() as u64;
        // The sizes of streams are what has been read of them.
        let streams = sources.iter_mut().filter(|source| source.kind == Kind::Stream);
        let has_streams = streams.map(|stream| stream.size = 0).count() > 0;
        SendTransfer {
            association,
            queue: match disk {
                Some(disk) => disk.queue(FileReader::default()),
                None => JobQueue::without_thread(FileReader::default()),
            },
            streams: has_streams.then(|| match disk {
                Some(disk) => disk.side_queue(FileReader::default()),
                None => JobQueue::without_thread(FileReader::default()),
            }),
            sources,
            next_offer: 0,
            requested: VecDeque::new(),
            opening: BTreeSet::new(),
            active: BTreeMap::new(),
            compared: BTreeSet::new(),
            checked: BTreeMap::new(),
            open: 0,
            settled,
            inbox: Inbox::default(),
            outcomes: VecDeque::new(),
            resumed: BTreeMap::new(),
            unchanged: BTreeSet::new(),
            compare: Compare::default(),
            files_left,
            resumed_bytes: 0,
            ended: false,
            sets_times: false,
            sent_bytes: 0,
            window_bytes: node.config().window_bytes,
            messages: 0,
            stall_timer: StallTimer::new(STALL_TIMEOUT),
        }
    }

    /// Sets the time without progress of the receiver after which the transfer ends.
    pub fn set_stall_timeout(&mut self, most: Dur) {
        self.stall_timer = StallTimer::new(most);
    }

    /// Sets how files are compared with those that the receiver has.
    pub fn set_compare(&mut self, compare: Compare) {
        self.compare = compare;
    }

    /// The number of files without a result.
    pub fn files_left(&self) -> u64 {
        self.files_left
    }

    /// The bytes so far that did not have to be sent.
    pub fn resumed_bytes(&self) -> u64 {
        self.resumed_bytes + self.active.values().map(|active| active.resumed).sum::<u64>()
    }

    /// The name of a file that is being sent or compared, if any.
    pub fn current(&self) -> Option<&Name> {
        let item = self.active.keys().next().or_else(|| self.compared.first())?;
        self.sources.get(*item as usize).map(|source| &source.name)
    }

    /// Checks the stall timer; to be called now and then.
    ///
    /// # Errors
    /// The receiver is connected but makes no progress.
    pub fn check_stall<C: Carrier>(&mut self, now: Time, node: &Node<C>) -> Result<(), TransferError> {
        let is_working = !self.opening.is_empty() || self.active.values().any(|active| active.is_reading);
        let acknowledged = |active: &Active| node.sending(active.flow).map_or(0, |flow| flow.acknowledged_bytes());
        let taken: u64 = self.active.values().map(acknowledged).sum();
        if self.stall_timer.is_expired(now, self.messages + self.sent_bytes + taken, is_working) {
            return Err(TransferError::Stalled(self.stall_timer.timeout()));
        }
        Ok(())
    }

    /// Returns true if every item has a result.
    pub fn is_done(&self) -> bool {
        self.next_offer == self.sources.len() && self.open == 0
    }

    /// Returns true if data of an item is being sent.
    pub fn is_waiting(&self) -> bool {
        !self.active.is_empty()
    }

    /// Returns true if a stream was sent in part and has no result. It cannot be sent again.
    pub fn has_spent_stream(&self) -> bool {
        self.streams.is_some()
            && self.sources.iter().zip(&self.settled).any(|(source, settled)| source.is_spent() && !settled)
    }

    /// The bytes of streams that have been read, of those with a result if `settled` is set.
    pub fn stream_bytes(&self, settled: bool) -> u64 {
        let streams = self.sources.iter().zip(&self.settled).filter(|(source, _)| source.kind == Kind::Stream);
        streams.filter(|(_, is_settled)| !settled || **is_settled).map(|(stream, _)| stream.size).sum()
    }

    /// Returns the items without a result, for another transfer.
    pub fn into_unsettled(self) -> Vec<Source> {
        self.sources.into_iter().zip(self.settled).filter(|(_, settled)| !settled).map(|(source, _)| source).collect()
    }

    /// Returns the next result of an item; each item has one.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Returns the bytes that the receiver has, and those of all files.
    pub fn progress<C: Carrier>(&self, node: &Node<C>) -> (u64, u64) {
        let has = |(item, active): (&u32, &Active)| match node.sending(active.flow) {
            Some(flow) => active.resumed + flow.acknowledged_bytes(),
            // The flow ends with its last acknowledgment, before the receiver has stored the file.
            None if active.left == 0 => self.sources[*item as usize].size,
            None => active.resumed,
        };
        let under_way: u64 = self.active.iter().map(has).sum();
        (self.sent_bytes + under_way, self.sources.iter().map(|source| source.size).sum())
    }

    /// Handles an event of the node.
    ///
    /// # Errors
    /// The association ended, or the peer's messages are invalid.
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
            // A flow that this side has reset belongs to no item any more.
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
        // Hashing counts as progress only if it advances.
        self.messages += u64::from(!matches!(message, Message::Checked { .. }));
        match message {
            Message::Accept { item, have, chunks } => {
                self.check(item)?;
                let source = &self.sources[item as usize];
                // The receiver must report one digest per started chunk.
                let count = have.div_ceil(chunk_bytes(source.size));
                if have > source.size || chunks.len() as u64 != count || !self.may_request(item) {
                    return Err(TransferError::Peer("accepts an item in a way that cannot be"));
                }
                self.compared.remove(&item);
                self.requested.push_back((item, Request::Rest { have, chunks }));
            }
            Message::Exists { item } => {
                self.check(item)?;
                let is_stream = self.sources[item as usize].kind == Kind::Stream;
                if !self.may_request(item) || self.compared.contains(&item) || is_stream {
                    return Err(TransferError::Peer("asks for the digest of an item that it has accepted, or twice"));
                }
                self.requested.push_back((item, Request::Digest));
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
                // A file counts as stored only after all of it was sent, or if it existed before.
                let is_sent = self.active.get(&item).is_some_and(|active| active.left == 0);
                let source = &self.sources[item as usize];
                // The receiver may also know it by its time, before it requests anything.
                let has_same_time =
                    self.compare == Compare::Time && source.kind == Kind::File && self.may_request(item);
                if self.compared.contains(&item) || has_same_time {
                    self.resumed.insert(item, source.size);
                    self.unchanged.insert(item);
                } else if !is_sent && source.is_file() {
                    return Err(TransferError::Peer("has stored an item that was not sent"));
                }
                self.settle(item, None);
            }
            Message::Refuse { item, reason } | Message::Failed { item, reason } => {
                self.check(item)?;
                self.requested.retain(|requested| requested.0 != item);
                if let Some(active) = self.active.get(&item) {
                    // The unsent rest would be discarded.
                    node.reset(active.flow);
                }
                self.settle(item, Some(reason.into()));
            }
            _ => return Err(TransferError::Peer("sends what only a sender says")),
        }
        Ok(())
    }

    /// Returns true if the receiver may request the item: it is a file that was not requested yet.
    fn may_request(&self, item: u32) -> bool {
        let is_wanted = || self.requested.iter().any(|requested| requested.0 == item);
        let is_under_way = self.active.contains_key(&item) || self.opening.contains(&item) || is_wanted();
        !is_under_way && self.sources[item as usize].is_file()
    }

    /// Checks that the item was offered and has no result yet.
    fn check(&self, item: u32) -> Result<(), TransferError> {
        let is_open = (item as usize) < self.next_offer && !self.settled[item as usize];
        if is_open { Ok(()) } else { Err(TransferError::Peer("speaks of an item that is not open")) }
    }

    fn settle(&mut self, item: u32, error: Option<String>) {
        self.settled[item as usize] = true;
        self.open -= 1;
        self.compared.remove(&item);
        self.checked.remove(&item);
        if self.active.remove(&item).is_some() | self.opening.remove(&item) {
            self.submit(item, Job::Close { item });
        }
        let source = &self.sources[item as usize];
        self.sent_bytes += source.size;
        self.files_left -= u64::from(source.counts());
        let (unchanged, is_folder) = (self.unchanged.remove(&item), !source.is_file());
        let resumed = self.resumed.remove(&item).unwrap_or(0);
        self.resumed_bytes += resumed;
        let (name, size) = (source.name.to_string(), source.size);
        if source.kind != Kind::FolderTime || error.is_some() {
            self.outcomes.push_back(Outcome { name, size, resumed, unchanged, is_folder, error });
        }
    }

    /// Submits a job on an item.
    fn submit(&mut self, item: u32, job: Job) {
        match &mut self.streams {
            Some(streams) if self.sources[item as usize].kind == Kind::Stream => streams.submit(job, 0),
            _ => self.queue.submit(job, 0),
        }
    }

    /// Notes which streams the receiver has some of.
    fn note_received<C: Carrier>(&self, node: &Node<C>) {
        for (&item, active) in &self.active {
            if let Some(input) = &self.sources[item as usize].input
                && node.sending(active.flow).is_none_or(|flow| flow.acknowledged_bytes() > 0)
            {
                input.note_received();
            }
        }
    }

    /// Offers, opens and sends items as far as possible; to be called when the disk has answers.
    ///
    /// # Errors
    /// The node reports an error.
    pub fn advance<C: Carrier>(&mut self, now: Time, node: &mut Node<C>) -> Result<(), TransferError> {
        while self.next_offer < self.sources.len() && self.open < MAX_OFFERED {
            let source = &self.sources[self.next_offer];
            let Source { kind, size, mode, modified_ns, .. } = *source;
            // Folders get their times last: storing files in them would change the times.
            if kind == Kind::FolderTime && !self.sets_times {
                if self.open > 0 {
                    break;
                }
                self.sets_times = true;
            }
            let is_dated = kind == Kind::File && self.compare == Compare::Time;
            let kind = if is_dated { Kind::DatedFile } else { kind };
            let (item, name) = (self.next_offer as u32, source.name.parts().to_vec());
            let offer = Message::Offer(Offer { item, kind, size, mode, modified_ns, name });
            node.write_control(self.association, offer.encode())?;
            self.next_offer += 1;
            self.open += 1;
        }
        if self.streams.is_some() {
            self.note_received(node);
        }
        loop {
            self.open_requested();
            self.read_more(node);
            let of_stream = || self.streams.as_mut().and_then(JobQueue::poll);
            let Some(answer) = self.queue.poll().or_else(of_stream) else { break };
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
        node.write_control(self.association, Message::Abort { item, reason: reason.as_str().into() }.encode())?;
        self.settle(item, Some(reason));
        Ok(())
    }

    /// Opens requested files, up to the limit of files being sent.
    fn open_requested(&mut self) {
        while self.active.len() + self.opening.len() < MAX_ACTIVE
            && let Some((item, requested)) = self.requested.pop_front()
        {
            self.opening.insert(item);
            let source = Box::new(self.sources[item as usize].clone());
            let job = match requested {
                Request::Rest { have, chunks } => Job::Open { item, source, have, chunks },
                Request::Digest => Job::Digest { item, source },
            };
            self.submit(item, job);
        }
    }

    /// Reads more of each file that has little left to send.
    fn read_more<C: Carrier>(&mut self, node: &Node<C>) {
        let max_waiting = self.window_bytes / 2;
        let mut low = vec![];
        for (&item, active) in self.active.iter_mut().filter(|(_, active)| !active.is_reading && active.left > 0) {
            let waiting = node.sending(active.flow).map_or(u64::MAX, |flow| flow.buffered_bytes());
            if waiting <= max_waiting {
                active.is_reading = true;
                low.push(item);
            }
        }
        for item in low {
            self.submit(item, Job::Read { item, most: PIECE_BYTES.min(max_waiting + 1) });
        }
    }

    fn handle_answer<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        answer: Answer,
    ) -> Result<(), TransferError> {
        let Answer { item, result } = answer;
        // Answers may still arrive for items that have a result already.
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
                let is_stream = self.sources[item as usize].kind == Kind::Stream;
                let flow = node.open_flow(now, self.association, Some(left).filter(|_| !is_stream))?;
                node.write_control(self.association, Message::Begin { item, flow: flow.flow, from, again }.encode())?;
                let resumed = if is_stream { 0 } else { self.sources[item as usize].size - left };
                self.resumed.insert(item, resumed);
                self.active.insert(item, Active { flow, left, resumed, is_reading: false });
                self.finish(node, item, whole)
            }
            Ok(Step::Piece { bytes, whole }) => {
                if let Some(active) = self.active.get_mut(&item) {
                    active.is_reading = false;
                    match self.sources.get_mut(item as usize).filter(|source| source.kind == Kind::Stream) {
                        Some(stream) => stream.size += bytes.len() as u64,
                        None => active.left = active.left.saturating_sub(bytes.len() as u64),
                    }
                    node.write(active.flow, bytes);
                }
                self.finish(node, item, whole)
            }
            Ok(Step::Ended { size, digest }) => {
                if let Some(active) = self.active.get_mut(&item) {
                    (active.is_reading, active.left) = (false, 0);
                    node.finish(active.flow);
                }
                node.write_control(self.association, Message::Ended { item, size, digest }.encode())?;
                Ok(())
            }
        }
    }

    /// Ends the flow of a file that is completely read, and sends its digest.
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
