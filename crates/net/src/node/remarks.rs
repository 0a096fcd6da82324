//! What whoever chose a controller should know of it on the path that it has got.

use super::Node;
use crate::carrier::Carrier;
use crate::route::LineSource;
use sparelane_core::Dur;

/// On paths of a longer round trip RTCP is told that it is a datacentre's.
const LONG_FOR_RTCP: Dur = Dur::from_ms(5);

impl<C: Carrier> Node<C> {
    /// What is remarkable about the controller on the paths of the associations that are open, a sentence each.
    pub fn remarks(&self) -> Vec<String> {
        let (mut remarks, config) = (vec![], &self.config);
        let is_rtcp = config.controller.has("rtcp");
        if config.line_source == LineSource::Assumed && (is_rtcp || config.controller.has("rapid")) {
            let rate = config.line_rate;
            remarks.push(format!("no interface says its rate, and {rate} are taken for it: --line-rate sets it"));
        }
        let longest = self.peers.keys().filter_map(|&association| self.carrier.round_trip(association)).max();
        let is_long = longest.filter(|&round_trip| round_trip > LONG_FOR_RTCP);
        if let Some(round_trip) = is_long.filter(|_| is_rtcp && config.line_source != LineSource::Set) {
            let (ms, rate) = (round_trip.as_secs_f64() * 1e3, config.line_rate);
            remarks.push(format!(
                "RTCP is a datacentre's: its window doubles up to what the line of {rate} holds in the round trip of {ms:.0} ms, \
                 and where the path has less, that is lost and takes long to repair: --line-rate with the path's own rate mends it"
            ));
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use crate::node::{ControllerChoice, NodeConfig};
    use crate::route::LineSource;
    use crate::virt::{Path, Virtual};
    use sparelane_core::{Dur, Time};

    fn remarks(controller: &str, delay: Dur, line_source: LineSource) -> Vec<String> {
        let controller = ControllerChoice::named(controller);
        let config = NodeConfig { controller, line_source, ..NodeConfig::default() };
        let mut net = Virtual::new(Path { delay, ..Path::default() }, config, 1).expect("settings that fit");
        net.connect().expect("a peer");
        while net.next_event(Time::ZERO + Dur::from_secs(1)).is_some() {}
        net.node(0).remarks()
    }

    #[test]
    fn rtcp_over_a_long_path_is_remarked_upon_unless_the_line_was_set() {
        let of_interface = || LineSource::Interface("eth0".to_owned());
        assert!(remarks("rtcp", Dur::from_ms(20), of_interface())[0].starts_with("RTCP is a datacentre's"));
        assert_eq!(remarks("rtcp", Dur::from_ms(20), LineSource::Set), [""; 0]);
        assert_eq!(remarks("rtcp", Dur::from_us(100), of_interface()), [""; 0]);
        assert_eq!(remarks("rc3", Dur::from_ms(20), LineSource::Assumed), [""; 0]);
    }

    #[test]
    fn a_line_rate_that_is_assumed_is_told_to_those_who_use_it() {
        assert!(remarks("rapid", Dur::from_us(100), LineSource::Assumed)[0].contains("--line-rate"));
        assert_eq!(remarks("rapid", Dur::from_us(100), LineSource::Set), [""; 0]);
    }
}
