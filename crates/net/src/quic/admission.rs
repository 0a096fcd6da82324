//! Admission of handshakes and associations: how many a host keeps, and which it gives up.
//!
//! Anybody can begin a handshake, also with many addresses, so a handshake is *half-open* until its peer has proved a
//! trusted key. Three rules let trusted peers in during a flood:
//!
//! - A new handshake is always accepted. If there are too many, the oldest one makes room. A trusted peer needs one
//!   round trip for its proof, so it is done before its turn comes, while the handshakes of a flood never finish.
//! - A network with more than its share makes room itself. A network is what one user can have for little money: an IPv4
//!   address or an IPv6 /48.
//! - If handshakes would be given up before [`MIN_AGE`], new ones are ignored instead, which bounds the processor time.
//!   The peer's retransmission is the next attempt.
//!
//! Trusted peers share the associations. The number of associations of a key is limited, and so is the rate at which it
//! begins them. If all are in use, the key with the most gives up its newest one, so that no key can displace others.

use crate::carrier::AssociationId;
use crate::identity::Fingerprint;
use sparelane_core::{Dur, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// The maximum number of half-open handshakes; each takes about 25 kB.
pub(super) const MAX_HALF_OPEN: usize = 1024;

/// The number of half-open handshakes of one network up to which it is treated like all others.
const SHARE: usize = 16;

/// The deadline of a half-open handshake: time for two lost flights on a slow path.
const DEADLINE: Dur = Dur::from_secs(10);

/// The deadline if more than half of the handshakes are in use: three round trips of a slow path.
const DEADLINE_UNDER_PRESSURE: Dur = Dur::from_secs(3);

/// The age up to which a handshake is not given up for a new one: the round trip of a long path.
const MIN_AGE: Dur = Dur::from_ms(250);

/// A half-open handshake.
#[derive(Clone, Copy, Debug)]
struct Entry {
    connection: usize,
    network: IpAddr,
    since: Time,
}

/// The half-open handshakes of a host.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    /// The handshakes in the order of their beginnings.
    by_age: BTreeMap<u64, Entry>,
    /// The number of each connection's handshake in that order.
    numbers: BTreeMap<usize, u64>,
    /// The handshakes of each network.
    networks: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// The networks by the number of their handshakes.
    loads: BTreeSet<(usize, IpAddr)>,
    next: u64,
}

/// The decision on a new handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// There is room.
    Accept,
    /// There is room once this connection has been given up.
    Replace(usize),
    /// There is no room: do not answer.
    Ignore,
}

impl HalfOpen {
    /// Decides on a handshake from `address`.
    pub(super) fn admit(&self, now: Time, address: IpAddr) -> Admission {
        if self.len() < MAX_HALF_OPEN {
            return Admission::Accept;
        }
        let network = network(address);
        let heaviest = self.loads.last().filter(|(load, _)| *load > SHARE);
        let number = match heaviest {
            Some((_, heavy)) => self.networks.get(heavy).and_then(|numbers| numbers.first()),
            None => self.by_age.keys().next(),
        };
        let Some(oldest) = number.and_then(|number| self.by_age.get(number)) else { return Admission::Ignore };
        // Networks without excess do not have to wait for the ones that have.
        let is_light = heaviest.is_some() && self.networks.get(&network).is_none_or(|own| own.len() < SHARE);
        if is_light || now.saturating_since(oldest.since) >= MIN_AGE {
            Admission::Replace(oldest.connection)
        } else {
            Admission::Ignore
        }
    }

    /// Adds the handshake of a connection.
    pub(super) fn insert(&mut self, now: Time, connection: usize, address: IpAddr) {
        let (number, network) = (self.next, network(address));
        self.next += 1;
        self.by_age.insert(number, Entry { connection, network, since: now });
        self.numbers.insert(connection, number);
        self.change(network, |numbers| numbers.insert(number));
    }

    /// Removes the handshake of a connection. Returns true if there was one.
    pub(super) fn remove(&mut self, connection: usize) -> bool {
        let Some(number) = self.numbers.remove(&connection) else { return false };
        if let Some(entry) = self.by_age.remove(&number) {
            self.change(entry.network, |numbers| numbers.remove(&number));
        }
        true
    }

    /// Returns the connection of a handshake whose deadline has passed.
    pub(super) fn expired(&self, now: Time) -> Option<usize> {
        let oldest = self.by_age.values().next()?;
        (oldest.since + self.deadline() <= now).then_some(oldest.connection)
    }

    /// The next deadline.
    pub(super) fn next_deadline(&self) -> Time {
        self.by_age.values().next().map_or(Time::NEVER, |oldest| oldest.since + self.deadline())
    }

    /// The number of half-open handshakes.
    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }

    fn deadline(&self) -> Dur {
        if self.len() > MAX_HALF_OPEN / 2 { DEADLINE_UNDER_PRESSURE } else { DEADLINE }
    }

    /// Changes the handshakes of a network, and its load with them.
    fn change(&mut self, network: IpAddr, change: impl FnOnce(&mut BTreeSet<u64>) -> bool) {
        let numbers = self.networks.entry(network).or_default();
        self.loads.remove(&(numbers.len(), network));
        change(numbers);
        match numbers.len() {
            0 => drop(self.networks.remove(&network)),
            load => drop(self.loads.insert((load, network))),
        }
    }
}

/// The seconds for which a key's rate of new associations may be used at once.
const BURST_SECONDS: f64 = 4.0;

/// The rate at which each key begins associations.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<Fingerprint, (f64, Time)>);

impl Rates {
    /// Counts a new association of this key. Returns false if it begins more than `per_second` (a token bucket).
    pub(super) fn take(&mut self, now: Time, peer: Fingerprint, per_second: u32) -> bool {
        let per_second = f64::from(per_second);
        let most = BURST_SECONDS * per_second;
        // A full bucket says nothing, so only recent keys are kept.
        let is_full =
            |(left, since): &(f64, Time)| left + now.saturating_since(*since).as_secs_f64() * per_second >= most;
        if self.0.len() > 1000 {
            self.0.retain(|_, bucket| !is_full(bucket));
        }
        let (left, since) = self.0.entry(peer).or_insert((most, now));
        *left = (*left + now.saturating_since(*since).as_secs_f64() * per_second).min(most);
        *since = now;
        let is_allowed = *left >= 1.0;
        *left -= f64::from(u8::from(is_allowed));
        is_allowed
    }
}

/// Returns the association to give up for a new one of `peer`: the newest one of the key with the most. Returns `None`
/// if no key has more than this one would have.
pub(super) fn crowded(
    associations: impl Iterator<Item = (AssociationId, Fingerprint)>,
    peer: Fingerprint,
) -> Option<AssociationId> {
    let mut keys: BTreeMap<Fingerprint, (usize, AssociationId)> = BTreeMap::new();
    for (id, peer) in associations {
        let (count, newest) = keys.entry(peer).or_insert((0, id));
        (*count, *newest) = (*count + 1, id.max(*newest));
    }
    let own = keys.get(&peer).map_or(0, |(count, _)| *count);
    let (most, newest) = keys.into_values().max()?;
    (most > own + 1).then_some(newest)
}

/// The part of an address that identifies one user: an IPv4 address, or the /48 network of an IPv6 address, which
/// providers delegate to one customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 80 << 80).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn after(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    fn address(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number as u32).into()
    }

    /// Fills the table with one handshake a millisecond; `from` gives the address of each.
    fn filled(from: impl Fn(usize) -> IpAddr) -> HalfOpen {
        let mut handshakes = HalfOpen::default();
        for at in 0..MAX_HALF_OPEN {
            assert_eq!(handshakes.admit(after(at as u64), from(at)), Admission::Accept);
            handshakes.insert(after(at as u64), at, from(at));
        }
        handshakes
    }

    #[test]
    fn the_oldest_handshake_makes_room_if_all_networks_have_one() {
        let mut handshakes = filled(address);
        let now = after(MAX_HALF_OPEN as u64);
        assert_eq!(handshakes.admit(now, address(5000)), Admission::Replace(0));
        assert!(handshakes.remove(0) && !handshakes.remove(0));
        assert_eq!(handshakes.admit(now, address(5000)), Admission::Accept);
        assert_eq!((handshakes.len(), handshakes.networks.len(), handshakes.loads.len()), (1023, 1023, 1023));
    }

    #[test]
    fn a_network_with_more_than_its_share_makes_room_itself() {
        let handshakes = filled(|at| address(if at < 100 { at } else { 1000 }));
        let now = after(MAX_HALF_OPEN as u64);
        assert_eq!(handshakes.admit(now, address(5000)), Admission::Replace(100));
        assert_eq!(handshakes.admit(now, address(1000)), Admission::Replace(100));
        // Only that network has to wait for the age of its handshakes.
        let now = after(200);
        assert_eq!(handshakes.admit(now, address(1000)), Admission::Ignore);
        assert_eq!(handshakes.admit(now, address(5000)), Admission::Replace(100));
    }

    #[test]
    fn new_handshakes_are_ignored_if_the_oldest_is_younger_than_a_round_trip() {
        let mut handshakes = HalfOpen::default();
        for at in 0..MAX_HALF_OPEN {
            handshakes.insert(after(0), at, address(at));
        }
        assert_eq!(handshakes.admit(after(249), address(5000)), Admission::Ignore);
        assert_eq!(handshakes.admit(after(250), address(5000)), Admission::Replace(0));
    }

    #[test]
    fn the_deadline_is_shorter_under_pressure() {
        let mut handshakes = HalfOpen::default();
        assert_eq!((handshakes.next_deadline(), handshakes.expired(after(60_000))), (Time::NEVER, None));
        handshakes.insert(after(0), 7, address(7));
        assert_eq!((handshakes.next_deadline(), handshakes.expired(after(9_999))), (after(10_000), None));
        assert_eq!(handshakes.expired(after(10_000)), Some(7));
        assert_eq!(filled(address).next_deadline(), after(3_000));
    }

    fn key(number: u8) -> Fingerprint {
        Fingerprint::of(&[number])
    }

    #[test]
    fn a_key_begins_associations_at_a_bounded_rate() {
        let mut rates = Rates::default();
        let begun = |rates: &mut Rates, at: Time| (0..100).filter(|_| rates.take(at, key(1), 16)).count();
        assert_eq!(begun(&mut rates, after(0)), 64);
        assert_eq!(begun(&mut rates, after(500)), 8);
        assert!(rates.take(after(500), key(2), 16), "another key has its own rate");
        assert_eq!(begun(&mut rates, after(60_000)), 64);
    }

    #[test]
    fn the_key_with_the_most_associations_gives_up_its_newest() {
        let held: Vec<_> = (1..=8).map(|id| (AssociationId(id), key(u8::from(id > 3)))).collect();
        assert_eq!(crowded(held.iter().copied(), key(7)), Some(AssociationId(8)));
        assert_eq!(crowded(held.iter().copied(), key(0)), Some(AssociationId(8)));
        assert_eq!(crowded(held.iter().copied(), key(1)), None, "the key that has the most itself");
        let equal = [(AssociationId(1), key(0)), (AssociationId(2), key(1))];
        assert_eq!(crowded(equal.into_iter(), key(7)), None, "nobody has more than one");
    }

    #[test]
    fn a_customers_ipv6_addresses_are_one_network() {
        let of = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8:0:ffff:ffff:0:0:2"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
