//! A transfer to one peer over as many associations as it takes.
//!
//! An association ends early if the peer restarts, if the path fails for long, or if packets have to
//! become smaller. The session then continues in another one: it offers the items that have no
//! result yet, and the receiver answers how much of each it has. [`Attempts`] decides when to try,
//! and when to give up.

use super::black_hole::BlackHole;
use super::message::Kind;
use super::name::Name;
use super::{CODE_RECONNECT, CODE_STOPPED, Compare, Outcome, SendTransfer, Source, TransferError};
use crate::attempts::{Attempts, ConnectError, Limits, Request};
use crate::carrier::{AssociationId, Carrier, CloseReason, Unreachable};
use crate::disk::Disk;
use crate::identity::Fingerprint;
use crate::node::{Node, NodeError, NodeEvent};
use sparelane_core::{Dur, Time};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The silence that is reported. Unacknowledged data is answered sooner over any path.
const QUIET: Dur = Dur::from_secs(3);

/// The time after the idle timeout at which a sender without acknowledgments connects again. The peer has answered in
/// the meantime, but after a failure of the path, the retransmission timer may have backed off so far that its next
/// attempts come later.
pub const STUCK_MARGIN: Dur = Dur::from_secs(10);

/// A transfer over one or several associations.
#[derive(Debug)]
pub struct Session {
    attempts: Attempts,
    /// The association that is open or begun.
    association: Option<AssociationId>,
    /// The items for the next association.
    sources: Vec<Source>,
    transfer: Option<SendTransfer>,
    stall_timeout: Dur,
    peer: Option<Fingerprint>,
    /// The time at which the first association opened.
    opened: Option<Time>,
    /// The number of associations that have opened.
    count: u32,
    /// The number of open associations that were lost, and the reason of the latest one.
    losses: u32,
    last_loss: Option<CloseReason>,
    /// The bytes of items with a result in earlier associations.
    settled_bytes: u64,
    total_bytes: u64,
    /// The most bytes that the receiver had.
    best_bytes: u64,
    outcomes: VecDeque<Outcome>,
    black_hole: BlackHole,
    compare: Compare,
    /// The number of all files.
    total_files: u64,
    /// The bytes that the receiver had before the first association.
    resumed_bytes: u64,
}

impl Session {
    /// Creates the transfer of `sources` to a peer with these addresses. It ends after
    /// `stall_timeout` without progress of the receiver.
    pub fn new(
        sources: Vec<Source>,
        addresses: Vec<SocketAddr>,
        limits: Limits,
        stall_timeout: Dur,
        now: Time,
    ) -> Session {
        Session {
            attempts: Attempts::new(addresses, limits, now),
            association: None,
            total_bytes: sources.iter().map(|source| source.size).sum(),
            total_files: files_of(&sources),
            sources,
            transfer: None,
            stall_timeout,
            peer: None,
            opened: None,
            count: 0,
            losses: 0,
            last_loss: None,
            settled_bytes: 0,
            best_bytes: 0,
            outcomes: VecDeque::new(),
            black_hole: BlackHole::new(now),
            compare: Compare::default(),
            resumed_bytes: 0,
        }
    }

    /// Sets how files are compared with those that the receiver has.
    pub fn set_compare(&mut self, compare: Compare) {
        self.compare = compare;
    }

    /// The number of files with a result, and of all files.
    pub fn files(&self) -> (u64, u64) {
        let left = self.transfer.as_ref().map_or_else(|| files_of(&self.sources), SendTransfer::files_left);
        (self.total_files - left, self.total_files)
    }

    /// The name of a file that is being sent or compared, if any.
    pub fn current(&self) -> Option<&Name> {
        self.transfer.as_ref().and_then(SendTransfer::current)
    }

    /// The bytes that the receiver had before this session, as far as it has reported them.
    pub fn resumed_bytes(&self) -> u64 {
        match &self.transfer {
            Some(transfer) if self.count == 1 => transfer.resumed_bytes(),
            _ => self.resumed_bytes,
        }
    }

    /// The association that is open or begun.
    pub fn association(&self) -> Option<AssociationId> {
        self.association
    }

    /// The address of the peer that is used or tried now.
    pub fn address(&self) -> Option<SocketAddr> {
        self.attempts.address()
    }

    /// The peer's key, once it has connected.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.peer
    }

    /// The time at which the first association opened.
    pub fn opened(&self) -> Option<Time> {
        self.opened
    }

    /// The number of associations that have opened.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number of connections that were lost, and the reason of the latest loss.
    pub fn losses(&self) -> (u32, Option<&CloseReason>) {
        (self.losses, self.last_loss.as_ref())
    }

    /// Returns true if the connection was lost and is not restored.
    pub fn is_lost(&self) -> bool {
        self.attempts.lost().is_some()
    }

    /// Returns true if every item has a result.
    pub fn is_done(&self) -> bool {
        self.transfer.as_ref().is_some_and(SendTransfer::is_done)
    }

    /// Returns the next result of an item; each item has one.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Returns the bytes that the receiver has, and those of all files.
    pub fn progress<C: Carrier>(&self, node: &Node<C>) -> (u64, u64) {
        let current = self.transfer.as_ref().map_or(0, |transfer| transfer.progress(node).0);
        // What has been read of a stream counts.
        let of_streams = self.transfer.as_ref().map_or(0, |transfer| transfer.stream_bytes(false));
        (self.best_bytes.max(self.settled_bytes + current), self.total_bytes + of_streams)
    }

    /// The time for which the peer has not answered, if it should have.
    pub fn silence<C: Carrier>(&self, now: Time, node: &Node<C>) -> Option<Dur> {
        self.transfer.as_ref().filter(|transfer| transfer.is_waiting())?;
        node.silence(now, self.association?).filter(|silence| *silence >= QUIET)
    }

    /// The time at which [`poll`](Self::poll) should be called next.
    pub fn next_timer(&self) -> Time {
        self.attempts.next_timer()
    }

    /// Returns the address to begin an association with, by [`begin`](Self::begin), if it is time.
    ///
    /// # Errors
    /// The peer cannot be reached, or not again; the received part stays for the next session.
    pub fn poll<C: Carrier>(&mut self, now: Time, node: &mut Node<C>) -> Result<Option<SocketAddr>, TransferError> {
        loop {
            match self.attempts.poll(now).map_err(of_connect)? {
                Some(Request::Connect(to)) => return Ok(Some(to)),
                Some(Request::Abandon) => {
                    if let Some(association) = self.association.take() {
                        node.close(now, association, CODE_STOPPED, "no answer in time");
                    }
                }
                None => return Ok(None),
            }
        }
    }

    /// Begins an association with an address.
    ///
    /// # Errors
    /// The node refuses.
    pub fn begin<C: Carrier>(&mut self, now: Time, node: &mut Node<C>, to: SocketAddr) -> Result<(), NodeError> {
        self.association = Some(node.connect(now, to)?);
        self.black_hole = BlackHole::new(now);
        Ok(())
    }

    /// Handles an attempt that could not begin, because there is no route or for another reason.
    pub fn handle_refused(&mut self, now: Time, reason: Result<Unreachable, String>) {
        match reason {
            Ok(report) => self.attempts.handle_closed(now, CloseReason::Unreachable(report)),
            Err(error) => self.attempts.handle_refused(now, error),
        }
    }

    /// Handles an event of the node.
    ///
    /// # Errors
    /// The transfer ends early; the received part stays for the next session.
    pub fn handle_event<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        event: &NodeEvent,
        disk: Option<&Disk>,
    ) -> Result<(), TransferError> {
        match event {
            NodeEvent::Opened { association, peer, .. } if Some(*association) == self.association => {
                self.peer = Some(*peer);
                self.opened.get_or_insert(now);
                self.count += 1;
                self.attempts.handle_opened();
                let sources = std::mem::take(&mut self.sources);
                let mut transfer = SendTransfer::new(*association, sources, node, disk);
                transfer.set_stall_timeout(self.stall_timeout);
                transfer.set_compare(self.compare);
                self.transfer = Some(transfer);
            }
            NodeEvent::Closed { association, reason } if Some(*association) == self.association => {
                self.association = None;
                if self.transfer.is_some() {
                    (self.losses, self.last_loss) = (self.losses + 1, Some(reason.clone()));
                }
                self.suspend(reason)?;
                self.attempts.handle_closed(now, reason.clone());
                return Ok(());
            }
            _ => {}
        }
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        let handled = transfer.handle_event(now, node, event);
        self.take_results(node);
        self.go_on_after(now, node, handled)
    }

    /// Handles answers of the disk.
    ///
    /// # Errors
    /// As of [`handle_event`](Self::handle_event).
    pub fn advance<C: Carrier>(&mut self, now: Time, node: &mut Node<C>) -> Result<(), TransferError> {
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        let advanced = transfer.advance(now, node);
        self.take_results(node);
        self.go_on_after(now, node, advanced)
    }

    /// Returns the errors that end the transfer: not the end of the association, whose event follows with the reason,
    /// and not a flow of which nothing gets through, if another association can be tried.
    fn go_on_after<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        result: Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        match result {
            Err(TransferError::Node(NodeError::NotOpen)) => Ok(()),
            Err(TransferError::Stuck) if self.attempts.may_retry() => {
                let reason = CloseReason::Stuck;
                if let Some(association) = self.association.take() {
                    node.close(now, association, CODE_RECONNECT, "no data gets through");
                }
                (self.losses, self.last_loss) = (self.losses + 1, Some(reason.clone()));
                self.suspend(&reason)?;
                self.attempts.handle_closed(now, reason);
                Ok(())
            }
            other => other,
        }
    }

    /// Checks the stall timer; to be called now and then.
    ///
    /// # Errors
    /// The receiver is connected but makes no progress.
    pub fn check_stall<C: Carrier>(&mut self, now: Time, node: &Node<C>) -> Result<(), TransferError> {
        self.transfer.as_mut().map_or(Ok(()), |transfer| transfer.check_stall(now, node))
    }

    /// Returns true if the path has started to drop full packets; to be called now and then.
    ///
    /// # Errors
    /// The association is not open.
    pub fn drops_full_packets<C: Carrier>(&mut self, now: Time, node: &mut Node<C>) -> Result<bool, NodeError> {
        let (Some(transfer), Some(association)) = (&self.transfer, self.association) else { return Ok(false) };
        let (bytes, is_waiting) = (transfer.progress(node).0, transfer.is_waiting());
        match self.black_hole.poll(now, node, association, bytes, is_waiting) {
            // The event of the association's end follows.
            Err(NodeError::NotOpen) => Ok(false),
            polled => polled,
        }
    }

    /// Closes the association, to continue in another one at once.
    ///
    /// # Errors
    /// It has sent a part of a stream, which cannot continue.
    pub fn leave<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        code: u32,
        reason: &str,
    ) -> Result<(), TransferError> {
        // The event of the end then belongs to no association of this session.
        if let Some(association) = self.association.take() {
            node.close(now, association, code, reason);
        }
        self.suspend(&CloseReason::Failed(reason.into()))?;
        self.attempts.handle_left(now);
        Ok(())
    }

    /// Ends the transfer of the association, and keeps the items without a result for the next one.
    fn suspend(&mut self, reason: &CloseReason) -> Result<(), TransferError> {
        self.resumed_bytes = self.resumed_bytes();
        let Some(mut transfer) = self.transfer.take() else { return Ok(()) };
        self.outcomes.extend(std::iter::from_fn(|| transfer.poll_outcome()));
        self.total_bytes += transfer.stream_bytes(true);
        let is_spent = transfer.has_spent_stream();
        self.sources = transfer.into_unsettled();
        let unsettled = self.sources.iter().filter(|source| source.kind != Kind::Stream);
        self.settled_bytes = self.total_bytes - unsettled.map(|source| source.size).sum::<u64>();
        if is_spent { Err(TransferError::Stream(reason.clone())) } else { Ok(()) }
    }

    fn take_results<C: Carrier>(&mut self, node: &Node<C>) {
        let Some(transfer) = &mut self.transfer else { return };
        let before = self.outcomes.len();
        self.outcomes.extend(std::iter::from_fn(|| transfer.poll_outcome()));
        let bytes = self.settled_bytes + transfer.progress(node).0;
        if self.outcomes.len() > before || bytes > self.best_bytes {
            self.best_bytes = bytes.max(self.best_bytes);
            self.attempts.handle_progress();
        }
    }
}

fn files_of(sources: &[Source]) -> u64 {
    sources.iter().filter(|source| source.counts()).count() as u64
}

fn of_connect(error: ConnectError) -> TransferError {
    match error {
        ConnectError::Ended(reason) => TransferError::Closed(reason),
        other => TransferError::Connect(other),
    }
}
