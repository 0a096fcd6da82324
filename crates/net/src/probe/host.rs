//! Measurement of the path from a host with sockets to a listening receiver.

use super::{Driver, PathReport, ProbeError, ProbePlan, measure};
use crate::attempts::{Attempts, ConnectError, Failure, Limits, Request};
use crate::carrier::CloseReason;
use crate::host::{Host, HostError};
use crate::node::{Node, NodeError, NodeEvent};
use crate::quic::Quic;
use crate::route::any_address;
use crate::service::{WireConfig, WireError, no_route};
use crate::transfer::CODE_DONE;
use crate::udp::uses_ipv4;
use sparelane_core::{Dur, Time};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

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

fn without_route(to: SocketAddr, error: &io::Error) -> WireError {
    let failure = match no_route(to, error) {
        Ok(report) => Failure::Ended(CloseReason::Unreachable(report)),
        Err(error) => Failure::Refused { to, error },
    };
    ConnectError::Failed(vec![failure]).into()
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
    let routed = config.on_route(to).map_err(|error| without_route(to, &error))?;
    let host = routed.bind(any_address(to), false)?;
    let mut net = OnHost { host, header_bytes: if uses_ipv4(to) { 28 } else { 48 } };
    let mut attempts = Attempts::new(vec![to], Limits { retry: Dur::ZERO, ..config.limits() }, net.now());
    let mut begun = None;
    let association = loop {
        let now = net.now();
        match attempts.poll(now)? {
            Some(Request::Connect(to)) => begun = Some(net.host.node_mut().connect(now, to)?),
            Some(Request::Abandon) | None => {}
        }
        match net.host.next_event(Duration::from_millis(50))? {
            Some(NodeEvent::Opened { association, .. }) => break association,
            Some(NodeEvent::Closed { association, reason }) if Some(association) == begun => {
                attempts.handle_closed(net.now(), reason);
            }
            _ => {}
        }
        if !keep_going() {
            return Err(ProbeError::Stopped.into());
        }
    };
    let classes = net.host.node().config().classes;
    let report = measure(&mut net, association, classes, plan, keep_going);
    let now = net.host.now();
    net.host.node_mut().close(now, association, CODE_DONE, "the path is measured");
    net.host.flush(Duration::from_millis(200))?;
    let (sends, receives) = net.host.socket().offload();
    Ok((report?, Offload { sends, receives }))
}
