//! Socket addresses: conversion from the kernel, and the IP version that a packet uses.

use nix::sys::socket::{AddressFamily, SockaddrLike, SockaddrStorage};
use std::net::{IpAddr, SocketAddr};

/// Returns true if packets to this address use IPv4; those to an IPv4-mapped address (`::ffff:a.b.c.d`) do, too.
pub(crate) fn uses_ipv4(to: SocketAddr) -> bool {
    match to {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(to) => to.ip().to_ipv4_mapped().is_some(),
    }
}

/// Converts an address from the kernel; `None` if it is not an IP address.
pub(super) fn of_storage(storage: &SockaddrStorage) -> Option<SocketAddr> {
    match storage.family()? {
        AddressFamily::Inet => {
            let address = storage.as_sockaddr_in()?;
            Some(SocketAddr::new(IpAddr::V4(address.ip()), address.port()))
        }
        AddressFamily::Inet6 => {
            let address = storage.as_sockaddr_in6()?;
            Some(SocketAddr::V6((*address).into()))
        }
        _ => None,
    }
}
