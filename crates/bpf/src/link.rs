//! Interfaces: what RAPID needs of them, and how they were.

use crate::error::BpfError;
use crate::netlink::{ACKNOWLEDGE, DUMP, ask, attributes, put_attribute, word};

/// Messages and attributes (include/uapi/linux/{rtnetlink,if_link}.h).
const GET_LINK: u16 = 18;
const NEW_LINK: u16 = 16;
const LINK_BYTES: usize = 16;
const LINK_NAME: u16 = 3;
const LINK_GSO_MAX_SEGS: u16 = 40;

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

    #[test]
    fn an_interface_that_does_not_exist_is_refused_by_name() {
        assert!(Link::named("no-such-link").expect_err("no interface").to_string().contains("no-such-link"));
    }
}
