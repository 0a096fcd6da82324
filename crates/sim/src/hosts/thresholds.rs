//! The slow-start thresholds that flows leave to later flows between the same hosts.
//!
//! A flow is closed once none of its packets is in flight, and engines may learn of its last dropped packet at
//! different times, though before the next flow starts. Flows that ended therefore wait until then, and take effect in
//! the order in which they were complete. All engines thus give the same results.

use sparelane_core::Time;
use sparelane_transport::{CachedThreshold, LastWindow, Sender};
use std::collections::BTreeMap;

/// The cache of all hosts.
#[derive(Debug, Default)]
pub(crate) struct Thresholds {
    /// The thresholds by sending and receiving host.
    cached: BTreeMap<(u32, u32), CachedThreshold>,
    /// Flows that ended since the last start of a flow.
    ended: Vec<Ended>,
}

/// A flow that ended. The order of fields is that in which flows take effect.
#[derive(Debug)]
struct Ended {
    finish: Time,
    flow: u32,
    hosts: (u32, u32),
    window: LastWindow,
}

impl Thresholds {
    /// Notes that `flow` between two hosts, which was complete at `finish`, has ended.
    pub(crate) fn end(&mut self, finish: Time, flow: u32, hosts: (u32, u32), sender: &Sender) {
        if let Some(window) = LastWindow::of(sender) {
            self.ended.push(Ended { finish, flow, hosts, window });
        }
    }

    /// Returns the threshold in bytes of a flow that starts, or `None` if it is to keep its own.
    pub(crate) fn start(&mut self, hosts: (u32, u32), mss_bytes: u64) -> Option<u64> {
        self.ended.sort_by_key(|ended| (ended.finish, ended.flow));
        for Ended { hosts, window, .. } in self.ended.drain(..) {
            self.cached.entry(hosts).or_default().add(window);
        }
        self.cached.get(&hosts)?.bytes(mss_bytes)
    }
}
