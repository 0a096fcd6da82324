//! Warnings about the choice of a controller on the paths of the open associations.

use super::Node;
use super::controller::FlowFacts;
use crate::carrier::Carrier;
use crate::line::LineSource;

impl<C: Carrier> Node<C> {
    /// Returns warnings about the controller on the current paths, one sentence each. A controller declares the cases
    /// itself ([`WireDefaults`](sparelane_cc::WireDefaults)).
    pub fn warnings(&self) -> Vec<String> {
        let (mut warnings, config) = (vec![], &self.config);
        let rate = config.line_rate;
        let mut defaults = config.controller.wire_defaults(&config.registry);
        if config.line_source == LineSource::Assumed && defaults.any(|wire| wire.needs_line_rate) {
            warnings.push(format!("no interface reports its rate, so {rate} is assumed; set it with --line-rate"));
        }
        if let Ok(cc) = config.controller.build(&config.registry, 1400, &FlowFacts::default(), rate) {
            let name = &config.controller.name;
            if cc.needs().telemetry {
                warnings.push(format!(
                    "{name} follows telemetry of routers, and none reaches it here: its window is constant"
                ));
            }
            if cc.desired_rate().is_some() {
                warnings.push(format!("{name} requests its rate from routers, and no request leaves this host"));
            }
        }
        let longest = self.peers.keys().filter_map(|&association| self.carrier.round_trip(association)).max();
        let (Some(round_trip), true) = (longest, config.line_source != LineSource::Set) else { return warnings };
        let limits = config.controller.wire_defaults(&config.registry).filter_map(|wire| wire.path_limit);
        for limit in limits.filter(|limit| round_trip > limit.round_trip) {
            let (reason, ms) = (limit.reason, round_trip.as_secs_f64() * 1e3);
            warnings.push(format!(
                "{reason} of {rate}, and the round trip takes {ms:.0} ms; on a slower path, the excess is lost and \
                 repaired slowly: set the path's rate with --line-rate"
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use crate::line::LineSource;
    use crate::node::{ControllerChoice, NodeConfig};
    use crate::virt::{Path, Virtual};
    use sparelane_core::{Dur, Time};

    fn warnings(controller: &str, delay: Dur, line_source: LineSource) -> Vec<String> {
        let controller = ControllerChoice::named(controller);
        let config = NodeConfig { controller, line_source, ..NodeConfig::default() };
        let mut net = Virtual::new(Path { delay, ..Path::default() }, config, 1).expect("settings that fit");
        net.connect().expect("a peer");
        while net.next_event(Time::ZERO + Dur::from_secs(1)).is_some() {}
        net.node(0).warnings()
    }

    #[test]
    fn rtcp_over_a_long_path_causes_a_warning_unless_the_line_rate_is_set() {
        let of_interface = || LineSource::Interface("eth0".to_owned());
        assert!(warnings("rtcp", Dur::from_ms(20), of_interface())[0].starts_with("RTCP is meant for datacentres"));
        assert_eq!(warnings("rtcp", Dur::from_ms(20), LineSource::Set), [""; 0]);
        assert_eq!(warnings("rtcp", Dur::from_us(100), of_interface()), [""; 0]);
        assert_eq!(warnings("rc3", Dur::from_ms(20), LineSource::Assumed), [""; 0]);
    }

    #[test]
    fn controllers_that_follow_routers_cause_a_warning() {
        let of = |controller| warnings(controller, Dur::from_us(100), LineSource::Set);
        assert!(of("hpcc")[0].starts_with("hpcc follows telemetry of routers, and none reaches it here"));
        assert!(of("rcp")[0].starts_with("rcp requests its rate from routers, and no request leaves this host"));
        assert_eq!(of("dcqcn"), [""; 0]);
    }

    #[test]
    fn an_assumed_line_rate_causes_a_warning_if_the_controller_needs_it() {
        assert!(warnings("rapid", Dur::from_us(100), LineSource::Assumed)[0].contains("--line-rate"));
        assert_eq!(warnings("rapid", Dur::from_us(100), LineSource::Set), [""; 0]);
    }
}
