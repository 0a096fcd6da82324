//! The places of the two ends of a measurement: the loopback interface, or a network namespace for each.

use nix::sched::{CloneFlags, setns};
use sparelane_core::Rate;
use sparelane_net::host::Waiting;
use sparelane_net::node::{ControllerChoice, NodeConfig};
use sparelane_net::quic::DEFAULT_BATCH;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The place of one end.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its address; port 0 is any port.
    pub address: SocketAddr,
    /// The file of its network namespace, if it has its own.
    namespace: Option<PathBuf>,
}

impl Place {
    /// The loopback interface of this namespace.
    pub fn loopback() -> Place {
        Place { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), namespace: None }
    }

    /// The namespace with this name in `ip netns`.
    pub fn in_namespace(name: &str, address: Ipv4Addr) -> Place {
        Place { address: SocketAddr::from((address, 0)), namespace: Some(Path::new("/run/netns").join(name)) }
    }

    /// Moves the calling thread to this place, so that it owns the sockets opened from now on.
    ///
    /// # Errors
    /// The namespace does not exist, or may not be entered.
    pub fn enter(&self) -> Result<(), String> {
        let Some(path) = &self.namespace else { return Ok(()) };
        let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| describe(&error))?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| describe(&error))
    }
}

/// The configuration of a measurement.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The place of the sender.
    pub sender: Place,
    /// The place of the receiver.
    pub receiver: Place,
    /// The configuration of the nodes.
    pub node: NodeConfig,
    /// The datagrams of a batch.
    pub batch: usize,
    /// How the sender waits for timers.
    pub waits: Waiting,
    /// The time without events before the flow opens. The discovery of the path takes some round trips.
    pub settle: Duration,
}

impl Setup {
    /// A measurement on the loopback interface, with a tail fast enough for it.
    pub fn loopback(controller: ControllerChoice, batch: usize) -> Setup {
        let mut node = NodeConfig { controller, line_rate: Rate::from_gbps(10), ..NodeConfig::default() };
        node.tail.rate = Rate::from_gbps(10);
        Setup {
            sender: Place::loopback(),
            receiver: Place::loopback(),
            node,
            batch,
            waits: Waiting::Sleep,
            settle: Duration::ZERO,
        }
    }

    /// A measurement between two namespaces, with the defaults of a host.
    pub fn namespaces(sender: &str, receiver: &str, address: Ipv4Addr, controller: ControllerChoice) -> Setup {
        Setup {
            sender: Place::in_namespace(sender, Ipv4Addr::UNSPECIFIED),
            receiver: Place::in_namespace(receiver, address),
            node: NodeConfig { controller, ..NodeConfig::default() },
            batch: DEFAULT_BATCH,
            waits: Waiting::Sleep,
            settle: Duration::from_millis(200),
        }
    }
}
