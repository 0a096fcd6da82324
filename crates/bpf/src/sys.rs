//! The system call bpf(2): the one place where this crate leaves what the compiler can check.
//!
//! Attributes are written field by field into a zeroed buffer at the offsets of `union bpf_attr` (include/uapi/linux/bpf.h),
//! which are part of the kernel's stable interface. Buffers that the kernel reads or writes are borrowed by [`Attributes`] for
//! as long as it lives, and the call takes them as they are: no pointer outlives its buffer.

#![allow(
    unsafe_code,
    reason = "no crate wraps bpf(2) without libbpf and libelf, C libraries that users would have to have"
)]

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Commands of bpf(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Command {
    /// Makes a map.
    MapCreate = 0,
    /// Reads an element.
    MapLookup = 1,
    /// Writes an element.
    MapUpdate = 2,
    /// Loads a program.
    ProgramLoad = 5,
    /// Pins an object.
    Pin = 6,
    /// A program, by identity.
    ProgramById = 13,
    /// A map, by identity.
    MapById = 14,
    /// What an object is.
    Info = 15,
    /// Loads type information.
    BtfLoad = 18,
    /// Takes an element out.
    MapTake = 21,
    /// Lets nobody write a map any more.
    MapFreeze = 22,
    /// Attaches.
    LinkCreate = 28,
    /// A link, by identity.
    LinkById = 30,
    /// The next link's identity.
    NextLink = 31,
    /// Detaches a link that others may hold.
    LinkDetach = 34,
}

/// As long as `union bpf_attr` is in Linux 6.10; later kernels take a shorter one.
const ATTRIBUTES_BYTES: usize = 152;

/// The attributes of one call, which borrows what they point to.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    bytes: [u8; ATTRIBUTES_BYTES],
    /// One past the last byte that was set.
    used: usize,
    buffers: PhantomData<&'a mut [u8]>,
}

impl Default for Attributes<'_> {
    fn default() -> Self {
        Attributes::new()
    }
}

impl<'a> Attributes<'a> {
    /// All zero.
    pub fn new() -> Attributes<'a> {
        Attributes { bytes: [0; ATTRIBUTES_BYTES], used: 0, buffers: PhantomData }
    }

    fn put(mut self, offset: usize, bytes: &[u8]) -> Attributes<'a> {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.used = self.used.max(offset + bytes.len());
        self
    }

    /// Sets a field of 32 bits.
    #[must_use]
    pub fn u32(self, offset: usize, value: u32) -> Attributes<'a> {
        self.put(offset, &value.to_ne_bytes())
    }

    /// Sets a field of 64 bits.
    #[must_use]
    pub fn u64(self, offset: usize, value: u64) -> Attributes<'a> {
        self.put(offset, &value.to_ne_bytes())
    }

    /// Sets a descriptor.
    #[must_use]
    pub fn fd(self, offset: usize, fd: BorrowedFd<'a>) -> Attributes<'a> {
        self.put(offset, &fd.as_raw_fd().to_ne_bytes())
    }

    /// Sets a name, of which 15 bytes are kept.
    #[must_use]
    pub fn name(self, offset: usize, name: &str) -> Attributes<'a> {
        let length = name.len().min(15);
        self.put(offset, &name.as_bytes()[..length])
    }

    /// Points to what the kernel reads.
    #[must_use]
    pub fn input(self, offset: usize, bytes: &'a [u8]) -> Attributes<'a> {
        self.u64(offset, bytes.as_ptr() as u64)
    }

    /// Points to what the kernel writes, and to nothing beyond it.
    #[must_use]
    pub fn output(self, offset: usize, bytes: &'a mut [u8]) -> Attributes<'a> {
        self.u64(offset, bytes.as_mut_ptr() as u64)
    }

    /// The call. What it returns is a descriptor or zero, as the command has it.
    fn call(&mut self, command: Command) -> io::Result<i64> {
        let size = self.used.next_multiple_of(8);
        // SAFETY: the buffer is longer than `size`, and every address in it is of a buffer that `self` borrows; callers give
        // those the sizes that they tell the kernel.
        let answer =
            unsafe { nix::libc::syscall(nix::libc::SYS_bpf, command as i32, self.bytes.as_mut_ptr(), size as u32) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
    }

    /// Calls for an effect.
    pub fn run(mut self, command: Command) -> io::Result<()> {
        self.call(command).map(|_| ())
    }

    /// Calls for an identity, which the kernel writes at offset 4.
    pub fn run_for_identity(mut self, command: Command) -> io::Result<u32> {
        self.used = self.used.max(8);
        self.call(command)?;
        Ok(u32::from_ne_bytes([self.bytes[4], self.bytes[5], self.bytes[6], self.bytes[7]]))
    }

    /// Calls for a descriptor. The kernel sets close-on-exec.
    pub fn run_for_fd(mut self, command: Command) -> io::Result<OwnedFd> {
        let fd = self.call(command)?;
        // SAFETY: the kernel has just made this descriptor for us, and nobody else has it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}

/// As long as `struct bpf_prog_info` and its like are for what is read of them.
pub const INFO_BYTES: usize = 256;

/// What an object is, as the kernel describes it.
pub fn info(fd: BorrowedFd<'_>) -> io::Result<Vec<u8>> {
    let mut info = vec![0; INFO_BYTES];
    Attributes::new().fd(0, fd).u32(4, INFO_BYTES as u32).output(8, &mut info).run(Command::Info)?;
    Ok(info)
}

/// The identities of the maps that a program uses, 16 at most.
pub fn maps_of(program: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    const MOST: usize = 16;
    let (mut ids, mut asked) = ([0u32; MOST], vec![0; INFO_BYTES]);
    asked[52..56].copy_from_slice(&(MOST as u32).to_ne_bytes());
    asked[56..64].copy_from_slice(&(ids.as_mut_ptr() as u64).to_ne_bytes());
    Attributes::new().fd(0, program).u32(4, INFO_BYTES as u32).output(8, &mut asked).run(Command::Info)?;
    let count = u32::from_ne_bytes([asked[52], asked[53], asked[54], asked[55]]) as usize;
    Ok(ids[..count.min(MOST)].to_vec())
}
