//! Where the two ends of a measurement are: on the loopback interface, or each in a network namespace of its own.

use nix::sched::{CloneFlags, setns};
use sparelane_core::Rate;
use sparelane_net::host::Waiting;
use sparelane_net::node::{ControllerChoice, NodeConfig};
use sparelane_net::quic::DEFAULT_BATCH;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One end.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its address; port 0 is any port.
    pub address: SocketAddr,
    /// The file of its network namespace, if it has one of its own.
    namespace: Option<PathBuf>,
}

impl Place {
    /// On the loopback interface of this namespace.
    pub fn loopback() -> Place {
        Place { address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), namespace: None }
    }

    /// In the namespace that `ip netns` knows by this name.
    pub fn in_namespace(name: &str, address: Ipv4Addr) -> Place {
        Place { address: SocketAddr::from((address, 0)), namespace: Some(Path::new("/run/netns").join(name)) }
    }

    /// Moves the calling thread there: what sockets it makes from now on are of that place.
    ///
    /// # Errors
    /// There is no such namespace, or this process may not enter it.
    pub fn enter(&self) -> Result<(), String> {
        let Some(path) = &self.namespace else { return Ok(()) };
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| told(&error))?;
        setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| told(&error))
    }
}

/// What is measured, and where.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The end that sends.
    pub sender: Place,
    /// The end that receives.
    pub receiver: Place,
    /// The settings of our frames.
    pub node: NodeConfig,
    /// The kernel gets so many datagrams at a time.
    pub batch: usize,
    /// How the sender waits for what is due.
    pub waits: Waiting,
    /// A flow is opened once nothing has happened for so long: what a path is found to do takes some round trips.
    pub settle: Duration,
}

impl Setup {
    /// On the loopback interface, with a tail that it does not hold up.
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

    /// Between two namespaces, as hosts send.
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
