//! The route to a peer, as the kernel knows it before anything is sent: the packet size and the interface's rate.

use crate::line::{ASSUMED_LINE_RATE, LineSource};
use crate::quic::UDP_PAYLOAD_BYTES;
use crate::udp::uses_ipv4;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{getsockopt, sockopt};
use sparelane_core::Rate;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Returns the wildcard address of the family of `to`, with any port.
pub(crate) fn any_address(to: SocketAddr) -> SocketAddr {
    if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() }
}

/// Connects a socket to `to`, so that the kernel chooses the route.
fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(any_address(to))?;
    socket.connect(to)?;
    Ok(socket)
}

/// Returns the largest UDP payload that fits the route to `to`: the MTU of the interface, or a smaller path MTU that a
/// router has reported within the last minutes.
///
/// # Errors
/// There is no route.
pub(crate) fn payload_of_route(to: SocketAddr) -> io::Result<u16> {
    let socket = connected(to)?;
    // nix cannot read the path MTU of an IPv6 socket.
    let mtu_bytes = getsockopt(&socket, sockopt::IpMtu).ok().filter(|_| uses_ipv4(to));
    Ok(mtu_bytes.map_or(u16::MAX, |bytes| fitting_payload(to, bytes.max(0) as u32)))
}

/// Returns the UDP payload of IP packets of `mtu_bytes` to `to`, within the range that QUIC allows. If even QUIC's
/// smallest packet is larger, the kernel fragments it.
pub(crate) fn fitting_payload(to: SocketAddr, mtu_bytes: u32) -> u16 {
    let headers_bytes = if uses_ipv4(to) { 28 } else { 48 };
    let allowed = UDP_PAYLOAD_BYTES;
    let fits = mtu_bytes.saturating_sub(headers_bytes).clamp((*allowed.start()).into(), (*allowed.end()).into());
    fits as u16
}

/// Returns the rate of the interface that leads to `address`, or that has it, and how that rate is known.
pub(crate) fn line_to(address: SocketAddr) -> (Rate, LineSource) {
    let own = connected(address).and_then(|socket| socket.local_addr()).map(|own| own.ip().to_canonical());
    let name = own.ok().and_then(interface_of);
    let reported = name.and_then(|name| speed_of(&name).map(|rate| (rate, LineSource::Interface(name))));
    reported.unwrap_or((ASSUMED_LINE_RATE, LineSource::Assumed))
}

/// Returns the name of the interface with the address `own`.
fn interface_of(own: IpAddr) -> Option<String> {
    let found = getifaddrs().ok()?.find(|one| {
        let address = one.address.as_ref();
        let by_ipv4 = address.and_then(|at| at.as_sockaddr_in()).map(|at| IpAddr::V4(at.ip()));
        by_ipv4.or_else(|| address.and_then(|at| at.as_sockaddr_in6()).map(|at| IpAddr::V6(at.ip()))) == Some(own)
    });
    found.map(|one| one.interface_name)
}

/// Returns the rate that the kernel reports for an interface; virtual ones may have none.
fn speed_of(interface: &str) -> Option<Rate> {
    let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
    text.trim().parse().ok().filter(|&mbps: &i64| mbps > 0).map(|mbps| Rate::from_mbps(mbps as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_no_rate_and_its_line_is_assumed() {
        assert_eq!(interface_of(IpAddr::V4(Ipv4Addr::LOCALHOST)).as_deref(), Some("lo"));
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 7777));
        assert_eq!(line_to(to), (ASSUMED_LINE_RATE, LineSource::Assumed));
    }

    #[test]
    fn the_kernel_reports_a_rate_or_none_for_each_interface() {
        for one in getifaddrs().expect("interfaces") {
            assert!(speed_of(&one.interface_name).is_none_or(|rate| rate >= Rate::from_mbps(1)));
        }
        assert_eq!(speed_of("no-such-interface"), None);
    }
}
