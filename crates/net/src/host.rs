//! A node on a UDP socket, with this machine's clock: the loop that sends, receives and waits.

use crate::carrier::{Arrival, AssociationId, Carrier, Datagram};
use crate::identity::{Fingerprint, Identity, Trusted};
use crate::limiter::Limiter;
use crate::node::{Node, NodeConfig, NodeError, NodeEvent};
use crate::quic::{Quic, QuicConfig};
use crate::route::fitting_payload;
use crate::telemetry::{Rows, TelemetryConfig};
use crate::udp::{SendResult, UdpConfig, UdpSocket};
use nix::poll::{PollFd, PollFlags};
use sparelane_core::{Dur, Rate, Time};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime};
use thiserror::Error;

/// The number of bytes received before the loop sends again, about as much as the processor's cache holds.
const MAX_RECEIVED_BYTES: usize = 256 << 10;

/// The number of batches sent before the loop receives again.
const MAX_SENDS: usize = 64;

/// The interval at which a paced flow sends if batches are enabled. Single packets would make the processor the
/// bottleneck of a fast path, and BBR would take that for the rate of the path. The replay of due times keeps the
/// average rate.
const CHUNK_TIME: Dur = Dur::from_us(250);

/// The maximum difference between a receive time and now. Larger differences mean that the kernel's clock was set.
const MAX_CLOCK_DIFFERENCE: Dur = Dur::from_secs(1);

/// The lateness of nearly all sleeps. A busy-waiting host stops sleeping this long before the next timer.
const BUSY_TIME: Duration = Duration::from_micros(500);

/// How a host waits for its next timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Sleeps; wake-ups are some microseconds late.
    #[default]
    Sleep,
    /// Sleeps until shortly before the timer, then polls the clock. It makes no difference if batches are sent, since
    /// their intervals are longer than the lateness.
    Busy,
}

/// An error of a host.
#[derive(Debug, Error)]
pub enum HostError {
    /// The socket cannot be opened, or failed.
    #[error("{address}: {error}")]
    Socket {
        /// The local address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
    /// Batches are required but cannot be sent.
    #[error("{address}: generic segmentation offload is required (--gso require), and {lacks}")]
    Gso {
        /// The local address.
        address: SocketAddr,
        /// What prevents them.
        lacks: &'static str,
    },
    /// The code points of the classes are invalid.
    #[error("{0}")]
    Dscp(String),
    /// The node reports an error.
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
    /// A datagram for which the kernel had no room.
    waiting: Option<Datagram>,
    limiter: Option<Limiter>,
    timer_slack: Duration,
    waits: Waiting,
}

impl Host {
    /// Creates a node on a socket with the local address `at`.
    ///
    /// # Errors
    /// The address cannot be used, or settings contradict each other.
    pub fn bind(at: SocketAddr, udp: UdpConfig, quic: QuicConfig, config: NodeConfig) -> Result<Host, HostError> {
        Host::bind_since(Instant::now(), at, udp, quic, config)
    }

    /// Creates a node like [`bind`](Self::bind) whose times are counted from `epoch`.
    ///
    /// # Errors
    /// As of [`bind`](Self::bind).
    pub(crate) fn bind_since(
        epoch: Instant,
        at: SocketAddr,
        udp: UdpConfig,
        quic: QuicConfig,
        config: NodeConfig,
    ) -> Result<Host, HostError> {
        if let Some(fault) = udp.fault() {
            return Err(HostError::Dscp(fault));
        }
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let epoch_ns = since_1970.saturating_sub(epoch.elapsed()).as_nanos() as u64;
        let dscp = udp.dscp.clone();
        let chunk_time = if udp.sends_batches() { CHUNK_TIME } else { Dur::ZERO };
        let timer_slack = Duration::from_nanos(chunk_time.as_ps() / 1000);
        let socket = UdpSocket::bind(at, udp).map_err(|error| HostError::Socket { address: at, error })?;
        let (local, port) = (Some(socket.local_address()), Some(socket.local_address().port()));
        // Node and carrier mark packets with the code points of the socket.
        let carrier = Quic::new(QuicConfig { dscp: dscp.clone(), local, ..quic }, epoch).map_err(NodeError::from)?;
        let node = Node::new(carrier, NodeConfig { chunk_time, dscp, port, ..config })?;
        // Asks for the most precise timers. Without the permission, timers are about 50 us late.
        let _ = nix::sys::prctl::set_timerslack(1);
        Ok(Host { node, socket, epoch, epoch_ns, waiting: None, limiter: None, timer_slack, waits: Waiting::Sleep })
    }

    /// The time since the host's epoch: its creation, or that of an earlier host of the same service.
    pub fn now(&self) -> Time {
        Time::from_ns(self.epoch.elapsed().as_nanos() as u64)
    }

    /// The node.
    pub fn node(&self) -> &Node<Quic> {
        &self.node
    }

    /// The node, for changes.
    pub fn node_mut(&mut self) -> &mut Node<Quic> {
        &mut self.node
    }

    /// The socket.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Limits the rate at which this host sends.
    pub fn limit_rate(&mut self, rate: Rate) {
        self.limiter = Some(Limiter::new(rate));
    }

    /// Sets how this host waits for timers.
    pub fn set_waiting(&mut self, waits: Waiting) {
        self.waits = waits;
    }

    /// Replaces the trusted peers. Returns the associations of peers that are not trusted any more, which stay open.
    pub(crate) fn set_trusted(&mut self, trusted: Trusted) -> Vec<AssociationId> {
        let now = self.now();
        self.node.carrier_mut().set_trusted(now, trusted)
    }

    /// Ends an association whose peer is not trusted any more; the event [`NodeEvent::Closed`] follows.
    pub(crate) fn revoke(&mut self, association: AssociationId) {
        let now = self.now();
        self.node.carrier_mut().revoke(now, association);
    }

    /// Replaces this host's key; open associations stay.
    ///
    /// # Errors
    /// The key cannot be used.
    pub fn set_identity(&mut self, identity: Identity) -> Result<(), HostError> {
        Ok(self.node.carrier_mut().set_identity(identity).map_err(NodeError::from)?)
    }

    /// Sets the UDP payload of full packets. Open associations are dropped without a message to the peer.
    ///
    /// # Errors
    /// The size is out of range.
    pub fn set_udp_payload_bytes(&mut self, udp_payload_bytes: u16) -> Result<(), HostError> {
        let now = self.now();
        let set = self.node.carrier_mut().set_udp_payload_bytes(now, udp_payload_bytes);
        Ok(set.map_err(NodeError::from)?)
    }

    /// Returns the UDP payload that fits the path to `peer` if routers have reported since the last call that full packets
    /// are too large. Returns `None` if QUIC allows no smaller ones.
    pub fn poll_fitting_payload(&mut self, peer: SocketAddr) -> Option<u16> {
        let mut smallest = None;
        while let Some(report) = self.socket.poll_too_big() {
            let fits = fitting_payload(report.to, report.mtu_bytes);
            smallest = if report.to == peer { smallest.min(Some(fits)).or(Some(fits)) } else { smallest };
        }
        smallest.filter(|&bytes| bytes < self.node.carrier().udp_payload_bytes())
    }

    /// Returns, once, the key of a peer that was refused because it is not trusted.
    pub fn take_refused_peer(&self) -> Option<Fingerprint> {
        self.node.carrier().take_refused_peer()
    }

    /// Starts telemetry.
    pub fn enable_telemetry(&mut self, config: TelemetryConfig) {
        let now = self.now();
        self.node.enable_telemetry(now, config);
    }

    /// Returns the rows of the time series since the last call and, once, the error that ended the qlog early.
    pub fn take_samples(&mut self) -> (Rows, Option<io::Error>) {
        self.node.telemetry_mut().map_or_else(Default::default, |kept| (kept.take_rows(), kept.flush_log()))
    }

    /// Returns the next event of the node, or `None` after `at_most`.
    ///
    /// # Errors
    /// The socket failed.
    pub fn next_event(&mut self, at_most: Duration) -> Result<Option<NodeEvent>, HostError> {
        self.next_event_or_readable(at_most, None)
    }

    /// Returns the next event like [`next_event`](Self::next_event), but also returns `None` as soon as `other` becomes
    /// readable while this host waits.
    ///
    /// # Errors
    /// The socket failed.
    pub fn next_event_or_readable(
        &mut self,
        at_most: Duration,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<Option<NodeEvent>, HostError> {
        let until = Instant::now() + at_most;
        loop {
            if let Some(event) = self.node.poll_event() {
                return Ok(Some(event));
            }
            let is_quiet = self.poll_once()?;
            if self.node.has_events() {
                continue;
            }
            let now = Instant::now();
            if now >= until {
                return Ok(None);
            }
            if is_quiet || self.waiting.is_some() {
                let at_most = self.sleep_time().max(self.timer_slack).min(until - now);
                if self.wait(at_most, other)? {
                    return Ok(None);
                }
            }
        }
    }

    /// The time until the node's next timer.
    fn until_timer(&self) -> Duration {
        Duration::from_nanos(self.node.next_timer().saturating_since(self.now()).as_ps().div_ceil(1000))
    }

    /// The time for which this host may sleep.
    fn sleep_time(&self) -> Duration {
        let now = self.now();
        if let Some(limiter) = self.limiter.filter(|limiter| limiter.next() > now) {
            // Until then, the node has nothing to do but to wait for packets.
            return Duration::from_nanos(limiter.next().saturating_since(now).as_ps().div_ceil(1000));
        }
        match self.waits {
            Waiting::Sleep => self.until_timer(),
            Waiting::Busy => self.until_timer().saturating_sub(BUSY_TIME),
        }
    }

    /// Receives and sends what is ready, for callers with a loop of their own. Returns true if nothing is left to do
    /// now, so that the caller may [wait](Self::wait_with).
    ///
    /// # Errors
    /// The socket failed.
    pub fn advance(&mut self) -> Result<bool, HostError> {
        let is_quiet = self.poll_once()?;
        Ok((is_quiet || self.waiting.is_some()) && !self.node.has_events())
    }

    /// Waits until this host or one of `others` is ready, but no longer than `at_most`.
    ///
    /// # Errors
    /// The socket failed.
    pub fn wait_with<'a>(&'a self, at_most: Duration, others: &mut Vec<PollFd<'a>>) -> Result<(), HostError> {
        let at_most = at_most.min(self.sleep_time());
        self.socket.wait_with(self.waiting.is_some(), at_most, others).map_err(|error| self.failed(error))
    }

    /// Sends everything that is ready, within `at_most`; for the last messages before an end.
    ///
    /// # Errors
    /// The socket failed.
    pub fn flush(&mut self, at_most: Duration) -> Result<(), HostError> {
        let until = Instant::now() + at_most;
        loop {
            let is_sent = self.send();
            let left = until.saturating_duration_since(Instant::now());
            let is_limited = self.limiter.is_some_and(|limiter| limiter.next() > self.now());
            if (is_sent && !is_limited) || left.is_zero() {
                return Ok(());
            }
            if self.waiting.is_some() || is_limited {
                self.wait(if is_limited { left.min(self.sleep_time()) } else { left }, None)?;
            }
        }
    }

    /// Waits for the socket or `other`. Returns true if `other` is readable.
    fn wait(&self, at_most: Duration, other: Option<BorrowedFd<'_>>) -> Result<bool, HostError> {
        let mut others: Vec<PollFd<'_>> =
            other.map(|other| PollFd::new(other, PollFlags::POLLIN)).into_iter().collect();
        let waited = self.socket.wait_with(self.waiting.is_some(), at_most, &mut others);
        waited.map_err(|error| self.failed(error))?;
        Ok(others.first().is_some_and(|other| other.any() == Some(true)))
    }

    fn failed(&self, error: io::Error) -> HostError {
        HostError::Socket { address: self.socket.local_address(), error }
    }

    /// Receives, fires timers and sends. Returns true if nothing is left to do now.
    fn poll_once(&mut self) -> Result<bool, HostError> {
        let (mut arrived, mut received_bytes) = (true, 0);
        while arrived && received_bytes < MAX_RECEIVED_BYTES {
            arrived = self.receive(&mut received_bytes).map_err(|error| self.failed(error))?;
        }
        let now = self.now();
        if self.node.next_timer() <= now {
            self.node.handle_timer(now);
        }
        let is_sent = self.send();
        while let Some(report) = self.socket.poll_unreachable() {
            self.node.handle_unreachable(now, report);
        }
        if self.socket.lacks_gso() {
            let lacks = "the kernel or the interface on the way does not have it";
            return Err(HostError::Gso { address: self.socket.local_address(), lacks });
        }
        Ok(is_sent && !arrived)
    }

    fn receive(&mut self, received_bytes: &mut usize) -> io::Result<bool> {
        let (now, epoch_ns) = (self.now(), self.epoch_ns);
        let node = &mut self.node;
        self.socket.receive(&mut |arrived| {
            let received = plausible_time(now, arrived.received_ns, epoch_ns);
            let arrival = Arrival {
                from: arrived.from,
                dscp: arrived.dscp,
                ecn: arrived.ecn,
                received_ns: received.as_ps() / 1000,
            };
            // A short datagram takes about as much time as one of 500 bytes.
            *received_bytes += arrived.bytes.len().max(500);
            node.handle_datagram(now, arrival, arrived.bytes);
        })
    }

    /// Sends what is ready; returns true if nothing is left.
    fn send(&mut self) -> bool {
        for _ in 0..MAX_SENDS {
            let now = self.now();
            if self.limiter.is_some_and(|limiter| limiter.next() > now) {
                return true;
            }
            let Some(datagram) = self.waiting.take().or_else(|| self.node.poll_transmit(now)) else { return true };
            if self.socket.send(&datagram) == SendResult::Full {
                self.waiting = Some(datagram);
                return false;
            }
            if let Some(limiter) = &mut self.limiter {
                limiter.note(now, datagram.bytes.len());
            }
            // A batch has a single departure time, which says nothing about the gaps in it.
            if datagram.segment_bytes.is_none() {
                let now = self.now();
                self.node.note_left(now, datagram.class, datagram.bytes.len());
            }
            self.node.carrier_mut().reuse(datagram);
        }
        false
    }
}

/// Converts a receive time of the kernel's clock, which was `epoch_ns` at the host's start, to the host's time. Returns
/// now for an implausible one, since the kernel's clock may have been set.
fn plausible_time(now: Time, received_ns: Option<u64>, epoch_ns: u64) -> Time {
    let received = received_ns.map(|ns| Time::from_ns(ns.saturating_sub(epoch_ns).min(u64::MAX / 1001)));
    let is_near = |at: &Time| at.saturating_since(now).max(now.saturating_since(*at)) < MAX_CLOCK_DIFFERENCE;
    received.filter(is_near).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_times_stay_near_now_if_the_clock_jumps() {
        let (now, epoch_ns) = (Time::ZERO + Dur::from_secs(100), 1_700_000_000_000_000_000_u64);
        let at = |offset_ns: i64| plausible_time(now, epoch_ns.checked_add_signed(offset_ns), epoch_ns);
        assert_eq!(at(99_999_000_000) + Dur::from_ms(1), now);
        for jump_s in [-3_600, 3_600, -2_000_000_000, 5, 98, 102] {
            assert_eq!(at(jump_s * 1_000_000_000), now, "{jump_s} s");
        }
        assert_eq!(plausible_time(now, Some(u64::MAX), epoch_ns), now);
        assert_eq!(plausible_time(now, None, epoch_ns), now);
    }
}
