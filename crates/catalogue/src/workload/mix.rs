//! Flows of several schemes in one workload. Schemes are drawn independently, so that the flows (start, size,
//! endpoints) are the same for any mix.

use super::{Workload, find_scheme};
use crate::schema::{Field, Kind, ScenarioError, Section};
use crate::workload::Demand;
use crate::workload::WorkloadError;
use crate::workload::streams::stream;
use sparelane_core::Dur;
use sparelane_core::{Domain, Stream, Time};
use sparelane_sim::Scheme;
use sparelane_sim::{FlowSource, FlowSpec};
use sparelane_sim::{Network, NodeId, NodeKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The scheme of a flow for which a [`Mixed`] workload is still to choose one.
pub const UNDECIDED: u16 = u16::MAX;

/// Maximum deviation of a sum of shares from 1.
const ROUNDING: f64 = 1e-6;

/// The criterion for a flow's scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixBy {
    /// A draw for each flow.
    Flow,
    /// The flow's sender: of the hosts behind each router, the first share uses the first scheme, and so on.
    Host,
}

/// Schemes and their shares.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Each scheme by its index in the run, and its share above 0. The shares add up to 1.
    pub shares: Vec<(u16, f64)>,
    /// The criterion of the shares.
    pub by: MixBy,
}

/// A source that assigns schemes to the flows without one.
pub struct Mixed {
    inner: Box<dyn FlowSource>,
    chooser: Chooser,
}

#[derive(Debug)]
enum Chooser {
    /// Schemes with the cumulative sums of their shares.
    Draw(Vec<(u16, f64)>, Stream),
    /// The scheme of every host.
    Hosts(BTreeMap<NodeId, u16>),
}

impl Mixed {
    /// Assigns a scheme of `mix` to the flows of `inner` whose scheme is [`UNDECIDED`]. `number` is the workload's: see
    /// [`PoissonSpec::number`](crate::workload::PoissonSpec::number).
    ///
    /// # Errors
    /// Fails if a share is not above 0, shares do not add up to 1, or, by hosts, a scheme would have no host.
    pub fn new(
        inner: Box<dyn FlowSource>,
        network: &Network,
        mix: &Mix,
        seed: u64,
        number: u32,
    ) -> Result<Mixed, WorkloadError> {
        let sums = sums(&mix.shares)?;
        let chooser = match mix.by {
            MixBy::Flow => Chooser::Draw(sums, stream(seed, Domain::Schemes, number, 0)),
            MixBy::Host => Chooser::Hosts(by_host(network, &sums)?),
        };
        Ok(Mixed { inner, chooser })
    }

    fn decided(&mut self, mut flow: FlowSpec) -> FlowSpec {
        // Draw for every flow, so that a scheme given in a list does not change the other flows.
        let chosen = match &mut self.chooser {
            Chooser::Draw(sums, stream) => at(sums, stream.unit()),
            Chooser::Hosts(schemes) => schemes.get(&flow.src).copied().unwrap_or(flow.scheme),
        };
        if flow.scheme == UNDECIDED {
            flow.scheme = chosen;
        }
        flow
    }
}

impl FlowSource for Mixed {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        self.inner.next_flow().map(|flow| self.decided(flow))
    }

    fn is_open_loop(&self) -> bool {
        self.inner.is_open_loop()
    }

    fn starting_together(&self) -> usize {
        self.inner.starting_together()
    }

    fn follow(&mut self, waiter: u64, now: Time) -> Vec<FlowSpec> {
        let flows = self.inner.follow(waiter, now);
        flows.into_iter().map(|flow| self.decided(flow)).collect()
    }
}

impl fmt::Debug for Mixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mixed").field("chooser", &self.chooser).finish_non_exhaustive()
    }
}

fn sums(shares: &[(u16, f64)]) -> Result<Vec<(u16, f64)>, WorkloadError> {
    let mut sum = 0.0;
    let mut sums = Vec::with_capacity(shares.len());
    for &(scheme, share) in shares {
        if !(share > 0.0 && share <= 1.0 + ROUNDING) {
            return Err(WorkloadError::new(format!("a share of the mix is {share}; allowed: above 0, at most 1")));
        }
        sum += share;
        sums.push((scheme, sum));
    }
    if (sum - 1.0).abs() > ROUNDING {
        let message = format!("the shares of the mix add up to {sum}; allowed: 1, to within {ROUNDING}");
        return Err(WorkloadError::new(message));
    }
    Ok(sums)
}

/// Returns the scheme whose part of [0, 1) contains `point`.
fn at(sums: &[(u16, f64)], point: f64) -> u16 {
    let part = sums.iter().find(|(_, sum)| point < *sum).or(sums.last());
    part.map_or(UNDECIDED, |&(scheme, _)| scheme)
}

/// Returns the scheme of each host. Host `i` of `n` behind a router lies at the centre of the i-th of n parts of [0,
/// 1).
fn by_host(network: &Network, sums: &[(u16, f64)]) -> Result<BTreeMap<NodeId, u16>, WorkloadError> {
    let mut behind: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for cable in &network.cables {
        for (host, other) in [(cable.a, cable.b), (cable.b, cable.a)] {
            if network.nodes[host.index()].kind == NodeKind::Host {
                behind.entry(other).or_default().push(host);
            }
        }
    }
    let mut schemes = BTreeMap::new();
    for hosts in behind.values_mut() {
        hosts.sort_unstable();
        let count = hosts.len() as f64;
        schemes.extend(hosts.iter().enumerate().map(|(place, &host)| (host, at(sums, (place as f64 + 0.5) / count))));
    }
    match sums.iter().find(|(scheme, _)| schemes.values().all(|used| used != scheme)) {
        Some(_) => Err(WorkloadError::new(
            "a share of the mix is less than half a host at every router; allowed: shares that give each scheme a host",
        )),
        None => Ok(schemes),
    }
}

/// A workload whose flows get several schemes, and the workload's number.
#[derive(Clone, Debug)]
pub(super) struct MixedWorkload(pub(super) Arc<dyn Workload>, pub(super) Mix, pub(super) u32);

impl Workload for MixedWorkload {
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError> {
        Ok(Box::new(Mixed::new(self.0.flows(network, seed)?, network, &self.1, seed, self.2)?))
    }

    fn demand(&self, network: &Network, duration: Dur) -> Demand {
        self.0.demand(network, duration)
    }
}

/// Returns the mix that a workload gives, if any.
pub(super) fn read(section: &Section<'_>, schemes: &[Scheme]) -> Result<Option<Mix>, ScenarioError> {
    let Some(field) = section.given("mix") else {
        return match section.given("mix_by") {
            Some(by) => Err(by.error("there is no mix; allowed: mix_by together with mix")),
            None => Ok(None),
        };
    };
    if section.given("scheme").is_some() {
        return Err(field.error("scheme is also given; allowed: one of the two"));
    }
    let mut shares = Vec::new();
    for (name, share) in field.named()? {
        let share = share.with_kind(Kind::Share { max: 1.0 });
        let scheme = find_scheme(&share, name, schemes)?;
        match share.share()? {
            0.0 => return Err(share.error("no flows; allowed: a number above 0, up to 1")),
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

/// Sizes in packets would differ between schemes, and flows would then depend on the mix.
fn same_segments(field: &Field<'_>, shares: &[(u16, f64)], schemes: &[Scheme]) -> Result<(), ScenarioError> {
    let mss_bytes = |scheme: u16| schemes[usize::from(scheme)].transport.mss_bytes;
    let sizes: Vec<_> = shares.iter().map(|&(scheme, _)| mss_bytes(scheme)).collect();
    match sizes.iter().find(|&&size| size != sizes[0]) {
        Some(other) => Err(field.error(format!(
            "schemes with segments of {}B and of {other}B; allowed: schemes with the same mss",
            sizes[0]
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Internet2;
    use sparelane_core::Time;

    /// `count` flows, from the hosts of Internet-2 in turn.
    struct Turns(u32, u32);

    impl FlowSource for Turns {
        fn next_flow(&mut self) -> Option<FlowSpec> {
            (self.0 < self.1).then(|| {
                self.0 += 1;
                let src = NodeId(10 + self.0 % 100);
                let scheme = if self.0 == 7 { 3 } else { UNDECIDED };
                FlowSpec::new(Time::ZERO, src, NodeId(10), None, scheme)
            })
        }
    }

    fn network() -> Network {
        Internet2::default().build().unwrap()
    }

    fn flows(shares: &[(u16, f64)], by: MixBy, seed: u64, number: u32) -> Vec<FlowSpec> {
        let mix = Mix { shares: shares.to_vec(), by };
        let mut mixed = Mixed::new(Box::new(Turns(0, 10_000)), &network(), &mix, seed, number).unwrap();
        std::iter::from_fn(|| mixed.next_flow()).collect()
    }

    fn schemes(shares: &[(u16, f64)], seed: u64, number: u32) -> Vec<u16> {
        flows(shares, MixBy::Flow, seed, number).iter().map(|flow| flow.scheme).collect()
    }

    #[test]
    fn each_scheme_gets_its_share_of_the_flows_and_a_flow_that_has_one_keeps_it() {
        let drawn = schemes(&[(0, 0.7), (2, 0.2), (1, 0.1)], 1, 0);
        for (scheme, share) in [(0, 7_000), (2, 2_000), (1, 1_000)] {
            let count = drawn.iter().filter(|&&other| other == scheme).count();
            assert!((share - 150..share + 150).contains(&count), "{count} flows of scheme {scheme}");
        }
        assert_eq!((drawn[6], drawn.iter().filter(|&&scheme| scheme == 3).count()), (3, 1));
    }

    #[test]
    fn the_same_seed_and_number_give_the_same_schemes_and_others_do_not() {
        let half = [(0, 0.5), (1, 0.5)];
        assert_eq!(schemes(&half, 1, 0), schemes(&half, 1, 0));
        assert_ne!(schemes(&half, 1, 0), schemes(&half, 2, 0));
        assert_ne!(schemes(&half, 1, 0), schemes(&half, 1, 1));
    }

    #[test]
    fn a_larger_share_gains_flows_and_loses_none() {
        let (small, large) = (schemes(&[(0, 0.2), (1, 0.8)], 1, 0), schemes(&[(0, 0.3), (1, 0.7)], 1, 0));
        assert!(small.iter().zip(&large).all(|(&one, &other)| one != 0 || other == 0));
    }

    #[test]
    fn by_host_the_first_hosts_behind_each_router_use_the_first_scheme() {
        let flows = flows(&[(1, 0.3), (0, 0.7)], MixBy::Host, 1, 0);
        let network = network();
        let hosts = network.hosts();
        for flow in flows.iter().filter(|flow| flow.scheme != 3) {
            let router = network.attachment(flow.src);
            let place = hosts.iter().filter(|&&host| network.attachment(host) == router && host < flow.src).count();
            assert_eq!(flow.scheme, u16::from(place < 3), "host {place} behind {router:?}");
        }
    }

    #[test]
    fn invalid_shares_are_refused() {
        let refused = |shares: &[(u16, f64)], by| {
            let mix = Mix { shares: shares.to_vec(), by };
            Mixed::new(Box::new(Turns(0, 1)), &network(), &mix, 1, 0).unwrap_err().to_string()
        };
        for (shares, by, expected) in [
            (
                &[(0, 0.5), (1, 0.4)][..],
                MixBy::Flow,
                "the shares of the mix add up to 0.9; allowed: 1, to within 0.000001",
            ),
            (&[(0, 1.0), (1, 0.0)], MixBy::Flow, "a share of the mix is 0; allowed: above 0, at most 1"),
            (&[(0, f64::NAN)], MixBy::Flow, "a share of the mix is NaN; allowed: above 0, at most 1"),
            (
                &[(0, 0.97), (1, 0.03)],
                MixBy::Host,
                "a share of the mix is less than half a host at every router; allowed: shares that give each scheme a \
                 host",
            ),
        ] {
            assert_eq!(refused(shares, by), expected);
        }
    }
}
