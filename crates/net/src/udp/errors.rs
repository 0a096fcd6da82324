//! The kernel's error queue of a socket (IP_RECVERR, IPV6_RECVERR).
//!
//! Routers and peers report errors of earlier datagrams. Two kinds are kept: packets that are too
//! large for a link (RFC 1191, RFC 8201), so that the sender can use smaller ones, and packets that
//! do not reach their destination (RFC 792, RFC 4443), so that a handshake need not wait for it.

use super::address::of_storage;
use crate::carrier::{Obstacle, Unreachable};
use nix::errno::Errno;
use nix::libc::{AF_INET, AF_INET6, SO_EE_ORIGIN_LOCAL, sockaddr_in, sockaddr_in6};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

/// The maximum number of errors read in one call.
const MAX_AT_ONCE: usize = 64;

/// The maximum number of reports of each kind that are kept.
const MAX_REPORTS: usize = 16;

/// A report that a packet was too large for a link on its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// The packet's destination.
    pub to: SocketAddr,
    /// The MTU of the link in bytes, as the router claims; the report is not authenticated.
    pub mtu_bytes: u32,
}

/// The reports of a socket.
#[derive(Debug)]
pub(super) struct Errors {
    too_big: VecDeque<TooBig>,
    unreachable: VecDeque<Unreachable>,
    control: Vec<u8>,
}

impl Errors {
    /// Makes the kernel queue the errors of this socket's datagrams.
    pub fn of(fd: &OwnedFd, is_ipv4: bool) -> Errors {
        // Without kernel support, the detection of black holes remains. An IPv6 socket may have IPv4 peers, too.
        let _ = setsockopt(fd, sockopt::Ipv4RecvErr, &true);
        if !is_ipv4 {
            let _ = setsockopt(fd, sockopt::Ipv6RecvErr, &true);
        }
        // Space for an error with two addresses and the metadata of a datagram.
        let control = nix::cmsg_space!(TimeSpec, i32, i32, [u8; 128]);
        Errors { too_big: VecDeque::new(), unreachable: VecDeque::new(), control }
    }

    /// Reads pending errors. Returns true if there were any: then the error that a system call has just returned is
    /// most likely that of an earlier datagram.
    pub fn read(&mut self, fd: &OwnedFd) -> bool {
        for count in 0..MAX_AT_ONCE {
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let message = recvmsg::<SockaddrStorage>(fd.as_raw_fd(), &mut [], Some(&mut self.control), flags);
            let Ok(message) = message else { return count > 0 };
            let to = message.address.as_ref().and_then(of_storage);
            let controls = message.cmsgs().into_iter().flatten();
            for control in controls {
                let (error, reporter) = match control {
                    ControlMessageOwned::Ipv4RecvErr(error, from) => (error, from.and_then(of_ipv4)),
                    ControlMessageOwned::Ipv6RecvErr(error, from) => (error, from.and_then(of_ipv6)),
                    _ => continue,
                };
                let Some(to) = to else { continue };
                if error.ee_errno == Errno::EMSGSIZE as u32 {
                    keep(&mut self.too_big, TooBig { to, mtu_bytes: error.ee_info });
                } else if let Some(obstacle) = obstacle_of(error.ee_errno, error.ee_origin == SO_EE_ORIGIN_LOCAL) {
                    keep_latest(&mut self.unreachable, Unreachable { to, obstacle, reporter });
                }
            }
        }
        true
    }

    /// Keeps a report that packets do not reach their destination, once for each destination.
    pub fn note_unreachable(&mut self, report: Unreachable) {
        keep_latest(&mut self.unreachable, report);
    }

    /// Returns the oldest report of a packet that was too large.
    pub fn poll_too_big(&mut self) -> Option<TooBig> {
        self.too_big.pop_front()
    }

    /// Returns the oldest report of packets that do not reach their destination.
    pub fn poll_unreachable(&mut self) -> Option<Unreachable> {
        self.unreachable.pop_front()
    }
}

/// Adds a report; the oldest one makes room.
fn keep<T>(reports: &mut VecDeque<T>, report: T) {
    if reports.len() == MAX_REPORTS {
        reports.pop_front();
    }
    reports.push_back(report);
}

/// Adds a report in place of an earlier one about the same destination.
fn keep_latest(reports: &mut VecDeque<Unreachable>, report: Unreachable) {
    reports.retain(|kept| kept.to != report.to);
    keep(reports, report);
}

/// Returns the obstacle that an error number stands for. The kernel derives the number from the type
/// and code of an ICMP message; `is_local` is true for errors of this host.
pub(crate) fn obstacle_of(errno: u32, is_local: bool) -> Option<Obstacle> {
    match (Errno::from_raw(i32::try_from(errno).ok()?), is_local) {
        (Errno::ECONNREFUSED, _) => Some(Obstacle::PortClosed),
        (Errno::EHOSTUNREACH | Errno::EHOSTDOWN, _) => Some(Obstacle::Host),
        (Errno::ENETUNREACH, true) => Some(Obstacle::NoRoute),
        (Errno::ENETUNREACH, false) => Some(Obstacle::Network),
        (Errno::EACCES | Errno::EPERM, true) => Some(Obstacle::ForbiddenHere),
        (Errno::EACCES, false) => Some(Obstacle::Forbidden),
        _ => None,
    }
}

fn of_ipv4(from: sockaddr_in) -> Option<IpAddr> {
    let address = Ipv4Addr::from(from.sin_addr.s_addr.to_ne_bytes());
    (i32::from(from.sin_family) == AF_INET && !address.is_unspecified()).then_some(address.into())
}

fn of_ipv6(from: sockaddr_in6) -> Option<IpAddr> {
    let address = Ipv6Addr::from(from.sin6_addr.s6_addr);
    (i32::from(from.sin6_family) == AF_INET6 && !address.is_unspecified()).then(|| IpAddr::V6(address).to_canonical())
}
