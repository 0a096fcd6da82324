//! The connections of a tunnel over one association, without sockets: what comes from the node goes in by
//! [`handle_event`](Link::handle_event), what a socket brings by `handle_*`, and what is to be done comes out of
//! [`poll_event`](Link::poll_event).

use super::message::Message;
use super::{Target, TunnelError};
use crate::carrier::{AssociationId, Carrier};
use crate::control::{Coded, Inbox, Service};
use crate::node::{FlowId, FlowKind, Node, NodeError, NodeEvent};
use bytes::Bytes;
use sparelane_core::Time;
use std::collections::{BTreeMap, VecDeque};

/// The most connections of one association, whatever is set.
pub const MOST_CONNECTIONS: usize = 4096;

/// What can be set about the connections of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// The most at a time, at most [`MOST_CONNECTIONS`].
    pub max_connections: usize,
    /// What is taken from a socket and not acknowledged by the peer at most, bytes of one connection.
    pub buffer_bytes: u64,
}

/// What is to be done at the sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// At the serving site: connect to the target, if it may be, and say what became of it.
    Connect {
        /// The connection.
        connection: u32,
        /// The target that the peer asks for.
        target: Target,
    },
    /// At the dialing site: the target has answered.
    Opened(u32),
    /// There is more to [`take`](Link::take).
    Readable(u32),
    /// Both directions have come to their end; the link has forgotten the connection.
    Done(u32),
    /// There is no connection to the target; the link has forgotten the connection.
    Refused {
        /// The connection.
        connection: u32,
        /// Why.
        reason: String,
    },
    /// The connection is broken, and its socket is to be reset; the link has forgotten the connection.
    Reset {
        /// The connection.
        connection: u32,
        /// Why.
        reason: String,
    },
}

/// What there is for a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// These bytes.
    Bytes(Bytes),
    /// Nothing now.
    Nothing,
    /// The peer's application has ended its direction.
    End,
}

#[derive(Debug, Default)]
struct Connection {
    /// What is known of it: the port of its target.
    kind: FlowKind,
    /// The flow to the peer, and whether its end is known to have arrived.
    outgoing: Option<FlowId>,
    is_sent: bool,
    /// The flow of the peer, whether all of it was read, and whether its end was taken, too.
    incoming: Option<FlowId>,
    is_read: bool,
    is_taken: bool,
}

/// The connections of one association.
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
    events: VecDeque<LinkEvent>,
}

impl Link {
    /// The connections of an open association, at the site that dials.
    pub fn dialing(association: AssociationId, config: LinkConfig) -> Link {
        Link::new(association, false, config)
    }

    /// The connections of an open association, at the site that serves.
    pub fn serving(association: AssociationId, config: LinkConfig) -> Link {
        Link::new(association, true, config)
    }

    fn new(association: AssociationId, serves: bool, config: LinkConfig) -> Link {
        let config = LinkConfig { max_connections: config.max_connections.min(MOST_CONNECTIONS), ..config };
        Link {
            association,
            serves,
            config,
            connections: BTreeMap::new(),
            by_incoming: BTreeMap::new(),
            by_outgoing: BTreeMap::new(),
            next: 0,
            inbox: Inbox::default(),
            events: VecDeque::new(),
        }
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// What is to be done next.
    pub fn poll_event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// Something has happened at the node.
    ///
    /// # Errors
    /// The association is over, with all of its connections, or the peer breaks the rules.
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
                    return Err(TunnelError::Peer("receives files (`sparelane recv`), and serves no tunnel"));
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
                    self.conclude(id);
                }
            }
            NodeEvent::SendFailed(flow) => {
                if let Some(&id) = self.by_outgoing.get(&flow.flow).filter(|_| flow.association == self.association) {
                    self.break_off(node, id, "nothing came back from the peer for too long", true)?;
                }
            }
            NodeEvent::Closed { association, reason } if *association == self.association => {
                for connection in std::mem::take(&mut self.connections).into_keys() {
                    self.events.push_back(LinkEvent::Reset { connection, reason: reason.to_string() });
                }
                return Err(TunnelError::Closed(reason.clone()));
            }
            // Why a flow of the peer has failed is told on the control stream.
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
                if connection != self.next || self.by_incoming.contains_key(&flow) {
                    return Err(TunnelError::Peer("opens a connection twice, or out of order"));
                }
                self.next += 1;
                let kind = FlowKind::of_port(target.port);
                self.connections.insert(connection, Connection { kind, ..Connection::default() });
                self.bind(node, connection, flow);
                if self.connections.len() > self.config.max_connections {
                    let reason = format!("there are {} connections already, the limit", self.config.max_connections);
                    return self.refuse(now, node, connection, &reason);
                }
                self.events.push_back(LinkEvent::Connect { connection, target });
            }
            Message::Opened { connection, flow } if !self.serves => {
                let id = FlowId { association: self.association, flow };
                if connection >= self.next || self.by_incoming.contains_key(&flow) {
                    return Err(TunnelError::Peer("has opened a connection that nobody asked for"));
                }
                match self.connections.get(&connection) {
                    Some(open) if open.incoming.is_none() => {
                        self.events.push_back(LinkEvent::Opened(connection));
                        self.bind(node, connection, flow);
                    }
                    Some(_) => return Err(TunnelError::Peer("has opened a connection twice")),
                    // It was reset here meanwhile.
                    None => node.abandon(id),
                }
            }
            Message::Refused { connection, reason } if !self.serves => {
                if self.forget(node, connection) {
                    self.events.push_back(LinkEvent::Refused { connection, reason });
                }
            }
            Message::Reset { connection, reason } => {
                let reason = format!("the peer has reset it: {reason}");
                self.break_off(node, connection, &reason, false)?;
            }
            _ => return Err(TunnelError::Peer("says what only the other site says")),
        }
        Ok(())
    }

    /// The peer's bytes of a connection come in this flow.
    fn bind<C: Carrier>(&mut self, node: &Node<C>, id: u32, flow: u32) {
        let incoming = FlowId { association: self.association, flow };
        self.by_incoming.insert(flow, id);
        self.connections.entry(id).and_modify(|connection| connection.incoming = Some(incoming));
        if node.receiving(incoming).is_some() {
            self.events.push_back(LinkEvent::Readable(id));
        }
    }

    /// At the dialing site: somebody has connected to the port of this target. What it sends may follow at once.
    ///
    /// # Errors
    /// The association is over, or has too many connections.
    pub fn open<C: Carrier>(&mut self, now: Time, node: &mut Node<C>, target: Target) -> Result<u32, NodeError> {
        if self.connections.len() >= self.config.max_connections {
            return Err(NodeError::TooManyFlows(self.config.max_connections));
        }
        let kind = FlowKind::of_port(target.port);
        let flow = node.open_flow(now, self.association, kind)?;
        let connection = self.next;
        node.write_control(self.association, Message::Open { connection, flow: flow.flow, target }.encode())?;
        self.next += 1;
        self.by_outgoing.insert(flow.flow, connection);
        self.connections.insert(connection, Connection { kind, outgoing: Some(flow), ..Connection::default() });
        Ok(connection)
    }

    /// At the serving site: the target has answered.
    ///
    /// # Errors
    /// The association is over, or too much waits for the peer.
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

    /// At the serving site: there is no connection to the target.
    ///
    /// # Errors
    /// The association is over, or too much waits for the peer.
    pub fn refuse<C: Carrier>(
        &mut self,
        _: Time,
        node: &mut Node<C>,
        connection: u32,
        reason: &str,
    ) -> Result<(), TunnelError> {
        if self.forget(node, connection) {
            let reason = reason.to_owned();
            node.write_control(self.association, Message::Refused { connection, reason }.encode())?;
        }
        Ok(())
    }

    /// So many bytes may be taken from the connection's socket now.
    pub fn room<C: Carrier>(&self, node: &Node<C>, connection: u32) -> u64 {
        let outgoing = self.connections.get(&connection).and_then(|open| node.sending(open.outgoing?));
        outgoing.map_or(0, |flow| self.config.buffer_bytes.saturating_sub(flow.buffered_bytes()))
    }

    /// The socket has brought these bytes: one write.
    pub fn handle_bytes<C: Carrier>(&mut self, node: &mut Node<C>, connection: u32, bytes: Bytes) {
        if let Some(flow) = self.connections.get(&connection).and_then(|open| open.outgoing) {
            node.write(flow, bytes);
        }
    }

    /// The socket has brought its end.
    pub fn handle_end<C: Carrier>(&mut self, node: &mut Node<C>, connection: u32) {
        if let Some(flow) = self.connections.get(&connection).and_then(|open| open.outgoing) {
            node.finish(flow);
        }
    }

    /// The socket is broken.
    ///
    /// # Errors
    /// The association is over, or too much waits for the peer.
    pub fn handle_broken<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        connection: u32,
        reason: &str,
    ) -> Result<(), TunnelError> {
        if self.forget(node, connection) {
            let reason = reason.to_owned();
            node.write_control(self.association, Message::Reset { connection, reason }.encode())?;
        }
        Ok(())
    }

    /// What there is for the connection's socket.
    pub fn take<C: Carrier>(&mut self, node: &mut Node<C>, connection: u32) -> Taken {
        let Some(open) = self.connections.get_mut(&connection) else { return Taken::Nothing };
        let Some(flow) = open.incoming.filter(|_| !open.is_taken) else { return Taken::Nothing };
        // A flow that is not here has not come yet, or was reset: neither is its end.
        if !open.is_read && node.receiving(flow).is_some() {
            let bytes = node.read(flow);
            open.is_read = node.is_read(flow);
            if let Some(bytes) = bytes {
                return Taken::Bytes(bytes);
            }
        }
        if !open.is_read {
            return Taken::Nothing;
        }
        open.is_taken = true;
        self.conclude(connection);
        Taken::End
    }

    /// Forgets a connection of which both directions are over.
    fn conclude(&mut self, id: u32) {
        if self.connections.get(&id).is_some_and(|open| open.is_sent && open.is_taken) {
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

    /// Ends both flows of a connection; returns whether it was there.
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

    fn break_off<C: Carrier>(
        &mut self,
        node: &mut Node<C>,
        id: u32,
        reason: &str,
        tells: bool,
    ) -> Result<(), TunnelError> {
        if self.forget(node, id) {
            let reason = reason.to_owned();
            self.events.push_back(LinkEvent::Reset { connection: id, reason: reason.clone() });
            if tells {
                node.write_control(self.association, Message::Reset { connection: id, reason }.encode())?;
            }
        }
        Ok(())
    }
}
