//! Non-blocking TCP sockets at the ends of a tunnel.

use super::{Delivery, Target};
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::PollFlags;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, setsockopt, socket, sockopt};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The maximum number of bytes read from a socket at once; they become one write of the flow.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// The maximum number of reads from one socket before the others have their turn.
const MAX_PIECES: usize = 4;

/// A listening port whose connections go to one target.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    pub(super) address: SocketAddr,
    target: Target,
}

impl Listener {
    pub(super) fn bind(at: SocketAddr, target: Target) -> io::Result<Listener> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Listener { address: listener.local_addr()?, listener, target })
    }

    /// Accepts the next waiting connection, if any.
    pub(super) fn accept(&self) -> Option<(TcpStream, Target)> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((stream, self.target.clone()))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Starts to connect to an address.
pub(super) fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd = socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
    match nix::sys::socket::connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(fd)),
        Err(error) => Err(error.into()),
    }
}

/// A TCP connection of this host.
#[derive(Debug)]
pub(super) struct LocalSocket {
    stream: TcpStream,
    pub(super) target: Target,
    /// True while the connection is being established.
    pub(super) is_connecting: bool,
    /// Bytes from the tunnel that are not written yet.
    pending: Bytes,
    /// True if the application has ended its direction.
    pub(super) has_ended: bool,
    /// Bytes sent by the application.
    pub(super) sent: u64,
    /// Bytes delivered to the application.
    pub(super) received: u64,
}

impl LocalSocket {
    pub(super) fn accepted(stream: TcpStream, target: Target) -> LocalSocket {
        // Applications that write small pieces want them to be sent at once.
        let _ = stream.set_nodelay(true);
        LocalSocket {
            stream,
            target,
            is_connecting: false,
            pending: Bytes::new(),
            has_ended: false,
            sent: 0,
            received: 0,
        }
    }

    pub(super) fn connecting(stream: TcpStream, target: Target) -> LocalSocket {
        LocalSocket { is_connecting: true, ..LocalSocket::accepted(stream, target) }
    }

    /// Returns the result of the attempt to connect.
    pub(super) fn finish_connecting(&mut self) -> io::Result<()> {
        self.is_connecting = false;
        self.stream.take_error()?.map_or(Ok(()), Err)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// The events to poll for, given `room` for bytes in the tunnel.
    pub(super) fn interest(&self, room: u64) -> PollFlags {
        if self.is_connecting {
            return PollFlags::POLLOUT;
        }
        let mut interest = PollFlags::empty();
        interest.set(PollFlags::POLLIN, room > 0 && !self.has_ended);
        interest.set(PollFlags::POLLOUT, !self.pending.is_empty());
        interest
    }

    /// Reads at most `room` bytes of the application and passes them to `deliver`. Returns true if the application has
    /// ended its direction.
    pub(super) fn read(
        &mut self,
        mut room: u64,
        buffer: &mut [u8],
        mut deliver: impl FnMut(Bytes),
    ) -> io::Result<bool> {
        for _ in 0..MAX_PIECES {
            let most = room.min(buffer.len() as u64) as usize;
            if most == 0 {
                break;
            }
            match self.stream.read(&mut buffer[..most]) {
                Ok(0) => {
                    self.has_ended = true;
                    return Ok(true);
                }
                Ok(count) => {
                    self.sent += count as u64;
                    room -= count as u64;
                    deliver(Bytes::copy_from_slice(&buffer[..count]));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Writes the data from `next` as far as the socket accepts it. `next` is called only after the previous data is
    /// written.
    pub(super) fn write(&mut self, mut next: impl FnMut() -> Delivery) -> io::Result<()> {
        if self.is_connecting {
            return Ok(());
        }
        loop {
            if self.pending.is_empty() {
                match next() {
                    Delivery::Bytes(bytes) => self.pending = bytes,
                    Delivery::Nothing => return Ok(()),
                    Delivery::End => {
                        // An error means that the application has closed its socket, which needs no end.
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

    /// Closes the connection with a reset, so that the application notices the failure.
    pub(super) fn reset(self) {
        let now = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        let _ = setsockopt(&self.stream, sockopt::Linger, &now);
    }
}
