//! Devices that another part of the process opened, handed over by a socket (SCM_RIGHTS, unix(7)).

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// The end of the socket at which devices come out.
#[derive(Debug)]
pub struct Handover(UnixStream);

impl Handover {
    /// This end, and the descriptor of the other, which is the caller's to close.
    ///
    /// # Errors
    /// There can be no socket.
    pub fn new() -> io::Result<(Handover, RawFd)> {
        let (own, other) = UnixStream::pair()?;
        Ok((Handover(own), other.into_raw_fd()))
    }

    /// Takes the device that was sent with the next byte.
    ///
    /// # Errors
    /// No device was sent, or the other end is closed.
    pub fn take(&self) -> io::Result<OwnedFd> {
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
