//! The receiving side of a transfer.

use super::TransferError;
use super::chunks::{Digest, chunk_bytes};
use super::folder::Folder;
use super::message::{Kind, Message, Offer};
use super::name::Name;
use super::output::{Output, OutputWriter};
use super::stall::{OFFER_TIMEOUT, STALL_TIMEOUT, StallTimer};
use super::writer::{Answer, Attributes, FileWriter, Job, Opening};
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox};
use crate::disk::{Disk, JobQueue, Work};
use crate::identity::Fingerprint;
use crate::node::{FlowId, Node, NodeEvent};
use crate::peer_text::PeerText;
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The maximum number of open items.
const MAX_OPEN: usize = 1024;

/// The maximum number of files that the transfers of one peer receive at once.
const MAX_OPEN_PER_PEER: usize = 4096;

/// The maximum size of the names of items that the transfers of one peer have open at once, bytes. A sender has 64 items
/// open.
const MAX_NAMES_BYTES_PER_PEER: usize = 1 << 20;

/// The size of the names of all peers beyond which each has its reserved part only, bytes. A name is in memory up to
/// four times.
const SHARED_NAMES_BYTES: usize = 16 << 20;

/// The part of a peer, however much others have, bytes.
const RESERVED_NAMES_BYTES: usize = 256 << 10;

/// The maximum number of refused offers of a transfer that are reported.
const MAX_REFUSED: u64 = 20;

/// The number of bytes passed to the disk at once.
const PIECES_BYTES: u64 = 256 << 10;

/// The names that the transfers into one folder are receiving now.
///
/// If a peer offers a name that an earlier transfer of the same peer is receiving, the new transfer replaces that one.
/// The earlier sender was most likely stopped, and its silence is not noticed yet.
#[derive(Debug, Default)]
pub struct ActiveNames {
    names: BTreeMap<Name, (AssociationId, Fingerprint)>,
    /// The number of names of each peer.
    counts: BTreeMap<Fingerprint, usize>,
    /// The size of the names of each peer's open items, folders included, bytes.
    names_bytes: BTreeMap<Fingerprint, usize>,
    /// The size of the names of all peers, bytes.
    all_names_bytes: usize,
    /// The largest file that is accepted, bytes.
    max_size_bytes: Option<u64>,
    /// The maximum total of a peer's files, bytes.
    quota_bytes: Option<u64>,
    /// The total of each peer's files: stored ones, and those that are being received.
    used_bytes: BTreeMap<Fingerprint, u64>,
    replaced: BTreeSet<AssociationId>,
}

impl ActiveNames {
    /// Limits the size of each file, and the total of each peer.
    pub fn with_limits(max_size_bytes: Option<u64>, quota_bytes: Option<u64>) -> ActiveNames {
        ActiveNames { max_size_bytes, quota_bytes, ..ActiveNames::default() }
    }

    /// Checks the size of an offered file against the limits.
    fn check_size(&self, peer: Fingerprint, size: u64) -> Result<(), String> {
        if let Some(most) = self.max_size_bytes.filter(|&most| size > most) {
            return Err(format!("it has {size} bytes; files of up to {most} are accepted (--max-size)"));
        }
        let used = self.used_bytes.get(&peer).copied().unwrap_or(0);
        match self.quota_bytes {
            Some(quota) if used.saturating_add(size) > quota => {
                Err(format!("it has {size} bytes, and {used} of this key's {quota} are used (--quota)"))
            }
            _ => Ok(()),
        }
    }

    /// Counts the next bytes of a stream that has `size` bytes with them, if the limits allow it.
    fn extend(&mut self, peer: Fingerprint, size: u64, bytes: u64) -> Result<(), String> {
        if let Some(most) = self.max_size_bytes.filter(|&most| size > most) {
            return Err(format!("it has more than {most} bytes, the limit (--max-size)"));
        }
        let used = self.used_bytes.get(&peer).copied().unwrap_or(0);
        if let Some(quota) = self.quota_bytes.filter(|&quota| used.saturating_add(bytes) > quota) {
            return Err(format!("with it, this key has more than its {quota} bytes (--quota)"));
        }
        self.charge(peer, bytes);
        Ok(())
    }

    /// Counts a file that was accepted, or returns the bytes of one that was not stored.
    fn charge(&mut self, peer: Fingerprint, size: u64) {
        let used = self.used_bytes.entry(peer).or_default();
        *used = used.saturating_add(size);
    }

    /// Counts the name of an item, if the peer's open items leave room for it.
    fn hold(&mut self, peer: Fingerprint, name: &Name) -> Result<(), String> {
        let shared = SHARED_NAMES_BYTES.saturating_sub(self.all_names_bytes);
        let most = shared.clamp(RESERVED_NAMES_BYTES, MAX_NAMES_BYTES_PER_PEER);
        let used = self.names_bytes.get(&peer).copied().unwrap_or(0);
        if used + name.bytes() > most {
            return Err(format!("the names of this key's open files take {used} bytes, near the limit"));
        }
        self.names_bytes.insert(peer, used + name.bytes());
        self.all_names_bytes += name.bytes();
        Ok(())
    }

    /// Returns the room of a name.
    fn unhold(&mut self, peer: Fingerprint, name: &Name) {
        if let Some(used) = self.names_bytes.get_mut(&peer) {
            *used -= name.bytes();
            self.all_names_bytes -= name.bytes();
            if *used == 0 {
                self.names_bytes.remove(&peer);
            }
        }
    }

    fn refund(&mut self, peer: Fingerprint, size: u64) {
        if let Some(used) = self.used_bytes.get_mut(&peer) {
            *used = used.saturating_sub(size);
        }
    }

    /// Returns true if a peer has as many names as it may.
    fn is_full(&self, peer: Fingerprint) -> bool {
        self.counts.get(&peer).is_some_and(|&count| count >= MAX_OPEN_PER_PEER)
    }

    fn is_taken(&self, name: &Name, association: AssociationId, peer: Fingerprint) -> bool {
        self.names.get(name).is_some_and(|holder| holder.0 == association || holder.1 != peer)
    }

    /// Registers a name. Returns true if an earlier transfer has to end before the file may be used.
    fn take(&mut self, name: Name, association: AssociationId, peer: Fingerprint) -> bool {
        let earlier = self.names.insert(name, (association, peer));
        let Some((earlier, _)) = earlier else {
            *self.counts.entry(peer).or_default() += 1;
            return false;
        };
        self.replaced.insert(earlier);
        true
    }

    fn free(&mut self, name: &Name, association: AssociationId) {
        let Some(&(holder, peer)) = self.names.get(name) else { return };
        if holder != association {
            return;
        }
        self.names.remove(name);
        if let Some(count) = self.counts.get_mut(&peer) {
            *count -= 1;
        }
    }

    /// Returns true if no name is being received.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.names_bytes.is_empty()
    }

    /// Returns an association whose transfer was replaced. The caller must end it before doing anything else.
    pub fn poll_replaced(&mut self) -> Option<AssociationId> {
        self.replaced.pop_first()
    }
}

/// The result of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The bytes that did not have to be sent, because an earlier attempt had left them.
    pub resumed: u64,
    /// The error, if it was not stored.
    pub error: Option<String>,
}

/// The state of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The disk is opening it.
    Asked,
    /// A file of its name and size exists; the sender was asked for the digest of its own.
    Exists,
    /// It is accepted, with this number of existing bytes.
    Accepted(u64),
    /// It is arriving in a flow.
    Begun,
    /// It is complete, and the disk is storing it.
    Finishing,
}

#[derive(Debug)]
struct Item {
    opening: Opening,
    name: Name,
    offer: Offer,
    state: State,
    /// The bytes still to arrive in its flow.
    left: u64,
    resumed: u64,
    whole: Option<Digest>,
    /// The bytes that the sender has hashed, according to its last report.
    checked_bytes: u64,
}

/// The destination of a transfer.
#[derive(Debug)]
enum Writer {
    Folder(FileWriter),
    Output(Box<OutputWriter>),
}

impl Work for Writer {
    type Job = Job;
    type Answer = Answer;

    fn work(&mut self, job: Job, reply: &mut dyn FnMut(Answer)) {
        match self {
            Writer::Folder(writer) => writer.work(job, reply),
            Writer::Output(writer) => writer.work(job, reply),
        }
    }
}

/// A transfer from a peer into a folder, or to an output.
#[derive(Debug)]
pub struct ReceiveTransfer {
    association: AssociationId,
    queue: JobQueue<Writer>,
    /// The output and the number of its writer. Its queue may wait without limit.
    output: Option<(Arc<Output>, u64)>,
    openings: Opening,
    items: BTreeMap<u32, Item>,
    /// The item of each opening.
    by_opening: BTreeMap<Opening, u32>,
    by_flow: BTreeMap<FlowId, u32>,
    /// The peer's key, once it has offered something.
    peer: Option<Fingerprint>,
    /// Flows that can be read further when the disk has room.
    paused: BTreeSet<FlowId>,
    /// Jobs that wait for the end of replaced transfers.
    deferred: Vec<Job>,
    /// The number of complete files that wait for the next sync, and true while one is running. The
    /// files that become complete meanwhile share the next one.
    unsynced: usize,
    is_syncing: bool,
    inbox: Inbox,
    received: VecDeque<Received>,
    ended: bool,
    received_bytes: u64,
    /// The number of items offered so far, except those that are discarded.
    offered: u64,
    /// True once anything was offered.
    has_offers: bool,
    /// The number of offers that were refused before their files were opened.
    refused: u64,
    /// True if no more items are accepted, because the peer's key is not trusted any more.
    refuses_offers: bool,
    /// The number of messages that show progress of the sender.
    messages: u64,
    stall_timer: StallTimer,
    /// Expires if the peer offers nothing.
    offer_timer: StallTimer,
}

impl ReceiveTransfer {
    /// Creates a transfer over an open association into `folder`. With `replaces`, existing files are replaced. The
    /// thread of `disk` does the disk access; without it, it is done at once.
    pub fn new(
        association: AssociationId,
        folder: &Arc<Folder>,
        replaces: bool,
        disk: Option<&Disk>,
    ) -> ReceiveTransfer {
        let writer = Writer::Folder(FileWriter::new(Arc::clone(folder), replaces));
        let queue = match disk {
            Some(disk) => disk.queue(writer),
            None => JobQueue::without_thread(writer),
        };
        ReceiveTransfer::with_queue(association, queue, None)
    }

    /// Creates a transfer over an open association to an output. A thread beside that of `disk` writes; without it, the
    /// caller waits for the output.
    pub fn to_output(association: AssociationId, output: &Arc<Output>, disk: Option<&Disk>) -> ReceiveTransfer {
        let writer = OutputWriter::new(Arc::clone(output));
        let number = writer.number();
        let writer = Writer::Output(Box::new(writer));
        let queue = match disk {
            Some(disk) => disk.side_queue(writer),
            None => JobQueue::without_thread(writer),
        };
        ReceiveTransfer::with_queue(association, queue, Some((Arc::clone(output), number)))
    }

    fn with_queue(
        association: AssociationId,
        queue: JobQueue<Writer>,
        output: Option<(Arc<Output>, u64)>,
    ) -> ReceiveTransfer {
        ReceiveTransfer {
            association,
            queue,
            output,
            openings: 0,
            items: BTreeMap::new(),
            by_opening: BTreeMap::new(),
            by_flow: BTreeMap::new(),
            peer: None,
            paused: BTreeSet::new(),
            deferred: Vec::new(),
            unsynced: 0,
            is_syncing: false,
            inbox: Inbox::default(),
            received: VecDeque::new(),
            ended: false,
            received_bytes: 0,
            offered: 0,
            has_offers: false,
            refused: 0,
            refuses_offers: false,
            messages: 0,
            stall_timer: StallTimer::new(STALL_TIMEOUT),
            offer_timer: StallTimer::new(OFFER_TIMEOUT),
        }
    }

    /// Sets the time without progress of the sender after which the transfer ends.
    pub fn set_stall_timeout(&mut self, most: Dur) {
        self.stall_timer = StallTimer::new(most);
    }

    /// Checks the stall timer; to be called now and then.
    ///
    /// # Errors
    /// The sender is connected but makes no progress, or offers nothing.
    pub fn check_stall(&mut self, now: Time) -> Result<(), TransferError> {
        if self.offer_timer.is_expired(now, 0, self.has_offers) {
            return Err(TransferError::Idle(self.offer_timer.timeout()));
        }
        let is_working = |item: &Item| match item.state {
            State::Finishing => true,
            // A file opens at once in an output, unless it waits for the sender to complete the files before it.
            State::Asked => self.output.is_none() || !self.deferred.is_empty(),
            _ => false,
        };
        // A peer that offers nothing is no stalled sender; it may be measuring the path.
        let is_working = !self.has_offers || self.queue.is_busy() || self.items.values().any(is_working);
        if self.stall_timer.is_expired(now, self.messages + self.received_bytes, is_working) {
            return Err(TransferError::Stalled(self.stall_timer.timeout()));
        }
        Ok(())
    }

    /// Accepts no more items, because the peer's key is not trusted any more.
    pub fn refuse_offers(&mut self) {
        self.refuses_offers = true;
    }

    /// Returns true if no more items are accepted and all accepted ones have a result.
    pub fn has_finished_last(&self) -> bool {
        self.refuses_offers && self.items.is_empty()
    }

    /// The number of items offered so far, except those that are discarded.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Returns true if the sender has announced the end and all items have a result.
    pub fn is_done(&self) -> bool {
        self.ended && self.items.is_empty()
    }

    /// The bytes received so far.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// Returns the next result of an item; each item has one.
    pub fn poll_received(&mut self) -> Option<Received> {
        self.received.pop_front()
    }

    /// Handles an event of the node. `active` has the names that all transfers are receiving.
    ///
    /// # Errors
    /// The association ended, or the peer violates the rules. Incomplete files stay for the next attempt.
    pub fn handle_event<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        active: &mut ActiveNames,
        event: &NodeEvent,
    ) -> Result<(), TransferError> {
        match event {
            NodeEvent::Control(association) if *association == self.association => {
                while let Some(bytes) = node.read_control(self.association) {
                    self.inbox.push(&bytes);
                }
                while let Some(message) = self.inbox.pop()? {
                    self.handle_message(node, active, message)?;
                    self.handle_answers(node, active)?;
                }
            }
            NodeEvent::Readable(flow) if flow.association == self.association => {
                self.read(node, active, *flow)?;
                if let Some(&item) = self.by_flow.get(flow) {
                    self.finish_discarded(node, active, item)?;
                }
            }
            NodeEvent::Closed { association, reason } if *association == self.association => {
                self.release(active);
                return Err(TransferError::Closed(reason.clone()));
            }
            // The sender reports the reason of a failed flow on the control stream. An unannounced flow waits in the
            // node.
            _ => {}
        }
        self.handle_answers(node, active)
    }

    /// Continues after the replaced transfers have ended and submitted their last jobs.
    pub fn resume(&mut self) {
        for job in std::mem::take(&mut self.deferred) {
            self.queue.submit(job, 0);
        }
    }

    /// Handles answers of the disk.
    ///
    /// # Errors
    /// The peer violates the rules or does not accept messages.
    pub fn handle_answers<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        active: &mut ActiveNames,
    ) -> Result<(), TransferError> {
        loop {
            while let Some(answer) = self.queue.poll() {
                self.handle_answer(node, active, answer)?;
            }
            if self.unsynced == 0 || self.is_syncing {
                break;
            }
            (self.unsynced, self.is_syncing) = (0, true);
            self.queue.submit(Job::Sync, 0);
        }
        if self.queue.has_room() {
            for flow in std::mem::take(&mut self.paused) {
                self.read(node, active, flow)?;
            }
        }
        Ok(())
    }

    fn handle_answer<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        active: &mut ActiveNames,
        answer: Answer,
    ) -> Result<(), TransferError> {
        // Answers may still arrive for items that have a result already.
        match answer {
            // A folder is created, or its time is set.
            Answer::Made { opening, result } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                let reply = match result {
                    Ok(()) => {
                        self.settle(active, item, None);
                        Message::Stored { item }
                    }
                    Err(reason) => {
                        self.settle(active, item, Some(reason.clone()));
                        Message::Refuse { item, reason: reason.into() }
                    }
                };
                node.write_control(self.association, reply.encode())?;
            }
            Answer::Exists { opening } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                if let Some(open) = self.items.get_mut(&item) {
                    (open.state, open.resumed) = (State::Exists, open.offer.size);
                }
                node.write_control(self.association, Message::Exists { item }.encode())?;
            }
            Answer::Unchanged { opening } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                if let Some(open) = self.items.get_mut(&item) {
                    open.resumed = open.offer.size;
                }
                self.settle(active, item, None);
                node.write_control(self.association, Message::Stored { item }.encode())?;
            }
            Answer::Checked { opening, bytes } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                node.write_control(self.association, Message::Checked { item, bytes }.encode())?;
            }
            // Opened for writing: tell the sender what is missing.
            Answer::Opened { opening, result } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                let reply = match result {
                    Ok((have, chunks)) => {
                        if let Some(open) = self.items.get_mut(&item) {
                            (open.state, open.whole) = (State::Accepted(have), None);
                        }
                        Message::Accept { item, have, chunks }
                    }
                    Err(reason) => {
                        self.settle(active, item, Some(reason.clone()));
                        Message::Refuse { item, reason: reason.into() }
                    }
                };
                node.write_control(self.association, reply.encode())?;
            }
            // Only the freed memory matters.
            Answer::Written => {}
            Answer::Complete => self.unsynced += 1,
            Answer::Synced => self.is_syncing = false,
            // The disk is full, for example. The sender stops this file only.
            Answer::Failed { opening, reason } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                node.write_control(
                    self.association,
                    Message::Failed { item, reason: reason.as_str().into() }.encode(),
                )?;
                self.settle(active, item, Some(reason));
            }
            Answer::Stored { opening, result } => {
                let Some(item) = self.by_opening.get(&opening).copied() else { return Ok(()) };
                let reply = match &result {
                    Ok(()) => Message::Stored { item },
                    Err(reason) => Message::Failed { item, reason: reason.as_str().into() },
                };
                self.settle(active, item, result.err());
                node.write_control(self.association, reply.encode())?;
            }
        }
        Ok(())
    }

    /// Ends the transfer and frees its names.
    pub fn release(&mut self, active: &mut ActiveNames) {
        if self.output.is_none() && self.items.values().any(|item| item.state == State::Finishing) {
            // A complete file may have its name already: wait for the answer.
            self.queue.submit(Job::Sync, 0);
            self.queue.settle();
            while let Some(answer) = self.queue.poll() {
                if let Answer::Stored { opening, result } = answer
                    && let Some(&item) = self.by_opening.get(&opening)
                {
                    self.settle(active, item, result.err());
                }
            }
        }
        let cut = "the connection ended before it was complete; the received part stays for the next attempt";
        let cut_stream = "the connection ended before the stream; the received part does not stay";
        for (item, kind) in self.items.iter().map(|(&item, open)| (item, open.offer.kind)).collect::<Vec<_>>() {
            let reason = if kind == Kind::Stream { cut_stream } else { cut };
            self.settle(active, item, Some(reason.to_owned()));
        }
    }

    fn handle_message<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        active: &mut ActiveNames,
        message: Message,
    ) -> Result<(), TransferError> {
        // Hashing counts as progress only if it advances.
        self.messages += u64::from(!matches!(message, Message::Checked { .. }));
        match message {
            Message::Offer(offer) => {
                self.offered += u64::from(offer.kind.is_file() || offer.kind == Kind::Folder);
                self.has_offers = true;
                if self.ended || self.items.contains_key(&offer.item) || self.items.len() >= MAX_OPEN {
                    return Err(TransferError::Peer("offers an item twice, too many, or after the end"));
                }
                // Names are reserved by key, so that a new connection of the same peer can take over.
                let Some(peer) = node.peer(self.association) else { return Ok(()) };
                self.peer = Some(peer);
                if offer.kind == Kind::Discard {
                    return self.accept_discarded(node, offer);
                }
                let (item, size) = (offer.item, offer.size);
                let name = PeerText::from(offer.name.join("/"));
                if let Err(reason) = self.open(active, peer, offer) {
                    self.refused += 1;
                    // A peer can be refused as often as it likes, but not fill the log.
                    if self.refused <= MAX_REFUSED {
                        let error = Some(reason.clone());
                        self.received.push_back(Received { name: name.into(), size, resumed: 0, error });
                    }
                    node.write_control(self.association, Message::Refuse { item, reason: reason.into() }.encode())?;
                }
            }
            Message::Begin { item, flow, from, again } => {
                let id = FlowId { association: self.association, flow };
                let is_free = !self.by_flow.contains_key(&id);
                let begun = self.items.get_mut(&item).filter(|_| is_free).and_then(|open| open.begin(from, &again));
                let Some(opening) = begun else {
                    return Err(TransferError::Peer("begins an item that it may not begin, or not there"));
                };
                if self.items.get(&item).is_some_and(|open| open.offer.kind != Kind::Discard) {
                    self.queue.submit(Job::Begin { opening, from, again }, 0);
                }
                self.by_flow.insert(id, item);
                self.read(node, active, id)?;
            }
            Message::Ended { item, size, digest } => {
                // The item may have failed here in the meantime.
                let Some(open) = self.items.get_mut(&item) else { return Ok(()) };
                // So far, the size in the offer is what has arrived.
                let left = size.checked_sub(open.offer.size);
                let is_open = open.offer.kind == Kind::Stream && open.state == State::Begun && open.whole.is_none();
                let Some(left) = left.filter(|_| is_open) else {
                    return Err(TransferError::Peer("ends a stream that it has not begun, or not there"));
                };
                (open.left, open.whole) = (left, Some(digest));
                self.finish_if_complete(item);
            }
            Message::Whole { item, digest } => {
                // The item may have failed here in the meantime.
                if let Some(open) = self.items.get_mut(&item) {
                    if open.offer.kind == Kind::Stream {
                        return Err(TransferError::Peer("ends a stream without its size"));
                    }
                    open.whole = Some(digest);
                    self.finish_if_complete(item);
                }
                self.finish_discarded(node, active, item)?;
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
            // A complete file has its name already, or will get it.
            Message::Abort { item, .. } if self.items.get(&item).is_some_and(|item| item.state == State::Finishing) => {
            }
            Message::Abort { item, reason } => self.settle(active, item, Some(reason.into())),
            Message::End => self.ended = true,
            _ => return Err(TransferError::Peer("sends what only a receiver says")),
        }
        Ok(())
    }

    /// Accepts data that is discarded on arrival. It needs neither a name nor the disk.
    fn accept_discarded<C: Carrier>(&mut self, node: &mut Node<C>, mut offer: Offer) -> Result<(), TransferError> {
        offer.name = vec![];
        let (item, opening, name) = (offer.item, self.openings, Name::new(vec!["discarded".to_owned()]));
        let Ok(name) = name else { return Ok(()) };
        self.openings += 1;
        let (state, left, resumed, whole, checked_bytes) = (State::Accepted(0), 0, 0, None, 0);
        self.items.insert(item, Item { opening, name, offer, state, left, resumed, whole, checked_bytes });
        let accept = Message::Accept { item, have: 0, chunks: vec![] };
        Ok(node.write_control(self.association, accept.encode())?)
    }

    /// Submits the opening of an offered item; the error is meant for the sender.
    fn open(&mut self, active: &mut ActiveNames, peer: Fingerprint, mut offer: Offer) -> Result<(), String> {
        if self.refuses_offers {
            return Err("this key is not trusted any more".to_owned());
        }
        let name = Name::new(std::mem::take(&mut offer.name)).map_err(|error| error.to_string())?;
        let (item, opening) = (offer.item, self.openings);
        let mut has_replaced = false;
        let job = match offer.kind {
            Kind::Folder => {
                active.hold(peer, &name)?;
                Job::Make { opening, name: name.clone(), mode: offer.mode }
            }
            Kind::FolderTime => {
                active.hold(peer, &name)?;
                Job::Date { opening, name: name.clone(), modified_ns: offer.modified_ns }
            }
            // Accepted without the disk.
            Kind::Discard => return Ok(()),
            Kind::Stream if offer.size != 0 => {
                return Err("the size of a stream is unknown at its beginning".to_owned());
            }
            Kind::File | Kind::DatedFile | Kind::Stream => {
                if let Some((output, number)) = &self.output {
                    output.check_owner(*number)?;
                }
                if active.is_taken(&name, self.association, peer) {
                    return Err("another transfer is receiving a file of this name".to_owned());
                }
                active.check_size(peer, offer.size)?;
                if active.is_full(peer) {
                    return Err(format!("{MAX_OPEN_PER_PEER} files of this key are open already, the limit"));
                }
                active.hold(peer, &name)?;
                active.charge(peer, offer.size);
                has_replaced = active.take(name.clone(), self.association, peer);
                let attributes = Attributes { mode: offer.mode, modified_ns: offer.modified_ns };
                let known = (offer.kind == Kind::DatedFile).then_some(attributes);
                match offer.kind {
                    Kind::Stream => Job::OpenStream { opening, name: name.clone() },
                    _ => Job::Open { opening, name: name.clone(), size: offer.size, known },
                }
            }
        };
        self.openings += 1;
        if has_replaced {
            self.deferred.push(job);
        } else {
            self.queue.submit(job, 0);
        }
        self.by_opening.insert(opening, item);
        let (state, left, resumed, whole, checked_bytes) = (State::Asked, 0, 0, None, 0);
        self.items.insert(item, Item { opening, name, offer, state, left, resumed, whole, checked_bytes });
        Ok(())
    }

    /// Passes the received bytes of a flow to the disk, as far as it has room.
    fn read<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        active: &mut ActiveNames,
        flow: FlowId,
    ) -> Result<(), TransferError> {
        let Some(&item) = self.by_flow.get(&flow) else { return Ok(()) };
        loop {
            let mut open = self.items.get_mut(&item);
            if open.as_ref().is_some_and(|open| open.offer.kind != Kind::Discard) && !self.queue.has_room() {
                self.paused.insert(flow);
                return Ok(());
            }
            let (mut pieces, mut pieces_bytes) = (vec![], 0);
            while pieces_bytes < PIECES_BYTES
                && let Some(bytes) = node.read(flow)
            {
                self.received_bytes += bytes.len() as u64;
                // Bytes after a failure are read and discarded.
                let Some(open) = &mut open else { continue };
                open.take(bytes.len() as u64)?;
                pieces_bytes += bytes.len() as u64;
                pieces.push(bytes);
            }
            let Some(open) = open.filter(|_| !pieces.is_empty()) else { break };
            if open.offer.kind == Kind::Discard {
                continue;
            }
            if open.offer.kind == Kind::Stream
                && let Some(peer) = self.peer
                && let Err(reason) = active.extend(peer, open.offer.size, pieces_bytes)
            {
                // The bytes that are not counted are not refunded.
                open.offer.size -= pieces_bytes;
                let failed = Message::Failed { item, reason: reason.as_str().into() };
                node.write_control(self.association, failed.encode())?;
                self.settle(active, item, Some(reason));
                continue;
            }
            self.queue.submit(Job::Write { opening: open.opening, pieces }, pieces_bytes);
        }
        self.finish_if_complete(item);
        Ok(())
    }

    /// Stores a complete file, or compares an existing one, once the digest is known.
    fn finish_if_complete(&mut self, item: u32) {
        let Some(open) = self.items.get_mut(&item) else { return };
        let Some(digest) = open.whole else { return };
        let (opening, &Offer { size, mode, modified_ns, .. }) = (open.opening, &open.offer);
        let attributes = Attributes { mode, modified_ns };
        if open.offer.kind == Kind::Discard {
            return;
        }
        let job = match open.state {
            State::Exists => Job::Compare { opening, digest, attributes },
            State::Begun if open.left == 0 => Job::Finish { opening, digest, size, attributes },
            _ => return,
        };
        open.state = State::Finishing;
        self.queue.submit(job, 0);
    }

    /// Confirms discarded data of which everything has arrived.
    fn finish_discarded<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        active: &mut ActiveNames,
        item: u32,
    ) -> Result<(), TransferError> {
        let is_complete = |open: &Item| {
            open.offer.kind == Kind::Discard && open.state == State::Begun && open.left == 0 && open.whole.is_some()
        };
        if self.items.get(&item).is_some_and(is_complete) {
            self.settle(active, item, None);
            node.write_control(self.association, Message::Stored { item }.encode())?;
        }
        Ok(())
    }

    /// Removes an item and frees its name.
    fn forget(&mut self, active: &mut ActiveNames, item: u32) -> Option<Item> {
        let open = self.items.remove(&item)?;
        if let Some(peer) = self.peer.filter(|_| open.offer.kind != Kind::Discard) {
            active.unhold(peer, &open.name);
        }
        if open.offer.kind.is_file() {
            active.free(&open.name, self.association);
        }
        self.by_opening.remove(&open.opening);
        self.queue.submit(Job::Close { opening: open.opening }, 0);
        Some(open)
    }

    fn settle(&mut self, active: &mut ActiveNames, item: u32, error: Option<String>) {
        if let Some(open) = self.forget(active, item) {
            if let Some(peer) = self.peer.filter(|_| open.offer.kind.is_file()) {
                // Received bytes count, also those of an incomplete file, which stays on the disk.
                let unused = match (&error, open.state) {
                    (None, _) => open.resumed,
                    // The received part of a stream does not stay.
                    (Some(_), _) if open.offer.kind == Kind::Stream => open.offer.size,
                    (Some(_), State::Begun | State::Finishing) => open.resumed + open.left,
                    (Some(_), _) => open.offer.size,
                };
                active.refund(peer, unused);
            }
            if open.offer.kind == Kind::Discard || open.offer.kind == Kind::FolderTime && error.is_none() {
                return;
            }
            let (name, size, resumed) = (open.name.to_string(), open.offer.size, open.resumed);
            self.received.push_back(Received { name, size, resumed, error });
        }
    }
}

impl Item {
    /// Counts the next bytes of its flow.
    fn take(&mut self, bytes: u64) -> Result<(), TransferError> {
        let is_stream = self.offer.kind == Kind::Stream;
        if is_stream {
            self.offer.size = self.offer.size.saturating_add(bytes);
        }
        // The rest of a stream is known once it has ended.
        if !is_stream || self.whole.is_some() {
            let left = self.left.checked_sub(bytes);
            self.left = left.ok_or(TransferError::Peer("sends more of a file than it has offered"))?;
        }
        Ok(())
    }

    /// Starts the item as announced by *begin*. Returns its opening, or `None` if the announcement is invalid.
    fn begin(&mut self, from: u64, again: &[u16]) -> Option<Opening> {
        let State::Accepted(have) = self.state else { return None };
        let (size, chunk_bytes) = (self.offer.size, chunk_bytes(self.offer.size));
        // The flow starts after the existing bytes, or at the start of a chunk among them.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_file_and_the_total_of_a_peer_are_limited() {
        let [greedy, other] = [0, 1].map(|at| Fingerprint::of(&[at]));
        let mut active = ActiveNames::with_limits(Some(1000), Some(1500));
        let refused = active.check_size(greedy, 1 << 62).expect_err("too large");
        assert!(refused.ends_with("files of up to 1000 are accepted (--max-size)"), "{refused}");
        assert_eq!(active.check_size(greedy, 1000), Ok(()));
        active.charge(greedy, 1000);
        let refused = active.check_size(greedy, 501).expect_err("beyond the quota");
        assert_eq!(refused, "it has 501 bytes, and 1000 of this key's 1500 are used (--quota)");
        assert_eq!((active.check_size(greedy, 500), active.check_size(other, 1000)), (Ok(()), Ok(())));
        active.refund(greedy, 1000);
        assert_eq!(active.check_size(greedy, 1000), Ok(()), "bytes that did not arrive do not count");
    }

    #[test]
    fn a_stream_ends_at_the_limits_of_its_peer() {
        let [greedy, other] = [0, 1].map(|at| Fingerprint::of(&[at]));
        let mut active = ActiveNames::with_limits(Some(1000), Some(1500));
        assert_eq!((active.extend(greedy, 600, 600), active.extend(greedy, 1000, 400)), (Ok(()), Ok(())));
        let refused = active.extend(greedy, 1001, 1).expect_err("too large");
        assert_eq!(refused, "it has more than 1000 bytes, the limit (--max-size)");
        // The next stream of the same key.
        assert_eq!(active.extend(greedy, 500, 500), Ok(()));
        let refused = active.extend(greedy, 501, 1).expect_err("beyond the quota");
        assert_eq!(refused, "with it, this key has more than its 1500 bytes (--quota)");
        assert_eq!(active.extend(other, 501, 501), Ok(()));
        active.refund(greedy, 500);
        assert_eq!(active.extend(greedy, 500, 500), Ok(()), "a stream that was removed does not count");
    }

    #[test]
    fn the_names_of_a_peers_open_items_take_bounded_memory() {
        let name = |at: usize| Name::new(vec![format!("{at:04}").repeat(50); 19]).expect("a name");
        let [greedy, other] = [0, 1].map(|at| Fingerprint::of(&[at]));
        let mut active = ActiveNames::default();
        let held = (0..MAX_OPEN_PER_PEER).take_while(|&at| active.hold(greedy, &name(at)).is_ok()).count();
        assert_eq!(held, MAX_NAMES_BYTES_PER_PEER / name(0).bytes());
        assert!(held >= 4 * 64, "a sender has 64 items open, so {held} are enough for four");
        assert_eq!(active.hold(other, &name(0)), Ok(()), "another key has its own room");
        active.unhold(greedy, &name(0));
        assert_eq!(active.hold(greedy, &name(9999)), Ok(()));
        (1..held).chain([9999]).for_each(|at| active.unhold(greedy, &name(at)));
        active.unhold(other, &name(0));
        assert!(active.is_empty());
        // Many peers together leave to each its reserved part.
        let peers: Vec<_> = (0..64).map(|at| Fingerprint::of(&[7, at])).collect();
        for at in 0..MAX_OPEN_PER_PEER {
            peers.iter().for_each(|&peer| drop(active.hold(peer, &name(at))));
        }
        assert!(active.all_names_bytes <= SHARED_NAMES_BYTES + 64 * RESERVED_NAMES_BYTES, "{}", active.all_names_bytes);
        let last = (0..MAX_OPEN_PER_PEER).take_while(|&at| active.hold(greedy, &name(at)).is_ok()).count();
        assert_eq!(last, RESERVED_NAMES_BYTES / name(0).bytes());
    }

    #[test]
    fn the_open_files_of_a_peer_are_limited() {
        let name = |at: usize| Name::new(vec![at.to_string()]).expect("a name");
        let [greedy, other] = [0, 1].map(|at| Fingerprint::of(&[at]));
        let mut active = ActiveNames::default();
        for at in 0..MAX_OPEN_PER_PEER {
            assert!(!active.is_full(greedy));
            active.take(name(at), AssociationId(at as u64 / 1000), greedy);
        }
        assert!(active.is_full(greedy) && !active.is_full(other));
        active.free(&name(7), AssociationId(1));
        assert!(active.is_full(greedy), "another association has the name");
        active.free(&name(7), AssociationId(0));
        assert!(!active.is_full(greedy));
        // A new association of the peer takes over a name.
        assert!(active.take(name(8), AssociationId(9), greedy) && !active.is_full(greedy));
    }
}
