//! Network interfaces: the rate and the GSO limit, which RAPID sets to one packet.

use crate::error::BpfError;
use crate::netlink::{ACKNOWLEDGE, DUMP, attributes, put_attribute, read_u32, request};

/// Types of messages and attributes (include/uapi/linux/rtnetlink.h and if_link.h).
const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const LINK_BYTES: usize = 16;
const LINK_NAME: u16 = 3;
const LINK_GSO_MAX_SEGS: u16 = 40;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The interface index.
    pub index: u32,
    /// The name.
    pub name: String,
    /// The largest number of packets into which the interface splits one GSO packet.
    pub gso_max_segs: u32,
}

impl Interface {
    fn all() -> Result<Vec<Interface>, BpfError> {
        let all =
            request(GET_LINK, DUMP, &[0; LINK_BYTES]).map_err(|error| BpfError::system("reading interfaces", error))?;
        let parsed = |message: Vec<u8>| {
            let mut found = Interface { index: read_u32(message.get(4..8)?), name: String::new(), gso_max_segs: 0 };
            for (kind, value) in attributes(message.get(LINK_BYTES..)?) {
                match kind {
                    LINK_NAME => found.name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
                    LINK_GSO_MAX_SEGS => found.gso_max_segs = read_u32(value),
                    _ => {}
                }
            }
            Some(found)
        };
        Ok(all.into_iter().filter_map(parsed).collect())
    }

    /// Returns the interface of this name.
    ///
    /// # Errors
    /// [`BpfError::NoInterface`] if it does not exist.
    pub fn named(name: &str) -> Result<Interface, BpfError> {
        let found = Interface::all()?.into_iter().find(|one| one.name == name);
        found.ok_or_else(|| BpfError::NoInterface { name: name.to_owned() })
    }

    /// Returns the interface with this index.
    ///
    /// # Errors
    /// [`BpfError::NoInterface`] if it does not exist.
    pub fn with_index(index: u32) -> Result<Interface, BpfError> {
        let found = Interface::all()?.into_iter().find(|one| one.index == index);
        found.ok_or_else(|| BpfError::NoInterface { name: format!("number {index}") })
    }

    /// Limits the number of packets into which the interface splits one GSO packet.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn set_gso_max_segs(&self, segments: u32) -> Result<(), BpfError> {
        let mut body = vec![0; LINK_BYTES];
        body[4..8].copy_from_slice(&self.index.to_ne_bytes());
        put_attribute(&mut body, LINK_GSO_MAX_SEGS, &segments.to_ne_bytes());
        request(NEW_LINK, ACKNOWLEDGE, &body)
            .map_err(|error| BpfError::system(format!("setting gso_max_segs of {}", self.name), error))
            .map(|_| ())
    }

    /// Returns the rate that the driver reports, in bits per second; virtual interfaces may report none.
    pub fn rate_bps(&self) -> Option<u64> {
        let text = std::fs::read_to_string(format!("/sys/class/net/{}/speed", self.name)).ok()?;
        text.trim().parse().ok().filter(|&mbps: &i64| mbps > 0).map(|mbps| mbps as u64 * 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_does_not_exist_is_refused_by_name() {
        assert!(Interface::named("no-such-link").expect_err("no interface").to_string().contains("no-such-link"));
    }
}
