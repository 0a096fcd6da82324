//! A node on a socket, with the clocks of this machine: the one loop that sends, receives and waits.

use crate::carrier::{Arrival, Carrier, Datagram};
use crate::identity::{Fingerprint, Identity, Trusted};
use crate::node::{Node, NodeConfig, NodeError, NodeEvent};
use crate::quic::{Quic, QuicConfig};
use crate::telemetry::{Rows, TelemetryConfig};
use crate::udp::{Sending, UdpConfig, UdpSocket, goes_by_ipv4};
use nix::poll::{PollFd, PollFlags};
use sparelane_core::{Dur, Time};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;

/// So many bytes are received before something is sent again: what the processor's cache holds.
const MOST_RECEIVED_BYTES: usize = 256 << 10;

/// So many batches are sent before something is received again.
const MOST_SENDS: usize = 64;

/// Where batches are sent, a pace sends so often at most, a batch at a time and not a packet; the replay of due times keeps its
/// rate. By packets, the processor would be the bottleneck of a fast path, and BBR would believe it.
const CHUNK_TIME: Dur = Dur::from_us(250);

/// A receive time that is further than this from now by the kernel's clock is not believed: somebody has set the clock.
const MOST_CLOCK_DIFFERENCE: Dur = Dur::from_secs(1);

/// By so much a sleep is late at most, but for a few: whoever keeps its processor busy does so for this long before something is due.
const BUSY_TIME: Duration = Duration::from_micros(500);

/// How a host waits for the time at which something is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// It sleeps, and wakes some microseconds late.
    #[default]
    Sleep,
    /// It sleeps until shortly before, and from then on asks the clock again and again. Where batches are sent, whose times are
    /// further apart than that, there is no difference.
    Busy,
}

/// Why a host cannot begin.
#[derive(Debug, Error)]
pub enum HostError {
    /// The socket cannot be opened, or broke.
    #[error("{address}: {error}")]
    Socket {
        /// The local address.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// Batches are required, and cannot be sent.
    #[error("{address}: generic segmentation offload is required (--gso require), and {lacks}")]
    Gso {
        /// The local address.
        address: SocketAddr,
        /// Who lacks it.
        lacks: &'static str,
    },
    /// The code points of the classes are wrong.
    #[error("{0}")]
    Dscp(String),
    /// The node cannot be made, or refuses.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// A node on a socket.
#[derive(Debug)]
pub struct Host {
    node: Node<Quic>,
    socket: UdpSocket,
    epoch: Instant,
    /// The kernel's clock at `epoch`, nanoseconds since 1970.
    epoch_ns: u64,
    /// What the kernel had no room for.
    waiting: Option<Datagram>,
    timer_slack: Duration,
    waits: Waiting,
}

impl Host {
    /// A node at this address of this machine.
    ///
    /// # Errors
    /// The address cannot be had, or settings contradict themselves.
    pub fn bind(at: SocketAddr, udp: UdpConfig, quic: QuicConfig, config: NodeConfig) -> Result<Host, HostError> {
        if let Some(fault) = udp.fault() {
            return Err(HostError::Dscp(fault));
        }
        let epoch = Instant::now();
        let epoch_ns =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        // Both have the code points of the socket.
        let quic = QuicConfig { dscp: udp.dscp.clone(), ..quic };
        let dscp = udp.dscp.clone();
        let carrier = Quic::new(quic, epoch).map_err(NodeError::from)?;
        let chunk_time = if udp.sends_batches() { CHUNK_TIME } else { Dur::ZERO };
        let timer_slack = Duration::from_nanos(chunk_time.as_ps() / 1000);
        let socket = UdpSocket::bind(at, udp).map_err(|error| HostError::Socket { address: at, error })?;
        let port = Some(socket.local_address().port());
        let node = Node::new(carrier, NodeConfig { chunk_time, dscp, port, ..config })?;
        // Timers that are as exact as the kernel can; without the right to set this, they are late by some 50 us.
        let _ = nix::sys::prctl::set_timerslack(1);
        Ok(Host { node, socket, epoch, epoch_ns, waiting: None, timer_slack, waits: Waiting::Sleep })
    }

    /// The time since the host began.
    pub fn now(&self) -> Time {
        Time::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// The node.
    pub fn node(&self) -> &Node<Quic> {
        &self.node
    }

    /// The node, to be acted on.
    pub fn node_mut(&mut self) -> &mut Node<Quic> {
        &mut self.node
    }

    /// The socket.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// From now on this host waits in this way.
    pub fn set_waiting(&mut self, waits: Waiting) {
        self.waits = waits;
    }

    /// From now on these peers are trusted; associations that are open stay.
    pub fn set_trusted(&mut self, trusted: Trusted) {
        self.node.carrier_mut().set_trusted(trusted);
    }

    /// From now on this host has another key; associations that are open stay.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn set_identity(&mut self, identity: Identity) -> Result<(), HostError> {
        Ok(self.node.carrier_mut().set_identity(identity).map_err(NodeError::from)?)
    }

    /// From now on full packets have so many bytes of UDP payload; associations that there are end without a word.
    ///
    /// # Errors
    /// So many bytes are not allowed.
    pub fn set_udp_payload_bytes(&mut self, udp_payload_bytes: u16) -> Result<(), HostError> {
        let now = self.now();
        let set = self.node.carrier_mut().set_udp_payload_bytes(now, udp_payload_bytes);
        Ok(set.map_err(NodeError::from)?)
    }

    /// The UDP payload of packets that fit the path to a peer, where a router has said since this was asked last that this host's full
    /// packets do not, and they need not be so large.
    pub fn poll_fitting_payload(&mut self, peer: SocketAddr) -> Option<u16> {
        let mut least = None;
        while let Some(note) = self.socket.poll_too_big() {
            let fits = fitting_payload(note.to, note.mtu_bytes);
            least = if note.to == peer { least.min(Some(fits)).or(Some(fits)) } else { least };
        }
        least.filter(|&bytes| bytes < self.node.carrier().udp_payload_bytes())
    }

    /// The key of a stranger who was refused, once.
    pub fn take_stranger(&self) -> Option<Fingerprint> {
        self.node.carrier().take_stranger()
    }

    /// From now on this host keeps what is asked for.
    pub fn watch(&mut self, config: TelemetryConfig) {
        let now = self.now();
        self.node.watch(now, config);
    }

    /// The rows of its time series since they were taken last, and why its qlog ended early, if it did, once.
    pub fn take_samples(&mut self) -> (Rows, Option<io::Error>) {
        self.node.telemetry_mut().map_or_else(Default::default, |kept| (kept.take_rows(), kept.flush_log()))
    }

    /// The next event of the node, or `None` where none comes for so long.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn next_event(&mut self, at_most: Duration) -> Result<Option<NodeEvent>, HostError> {
        self.next_event_beside(at_most, None)
    }

    /// As [`next_event`](Self::next_event), or `None` as soon as there is something to read from `other` while this host waits.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn next_event_beside(
        &mut self,
        at_most: Duration,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<Option<NodeEvent>, HostError> {
        let until = Instant::now() + at_most;
        loop {
            if let Some(event) = self.node.poll_event() {
                return Ok(Some(event));
            }
            let is_quiet = self.turn()?;
            if self.node.has_events() {
                continue;
            }
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            if is_quiet || self.waiting.is_some() {
                let at_most = self.asleep().max(self.timer_slack).min(until - now);
                if self.wait(at_most, other)? {
                    return Ok(None);
                }
            }
        }
    }

    /// How long the node's next timer is away.
    fn until_timer(&self) -> Duration {
        Duration::from_nanos(self.node.next_timer().saturating_since(self.now()).as_ps().div_ceil(1000))
    }

    /// For so long this host may sleep.
    fn asleep(&self) -> Duration {
        match self.waits {
            Waiting::Sleep => self.until_timer(),
            Waiting::Busy => self.until_timer().saturating_sub(BUSY_TIME),
        }
    }

    /// One turn for whoever has other things to wait for: receives and sends what there is. Returns whether nothing is left to do
    /// now, so that it may [wait](Self::wait_beside).
    ///
    /// # Errors
    /// The socket is broken.
    pub fn advance(&mut self) -> Result<bool, HostError> {
        let is_quiet = self.turn()?;
        Ok((is_quiet || self.waiting.is_some()) && !self.node.has_events())
    }

    /// Waits until there is something to do here or at one of `others`, for so long at most.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn wait_beside<'a>(&'a self, at_most: Duration, others: &mut Vec<PollFd<'a>>) -> Result<(), HostError> {
        let at_most = at_most.min(self.asleep());
        self.socket.wait_beside(self.waiting.is_some(), at_most, others).map_err(|error| self.failed(error))
    }

    /// Sends what is to go until nothing is, for so long at most: for what is said last.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn flush(&mut self, at_most: Duration) -> Result<(), HostError> {
        let until = Instant::now() + at_most;
        while !self.send() && Instant::now() < until {
            if self.waiting.is_some() {
                self.wait(until.saturating_duration_since(Instant::now()), None)?;
            }
        }
        Ok(())
    }

    /// Returns whether there is something to read from `other`.
    fn wait(&self, at_most: Duration, other: Option<BorrowedFd<'_>>) -> Result<bool, HostError> {
        let mut others: Vec<PollFd<'_>> =
            other.map(|other| PollFd::new(other, PollFlags::POLLIN)).into_iter().collect();
        let waited = self.socket.wait_beside(self.waiting.is_some(), at_most, &mut others);
        waited.map_err(|error| self.failed(error))?;
        Ok(others.first().is_some_and(|other| other.any() == Some(true)))
    }

    fn failed(&self, error: io::Error) -> HostError {
        HostError::Socket { address: self.socket.local_address(), error }
    }

    /// Receives, lets timers fire, and sends. Returns whether nothing is left to do now.
    fn turn(&mut self) -> Result<bool, HostError> {
        let (mut came, mut received_bytes) = (true, 0);
        while came && received_bytes < MOST_RECEIVED_BYTES {
            came = self.receive(&mut received_bytes).map_err(|error| self.failed(error))?;
        }
        let now = self.now();
        if self.node.next_timer() <= now {
            self.node.handle_timer(now);
        }
        let is_sent = self.send();
        if self.socket.lacks_gso() {
            let lacks = "the kernel or the interface on the way does not have it";
            return Err(HostError::Gso { address: self.socket.local_address(), lacks });
        }
        Ok(is_sent && !came)
    }

    fn receive(&mut self, received_bytes: &mut usize) -> io::Result<bool> {
        let (now, epoch_ns) = (self.now(), self.epoch_ns);
        let node = &mut self.node;
        self.socket.receive(&mut |came| {
            let received = believed(now, came.received_ns, epoch_ns);
            let arrival =
                Arrival { from: came.from, dscp: came.dscp, ecn: came.ecn, received_ns: received.as_ps() / 1000 };
            // A datagram costs, however short it is.
            *received_bytes += came.bytes.len().max(500);
            node.handle_datagram(now, arrival, came.bytes);
        })
    }

    /// Sends what is to go; returns whether nothing is left.
    fn send(&mut self) -> bool {
        for _ in 0..MOST_SENDS {
            let now = self.now();
            let Some(datagram) = self.waiting.take().or_else(|| self.node.poll_transmit(now)) else { return true };
            if self.socket.send(&datagram) == Sending::Full {
                self.waiting = Some(datagram);
                return false;
            }
            if datagram.segment_bytes.is_none() {
                let now = self.now();
                self.node.note_left(now, datagram.class, datagram.bytes.len());
            }
            self.node.carrier_mut().reuse(datagram);
        }
        false
    }
}

/// The UDP payload of packets to `to` that fit this many bytes of IP packet, as far as QUIC allows: smaller ones it does not know, and
/// the kernel sends fragments then.
pub(crate) fn fitting_payload(to: SocketAddr, mtu_bytes: u32) -> u16 {
    let headers_bytes = if goes_by_ipv4(to) { 28 } else { 48 };
    let allowed = crate::quic::UDP_PAYLOAD_BYTES;
    let fits = mtu_bytes.saturating_sub(headers_bytes).clamp((*allowed.start()).into(), (*allowed.end()).into());
    fits as u16
}

/// When something was received by the kernel's clock, which showed `epoch_ns` at the host's beginning; or now, if that cannot be, as
/// somebody has set the clock.
fn believed(now: Time, received_ns: Option<u64>, epoch_ns: u64) -> Time {
    let received = received_ns.map(|ns| Time::from_ns(ns.saturating_sub(epoch_ns).min(u64::MAX / 1001)));
    let is_near = |at: &Time| at.saturating_since(now).max(now.saturating_since(*at)) < MOST_CLOCK_DIFFERENCE;
    received.filter(is_near).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_moves_no_receive_time_far() {
        let (now, epoch_ns) = (Time::ZERO + Dur::from_secs(100), 1_700_000_000_000_000_000_u64);
        let at = |offset_ns: i64| believed(now, epoch_ns.checked_add_signed(offset_ns), epoch_ns);
        assert_eq!(at(99_999_000_000) + Dur::from_ms(1), now);
        for jump_s in [-3_600, 3_600, -2_000_000_000, 5, 98, 102] {
            assert_eq!(at(jump_s * 1_000_000_000), now, "{jump_s} s");
        }
        assert_eq!(believed(now, Some(u64::MAX), epoch_ns), now);
        assert_eq!(believed(now, None, epoch_ns), now);
    }
}
