//! TCP sockets at the ends of a tunnel, none of which ever blocks.

use super::{Taken, Target};
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, setsockopt, socket, sockopt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The most bytes that are taken from a socket at once: one write of its flow.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// The most pieces that one socket brings before the others have their turn.
const MOST_PIECES: usize = 4;

/// A port at which connections are taken for a target.
#[derive(Debug)]
pub(super) struct Accepting {
    listener: TcpListener,
    pub(super) address: SocketAddr,
    target: Target,
}

impl Accepting {
    pub(super) fn bind(at: SocketAddr, target: Target) -> io::Result<Accepting> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Accepting { address: listener.local_addr()?, listener, target })
    }

    /// The next connection that waits, if there is one.
    pub(super) fn accept(&self) -> Option<(TcpStream, Target)> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((stream, self.target.clone()))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Begins to connect.
pub(super) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd = socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
    match nix::sys::socket::connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(fd)),
        Err(error) => Err(error.into()),
    }
}

/// One TCP connection of this host.
#[derive(Debug)]
pub(super) struct Local {
    stream: TcpStream,
    pub(super) target: Target,
    /// It is not connected yet.
    pub(super) connects: bool,
    /// What was taken from the tunnel and is not written.
    pending: Bytes,
    /// The application has ended its direction.
    pub(super) has_ended: bool,
    /// Bytes that the application sent.
    pub(super) sent: u64,
    /// Bytes that it was given.
    pub(super) received: u64,
}

impl Local {
    pub(super) fn accepted(stream: TcpStream, target: Target) -> Local {
        // What applications write in small pieces, they want to be there.
        let _ = stream.set_nodelay(true);
        Local { stream, target, connects: false, pending: Bytes::new(), has_ended: false, sent: 0, received: 0 }
    }

    pub(super) fn connecting(stream: TcpStream, target: Target) -> Local {
        Local { connects: true, ..Local::accepted(stream, target) }
    }

    /// The attempt to connect is over: how?
    pub(super) fn finish_connecting(&mut self) -> io::Result<()> {
        self.connects = false;
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// What it waits for, where the tunnel has so much room.
    pub(super) fn wants(&self, room: u64) -> PollFlags {
        if self.connects {
            return PollFlags::POLLOUT;
        }
        let mut wants = PollFlags::empty();
        wants.set(PollFlags::POLLIN, room > 0 && !self.has_ended);
        wants.set(PollFlags::POLLOUT, !self.pending.is_empty());
        wants
    }

    /// Hands what the application has sent to `hand`, at most `room` bytes. Returns whether it has ended its direction.
    pub(super) fn take(&mut self, mut room: u64, scratch: &mut [u8], mut hand: impl FnMut(Bytes)) -> io::Result<bool> {
        for _ in 0..MOST_PIECES {
            let most = room.min(scratch.len() as u64) as usize;
            if most == 0 {
                break;
            }
            match self.stream.read(&mut scratch[..most]) {
                Ok(0) => {
                    self.has_ended = true;
                    return Ok(true);
                }
                Ok(count) => {
                    self.sent += count as u64;
                    room -= count as u64;
                    hand(Bytes::copy_from_slice(&scratch[..count]));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Writes what `take` gives, as far as the socket takes it. Nothing is taken before all of what was taken is written.
    pub(super) fn give(&mut self, mut take: impl FnMut() -> Taken) -> io::Result<()> {
        if self.connects {
            return Ok(());
        }
        loop {
            if self.pending.is_empty() {
                match take() {
                    Taken::Bytes(bytes) => self.pending = bytes,
                    Taken::Nothing => return Ok(()),
                    Taken::End => {
                        // Who has closed its socket meanwhile needs no end.
                        let _ = self.stream.shutdown(Shutdown::Write);
                        return Ok(());
                    }
                }
            }
            match self.stream.write(&self.pending) {
                Ok(count) => {
                    self.received += count as u64;
                    let _ = self.pending.split_to(count);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the connection at once, so that the application sees that it is broken.
    pub(super) fn reset(self) {
        let now = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        let _ = setsockopt(&self.stream, sockopt::Linger, &now);
    }
}
