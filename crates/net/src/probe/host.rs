//! The path to a receiver that listens, from a host with sockets.

use super::{Drive, PathReport, ProbeError, ProbePlan, measure};
use crate::host::{Host, HostError};
use crate::node::{Node, NodeError, NodeEvent};
use crate::quic::Quic;
use crate::service::{WireConfig, WireError, any_address};
use crate::transfer::CODE_DONE;
use crate::udp::goes_by_ipv4;
use sparelane_core::Time;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What this host's kernel and interface do in batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Generic segmentation offload: batches are sent.
    pub sends: bool,
    /// Generic receive offload: batches are received.
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

impl Drive for OnHost {
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

/// Measures the path to the receiver at `to`, until `goes_on` says that nobody wants to know any more.
///
/// # Errors
/// This host cannot begin, or nobody answers, or the connection ends.
pub fn path_to(
    config: &WireConfig,
    to: SocketAddr,
    plan: ProbePlan,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<(PathReport, Offload), WireError> {
    // Where this host has no route, that is known at once.
    let host = config.on_route(to)?.bind(any_address(to), false)?;
    let mut net = OnHost { host, header_bytes: if goes_by_ipv4(to) { 28 } else { 48 } };
    let (began, now) = (Instant::now(), net.host.now());
    let association = net.host.node_mut().connect(now, to)?;
    loop {
        match net.host.next_event(Duration::from_millis(50))? {
            Some(NodeEvent::Opened { .. }) => break,
            Some(NodeEvent::Closed { reason, .. }) => return Err(ProbeError::Closed(reason.to_string()).into()),
            _ => {}
        }
        if began.elapsed() > config.connect_timeout {
            return Err(WireError::NoAnswer { to, after: config.connect_timeout });
        }
        if !goes_on() {
            return Err(ProbeError::Stopped.into());
        }
    }
    let classes = net.host.node().config().classes;
    let report = measure(&mut net, association, classes, plan, goes_on);
    let now = net.host.now();
    net.host.node_mut().close(now, association, CODE_DONE, "the path is measured");
    net.host.flush(Duration::from_millis(200))?;
    let (sends, receives) = net.host.socket().offload();
    Ok((report?, Offload { sends, receives }))
}
