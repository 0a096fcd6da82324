//! The kernel's error queue of a socket (IP_RECVERR, IPV6_RECVERR).
//!
//! Routers and peers report errors of earlier datagrams. Only reports of packets that are too large for a link are kept
//! (RFC 1191, RFC 8201), so that the sender can use smaller ones.

use super::address::of_storage;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// The maximum number of errors read in one call.
const MAX_AT_ONCE: usize = 64;

/// The maximum number of reports that are kept.
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
    reports: VecDeque<TooBig>,
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
        Errors { reports: VecDeque::new(), control: nix::cmsg_space!(TimeSpec, i32, i32, [u8; 128]) }
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
                let error = match control {
                    ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => error,
                    _ => continue,
                };
                if let Some(to) = to.filter(|_| error.ee_errno == Errno::EMSGSIZE as u32) {
                    if self.reports.len() == MAX_REPORTS {
                        self.reports.pop_front();
                    }
                    self.reports.push_back(TooBig { to, mtu_bytes: error.ee_info });
                }
            }
        }
        true
    }

    /// Returns the oldest report.
    pub fn poll(&mut self) -> Option<TooBig> {
        self.reports.pop_front()
    }
}
