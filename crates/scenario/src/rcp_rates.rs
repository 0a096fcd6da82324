//! `[queue.rcp]` and `[nic.rcp]`: output queues that compute rates for RCP.

use crate::queues::Queues;
use crate::schemes::Schemes;
use sparelane_catalogue::schema::Field;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::{Fallback, Key, Kind};
use sparelane_core::{Dur, Rate};
use sparelane_sim::{Network, NodeKind, QueueSpec, RcpSpec, Scheme};

const NS2: &str = "the ns-2 code of RCP; the RC3 authors' code";
const GAIN: Kind = Kind::Positive { max: 10.0 };
const SHARE_OF_LINK: Kind = Kind::Positive { max: 1.0 };
const SPAN: Kind = Kind::Time { min: Dur::from_us(1), max: Dur::from_secs(100) };

/// The keys of `[queue.rcp]` and `[nic.rcp]`.
pub static RCP: &[Key] = &[
    Key::new("alpha", GAIN, Fallback::Value("0.4"), "share of the spare capacity handed out per round trip").from(NS2),
    Key::new("beta", GAIN, Fallback::Value("0.4"), "share of the standing queue drained per round trip").from(NS2),
    Key::new("gamma", SHARE_OF_LINK, Fallback::Value("1.0"), "share of the link's rate to aim for").from(NS2),
    Key::new("interval", SPAN, Fallback::Value("10ms"), "the longest time between updates of the rate").from(NS2),
    Key::new("initial_rtt", SPAN, Fallback::Value("200ms"), "average round-trip time before packets carry one")
        .from(NS2),
    Key::new("initial_rate", SHARE_OF_LINK, Fallback::Value("0.05"), "rate at time 0, as a share of the link's")
        .from(NS2),
    Key::new("floor", Kind::Rate, Fallback::Value("128kbps"), "the least rate").from("the RC3 authors' code"),
];

/// Reads `[queue.rcp]` or `[nic.rcp]`.
pub fn read(field: &Field<'_>) -> Result<RcpSpec, ScenarioError> {
    let section = field.clone().section(&[RCP])?;
    Ok(RcpSpec {
        alpha: section.need("alpha")?.positive()?,
        beta: section.need("beta")?.positive()?,
        gamma: section.need("gamma")?.positive()?,
        interval: section.need("interval")?.time()?,
        initial_rtt: section.need("initial_rtt")?.time()?,
        initial_rate: section.need("initial_rate")?.positive()?,
        floor: section.need("floor")?.rate()?,
    })
}

/// Checks rates against the links, and that routers compute rates if a scheme needs them. `queue`, `nic` and `scheme`
/// are the fields of these tables.
pub fn check(
    queues: &Queues,
    schemes: &Schemes,
    network: &Network,
    [queue, nic, scheme]: [&Field<'_>; 3],
) -> Result<(), ScenarioError> {
    for (field, spec, kind) in [(queue, &queues.router, NodeKind::Router), (nic, &queues.nic, NodeKind::Host)] {
        check_floor(field, spec, slowest_link(network, kind))?;
    }
    let named = scheme.named()?;
    match named.iter().zip(&schemes.all).find(|(_, scheme)| wants_rate(scheme)) {
        Some(((name, field), _)) if queues.router.rcp.is_none() => Err(field.error(format!(
            "scheme \"{name}\" sends at rates that routers compute, but no router computes one; allowed: with a table [queue.rcp]"
        ))),
        _ => Ok(()),
    }
}

/// Returns true if the controller of a scheme, or the one nested in it, requests explicit rates.
pub fn wants_rate(scheme: &Scheme) -> bool {
    scheme.any_controller().is_ok_and(|cc| cc.desired_rate().is_some())
}

/// The slowest link that leaves a node of this kind.
fn slowest_link(network: &Network, kind: NodeKind) -> Option<Rate> {
    let links = network.cables.iter().flat_map(|cable| [cable.a, cable.b].map(|from| (from, cable.rate_from(from))));
    links.filter(|(from, _)| network.nodes[from.index()].kind == kind).map(|(_, rate)| rate).min()
}

fn check_floor(field: &Field<'_>, spec: &QueueSpec, slowest: Option<Rate>) -> Result<(), ScenarioError> {
    let (Some(rcp), Some(slowest)) = (spec.rcp, slowest) else { return Ok(()) };
    let most = Rate::from_bps((slowest.as_bps() as f64 * rcp.gamma) as u64);
    if rcp.floor <= most {
        return Ok(());
    }
    let table = field.entry("rcp", Kind::TABLE)?;
    let section = table.section(&[RCP])?;
    Err(section.need("floor")?.error(format!("above gamma times the slowest link, {slowest}; allowed: up to {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_catalogue::schema::document::Document;

    #[test]
    fn the_documented_defaults_are_the_simulators_own() {
        let document = Document::parse("[rcp]", "t.toml").expect("valid TOML");
        let root = Field::root(&document);
        let field = root.entry("rcp", Kind::TABLE).expect("a table");
        assert_eq!(read(&field), Ok(RcpSpec::default()));
    }
}
