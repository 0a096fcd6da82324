//! Routes of table main: setting a controller and exact time stamps on a route, and undoing both.
//!
//! The netlink messages are written here because `ip route` cannot set microsecond time stamps, a feature of routes
//! since Linux 6.7. A [`Route`] keeps the message in which the kernel describes it, so that attributes that this crate
//! does not know are preserved.

use crate::error::BpfError;
use crate::netlink::{ACKNOWLEDGE, DUMP, REPLACE, attributes, put_attribute, read_u32, request};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Types of messages and attributes (include/uapi/linux/rtnetlink.h).
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const ROUTE_BYTES: usize = 12;
const ROUTE_DESTINATION: u16 = 1;
const ROUTE_INTERFACE: u16 = 4;
const ROUTE_PRIORITY: u16 = 6;
const ROUTE_METRICS: u16 = 8;
const ROUTE_CACHE_INFO: u16 = 12;
const ROUTE_EXPIRES: u16 = 23;
const ROUTE_NEXT_HOP: u16 = 30;
/// Attributes that the kernel shows for a route with a next-hop object (`ip nexthop`) but does not accept with one:
/// interface, gateway, multipath, gateway of the other family, encapsulation type, and encapsulation.
const NEXT_HOP_ATTRIBUTES: [u16; 6] = [ROUTE_INTERFACE, 5, 9, 18, 21, 22];
const METRIC_FEATURES: u16 = 12;
const METRIC_QUICKACK: u16 = 15;
const METRIC_CONTROLLER: u16 = 16;
const FEATURE_MICROSECONDS: u32 = 1 << 4;
const QUICKACK: u32 = 1;
const TABLE_MAIN: u8 = 254;
/// The only flag of a route that can be set (RTNH_F_ONLINK); the others show its state.
const FLAG_ON_LINK: u8 = 4;
const UNICAST: u8 = 1;
/// Names of the route types from 2 on. Routes of these types have no connections to other hosts.
const OTHER_TYPES: [&str; 9] =
    ["local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw", "nat"];
/// The unit of a route's remaining lifetime: hundredths of a second on every kernel (USER_HZ).
const TICKS_PER_SECOND: i64 = 100;

/// A route as the kernel describes it: a netlink message without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    message: Vec<u8>,
}

/// Metrics of a route by their types (`RTAX_*`).
type Metrics = BTreeMap<u16, Vec<u8>>;

/// Parses a destination as `ip route` writes it: an address, a prefix, or `default` for the default route of IPv4.
///
/// Returns the address family, the prefix length, and the address.
fn destination(text: &str) -> Option<(u8, u8, Vec<u8>)> {
    let text = if text == "default" { "0.0.0.0/0" } else { text };
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let (family, bytes) = match address.parse().ok()? {
        IpAddr::V4(address) => (nix::libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (nix::libc::AF_INET6, address.octets().to_vec()),
    };
    let length = length.map_or(Some(8 * bytes.len() as u8), |length| length.parse().ok())?;
    // The kernel omits the address of a default route.
    let bytes = if length == 0 { Vec::new() } else { bytes };
    (usize::from(length) <= 8 * bytes.len()).then_some((family as u8, length, bytes))
}

/// Returns a name as the kernel stores it, with a terminating zero.
fn zero_terminated(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

impl Route {
    /// Returns all routes of one address family in table main.
    fn all(family: u8) -> Result<Vec<Route>, BpfError> {
        let mut body = vec![0; ROUTE_BYTES];
        body[0] = family;
        let all = request(GET_ROUTE, DUMP, &body).map_err(|error| BpfError::system("reading routes", error))?;
        let is_in_main = |message: &Vec<u8>| message.len() >= ROUTE_BYTES && message[4] == TABLE_MAIN;
        Ok(all.into_iter().filter(is_in_main).map(|message| Route { message }).collect())
    }

    /// Returns the route in table main to exactly this destination.
    ///
    /// # Errors
    /// [`BpfError::NoRoute`] if no such route exists, [`BpfError::NotUnicast`] if it is not a unicast route.
    pub fn find(text: &str) -> Result<Route, BpfError> {
        let no_route = || BpfError::NoRoute { destination: text.to_owned() };
        let (family, length, bytes) = destination(text).ok_or_else(no_route)?;
        let is_it = |route: &Route| {
            route.message[1] == length && route.attribute(ROUTE_DESTINATION).unwrap_or_default() == bytes
        };
        let route = Route::all(family)?.into_iter().find(is_it).ok_or_else(no_route)?;
        match route.message[7] {
            UNICAST => Ok(route),
            kind => Err(BpfError::NotUnicast {
                destination: text.to_owned(),
                kind: OTHER_TYPES.get(usize::from(kind).wrapping_sub(2)).copied().unwrap_or("of an unknown kind"),
            }),
        }
    }

    /// Returns the routes that exist now to the destination of this one, with the same preference.
    ///
    /// # Errors
    /// The kernel does not list its routes.
    pub fn current(&self) -> Result<Vec<Route>, BpfError> {
        let all = Route::all(self.message[0])?;
        Ok(all.into_iter().filter(|other| other.has_key_of(self)).collect())
    }

    /// Returns whether both routes have the same destination and preference, so that one replaces the other.
    pub fn has_key_of(&self, other: &Route) -> bool {
        let key = |route: &Route| {
            let values = [ROUTE_DESTINATION, ROUTE_PRIORITY].map(|kind| route.attribute(kind).map(<[u8]>::to_vec));
            // Family, prefix length, type of service and table.
            ([0, 1, 3, 4].map(|at| route.message[at]), values)
        };
        key(self) == key(other)
    }

    /// Returns whether both routes are equal apart from the controller.
    ///
    /// The remaining lifetime and the state flags are ignored, because they change on their own.
    pub fn equals_except_controller(&self, other: &Route) -> bool {
        let rest = |route: &Route| {
            let values = attributes(&route.message[ROUTE_BYTES..]).into_iter();
            let values = values.filter(|(kind, _)| ![ROUTE_METRICS, ROUTE_CACHE_INFO].contains(kind));
            let mut values: Vec<(u16, Vec<u8>)> = values.map(|(kind, value)| (kind, value.to_vec())).collect();
            values.sort();
            let mut metrics = route.metrics();
            metrics.remove(&METRIC_CONTROLLER);
            (route.message[..8].to_vec(), values, metrics)
        };
        rest(self) == rest(other)
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        let all = attributes(&self.message[ROUTE_BYTES..]).into_iter();
        all.filter(|(kind, _)| *kind == wanted).map(|(_, value)| value).next()
    }

    fn metrics(&self) -> Metrics {
        let nested = attributes(self.attribute(ROUTE_METRICS).unwrap_or_default());
        nested.into_iter().map(|(kind, value)| (kind, value.to_vec())).collect()
    }

    fn with_metrics(&self, metrics: &Metrics) -> Route {
        let mut message = self.message[..ROUTE_BYTES].to_vec();
        for (kind, value) in attributes(&self.message[ROUTE_BYTES..]) {
            if kind != ROUTE_METRICS {
                put_attribute(&mut message, kind, value);
            }
        }
        if !metrics.is_empty() {
            let mut nested = Vec::new();
            metrics.iter().for_each(|(kind, value)| put_attribute(&mut nested, *kind, value));
            put_attribute(&mut message, ROUTE_METRICS, &nested);
        }
        Route { message }
    }

    /// Returns the index of the outgoing interface.
    pub fn interface(&self) -> Option<u32> {
        self.attribute(ROUTE_INTERFACE).map(read_u32)
    }

    /// Returns the controller of the route's connections.
    ///
    /// The kernel shows none if the controller that was set is no longer registered.
    pub fn controller(&self) -> Option<String> {
        let name = self.metrics().remove(&METRIC_CONTROLLER)?;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    }

    /// Returns the destination as a prefix, as `ip route` writes it.
    pub fn destination(&self) -> String {
        let bytes = self.attribute(ROUTE_DESTINATION).unwrap_or_default();
        let v4 = <[u8; 4]>::try_from(bytes).map(|octets| Ipv4Addr::from(octets).to_string());
        let v6 = || <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).to_string());
        let everywhere = if i32::from(self.message[0]) == nix::libc::AF_INET { "0.0.0.0" } else { "::" };
        format!("{}/{}", v4.or_else(|_| v6()).unwrap_or_else(|_| everywhere.to_owned()), self.message[1])
    }

    /// Returns the same route with `controller` for its connections.
    ///
    /// With `measures`, it also has time stamps in microseconds and one acknowledgment per packet.
    pub fn with(&self, controller: &str, measures: bool) -> Route {
        let mut metrics = self.metrics();
        metrics.insert(METRIC_CONTROLLER, zero_terminated(controller));
        if measures {
            metrics.insert(METRIC_QUICKACK, QUICKACK.to_ne_bytes().to_vec());
            let features = metrics.get(&METRIC_FEATURES).map_or(0, |value| read_u32(value)) | FEATURE_MICROSECONDS;
            metrics.insert(METRIC_FEATURES, features.to_ne_bytes().to_vec());
        }
        self.with_metrics(&metrics)
    }

    /// Returns the same route without the changes of [`Route::with`].
    ///
    /// The controller is replaced by `controller`. Values that [`Route::with`] overwrote are taken from `was`. Values
    /// that were changed since then are kept.
    pub fn without(&self, was: &Route, measured: bool, controller: Option<&str>) -> Route {
        let (mut metrics, mut earlier) = (self.metrics(), was.metrics());
        let mut put = |kind: u16, value: Option<Vec<u8>>| match value {
            Some(value) => metrics.insert(kind, value),
            None => metrics.remove(&kind),
        };
        put(METRIC_CONTROLLER, controller.map(zero_terminated));
        if measured {
            let now = self.metrics();
            let number = |metrics: &Metrics, kind: u16| metrics.get(&kind).map_or(0, |value| read_u32(value));
            // Another value was set since, and stays.
            if number(&now, METRIC_QUICKACK) == QUICKACK {
                put(METRIC_QUICKACK, earlier.remove(&METRIC_QUICKACK));
            }
            // The metric holds several features. Only the one that was added is removed.
            if number(&earlier, METRIC_FEATURES) & FEATURE_MICROSECONDS == 0 {
                let features = number(&now, METRIC_FEATURES) & !FEATURE_MICROSECONDS;
                put(METRIC_FEATURES, (features != 0).then(|| features.to_ne_bytes().to_vec()));
            }
        }
        self.with_metrics(&metrics)
    }

    /// Returns the remaining lifetime in whole seconds, at least one; `None` for a permanent route.
    fn lifetime_s(&self) -> Option<u32> {
        let ticks = read_u32(self.attribute(ROUTE_CACHE_INFO)?.get(8..12)?) as i32;
        (ticks != 0).then(|| ((i64::from(ticks) + TICKS_PER_SECOND / 2) / TICKS_PER_SECOND).max(1) as u32)
    }

    /// Returns the body of the request that sets this route.
    fn request_body(&self) -> Vec<u8> {
        let mut message = self.message[..ROUTE_BYTES].to_vec();
        // The kernel rejects the flags that only show the state of a route.
        message[8..12].copy_from_slice(&(u32::from(self.message[8] & FLAG_ON_LINK)).to_ne_bytes());
        let has_next_hop = self.attribute(ROUTE_NEXT_HOP).is_some();
        for (kind, value) in attributes(&self.message[ROUTE_BYTES..]) {
            let is_only_shown = kind == ROUTE_CACHE_INFO || has_next_hop && NEXT_HOP_ATTRIBUTES.contains(&kind);
            if !is_only_shown {
                put_attribute(&mut message, kind, value);
            }
        }
        if let Some(seconds) = self.lifetime_s() {
            put_attribute(&mut message, ROUTE_EXPIRES, &seconds.to_ne_bytes());
        }
        message
    }

    /// Sets the route in the kernel, in place of the one to the same destination. It keeps the remaining lifetime.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn put(&self) -> Result<(), BpfError> {
        let what = || format!("setting the route to {}", self.destination());
        let answer = request(NEW_ROUTE, ACKNOWLEDGE | REPLACE, &self.request_body());
        answer.map_err(|error| BpfError::system(what(), error)).map(|_| ())
    }

    /// Returns the message in hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.message.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses the digits of [`Route::to_hex`].
    pub fn from_hex(digits: &str) -> Option<Route> {
        let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
        let message: Option<Vec<u8>> = (0..digits.len() / 2).map(byte).collect();
        message.filter(|message| message.len() >= ROUTE_BYTES).map(|message| Route { message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u16 = 2;

    fn plain() -> Route {
        let mut message = vec![2, 24, 0, 0, TABLE_MAIN, 2, 253, UNICAST, 16, 0, 0, 0];
        put_attribute(&mut message, ROUTE_DESTINATION, &[10, 99, 0, 0]);
        put_attribute(&mut message, ROUTE_INTERFACE, &7u32.to_ne_bytes());
        Route { message }
    }

    fn with_metric(route: &Route, kind: u16, value: u32) -> Route {
        let mut metrics = route.metrics();
        metrics.insert(kind, value.to_ne_bytes().to_vec());
        route.with_metrics(&metrics)
    }

    #[test]
    fn with_adds_the_controller_and_the_measuring_metrics_and_keeps_the_rest() {
        let route = plain().with("rapid", true);
        let features = (METRIC_FEATURES, 16u32.to_ne_bytes().to_vec());
        let quick = (METRIC_QUICKACK, 1u32.to_ne_bytes().to_vec());
        assert_eq!(route.metrics(), BTreeMap::from([features, quick, (METRIC_CONTROLLER, b"rapid\0".to_vec())]));
        assert_eq!(route.interface(), Some(7));
        assert_eq!(route.with("other", false).metrics().len(), 3, "one controller, not two");
    }

    #[test]
    fn without_undoes_own_changes_and_keeps_later_changes_of_others() {
        let was = with_metric(&plain(), METRIC_FEATURES, 1);
        assert_eq!(was.with("rapid", true).without(&was, true, None), was);
        let since = with_metric(&was.with("rapid", true), MTU, 1300);
        assert_eq!(since.without(&was, true, None), with_metric(&was, MTU, 1300));
        assert_eq!(since.without(&was, true, Some("bbr")).controller().as_deref(), Some("bbr"));
        let other = with_metric(&was.with("rapid", true), METRIC_QUICKACK, 0);
        assert_eq!(other.without(&was, true, None), with_metric(&was, METRIC_QUICKACK, 0), "no longer what was set");
        let measured = with_metric(&plain(), METRIC_FEATURES, FEATURE_MICROSECONDS);
        assert_eq!(measured.with("rapid", true).without(&measured, true, None), measured, "that bit was set before");
        assert_eq!(
            measured.with("rtcp", false).without(&plain(), false, None),
            measured,
            "that bit was set by someone else"
        );
    }

    #[test]
    fn a_lifetime_is_rounded_to_seconds_and_requested() {
        let lasting = |ticks: i32| {
            let mut message = plain().message;
            let words = [0, 0, ticks, 0, 0, 0, 0, 0].map(i32::to_ne_bytes);
            put_attribute(&mut message, ROUTE_CACHE_INFO, &words.concat());
            Route { message }
        };
        assert_eq!(lasting(0).lifetime_s(), None);
        assert_eq!(lasting(59_960).lifetime_s(), Some(600));
        assert_eq!(lasting(1).lifetime_s(), Some(1), "not permanent");
        assert_eq!(lasting(-500).lifetime_s(), Some(1), "it has already expired");
        let request = Route { message: lasting(6_000).request_body() };
        assert_eq!(request.attribute(ROUTE_EXPIRES).map(read_u32), Some(60));
        assert_eq!(request.attribute(ROUTE_CACHE_INFO), None);
    }

    #[test]
    fn a_route_is_set_with_its_next_hop_object_or_with_its_interface() {
        let mut route = plain();
        assert_eq!(Route { message: route.request_body() }.interface(), Some(7));
        put_attribute(&mut route.message, ROUTE_NEXT_HOP, &5u32.to_ne_bytes());
        let request = Route { message: route.request_body() };
        assert_eq!((request.interface(), request.attribute(ROUTE_NEXT_HOP).map(read_u32)), (None, Some(5)));
    }

    #[test]
    fn destination_and_preference_identify_a_route() {
        let (route, mut preferred) = (plain(), plain());
        put_attribute(&mut preferred.message, ROUTE_PRIORITY, &100u32.to_ne_bytes());
        assert!(!route.has_key_of(&preferred));
        let moved = with_metric(&route, MTU, 1300);
        assert!(route.has_key_of(&moved) && !route.equals_except_controller(&moved));
        assert!(route.with("rtcp", false).equals_except_controller(&route));
        assert!(!route.with("rapid", true).equals_except_controller(&route));
    }

    #[test]
    fn a_route_survives_writing_and_reading_in_hexadecimal() {
        let route = plain();
        assert_eq!(Route::from_hex(&route.to_hex()), Some(route));
        assert_eq!(Route::from_hex("zz"), None);
    }

    #[test]
    fn destinations_are_addresses_prefixes_or_default() {
        assert_eq!(destination("10.1.0.0/16"), Some((2, 16, vec![10, 1, 0, 0])));
        assert_eq!(destination("10.1.2.3"), Some((2, 32, vec![10, 1, 2, 3])));
        assert_eq!(destination("default"), Some((2, 0, vec![])));
        assert_eq!(destination("::/0"), Some((10, 0, vec![])));
        assert_eq!(destination("10.1.0.0/33"), None);
        assert_eq!(destination("there"), None);
        assert_eq!(plain().destination(), "10.99.0.0/24");
    }

    #[test]
    fn a_route_that_does_not_exist_is_refused_by_name() {
        assert!(Route::find("203.0.113.77").expect_err("no route").to_string().contains("203.0.113.77"));
    }
}
