//! UDP sockets of Linux through safe system calls.
//!
//! A socket sends the class of each datagram as its DSCP, and sends and receives batches with one system call (generic
//! segmentation and receive offload). It reports the kernel's receive times, and the network's reports of packets that
//! are too large or do not reach their destination.

mod address;
mod errors;

pub(crate) use address::uses_ipv4;
pub use errors::TooBig;
pub(crate) use errors::obstacle_of;

use crate::carrier::{Datagram, MAX_BATCH_BYTES, Unreachable};
use crate::flow::MAX_CLASSES;
use address::of_storage;
use errors::Errors;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrStorage, bind,
    getsockname, recvmsg, sendmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

pub use crate::carrier::DEFAULT_DSCP;

/// The buffer size that is requested from the kernel, bytes; it may grant less.
const BUFFER_BYTES: usize = 8 << 20;

/// The priorities (SO_PRIORITY) of class 0 and of the lower classes in the host's queues: best effort and bulk, which
/// Linux's default queue serves last. For IPv4 the kernel derives them from the DSCP of each packet.
const PRIORITIES: [i32; 2] = [0, 2];

/// The use of batches in sending (generic segmentation offload).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gso {
    /// Sends batches if kernel and interface support it.
    #[default]
    Auto,
    /// Fails if kernel or interface do not support it.
    Require,
    /// Sends no batches.
    Off,
}

/// Configuration of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The DSCP of each class. Higher classes use the last one.
    pub dscp: Vec<u8>,
    /// Enables batches in sending and receiving, if the kernel supports them.
    pub offload: bool,
    /// Restricts batches in sending.
    pub gso: Gso,
}

impl Default for UdpConfig {
    fn default() -> UdpConfig {
        UdpConfig { dscp: DEFAULT_DSCP.to_vec(), offload: true, gso: Gso::Auto }
    }
}

impl UdpConfig {
    /// Returns true if batches may be sent.
    pub fn sends_batches(&self) -> bool {
        self.offload && self.gso != Gso::Off
    }

    /// Returns a message if the code points are invalid.
    pub fn fault(&self) -> Option<String> {
        if self.dscp.is_empty() || self.dscp.len() > MAX_CLASSES {
            return Some(format!("{} code points; 1 to {MAX_CLASSES} classes are allowed", self.dscp.len()));
        }
        if let Some(large) = self.dscp.iter().find(|&&dscp| dscp > 63) {
            return Some(format!("the code point {large}; 0 to 63 are allowed"));
        }
        let twice = (1..self.dscp.len()).find(|&at| self.dscp[..at].contains(&self.dscp[at]));
        twice.map(|at| format!("the code point {} for two classes; allowed: each once", self.dscp[at]))
    }
}

/// The result of sending a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// The kernel accepted it.
    Sent,
    /// The kernel's buffer is full; the datagram should be sent again later.
    Full,
    /// The kernel or the network refused it; it counts as lost.
    Lost,
}

/// Totals of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounts {
    /// System calls that sent datagrams.
    pub sends: u64,
    /// System calls that received datagrams.
    pub receives: u64,
    /// Datagrams that were refused.
    pub lost: u64,
}

/// A received datagram with its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedDatagram<'a> {
    /// The source address.
    pub from: SocketAddr,
    /// The DSCP.
    pub dscp: u8,
    /// The ECN codepoint, two bits.
    pub ecn: u8,
    /// The kernel's receive time, nanoseconds since 1970.
    pub received_ns: Option<u64>,
    /// The payload.
    pub bytes: &'a [u8],
}

/// A non-blocking UDP socket.
#[derive(Debug)]
pub struct UdpSocket {
    fd: OwnedFd,
    config: UdpConfig,
    local: SocketAddr,
    sends_batches: bool,
    receives_batches: bool,
    /// The priority for the next datagram, as set in the kernel.
    priority: i32,
    buffer: Vec<u8>,
    control: Vec<u8>,
    errors: Errors,
    counts: UdpCounts,
}

impl UdpSocket {
    /// Opens a socket with the local address `at`.
    ///
    /// # Errors
    /// The system refuses, for example because the port is in use.
    pub fn bind(at: SocketAddr, config: UdpConfig) -> io::Result<UdpSocket> {
        let family = if at.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Datagram, flags, None)?;
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true)?;
        if at.is_ipv4() {
            setsockopt(&fd, sockopt::IpRecvTos, &true)?;
        } else {
            setsockopt(&fd, sockopt::Ipv6RecvTClass, &true)?;
            // IPv4 peers reach an IPv6 socket with mapped addresses, unless the system reserves it for IPv6.
            let _ = setsockopt(&fd, sockopt::IpRecvTos, &true);
        }
        // The kernel grants what its limits allow.
        let _ = setsockopt(&fd, sockopt::RcvBuf, &BUFFER_BYTES);
        let _ = setsockopt(&fd, sockopt::SndBuf, &BUFFER_BYTES);
        // Without kernel support, datagrams are received one by one.
        let receives_batches = config.offload && setsockopt(&fd, sockopt::UdpGroSegment, &true).is_ok();
        bind(fd.as_raw_fd(), &SockaddrStorage::from(at))?;
        let local = of_storage(&getsockname::<SockaddrStorage>(fd.as_raw_fd())?).ok_or(Errno::EAFNOSUPPORT)?;
        let control = nix::cmsg_space!(TimeSpec, i32, i32, [u8; 64]);
        let errors = Errors::of(&fd, at.is_ipv4());
        let (buffer, sends_batches) = (vec![0; 1 << 16], config.sends_batches());
        Ok(UdpSocket {
            fd,
            config,
            local,
            sends_batches,
            receives_batches,
            priority: PRIORITIES[0],
            buffer,
            control,
            errors,
            counts: UdpCounts::default(),
        })
    }

    /// The local address.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Returns whether batches are sent, as far as it was tried, and received.
    pub fn offload(&self) -> (bool, bool) {
        (self.sends_batches, self.receives_batches)
    }

    /// Returns true if batches are required but were refused by the kernel or the interface.
    pub fn lacks_gso(&self) -> bool {
        self.config.gso == Gso::Require && !self.sends_batches
    }

    /// Sets the priority of the next datagram. IPv6 packets have that of their socket.
    fn set_priority(&mut self, datagram: &Datagram) {
        let priority = PRIORITIES[usize::from(datagram.class > 0)];
        if self.priority != priority && !uses_ipv4(datagram.to) {
            self.priority = priority;
            // If this fails, all classes share one band of the host's queue.
            let _ = setsockopt(&self.fd, sockopt::Priority, &priority);
        }
    }

    /// The totals so far.
    pub fn counts(&self) -> UdpCounts {
        self.counts
    }

    /// Returns the oldest report of a packet that was too large.
    pub fn poll_too_big(&mut self) -> Option<TooBig> {
        self.errors.poll_too_big()
    }

    /// Returns the oldest report that packets do not reach their destination.
    pub fn poll_unreachable(&mut self) -> Option<Unreachable> {
        self.errors.poll_unreachable()
    }

    /// Sends a datagram or a batch.
    pub fn send(&mut self, datagram: &Datagram) -> SendResult {
        self.set_priority(datagram);
        let Some(segment_bytes) = datagram.segment_bytes else { return self.send_one(datagram, &datagram.bytes, None) };
        if self.sends_batches && datagram.bytes.len() <= MAX_BATCH_BYTES {
            match self.call(datagram, &datagram.bytes, Some(segment_bytes as u16)) {
                // The interface does not support batches.
                Err(Errno::EIO | Errno::EINVAL | Errno::ENOPROTOOPT) => self.sends_batches = false,
                // Larger than the path MTU: sent one by one, the kernel fragments them.
                Err(Errno::EMSGSIZE) => {}
                result => return self.judge(datagram.to, result),
            }
        }
        // The result is that of the last datagram. Datagrams after the first that find no room count as lost.
        let mut result = SendResult::Sent;
        for (at, bytes) in datagram.segments().enumerate() {
            result = self.send_one(datagram, bytes, None);
            if result == SendResult::Full {
                if at == 0 {
                    return SendResult::Full;
                }
                result = SendResult::Lost;
            }
        }
        result
    }

    fn send_one(&mut self, datagram: &Datagram, bytes: &[u8], segment_bytes: Option<u16>) -> SendResult {
        let result = self.call(datagram, bytes, segment_bytes);
        self.judge(datagram.to, result)
    }

    fn judge(&mut self, to: SocketAddr, result: nix::Result<usize>) -> SendResult {
        match result {
            Ok(_) => SendResult::Sent,
            Err(Errno::EAGAIN) => SendResult::Full,
            Err(error) => {
                // The error of this call, not of an earlier datagram: this host cannot send it.
                if let Some(obstacle) = obstacle_of(error as u32, true) {
                    self.errors.note_unreachable(Unreachable { to, obstacle, reporter: None });
                }
                self.counts.lost += 1;
                SendResult::Lost
            }
        }
    }

    fn call(&mut self, datagram: &Datagram, bytes: &[u8], segment_bytes: Option<u16>) -> nix::Result<usize> {
        let class = usize::from(datagram.class).min(self.config.dscp.len().saturating_sub(1));
        let tos = self.config.dscp.get(class).map_or(0, |dscp| dscp << 2) | datagram.ecn;
        let wide = i32::from(tos);
        let mut control = Vec::with_capacity(2);
        // The kernel uses the option for the packet's own family, whatever the socket's family is, and ignores the
        // other.
        control.push(match uses_ipv4(datagram.to) {
            true => ControlMessage::Ipv4Tos(&tos),
            false => ControlMessage::Ipv6TClass(&wide),
        });
        if let Some(size) = &segment_bytes {
            control.push(ControlMessage::UdpGsoSegments(size));
        }
        self.counts.sends += 1;
        let to = SockaddrStorage::from(datagram.to);
        // An error may belong to an earlier datagram: read the queue once, and try again.
        let mut has_read = false;
        loop {
            match sendmsg(self.fd.as_raw_fd(), &[IoSlice::new(bytes)], &control, MsgFlags::empty(), Some(&to)) {
                Err(Errno::EINTR) => {}
                Err(error) if error != Errno::EAGAIN && !has_read && self.errors.read(&self.fd) => has_read = true,
                result => return result,
            }
        }
    }

    /// Receives with one system call and passes each datagram to `take`. Returns true if there were any.
    ///
    /// # Errors
    /// The socket failed.
    pub fn receive(&mut self, take: &mut dyn FnMut(ReceivedDatagram<'_>)) -> io::Result<bool> {
        self.counts.receives += 1;
        let (mut tos, mut received_ns, mut segment_bytes) = (0, None, 0);
        let (length, from) = {
            let mut buffers = [IoSliceMut::new(&mut self.buffer)];
            let flags = MsgFlags::empty();
            let message =
                match recvmsg::<SockaddrStorage>(self.fd.as_raw_fd(), &mut buffers, Some(&mut self.control), flags) {
                    Ok(message) => message,
                    Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
                    // An error of an earlier datagram.
                    Err(_) if self.errors.read(&self.fd) => return Ok(true),
                    Err(Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH) => return Ok(true),
                    Err(error) => return Err(error.into()),
                };
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::Ipv4Tos(value) => tos = value,
                    ControlMessageOwned::Ipv6TClass(value) => tos = value as u8,
                    ControlMessageOwned::ScmTimestampns(at) => received_ns = u64::try_from(at.num_nanoseconds()).ok(),
                    ControlMessageOwned::UdpGroSegments(size) => segment_bytes = size as usize,
                    _ => {}
                }
            }
            (message.bytes, message.address.as_ref().and_then(of_storage))
        };
        let Some(from) = from else { return Ok(true) };
        let size = if segment_bytes == 0 { length.max(1) } else { segment_bytes };
        for bytes in self.buffer[..length].chunks(size) {
            take(ReceivedDatagram { from, dscp: tos >> 2, ecn: tos & 3, received_ns, bytes });
        }
        Ok(true)
    }

    /// Waits until a datagram arrives or, if `for_room` is set, until there is room to send, but no longer than
    /// `at_most`.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, for_room: bool, at_most: Duration) -> io::Result<()> {
        self.wait_with(for_room, at_most, &mut vec![])
    }

    /// Waits like [`wait`](Self::wait), or until one of `others` is ready; their events are set.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait_with<'a>(&'a self, for_room: bool, at_most: Duration, others: &mut Vec<PollFd<'a>>) -> io::Result<()> {
        let flags = if for_room { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        others.push(PollFd::new(self.fd.as_fd(), flags));
        let result = ppoll(others, Some(TimeSpec::from(at_most)), None);
        others.pop();
        match result {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Obstacle;

    fn socket_at(at: &str, offload: bool) -> UdpSocket {
        let config = UdpConfig { offload, ..UdpConfig::default() };
        UdpSocket::bind(at.parse().expect("an address"), config).expect("a socket")
    }

    fn has_ipv6() -> bool {
        UdpSocket::bind("[::1]:0".parse().expect("an address"), UdpConfig::default()).is_ok()
    }

    /// Sends a batch of class 2 with ECN and returns the datagrams that arrive.
    fn carried(at: &str, offload: bool) -> Vec<(u8, u8, bool, Vec<u8>)> {
        let (mut sender, mut receiver) = (socket_at(at, offload), socket_at(at, offload));
        let (from, to) = (sender.local_address(), receiver.local_address());
        carried_between(&mut sender, from, &mut receiver, to)
    }

    /// Does the same between given sockets: the receiver's address is `to`, and it sees the sender at `from`.
    fn carried_between(
        sender: &mut UdpSocket,
        from: SocketAddr,
        receiver: &mut UdpSocket,
        to: SocketAddr,
    ) -> Vec<(u8, u8, bool, Vec<u8>)> {
        let bytes: Vec<u8> = (0..3_700).map(|at| (at / 1000) as u8).collect();
        let datagram = Datagram { to, class: 2, ecn: 2, segment_bytes: Some(1000), bytes };
        assert_eq!(sender.send(&datagram), SendResult::Sent);
        let mut arrived = vec![];
        while arrived.len() < 4 {
            receiver.wait(false, Duration::from_secs(5)).expect("a socket");
            let more = receiver.receive(&mut |one| {
                assert_eq!(one.from, from);
                arrived.push((one.dscp, one.ecn, one.received_ns.is_some(), one.bytes.to_vec()));
            });
            assert!(more.expect("a socket"), "nothing more arrived");
        }
        arrived
    }

    #[test]
    fn datagrams_keep_dscp_ecn_and_size_with_and_without_batches() {
        for offload in [true, false] {
            let arrived = carried("127.0.0.1:0", offload);
            for (at, (dscp, ecn, timed, bytes)) in arrived.iter().enumerate() {
                assert_eq!((*dscp, *ecn, *timed), (11, 2, true), "{offload}");
                let length = if at == 3 { 700 } else { 1000 };
                assert!(*bytes == vec![at as u8; length], "{offload}, {at}: {} bytes", bytes.len());
            }
        }
    }

    #[test]
    fn ipv6_datagrams_keep_their_dscp() {
        // Nothing to test on a machine without IPv6.
        if has_ipv6() {
            assert_eq!(carried("[::1]:0", true)[0].0, 11);
        }
    }

    #[test]
    fn a_dual_stack_socket_keeps_dscp_ecn_and_size_with_an_ipv4_peer() {
        if !has_ipv6() {
            return;
        }
        for offload in [true, false] {
            let (mut both, mut one) = (socket_at("[::]:0", offload), socket_at("127.0.0.1:0", offload));
            let as_ipv4 = |of: &UdpSocket| -> SocketAddr {
                format!("127.0.0.1:{}", of.local_address().port()).parse().expect("an address")
            };
            let mapped = |of: &UdpSocket| -> SocketAddr {
                format!("[::ffff:127.0.0.1]:{}", of.local_address().port()).parse().expect("an address")
            };
            let ((from, to), (back, own)) = ((mapped(&one), as_ipv4(&both)), (as_ipv4(&both), mapped(&one)));
            let arrived = carried_between(&mut one, from, &mut both, to);
            let answered = carried_between(&mut both, back, &mut one, own);
            for (at, (dscp, ecn, timed, bytes)) in arrived.iter().chain(&answered).enumerate() {
                assert_eq!((*dscp, *ecn, *timed), (11, 2, true), "{offload}, {at}");
                assert_eq!(bytes.len(), if at % 4 == 3 { 700 } else { 1000 }, "{offload}, {at}");
            }
            assert_eq!(both.priority, PRIORITIES[0], "the kernel takes it from the code point");
        }
    }

    #[test]
    fn a_dual_stack_socket_receives_errors_of_packets_to_an_ipv4_peer() {
        if !has_ipv6() {
            return;
        }
        let mut both = socket_at("[::]:0", true);
        let closed = socket_at("127.0.0.1:0", true).local_address().port();
        let to = format!("[::ffff:127.0.0.1]:{closed}").parse().expect("an address");
        let datagram = Datagram { to, class: 0, ecn: 0, segment_bytes: None, bytes: vec![7; 100] };
        assert_eq!(both.send(&datagram), SendResult::Sent);
        assert!(both.errors.read(&both.fd), "the port is closed, but the kernel reported no error");
        let report = both.poll_unreachable().expect("a report");
        assert_eq!((report.to, report.obstacle), (to, Obstacle::PortClosed));
    }

    #[test]
    fn a_closed_port_is_reported_once_for_each_destination() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let at: SocketAddr = at.parse().expect("an address");
            // Nothing to test on a machine without IPv6.
            let Ok(mut sender) = UdpSocket::bind(at, UdpConfig::default()) else { return };
            let to = UdpSocket::bind(at, UdpConfig::default()).expect("a socket").local_address();
            let datagram = Datagram { to, class: 0, ecn: 0, segment_bytes: None, bytes: vec![7; 100] };
            for _ in 0..3 {
                assert_eq!(sender.send(&datagram), SendResult::Sent);
            }
            while sender.receive(&mut |arrived| panic!("{arrived:?}")).expect("a socket") {}
            let report = sender.poll_unreachable();
            let expected = Unreachable { to, obstacle: Obstacle::PortClosed, reporter: Some(at.ip()) };
            assert_eq!((report, sender.poll_unreachable()), (Some(expected), None));
        }
    }

    #[test]
    fn lower_classes_have_bulk_priority_in_the_hosts_queues_over_ipv6() {
        let at: SocketAddr = "[::1]:0".parse().expect("an address");
        // Nothing to test on a machine without IPv6.
        let Ok(mut socket) = UdpSocket::bind(at, UdpConfig::default()) else { return };
        for (class, priority) in [(0, 0), (3, 2), (0, 0)] {
            let to = socket.local_address();
            let datagram = Datagram { to, class, ecn: 0, segment_bytes: None, bytes: vec![7] };
            assert_eq!(socket.send(&datagram), SendResult::Sent);
            let actual = nix::sys::socket::getsockopt(&socket.fd, sockopt::Priority).expect("a socket");
            assert_eq!(actual, priority, "class {class}");
        }
    }

    #[test]
    fn a_refused_batch_is_an_error_if_batches_are_required() {
        let at: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        for (gso, lacks) in [(Gso::Require, true), (Gso::Auto, false), (Gso::Off, false)] {
            let mut socket = UdpSocket::bind(at, UdpConfig { gso, ..UdpConfig::default() }).expect("a socket");
            let to = socket.local_address();
            // No kernel sends this many segments in a batch. It refuses like an interface without batches.
            let datagram = Datagram { to, class: 0, ecn: 0, segment_bytes: Some(1), bytes: vec![7; 1000] };
            assert_eq!(socket.send(&datagram), SendResult::Sent);
            assert_eq!(socket.lacks_gso(), lacks, "{gso:?}");
        }
    }

    #[test]
    fn a_closed_port_costs_other_peers_no_datagram() {
        let at: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let mut sender = UdpSocket::bind(at, UdpConfig::default()).expect("a socket");
        let mut receiver = UdpSocket::bind(at, UdpConfig::default()).expect("a socket");
        let closed = UdpSocket::bind(at, UdpConfig::default()).expect("a socket").local_address();
        let to = |to| Datagram { to, class: 0, ecn: 0, segment_bytes: None, bytes: vec![7; 100] };
        for _ in 0..10 {
            // The kernel reports by the next call that the port is closed.
            assert_eq!(sender.send(&to(closed)), SendResult::Sent);
            assert_eq!(sender.send(&to(receiver.local_address())), SendResult::Sent);
            assert_eq!(sender.send(&to(closed)), SendResult::Sent);
            while sender.receive(&mut |arrived| panic!("{arrived:?}")).expect("the socket still works") {}
        }
        assert_eq!((sender.counts().lost, sender.poll_too_big()), (0, None));
        let mut count = 0;
        while receiver.receive(&mut |_| count += 1).expect("a socket") {}
        assert_eq!(count, 10);
    }

    #[test]
    fn invalid_code_points_are_reported() {
        let fault = |dscp: &[u8]| UdpConfig { dscp: dscp.to_vec(), ..UdpConfig::default() }.fault();
        assert_eq!(fault(&DEFAULT_DSCP), None);
        assert_eq!(fault(&[]).as_deref(), Some("0 code points; 1 to 8 classes are allowed"));
        assert_eq!(fault(&[0, 64]).as_deref(), Some("the code point 64; 0 to 63 are allowed"));
        assert_eq!(fault(&[0, 1, 0]).as_deref(), Some("the code point 0 for two classes; allowed: each once"));
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let first =
            UdpSocket::bind("127.0.0.1:0".parse().expect("an address"), UdpConfig::default()).expect("a socket");
        let second = UdpSocket::bind(first.local_address(), UdpConfig::default());
        assert_eq!(second.expect_err("taken").kind(), io::ErrorKind::AddrInUse);
    }
}
