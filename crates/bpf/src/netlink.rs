//! Routes and interfaces, by netlink: what RAPID needs of them, and how they were.
//!
//! iproute2 has no word for microsecond time stamps yet (a feature of routes since Linux 6.7), so that `ip route` cannot do this.

use crate::error::BpfError;
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};
use nix::sys::socket::{recv, sendto, socket};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// Messages and flags (include/uapi/linux/{netlink,rtnetlink,if_link}.h).
const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const REPLACE: u16 = 0x100;
const DUMP: u16 = 0x300;
const HEADER_BYTES: usize = 16;
const LINK_BYTES: usize = 16;
const ROUTE_BYTES: usize = 12;
const LINK_NAME: u16 = 3;
const LINK_GSO_MAX_SEGS: u16 = 40;
const ROUTE_DESTINATION: u16 = 1;
const ROUTE_INTERFACE: u16 = 4;
const ROUTE_METRICS: u16 = 8;
const ROUTE_CACHE_INFO: u16 = 12;
const METRIC_FEATURES: u16 = 12;
const METRIC_QUICKACK: u16 = 15;
const METRIC_CONTROLLER: u16 = 16;
const FEATURE_MICROSECONDS: u32 = 1 << 4;
const TABLE_MAIN: u8 = 254;
/// Of the flags that a route shows, the only one that is set with it (RTNH_F_ONLINK).
const FLAG_ON_LINK: u8 = 4;

/// A route, as the kernel describes it: what is behind the header of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    message: Vec<u8>,
}

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The most packets that it cuts out of one that it is handed.
    pub gso_max_segs: u32,
}

fn attributes(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let [a, b, c, d, ..] = *bytes {
        let length = usize::from(u16::from_ne_bytes([a, b]));
        if length < 4 || length > bytes.len() {
            break;
        }
        // The two highest bits are flags.
        found.push((u16::from_ne_bytes([c, d]) & 0x3fff, &bytes[4..length]));
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    found
}

fn put_attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

fn word(bytes: &[u8]) -> u32 {
    bytes.try_into().map(u32::from_ne_bytes).unwrap_or_default()
}

/// Sends a request, and gathers what is behind the headers of the answers.
fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let protocol = SockProtocol::NetlinkRoute;
    let fd: OwnedFd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
    // The number of the request, and whose it is.
    message.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
    message.extend_from_slice(body);
    sendto(fd.as_raw_fd(), &message, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let (mut answers, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let length = recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        let mut rest = &buffer[..length];
        while rest.len() >= HEADER_BYTES {
            let length = word(&rest[..4]) as usize;
            if length < HEADER_BYTES || length > rest.len() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let (body, answer) = (&rest[HEADER_BYTES..length], u16::from_ne_bytes([rest[4], rest[5]]));
            match answer {
                DONE => return Ok(answers),
                ERROR => {
                    let number = i32::from_ne_bytes(body[..4].try_into().unwrap_or_default());
                    return if number == 0 { Ok(answers) } else { Err(io::Error::from_raw_os_error(-number)) };
                }
                _ => answers.push(body.to_vec()),
            }
            rest = &rest[length.next_multiple_of(4).min(rest.len())..];
        }
    }
}

/// A destination as `ip route` writes it: an address, a prefix, or `default`.
fn destination(text: &str) -> Option<(u8, u8, Vec<u8>)> {
    if text == "default" {
        return Some((nix::libc::AF_INET as u8, 0, Vec::new()));
    }
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let (family, bytes) = match address.parse().ok()? {
        IpAddr::V4(address) => (nix::libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (nix::libc::AF_INET6, address.octets().to_vec()),
    };
    let length = length.map_or(Some(8 * bytes.len() as u8), |length| length.parse().ok())?;
    (usize::from(length) <= 8 * bytes.len()).then_some((family as u8, length, bytes))
}

impl Route {
    /// The route of table main to exactly that destination.
    ///
    /// # Errors
    /// [`BpfError::NoRoute`] where there is none.
    pub fn find(text: &str) -> Result<Route, BpfError> {
        let no_route = || BpfError::NoRoute { destination: text.to_owned() };
        let (family, length, bytes) = destination(text).ok_or_else(no_route)?;
        let mut body = vec![0; ROUTE_BYTES];
        body[0] = family;
        let all = ask(GET_ROUTE, DUMP, &body).map_err(|error| BpfError::system("reading routes", error))?;
        let is_it = |message: &&Vec<u8>| {
            let given = attributes(&message[ROUTE_BYTES..]);
            let to = given.iter().find(|(kind, _)| *kind == ROUTE_DESTINATION).map(|(_, value)| *value);
            message[1] == length && message[4] == TABLE_MAIN && to.unwrap_or_default() == bytes
        };
        let message = all.iter().filter(|message| message.len() >= ROUTE_BYTES).find(is_it).ok_or_else(no_route)?;
        Ok(Route { message: message.clone() })
    }

    /// The number of the interface that it leads to.
    pub fn interface(&self) -> Option<u32> {
        let given = attributes(&self.message[ROUTE_BYTES..]);
        given.into_iter().find(|(kind, _)| *kind == ROUTE_INTERFACE).map(|(_, value)| word(value))
    }

    /// The same route with `controller` for its connections, and where `measures`, with time stamps in microseconds and an
    /// acknowledgment for each packet.
    pub fn with(&self, controller: &str, measures: bool) -> Route {
        let mut message = self.message[..ROUTE_BYTES].to_vec();
        let mut metrics: Vec<(u16, Vec<u8>)> = Vec::new();
        for (kind, value) in attributes(&self.message[ROUTE_BYTES..]) {
            match kind {
                ROUTE_METRICS => metrics = attributes(value).into_iter().map(|(k, v)| (k, v.to_vec())).collect(),
                _ => put_attribute(&mut message, kind, value),
            }
        }
        let mut set = |kind: u16, value: Vec<u8>| {
            metrics.retain(|(other, _)| *other != kind);
            metrics.push((kind, value));
        };
        set(METRIC_CONTROLLER, [controller.as_bytes(), &[0]].concat());
        if measures {
            set(METRIC_QUICKACK, 1u32.to_ne_bytes().to_vec());
            let features = attributes(&self.message[ROUTE_BYTES..])
                .into_iter()
                .filter(|(kind, _)| *kind == ROUTE_METRICS)
                .flat_map(|(_, value)| attributes(value))
                .find(|(kind, _)| *kind == METRIC_FEATURES)
                .map_or(0, |(_, value)| word(value));
            set(METRIC_FEATURES, (features | FEATURE_MICROSECONDS).to_ne_bytes().to_vec());
        }
        let mut nested = Vec::new();
        metrics.iter().for_each(|(kind, value)| put_attribute(&mut nested, *kind, value));
        put_attribute(&mut message, ROUTE_METRICS, &nested);
        Route { message }
    }

    /// Puts the route in the place of the one to the same destination.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn put(&self) -> Result<(), BpfError> {
        let mut message = self.message[..ROUTE_BYTES].to_vec();
        // What is shown of a route and not set with it.
        message[8..12].copy_from_slice(&(u32::from(self.message[8] & FLAG_ON_LINK)).to_ne_bytes());
        for (kind, value) in attributes(&self.message[ROUTE_BYTES..]) {
            if kind != ROUTE_CACHE_INFO {
                put_attribute(&mut message, kind, value);
            }
        }
        ask(NEW_ROUTE, ACKNOWLEDGE | REPLACE, &message)
            .map_err(|error| BpfError::system("setting a route", error))
            .map(|_| ())
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

impl Link {
    fn all() -> Result<Vec<Link>, BpfError> {
        let all =
            ask(GET_LINK, DUMP, &[0; LINK_BYTES]).map_err(|error| BpfError::system("reading interfaces", error))?;
        let link = |message: Vec<u8>| {
            let mut link = Link { index: word(message.get(4..8)?), name: String::new(), gso_max_segs: 0 };
            for (kind, value) in attributes(message.get(LINK_BYTES..)?) {
                match kind {
                    LINK_NAME => link.name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
                    LINK_GSO_MAX_SEGS => link.gso_max_segs = word(value),
                    _ => {}
                }
            }
            Some(link)
        };
        Ok(all.into_iter().filter_map(link).collect())
    }

    /// The interface of that name.
    ///
    /// # Errors
    /// [`BpfError::NoInterface`] where there is none.
    pub fn named(name: &str) -> Result<Link, BpfError> {
        let found = Link::all()?.into_iter().find(|link| link.name == name);
        found.ok_or_else(|| BpfError::NoInterface { name: name.to_owned() })
    }

    /// The interface of that number.
    ///
    /// # Errors
    /// [`BpfError::NoInterface`] where there is none.
    pub fn numbered(index: u32) -> Result<Link, BpfError> {
        let found = Link::all()?.into_iter().find(|link| link.index == index);
        found.ok_or_else(|| BpfError::NoInterface { name: format!("number {index}") })
    }

    /// Has the interface cut so many packets at most out of one that it is handed.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn set_gso_max_segs(&self, segments: u32) -> Result<(), BpfError> {
        let mut body = vec![0; LINK_BYTES];
        body[4..8].copy_from_slice(&self.index.to_ne_bytes());
        put_attribute(&mut body, LINK_GSO_MAX_SEGS, &segments.to_ne_bytes());
        ask(NEW_LINK, ACKNOWLEDGE, &body)
            .map_err(|error| BpfError::system(format!("setting gso_max_segs of {}", self.name), error))
            .map(|_| ())
    }

    /// What the interface says of its rate, bits per second; virtual ones may say nothing.
    pub fn rate_bps(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/sys/class/net/{}/speed", self.name)).ok()?;
        text.trim().parse().ok().filter(|&mbps: &i64| mbps > 0).map(|mbps| mbps as u64 * 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Route {
        let mut message = vec![2, 24, 0, 0, TABLE_MAIN, 2, 253, 1, 16, 0, 0, 0];
        put_attribute(&mut message, ROUTE_DESTINATION, &[10, 99, 0, 0]);
        put_attribute(&mut message, ROUTE_INTERFACE, &7u32.to_ne_bytes());
        Route { message }
    }

    fn metrics(route: &Route) -> Vec<(u16, Vec<u8>)> {
        let given = attributes(&route.message[ROUTE_BYTES..]);
        let found = given.into_iter().find(|(kind, _)| *kind == ROUTE_METRICS).expect("metrics").1;
        attributes(found).into_iter().map(|(kind, value)| (kind, value.to_vec())).collect()
    }

    #[test]
    fn a_route_gets_the_controller_and_what_measuring_needs_and_keeps_the_rest() {
        let route = plain().with("rapid", true);
        let features = (METRIC_FEATURES, 16u32.to_ne_bytes().to_vec());
        let quick = (METRIC_QUICKACK, 1u32.to_ne_bytes().to_vec());
        assert_eq!(metrics(&route), [(METRIC_CONTROLLER, b"rapid\0".to_vec()), quick, features]);
        assert_eq!(route.interface(), Some(7));
        assert_eq!(metrics(&route.with("other", false)).len(), 3, "one controller, not two");
    }

    #[test]
    fn digits_give_the_route_back() {
        let route = plain();
        assert_eq!(Route::from_hex(&route.to_hex()), Some(route));
        assert_eq!(Route::from_hex("zz"), None);
    }

    #[test]
    fn destinations_are_addresses_prefixes_or_default() {
        assert_eq!(destination("10.1.0.0/16"), Some((2, 16, vec![10, 1, 0, 0])));
        assert_eq!(destination("10.1.2.3"), Some((2, 32, vec![10, 1, 2, 3])));
        assert_eq!(destination("default"), Some((2, 0, vec![])));
        assert_eq!(destination("10.1.0.0/33"), None);
        assert_eq!(destination("there"), None);
    }

    #[test]
    fn what_does_not_exist_is_refused_by_name() {
        assert!(Route::find("203.0.113.77").expect_err("no route").to_string().contains("203.0.113.77"));
        assert!(Link::named("no-such-link").expect_err("no interface").to_string().contains("no-such-link"));
    }
}
