//! Sockets of Linux, through calls that are safe: the class of each datagram as its DSCP, batches by one system call in both
//! directions (generic segmentation and receive offload), when the kernel received what came, and what routers say of what was sent.

mod errors;

pub use errors::TooBig;

use crate::carrier::{Datagram, MAX_BATCH_BYTES};
use crate::flow::MAX_CLASSES;
use errors::Errors;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrLike, SockaddrStorage,
    bind, getsockname, recvmsg, sendmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

pub use crate::carrier::DEFAULT_DSCP;

/// What is asked of the kernel for its buffers, bytes; it may give less.
const BUFFER_BYTES: usize = 8 << 20;

/// The priorities of class 0 and of the lower ones in a host's own queues (SO_PRIORITY): best effort, and bulk, which Linux's own
/// queue serves last. By IPv4 the kernel derives them from the code point of each packet.
const PRIORITIES: [i32; 2] = [0, 2];

/// Whether batches are sent (generic segmentation offload).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gso {
    /// Where kernel and interface can.
    #[default]
    Auto,
    /// It is an error where they cannot.
    Require,
    /// Not at all.
    Off,
}

/// What can be set about a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpConfig {
    /// The code point of each class; what is beyond goes as the last.
    pub dscp: Vec<u8>,
    /// Whether batches are sent and received where the kernel can.
    pub offload: bool,
    /// Of these, whether they are sent.
    pub gso: Gso,
}

impl Default for UdpConfig {
    fn default() -> UdpConfig {
        UdpConfig { dscp: DEFAULT_DSCP.to_vec(), offload: true, gso: Gso::Auto }
    }
}

impl UdpConfig {
    /// Whether batches are sent.
    pub fn sends_batches(&self) -> bool {
        self.offload && self.gso != Gso::Off
    }

    /// What is wrong with the code points, if anything.
    pub fn fault(&self) -> Option<String> {
        if self.dscp.is_empty() || self.dscp.len() > MAX_CLASSES {
            return Some(format!("{} code points; 1 to {MAX_CLASSES} classes are allowed", self.dscp.len()));
        }
        if let Some(large) = self.dscp.iter().find(|&&dscp| dscp > 63) {
            return Some(format!("the code point {large}; 0 to 63 are allowed"));
        }
        let twice = (1..self.dscp.len()).find(|&at| self.dscp[..at].contains(&self.dscp[at]));
        twice.map(|at| format!("the code point {} for two classes; allowed is each once", self.dscp[at]))
    }
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The kernel has it.
    Sent,
    /// The kernel has no room; it is to be sent again when it has.
    Full,
    /// The kernel or the network refused it, as if it had been lost on the way.
    Lost,
}

/// Totals of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounts {
    /// System calls that sent.
    pub sends: u64,
    /// System calls that received.
    pub receives: u64,
    /// Datagrams that were refused.
    pub lost: u64,
}

/// What came, with what the kernel says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// Its code point.
    pub dscp: u8,
    /// Its codepoint of explicit congestion notification, two bits.
    pub ecn: u8,
    /// When the kernel received it, nanoseconds since 1970.
    pub received_ns: Option<u64>,
    /// Its payload.
    pub bytes: &'a [u8],
}

/// A socket.
#[derive(Debug)]
pub struct UdpSocket {
    fd: OwnedFd,
    config: UdpConfig,
    local: SocketAddr,
    sends_batches: bool,
    receives_batches: bool,
    /// The priority of what is sent next, as the kernel knows it.
    priority: i32,
    buffer: Vec<u8>,
    control: Vec<u8>,
    errors: Errors,
    counts: UdpCounts,
}

impl UdpSocket {
    /// A socket at this address.
    ///
    /// # Errors
    /// The system refuses, as where the port is taken.
    pub fn bind(at: SocketAddr, config: UdpConfig) -> io::Result<UdpSocket> {
        let family = if at.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let fd = socket(family, SockType::Datagram, flags, None)?;
        setsockopt(&fd, sockopt::ReceiveTimestampns, &true)?;
        if at.is_ipv4() {
            setsockopt(&fd, sockopt::IpRecvTos, &true)?;
        } else {
            setsockopt(&fd, sockopt::Ipv6RecvTClass, &true)?;
            // Peers by IPv4 come to this socket as well, with mapped addresses, unless the system has it for IPv6 alone.
            let _ = setsockopt(&fd, sockopt::IpRecvTos, &true);
        }
        // The kernel gives what its limits allow.
        let _ = setsockopt(&fd, sockopt::RcvBuf, &BUFFER_BYTES);
        let _ = setsockopt(&fd, sockopt::SndBuf, &BUFFER_BYTES);
        // Kernels that cannot are served without.
        let receives_batches = config.offload && setsockopt(&fd, sockopt::UdpGroSegment, &true).is_ok();
        bind(fd.as_raw_fd(), &SockaddrStorage::from(at))?;
        let local = address(&getsockname::<SockaddrStorage>(fd.as_raw_fd())?).ok_or(Errno::EAFNOSUPPORT)?;
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

    /// Its address.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Whether the kernel sends batches, as far as it was tried, and whether it receives them.
    pub fn offload(&self) -> (bool, bool) {
        (self.sends_batches, self.receives_batches)
    }

    /// Whether batches are required, and kernel or interface has refused one.
    pub fn lacks_gso(&self) -> bool {
        self.config.gso == Gso::Require && !self.sends_batches
    }

    /// By IPv6, packets have the priority of the socket.
    fn set_priority(&mut self, datagram: &Datagram) {
        let priority = PRIORITIES[usize::from(datagram.class > 0)];
        if self.priority != priority && !goes_by_ipv4(datagram.to) {
            self.priority = priority;
            // Without it, the host's own queue has one line.
            let _ = setsockopt(&self.fd, sockopt::Priority, &priority);
        }
    }

    /// Totals so far.
    pub fn counts(&self) -> UdpCounts {
        self.counts
    }

    /// Which packet a router has found too large, oldest first.
    pub fn poll_too_big(&mut self) -> Option<TooBig> {
        self.errors.poll()
    }

    /// Sends a datagram, or a batch.
    pub fn send(&mut self, datagram: &Datagram) -> Sending {
        self.set_priority(datagram);
        let Some(segment_bytes) = datagram.segment_bytes else { return self.send_one(datagram, &datagram.bytes, None) };
        if self.sends_batches && datagram.bytes.len() <= MAX_BATCH_BYTES {
            match self.call(datagram, &datagram.bytes, Some(segment_bytes as u16)) {
                // An interface that cannot send batches.
                Err(Errno::EIO | Errno::EINVAL | Errno::ENOPROTOOPT) => self.sends_batches = false,
                // Larger than a router on the way says that it takes: one by one, the kernel sends fragments.
                Err(Errno::EMSGSIZE) => {}
                result => return self.judge(result),
            }
        }
        // The last says how it went; what finds no room behind the first counts as lost.
        let mut result = Sending::Sent;
        for (at, bytes) in datagram.segments().enumerate() {
            result = self.send_one(datagram, bytes, None);
            if result == Sending::Full {
                if at == 0 {
                    return Sending::Full;
                }
                result = Sending::Lost;
            }
        }
        result
    }

    fn send_one(&mut self, datagram: &Datagram, bytes: &[u8], segment_bytes: Option<u16>) -> Sending {
        let result = self.call(datagram, bytes, segment_bytes);
        self.judge(result)
    }

    fn judge(&mut self, result: nix::Result<usize>) -> Sending {
        match result {
            Ok(_) => Sending::Sent,
            Err(Errno::EAGAIN) => Sending::Full,
            Err(_) => {
                self.counts.lost += 1;
                Sending::Lost
            }
        }
    }

    fn call(&mut self, datagram: &Datagram, bytes: &[u8], segment_bytes: Option<u16>) -> nix::Result<usize> {
        let class = usize::from(datagram.class).min(self.config.dscp.len().saturating_sub(1));
        let tos = self.config.dscp.get(class).map_or(0, |dscp| dscp << 2) | datagram.ecn;
        let wide = i32::from(tos);
        let mut control = Vec::with_capacity(2);
        // The kernel takes the option of the family by which the packet goes, whatever the socket's is, and ignores the other.
        control.push(match goes_by_ipv4(datagram.to) {
            true => ControlMessage::Ipv4Tos(&tos),
            false => ControlMessage::Ipv6TClass(&wide),
        });
        if let Some(size) = &segment_bytes {
            control.push(ControlMessage::UdpGsoSegments(size));
        }
        self.counts.sends += 1;
        let to = SockaddrStorage::from(datagram.to);
        let mut has_read = false;
        loop {
            match sendmsg(self.fd.as_raw_fd(), &[IoSlice::new(bytes)], &control, MsgFlags::empty(), Some(&to)) {
                Err(Errno::EINTR) => {}
                Err(error) if error != Errno::EAGAIN && !has_read && self.errors.read(&self.fd) => has_read = true,
                result => return result,
            }
        }
    }

    /// Hands what has come, by one system call, to `take`. Returns whether there was something.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn receive(&mut self, take: &mut dyn FnMut(Came<'_>)) -> io::Result<bool> {
        self.counts.receives += 1;
        let (mut tos, mut received_ns, mut segment_bytes) = (0, None, 0);
        let (length, from) = {
            let mut buffers = [IoSliceMut::new(&mut self.buffer)];
            let flags = MsgFlags::empty();
            let message =
                match recvmsg::<SockaddrStorage>(self.fd.as_raw_fd(), &mut buffers, Some(&mut self.control), flags) {
                    Ok(message) => message,
                    Err(Errno::EAGAIN | Errno::EINTR) => return Ok(false),
                    // What a network says of an earlier datagram.
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
            (message.bytes, message.address.as_ref().and_then(address))
        };
        let Some(from) = from else { return Ok(true) };
        let size = if segment_bytes == 0 { length.max(1) } else { segment_bytes };
        for bytes in self.buffer[..length].chunks(size) {
            take(Came { from, dscp: tos >> 2, ecn: tos & 3, received_ns, bytes });
        }
        Ok(true)
    }

    /// Waits until something has come, or there is room where that is asked for, for so long at most.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait(&self, for_room: bool, at_most: Duration) -> io::Result<()> {
        self.wait_beside(for_room, at_most, &mut vec![])
    }

    /// As [`wait`](Self::wait), or until something happens at one of `others`, which say what.
    ///
    /// # Errors
    /// The system refuses.
    pub fn wait_beside<'a>(
        &'a self,
        for_room: bool,
        at_most: Duration,
        others: &mut Vec<PollFd<'a>>,
    ) -> io::Result<()> {
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

/// Whether packets to this address are of IPv4: those to a mapped one, `::ffff:a.b.c.d`, are, too.
pub(crate) fn goes_by_ipv4(to: SocketAddr) -> bool {
    match to {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(to) => to.ip().to_ipv4_mapped().is_some(),
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    match storage.family()? {
        AddressFamily::Inet => {
            let address = storage.as_sockaddr_in()?;
            Some(SocketAddr::new(IpAddr::V4(address.ip()), address.port()))
        }
        AddressFamily::Inet6 => {
            let address = storage.as_sockaddr_in6()?;
            Some(SocketAddr::V6((*address).into()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket_at(at: &str, offload: bool) -> UdpSocket {
        let config = UdpConfig { offload, ..UdpConfig::default() };
        UdpSocket::bind(at.parse().expect("an address"), config).expect("a socket")
    }

    fn has_ipv6() -> bool {
        UdpSocket::bind("[::1]:0".parse().expect("an address"), UdpConfig::default()).is_ok()
    }

    /// What arrives of a batch of datagrams of class 2, marked as capable of congestion notification.
    fn carried(at: &str, offload: bool) -> Vec<(u8, u8, bool, Vec<u8>)> {
        let (mut sender, mut receiver) = (socket_at(at, offload), socket_at(at, offload));
        let (from, to) = (sender.local_address(), receiver.local_address());
        carried_between(&mut sender, from, &mut receiver, to)
    }

    /// The same to the address `to` of the receiver, for whom the sender is at `from`.
    fn carried_between(
        sender: &mut UdpSocket,
        from: SocketAddr,
        receiver: &mut UdpSocket,
        to: SocketAddr,
    ) -> Vec<(u8, u8, bool, Vec<u8>)> {
        let bytes: Vec<u8> = (0..3_700).map(|at| (at / 1000) as u8).collect();
        let datagram = Datagram { to, class: 2, ecn: 2, segment_bytes: Some(1000), bytes };
        assert_eq!(sender.send(&datagram), Sending::Sent);
        let mut came = vec![];
        while came.len() < 4 {
            receiver.wait(false, Duration::from_secs(5)).expect("a socket");
            let more = receiver.receive(&mut |one| {
                assert_eq!(one.from, from);
                came.push((one.dscp, one.ecn, one.received_ns.is_some(), one.bytes.to_vec()));
            });
            assert!(more.expect("a socket"), "nothing more came");
        }
        came
    }

    #[test]
    fn datagrams_keep_class_mark_and_borders_with_and_without_batches() {
        for offload in [true, false] {
            let came = carried("127.0.0.1:0", offload);
            for (at, (dscp, ecn, timed, bytes)) in came.iter().enumerate() {
                assert_eq!((*dscp, *ecn, *timed), (11, 2, true), "{offload}");
                let length = if at == 3 { 700 } else { 1000 };
                assert!(*bytes == vec![at as u8; length], "{offload}, {at}: {} bytes", bytes.len());
            }
        }
    }

    #[test]
    fn ipv6_carries_the_same() {
        // Where the machine has no IPv6 there is nothing to test.
        if has_ipv6() {
            assert_eq!(carried("[::1]:0", true)[0].0, 11);
        }
    }

    #[test]
    fn a_socket_for_both_families_keeps_class_mark_and_borders_of_an_ipv4_peer_both_ways() {
        if !has_ipv6() {
            return;
        }
        for offload in [true, false] {
            let (mut both, mut one) = (socket_at("[::]:0", offload), socket_at("127.0.0.1:0", offload));
            let by_ipv4 = |of: &UdpSocket| -> SocketAddr {
                format!("127.0.0.1:{}", of.local_address().port()).parse().expect("an address")
            };
            let mapped = |of: &UdpSocket| -> SocketAddr {
                format!("[::ffff:127.0.0.1]:{}", of.local_address().port()).parse().expect("an address")
            };
            let ((from, to), (back, own)) = ((mapped(&one), by_ipv4(&both)), (by_ipv4(&both), mapped(&one)));
            let came = carried_between(&mut one, from, &mut both, to);
            let answered = carried_between(&mut both, back, &mut one, own);
            for (at, (dscp, ecn, timed, bytes)) in came.iter().chain(&answered).enumerate() {
                assert_eq!((*dscp, *ecn, *timed), (11, 2, true), "{offload}, {at}");
                assert_eq!(bytes.len(), if at % 4 == 3 { 700 } else { 1000 }, "{offload}, {at}");
            }
            assert_eq!(both.priority, PRIORITIES[0], "the kernel takes it from the code point");
        }
    }

    #[test]
    fn a_socket_for_both_families_hears_what_is_said_of_packets_to_an_ipv4_peer() {
        if !has_ipv6() {
            return;
        }
        let mut both = socket_at("[::]:0", true);
        let gone = socket_at("127.0.0.1:0", true).local_address().port();
        let to = format!("[::ffff:127.0.0.1]:{gone}").parse().expect("an address");
        let datagram = Datagram { to, class: 0, ecn: 0, segment_bytes: None, bytes: vec![7; 100] };
        assert_eq!(both.send(&datagram), Sending::Sent);
        assert!(both.errors.read(&both.fd), "nobody listens there, and the kernel said nothing");
    }

    #[test]
    fn lower_classes_have_the_priority_of_bulk_in_the_queues_of_the_host_by_ipv6() {
        let at: SocketAddr = "[::1]:0".parse().expect("an address");
        // Where the machine has no IPv6 there is nothing to test.
        let Ok(mut socket) = UdpSocket::bind(at, UdpConfig::default()) else { return };
        for (class, priority) in [(0, 0), (3, 2), (0, 0)] {
            let to = socket.local_address();
            let datagram = Datagram { to, class, ecn: 0, segment_bytes: None, bytes: vec![7] };
            assert_eq!(socket.send(&datagram), Sending::Sent);
            let told = nix::sys::socket::getsockopt(&socket.fd, sockopt::Priority).expect("a socket");
            assert_eq!(told, priority, "class {class}");
        }
    }

    #[test]
    fn an_interface_that_refuses_a_batch_is_told_where_batches_are_required() {
        let at: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        for (gso, lacks) in [(Gso::Require, true), (Gso::Auto, false), (Gso::Off, false)] {
            let mut socket = UdpSocket::bind(at, UdpConfig { gso, ..UdpConfig::default() }).expect("a socket");
            let to = socket.local_address();
            // No kernel sends so many segments in a batch: it says what an interface says that has no batches.
            let datagram = Datagram { to, class: 0, ecn: 0, segment_bytes: Some(1), bytes: vec![7; 1000] };
            assert_eq!(socket.send(&datagram), Sending::Sent);
            assert_eq!(socket.lacks_gso(), lacks, "{gso:?}");
        }
    }

    #[test]
    fn a_peer_that_is_gone_costs_others_no_datagram() {
        let at: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let mut sender = UdpSocket::bind(at, UdpConfig::default()).expect("a socket");
        let mut receiver = UdpSocket::bind(at, UdpConfig::default()).expect("a socket");
        let gone = UdpSocket::bind(at, UdpConfig::default()).expect("a socket").local_address();
        let to = |to| Datagram { to, class: 0, ecn: 0, segment_bytes: None, bytes: vec![7; 100] };
        for _ in 0..10 {
            // The kernel says by the next call that nobody listens there.
            assert_eq!(sender.send(&to(gone)), Sending::Sent);
            assert_eq!(sender.send(&to(receiver.local_address())), Sending::Sent);
            assert_eq!(sender.send(&to(gone)), Sending::Sent);
            while sender.receive(&mut |came| panic!("{came:?}")).expect("the socket is as good as before") {}
        }
        assert_eq!((sender.counts().lost, sender.poll_too_big()), (0, None));
        let mut count = 0;
        while receiver.receive(&mut |_| count += 1).expect("a socket") {}
        assert_eq!(count, 10);
    }

    #[test]
    fn code_points_that_cannot_be_are_told() {
        let fault = |dscp: &[u8]| UdpConfig { dscp: dscp.to_vec(), ..UdpConfig::default() }.fault();
        assert_eq!(fault(&DEFAULT_DSCP), None);
        assert_eq!(fault(&[]).as_deref(), Some("0 code points; 1 to 8 classes are allowed"));
        assert_eq!(fault(&[0, 64]).as_deref(), Some("the code point 64; 0 to 63 are allowed"));
        assert_eq!(fault(&[0, 1, 0]).as_deref(), Some("the code point 0 for two classes; allowed is each once"));
    }

    #[test]
    fn a_port_that_is_taken_is_an_error() {
        let first =
            UdpSocket::bind("127.0.0.1:0".parse().expect("an address"), UdpConfig::default()).expect("a socket");
        let second = UdpSocket::bind(first.local_address(), UdpConfig::default());
        assert_eq!(second.expect_err("taken").kind(), io::ErrorKind::AddrInUse);
    }
}
