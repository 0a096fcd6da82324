//! Receives open devices over a Unix socket (SCM_RIGHTS, unix(7)).
//!
//! The caller opens each device inside the network namespace of its host, and sends the descriptor to this crate. To
//! adopt a descriptor by its bare number would need unsafe code.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// The receiving end of the socket.
#[derive(Debug)]
pub struct Handover(UnixStream);

impl Handover {
    /// Creates a pair of sockets. Returns the receiving end, and the descriptor of the sending end, which the caller
    /// must close.
    ///
    /// # Errors
    /// The sockets cannot be created.
    pub fn new() -> io::Result<(Handover, RawFd)> {
        let (own, other) = UnixStream::pair()?;
        Ok((Handover(own), other.into_raw_fd()))
    }

    /// Receives the device that was sent with the next byte. Waits for it if necessary.
    ///
    /// # Errors
    /// No device was sent, or the other end is closed.
    pub fn receive(&self) -> io::Result<OwnedFd> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        recvmsg(&self.0, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let sent = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut devices) => devices.next(),
            _ => None,
        });
        sent.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no device was handed over"))
    }
}
