//! The memory of received data, accounted in one place: for each association, for each key and for the host.
//!
//! Received data stays in memory until it is in sequence and the application has read it, so peers decide how much it
//! is. Half of the memory is shared: a key may hold as much as is free, but not more than its own limit, so that keys
//! that arrive together share equally (dynamic thresholds; Choudhury and Hahne, IEEE/ACM Transactions on Networking
//! 6(2), 1998). The other half is reserved: each key may hold its part of it, however much others hold. Beyond its
//! limit, a key's windows close: its segments are dropped as if the network had lost them.
//!
//! The flows that a key has open to this node, and the control data that waits for it, are limited over all of its
//! associations, too.

use super::config::NodeConfig;
use crate::identity::Fingerprint;
use sparelane_core::{Dur, Time};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// The time after which an association may be ended for its memory, if the application has read nothing from it.
pub(super) const UNREAD_TIMEOUT: Dur = Dur::from_secs(30);

/// The number of keys among which half of the memory is divided: as many as there can be associations.
const MAX_KEYS: u64 = 1000;

/// The memory of a flow beside its data, bytes.
const FLOW_BYTES: u64 = 2000;

/// The maximum size of control data that waits for one association, bytes.
const CONTROL_PER_ASSOCIATION: u64 = 4 << 20;

/// The maximum size of control data that waits for all associations of a key, bytes.
const CONTROL_PER_KEY: u64 = 16 << 20;

/// The size of control data that waits for all peers, bytes; shared by the keys as the memory of received data is.
const CONTROL_SHARED: u64 = 128 << 20;

/// The part of a key, however much control data waits for others.
const CONTROL_RESERVED: u64 = 256 << 10;

/// Totals of a key, or of the host.
#[derive(Debug, Default)]
struct Account {
    /// The memory of received data and flows, bytes.
    bytes: AtomicU64,
    /// The number of flows to this node.
    flows: AtomicU64,
    /// Control data that waits for the peer, bytes.
    control: AtomicU64,
}

/// The accounts of a host.
#[derive(Debug, Default)]
pub(super) struct Budget {
    host: Arc<Account>,
    keys: BTreeMap<Fingerprint, Weak<Account>>,
}

impl Budget {
    /// Opens the account of a new association.
    pub(super) fn open(&mut self, peer: Fingerprint) -> Held {
        self.keys.retain(|_, account| account.strong_count() > 0);
        let known = self.keys.get(&peer).and_then(Weak::upgrade);
        let key = known.unwrap_or_default();
        self.keys.insert(peer, Arc::downgrade(&key));
        Held { peer, bytes: 0, flows: 0, control: 0, unread_since: None, key, host: Arc::clone(&self.host) }
    }

    /// The bytes of all associations.
    pub(super) fn bytes(&self) -> u64 {
        self.host.bytes.load(Relaxed)
    }
}

/// The received bytes of an association that are in memory. They also count for its key and for the host.
#[derive(Debug)]
pub(super) struct Held {
    peer: Fingerprint,
    bytes: u64,
    /// The number of flows to this node.
    flows: u64,
    /// Control data that waits for the peer, bytes.
    control: u64,
    /// The time of the first arrival since the application has read.
    unread_since: Option<Time>,
    key: Arc<Account>,
    host: Arc<Account>,
}

impl Held {
    /// The peer's key.
    pub(super) fn peer(&self) -> Fingerprint {
        self.peer
    }

    /// The bytes of this association.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns true if a segment of `bytes` may be stored. The next segment in sequence is accepted up to twice the
    /// limit of the association, and other segments up to half the limits of the key and the host: the next one is what
    /// lets the application read on.
    pub(super) fn has_room(&self, bytes: u64, is_next: bool, config: &NodeConfig) -> bool {
        let of_key = self.share(config);
        let (own, of_key) =
            if is_next { (config.held_bytes.saturating_mul(2), of_key) } else { (config.held_bytes, of_key / 2) };
        self.bytes + bytes <= own && self.key.bytes.load(Relaxed) + bytes <= of_key
    }

    /// The memory that the key may have now, bytes.
    fn share(&self, config: &NodeConfig) -> u64 {
        let shared = config.memory_bytes / 2;
        let reserved = config.memory_bytes / 2 / MAX_KEYS;
        shared.saturating_sub(self.host.bytes.load(Relaxed)).max(reserved).min(config.memory_per_key_bytes)
    }

    /// Returns true if the key may open one more flow. Flows leave half of the key's memory to data.
    pub(super) fn has_room_for_flow(&self, config: &NodeConfig) -> bool {
        let flows = self.key.flows.load(Relaxed);
        flows == 0 || flows < config.max_flows_per_key as u64 && (flows + 1) * FLOW_BYTES <= self.share(config) / 2
    }

    /// Counts a new flow to this node.
    pub(super) fn add_flow(&mut self) {
        self.flows += 1;
        for account in [&self.key, &self.host] {
            account.flows.fetch_add(1, Relaxed);
            account.bytes.fetch_add(FLOW_BYTES, Relaxed);
        }
    }

    /// Counts flows that have ended.
    pub(super) fn free_flows(&mut self, flows: u64) {
        self.flows -= flows;
        for account in [&self.key, &self.host] {
            account.flows.fetch_sub(flows, Relaxed);
            account.bytes.fetch_sub(flows * FLOW_BYTES, Relaxed);
        }
    }

    /// Returns true if `bytes` more of control data may wait for the peer.
    pub(super) fn has_room_for_control(&self, bytes: u64) -> bool {
        let shared = CONTROL_SHARED.saturating_sub(self.host.control.load(Relaxed));
        self.control + bytes <= CONTROL_PER_ASSOCIATION
            && self.key.control.load(Relaxed) + bytes <= shared.clamp(CONTROL_RESERVED, CONTROL_PER_KEY)
    }

    /// Counts control data that waits for the peer.
    pub(super) fn add_control(&mut self, bytes: u64) {
        self.control += bytes;
        self.key.control.fetch_add(bytes, Relaxed);
        self.host.control.fetch_add(bytes, Relaxed);
    }

    /// Counts control data that the carrier has accepted, or that was discarded.
    pub(super) fn free_control(&mut self, bytes: u64) {
        self.control -= bytes;
        self.key.control.fetch_sub(bytes, Relaxed);
        self.host.control.fetch_sub(bytes, Relaxed);
    }

    /// Counts stored bytes.
    pub(super) fn add(&mut self, now: Time, bytes: u64) {
        self.unread_since.get_or_insert(now);
        self.bytes += bytes;
        self.key.bytes.fetch_add(bytes, Relaxed);
        self.host.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that the application has read.
    pub(super) fn read(&mut self, bytes: u64) {
        self.unread_since = None;
        self.free(bytes);
    }

    /// Counts bytes that were discarded.
    pub(super) fn free(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.key.bytes.fetch_sub(bytes, Relaxed);
        self.host.bytes.fetch_sub(bytes, Relaxed);
    }

    /// Returns true if data is in memory and the application has read none of it for long.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        self.bytes > 0 && self.unread_since.is_some_and(|since| now.saturating_since(since) >= UNREAD_TIMEOUT)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.free(self.bytes);
        self.free_flows(self.flows);
        self.free_control(self.control);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn config() -> NodeConfig {
        let (held_bytes, memory_bytes, memory_per_key_bytes) = (64 * MIB, 1024 * MIB, 256 * MIB);
        NodeConfig { held_bytes, memory_bytes, memory_per_key_bytes, ..NodeConfig::default() }
    }

    fn key(number: u8) -> Fingerprint {
        Fingerprint::of(&[number])
    }

    /// Fills an account with segments in sequence until none is accepted.
    fn fill(held: &mut Held, config: &NodeConfig) {
        while held.has_room(MIB / 16, true, config) {
            held.add(Time::ZERO, MIB / 16);
        }
    }

    #[test]
    fn hostile_keys_share_the_memory_and_leave_a_part_for_the_next() {
        let (config, mut budget) = (config(), Budget::default());
        let mut hostile: Vec<Held> = (0..64).flat_map(|at| [budget.open(key(at)), budget.open(key(at))]).collect();
        hostile.iter_mut().for_each(|held| fill(held, &config));
        assert!(budget.bytes() <= 1024 * MIB, "{}", budget.bytes());
        let mut lawful = budget.open(key(100));
        fill(&mut lawful, &config);
        assert!(lawful.bytes() >= MIB / 2, "{}", lawful.bytes());
        assert!(budget.bytes() <= 1024 * MIB);
        drop(hostile);
        assert_eq!(budget.bytes(), lawful.bytes(), "an association returns its memory");
    }

    #[test]
    fn the_associations_of_a_key_share_its_limit() {
        let (config, mut budget) = (config(), Budget::default());
        let mut held: Vec<Held> = (0..10).map(|_| budget.open(key(1))).collect();
        held.iter_mut().for_each(|held| fill(held, &config));
        assert_eq!(budget.bytes(), 256 * MIB);
        assert_eq!((held[0].bytes(), held[9].bytes()), (128 * MIB, 0), "twice the limit of one association");
    }

    #[test]
    fn the_flows_of_a_key_are_limited_over_all_its_associations() {
        let (config, mut budget) = (config(), Budget::default());
        let mut held: Vec<Held> = (0..64).map(|_| budget.open(key(1))).collect();
        let mut flows = 0;
        for _ in 0..256 {
            for held in &mut held {
                if held.has_room_for_flow(&config) {
                    held.add_flow();
                    flows += 1;
                }
            }
        }
        assert_eq!((flows, budget.bytes()), (config.max_flows_per_key, 1024 * FLOW_BYTES));
        assert!(budget.open(key(2)).has_room_for_flow(&config), "another key has its own flows");
        held[0].free_flows(1);
        assert!(held[63].has_room_for_flow(&config));
        drop(held);
        assert_eq!(budget.bytes(), 0, "an association returns its flows");
    }

    #[test]
    fn control_data_that_nobody_reads_is_limited_by_association_key_and_host() {
        let mut budget = Budget::default();
        let mut hostile: Vec<Held> =
            (0..64).flat_map(|at| (0..15).map(move |_| at)).map(|at| budget.open(key(at))).collect();
        let fill = |held: &mut Held| {
            while held.has_room_for_control(16 << 10) {
                held.add_control(16 << 10);
            }
        };
        fill(&mut hostile[0]);
        assert_eq!(hostile[0].control, CONTROL_PER_ASSOCIATION);
        hostile.iter_mut().for_each(fill);
        assert_eq!(hostile[0].key.control.load(Relaxed), CONTROL_PER_KEY);
        let total = budget.host.control.load(Relaxed);
        assert!(total <= CONTROL_SHARED + 64 * CONTROL_RESERVED, "{total}");
        let mut lawful = budget.open(key(100));
        fill(&mut lawful);
        assert_eq!(lawful.control, CONTROL_RESERVED);
        drop(hostile);
        assert_eq!(budget.host.control.load(Relaxed), lawful.control);
    }

    #[test]
    fn data_out_of_sequence_leaves_room_for_the_next_segment() {
        let (config, mut budget) = (config(), Budget::default());
        let mut held: Vec<Held> = (0..4).map(|_| budget.open(key(1))).collect();
        for held in &mut held {
            while held.has_room(MIB, false, &config) {
                held.add(Time::ZERO, MIB);
            }
        }
        assert_eq!(budget.bytes(), 128 * MIB);
        assert!(held.iter().all(|held| held.has_room(MIB, true, &config)));
    }

    #[test]
    fn an_association_is_stale_if_nothing_is_read_for_long() {
        let mut held = Budget::default().open(key(1));
        let after = |seconds| Time::ZERO + Dur::from_secs(seconds);
        held.add(after(1), 10);
        held.add(after(20), 10);
        assert!(!held.is_stale(after(30)) && held.is_stale(after(31)));
        held.read(10);
        assert!(!held.is_stale(after(100)), "the application reads");
        held.add(after(100), 10);
        assert!(!held.is_stale(after(129)) && held.is_stale(after(130)));
        held.free(20);
        assert!(!held.is_stale(after(200)), "nothing is in memory");
    }
}
