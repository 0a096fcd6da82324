//! What this host knows of the way to a peer before anything is sent: whether there is one, how large its packets are, and how fast
//! the interface is.

use sparelane_core::Rate;
use std::fmt;

/// The rate of a line that nothing is known of.
pub const ASSUMED_LINE_RATE: Rate = Rate::from_gbps(1);

/// From where the rate of this host's line is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// It was set.
    Set,
    /// The kernel says so of this interface.
    Interface(String),
    /// It is not, and [`ASSUMED_LINE_RATE`] is taken for it.
    Assumed,
}

impl fmt::Display for LineSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineSource::Set => f.write_str("set"),
            LineSource::Interface(name) => write!(f, "interface {name}"),
            LineSource::Assumed => f.write_str("assumed"),
        }
    }
}

#[cfg(target_os = "linux")]
mod of_kernel {
    use super::{ASSUMED_LINE_RATE, LineSource};
    use crate::host::HostError;
    use crate::node::NodeConfig;
    use crate::service::{WireConfig, any_address, fitting_route};
    use nix::ifaddrs::getifaddrs;
    use sparelane_core::Rate;
    use std::net::{IpAddr, SocketAddr, UdpSocket};

    impl WireConfig {
        /// The same for whoever sends to this address: packets are no larger than the route there takes, and the line is the interface
        /// that leads there.
        ///
        /// # Errors
        /// There is no route.
        pub(crate) fn on_route(&self, to: SocketAddr) -> Result<WireConfig, HostError> {
            let udp_payload_bytes = self.udp_payload_bytes.min(fitting_route(to)?);
            Ok(WireConfig { udp_payload_bytes, node: self.node_at(to), ..self.clone() })
        }

        /// The settings of a node on the line of this address, unless its rate was set, or is known already.
        pub(crate) fn node_at(&self, address: SocketAddr) -> NodeConfig {
            let is_known = self.node.line_source != LineSource::Assumed || address.ip().is_unspecified();
            let (line_rate, line_source) = match self.line_rate {
                Some(rate) => (rate, LineSource::Set),
                None if is_known => (self.node.line_rate, self.node.line_source.clone()),
                None => line_of(address),
            };
            NodeConfig { line_rate, line_source, ..self.node.clone() }
        }
    }

    /// The rate of the interface by which this host reaches an address, or which has that address; and from where that is known.
    fn line_of(address: SocketAddr) -> (Rate, LineSource) {
        let connected =
            UdpSocket::bind(any_address(address)).and_then(|socket| socket.connect(address).map(|()| socket));
        let own = connected.and_then(|socket| socket.local_addr()).map(|own| own.ip().to_canonical());
        let name = own.ok().and_then(interface_of);
        let told = name.and_then(|name| speed_of(&name).map(|rate| (rate, LineSource::Interface(name))));
        told.unwrap_or((ASSUMED_LINE_RATE, LineSource::Assumed))
    }

    /// The interface that has this address.
    fn interface_of(own: IpAddr) -> Option<String> {
        let found = getifaddrs().ok()?.find(|one| {
            let address = one.address.as_ref();
            let by_ipv4 = address.and_then(|at| at.as_sockaddr_in()).map(|at| IpAddr::V4(at.ip()));
            by_ipv4.or_else(|| address.and_then(|at| at.as_sockaddr_in6()).map(|at| IpAddr::V6(at.ip()))) == Some(own)
        });
        found.map(|one| one.interface_name)
    }

    /// What the kernel says of an interface's rate; of virtual ones it may say nothing.
    fn speed_of(interface: &str) -> Option<Rate> {
        let text = std::fs::read_to_string(format!("/sys/class/net/{interface}/speed")).ok()?;
        text.trim().parse().ok().filter(|&mbps: &i64| mbps > 0).map(|mbps| Rate::from_mbps(mbps as u64))
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::identity::{Identity, Trusted};
        use std::net::Ipv4Addr;

        #[test]
        fn a_line_of_which_the_kernel_says_nothing_is_assumed_and_one_that_is_set_is_as_set() {
            // The loopback interface has no rate.
            let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 7777));
            assert_eq!(interface_of(IpAddr::V4(Ipv4Addr::LOCALHOST)).as_deref(), Some("lo"));
            let mut config = WireConfig::new(Identity::generate().expect("a key"), Trusted::default());
            let node = config.on_route(to).expect("a route").node;
            assert_eq!((node.line_rate, node.line_source), (ASSUMED_LINE_RATE, LineSource::Assumed));
            config.line_rate = Some(Rate::from_mbps(30));
            let node = config.on_route(to).expect("a route").node;
            assert_eq!((node.line_rate, node.line_source), (Rate::from_mbps(30), LineSource::Set));
        }

        #[test]
        fn what_the_kernel_says_of_interfaces_is_a_rate_or_nothing() {
            for one in getifaddrs().expect("interfaces") {
                assert!(speed_of(&one.interface_name).is_none_or(|rate| rate >= Rate::from_mbps(1)));
            }
            assert_eq!(speed_of("no-such-interface"), None);
        }
    }
}
