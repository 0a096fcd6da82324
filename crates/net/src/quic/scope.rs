//! The scope of link-local addresses inside QUIC.
//!
//! A link-local IPv6 address is unique on its link only, so an address has the interface as its
//! scope (RFC 4007). quinn-proto compares addresses with their scope, but leaves the scope out of
//! the tokens of a Retry, so that no such token would be valid. Inside QUIC, the scope is therefore
//! a part of the address: bits 32 to 63 of a link-local address are zero (RFC 4291 section 2.5.6).

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The bits of the scope in an address.
const SCOPE_SHIFT: u32 = 64;
const SCOPE_BITS: u128 = (u32::MAX as u128) << SCOPE_SHIFT;

/// Returns the address that QUIC uses. Flow labels do not identify a host, so they are dropped.
pub(super) fn embedded(address: SocketAddr) -> SocketAddr {
    let SocketAddr::V6(v6) = address else { return address };
    let scope = u128::from(v6.scope_id()) << SCOPE_SHIFT;
    let bits = match v6.ip().is_unicast_link_local() {
        true => v6.ip().to_bits() & !SCOPE_BITS | scope,
        false => v6.ip().to_bits(),
    };
    SocketAddr::new(IpAddr::V6(Ipv6Addr::from_bits(bits)), v6.port())
}

/// Returns the address that sockets use.
pub(super) fn restored(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => {
            let bits = v6.ip().to_bits();
            let scope = ((bits & SCOPE_BITS) >> SCOPE_SHIFT) as u32;
            SocketAddrV6::new(Ipv6Addr::from_bits(bits & !SCOPE_BITS), v6.port(), 0, scope).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_of_several_interfaces_differ_inside_quic() {
        for text in ["[fe80::1:2%3]:7777", "[fe80::1:2%4294967295]:7777", "[fe80::1]:1", "[2001:db8::1]:1", "1.2.3.4:5"]
        {
            let address = text.parse().expect("an address");
            assert_eq!(restored(embedded(address)), address, "{text}");
        }
        let [one, other] = ["[fe80::1%3]:1", "[fe80::1%4]:1"].map(|text| embedded(text.parse().expect("an address")));
        assert_ne!(one, other);
        assert!(matches!(one, SocketAddr::V6(v6) if v6.scope_id() == 0));
    }
}
