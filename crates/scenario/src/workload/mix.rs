//! `mix = { tcp = 0.9, critical = 0.1 }`: flows of several schemes in one workload.

use super::unknown_scheme;
use crate::error::ScenarioError;
use crate::field::{Field, Section};
use crate::keys::Kind;
use crate::schemes::Schemes;
use sparelane_sim::workload::{Mix, MixBy};

/// The mix that a workload asks for, if it does.
pub fn read(section: &Section<'_>, schemes: &Schemes) -> Result<Option<Mix>, ScenarioError> {
    let Some(field) = section.given("mix") else {
        return match section.given("mix_by") {
            Some(by) => Err(by.error("there is no mix; allowed: mix_by beside mix")),
            None => Ok(None),
        };
    };
    if section.given("scheme").is_some() {
        return Err(field.error("scheme is given too; allowed: one of the two"));
    }
    let mut shares = Vec::new();
    for (name, share) in field.named()? {
        let share = share.with_kind(Kind::Share { max: 1.0 });
        let scheme = schemes.find(name).ok_or_else(|| unknown_scheme(&share, name, schemes))?;
        match share.share()? {
            0.0 => return Err(share.error("no flows at all; allowed: a number above 0, up to 1")),
            number => shares.push((scheme, number)),
        }
    }
    if shares.is_empty() {
        return Err(field.refuse("no scheme"));
    }
    same_segments(&field, &shares, schemes)?;
    let by = match section.need("mix_by")?.choice()? {
        "host" => MixBy::Host,
        _ => MixBy::Flow,
    };
    Ok(Some(Mix { shares, by }))
}

/// Sizes in packets would differ from scheme to scheme, and the flows with the mix.
fn same_segments(field: &Field<'_>, shares: &[(u16, f64)], schemes: &Schemes) -> Result<(), ScenarioError> {
    let mss_bytes = |scheme: u16| schemes.all[usize::from(scheme)].transport.mss_bytes;
    let sizes: Vec<_> = shares.iter().map(|&(scheme, _)| mss_bytes(scheme)).collect();
    match sizes.iter().find(|&&size| size != sizes[0]) {
        Some(other) => Err(field.error(format!(
            "schemes with segments of {}B and of {other}B; allowed: schemes with the same mss",
            sizes[0]
        ))),
        None => Ok(()),
    }
}
