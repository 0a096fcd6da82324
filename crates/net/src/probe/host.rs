//! Measurement of the path from a host with sockets to a listening receiver.

use super::{Driver, PathReport, ProbeError, ProbePlan, measure};
use crate::host::{Host, HostError};
use crate::node::{Node, NodeError, NodeEvent};
use crate::quic::Quic;
use crate::route::any_address;
use crate::service::{WireConfig, WireError};
use crate::transfer::CODE_DONE;
use crate::udp::uses_ipv4;
use sparelane_core::Time;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Support of batches by this host's kernel and interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Batches are sent (generic segmentation offload).
    pub sends: bool,
    /// Batches are received (generic receive offload).
    pub receives: bool,
}

struct OnHost {
    host: Host,
    header_bytes: u64,
}

impl From<NodeError> for WireError {
    fn from(error: NodeError) -> WireError {
        HostError::from(error).into()
    }
}

impl Driver for OnHost {
    type Error = WireError;

    fn now(&self) -> Time {
        self.host.now()
    }

    fn node_mut(&mut self) -> &mut Node<Quic> {
        self.host.node_mut()
    }

    fn next_event_until(&mut self, until: Time) -> Result<Option<NodeEvent>, WireError> {
        let at_most = Duration::from_nanos(until.saturating_since(self.host.now()).as_ps() / 1000);
        Ok(self.host.next_event(at_most)?)
    }

    fn header_bytes(&self) -> u64 {
        self.header_bytes
    }
}

/// Measures the path to the receiver at `to`, until `keep_going` returns false.
///
/// # Errors
/// The host cannot be created, the peer does not answer, or the connection ends.
pub fn path_to(
    config: &WireConfig,
    to: SocketAddr,
    plan: ProbePlan,
    keep_going: &mut dyn FnMut() -> bool,
) -> Result<(PathReport, Offload), WireError> {
    // Fails at once without a route.
    let host = config.on_route(to)?.bind(any_address(to), false)?;
    let mut net = OnHost { host, header_bytes: if uses_ipv4(to) { 28 } else { 48 } };
    let (began, now) = (Instant::now(), net.host.now());
    let association = net.host.node_mut().connect(now, to)?;
    loop {
        match net.host.next_event(Duration::from_millis(50))? {
            Some(NodeEvent::Opened { .. }) => break,
            Some(NodeEvent::Closed { reason, .. }) => return Err(ProbeError::Closed(reason.to_string()).into()),
            _ => {}
        }
        if began.elapsed() > config.settings.connect_timeout {
            return Err(WireError::NoAnswer { to, after: config.settings.connect_timeout });
        }
        if !keep_going() {
            return Err(ProbeError::Stopped.into());
        }
    }
    let classes = net.host.node().config().classes;
    let report = measure(&mut net, association, classes, plan, keep_going);
    let now = net.host.now();
    net.host.node_mut().close(now, association, CODE_DONE, "the path is measured");
    net.host.flush(Duration::from_millis(200))?;
    let (sends, receives) = net.host.socket().offload();
    Ok((report?, Offload { sends, receives }))
}
