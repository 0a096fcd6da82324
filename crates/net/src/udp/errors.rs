//! What routers and peers say of datagrams that a socket has sent: the kernel's queue of errors (IP_RECVERR, IPV6_RECVERR). Of these,
//! that a packet is too large for the next link is kept (RFC 1191, RFC 8201), for whoever can send smaller ones.

use super::address;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// So many errors are read at a time; others wait.
const MOST_AT_ONCE: usize = 64;

/// So many notes are kept; then the oldest goes.
const MOST_NOTES: usize = 16;

/// A packet was too large for a link on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// Where it was to go.
    pub to: SocketAddr,
    /// The largest IP packet that the link takes, bytes, as the router says: who it is, nobody has proved.
    pub mtu_bytes: u32,
}

/// The queue of errors of a socket.
#[derive(Debug)]
pub(super) struct Errors {
    notes: VecDeque<TooBig>,
    control: Vec<u8>,
}

impl Errors {
    /// From now on the kernel keeps what is said of datagrams of this socket.
    pub fn of(fd: &OwnedFd, is_ipv4: bool) -> Errors {
        // A kernel that cannot is served without: the black hole detector is left.
        // A socket of IPv6 has peers by IPv4, too.
        let _ = setsockopt(fd, sockopt::Ipv4RecvErr, &true);
        if !is_ipv4 {
            let _ = setsockopt(fd, sockopt::Ipv6RecvErr, &true);
        }
        // An error with two addresses, and what comes with every datagram.
        Errors { notes: VecDeque::new(), control: nix::cmsg_space!(TimeSpec, i32, i32, [u8; 128]) }
    }

    /// Reads what there is. Returns whether there was something: then an error that a call has just given is that of an earlier datagram,
    /// most likely, and says nothing of the call.
    pub fn read(&mut self, fd: &OwnedFd) -> bool {
        for count in 0..MOST_AT_ONCE {
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let message = recvmsg::<SockaddrStorage>(fd.as_raw_fd(), &mut [], Some(&mut self.control), flags);
            let Ok(message) = message else { return count > 0 };
            let to = message.address.as_ref().and_then(address);
            let controls = message.cmsgs().into_iter().flatten();
            for control in controls {
                let error = match control {
                    ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => error,
                    _ => continue,
                };
                if let Some(to) = to.filter(|_| error.ee_errno == Errno::EMSGSIZE as u32) {
                    if self.notes.len() == MOST_NOTES {
                        self.notes.pop_front();
                    }
                    self.notes.push_back(TooBig { to, mtu_bytes: error.ee_info });
                }
            }
        }
        true
    }

    /// The oldest note.
    pub fn poll(&mut self) -> Option<TooBig> {
        self.notes.pop_front()
    }
}
