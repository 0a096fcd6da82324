//! Network namespaces: which one this is, and whether another still exists.

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};
use nix::{getsockopt_impl, sockopt_impl};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Where it stands in include/uapi/asm-generic/socket.h (since Linux 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;

sockopt_impl!(
    /// What the kernel knows a socket's network namespace by: a number that no other gets until the machine starts anew.
    Cookie,
    GetOnly,
    libc::SOL_SOCKET,
    SO_NETNS_COOKIE,
    u64
);

/// A network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// The number that people see, as in `net:[4026531840]`. Another gets it when this namespace is gone.
    pub inode: u64,
    /// The number that no other gets.
    pub cookie: u64,
}

impl Namespace {
    /// That of this process.
    pub fn this() -> Namespace {
        let inode = fs::metadata("/proc/self/ns/net").map(|file| file.ino()).unwrap_or_default();
        let socket = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
        let cookie = socket.and_then(|socket| getsockopt(&socket, Cookie)).unwrap_or_default();
        Namespace { inode, cookie }
    }

    /// Whether anybody can still get there: a process or thread is in it, or has it open, or it has a place among the files, as
    /// those of `ip netns` have.
    pub fn exists(&self) -> bool {
        let this = Namespace::this();
        if this.inode == self.inode {
            return this == *self;
        }
        let link = format!("net:[{}]", self.inode);
        let leads_there = |path: &Path| fs::read_link(path).is_ok_and(|to| to.as_os_str() == link.as_str());
        let names = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        names(Path::new("/proc")).filter(|process| process.join("ns").exists()).any(|process| {
            let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            leads_there(&process.join("ns/net"))
                || names(&process.join("task")).any(|thread| leads_there(&thread.join("ns/net")))
                || names(&process.join("fd")).any(|open| leads_there(&open))
                || mounts.contains(&link)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_exists_until_its_number_is_anothers() {
        let this = Namespace::this();
        assert!(this.exists() && this.cookie != 0);
        assert!(!Namespace { cookie: this.cookie + 1, ..this }.exists(), "another has its number now");
        assert!(!Namespace { inode: 1, cookie: 1 }.exists(), "nobody has that number");
    }
}
