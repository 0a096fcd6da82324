//! A receiver of files from any number of hosts into one folder, or to an output.

use super::FLUSH_TIMEOUT;
use super::cleaner::Cleaner;
use super::config::{Revocation, WireConfig};
use super::error::WireError;
use super::stall_schedule::StallSchedule;
use crate::carrier::{AssociationId, CloseReason};
use crate::control::Service;
use crate::disk::Disk;
use crate::host::Host;
use crate::identity::{Fingerprint, Trusted};
use crate::node::NodeEvent;
use crate::transfer::folder::{Folder, Modes, Rules};
use crate::transfer::output::Output;
use crate::transfer::{
    ActiveNames, CODE_DONE, CODE_RECONNECT, CODE_REPLACED, CODE_STOPPED, ReceiveTransfer, Received, TransferError,
};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The close reason of a transfer that another one has replaced.
pub(super) const REPLACED: &str = "another connection of the same key sends the same file now";

/// Raises the limit of open files from the soft to the hard one. The soft one is 1024 for programs that use `select`.
fn raise_descriptor_limit() {
    // With the old limit, fewer files can be open; there is no other effect.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// An event of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// A peer has connected.
    Connected {
        /// The peer's key.
        peer: Fingerprint,
        /// The peer's address.
        address: SocketAddr,
    },
    /// A file or folder has a result.
    Item {
        /// The peer's key.
        peer: Fingerprint,
        /// The result.
        received: Received,
    },
    /// Incomplete files were removed, because they had not changed for long.
    Cleaned {
        /// Their names, as they would be when complete.
        names: Vec<String>,
        /// The bytes that they occupied.
        bytes: u64,
    },
    /// A peer has disconnected.
    Disconnected {
        /// The peer's key.
        peer: Fingerprint,
        /// The reason, unless the transfer was complete.
        error: Option<String>,
        /// The number of files and folders that it offered; none if it only measured the path.
        offered: u64,
        /// True if another connection has replaced this one.
        replaced: bool,
    },
}

/// The destination of received files.
#[derive(Debug)]
enum Destination {
    Folder(Arc<Folder>),
    Output(Arc<Output>),
}

/// Receives files from any number of hosts into one folder, or to an output.
#[derive(Debug)]
pub struct FileReceiver {
    host: Host,
    destination: Destination,
    replaces: bool,
    transfers: BTreeMap<AssociationId, (Fingerprint, ReceiveTransfer)>,
    disk: Disk,
    pub(super) active: ActiveNames,
    stall: StallSchedule,
    cleaner: Cleaner,
    revocation: Revocation,
    stops: bool,
}

impl FileReceiver {
    /// Listens at the address `at`. The folder is created if it does not exist, but its parent must. With `replaces`,
    /// existing files are replaced.
    ///
    /// # Errors
    /// The address or the folder cannot be used.
    pub fn bind(config: &WireConfig, at: SocketAddr, folder: &Path, replaces: bool) -> Result<FileReceiver, WireError> {
        let failed = |error| WireError::Folder { path: folder.to_owned(), error };
        // The socket is opened first: if its address is in use, no folder is created.
        let host = config.bind(at, true)?;
        match std::fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let rules = Rules {
            modes: Modes::new(config.file_mode),
            min_free_bytes: config.settings.min_free_bytes,
            fsync: config.settings.fsync,
        };
        let folder = Arc::new(Folder::open_with(folder, rules).map_err(failed)?);
        FileReceiver::new(config, host, Destination::Folder(folder), replaces)
    }

    /// Listens at the address `at`, and writes the files of one transfer at a time to an open file, such as a pipe, one
    /// after another.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn bind_to_output(config: &WireConfig, at: SocketAddr, file: File) -> Result<FileReceiver, WireError> {
        let host = config.bind(at, true)?;
        FileReceiver::new(config, host, Destination::Output(Arc::new(Output::new(file))), false)
    }

    fn new(
        config: &WireConfig,
        host: Host,
        destination: Destination,
        replaces: bool,
    ) -> Result<FileReceiver, WireError> {
        raise_descriptor_limit();
        let disk = Disk::start().map_err(WireError::Disk)?;
        let active = ActiveNames::with_limits(config.settings.max_size_bytes, config.settings.quota_bytes);
        let (transfers, stall) = (BTreeMap::new(), StallSchedule::of(config));
        let revocation = config.settings.revocation;
        let cleaner = Cleaner::new(Duration::from_secs_f64(config.settings.partial_age_days * 86_400.0));
        let stops = false;
        Ok(FileReceiver { host, destination, replaces, transfers, disk, active, stall, cleaner, revocation, stops })
    }

    /// The address of the socket.
    pub fn local_address(&self) -> SocketAddr {
        self.host.socket().local_address()
    }

    /// Bytes received in the current transfers.
    pub fn received_bytes(&self) -> u64 {
        self.transfers.values().map(|(_, transfer)| transfer.received_bytes()).sum()
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host, for changes.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Replaces the trusted peers. The transfers of others end, now or after the accepted files, as configured.
    pub fn set_trusted(&mut self, trusted: Trusted) {
        for association in self.host.set_trusted(trusted) {
            match self.transfers.get_mut(&association) {
                Some((_, transfer)) if self.revocation == Revocation::Finish => transfer.refuse_offers(),
                _ => self.host.revoke(association),
            }
            // A transfer that has finished later is left to the sender, which waits for the last confirmation.
            if self.transfers.get(&association).is_some_and(|(_, transfer)| transfer.has_finished_last()) {
                self.host.revoke(association);
            }
        }
    }

    /// Refuses new transfers; current ones continue.
    pub fn stop(&mut self) {
        self.stops = true;
    }

    /// The number of connected peers that have offered something.
    pub fn running(&self) -> usize {
        self.transfers.values().filter(|(_, transfer)| transfer.offered() > 0).count()
    }

    /// Advances until something has happened, but no longer than `at_most`. Returns the events.
    ///
    /// # Errors
    /// The socket failed.
    pub fn step(&mut self, at_most: Duration) -> Result<Vec<ReceiverEvent>, WireError> {
        let until = Instant::now() + at_most;
        let mut events = vec![];
        while events.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let at_most = left.min(self.stall.interval);
            if let Some(event) = self.host.next_event_or_readable(at_most, Some(self.disk.ready_fd()))? {
                self.handle(&event, &mut events);
            }
            if self.disk.take_ready() {
                self.handle_answers(&mut events);
            }
            if self.stall.is_due() {
                self.check_stalls(&mut events);
                let removed = match &self.destination {
                    Destination::Folder(folder) => self.cleaner.poll(folder),
                    Destination::Output(_) => vec![],
                };
                if !removed.is_empty() {
                    let names = removed.iter().map(|file| file.name.to_string()).collect();
                    events.push(ReceiverEvent::Cleaned { names, bytes: removed.iter().map(|file| file.bytes).sum() });
                }
            }
            if left.is_zero() {
                break;
            }
        }
        Ok(events)
    }

    fn handle(&mut self, event: &NodeEvent, events: &mut Vec<ReceiverEvent>) {
        let now = self.host.now();
        let association = match event {
            NodeEvent::Opened { association, .. } if self.stops => {
                return self.host.node_mut().close(now, *association, CODE_STOPPED, "the receiver is stopping");
            }
            NodeEvent::Opened { association, peer, address } => {
                let (disk, replaces) = (Some(&self.disk), self.replaces);
                let mut transfer = match &self.destination {
                    Destination::Folder(folder) => ReceiveTransfer::new(*association, folder, replaces, disk),
                    Destination::Output(output) => ReceiveTransfer::to_output(*association, output, disk),
                };
                transfer.set_stall_timeout(self.stall.timeout);
                // If the greeting cannot be sent, the association has ended.
                let _ = self.host.node_mut().write_control(*association, Service::Files.greeting());
                self.transfers.insert(*association, (*peer, transfer));
                events.push(ReceiverEvent::Connected { peer: *peer, address: *address });
                return;
            }
            NodeEvent::Control(association) | NodeEvent::Closed { association, .. } => *association,
            NodeEvent::Incoming(flow) | NodeEvent::Readable(flow) | NodeEvent::ReceiveFailed(flow) => flow.association,
            NodeEvent::Acknowledged(_) | NodeEvent::Sent(_) | NodeEvent::SendFailed(_) | NodeEvent::Path(_) => return,
        };
        let Some((_, transfer)) = self.transfers.get_mut(&association) else { return };
        let result = transfer.handle_event(self.host.node_mut(), &mut self.active, event);
        // A replaced transfer must not write any more before its successor opens the files.
        let mut has_replaced = false;
        while let Some(replaced) = self.active.poll_replaced() {
            self.host.node_mut().close(now, replaced, CODE_REPLACED, REPLACED);
            self.end(replaced, Some(REPLACED.to_owned()), true, events);
            has_replaced = true;
        }
        if let Some((_, transfer)) = self.transfers.get_mut(&association).filter(|_| has_replaced) {
            transfer.resume();
        }
        self.finish(association, result, events);
    }

    /// Handles answers of the disk for all transfers.
    fn handle_answers(&mut self, events: &mut Vec<ReceiverEvent>) {
        for association in self.transfers.keys().copied().collect::<Vec<_>>() {
            let Some((_, transfer)) = self.transfers.get_mut(&association) else { continue };
            let result = transfer.handle_answers(self.host.node_mut(), &mut self.active);
            self.finish(association, result, events);
        }
    }

    /// Ends transfers whose stall timer has expired.
    fn check_stalls(&mut self, events: &mut Vec<ReceiverEvent>) {
        let now = self.host.now();
        let check = |(&id, (_, transfer)): (&AssociationId, &mut (Fingerprint, ReceiveTransfer))| {
            transfer.check_stall(now).err().map(|error| (id, error))
        };
        for (association, error) in self.transfers.iter_mut().filter_map(check).collect::<Vec<_>>() {
            self.finish(association, Err(error), events);
        }
    }

    /// Reports the results of a transfer, and ends it on an error.
    fn finish(
        &mut self,
        association: AssociationId,
        result: Result<(), TransferError>,
        events: &mut Vec<ReceiverEvent>,
    ) {
        let now = self.host.now();
        match result {
            Ok(()) => self.report_items(association, events),
            Err(TransferError::Closed(CloseReason::Peer { code, .. })) if code == u64::from(CODE_RECONNECT) => {
                // The peer reconnects at once, so it is not reported as disconnected.
                if let Some((_, mut transfer)) = self.transfers.remove(&association) {
                    transfer.release(&mut self.active);
                }
            }
            Err(TransferError::Closed(CloseReason::Peer { code, .. })) if code == u64::from(CODE_DONE) => {
                self.end(association, None, false, events);
            }
            Err(error) => {
                self.host.node_mut().close(now, association, error.code(), &error.to_string());
                self.end(association, Some(error.to_string()), false, events);
            }
        }
    }

    /// Reports the results of a transfer's items.
    fn report_items(&mut self, association: AssociationId, events: &mut Vec<ReceiverEvent>) {
        if let Some((peer, transfer)) = self.transfers.get_mut(&association) {
            let items = std::iter::from_fn(|| transfer.poll_received());
            events.extend(items.map(|received| ReceiverEvent::Item { peer: *peer, received }));
        }
    }

    fn end(
        &mut self,
        association: AssociationId,
        error: Option<String>,
        replaced: bool,
        events: &mut Vec<ReceiverEvent>,
    ) {
        if let Some((_, transfer)) = self.transfers.get_mut(&association) {
            transfer.release(&mut self.active);
        }
        self.report_items(association, events);
        if let Some((peer, transfer)) = self.transfers.remove(&association) {
            let offered = transfer.offered();
            events.push(ReceiverEvent::Disconnected { peer, error, offered, replaced });
        }
    }

    /// Ends all transfers, with a reason for the peers. Incomplete files stay.
    ///
    /// # Errors
    /// The socket failed.
    pub fn close(&mut self, reason: &str) -> Result<(), WireError> {
        let now = self.host.now();
        for association in std::mem::take(&mut self.transfers).into_keys() {
            self.host.node_mut().close(now, association, CODE_STOPPED, reason);
        }
        Ok(self.host.flush(FLUSH_TIMEOUT)?)
    }
}
