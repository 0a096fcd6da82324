//! Weights of flows on the wire, by size or by port, for controllers that have weights (RTCP).
//!
//! The settings are those of the program in the kernel: `classify=by-size` with `weight.urgent` and
//! `weight.high-volume`, or `classify=by-port` with `weight.443=24000`, where `weight` is that of flows with no listed
//! port. The ports of a flow are, in this order, that of a tunnel's target, the peer's UDP port and this host's UDP
//! port.

use super::settings::ChoiceError;
use sparelane_cc::{Controller, Kind, Param, Value, Values};

/// The parameter that selects the classification, and its values.
const CLASSIFY: &str = "classify";
const BY_PORT: &str = "by-port";
const BY_SIZE: &str = "by-size";

/// The settings of the weights of one controller.
#[derive(Debug, Default)]
pub(super) struct WeightSettings {
    by_port: bool,
    named: Vec<(String, f64)>,
}

/// Returns the table of weights of a controller, if it has one.
fn table(controller: &Controller) -> Option<&'static Param> {
    controller.params.iter().find(|param| param.kind == Kind::Weights)
}

fn form(key: &str, text: &str, allowed: &str) -> ChoiceError {
    ChoiceError::Form { key: key.to_owned(), text: text.to_owned(), allowed: allowed.to_owned() }
}

impl WeightSettings {
    /// Consumes a setting that concerns weights; returns true if it did.
    pub fn take(&mut self, controller: &Controller, key: &str, text: &str) -> Result<bool, ChoiceError> {
        if table(controller).is_none() {
            return Ok(false);
        }
        if key == CLASSIFY {
            self.by_port = text == BY_PORT;
            return match text {
                BY_PORT => Ok(true),
                "no" | BY_SIZE => Ok(false),
                _ => Err(form(key, text, "no, by-size or by-port")),
            };
        }
        let Some(name) = key.strip_prefix("weight.") else { return Ok(false) };
        let weight = text.parse().ok().filter(|weight: &f64| weight.is_finite() && *weight > 0.0);
        let weight = weight.ok_or_else(|| form(key, text, "a number of bytes above zero"))?;
        self.named.push((name.to_owned(), weight));
        Ok(true)
    }

    /// Writes the weights into `values`; returns the ports that have one.
    pub fn finish(self, controller: &Controller, values: &mut Values) -> Result<Vec<u16>, ChoiceError> {
        let Some(table) = table(controller) else { return Ok(vec![]) };
        if self.by_port {
            if self.named.is_empty() {
                return Err(form(CLASSIFY, BY_PORT, "with a weight for one port at least, such as weight.443=24000"));
            }
            let port = |(name, _): &(String, f64)| {
                let port = name.parse().ok().filter(|&port: &u16| port > 0 && port.to_string() == *name);
                port.ok_or_else(|| form("weight", name, "a port from 1 to 65535, under classify=by-port"))
            };
            let ports = self.named.iter().map(port).collect::<Result<_, _>>()?;
            values.set(table.name, Value::Weights(self.named));
            return Ok(ports);
        }
        let by_size = values.given(CLASSIFY) == Some(&Value::Word(BY_SIZE.to_owned()));
        let mut weights = match Value::from(table.default) {
            Value::Weights(weights) => weights,
            _ => vec![],
        };
        for (name, weight) in self.named {
            let own = weights.iter_mut().find(|(known, _)| *known == name && by_size);
            let allowed = "urgent or high-volume under classify=by-size, or a port under classify=by-port";
            own.ok_or_else(|| form("weight", &name, allowed))?.1 = weight;
        }
        values.set(table.name, Value::Weights(weights));
        Ok(vec![])
    }
}

#[cfg(test)]
mod tests {
    use crate::node::controller::FlowFacts;
    use crate::node::{ControllerChoice, FlowKind, NodeConfig};
    use crate::virt::{Path, Virtual, address_of};
    use sparelane_cc::algos::newreno;
    use sparelane_cc::{Ack, BuildError, Controller, Cx, Registry};
    use sparelane_core::{Domain, Dur, Rate, Stream, Time};
    use std::sync::Arc;

    fn parsed(settings: &[(&str, &str)]) -> Result<ControllerChoice, String> {
        let settings: Vec<_> = settings.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        ControllerChoice::parse("rtcp", &settings, &Registry::built_in()).map_err(|error| error.to_string())
    }

    /// Returns the weight of a flow of `bytes` with these ports: its counter equals the weight after a long pause.
    fn weight(settings: &[(&str, &str)], bytes: Option<u64>, ports: &[u16]) -> f64 {
        let choice = parsed(settings).expect("settings that fit");
        let facts = FlowFacts { bytes, ports: ports.to_vec(), round_trip: None };
        let mut cc = choice.build(&Registry::built_in(), 1400, &facts, Rate::from_gbps(1)).expect("a controller");
        let mut rng = Stream::new(1, Domain::Controller, 1);
        let mut cx = Cx { now: Time::ZERO, mss_bytes: 1400, srtt: None, min_rtt: None, rng: &mut rng };
        cc.on_established(None, &mut cx);
        cx.now = Time::ZERO + Dur::from_secs(1000);
        let ack = Ack { delivered_bytes: 0, ..Ack::in_sequence(1400) };
        cc.on_ack(&ack, &mut cx);
        let mut weight = 0.0;
        cc.trace(&mut |name, value| weight = if name == "counter_bytes" { value } else { weight });
        weight
    }

    #[test]
    fn the_size_of_a_flow_selects_its_weight() {
        let by_size = [("classify", "by-size"), ("weight.urgent", "50000"), ("urgent_below", "10KB")];
        assert_eq!(weight(&by_size, Some(9_999), &[]), 50_000.0);
        assert_eq!(weight(&by_size, Some(10_000), &[]), 12_000.0);
        assert_eq!(weight(&by_size, None, &[7777]), 12_000.0, "flows of unknown size are high-volume");
    }

    #[test]
    fn the_first_listed_port_of_a_flow_selects_its_weight() {
        let by_port = [("weight.443", "30000"), ("classify", "by-port"), ("weight.7777", "5000"), ("weight", "1000")];
        assert_eq!(weight(&by_port, None, &[443, 7777]), 30_000.0);
        assert_eq!(weight(&by_port, Some(1), &[22, 7777]), 5_000.0);
        assert_eq!(weight(&by_port, None, &[22, 23]), 1_000.0);
        assert_eq!(weight(&[], None, &[443]), 24_000.0);
    }

    /// NewReno that fails with the traffic class of its flow, if it has one.
    const FAILING: Controller = Controller {
        name: "failing",
        make: &|values, plan| match plan.traffic_class {
            Some(class) => Err(BuildError::Refused(class.to_owned())),
            None => (newreno::CONTROLLER.make)(values, plan),
        },
        ..newreno::CONTROLLER
    };

    #[test]
    fn the_ports_of_application_peer_and_host_are_tried_in_this_order() {
        let peers = address_of(1).port();
        for (listed, expected) in
            [(vec![443, peers, 9], Some(443)), (vec![9, peers], Some(peers)), (vec![9], Some(9)), (vec![8], None)]
        {
            let controller = ControllerChoice { ports: listed, ..ControllerChoice::named("failing") };
            let registry = Arc::new(Registry::clone(&Registry::built_in()).with(FAILING).expect("a name of its own"));
            let config = NodeConfig { controller, registry, port: Some(9), ..NodeConfig::default() };
            let mut net = Virtual::new(Path::default(), config, 1).expect("settings that fit");
            let association = net.connect().expect("a peer");
            while net.next_event(Time::ZERO + Dur::from_secs(1)).is_some() {}
            let now = net.now();
            let opened =
                net.node(0).open_flow(now, association, FlowKind::of_port(443)).map_err(|error| error.to_string());
            assert_eq!(opened.err(), expected.map(|port| port.to_string()));
        }
    }

    #[test]
    fn invalid_weights_are_reported_with_the_allowed_values() {
        let cases: [(&[(&str, &str)], &str); 8] = [
            (&[("classify", "by-colour")], "classify = \"by-colour\"; allowed: no, by-size or by-port"),
            (&[("classify", "by-port")], "classify = \"by-port\"; allowed: with a weight for one port at least"),
            (&[("weight.urgent", "1")], "weight = \"urgent\"; allowed: urgent or high-volume under classify=by-size"),
            (&[("classify", "by-size"), ("weight.443", "1")], "weight = \"443\"; allowed: urgent"),
            (&[("classify", "by-port"), ("weight.0", "1")], "weight = \"0\"; allowed: a port from 1 to 65535"),
            (&[("classify", "by-size"), ("weight.urgent", "-3")], "weight.urgent = \"-3\"; allowed: a number"),
            (&[("weights", "urgent=1")], "weights = \"urgent=1\"; allowed: weight.NAME=BYTES"),
            (&[("interface", "apart")], "interface = \"apart\"; allowed: delay: the wait"),
        ];
        for (settings, start) in cases {
            let message = parsed(settings).expect_err(start);
            assert!(message.starts_with(start), "{message}");
        }
        let registry = Registry::built_in();
        let of_cubic = [("weight.443".to_owned(), "1".to_owned())];
        let message = ControllerChoice::parse("cubic", &of_cubic, &registry).expect_err("no weights").to_string();
        assert!(message.starts_with("controller \"cubic\" has no parameter \"weight.443\""), "{message}");
    }
}
