//! A stream of plain QUIC without lower classes, as a baseline for benchmarks.
//!
//! Keys, packet size and batches are those of the carrier; congestion control, pacing and streams are quinn-proto's.

use super::QuicConfig;
use super::settings::Settings;
use crate::carrier::{Arrival, CarrierError, Datagram};
use crate::virt::Endpoint;
use bytes::{Bytes, BytesMut};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Event, StreamId, TransportConfig, VarInt,
};
use sparelane_core::Time;
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The windows of the stream, as large as those of this crate's flows.
const WINDOW_BYTES: u32 = 32 << 20;

/// A congestion controller of quinn-proto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainController {
    /// CUBIC.
    Cubic,
    /// BBR.
    Bbr,
}

/// An event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainEvent {
    /// The connection is established.
    Connected,
    /// The receiver has read the whole stream.
    Received {
        /// The number of bytes.
        bytes: u64,
    },
    /// The receiver has acknowledged everything.
    Sent,
    /// The connection has ended.
    Lost,
}

/// One end of a connection with one stream.
pub struct PlainStream {
    endpoint: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    client: quinn_proto::ClientConfig,
    epoch: Instant,
    batch: usize,
    payload_bytes: usize,
    /// The bytes still to be written.
    left: Bytes,
    stream: Option<StreamId>,
    is_sender: bool,
    received_bytes: u64,
    timer: Time,
    events: VecDeque<PlainEvent>,
    out: VecDeque<Datagram>,
}

impl fmt::Debug for PlainStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainStream {{ left: {}, received: {} }}", self.left.len(), self.received_bytes)
    }
}

impl PlainStream {
    /// Creates one end with the keys of `config`.
    ///
    /// # Errors
    /// A setting is out of range, or the keys cannot be used.
    pub fn new(config: &QuicConfig, controller: PlainController, epoch: Instant) -> Result<PlainStream, CarrierError> {
        let settings = Settings::of(config)?;
        let factory: Arc<dyn ControllerFactory + Send + Sync> = match controller {
            PlainController::Cubic => Arc::new(CubicConfig::default()),
            PlainController::Bbr => Arc::new(BbrConfig::default()),
        };
        let mut transport = TransportConfig::default();
        transport
            .initial_mtu(config.udp_payload_bytes)
            .min_mtu(config.udp_payload_bytes)
            .mtu_discovery_config(None)
            .stream_receive_window(VarInt::from_u32(WINDOW_BYTES))
            .receive_window(VarInt::from_u32(WINDOW_BYTES))
            .send_window(WINDOW_BYTES.into())
            .enable_segmentation_offload(config.batch > 1)
            .congestion_controller_factory(factory);
        let transport = Arc::new(transport);
        let [mut client, _] = settings.client.clone();
        client.transport_config(Arc::clone(&transport));
        let server = settings.server.as_deref().cloned().map(|mut server| {
            server.transport_config(transport);
            Arc::new(server)
        });
        Ok(PlainStream {
            endpoint: quinn_proto::Endpoint::new(settings.endpoint.clone(), server, false, settings.seed),
            connection: None,
            client,
            epoch,
            batch: config.datagrams_at_once(),
            payload_bytes: usize::from(config.udp_payload_bytes),
            left: Bytes::new(),
            stream: None,
            is_sender: false,
            received_bytes: 0,
            timer: Time::NEVER,
            events: VecDeque::new(),
            out: VecDeque::new(),
        })
    }

    /// Connects to `to` and sends `bytes`.
    ///
    /// # Errors
    /// The address cannot be connected to.
    pub fn send(&mut self, now: Time, to: SocketAddr, bytes: Bytes) -> Result<(), CarrierError> {
        let begun = self.endpoint.connect(self.instant(now), self.client.clone(), to, "sparelane");
        let (handle, connection) =
            begun.map_err(|error| CarrierError::Address { address: to, reason: error.to_string() })?;
        self.connection = Some((handle, connection));
        (self.left, self.is_sender) = (bytes, true);
        Ok(())
    }

    fn instant(&self, now: Time) -> Instant {
        self.epoch + Duration::from_nanos(now.as_ps() / 1000)
    }

    fn process(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        // Endpoint and connection exchange events until both have none.
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(back) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(back);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    self.events.push_back(PlainEvent::Connected);
                    if self.is_sender {
                        self.stream = connection.streams().open(Dir::Bi);
                    }
                }
                Event::ConnectionLost { .. } => self.events.push_back(PlainEvent::Lost),
                Event::Stream(quinn_proto::StreamEvent::Finished { .. }) => self.events.push_back(PlainEvent::Sent),
                _ => {}
            }
        }
        // The receiver learns of the stream with its first data.
        let Some(stream) = self.stream.or_else(|| connection.streams().accept(Dir::Bi)) else { return };
        self.stream = Some(stream);
        if self.is_sender {
            let was_left = !self.left.is_empty();
            while !self.left.is_empty()
                && let Ok(written) = connection.send_stream(stream).write_chunks(&mut [self.left.clone()])
            {
                let _ = self.left.split_to(written.bytes);
            }
            if was_left && self.left.is_empty() {
                // An error means that the peer has stopped the stream, which ends it, too.
                let _ = connection.send_stream(stream).finish();
            }
            return;
        }
        // The content is only counted.
        let mut receiving = connection.recv_stream(stream);
        let Ok(mut chunks) = receiving.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.received_bytes += chunk.bytes.len() as u64,
                Ok(None) => {
                    self.events.push_back(PlainEvent::Received { bytes: self.received_bytes });
                    break;
                }
                Err(_) => break,
            }
        }
        // Reading may open the flow control window; `poll_transmit` sends the update.
        let _ = chunks.finalize().should_transmit();
    }
}

impl Endpoint for PlainStream {
    type Event = PlainEvent;

    fn handle_datagram(&mut self, now: Time, arrival: Arrival, bytes: &[u8]) {
        let mut answer = Vec::new();
        let (instant, ecn) = (self.instant(now), EcnCodepoint::from_bits(arrival.ecn));
        match self.endpoint.handle(instant, arrival.from, None, ecn, BytesMut::from(bytes), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(incoming, instant, &mut answer, None).ok();
            }
            _ => {}
        }
        self.process();
    }

    fn handle_timer(&mut self, now: Time) {
        let now = self.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(now);
        }
        self.process();
    }

    fn next_timer(&self) -> Time {
        self.timer
    }

    fn poll_event(&mut self) -> Option<PlainEvent> {
        self.events.pop_front()
    }

    fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Datagram> {
        if let Some(datagram) = self.out.pop_front() {
            return Some(datagram);
        }
        let instant = self.instant(now);
        let (_, connection) = self.connection.as_mut()?;
        let mut bytes = Vec::with_capacity(self.payload_bytes * self.batch);
        let transmit = connection.poll_transmit(instant, self.batch, &mut bytes);
        if let Some(transmit) = transmit {
            super::put(&mut self.out, transmit, 0, bytes);
        } else {
            let next = connection.poll_timeout();
            self.timer = next.map_or(Time::NEVER, |next| super::time_since(self.epoch, next));
        }
        self.out.pop_front()
    }
}
