//! Routes of table main: what controllers need of them, and what of that is undone.
//!
//! iproute2 has no word for microsecond time stamps yet (a feature of routes since Linux 6.7), so that `ip route` cannot do this.

use crate::error::BpfError;
use crate::netlink::{ACKNOWLEDGE, DUMP, REPLACE, ask, attributes, put_attribute, word};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Messages and attributes (include/uapi/linux/rtnetlink.h).
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
/// What a route with a next hop of its own (`ip nexthop`) shows of that, and may not be set with it: interface, gateway (of either
/// family), several of them, and encapsulation.
const OF_NEXT_HOP: [u16; 6] = [ROUTE_INTERFACE, 5, 9, 18, 21, 22];
const METRIC_FEATURES: u16 = 12;
const METRIC_QUICKACK: u16 = 15;
const METRIC_CONTROLLER: u16 = 16;
const FEATURE_MICROSECONDS: u32 = 1 << 4;
const QUICKACK: u32 = 1;
const TABLE_MAIN: u8 = 254;
/// Of the flags that a route shows, the only one that is set with it (RTNH_F_ONLINK).
const FLAG_ON_LINK: u8 = 4;
const UNICAST: u8 = 1;
/// What is no way to anywhere has no connections whose controller could be chosen.
const KINDS: [&str; 9] =
    ["local", "broadcast", "anycast", "multicast", "blackhole", "unreachable", "prohibit", "throw", "nat"];
/// A route's remaining lifetime is told in hundredths of a second on every kernel (USER_HZ).
const TICKS_A_SECOND: i64 = 100;

/// A route, as the kernel describes it: what is behind the header of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    message: Vec<u8>,
}

/// Metrics of a route, by their kinds.
type Metrics = BTreeMap<u16, Vec<u8>>;

/// A destination as `ip route` writes it: an address, a prefix, or `default`, which is IPv4's.
fn destination(text: &str) -> Option<(u8, u8, Vec<u8>)> {
    let text = if text == "default" { "0.0.0.0/0" } else { text };
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let (family, bytes) = match address.parse().ok()? {
        IpAddr::V4(address) => (nix::libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (nix::libc::AF_INET6, address.octets().to_vec()),
    };
    let length = length.map_or(Some(8 * bytes.len() as u8), |length| length.parse().ok())?;
    // The route to everywhere comes without an address.
    let bytes = if length == 0 { Vec::new() } else { bytes };
    (usize::from(length) <= 8 * bytes.len()).then_some((family as u8, length, bytes))
}

fn with_end(name: &str) -> Vec<u8> {
    [name.as_bytes(), &[0]].concat()
}

impl Route {
    /// All routes of table main.
    fn all(family: u8) -> Result<Vec<Route>, BpfError> {
        let mut body = vec![0; ROUTE_BYTES];
        body[0] = family;
        let all = ask(GET_ROUTE, DUMP, &body).map_err(|error| BpfError::system("reading routes", error))?;
        let is_of_main = |message: &Vec<u8>| message.len() >= ROUTE_BYTES && message[4] == TABLE_MAIN;
        Ok(all.into_iter().filter(is_of_main).map(|message| Route { message }).collect())
    }

    /// The route of table main to exactly that destination.
    ///
    /// # Errors
    /// [`BpfError::NoRoute`] where there is none, and [`BpfError::LeadsNowhere`] where it is an unreachable one or the like.
    pub fn find(text: &str) -> Result<Route, BpfError> {
        let no_route = || BpfError::NoRoute { destination: text.to_owned() };
        let (family, length, bytes) = destination(text).ok_or_else(no_route)?;
        let is_it = |route: &Route| {
            route.message[1] == length && route.attribute(ROUTE_DESTINATION).unwrap_or_default() == bytes
        };
        let route = Route::all(family)?.into_iter().find(is_it).ok_or_else(no_route)?;
        match route.message[7] {
            UNICAST => Ok(route),
            kind => Err(BpfError::LeadsNowhere {
                destination: text.to_owned(),
                kind: KINDS.get(usize::from(kind).wrapping_sub(2)).copied().unwrap_or("of an unknown kind"),
            }),
        }
    }

    /// The routes that are now where this one was: to the same destination, of the same preference.
    ///
    /// # Errors
    /// Routes cannot be read.
    pub fn in_its_place(&self) -> Result<Vec<Route>, BpfError> {
        let all = Route::all(self.message[0])?;
        Ok(all.into_iter().filter(|other| other.is_in_the_place_of(self)).collect())
    }

    /// Whether both are to the same destination, of the same preference.
    pub fn is_in_the_place_of(&self, other: &Route) -> bool {
        let place = |route: &Route| {
            let told = [ROUTE_DESTINATION, ROUTE_PRIORITY].map(|kind| route.attribute(kind).map(<[u8]>::to_vec));
            // Family, length of the prefix, type of service and table.
            ([0, 1, 3, 4].map(|at| route.message[at]), told)
        };
        place(self) == place(other)
    }

    /// Whether both are the same, apart from a lifetime that passes, an interface that comes and goes, and the controller.
    pub fn is_but_for_the_controller(&self, other: &Route) -> bool {
        let rest = |route: &Route| {
            let told = attributes(&route.message[ROUTE_BYTES..]).into_iter();
            let told = told.filter(|(kind, _)| ![ROUTE_METRICS, ROUTE_CACHE_INFO].contains(kind));
            let mut told: Vec<(u16, Vec<u8>)> = told.map(|(kind, value)| (kind, value.to_vec())).collect();
            told.sort();
            let mut metrics = route.metrics();
            metrics.remove(&METRIC_CONTROLLER);
            (route.message[..8].to_vec(), told, metrics)
        };
        rest(self) == rest(other)
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        let told = attributes(&self.message[ROUTE_BYTES..]).into_iter();
        told.filter(|(kind, _)| *kind == wanted).map(|(_, value)| value).next()
    }

    fn metrics(&self) -> Metrics {
        let told = attributes(self.attribute(ROUTE_METRICS).unwrap_or_default());
        told.into_iter().map(|(kind, value)| (kind, value.to_vec())).collect()
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

    /// The number of the interface that it leads to.
    pub fn interface(&self) -> Option<u32> {
        self.attribute(ROUTE_INTERFACE).map(word)
    }

    /// The controller of its connections. The kernel shows none where that which was set is gone.
    pub fn controller(&self) -> Option<String> {
        let name = self.metrics().remove(&METRIC_CONTROLLER)?;
        Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
    }

    /// Where it leads, as `ip route` writes it.
    pub fn destination(&self) -> String {
        let bytes = self.attribute(ROUTE_DESTINATION).unwrap_or_default();
        let v4 = <[u8; 4]>::try_from(bytes).map(|octets| Ipv4Addr::from(octets).to_string());
        let v6 = || <[u8; 16]>::try_from(bytes).map(|octets| Ipv6Addr::from(octets).to_string());
        let everywhere = if i32::from(self.message[0]) == nix::libc::AF_INET { "0.0.0.0" } else { "::" };
        format!("{}/{}", v4.or_else(|_| v6()).unwrap_or_else(|_| everywhere.to_owned()), self.message[1])
    }

    /// The same route with `controller` for its connections, and where `measures`, with time stamps in microseconds and an
    /// acknowledgment for each packet.
    pub fn with(&self, controller: &str, measures: bool) -> Route {
        let mut metrics = self.metrics();
        metrics.insert(METRIC_CONTROLLER, with_end(controller));
        if measures {
            metrics.insert(METRIC_QUICKACK, QUICKACK.to_ne_bytes().to_vec());
            let features = metrics.get(&METRIC_FEATURES).map_or(0, |value| word(value)) | FEATURE_MICROSECONDS;
            metrics.insert(METRIC_FEATURES, features.to_ne_bytes().to_vec());
        }
        self.with_metrics(&metrics)
    }

    /// The same route with `controller` in the place of the one that [`Route::with`] set, and without the rest that it set; what
    /// was there before is as in `was`, and what is otherwise there now stays.
    pub fn without(&self, was: &Route, measured: bool, controller: Option<&str>) -> Route {
        let (mut metrics, mut earlier) = (self.metrics(), was.metrics());
        let mut put = |kind: u16, value: Option<Vec<u8>>| match value {
            Some(value) => metrics.insert(kind, value),
            None => metrics.remove(&kind),
        };
        put(METRIC_CONTROLLER, controller.map(with_end));
        if measured {
            let now = self.metrics();
            let number = |metrics: &Metrics, kind: u16| metrics.get(&kind).map_or(0, |value| word(value));
            if number(&now, METRIC_QUICKACK) == QUICKACK {
                put(METRIC_QUICKACK, earlier.remove(&METRIC_QUICKACK));
            }
            if number(&earlier, METRIC_FEATURES) & FEATURE_MICROSECONDS == 0 {
                let features = number(&now, METRIC_FEATURES) & !FEATURE_MICROSECONDS;
                put(METRIC_FEATURES, (features != 0).then(|| features.to_ne_bytes().to_vec()));
            }
        }
        self.with_metrics(&metrics)
    }

    /// How long the route lasts, whole seconds; none where it is for good.
    fn lifetime_s(&self) -> Option<u32> {
        let ticks = word(self.attribute(ROUTE_CACHE_INFO)?.get(8..12)?) as i32;
        (ticks != 0).then(|| ((i64::from(ticks) + TICKS_A_SECOND / 2) / TICKS_A_SECOND).max(1) as u32)
    }

    fn request(&self) -> Vec<u8> {
        let mut message = self.message[..ROUTE_BYTES].to_vec();
        // What is shown of a route and not set with it.
        message[8..12].copy_from_slice(&(u32::from(self.message[8] & FLAG_ON_LINK)).to_ne_bytes());
        let has_next_hop = self.attribute(ROUTE_NEXT_HOP).is_some();
        for (kind, value) in attributes(&self.message[ROUTE_BYTES..]) {
            let is_only_shown = kind == ROUTE_CACHE_INFO || has_next_hop && OF_NEXT_HOP.contains(&kind);
            if !is_only_shown {
                put_attribute(&mut message, kind, value);
            }
        }
        if let Some(seconds) = self.lifetime_s() {
            put_attribute(&mut message, ROUTE_EXPIRES, &seconds.to_ne_bytes());
        }
        message
    }

    /// Puts the route in the place of the one to the same destination. It lasts as long as that would.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn put(&self) -> Result<(), BpfError> {
        let what = || format!("setting the route to {}", self.destination());
        let asked = ask(NEW_ROUTE, ACKNOWLEDGE | REPLACE, &self.request());
        asked.map_err(|error| BpfError::system(what(), error)).map(|_| ())
    }

    /// As hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.message.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From hexadecimal digits.
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
    fn a_route_gets_the_controller_and_what_measuring_needs_and_keeps_the_rest() {
        let route = plain().with("rapid", true);
        let features = (METRIC_FEATURES, 16u32.to_ne_bytes().to_vec());
        let quick = (METRIC_QUICKACK, 1u32.to_ne_bytes().to_vec());
        assert_eq!(route.metrics(), BTreeMap::from([features, quick, (METRIC_CONTROLLER, b"rapid\0".to_vec())]));
        assert_eq!(route.interface(), Some(7));
        assert_eq!(route.with("other", false).metrics().len(), 3, "one controller, not two");
    }

    #[test]
    fn what_was_set_on_a_route_is_undone_and_what_others_set_since_stays() {
        let was = with_metric(&plain(), METRIC_FEATURES, 1);
        assert_eq!(was.with("rapid", true).without(&was, true, None), was);
        let since = with_metric(&was.with("rapid", true), MTU, 1300);
        assert_eq!(since.without(&was, true, None), with_metric(&was, MTU, 1300));
        assert_eq!(since.without(&was, true, Some("bbr")).controller().as_deref(), Some("bbr"));
        let other = with_metric(&was.with("rapid", true), METRIC_QUICKACK, 0);
        assert_eq!(other.without(&was, true, None), with_metric(&was, METRIC_QUICKACK, 0), "no longer what was set");
        let measured = with_metric(&plain(), METRIC_FEATURES, FEATURE_MICROSECONDS);
        assert_eq!(measured.with("rapid", true).without(&measured, true, None), measured, "that bit was there before");
        assert_eq!(measured.with("rtcp", false).without(&plain(), false, None), measured, "that bit is somebody's own");
    }

    #[test]
    fn a_lifetime_is_rounded_to_a_second_and_asked_for() {
        let lasting = |ticks: i32| {
            let mut message = plain().message;
            let words = [0, 0, ticks, 0, 0, 0, 0, 0].map(i32::to_ne_bytes);
            put_attribute(&mut message, ROUTE_CACHE_INFO, &words.concat());
            Route { message }
        };
        assert_eq!(lasting(0).lifetime_s(), None);
        assert_eq!(lasting(59_960).lifetime_s(), Some(600));
        assert_eq!(lasting(1).lifetime_s(), Some(1), "not for ever");
        assert_eq!(lasting(-500).lifetime_s(), Some(1), "it is over already");
        let request = Route { message: lasting(6_000).request() };
        assert_eq!(request.attribute(ROUTE_EXPIRES).map(word), Some(60));
        assert_eq!(request.attribute(ROUTE_CACHE_INFO), None);
    }

    #[test]
    fn a_route_is_set_with_its_next_hop_or_with_what_that_leads_to() {
        let mut route = plain();
        assert_eq!(Route { message: route.request() }.interface(), Some(7));
        put_attribute(&mut route.message, ROUTE_NEXT_HOP, &5u32.to_ne_bytes());
        let request = Route { message: route.request() };
        assert_eq!((request.interface(), request.attribute(ROUTE_NEXT_HOP).map(word)), (None, Some(5)));
    }

    #[test]
    fn a_route_is_known_again_by_its_destination_and_preference_and_as_the_same_by_all_but_its_controller() {
        let (route, mut preferred) = (plain(), plain());
        put_attribute(&mut preferred.message, ROUTE_PRIORITY, &100u32.to_ne_bytes());
        assert!(!route.is_in_the_place_of(&preferred));
        let moved = with_metric(&route, MTU, 1300);
        assert!(route.is_in_the_place_of(&moved) && !route.is_but_for_the_controller(&moved));
        assert!(route.with("rtcp", false).is_but_for_the_controller(&route));
        assert!(!route.with("rapid", true).is_but_for_the_controller(&route));
    }

    #[test]
    fn digits_give_the_route_back() {
        let route = plain();
        assert_eq!(Route::from_hex(&route.to_hex()), Some(route));
        assert_eq!(Route::from_hex("zz"), None);
    }

    #[test]
    fn destinations_are_addresses_prefixes_or_default_which_is_that_of_ipv4() {
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
