//! Configuration of a host on the wire, and the host that it makes.

use super::error::WireError;
use super::settings::Settings;
use crate::attempts::Limits;
use crate::flow::MAX_CLASSES;
use crate::host::{Host, HostError, Waiting};
use crate::identity::{Identity, Trusted};
use crate::limiter::Limiter;
use crate::line::LineSource;
use crate::node::{NodeConfig, NodeError};
use crate::quic::{DEFAULT_BATCH, QuicConfig};
use crate::route::{line_to, payload_of_route};
use crate::telemetry::TelemetryConfig;
use crate::udp::{Gso, UdpConfig};
use sparelane_core::Dur;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The treatment of peers whose key was removed from the trusted ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Revocation {
    /// Their associations end at once.
    #[default]
    End,
    /// No transfer or connection begins; the associations end when running transfers and connections have finished.
    Finish,
}

/// Configuration of a sender or receiver.
#[derive(Clone, Debug)]
pub struct WireConfig {
    /// This host's key.
    pub identity: Identity,
    /// The trusted peers.
    pub trusted: Trusted,
    /// The settings that belong to no other part.
    pub settings: Settings,
    /// Configuration of the node.
    pub node: NodeConfig,
    /// Configuration of the socket.
    pub udp: UdpConfig,
    /// The receive window of a flow, bytes; the default depends on the service.
    pub window_bytes: Option<u64>,
    /// The UDP payload of full packets, bytes.
    pub udp_payload_bytes: u16,
    /// The permissions of received files, in place of the sender's without the bits of the umask.
    pub file_mode: Option<u32>,
    /// Samples time series.
    pub has_series: bool,
    /// The file of a qlog of all flows.
    pub qlog: Option<PathBuf>,
}

impl WireConfig {
    /// Creates the default configuration for a host with this key that trusts these peers.
    pub fn new(identity: Identity, trusted: Trusted) -> WireConfig {
        WireConfig {
            identity,
            trusted,
            settings: Settings::default(),
            node: NodeConfig::default(),
            udp: UdpConfig::default(),
            window_bytes: None,
            udp_payload_bytes: 1452,
            file_mode: None,
            has_series: false,
            qlog: None,
        }
    }

    pub(super) fn stall_timeout(&self) -> Dur {
        dur(self.settings.stall_timeout)
    }

    /// The limits of attempts to reach a peer.
    pub(crate) fn limits(&self) -> Limits {
        Limits { connect_timeout: dur(self.settings.connect_timeout), retry: dur(self.settings.retry) }
    }

    /// The interval between checks of the stall timers.
    pub(super) fn stall_interval(&self) -> Duration {
        (self.settings.stall_timeout / 8).clamp(Duration::from_millis(10), Duration::from_secs(1))
    }

    pub(crate) fn bind(&self, at: SocketAddr, listens: bool) -> Result<Host, WireError> {
        self.bind_since(Instant::now(), at, listens)
    }

    /// Creates a host whose times are counted from `epoch`.
    pub(super) fn bind_since(&self, epoch: Instant, at: SocketAddr, listens: bool) -> Result<Host, WireError> {
        // There is one class for each code point.
        let classes = self.udp.dscp.len().min(MAX_CLASSES) as u8;
        let node = self.node_at(at);
        let needs = node.controller.needs(&node.registry, node.line_rate).map_err(NodeError::from);
        // A batch has one departure and one arrival time; some controllers need those of each segment.
        let one_by_one = needs.map_err(HostError::from)?.receive_time;
        if self.udp.gso == Gso::Require && (one_by_one || !self.udp.offload) {
            let lacks = "the controller, or --no-offload, needs single datagrams";
            return Err(HostError::Gso { address: at, lacks }.into());
        }
        let offload = self.udp.offload && !one_by_one;
        let batches = UdpConfig { offload, ..self.udp.clone() }.sends_batches();
        // Without batches, each datagram is sent by itself.
        let quic = QuicConfig {
            listens,
            first_contact: self.settings.first_contact,
            classes: classes.max(1),
            udp_payload_bytes: self.udp_payload_bytes,
            batch: self.batch(batches),
            idle_timeout: self.settings.idle_timeout,
            ..QuicConfig::new(self.identity.clone(), self.trusted.clone())
        };
        let node = NodeConfig { classes: classes.max(1), ..node };
        let mut host = Host::bind_since(epoch, at, UdpConfig { offload, ..self.udp.clone() }, quic, node)?;
        if let Some(rate) = self.settings.rate {
            host.limit_rate(rate);
        }
        host.set_waiting(if self.settings.busy_wait { Waiting::Busy } else { Waiting::Sleep });
        if self.has_series || self.qlog.is_some() {
            let log = self.qlog.as_ref().map(|path| {
                let file = File::create(path).map_err(|error| WireError::Log { path: path.clone(), error })?;
                let out: Box<dyn Write + Send> = Box::new(BufWriter::with_capacity(1 << 16, file));
                Ok::<_, WireError>((out, self.settings.qlog_events))
            });
            let interval = self.has_series.then_some(self.settings.sample_interval);
            host.enable_telemetry(TelemetryConfig { interval, log: log.transpose()? });
        }
        Ok(host)
    }

    /// The largest number of datagrams in a batch.
    fn batch(&self, has_batches: bool) -> usize {
        match self.settings.rate {
            _ if !has_batches => 1,
            Some(rate) => Limiter::batch(rate, self.udp_payload_bytes, DEFAULT_BATCH),
            None => DEFAULT_BATCH,
        }
    }

    /// Adapts this configuration to the route to `to`: packets are no larger than the route allows, and the line rate
    /// is that of its interface, unless it is set.
    ///
    /// # Errors
    /// There is no route.
    pub(crate) fn on_route(&self, to: SocketAddr) -> io::Result<WireConfig> {
        let fits = payload_of_route(to)?;
        Ok(WireConfig { udp_payload_bytes: self.udp_payload_bytes.min(fits), node: self.node_at(to), ..self.clone() })
    }

    /// Returns this configuration with the line rate of the interface that leads to `to`, unless the rate is set.
    /// Without a route, the rate is assumed.
    pub(crate) fn on_line(&self, to: SocketAddr) -> WireConfig {
        WireConfig { node: self.node_at(to), ..self.clone() }
    }

    /// Returns the node's configuration with the line rate of the interface for `address`, unless the rate is set or
    /// known already.
    fn node_at(&self, address: SocketAddr) -> NodeConfig {
        let is_known = self.node.line_source != LineSource::Assumed || address.ip().is_unspecified();
        let (line_rate, line_source) = match self.settings.line_rate {
            Some(rate) => (rate, LineSource::Set),
            None if is_known => (self.node.line_rate, self.node.line_source.clone()),
            None => line_to(address),
        };
        NodeConfig { line_rate, line_source, ..self.node.clone() }
    }
}

pub(super) fn dur(span: Duration) -> Dur {
    Dur::from_ns(span.as_nanos().min(u128::from(u64::MAX / 1001)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::ASSUMED_LINE_RATE;
    use sparelane_core::Rate;
    use std::net::Ipv4Addr;

    #[test]
    fn a_configured_line_rate_has_precedence_over_the_interfaces() {
        // The loopback interface has no rate.
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 7777));
        let mut config = WireConfig::new(Identity::generate().expect("a key"), Trusted::default());
        let node = config.on_route(to).expect("a route").node;
        assert_eq!((node.line_rate, node.line_source), (ASSUMED_LINE_RATE, LineSource::Assumed));
        config.settings.line_rate = Some(Rate::from_mbps(30));
        let node = config.on_route(to).expect("a route").node;
        assert_eq!((node.line_rate, node.line_source), (Rate::from_mbps(30), LineSource::Set));
    }
}
