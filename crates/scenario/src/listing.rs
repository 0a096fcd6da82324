//! The list of everything that a scenario can name, as data: from the declarations of controllers and from the tables
//! of the parser.
//!
//! The command line, the documentation and the shell completion print this list.

use crate::json_schema::TOP_LEVEL;
use crate::queue_at::QUEUE_AT;
use crate::queues::{NIC_QUEUE, QUEUE_KEYS, ROUTER_QUEUE};
use crate::{
    changes, cross_traffic, drops, effects, emulate, host, links, measure, packet_log, pause, pfc, queues, rcp_rates,
    sampling, scenario, schemes, switch, transport,
};
use sparelane_catalogue::Catalogue;
use sparelane_catalogue::schema::json::Json;
use sparelane_catalogue::schema::{Form, Key, Kind};
use sparelane_catalogue::workload;
use sparelane_cc::{Controller, Registry};

/// One thing that a scenario can name, or one of its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The kind: `controller`, `topology`, `workload`, `sizes`, `cross_traffic` or `queue` for things that a scenario
    /// can name; `table` for its tables.
    pub kind: &'static str,
    /// The name in a scenario.
    pub name: String,
    /// One line of description.
    pub summary: &'static str,
    /// The paper or standard that defines it.
    pub source: &'static str,
    /// The key that selects further keys of a table, if there is one.
    pub forms: Option<Forms>,
    /// Its keys.
    pub params: Vec<Parameter>,
}

/// The key of a table that selects its further keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forms {
    /// The key.
    pub chooser: &'static str,
    /// The kind of the entries that the key can name.
    pub kind: &'static str,
    /// True if keys that the table does not give are inherited from another table.
    pub inherits: bool,
}

/// One key of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in a scenario.
    pub name: &'static str,
    /// The default: a value, `required`, or in parentheses the meaning of its absence.
    pub default: String,
    /// The kind of its values.
    pub kind: Kind,
    /// The allowed values, as text.
    pub allowed: String,
    /// The meaning.
    pub meaning: &'static str,
    /// The source of the default.
    pub source: &'static str,
    /// True if a scenario must give it.
    pub is_required: bool,
    /// Two flags: true if its values are lists, and true if they are tables.
    pub takes: (bool, bool),
    /// The allowed values, as JSON Schema.
    pub schema: Json,
    /// Meaning, allowed values and default, as text of several lines.
    pub words: String,
}

/// The entries of `catalogue`, by kind.
pub fn catalogue(catalogue: &Catalogue) -> Vec<Entry> {
    let mut entries = controllers(&catalogue.controllers);
    entries.extend(forms("topology", catalogue.topologies.iter().copied()));
    entries.extend(forms("workload", catalogue.workloads.iter().copied()));
    entries.extend(forms("sizes", catalogue.sizes.iter().copied()));
    entries.extend(forms("cross_traffic", cross_traffic::PATTERNS.iter()));
    entries.extend(forms("queue", catalogue.queues.0.iter().copied()));
    // Tables of the file follow in the order of a scenario. `chosen` is for tables whose kind adds keys.
    let queue_at = [QUEUE_AT, QUEUE_KEYS].concat();
    let by_queue = ("kind", "queue");
    entries.extend([
        table(TOP_LEVEL, "the run as a whole", scenario::SCENARIO),
        table("[[link]]", "settings of selected cables", &links::LINK.concat()),
        chosen("[topology]", "the network; its kind determines further keys", &[], ("kind", "topology")),
        chosen("[queue]", "output queues of routers", ROUTER_QUEUE, by_queue),
        Entry {
            forms: Some(Forms { chooser: "kind", kind: "queue", inherits: true }),
            ..table("[[queue_at]]", "output queues that differ, by router, by cable or by share", &queue_at)
        },
        chosen("[nic]", "output queues of hosts", NIC_QUEUE, by_queue),
        table("[switch]", "memory that the output queues of each router share", switch::SWITCH),
        table("[queue.rcp]", "rates that queues compute for RCP; [nic.rcp] likewise", rcp_rates::RCP),
        table("[host]", "processing costs, interrupts, clocks and timers of hosts", host::HOST),
        table("[[host_at]]", "hosts that differ", &[host::HOST_AT, host::HOST].concat()),
        table("[transport]", "settings of TCP", transport::TRANSPORT),
        table("burst_loss", "losses in bursts on a link (Gilbert and Elliott)", effects::BURST_LOSS),
        table("policer", "a token bucket that drops, on a link", effects::POLICER),
        table("pause", "the thresholds of PAUSE on a cable", pause::PAUSE),
        table("mark_ramp", "the probability of marks by the backlog", queues::RAMP),
        table("pfc", "the thresholds of priority-based flow control on a cable", pfc::PFC),
        table("delayed_ack", "the details of delayed acknowledgments", transport::DELAYED_ACK),
        chosen(
            "[scheme.NAME]",
            "a controller under a name; its parameters are further keys",
            schemes::SCHEME,
            ("controller", "controller"),
        ),
        chosen(
            "inner",
            "a controller nested in another, such as RC3; its parameters are further keys",
            schemes::INNER,
            ("controller", "controller"),
        ),
        chosen("[[workload]]", "the keys of every kind of workload", workload::WORKLOAD, ("kind", "workload")),
        chosen("sizes", "the sizes of flows; the kind determines further keys", &[], ("kind", "sizes")),
        table("fan_out", "how many flows a request fetches, in a workload of requests", workload::FAN_OUT),
        table("writes", "how the application writes its flows, in a workload", workload::WRITES),
        table("traffic_classes", "each of the classes of traffic by size, in a workload", workload::TRAFFIC_CLASSES),
        chosen(
            "[[cross_traffic]]",
            "the keys of every kind of cross traffic",
            cross_traffic::CROSS_TRAFFIC,
            ("kind", "cross_traffic"),
        ),
        table("bucket", "a token bucket, in cross traffic", cross_traffic::BUCKET),
        table("[[drop]]", "scripted drops", drops::DROP),
        table("[[change]]", "changes of links during the run", changes::CHANGE),
        table("[sample]", "time series", sampling::SAMPLE),
        table("[measure]", "warm-up, and measurements other than completion times of flows", measure::MEASURE),
        table("[packets]", "a log of the data packets of one flow", packet_log::PACKETS),
        table("[emulate]", "settings of sparelane emulate alone", emulate::EMULATE),
    ]);
    entries
}

fn controllers(registry: &Registry) -> Vec<Entry> {
    let entry = |controller: &Controller| Entry {
        kind: "controller",
        name: controller.name.to_owned(),
        summary: controller.summary,
        source: controller.source,
        forms: None,
        params: controller.params.iter().map(|param| parameter(&Key::declared(param))).collect(),
    };
    registry.all().iter().map(entry).collect()
}

fn forms<'f, R: 'static>(kind: &'static str, forms: impl Iterator<Item = &'f Form<R>>) -> Vec<Entry> {
    let entry = |form: &Form<R>| Entry {
        kind,
        name: form.name.to_owned(),
        summary: form.summary,
        source: form.source,
        forms: None,
        params: form.keys.iter().map(parameter).collect(),
    };
    forms.map(entry).collect()
}

fn table(name: &str, summary: &'static str, keys: &[Key]) -> Entry {
    let params = keys.iter().map(parameter).collect();
    Entry { kind: "table", name: name.to_owned(), summary, source: "sparelane", forms: None, params }
}

/// A table whose key `chooser` names an entry of `kind`, which adds further keys.
fn chosen(name: &str, summary: &'static str, keys: &[Key], (chooser, kind): (&'static str, &'static str)) -> Entry {
    Entry { forms: Some(Forms { chooser, kind, inherits: false }), ..table(name, summary, keys) }
}

fn parameter(key: &Key) -> Parameter {
    Parameter {
        name: key.name,
        default: key.default.to_string(),
        kind: key.kind,
        allowed: key.kind.to_string(),
        meaning: key.meaning,
        source: key.source,
        is_required: key.is_required(),
        takes: key.kind.takes(),
        schema: key.kind.json_schema(),
        words: key.description(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_catalogue::schema::Fallback;

    #[test]
    fn every_entry_is_listed_once_and_has_a_description() {
        let entries = catalogue(&Catalogue::built_in());
        let mut names: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.name.as_str())).collect();
        assert!(names.contains(&("controller", "rc3")) && names.contains(&("topology", "internet2")));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        for entry in &entries {
            assert!(!entry.summary.is_empty() && !entry.source.is_empty(), "{entry:?}");
            for param in &entry.params {
                assert!(
                    !param.allowed.is_empty() && !param.meaning.is_empty() && !param.source.is_empty(),
                    "{param:?}"
                );
            }
        }
    }

    #[test]
    fn a_default_is_a_value_or_describes_the_missing_key() {
        let limit = &ROUTER_QUEUE[1];
        assert_eq!(parameter(limit).default, "1bdp");
        assert_eq!(Fallback::Required.to_string(), "required");
        assert_eq!(Fallback::Nothing("never").to_string(), "(never)");
    }
}
