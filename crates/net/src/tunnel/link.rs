//! The connections of a tunnel over one association, without sockets.
//!
//! Events of the node are passed to [`handle_event`](Link::handle_event), those of sockets to the other `handle_*`
//! methods. Actions for the sockets come from [`poll_event`](Link::poll_event).

use super::message::Message;
use super::{Target, TunnelError};
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox, Service};
use crate::node::{FlowId, FlowKind, Node, NodeError, NodeEvent};
use bytes::Bytes;
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, VecDeque};

/// The upper limit of [`LinkConfig::max_connections`].
pub const MAX_CONNECTIONS: usize = 4096;

/// The silence of the other site after which it is asked for an answer.
const MAX_SILENCE: Dur = Dur::from_secs(2);

/// Limits of the connections of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// The maximum number of open connections, at most [`MAX_CONNECTIONS`].
    pub max_connections: usize,
    /// The maximum number of unacknowledged bytes of a connection, beyond which its socket is not read.
    pub buffer_bytes: u64,
}

/// An action for the sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// At the serving site: connect to the target, if allowed, and report the result.
    Connect {
        /// The connection.
        connection: u32,
        /// The target that the peer has requested.
        target: Target,
    },
    /// At the dialing site: the target has accepted the connection.
    Opened(u32),
    /// There is more to [`read`](Link::read).
    Readable(u32),
    /// Both directions have ended; the link has removed the connection.
    Done(u32),
    /// The target could not be connected to; the link has removed the connection.
    Refused {
        /// The connection.
        connection: u32,
        /// The reason.
        reason: String,
    },
    /// The connection is broken and its socket should be reset; the link has removed the connection.
    Reset {
        /// The connection.
        connection: u32,
        /// The reason.
        reason: String,
    },
}

/// Data for a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// These bytes.
    Bytes(Bytes),
    /// No data at present.
    Nothing,
    /// The end of the peer's direction.
    End,
}

/// A request for a connection that the serving site had not answered when the association ended.
#[derive(Debug)]
pub struct Unanswered {
    /// The connection's number in that association.
    pub connection: u32,
    request: Request,
}

/// The data that the dialing site has sent for a connection before the answer.
#[derive(Debug)]
struct Request {
    target: Target,
    bytes: Vec<Bytes>,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Connection {
    /// The request, at the dialing site, until it is answered.
    request: Option<Request>,
    /// The kind of its flows, with the target's port.
    kind: FlowKind,
    /// The flow to the peer, and true if its end is acknowledged.
    outgoing: Option<FlowId>,
    is_sent: bool,
    /// The flow from the peer, true if all of it was read, and true if its end was delivered, too.
    incoming: Option<FlowId>,
    is_read: bool,
    is_end_delivered: bool,
}

/// The connections of an association.
#[derive(Debug)]
pub struct Link {
    association: AssociationId,
    serves: bool,
    config: LinkConfig,
    connections: BTreeMap<u32, Connection>,
    by_incoming: BTreeMap<u32, u32>,
    by_outgoing: BTreeMap<u32, u32>,
    /// The number of the next connection.
    next: u32,
    inbox: Inbox,
    /// True if no more connections are accepted, because the peer's key is not trusted any more.
    refuses_new: bool,
    /// Requests without an answer, after the end of the association.
    unanswered: Vec<Unanswered>,
    /// The time of the latest ping.
    pinged: Time,
    events: VecDeque<LinkEvent>,
}

impl Link {
    /// Creates the connections of an open association at the dialing site.
    pub fn dialing(association: AssociationId, config: LinkConfig) -> Link {
        Link::new(association, false, config)
    }

    /// Creates the connections of an open association at the serving site.
    pub fn serving(association: AssociationId, config: LinkConfig) -> Link {
        Link::new(association, true, config)
    }

    fn new(association: AssociationId, serves: bool, config: LinkConfig) -> Link {
        let config = LinkConfig { max_connections: config.max_connections.min(MAX_CONNECTIONS), ..config };
        Link {
            association,
            serves,
            config,
            connections: BTreeMap::new(),
            by_incoming: BTreeMap::new(),
            by_outgoing: BTreeMap::new(),
            next: 0,
            inbox: Inbox::default(),
            refuses_new: false,
            unanswered: Vec::new(),
            pinged: Time::ZERO,
            events: VecDeque::new(),
        }
    }

    /// Accepts no more connections, because the peer's key is not trusted any more.
    pub fn refuse_new(&mut self) {
        self.refuses_new = true;
    }

    /// Returns true if no more connections are accepted and all others have ended.
    pub fn has_finished_last(&self) -> bool {
        self.refuses_new && self.connections.is_empty()
    }

    /// The number of connections.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns true if there is no connection.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns the next action.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// Handles an event of the node.
    ///
    /// # Errors
    /// The association ended with all its connections, or the peer violates the rules.
    pub fn handle_event<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        event: &NodeEvent,
    ) -> Result<(), TunnelError> {
        match event {
            NodeEvent::Control(association) if *association == self.association => {
                while let Some(bytes) = node.read_control(self.association) {
                    self.inbox.push(&bytes);
                }
                while let Some(message) = self.inbox.pop()? {
                    self.handle_message(now, node, message)?;
                }
                if self.inbox.peer_serves() == Some(Service::Files) {
                    return Err(TunnelError::Peer("receives files (`sparelane recv`) and does not serve a tunnel"));
                }
            }
            NodeEvent::Incoming(flow) | NodeEvent::Readable(flow) => {
                if let Some(&id) = self.by_incoming.get(&flow.flow).filter(|_| flow.association == self.association) {
                    self.events.push_back(LinkEvent::Readable(id));
                }
            }
            NodeEvent::Sent(flow) => {
                if let Some(&id) = self.by_outgoing.get(&flow.flow).filter(|_| flow.association == self.association) {
                    self.connections.entry(id).and_modify(|connection| connection.is_sent = true);
                    self.remove_if_done(id);
                }
            }
            NodeEvent::SendFailed(flow) => {
                if let Some(&id) = self.by_outgoing.get(&flow.flow).filter(|_| flow.association == self.association) {
                    self.abort(node, id, "the peer has acknowledged nothing for too long", true)?;
                }
            }
            NodeEvent::Closed { association, reason } if *association == self.association => {
                for (connection, open) in std::mem::take(&mut self.connections) {
                    match open.request {
                        Some(request) => self.unanswered.push(Unanswered { connection, request }),
                        None => self.events.push_back(LinkEvent::Reset { connection, reason: reason.to_string() }),
                    }
                }
                return Err(TunnelError::Closed(reason.clone()));
            }
            // The peer reports the reason of a failed flow on the control stream.
            _ => {}
        }
        Ok(())
    }

    fn handle_message<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        message: Message,
    ) -> Result<(), TunnelError> {
        match message {
            Message::Open { connection, flow, target } if self.serves => {
                // Numbers are consecutive, which makes repeated requests visible.
                if connection != self.next || self.by_incoming.contains_key(&flow) {
                    return Err(TunnelError::Peer("opens a connection twice or out of order"));
                }
                self.next += 1;
                let kind = FlowKind::of_port(target.port);
                self.connections.insert(connection, Connection { kind, ..Connection::default() });
                self.bind(node, connection, flow);
                if self.refuses_new {
                    return self.refuse(now, node, connection, "this key is not trusted any more");
                }
                if self.connections.len() > self.config.max_connections {
                    let reason = format!("there are {} connections already, the limit", self.config.max_connections);
                    return self.refuse(now, node, connection, &reason);
                }
                self.events.push_back(LinkEvent::Connect { connection, target });
            }
            Message::Opened { connection, flow } if !self.serves => {
                let id = FlowId { association: self.association, flow };
                // The peer may answer only requests of this site.
                if connection >= self.next || self.by_incoming.contains_key(&flow) {
                    return Err(TunnelError::Peer("has opened a connection that was not requested"));
                }
                match self.connections.get_mut(&connection) {
                    Some(open) if open.incoming.is_none() => {
                        open.request = None;
                        self.events.push_back(LinkEvent::Opened(connection));
                        self.bind(node, connection, flow);
                    }
                    Some(_) => return Err(TunnelError::Peer("has opened a connection twice")),
                    // This site has reset it in the meantime.
                    None => node.abandon(id),
                }
            }
            Message::Refused { connection, reason } if !self.serves => {
                if self.forget(node, connection) {
                    self.events.push_back(LinkEvent::Refused { connection, reason: reason.into() });
                }
            }
            Message::Reset { connection, reason } => {
                let reason = format!("the peer has reset it: {reason}");
                self.abort(node, connection, &reason, false)?;
            }
            _ => return Err(TunnelError::Peer("sends a message of the other side")),
        }
        Ok(())
    }

    /// Assigns the peer's flow to a connection.
    fn bind<C: Carrier>(&mut self, node: &Node<C>, id: u32, flow: u32) {
        let incoming = FlowId { association: self.association, flow };
        self.by_incoming.insert(flow, id);
        self.connections.entry(id).and_modify(|connection| connection.incoming = Some(incoming));
        if node.receiving(incoming).is_some() {
            self.events.push_back(LinkEvent::Readable(id));
        }
    }

    /// Opens a connection at the dialing site. Its bytes may be sent at once.
    ///
    /// # Errors
    /// The association is not open, or has too many connections.
    pub fn open<C: Carrier>(&mut self, now: Time, node: &mut Node<C>, target: Target) -> Result<u32, NodeError> {
        if self.connections.len() >= self.config.max_connections {
            return Err(NodeError::TooManyFlows(self.config.max_connections));
        }
        let kind = FlowKind::of_port(target.port);
        let flow = node.open_flow(now, self.association, kind)?;
        let connection = self.next;
        let request = Some(Request { target: target.clone(), bytes: vec![], has_ended: false });
        node.write_control(self.association, Message::Open { connection, flow: flow.flow, target }.encode())?;
        self.next += 1;
        self.by_outgoing.insert(flow.flow, connection);
        self.connections
            .insert(connection, Connection { kind, outgoing: Some(flow), request, ..Connection::default() });
        Ok(connection)
    }

    /// Takes the requests that had no answer when the association ended.
    pub fn take_unanswered(&mut self) -> Vec<Unanswered> {
        std::mem::take(&mut self.unanswered)
    }

    /// Opens a connection again that had no answer in an earlier association, and sends its bytes again.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub fn reopen<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        unanswered: Unanswered,
    ) -> Result<u32, NodeError> {
        let Request { target, bytes, has_ended } = unanswered.request;
        let connection = self.open(now, node, target)?;
        bytes.into_iter().for_each(|bytes| self.handle_bytes(node, connection, bytes));
        if has_ended {
            self.handle_end(node, connection);
        }
        Ok(connection)
    }

    /// Asks the other site for an answer if it is silent while connections are open. A site that has restarted answers
    /// that it does not know the association, although nothing else is to be sent. To be called now and then.
    pub fn check_silence<C: Carrier>(&mut self, now: Time, node: &mut Node<C>) {
        let is_silent = node.silence(now, self.association).is_some_and(|silence| silence >= MAX_SILENCE);
        if is_silent && !self.connections.is_empty() && now.saturating_since(self.pinged) >= MAX_SILENCE {
            self.pinged = now;
            node.ping(self.association);
        }
    }

    /// Reports at the serving site that the target has accepted the connection.
    ///
    /// # Errors
    /// The association is not open, or too much control data waits.
    pub fn handle_connected<C: Carrier>(
        &mut self,
        now: Time,
        node: &mut Node<C>,
        connection: u32,
    ) -> Result<(), TunnelError> {
        let Some(open) = self.connections.get_mut(&connection) else { return Ok(()) };
        let flow = node.open_flow(now, self.association, open.kind)?;
        open.outgoing = Some(flow);
        self.by_outgoing.insert(flow.flow, connection);
        node.write_control(self.association, Message::Opened { connection, flow: flow.flow }.encode())?;
        self.events.push_back(LinkEvent::Readable(connection));
        Ok(())
    }

    /// Reports at the serving site that the target could not be connected to.
    ///
    /// # Errors
    /// The association is not open, or too much control data waits.
    pub fn refuse<C: Carrier>(
        &mut self,
        _: Time,
        node: &mut Node<C>,
        connection: u32,
        reason: &str,
    ) -> Result<(), TunnelError> {
        if self.forget(node, connection) {
            let reason = reason.into();
            node.write_control(self.association, Message::Refused { connection, reason }.encode())?;
        }
        Ok(())
    }

    /// The number of bytes that may be read from the connection's socket now.
    pub fn room<C: Carrier>(&self, node: &Node<C>, connection: u32) -> u64 {
        let outgoing = self.connections.get(&connection).and_then(|open| node.sending(open.outgoing?));
        outgoing.map_or(0, |flow| self.config.buffer_bytes.saturating_sub(flow.buffered_bytes()))
    }

    /// Sends bytes that were read from the socket, as one write.
    pub fn handle_bytes<C: Carrier>(&mut self, node: &mut Node<C>, connection: u32, bytes: Bytes) {
        let Some(open) = self.connections.get_mut(&connection) else { return };
        if let Some(request) = &mut open.request {
            request.bytes.push(bytes.clone());
        }
        if let Some(flow) = open.outgoing {
            node.write(flow, bytes);
        }
    }

    /// Ends the direction to the peer after the socket's end.
    pub fn handle_end<C: Carrier>(&mut self, node: &mut Node<C>, connection: u32) {
        let Some(open) = self.connections.get_mut(&connection) else { return };
        if let Some(request) = &mut open.request {
            request.has_ended = true;
        }
        if let Some(flow) = open.outgoing {
            node.finish(flow);
        }
    }

    /// Resets a connection whose socket failed.
    ///
    /// # Errors
    /// The association is not open, or too much control data waits.
    pub fn handle_broken<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        connection: u32,
        reason: &str,
    ) -> Result<(), TunnelError> {
        if self.forget(node, connection) {
            let reason = reason.into();
            node.write_control(self.association, Message::Reset { connection, reason }.encode())?;
        }
        Ok(())
    }

    /// Returns the next data for the connection's socket.
    pub fn read<C: Carrier>(&mut self, node: &mut Node<C>, connection: u32) -> Delivery {
        let Some(open) = self.connections.get_mut(&connection) else { return Delivery::Nothing };
        let Some(flow) = open.incoming.filter(|_| !open.is_end_delivered) else { return Delivery::Nothing };
        // An absent flow has not started yet or was reset; neither is its end.
        if !open.is_read && node.receiving(flow).is_some() {
            let bytes = node.read(flow);
            open.is_read = node.is_read(flow);
            if let Some(bytes) = bytes {
                return Delivery::Bytes(bytes);
            }
        }
        if !open.is_read {
            return Delivery::Nothing;
        }
        open.is_end_delivered = true;
        self.remove_if_done(connection);
        Delivery::End
    }

    /// Removes a connection after the end of both directions.
    fn remove_if_done(&mut self, id: u32) {
        if self.connections.get(&id).is_some_and(|open| open.is_sent && open.is_end_delivered) {
            self.unbind(id);
            self.events.push_back(LinkEvent::Done(id));
        }
    }

    fn unbind(&mut self, id: u32) -> Option<Connection> {
        let open = self.connections.remove(&id)?;
        open.incoming.and_then(|flow| self.by_incoming.remove(&flow.flow));
        open.outgoing.and_then(|flow| self.by_outgoing.remove(&flow.flow));
        Some(open)
    }

    /// Ends both flows of a connection; returns true if it existed.
    fn forget<C: Carrier>(&mut self, node: &mut Node<C>, id: u32) -> bool {
        let Some(open) = self.unbind(id) else { return false };
        if let Some(flow) = open.outgoing {
            node.reset(flow);
        }
        if let Some(flow) = open.incoming {
            node.abandon(flow);
        }
        true
    }

    fn abort<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        id: u32,
        reason: &str,
        notifies_peer: bool,
    ) -> Result<(), TunnelError> {
        if self.forget(node, id) {
            let reason = reason.to_owned();
            self.events.push_back(LinkEvent::Reset { connection: id, reason: reason.clone() });
            if notifies_peer {
                node.write_control(
                    self.association,
                    Message::Reset { connection: id, reason: reason.into() }.encode(),
                )?;
            }
        }
        Ok(())
    }
}
