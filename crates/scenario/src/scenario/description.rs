//! A scenario as plain data, for programs that run it elsewhere: network, schemes, queues and flows with every unit,
//! default, preset and random draw resolved.
//!
//! The kernel of Linux runs scenarios from this description. Names end in the unit of their values: nanoseconds, bits
//! per second or bytes. Parameters of controllers and queues keep their names of the scenario; their times are in
//! seconds, their rates in bits per second and their sizes in bytes. `"1bdp"` and packets are converted to bytes.
//!
//! The description covers what Linux supports, not every key. `given` has the tables as written, including overrides,
//! so that a program can refuse keys that it does not support.

use super::Scenario;
use crate::queues::most_bytes;
use crate::tables::as_written;
use sparelane_catalogue::queue::kind_of;
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::json::Json;
use sparelane_cc::{UNBOUNDED, Value};
use sparelane_core::{Dur, Time};
use sparelane_sim::observe::Probe;
use sparelane_sim::{Cable, Change, Drop, FlowSpec, NodeId, NodeKind, Scheme, ScriptedChange};
use sparelane_transport::{Ecn, TransportConfig};

impl Scenario {
    /// The scenario without its flows: an object with `file`, `text`, `given`, `seed`, `duration_ns`, `routers`,
    /// `hosts`, `cables`, `schemes`, `queue`, `drops`, `changes` and `sample`.
    pub fn describe(&self) -> Json {
        let is_core = |cable: &&Cable| !self.is_host(cable.a) && !self.is_host(cable.b);
        let mut cable_of = vec![None; self.network.nodes.len()];
        for cable in &self.network.cables {
            [cable.a, cable.b].iter().for_each(|end| cable_of[end.index()] = Some(cable));
        }
        let schemes = self.schemes.all.iter().map(|one| (one.name.clone(), scheme(one)));
        Json::object([
            ("file", Json::text(&self.file)),
            ("text", Json::Text(self.canonical())),
            ("given", as_written(&self.text)),
            ("seed", Json::whole(self.seed)),
            ("duration_ns", nanoseconds(self.duration)),
            ("routers", list(self.network.routers(), |id| self.name(id))),
            ("hosts", list(self.network.hosts(), |id| self.host(id, cable_of[id.index()]))),
            ("cables", list(self.network.cables.iter().filter(is_core), |cable| self.cable(cable))),
            ("schemes", Json::Object(schemes.collect())),
            ("queue", self.router_queue()),
            ("drops", list(&self.drops, |drop| self.drop(drop))),
            ("changes", list(&self.changes, |change| self.change(change))),
            ("sample", self.sample()),
        ])
    }

    /// The flows that start by the end of the run, in order of start, but at most the first `max_flows`. Flows that
    /// start when another one completes are not included.
    ///
    /// # Errors
    /// Those of [`Scenario::build`].
    pub fn planned_flows(&self, max_flows: usize) -> Result<Vec<FlowSpec>, ScenarioError> {
        let mut config = self.build()?;
        let flows = std::iter::from_fn(|| config.flows.next_flow());
        Ok(flows.take_while(|flow| flow.start <= config.stop).take(max_flows).collect())
    }

    fn is_host(&self, id: NodeId) -> bool {
        self.network.nodes[id.index()].kind == NodeKind::Host
    }

    fn name(&self, id: NodeId) -> Json {
        Json::text(&self.network.nodes[id.index()].name)
    }

    /// A host, with the properties of its only cable.
    fn host(&self, id: NodeId, cable: Option<&Cable>) -> Json {
        let host = Json::object([("name", self.name(id))]);
        let Some(cable) = cable else { return host };
        let neighbour = if cable.a == id { cable.b } else { cable.a };
        host.and(Json::object([
            ("neighbour", self.name(neighbour)),
            ("rate_bps", Json::whole(cable.slowest().as_bps())),
            ("delay_ns", nanoseconds(cable.delay)),
        ]))
    }

    /// A cable between two routers. Both directions are equal unless `[[link]]` has `rate_from` or `loss_from`.
    fn cable(&self, cable: &Cable) -> Json {
        Json::object([
            ("ends", list([cable.a, cable.b], |id| self.name(id))),
            ("rate_bps", Json::whole(cable.slowest().as_bps())),
            ("delay_ns", nanoseconds(cable.delay)),
            ("loss", Json::Number(cable.loss[0].probability)),
        ])
    }

    /// `[queue]`: the output queues of routers.
    fn router_queue(&self) -> Json {
        let spec = &self.queues.router;
        let bytes = |limit| Json::whole(most_bytes(limit, &self.schemes));
        Json::object([
            ("kind", Json::text(kind_of(&spec.discipline))),
            ("limit_bytes", bytes(spec.limit)),
            ("mark_at_bytes", spec.mark_at.map_or(Json::Null, bytes)),
            ("push_out", Json::Flag(spec.push_out)),
            ("settings", settings(self.queues.router_settings.iter().cloned())),
        ])
    }

    fn drop(&self, drop: &Drop) -> Json {
        Json::object([
            ("from", self.name(drop.from)),
            ("to", self.name(drop.to)),
            ("flow", Json::whole(drop.flow)),
            ("segments", list(&drop.segments, |&number| Json::whole(number))),
            ("copies", Json::whole(drop.copies)),
        ])
    }

    /// A change of one direction of a cable. The name of its quantity ends in the unit of the value.
    fn change(&self, change: &ScriptedChange) -> Json {
        let cable = &self.network.cables[change.cable];
        let to = if cable.a == change.from { cable.b } else { cable.a };
        let (quantity, value) = match change.change {
            Change::Rate(rate) => ("rate_bps", Json::whole(rate.as_bps())),
            Change::Delay { delay, .. } => ("delay_ns", nanoseconds(delay)),
            Change::Loss(loss) => ("loss", Json::Number(loss.probability)),
            Change::Down(is_down) => ("down", Json::Flag(is_down)),
        };
        Json::object([
            ("at_ns", nanoseconds(change.at - Time::ZERO)),
            ("from", self.name(change.from)),
            ("to", self.name(to)),
            ("quantity", Json::text(quantity)),
            ("value", value),
        ])
    }

    fn sample(&self) -> Json {
        let Some(sampling) = &self.sampling else { return Json::Null };
        let pair = |from, to| Some(list([from, to], |id| self.name(id)));
        let probes =
            |choose: &dyn Fn(&Probe) -> Option<Json>| Json::List(sampling.probes.iter().filter_map(choose).collect());
        Json::object([
            ("interval_ns", nanoseconds(sampling.interval)),
            ("flows", probes(&|probe| if let Probe::Flow(id) = *probe { Some(Json::whole(id)) } else { None })),
            ("queues", probes(&|probe| if let Probe::Queue(from, to) = *probe { pair(from, to) } else { None })),
            ("links", probes(&|probe| if let Probe::Link(from, to) = *probe { pair(from, to) } else { None })),
        ])
    }
}

/// A scheme: its controller with all parameters, its class and its transport.
fn scheme(scheme: &Scheme) -> Json {
    let value = |name| scheme.values.given(name).cloned();
    let params = scheme.controller.params.iter();
    let params = params.map(|param| (param.name, value(param.name).unwrap_or_else(|| param.default.into())));
    Json::object([
        ("controller", Json::text(scheme.controller.name)),
        ("class", Json::whole(scheme.class)),
        ("settings", settings(params)),
        ("transport", transport(&scheme.transport)),
    ])
}

fn transport(config: &TransportConfig) -> Json {
    Json::object([
        ("mss_bytes", Json::whole(config.mss_bytes)),
        ("header_bytes", Json::whole(config.header_bytes)),
        ("ecn", Json::Flag(config.ecn != Ecn::Off)),
        ("send_batch", Json::whole(config.send_batch)),
        ("receive_batch", Json::whole(config.receive_batch)),
        ("receive_batch_timeout_ns", nanoseconds(config.receive_batch_timeout)),
    ])
}

fn settings<'n>(values: impl Iterator<Item = (&'n str, Value)>) -> Json {
    Json::Object(values.map(|(name, value)| (name.to_owned(), plain(value))).collect())
}

/// A value in seconds, bits per second or bytes; `Null` if the parameter has no value.
fn plain(value: Value) -> Json {
    match value {
        Value::Whole(UNBOUNDED) | Value::Rate(None) => Json::Null,
        Value::Whole(number) | Value::Size(number) => Json::whole(number),
        Value::Number(number) => Json::Number(number),
        Value::Flag(flag) => Json::Flag(flag),
        Value::Word(word) => Json::Text(word),
        Value::Span(span) => Json::Number(span.as_secs_f64()),
        Value::Rate(Some(rate)) => Json::whole(rate.as_bps()),
        Value::Weights(weights) => {
            Json::Object(weights.into_iter().map(|(name, weight)| (name, Json::Number(weight))).collect())
        }
        Value::List(numbers) => list(numbers, Json::whole),
    }
}

fn nanoseconds(span: Dur) -> Json {
    Json::whole(whole_nanoseconds(span.as_ps()))
}

/// Picoseconds as nanoseconds, rounded to the nearest; halves go to the even neighbour, as in Python.
pub fn whole_nanoseconds(picoseconds: u64) -> u64 {
    let down = picoseconds / 1000;
    down + u64::from(picoseconds % 1000 + down % 2 > 500)
}

fn list<T>(items: impl IntoIterator<Item = T>, one: impl FnMut(T) -> Json) -> Json {
    Json::List(items.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    fn scenario(overrides: &[&str]) -> Scenario {
        let text = r#"
            duration = "2s"
            [topology]
            kind = "dumbbell"
            bottleneck_rate = "10Mbps"
            bottleneck_delay = "8ms"
            [transport]
            mss = "1448B"
            header = "52B"
            [queue]
            kind = "red"
            min = "0.1bdp"
            max = "5kB"
            [scheme.tcp]
            controller = "hybla"
            reference_rtt = "50ms"
            [[workload]]
            kind = "bulk"
            size = "3packets"
            start = "1ms"
        "#;
        let source = Source { file: "s.toml".to_owned(), folder: ".".into() };
        let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
        Scenario::parse(text, &source, &overrides).expect("a scenario")
    }

    /// The value at a path of keys, as text.
    fn at(object: &Json, path: &str) -> String {
        let found = path.split('.').fold(object, |inside, key| match inside {
            Json::Object(entries) => &entries.iter().find(|(name, _)| name == key).expect(path).1,
            _ => panic!("{path} leads through a value"),
        });
        found.to_string()
    }

    #[test]
    fn units_and_defaults_are_resolved() {
        let described = scenario(&[]).describe();
        for (path, value) in [
            ("file", r#""s.toml""#),
            ("duration_ns", "2000000000"),
            ("seed", "1"),
            ("routers", r#"["west","east"]"#),
            ("cables", r#"[{"ends":["west","east"],"rate_bps":10000000,"delay_ns":8000000,"loss":0}]"#),
            // A bandwidth-delay product is 10 Mb/s times 20 ms, 25 kB.
            ("queue.limit_bytes", "25000"),
            ("queue.settings.min", "2500"),
            ("queue.settings.max", "5000"),
            ("queue.settings.max_probability", "0.1"),
            ("queue.settings.gentle", "true"),
            ("schemes.tcp.controller", r#""hybla""#),
            ("schemes.tcp.settings.reference_rtt", "0.05"),
            ("schemes.tcp.transport.mss_bytes", "1448"),
            ("schemes.tcp.transport.receive_batch_timeout_ns", "100000"),
            ("sample", "null"),
        ] {
            assert_eq!(at(&described, path), value, "{path}");
        }
        let Json::Object(entries) = &described else { panic!("an object") };
        let Some((_, Json::List(hosts))) = entries.iter().find(|(key, _)| key == "hosts") else { panic!("hosts") };
        let host = r#"{"name":"left0","neighbour":"west","rate_bps":1000000000,"delay_ns":1000000}"#;
        assert_eq!((hosts.len(), hosts[0].to_string().as_str()), (2, host));
    }

    #[test]
    fn nanoseconds_are_rounded_to_the_nearest_and_halves_to_even() {
        let rounded = [0, 499, 500, 501, 1499, 1500, 2500].map(whole_nanoseconds);
        assert_eq!(rounded, [0, 0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn given_tables_are_those_of_the_file_with_overrides() {
        let described = scenario(&["queue={kind = 'codel', ecn = true}", "workload.gap=1ms"]).describe();
        assert_eq!(at(&described, "given.queue"), r#"{"kind":"codel","ecn":true}"#);
        let workload = r#"[{"kind":"bulk","size":"3packets","start":"1ms","gap":"1ms"}]"#;
        assert_eq!(at(&described, "given.workload"), workload);
        assert_eq!(at(&described, "queue.settings"), r#"{"target":0.005,"interval":0.1,"ecn":true}"#);
    }

    #[test]
    fn probes_and_drops_name_their_nodes() {
        let sample = "sample={flows = [0], queues = [['west', 'east']], links = [['east', 'west']]}";
        let drop = "drop=[{from = 'west', to = 'east', segments = [1, 2]}]";
        let described = scenario(&[sample, drop]).describe();
        let expected = r#"{"interval_ns":10000000,"flows":[0],"queues":[["west","east"]],"links":[["east","west"]]}"#;
        assert_eq!(at(&described, "sample"), expected);
        let expected = r#"[{"from":"west","to":"east","flow":0,"segments":[1,2],"copies":1}]"#;
        assert_eq!(at(&described, "drops"), expected);
    }

    #[test]
    fn changes_of_links_are_in_order_of_time_with_their_units() {
        let cable = "between = ['west', 'east']";
        let changes = format!(
            "change=[{{at = '1s', {cable}, from = 'west', rate = '5Mbps', delay = '3ms'}}, \
             {{at = '1500ms', {cable}, from = 'east', loss = 0.25, down = true}}]"
        );
        let described = scenario(&[&changes]).describe();
        let way = |ends: &str, at: u64, rest: &str| format!(r#"{{"at_ns":{at},{ends},{rest}}}"#);
        let (there, back) = (r#""from":"west","to":"east""#, r#""from":"east","to":"west""#);
        let expected = [
            way(there, 1_000_000_000, r#""quantity":"rate_bps","value":5000000"#),
            way(there, 1_000_000_000, r#""quantity":"delay_ns","value":3000000"#),
            way(back, 1_500_000_000, r#""quantity":"loss","value":0.25"#),
            way(back, 1_500_000_000, r#""quantity":"down","value":true"#),
        ];
        assert_eq!(at(&described, "changes"), format!("[{}]", expected.join(",")));
        assert_eq!(at(&scenario(&[]).describe(), "changes"), "[]");
    }

    #[test]
    fn flows_are_in_order_of_start_up_to_the_end_of_the_run() {
        let planned = |overrides: &[&str]| {
            let flows = scenario(overrides).planned_flows(3).expect("flows");
            flows.into_iter().map(|flow| (flow.start.as_ps() / 1_000_000_000, flow.size_bytes)).collect::<Vec<_>>()
        };
        assert_eq!(planned(&[]), [(1, Some(3 * 1448))]);
        let late = [(1, Some(4344)), (801, Some(4344)), (1601, Some(4344))];
        assert_eq!(planned(&["workload.flows=9", "workload.gap=800ms"]), late);
        assert_eq!(planned(&["workload.flows=9"]).len(), 3);
    }
}
