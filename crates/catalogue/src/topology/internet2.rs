//! The Internet-2 network of the RC3 paper (Mittal, Sherry, Ratnasamy, Shenker; NSDI 2014).
//!
//! Source: the topology file of the authors' public simulation, `internet2-withbandwidthdelay-fanout10`: ten routers,
//! 16 core links, ten hosts per router at 1 Gb/s and 1 ms, core delays of 10 ms. With these capacities every link is
//! equally loaded under uniform traffic; see [`balanced_rates`] for the rule. The file does not assign routers to
//! cities, and with equal delays the assignment does not matter.
//!
//! [`balanced_rates`]: crate::topology::balanced_rates

use super::{ACCESS_DELAY, COUNT, TopologyForm, built};
use crate::schema::{Fallback, Form, Key, Kind, ScenarioError, Section};
use crate::topology::{TopologyError, attach_hosts, bounds};
use sparelane_core::maths::mul_div;
use sparelane_core::{Domain, Dur, Rate, Stream};
use sparelane_sim::{Network, NodeKind};

/// The form in a scenario.
pub static FORM: TopologyForm = Form {
    name: "internet2",
    summary: "the RC3 paper's ten routers r0 to r9; host h10+i is at router i mod 10",
    source: "NSDI 2014 section 5; the authors' topology file",
    keys: &[
        Key::new("hosts_per_router", COUNT, Fallback::Value("10"), "hosts at each router; core rates scale with it"),
        Key::new(
            "access_rate",
            Kind::Rate,
            Fallback::Value("1Gbps"),
            "rate of each host's cable; core rates scale with it",
        ),
        ACCESS_DELAY,
        Key::new("core_delay", Kind::DELAY, Fallback::Value("10ms"), "propagation delay of each core cable, one way"),
        Key::new(
            "core_rate_min",
            Kind::Rate,
            Fallback::Nothing("the paper's rates"),
            "minimum of core rates, which are drawn uniformly, by the seed, up to core_rate_max",
        )
        .from("NSDI 2014 section 5.1.2, link heterogeneity: from 500 Mb/s to 2 Gb/s"),
        Key::new(
            "core_rate_max",
            Kind::Rate,
            Fallback::Nothing("the paper's rates"),
            "maximum of core rates; requires core_rate_min",
        ),
    ],
    read: |section, context| {
        let spec = Internet2 {
            hosts_per_router: section.need("hosts_per_router")?.whole()? as u32,
            access_rate: section.need("access_rate")?.rate()?,
            access_delay: section.need("access_delay")?.time()?,
            core_delay: section.need("core_delay")?.time()?,
            drawn_core_rates: drawn_core_rates(section, context.seed)?,
        };
        built(section, spec.build())
    },
};

/// Reads the bounds of randomly drawn core rates: both or neither.
fn drawn_core_rates(section: &Section<'_>, seed: u64) -> Result<Option<DrawnRates>, ScenarioError> {
    let bounds = (section.given("core_rate_min"), section.given("core_rate_max"));
    let (lowest, highest) = match &bounds {
        (None, None) => return Ok(None),
        (Some(lowest), Some(highest)) => (lowest, highest),
        (Some(one), None) => return Err(one.error("core_rate_max is not given; allowed: both or none")),
        (None, Some(one)) => return Err(one.error("core_rate_min is not given; allowed: both or none")),
    };
    let (min, max) = (lowest.rate()?, highest.rate()?);
    if min > max {
        return Err(highest.error(format!("below core_rate_min, {min}; allowed: that or more")));
    }
    Ok(Some(DrawnRates { min, max, seed }))
}

/// Router, router and Mb/s, for ten hosts of 1 Gb/s per router.
const CORE: [(usize, usize, u64); 16] = [
    (0, 1, 5556),
    (0, 2, 7778),
    (0, 3, 14445),
    (1, 2, 3334),
    (2, 4, 3334),
    (1, 5, 5556),
    (4, 5, 1112),
    (3, 5, 3334),
    (3, 4, 5556),
    (5, 6, 4445),
    (3, 6, 10000),
    (3, 7, 14445),
    (7, 8, 1112),
    (6, 8, 8889),
    (8, 9, 2223),
    (7, 9, 7778),
];
const ROUTERS: u32 = 10;
/// The load per router for which the capacities of [`CORE`] were made, in bits per second.
const PRINTED_FAN_OUT_BPS: u64 = 10_000_000_000;

/// The settings of the Internet-2 network; [`Default`] is the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Internet2 {
    /// Hosts at each of the ten routers.
    pub hosts_per_router: u32,
    /// Rate of the cable of each host. Core capacities scale with it and with the hosts per router.
    pub access_rate: Rate,
    /// Propagation delay of the cable of each host, one way.
    pub access_delay: Dur,
    /// Propagation delay of each core link, one way.
    pub core_delay: Dur,
    /// Core rates drawn at random instead of the paper's (its section 5.1.2, "Link Heterogeneity").
    pub drawn_core_rates: Option<DrawnRates>,
}

/// Rates that are drawn at random, independently for each cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnRates {
    /// The minimum.
    pub min: Rate,
    /// The maximum. Every whole bit per second in the range is equally likely.
    pub max: Rate,
    /// The run's seed.
    pub seed: u64,
}

impl DrawnRates {
    /// Returns the rate of cable number `cable` in both directions. The bounds must be in order.
    fn draw(&self, cable: u64) -> Rate {
        let choices = self.max.as_bps() - self.min.as_bps() + 1;
        Rate::from_bps(self.min.as_bps() + Stream::new(self.seed, Domain::CoreRates, cable).below(choices))
    }

    fn check(&self) -> Result<(), TopologyError> {
        let [min, max] = [("the lowest core rate", self.min), ("the highest core rate", self.max)]
            .map(|(what, rate)| bounds::rate(None, what, rate));
        let (min, max) = (min?, max?);
        if min <= max {
            return Ok(());
        }
        Err(TopologyError::new(format!(
            "core rates are drawn from {min} to {max}; allowed: a highest rate that is no less"
        )))
    }
}

impl Default for Internet2 {
    fn default() -> Internet2 {
        Internet2 {
            hosts_per_router: 10,
            access_rate: Rate::from_gbps(1),
            access_delay: Dur::from_ms(1),
            core_delay: Dur::from_ms(10),
            drawn_core_rates: None,
        }
    }
}

impl Internet2 {
    /// Builds the network: routers `r0` to `r9` first, then hosts `h10`, `h11`, ..., of which host number `10 + i` is
    /// at router `i mod 10`. The 16 core links are the first cables.
    ///
    /// # Errors
    /// Fails without hosts, with more nodes than allowed, or with a rate or delay out of bounds, including scaled core
    /// rates.
    pub fn build(&self) -> Result<Network, TopologyError> {
        bounds::at_least("the number of hosts per router", self.hosts_per_router, 1)?;
        bounds::nodes(u64::from(ROUTERS) * (1 + u64::from(self.hosts_per_router)))?;
        bounds::rate(None, "the access rate", self.access_rate)?;
        let core_delay = bounds::delay(None, "the core delay", self.core_delay)?;

        let mut network = Network::default();
        let routers: Vec<_> = (0..ROUTERS).map(|i| network.add(format!("r{i}"), NodeKind::Router)).collect();
        self.drawn_core_rates.map_or(Ok(()), |drawn| drawn.check())?;
        for (cable, (a, b, mbps)) in (0..).zip(CORE) {
            let rate = match self.drawn_core_rates {
                Some(drawn) => drawn.draw(cable),
                None => self.core_rate(mbps)?,
            };
            network.connect(routers[a], routers[b], rate, core_delay);
        }
        attach_hosts(&mut network, self.hosts_per_router, self.access_rate, self.access_delay)?;
        Ok(network)
    }

    /// Returns the printed capacity, scaled to this network's access rate and fan-out.
    fn core_rate(&self, printed_mbps: u64) -> Result<Rate, TopologyError> {
        let fan_out_bps = self.access_rate.as_bps().saturating_mul(u64::from(self.hosts_per_router));
        let bps = mul_div(printed_mbps * 1_000_000, fan_out_bps, PRINTED_FAN_OUT_BPS);
        bounds::rate(None, "the rate of a core link, scaled to the access links,", Rate::from_bps(bps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_sim::NodeId;

    #[test]
    fn the_default_is_the_papers_network() {
        let network = Internet2::default().build().unwrap();
        assert_eq!((network.nodes.len(), network.cables.len(), network.hosts().len()), (110, 116, 100));
        for (cable, (a, b, mbps)) in network.cables.iter().zip(CORE) {
            assert_eq!((cable.a.index(), cable.b.index(), cable.rates), (a, b, [Rate::from_mbps(mbps); 2]));
            assert_eq!(cable.delay, Dur::from_ms(10));
        }
        for host in network.hosts() {
            assert_eq!(network.nodes[host.index()].name, format!("h{}", host.0));
            assert_eq!(network.attachment(host), Some(NodeId(host.0 % 10)));
        }
        let access = &network.cables[16];
        assert_eq!((access.rates, access.delay), ([Rate::from_gbps(1); 2], Dur::from_ms(1)));
    }

    #[test]
    fn core_capacities_scale_with_access_rate_and_fan_out() {
        let network = Internet2 { hosts_per_router: 5, access_rate: Rate::from_gbps(10), ..Internet2::default() }
            .build()
            .unwrap();
        assert_eq!(network.cables[2].rates, [Rate::from_mbps(72_225); 2]);
        assert_eq!(network.hosts().len(), 50);
    }

    #[test]
    fn core_rates_are_drawn_by_the_seed_over_the_whole_range() {
        let (min, max) = (Rate::from_mbps(500), Rate::from_gbps(2));
        let rates = |seed| {
            let drawn_core_rates = Some(DrawnRates { min, max, seed });
            let network = Internet2 { drawn_core_rates, ..Internet2::default() }.build().unwrap();
            assert_eq!(network.cables[16..], Internet2::default().build().unwrap().cables[16..]);
            network.cables[..16].iter().map(|cable| cable.rates).collect::<Vec<_>>()
        };
        assert_eq!(rates(1), rates(1));
        assert_ne!(rates(1), rates(2));
        let all: Vec<_> = (0..500).flat_map(rates).collect();
        assert!(all.iter().all(|[there, back]| there == back && (min..=max).contains(there)));
        let mean_bps = all.iter().map(|[rate, _]| rate.as_bps() as f64).sum::<f64>() / all.len() as f64;
        assert!((mean_bps / 1.25e9 - 1.0).abs() < 0.02, "{mean_bps}");
        let outer = |bps: u64| !(515_000_000..=1_985_000_000).contains(&bps);
        let at_the_ends = all.iter().filter(|[rate, _]| outer(rate.as_bps())).count();
        assert!((100..240).contains(&at_the_ends), "{at_the_ends} of 8000 in the outer 2 %");
    }

    #[test]
    fn invalid_values_are_refused() {
        let drawn = |min, max| Some(DrawnRates { min: Rate::from_bps(min), max: Rate::from_bps(max), seed: 1 });
        for wrong in [
            Internet2 { hosts_per_router: 0, ..Internet2::default() },
            Internet2 { hosts_per_router: u32::MAX, ..Internet2::default() },
            Internet2 { access_rate: Rate::from_bps(0), ..Internet2::default() },
            Internet2 { access_rate: Rate::from_bps(u64::MAX), ..Internet2::default() },
            Internet2 { core_delay: Dur::MAX, ..Internet2::default() },
            Internet2 { drawn_core_rates: drawn(2_000_000, 1_000_000), ..Internet2::default() },
            Internet2 { drawn_core_rates: drawn(0, 1_000_000), ..Internet2::default() },
        ] {
            assert!(wrong.build().is_err(), "{wrong:?}");
        }
    }
}
