//! Network namespaces: the identity of the current one, and whether a given one still exists.

use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};
use nix::{getsockopt_impl, sockopt_impl};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The socket option of include/uapi/asm-generic/socket.h (since Linux 5.14).
const SO_NETNS_COOKIE: libc::c_int = 71;

sockopt_impl!(
    /// The cookie of a socket's network namespace: a number that the kernel does not reuse until the machine restarts.
    Cookie,
    GetOnly,
    libc::SOL_SOCKET,
    SO_NETNS_COOKIE,
    u64
);

/// A network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// The inode number, as in `net:[4026531840]`. It can be reused once this namespace is gone.
    pub inode: u64,
    /// The kernel's cookie, which is never reused.
    pub cookie: u64,
}

impl Namespace {
    /// Returns the namespace of this process.
    pub fn current() -> Namespace {
        let inode = fs::metadata("/proc/self/ns/net").map(|file| file.ino()).unwrap_or_default();
        let socket = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None);
        let cookie = socket.and_then(|socket| getsockopt(&socket, Cookie)).unwrap_or_default();
        Namespace { inode, cookie }
    }

    /// Returns whether the namespace can still be entered.
    ///
    /// That is the case if a process or thread is in it or has it open, or if it is mounted, as `ip netns` does.
    pub fn exists(&self) -> bool {
        let current = Namespace::current();
        if current.inode == self.inode {
            // Equal inode numbers with different cookies: the number was reused.
            return current == *self;
        }
        let link = format!("net:[{}]", self.inode);
        let is_link_to_it = |path: &Path| fs::read_link(path).is_ok_and(|to| to.as_os_str() == link.as_str());
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        entries(Path::new("/proc")).filter(|process| process.join("ns").exists()).any(|process| {
            let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
            is_link_to_it(&process.join("ns/net"))
                || entries(&process.join("task")).any(|thread| is_link_to_it(&thread.join("ns/net")))
                || entries(&process.join("fd")).any(|open| is_link_to_it(&open))
                || mounts.contains(&link)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_exists_until_its_inode_number_is_reused() {
        let current = Namespace::current();
        assert!(current.exists() && current.cookie != 0);
        assert!(!Namespace { cookie: current.cookie + 1, ..current }.exists(), "the inode number was reused");
        assert!(!Namespace { inode: 1, cookie: 1 }.exists(), "no namespace has this inode number");
    }
}
