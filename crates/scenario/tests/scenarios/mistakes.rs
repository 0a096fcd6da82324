//! The error message for each mistake, word for word.

use sparelane_cc::Registry;
use sparelane_cc::{Controller, Kind};
use sparelane_scenario::{Scenario, Source};
use std::path::PathBuf;

/// A valid scenario. Each case below adds or changes one thing.
const GOOD: &str = r#"duration = "5s"
[topology]
kind = "dumbbell"
[queue]
[nic]
[transport]
[scheme.tcp]
controller = "newreno"
[scheme.rc3]
controller = "rc3"
[workload]
kind = "bulk"
scheme = "tcp"
"#;

/// Files that scenarios name, in the tests' own folder.
fn source() -> Source {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/inputs");
    Source { file: "x.toml".to_owned(), folder }
}

fn message(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<_> = overrides.iter().map(|&text| text.to_owned()).collect();
    match Scenario::parse(text, &source(), &overrides) {
        Err(error) => shorten(&error.to_string()),
        Ok(_) => "no mistake".to_owned(),
    }
}

/// Shortens a message: replaces the path of the tests' folder, the list of all controllers, and the list of controllers
/// without a controller inside.
fn shorten(message: &str) -> String {
    let contains_another =
        |controller: &&Controller| controller.params.iter().any(|param| param.kind == Kind::Controller);
    let list = |controllers: Vec<&Controller>| {
        controllers.iter().map(|controller| controller.name).collect::<Vec<_>>().join(", ")
    };
    let alone = list(Registry::built_in().all().iter().filter(|controller| !contains_another(controller)).collect());
    message
        .replace(&source().folder.display().to_string(), "inputs")
        .replace(&list(Registry::built_in().all().iter().collect()), "(controllers)")
        .replace(&alone, "(controllers that contain none)")
        .replace(OF_YOUR_OWN, "; (how to add one)")
}

/// The hint if no controller has the given name.
const OF_YOUR_OWN: &str =
    "; register a controller of your own first: in Python by @sparelane.controller, for a command by --plugin";

/// The message for `GOOD` with one line replaced.
fn changed(line: &str, by: &str) -> String {
    assert!(GOOD.contains(line), "{line}");
    message(&GOOD.replacen(line, by, 1), &[])
}

fn check(cases: &[(&str, &str, &str)]) {
    for (line, by, expected) in cases {
        assert_eq!(changed(line, by), *expected, "{by}");
    }
}

#[test]
fn the_scenario_that_the_cases_change_has_no_mistake() {
    assert_eq!(message(GOOD, &[]), "no mistake");
}

#[test]
fn mistakes_of_form() {
    check(&[
        ("duration = \"5s\"", "", "x.toml: duration: missing; allowed: a time above 0s, up to 1000000s"),
        (
            "duration = \"5s\"",
            "duration = 5",
            "x.toml:1: duration = 5: a time needs a unit, as in \"40ms\"; allowed: ps, ns, us, ms, s, min",
        ),
        (
            "duration = \"5s\"",
            "duration = \"0s\"",
            "x.toml:1: duration = \"0s\": out of range; allowed: a time above 0s, up to 1000000s",
        ),
        (
            "duration = \"5s\"",
            "duration = \"5 sec\"",
            "x.toml:1: duration = \"5 sec\": unknown unit \"sec\" for a time: write \"5s\"; allowed: ps, ns, us, ms, s, min",
        ),
        (
            "duration = \"5s\"",
            "duration = true",
            "x.toml:1: duration = true: not a time, as in \"40ms\"; allowed: ps, ns, us, ms, s, min",
        ),
        (
            "duration = \"5s\"",
            "duration = \"5s\"\nseed = -1",
            "x.toml:2: seed = -1: out of range; allowed: a whole number from 0",
        ),
        (
            "duration = \"5s\"",
            "duration = \"5s\"\nseed = 0.5",
            "x.toml:2: seed = 0.5: not a whole number; allowed: a whole number from 0",
        ),
        ("duration = \"5s\"", "duration = \"5s\"\ntitle = 3", "x.toml:2: title = 3: not text in quotes; allowed: text"),
        (
            "duration = \"5s\"",
            "duration = \"5s\"\nrouting = \"ecm\"",
            "x.toml:2: routing = \"ecm\": unknown; allowed: single-path, first-cable, ecmp, spray, spray-round-robin; did you mean \"ecmp\"?",
        ),
        (
            "[queue]",
            "[queues]",
            "x.toml:4: queues: unknown key; allowed: title, source, duration, seed, routing, threads, topology, link, queue, queue_at, switch, nic, host, host_at, transport, \
             scheme, workload, cross_traffic, drop, change, measure, packets, sample, emulate; did you mean \"queue\"?",
        ),
        ("[queue]", "[queue", "x.toml:4: not valid TOML: unclosed table, expected `]`"),
        ("[nic]", "[queue]", "x.toml:5: not valid TOML: duplicate key"),
        (
            "[queue]\n",
            "queue = 3\n",
            "x.toml:4: topology.queue: unknown key; allowed: kind, pairs, access_rate, access_delay, bottleneck_rate, bottleneck_delay",
        ),
        (
            "[topology]\nkind = \"dumbbell\"\n",
            "topology = \"dumbbell\"\n",
            "x.toml:2: topology = \"dumbbell\": not a table; allowed: a table with kind = dumbbell, chain, fat-tree, spine-leaf, \
             star, internet2 or file",
        ),
    ]);
}

#[test]
fn mistakes_in_the_network() {
    let kind = "kind = \"dumbbell\"";
    check(&[
        (
            kind,
            "",
            "x.toml:2: topology.kind: missing; allowed: dumbbell, chain, fat-tree, spine-leaf, star, internet2, file",
        ),
        (
            kind,
            "kind = \"dumbell\"",
            "x.toml:3: topology.kind = \"dumbell\": unknown; allowed: dumbbell, chain, fat-tree, spine-leaf, star, internet2, file; did you mean \"dumbbell\"?",
        ),
        (
            kind,
            "kind = \"dumbbell\"\nbottleneck_rate = \"0Mbps\"",
            "x.toml:4: topology.bottleneck_rate = \"0Mbps\": out of range; allowed: a rate from 1kbps to 100Tbps",
        ),
        (
            kind,
            "kind = \"dumbbell\"\npairs = \"two\"",
            "x.toml:4: topology.pairs = \"two\": not a whole number; allowed: a whole number from 1 to 1000000",
        ),
        (
            kind,
            "kind = \"dumbbell\"\npairs = 0",
            "x.toml:4: topology.pairs = 0: out of range; allowed: a whole number from 1 to 1000000",
        ),
        (
            kind,
            "kind = \"chain\"\npairs = 2",
            "x.toml:4: topology.pairs: unknown key; allowed: kind, routers, hosts_per_router, link_rate, link_delay, access_rate, access_delay",
        ),
        (
            kind,
            "kind = \"chain\"\nrouters = 1000000\nhosts_per_router = 9",
            "x.toml:2: topology: the network has 10000000 nodes; allowed: at most 4000000",
        ),
        (
            kind,
            "kind = \"chain\"\nrouters = 9000",
            "x.toml:2: topology: 9000 routers, of which 9000 have hosts, need 81000000 distances; allowed: 20000000",
        ),
        (kind, "kind = \"fat-tree\"\nk = 5", "x.toml:4: topology.k = 5: odd; allowed: an even number from 2 to 140"),
        (
            kind,
            "kind = \"fat-tree\"\nk = 0",
            "x.toml:4: topology.k = 0: out of range; allowed: a whole number from 2 to 140",
        ),
        (
            kind,
            "kind = \"fat-tree\"\nk = 142",
            "x.toml:4: topology.k = 142: out of range; allowed: a whole number from 2 to 140",
        ),
        (
            kind,
            "kind = \"spine-leaf\"\nspines = 0",
            "x.toml:4: topology.spines = 0: out of range; allowed: a whole number from 1 to 1000000",
        ),
        (
            kind,
            "kind = \"spine-leaf\"\nover_subscription = 0",
            "x.toml:4: topology.over_subscription = 0: out of range; allowed: a number above 0, up to 1000000",
        ),
        (
            kind,
            "kind = \"spine-leaf\"\nover_subscription = -1.5",
            "x.toml:4: topology.over_subscription = -1.5: out of range; allowed: a number above 0, up to 1000000",
        ),
        (
            kind,
            "kind = \"spine-leaf\"\nspines = 9000\nleaves = 9000",
            "x.toml:2: topology: the network has 81108000 cables; allowed: at most 2097149",
        ),
        (
            kind,
            "kind = \"spine-leaf\"\nspine_rate = \"1kbps\"\nover_subscription = 2",
            "x.toml:2: topology: the rate of spines over the over-subscription is 500 b/s; allowed: 1000 to 100000000000000 b/s",
        ),
        (
            kind,
            "kind = \"spine-leaf\"\nhosts = 3",
            "x.toml:4: topology.hosts: unknown key; allowed: kind, spines, leaves, servers, server_rate, spine_rate, delay, over_subscription",
        ),
        (
            kind,
            "kind = \"star\"\nhosts = 1",
            "x.toml:4: topology.hosts = 1: out of range; allowed: a whole number from 2 to 1000000",
        ),
        (
            kind,
            "kind = \"internet2\"\ncore_rate_min = \"1Gbps\"",
            "x.toml:4: topology.core_rate_min = \"1Gbps\": core_rate_max is not given; allowed: both or none",
        ),
        (
            kind,
            "kind = \"internet2\"\ncore_rate_max = \"1Gbps\"",
            "x.toml:4: topology.core_rate_max = \"1Gbps\": core_rate_min is not given; allowed: both or none",
        ),
        (
            kind,
            "kind = \"internet2\"\ncore_rate_min = \"2Gbps\"\ncore_rate_max = \"1Gbps\"",
            "x.toml:5: topology.core_rate_max = \"1Gbps\": below core_rate_min, 2 Gb/s; allowed: that or more",
        ),
        (
            kind,
            "kind = \"file\"",
            "x.toml:2: topology.path: missing; allowed: the path of a file, relative to the scenario's folder",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"none.topo\"",
            "x.toml:4: topology.path = \"none.topo\": file not found: inputs/none.topo",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"cdf.csv\"",
            "x.toml:4: topology.path = \"cdf.csv\": unknown kind of file; allowed: .topo, .graphml, .gml, SNDlib's .xml, or a topology of HPCC, htsim, BRITE, Inet or Rocketfuel",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"bad.topo\"",
            "inputs/bad.topo:3: the rate is 0 b/s; allowed: 1000 to 100000000000000 b/s",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"bad.graphml\"",
            "inputs/bad.graphml:7: `rate` is `5`; allowed: a rate such as \"100Mbps\" (units: bps, kbps, Mbps, Gbps, Tbps, b/s, kb/s, Mb/s, Gb/s, Tb/s)",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"apart.gml\"",
            "x.toml:2: topology: no path connects the hosts \"h2\" and \"h3\"; component = \"largest\" takes the largest \
             connected part of the map",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"apart.topo\"",
            "x.toml:2: topology: no path connects the hosts \"h0\" and \"h1\"",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"twice.topo\"",
            "x.toml:2: topology: host \"h0\" has 2 cables; allowed: exactly one",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"small.topo\"",
            "x.toml:2: topology: the queue between \"h0\" and \"r\" is 0B, smaller than one packet; allowed: 1500B or more",
        ),
        (
            kind,
            "kind = \"file\"\npath = \"small.topo\"\ncapacity = \"given\"",
            "x.toml:5: topology.capacity = \"given\": only for maps; inputs/small.topo is complete",
        ),
    ]);
}

#[test]
fn mistakes_in_chosen_cables() {
    let with = |link: &str| changed("[queue]", &format!("[[link]]\n{link}\n[queue]"));
    let cases = [
        ("loss = 0.1", "x.toml:4: link: names no cable; allowed: between or select"),
        (
            "select = \"core\"",
            "x.toml:4: link: changes nothing; allowed: rate, trace, delay, limit, loss, pause, pfc, \
             burst_loss, corrupt, policer, jitter, reorder, duplicate",
        ),
        ("select = \"edge\"", "x.toml:5: link.0.select = \"edge\": unknown; allowed: core, access, all"),
        (
            "select = \"all\"\nbetween = [\"west\", \"east\"]\nloss = 0.1",
            "x.toml:5: link.0.select = \"all\": between is also given; allowed: one of the two",
        ),
        (
            "select = \"all\"\nloss = 2",
            "x.toml:6: link.0.loss = 2: out of range; allowed: a number from 0 to 1, or a percentage such as \"30%\"",
        ),
        (
            "select = \"all\"\nloss = \"2\"\nlos = 2",
            "x.toml:7: link.0.los: unknown key; allowed: between, select, rate, rate_from, trace, trace_from, delay, limit, \
             loss, loss_from, loss_of, pause, pfc, burst_loss, corrupt, policer, jitter, jitter_distribution, \
             jitter_correlation, jitter_reorders, reorder, reorder_distance, reorder_within, duplicate, effects_from; did you mean \"loss\"?",
        ),
        (
            "select = \"all\"\nloss_of = \"data\"",
            "x.toml:6: link.0.loss_of = \"data\": without loss; allowed: together with loss",
        ),
        (
            "select = \"all\"\nloss = 0.1\nloss_from = \"west\"",
            "x.toml:7: link.0.loss_from = \"west\": select names several cables; allowed: hosts, routers",
        ),
        (
            "select = \"all\"\nrate = \"1Gbps\"\nrate_from = \"hosts\"",
            "x.toml:7: link.0.rate_from = \"hosts\": some of these cables do not connect a host to a router; allowed: with select \
             = \"access\"",
        ),
        (
            "select = \"access\"\nloss = 0.1\nrate_from = \"hosts\"",
            "x.toml:7: link.0.rate_from = \"hosts\": without rate; allowed: together with rate",
        ),
        (
            "between = [\"west\", \"east\"]\nloss = 0.1\nloss_from = \"left0\"",
            "x.toml:7: link.0.loss_from = \"left0\": no end of this cable; allowed: west, east",
        ),
        (
            "select = \"core\"\njitter_reorders = true",
            "x.toml:6: link.0.jitter_reorders = true: without jitter; allowed: together with jitter",
        ),
        (
            "select = \"core\"\nloss = 0\neffects_from = \"west\"",
            "x.toml:7: link.0.effects_from = \"west\": select names several cables; allowed: hosts, routers",
        ),
        (
            "between = [\"west\", \"east\"]\nloss = 0\neffects_from = \"west\"",
            "x.toml:7: link.0.effects_from = \"west\": without an effect; allowed: together with one, such as jitter",
        ),
        (
            "select = \"core\"\npolicer = { rate = \"1Mbps\", burst = \"100B\" }",
            "x.toml:6: link.0.policer.burst = \"100B\": less than a packet; allowed: 1500B or more",
        ),
        (
            "between = [\"west\"]\nloss = 0",
            "x.toml:5: link.0.between = [\"west\"]: not a list of two nodes, as in [\"r0\", \"r1\"]",
        ),
        (
            "between = [\"wset\", \"east\"]\nloss = 0",
            "x.toml:5: link.0.between.0 = \"wset\": no such node; allowed: left0, right0, west, east; did you mean \"west\"?",
        ),
        (
            "between = [\"left0\", \"east\"]\nloss = 0",
            "x.toml:5: link.0.between.1 = \"east\": no cable leads there from \"left0\"; allowed: west",
        ),
        (
            "select = \"core\"\nlimit = \"1B\"",
            "x.toml:6: link.0.limit = \"1B\": 1B, smaller than one packet; allowed: 1500B or more",
        ),
    ];
    for (link, expected) in cases {
        assert_eq!(with(link), expected.replace("link: ", "link.0: "), "{link}");
    }
}

#[test]
fn mistakes_in_queues() {
    check(&[
        (
            "[queue]",
            "[queue]\nkind = \"fiffo\"",
            "x.toml:5: queue.kind = \"fiffo\": unknown; allowed: fifo, priority, red, codel, fq-codel, cobalt, pie, fq-pie, dualpi2, cells, weighted-tail-drop; did you mean \"fifo\"?",
        ),
        (
            "[queue]",
            "[queue]\nlimit = \"1000B\"",
            "x.toml:5: queue.limit = \"1000B\": 1000B, smaller than one packet; allowed: 1500B or more",
        ),
        (
            "[queue]",
            "[queue]\nlimit = \"0packets\"",
            "x.toml:5: queue.limit = \"0packets\": 0 packets; allowed: 1packets or more",
        ),
        (
            "[queue]",
            "[queue]\nlimit = 5000000",
            "x.toml:5: queue.limit = 5000000: a size needs a unit, as in \"5MB\"; allowed: B, kB, KB, MB, GB, KiB, MiB, GiB, packets, bdp",
        ),
        (
            "[queue]",
            "[queue]\nlimit = \"0.001bdp\"",
            "x.toml:5: queue.limit = \"0.001bdp\": 500B, smaller than one packet; allowed: 1500B or more",
        ),
        (
            "[queue]",
            "[queue]\nkind = \"fifo\"\nlimit = \"80KB\"\nmark_at = \"90KB\"",
            "x.toml:7: queue.mark_at = \"90KB\": above the queue's limit, and would never mark; allowed: up to 80000B",
        ),
        (
            "[queue]",
            "[queue]\nkind = \"fifo\"\nlimit = \"10packets\"\nmark_at = \"90KB\"",
            "x.toml:7: queue.mark_at = \"90KB\": above the queue's limit, and would never mark; allowed: up to 15000B",
        ),
        (
            "[queue]",
            "[queue]\nkind = \"priority\"\nlimit = \"10packets\"\nmark_at = \"11packets\"",
            "x.toml:7: queue.mark_at = \"11packets\": above the queue's limit, and would never mark; allowed: up to 10packets",
        ),
        (
            "[queue]",
            "[queue]\nlimit = \"20KB\"\nmark_at = \"14packets\"",
            "x.toml:6: queue.mark_at = \"14packets\": above the queue's limit, and would never mark; allowed: up to 20000B",
        ),
        (
            "[queue]",
            "[queue]\nmark_at = \"0B\"",
            "x.toml:5: queue.mark_at = \"0B\": marks packets in an empty queue; allowed: 1B or more, or 1packets or more",
        ),
        (
            "[queue]",
            "[queue]\nmark_at = 65",
            "x.toml:5: queue.mark_at = 65: a size needs a unit, as in \"5MB\"; allowed: B, kB, KB, MB, GB, KiB, MiB, GiB, packets, bdp",
        ),
        (
            "[queue]",
            "[[link]]\nselect = \"core\"\nlimit = \"9KB\"\n[queue]\nkind = \"fifo\"\nmark_at = \"90KB\"",
            "x.toml:4: link.0: the queue between \"west\" and \"east\" holds 9000B, less than mark_at, and would never mark",
        ),
        (
            "[nic]",
            "[nic]\nkind = \"fifo\"",
            "x.toml:6: nic.kind = \"fifo\": scheme \"rc3\" sends at low priority, and its own host must delay these packets; allowed: priority",
        ),
        (
            "kind = \"dumbbell\"",
            "kind = \"dumbbell\"\nbottleneck_delay = \"0s\"\naccess_delay = \"0s\"",
            "x.toml: queue.limit = \"1bdp\" (default): 0B, smaller than one packet; allowed: 1500B or more",
        ),
    ]);
}

#[test]
fn a_full_interface_drops_packets_or_blocks_senders_or_cuts_windows() {
    let full = |value: &str| changed("[nic]", &format!("[nic]\nfull = \"{value}\""));
    assert_eq!(full("block"), "x.toml:6: nic.full = \"block\": unknown; allowed: drop, wait, cut");
    for value in ["drop", "wait", "cut"] {
        assert_eq!(full(value), "no mistake");
    }
}

#[test]
fn mistakes_in_shared_memory() {
    let cases = [
        ("share = 1", "x.toml:4: switch.memory: missing; allowed: a size from 1B to 1125899906842624B"),
        (
            "memory = 9000",
            "x.toml:5: switch.memory = 9000: a size needs a unit, as in \"5MB\"; allowed: B, kB, KB, MB, GB, KiB, MiB, GiB",
        ),
        ("memory = \"1kB\"", "x.toml:5: switch.memory = \"1kB\": smaller than one packet; allowed: 1500B or more"),
        (
            "memory = \"9MB\"\nshare = 0",
            "x.toml:6: switch.share = 0: out of range; allowed: a number above 0, up to 1024",
        ),
        ("memory = \"9MB\"\nalpha = 1", "x.toml:6: switch.alpha: unknown key; allowed: memory, share"),
        (
            "memory = \"30kB\"\n[queue]\nlimit = \"30kB\"\nmark_at = \"20kB\"\n[host]",
            "x.toml:5: switch.memory = \"30kB\": one queue can hold 16500B of it, less than queue.mark_at, and would never mark",
        ),
        ("memory = \"9MB\"", "no mistake"),
    ];
    for (table, expected) in cases {
        let queue = if table.contains("[queue]") { "" } else { "[queue]" };
        assert_eq!(changed("[queue]", &format!("[switch]\n{table}\n{queue}")), expected, "{table}");
    }
}

#[test]
fn mistakes_in_active_queues() {
    let cases = [
        (
            "kind = \"red\"",
            "x.toml:4: queue.min: missing; allowed: bytes (\"5MB\"), packets (\"9packets\") or bandwidth-delay products (\"1bdp\")",
        ),
        (
            "kind = \"red\"\nmin = \"9packets\"\nmax = \"9packets\"",
            "x.toml:7: queue.max = \"9packets\": min is 9packets, and max 9packets; allowed: max above min",
        ),
        (
            "kind = \"red\"\nmin = \"20kB\"\nmax = \"9kB\"",
            "x.toml:7: queue.max = \"9kB\": min is 20000B, and max 9000B; allowed: max above min",
        ),
        (
            "kind = \"red\"\nmin = \"5packets\"\nmax = \"90kB\"",
            "x.toml:7: queue.max = \"90kB\": min and max have different units; allowed: both in bytes, or both in packets",
        ),
        (
            "kind = \"red\"\nmin = \"0B\"\nmax = \"90kB\"",
            "x.toml:6: queue.min = \"0B\": zero; allowed: 1B or more, or 1packets or more",
        ),
        (
            "kind = \"red\"\nmin = \"5packets\"\nmax = \"15packets\"\nweight = 0",
            "x.toml:8: queue.weight = 0: out of range; allowed: a number above 0, up to 1",
        ),
        (
            "kind = \"red\"\nmin = \"5packets\"\nmax = \"15packets\"\nmark_at = \"5packets\"",
            "x.toml:8: queue.mark_at = \"5packets\": a red queue marks by its own law; allowed: with kind = fifo or priority",
        ),
        (
            "kind = \"codel\"\ntarget = \"5\"",
            "x.toml:6: queue.target = \"5\": a time needs a unit, as in \"40ms\"; allowed: ps, ns, us, ms, s, min",
        ),
        (
            "kind = \"codel\"\ninterval = \"1ms\"",
            "x.toml:6: queue.interval = \"1ms\": interval is 1ms, and target 5ms; allowed: an interval of the target or more",
        ),
        (
            "kind = \"codel\"\nflows = 4",
            "x.toml:6: queue.flows = 4: a codel queue has no such setting; allowed: with kind = \"fq-codel\", \"fq-pie\"",
        ),
        (
            "kind = \"fq-codel\"\nflows = 0",
            "x.toml:6: queue.flows = 0: out of range; allowed: a whole number from 1 to 65536",
        ),
        (
            "kind = \"pie\"\nmark_ecn_threshold = 2",
            "x.toml:6: queue.mark_ecn_threshold = 2: out of range; allowed: a number from 0 to 1, or a percentage such as \"30%\"",
        ),
        (
            "kind = \"fifo\"\necn = true",
            "x.toml:6: queue.ecn = true: a fifo queue has no such setting; allowed: with kind = \"red\", \"codel\", \"fq-codel\", \"pie\", \"fq-pie\"",
        ),
        (
            "kind = \"dualpi2\"\nt_update = \"10us\"",
            "x.toml:6: queue.t_update = \"10us\": out of range; allowed: a time from 100us to 1000000s",
        ),
        (
            "kind = \"dualpi2\"\nstep_threshold = \"1ms\"\nrange = \"1ms\"",
            "x.toml:7: queue.range = \"1ms\": step_threshold replaces the ramp; allowed: without step_threshold",
        ),
        (
            "kind = \"dualpi2\"\nscheduler = \"fifo\"",
            "x.toml:6: queue.scheduler = \"fifo\": unknown; allowed: wrr, ts-fifo",
        ),
        (
            "kind = \"codel\"\nce_threshold_selector = \"ect-1\"",
            "x.toml:6: queue.ce_threshold_selector = \"ect-1\": a codel queue has no such setting; allowed: with kind = \"fq-codel\"",
        ),
        (
            "kind = \"cdoel\"",
            "x.toml:5: queue.kind = \"cdoel\": unknown; allowed: fifo, priority, red, codel, fq-codel, cobalt, pie, fq-pie, dualpi2, cells, weighted-tail-drop; did you mean \"codel\"?",
        ),
    ];
    for (table, expected) in cases {
        assert_eq!(changed("[queue]", &format!("[queue]\n{table}")), expected, "{table}");
    }
    let cells = [
        ("", "x.toml:4: queue.cell: missing; allowed: a size from 1B to 1048576B"),
        ("\ncell = \"0B\"", "x.toml:6: queue.cell = \"0B\": out of range; allowed: a size from 1B to 1048576B"),
        (
            "\ncell = \"208B\"\nlimit = \"1.6kB\"",
            "x.toml:7: queue.limit = \"1.6kB\": 1600B, less than one packet occupies; allowed: 1664B or more",
        ),
    ];
    for (rest, expected) in cells {
        let message = changed("[queue]", &format!("[queue]\nkind = \"cells\"{rest}"));
        assert_eq!(message, expected, "{rest}");
    }
    let weighted = [
        ("", "x.toml:4: queue.class_shares: missing; allowed: a list of 1 to 8 shares of the limit, as in [1.0, 0.5]"),
        (
            "\nclass_shares = []",
            "x.toml:6: queue.class_shares = []: 0 shares; allowed: a list of 1 to 8 shares of the limit, as in [1.0, 0.5]",
        ),
        (
            "\nclass_shares = [1, 1, 1, 1, 1, 1, 1, 1, 1]",
            "x.toml:6: queue.class_shares = [1, 1, 1, 1, 1, 1, 1, 1, 1]: 9 shares; allowed: a list of 1 to 8 shares of the limit, as in [1.0, 0.5]",
        ),
        (
            "\nclass_shares = [\"100%\", 1.5]",
            "x.toml:6: queue.class_shares.1 = 1.5: out of range; allowed: a number from 0 to 1, or a percentage such as \"30%\"",
        ),
    ];
    for (rest, expected) in weighted {
        let message = changed("[queue]", &format!("[queue]\nkind = \"weighted-tail-drop\"{rest}"));
        assert_eq!(message, expected, "{rest}");
    }
    for kind in ["codel", "pie", "fq-codel", "fq-pie", "red\"\nmin = \"5packets\"\nmax = \"15packets"] {
        assert_eq!(changed("[queue]", &format!("[queue]\nkind = \"{kind}\"\necn = true")), "no mistake");
        assert_eq!(
            changed("[nic]", &format!("[nic]\nkind = \"{kind}\"")).split(": scheme").last(),
            Some(" \"rc3\" sends at low priority, and its own host must delay these packets; allowed: priority")
        );
    }
    let differing =
        "[queue]\nkind = \"red\"\nmin = \"5packets\"\nmax = \"9packets\"\n[[queue_at]]\nrouters = [\"west\"]\n";
    assert_eq!(changed("[queue]", &format!("{differing}max = \"7packets\"")), "no mistake");
    assert_eq!(
        changed("[queue]", &format!("{differing}max = \"4packets\"")),
        "x.toml:10: queue_at.0.max = \"4packets\": min is 5packets, and max 4packets; allowed: max above min"
    );
}

#[test]
fn mistakes_in_queues_that_differ() {
    let with = |table: &str| changed("[queue]", &format!("[[queue_at]]\n{table}\n[queue]"));
    let cases = [
        ("kind = \"fifo\"", "x.toml:4: queue_at.0: names no queue; allowed: routers, between or share"),
        (
            "routers = [\"west\"]",
            "x.toml:4: queue_at.0: changes nothing; allowed: kind, limit, mark_at, low_priority, push_out, room, telemetry, min, max, max_probability, weight, gentle, ecn, target, interval, ce_threshold, ce_threshold_selector, flows, quantum, update_interval, alpha, beta, max_burst, mark_ecn_threshold, t_update, rtt_max, coupling_factor, p_c_max, min_th, range, step_threshold, th_len, scheduler, classic_weight, t_shift, lower_bands, cell, class_shares",
        ),
        (
            "routers = [\"west\"]\nshare = 0.5\nkind = \"fifo\"",
            "x.toml:6: queue_at.0.share = 0.5: routers is also given; allowed: one of the two",
        ),
        (
            "routers = [\"west\"]\nof = \"queues\"\nkind = \"fifo\"",
            "x.toml:6: queue_at.0.of = \"queues\": without share; allowed: together with share",
        ),
        (
            "routers = [\"west\"]\nbetween = [\"west\", \"east\"]\nkind = \"fifo\"",
            "x.toml:5: queue_at.0.routers = [\"west\"]: between is also given; allowed: one of the two",
        ),
        (
            "routers = [\"west\"]\nfrom = \"west\"\nkind = \"fifo\"",
            "x.toml:6: queue_at.0.from = \"west\": without between; allowed: together with between",
        ),
        (
            "between = [\"left0\", \"west\"]\nfrom = \"left0\"\nkind = \"fifo\"",
            "x.toml:6: queue_at.0.from = \"left0\": a host; allowed: west",
        ),
        (
            "between = [\"west\", \"east\"]\nfrom = \"right0\"\nkind = \"fifo\"",
            "x.toml:6: queue_at.0.from = \"right0\": no end of this cable; allowed: west, east",
        ),
        (
            "routers = [\"wset\"]\nkind = \"fifo\"",
            "x.toml:5: queue_at.0.routers.0 = \"wset\": no such router; allowed: the routers west, east; did you mean \"west\"?",
        ),
        (
            "routers = [\"west\", \"left0\"]\nkind = \"fifo\"",
            "x.toml:5: queue_at.0.routers.1 = \"left0\": a host; allowed: the routers west, east",
        ),
        (
            "routers = [\"west\", \"west\"]\nkind = \"fifo\"",
            "x.toml:5: queue_at.0.routers.1 = \"west\": listed twice; allowed: each router once",
        ),
        ("routers = []\nkind = \"fifo\"", "x.toml:5: queue_at.0.routers = []: no router; allowed: at least one"),
        (
            "routers = \"west\"\nkind = \"fifo\"",
            "x.toml:5: queue_at.0.routers = \"west\": not a list; allowed: a list of routers, as in [\"r1\", \"r4\"]",
        ),
        (
            "share = 1.2\nkind = \"fifo\"",
            "x.toml:5: queue_at.0.share = 1.2: out of range; allowed: a number from 0 to 1, or a percentage such as \"30%\"",
        ),
        (
            "share = 0.2\nkind = \"fifo\"",
            "x.toml:5: queue_at.0.share = 0.2: of 2, this rounds to none; allowed: 0, or more",
        ),
        (
            "share = 0.5\nof = \"hosts\"\nkind = \"fifo\"",
            "x.toml:6: queue_at.0.of = \"hosts\": unknown; allowed: routers, queues",
        ),
        (
            "share = 0.5\nkind = \"fifo\"\npush_out = false",
            "x.toml:7: queue_at.0.push_out = false: a fifo queue does not separate classes; allowed: kind = \"priority\"",
        ),
        (
            "share = 0.5\nkind = \"codel\"\nroom = \"packet\"",
            "x.toml:7: queue_at.0.room = \"packet\": a codel queue admits by its own law; allowed: with kind = fifo or \
             priority",
        ),
        (
            "share = 0.5\nlow_priority = \"block\"",
            "x.toml:6: queue_at.0.low_priority = \"block\": unknown; allowed: carry, drop",
        ),
        (
            "share = 0.5\nlimit = \"8kB\"\nmark_at = \"9kB\"",
            "x.toml:7: queue_at.0.mark_at = \"9kB\": above the queue's limit, and would never mark; allowed: up to 8000B",
        ),
        (
            "share = 0.5\nlimit = \"9B\"",
            "x.toml:6: queue_at.0.limit = \"9B\": 9B, smaller than one packet; allowed: 1500B or more",
        ),
        (
            "share = 0.5\nkinds = \"fifo\"",
            "x.toml:6: queue_at.0.kinds: unknown key; allowed: routers, between, from, share, of, kind, limit, mark_at, low_priority, push_out, room, telemetry, min, max, max_probability, weight, gentle, ecn, target, interval, ce_threshold, ce_threshold_selector, flows, quantum, update_interval, alpha, beta, max_burst, mark_ecn_threshold, t_update, rtt_max, coupling_factor, p_c_max, min_th, range, step_threshold, th_len, scheduler, classic_weight, t_shift, lower_bands, cell, class_shares; did you mean \"kind\"?",
        ),
        (
            "routers = [\"east\"]\nkind = \"fifo\"\nmark_at = \"9kB\"\n[[link]]\nselect = \"core\"\nlimit = \"8kB\"",
            "x.toml:4: queue_at.0: an output queue of \"east\" holds 8000B, less than mark_at, and would never mark",
        ),
    ];
    for (table, expected) in cases {
        assert_eq!(with(table), expected, "{table}");
    }
    assert_eq!(with("share = 0\nkind = \"fifo\""), "no mistake");
    assert_eq!(
        changed("[queue]", "[queue]\nkind = \"fifo\"\npush_out = true"),
        "x.toml:6: queue.push_out = true: a fifo queue does not separate classes; allowed: kind = \"priority\""
    );
    assert_eq!(
        changed("[nic]", "[nic]\nlow_priority = \"drop\""),
        "x.toml:6: nic.low_priority: unknown key; allowed: full, kind, limit, mark_at, room, rcp, min, max, max_probability, weight, gentle, ecn, target, interval, ce_threshold, ce_threshold_selector, flows, quantum, update_interval, alpha, beta, max_burst, mark_ecn_threshold, t_update, rtt_max, coupling_factor, p_c_max, min_th, range, step_threshold, th_len, scheduler, classic_weight, t_shift, lower_bands, cell, class_shares"
    );
}

#[test]
fn mistakes_in_schemes_and_transport() {
    let newreno = "controller = \"newreno\"";
    let rc3 = "controller = \"rc3\"";
    check(&[
        (
            "controller = \"newreno\"",
            "controler = \"newreno\"",
            "x.toml:8: scheme.tcp.controler: unknown key; did you mean \"controller\"?",
        ),
        (newreno, "", "x.toml:7: scheme.tcp.controller: missing; allowed: the name of a controller"),
        (newreno, "controller = 3", "x.toml:8: scheme.tcp.controller = 3: not a word; allowed: (controllers)"),
        (
            newreno,
            "controller = \"NewReno\"",
            "x.toml:8: scheme.tcp.controller = \"NewReno\": unknown; allowed: (controllers); did you mean \"newreno\"?; (how to add one)",
        ),
        (
            newreno,
            "controller = \"newreno\"\nbeta = 0.7",
            "x.toml:9: scheme.tcp.beta: unknown key; allowed: controller, transport, class, initial_window, initial_ssthresh, slow_start_limit, growth_limit, slow_start, window_validation, beta_ecn",
        ),
        (
            newreno,
            "controller = \"newreno\"\ninitial_window = 0",
            "x.toml:9: scheme.tcp.initial_window = 0: out of range; allowed: a whole number from 1 to 1000000 segments",
        ),
        (
            newreno,
            "controller = \"newreno\"\ninitial_window = \"4\"",
            "x.toml:9: scheme.tcp.initial_window = \"4\": of the wrong type; allowed: a whole number from 1 to 1000000 segments",
        ),
        (
            newreno,
            "controller = \"dctcp\"",
            "x.toml:8: scheme.tcp.controller = \"dctcp\": needs receivers that report every mark; allowed: with ecn = \"dctcp\", \"l4s\" or \"accurate\" in [transport]",
        ),
        (
            newreno,
            "controller = \"dctcp\"\ntransport = { ecn = \"accurate\", peer_ecn = \"classic\" }",
            "x.toml:8: scheme.tcp.controller = \"dctcp\": needs receivers that report every mark; allowed: peer_ecn = \"accurate\" in [transport]",
        ),
        (newreno, "controller = \"dctcp\"\ntransport = { ecn = \"accurate\" }", "no mistake"),
        (
            newreno,
            "controller = \"newreno\"\ntransport = { peer_ecn = \"dctcp\" }",
            "x.toml:9: scheme.tcp.transport.peer_ecn = \"dctcp\": unknown; allowed: off, classic, accurate",
        ),
        (newreno, "controller = \"dctcp\"\ntransport = { ecn = \"dctcp\" }", "no mistake"),
        (
            newreno,
            "controller = \"constant\"\npace = 5",
            "x.toml:9: scheme.tcp.pace = 5: a rate needs a unit, as in \"100Mbps\"; allowed: bps, kbps, Mbps, Gbps, Tbps, b/s, kb/s, Mb/s, Gb/s, Tb/s",
        ),
        (
            newreno,
            "controller = \"newreno\"\ntransport = { mss = \"9MB\" }",
            "x.toml:9: scheme.tcp.transport.mss = \"9MB\": out of range; allowed: a size from 64B to 65495B",
        ),
        (
            rc3,
            "controller = \"rc3\"\nlevels = [440, 40]",
            "x.toml:11: scheme.rc3.levels = [440, 40]: out of range; allowed: at most 6 increasing whole numbers",
        ),
        (
            rc3,
            "controller = \"rc3\"\nlevels = [40, \"x\"]",
            "x.toml:11: scheme.rc3.levels.1 = \"x\": not a whole number; allowed: at most 6 increasing whole numbers",
        ),
        (
            rc3,
            "controller = \"rc3\"\nclass = 4",
            "x.toml:11: scheme.rc3.class = 4: sends in class 8; there are classes 0 to 7",
        ),
        (
            newreno,
            "controller = \"newreno\"\nclass = 8",
            "x.toml:9: scheme.tcp.class = 8: out of range; allowed: a whole number from 0 to 7",
        ),
        (
            newreno,
            "controller = \"newreno\"\nclass = \"high\"",
            "x.toml:9: scheme.tcp.class = \"high\": not a whole number; allowed: a whole number from 0 to 7",
        ),
        (
            rc3,
            "controller = \"rc3\"\nfeed = \"shove\"",
            "x.toml:11: scheme.rc3.feed = \"shove\": unknown; allowed: pull, push",
        ),
        (
            rc3,
            "controller = \"rc3\"\ninner = \"rc3\"",
            "x.toml:11: scheme.rc3.inner = \"rc3\": unknown; allowed: (controllers that contain none); did you mean \"rcp\"?; (how to add one)",
        ),
        (
            rc3,
            "controller = \"rc3\"\ninner = { controller = \"cubic\", bta = 0.5 }",
            "x.toml:11: scheme.rc3.inner.bta: unknown key; allowed: controller, initial_window, initial_ssthresh, slow_start_limit, growth_limit, slow_start, window_validation, c, beta, beta_ecn, fast_convergence, growth_before_loss, reno_estimate, hystart, hystart_divisor, hystart_least_rise, like; did you mean \"beta\"?",
        ),
        (
            "[transport]",
            "[transport]\nsack = 1",
            "x.toml:7: transport.sack = 1: neither true nor false; allowed: true or false",
        ),
        (
            "[transport]",
            "[transport]\nmin_rto = \"90s\"",
            "x.toml:7: transport.min_rto = \"90s\": min_rto is 90s, above max_rto, 60s",
        ),
        (
            "[transport]",
            "[transport]\ndelayed_ack = { evry = 2 }",
            "x.toml:7: transport.delayed_ack.evry: unknown key; allowed: every, timeout; did you mean \"every\"?",
        ),
        (
            "[transport]",
            "[transport]\nreceive_window = \"100B\"",
            "x.toml:7: transport.receive_window = \"100B\": receive_window is 100B, below one segment, 1460B",
        ),
    ]);
    let below = "duration = \"1s\"\nnic = { kind = \"fifo\" }\n[topology]\nkind = \"dumbbell\"\n[workload]\n\
                 kind = \"bulk\"\n[scheme.bulk]\ncontroller = \"cubic\"\nclass = 1\n";
    let expected = "x.toml:2: nic.kind = \"fifo\": scheme \"bulk\" sends at low priority, and its own host must delay \
                    these packets; allowed: priority";
    assert_eq!(message(below, &[]), expected);
    let bare = "duration = \"1s\"\nscheme = {}\n[topology]\nkind = \"dumbbell\"\n[workload]\nkind = \"bulk\"\n";
    assert_eq!(message(bare, &[]), "x.toml:2: scheme: a scenario needs at least one scheme, as in [scheme.tcp]");
}

#[test]
fn mistakes_in_workloads() {
    let bulk = "kind = \"bulk\"";
    check(&[
        ("scheme = \"tcp\"", "", "x.toml:11: workload.scheme: missing; allowed: tcp, rc3"),
        (
            "scheme = \"tcp\"",
            "scheme = \"tpc\"",
            "x.toml:13: workload.scheme = \"tpc\": no such scheme; allowed: tcp, rc3; did you mean \"tcp\"?",
        ),
        (
            "scheme = \"tcp\"",
            "mix = { tcp = 0.9, rc = 0.1 }",
            "x.toml:13: workload.mix.rc = 0.1: no such scheme; allowed: tcp, rc3; did you mean \"rc3\"?",
        ),
        (
            "scheme = \"tcp\"",
            "mix = { tcp = 0.9, rc3 = 0.2 }",
            "x.toml:13: workload.mix: the shares of the mix add up to 1.1; allowed: 1, to within 0.000001",
        ),
        (
            "scheme = \"tcp\"",
            "mix = { tcp = 1, rc3 = 0 }",
            "x.toml:13: workload.mix.rc3 = 0: no flows; allowed: a number above 0, up to 1",
        ),
        (
            "scheme = \"tcp\"",
            "mix = { tcp = -1, rc3 = 2 }",
            "x.toml:13: workload.mix.tcp = -1: out of range; allowed: a number from 0 to 1, or a percentage such as \"30%\"",
        ),
        (
            "scheme = \"tcp\"",
            "mix = {}",
            "x.toml:13: workload.mix: no scheme; allowed: a table such as { tcp = 0.9, critical = 0.1 }",
        ),
        (
            "scheme = \"tcp\"",
            "mix = \"tcp\"",
            "x.toml:13: workload.mix = \"tcp\": not a table; allowed: a table such as { tcp = 0.9, critical = 0.1 }",
        ),
        (
            "scheme = \"tcp\"",
            "scheme = \"tcp\"\nmix = { rc3 = 1 }",
            "x.toml:14: workload.mix: scheme is also given; allowed: one of the two",
        ),
        (
            "scheme = \"tcp\"",
            "scheme = \"tcp\"\nmix_by = \"host\"",
            "x.toml:14: workload.mix_by = \"host\": there is no mix; allowed: mix_by together with mix",
        ),
        (
            "scheme = \"tcp\"",
            "mix = { tcp = 0.5, rc3 = 0.5 }\nmix_by = \"router\"",
            "x.toml:14: workload.mix_by = \"router\": unknown; allowed: flow, host",
        ),
        (
            "scheme = \"tcp\"",
            "mix = { tcp = 0.5, rc3 = 0.5 }\nmix_by = \"host\"",
            "x.toml:13: workload.mix: a share of the mix is less than half a host at every router; allowed: shares that give each scheme a host",
        ),
        (
            "controller = \"rc3\"\n[workload]\nkind = \"bulk\"\nscheme = \"tcp\"",
            "controller = \"rc3\"\ntransport = { mss = \"1000B\" }\n[workload]\nkind = \"bulk\"\nmix = { tcp = 0.5, rc3 = 0.5 }",
            "x.toml:14: workload.mix: schemes with segments of 1460B and of 1000B; allowed: schemes with the same mss",
        ),
        (
            bulk,
            "kind = \"bulk\"\nsize = \"0B\"",
            "x.toml:13: workload.size = \"0B\": 0 bytes; allowed: 1 to 6270652249240, because segments of 1460 bytes have 32-bit numbers",
        ),
        (
            bulk,
            "kind = \"bulk\"\nsize = \"4294967295packets\"",
            "x.toml:13: workload.size = \"4294967295packets\": 6270652250700 bytes; allowed: 1 to 6270652249240, because segments of 1460 bytes have 32-bit numbers",
        ),
        (
            bulk,
            "kind = \"bulk\"\nsizes = { kind = \"lognormal\", median = \"1kB\", sigma = 1, cap = \"7000GB\" }",
            "x.toml:13: workload.sizes: flows of up to 7000000000000 bytes; allowed: up to 6270652249240, because segments of 1460 bytes have 32-bit numbers",
        ),
        (
            bulk,
            "kind = \"flows\"\npath = \"large.csv\"",
            "inputs/large.csv:3: size is `7000GB`; allowed: at most 6270652249240 bytes under scheme `tcp`",
        ),
        (
            bulk,
            "kind = \"flows\"\npath = \"large.flows\"",
            "inputs/large.flows:1: the bytes is `6270652249241`; allowed: a whole number from 0 to 6270652249240",
        ),
        (
            bulk,
            "kind = \"bulk\"\npairs = [[\"left0\", \"rigth0\"]]",
            "x.toml:13: workload.pairs.0.1 = \"rigth0\": no such node; allowed: left0, right0, west, east; did you mean \"right0\"?",
        ),
        (
            bulk,
            "kind = \"bulk\"\npairs = [[\"left0\", \"west\"]]",
            "x.toml:13: workload.pairs.0.1 = \"west\": a router; allowed: the hosts left0, right0",
        ),
        (
            bulk,
            "kind = \"bulk\"\npairs = [[\"left0\", \"left0\"]]",
            "x.toml:13: workload.pairs.0 = [\"left0\", \"left0\"]: a host cannot send to itself; allowed: two different hosts",
        ),
        (
            bulk,
            "kind = \"bulk\"\npairs = \"half\"",
            "x.toml:13: workload.pairs = \"half\": unknown; allowed: halves, all, permutation, random, next, incast",
        ),
        (
            bulk,
            "kind = \"bulk\"\ngap = \"1s\"\nspread = \"1s\"",
            "x.toml:13: workload.gap = \"1s\": spread is also given; allowed: one of the two",
        ),
        (
            bulk,
            "kind = \"poisson\"",
            "x.toml:11: workload.load: missing; allowed: a share of the links, as in load = 0.3, or flows_per_second",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 0.3",
            "x.toml:11: workload.sizes: missing; allowed: a table such as { kind = \"rc3\" }",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 30\nsizes = { kind = \"rc3\" }",
            "x.toml:13: workload.load = 30: out of range; allowed: a number from 0 to 2, or a percentage such as \"30%\"",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 0\nsizes = { kind = \"rc3\" }",
            "x.toml:13: workload.load = 0: no flows; allowed: a number above 0, up to 2",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = \"30%\"\nsizes = { kind = \"rc4\" }",
            "x.toml:14: workload.sizes.kind = \"rc4\": unknown; allowed: rc3, w2000, web-search, data-mining, fixed, points, cdf, lognormal; did you mean \"rc3\"?",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 0.3\nflows_per_second = 3\nsizes = { kind = \"rc3\" }",
            "x.toml:13: workload.load = 0.3: flows_per_second is also given; allowed: one of the two",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 0.3\nstart = \"5s\"\nsizes = { kind = \"rc3\" }",
            "x.toml:14: workload.start = \"5s\": the workload runs from 5s to 5s; allowed: an end after the start",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 0.3\nsizes = { kind = \"points\", bytes = [1, 2], probability = [0.5] }",
            "x.toml:14: workload.sizes.probability = [0.5]: 1 numbers for 2 sizes; allowed: equal numbers",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 0.3\nsizes = { kind = \"points\", bytes = [1, 2], probability = [0.5, 0.4] }",
            "x.toml:14: workload.sizes: the probabilities add up to 0.9; allowed: 1, to within 0.000001",
        ),
        (
            bulk,
            "kind = \"poisson\"\nload = 0.3\nsizes = { kind = \"cdf\", path = \"bad.csv\" }",
            "inputs/bad.csv:4: \"1000;0.5\" is not a row; allowed: whole bytes and a cumulative probability, as in 1460,0.5 or 1460 50",
        ),
        (
            bulk,
            "kind = \"flows\"\npath = \"bad.flows\"",
            "inputs/bad.flows:2: 3 fields; allowed: exactly 4: start in ns, src, dst, bytes",
        ),
        (bulk, "kind = \"flows\"\npath = \"router.csv\"", "inputs/router.csv:2: dst is router `west`; allowed: a host"),
    ]);
}

#[test]
fn a_scenario_beyond_the_memory_is_refused_before_the_run() {
    let bulk = GOOD.replace("kind = \"bulk\"", "kind = \"bulk\"\nflows = 4100000\nsize = \"9packets\"");
    assert_eq!(
        message(&bulk, &[]),
        "x.toml:11: workload: about 4.100e6 flows open at once, of some 2.5 kB each; allowed: at most 4000000"
    );
    assert_eq!(message(&bulk, &["workload.spread=100s", "duration=200s"]), "no mistake");
    let poisson = |rate: &str| {
        let workload = format!("kind = \"poisson\"\nflows_per_second = {rate}\nsizes = {{ kind = \"rc3\" }}");
        message(&GOOD.replace("kind = \"bulk\"", &workload), &["duration=1s"])
    };
    assert_eq!(
        poisson("1e9"),
        "x.toml:11: workload: about 2.000e9 flows in the run, each a row of results; allowed: at most 40000000"
    );
    assert_eq!(poisson("1e7"), "no mistake");
}

#[test]
fn mistakes_in_classes_of_traffic() {
    let list = "allowed: a list such as [{ name = \"urgent\", below = \"30KB\" }, { name = \"high-volume\" }]";
    let cases = [
        ("traffic_class = \"\"", "traffic_class = \"\": no name; allowed: text that is not empty"),
        ("traffic_class = 3", "traffic_class = 3: not text in quotes; allowed: the name of a class"),
        (
            "traffic_class = \"a\"\ntraffic_classes = [{ name = \"b\" }]",
            "traffic_classes = [{ name = \"b\" }]: traffic_class is also given; allowed: one of the two",
        ),
        ("traffic_classes = []", "traffic_classes = []: no class; allowed: one or more"),
        ("traffic_classes = \"urgent\"", &format!("traffic_classes = \"urgent\": not a list; {list}")),
        (
            "traffic_classes = [{ name = \"a\" }, { name = \"b\" }]",
            "traffic_classes.0.below: missing; allowed: a size; only the last class has none",
        ),
        (
            "traffic_classes = [{ name = \"a\", below = \"1kB\" }]",
            "traffic_classes.0.below = \"1kB\": the last class has all other flows; allowed: no bound",
        ),
        (
            "traffic_classes = [{ name = \"a\", below = \"2kB\" }, { name = \"b\", below = \"2kB\" }, { name = \"c\" }]",
            "traffic_classes.1.below = \"2kB\": the class before goes up to 2000B; allowed: more than that",
        ),
        (
            "traffic_classes = [{ name = \"a\", below = \"2kB\" }, { name = \"a\" }]",
            "traffic_classes.1.name = \"a\": listed twice; allowed: each class once",
        ),
        (
            "traffic_classes = [{ name = \"a\", below = \"0B\" }, { name = \"b\" }]",
            "traffic_classes.0.below = \"0B\": out of range; allowed: a size from 1B to 1000000000000000B",
        ),
        (
            "traffic_classes = [{ nmae = \"a\" }]",
            "traffic_classes.0.nmae: unknown key; allowed: name, below; did you mean \"name\"?",
        ),
    ];
    for (keys, expected) in cases {
        let line = 13 + keys.lines().count();
        let message = changed("scheme = \"tcp\"", &format!("scheme = \"tcp\"\n{keys}"));
        assert_eq!(message, format!("x.toml:{line}: workload.{expected}"), "{keys}");
    }
}

#[test]
fn a_class_without_a_weight_is_refused_if_its_scheme_has_weights() {
    let with = |workload: &str| {
        let rtcp = "[scheme.a]\ncontroller = \"rtcp\"\n[scheme.b]\ncontroller = \"rc3\"\ninner = { controller = \"rtcp\", \
                    weights = { bulk = 1.0 } }\n";
        message(&GOOD.replace("[workload]", &format!("{rtcp}[workload]")).replace("scheme = \"tcp\"", workload), &[])
    };
    for (workload, expected) in [
        ("scheme = \"tcp\"\ntraffic_class = \"bulk\"", "no mistake"),
        ("scheme = \"a\"\ntraffic_class = \"urgent\"", "no mistake"),
        ("scheme = \"b\"\ntraffic_class = \"bulk\"", "no mistake"),
        (
            "scheme = \"a\"\ntraffic_class = \"bulk\"",
            "x.toml:19: workload.traffic_class = \"bulk\": scheme \"a\" has no weight for class \"bulk\"; allowed: urgent, high-volume",
        ),
        (
            "mix = { a = 0.5, b = 0.5 }\ntraffic_classes = [{ name = \"urgent\" }]",
            "x.toml:19: workload.traffic_classes.0.name = \"urgent\": scheme \"b\" has no weight for class \"urgent\"; allowed: bulk",
        ),
    ] {
        assert_eq!(with(workload), expected, "{workload}");
    }
}

#[test]
fn mistakes_in_packets() {
    check(&[
        (
            "[nic]",
            "[nic]\n[packets]\nflows = 0",
            "x.toml:7: packets.flows: unknown key; allowed: flow, from, count; did you mean \"flow\"?",
        ),
        (
            "[nic]",
            "[nic]\n[packets]\ncount = 2_000_000",
            "x.toml:7: packets.count = 2000000: out of range; allowed: a whole number from 1 to 1000000",
        ),
        (
            "[nic]",
            "[nic]\n[packets]\nfrom = \"5s\"",
            "x.toml:7: packets.from = \"5s\": the run ends at 5s; allowed: a time before its end",
        ),
        (
            "[nic]\n[transport]\n[scheme.tcp]\ncontroller = \"newreno\"",
            "[queue.rcp]\n[packets]\nflow = 0\n[scheme.tcp]\ncontroller = \"rcp\"",
            "x.toml:6: packets: packets of scheme \"tcp\" carry a rate header in the field of the send time; allowed: \
             other schemes",
        ),
    ]);
}

#[test]
fn mistakes_in_measures() {
    check(&[
        (
            "[nic]",
            "[nic]\n[measure]\ndelay = true",
            "x.toml:7: measure.delay: unknown key; allowed: delays, from; did you mean \"delays\"?",
        ),
        (
            "[nic]",
            "[nic]\n[measure]\ndelays = 1",
            "x.toml:7: measure.delays = 1: neither true nor false; allowed: true or false",
        ),
        (
            "[nic]",
            "[nic]\n[measure]\nfrom = \"5s\"",
            "x.toml:7: measure.from = \"5s\": the run ends at 5s; allowed: a time before its end",
        ),
        (
            "[nic]",
            "[nic]\n[measure]\nfrom = 2",
            "x.toml:7: measure.from = 2: a time needs a unit, as in \"40ms\"; allowed: ps, ns, us, ms, s, min",
        ),
        (
            "[nic]\n[transport]\n[scheme.tcp]\ncontroller = \"newreno\"",
            "[queue.rcp]\n[measure]\ndelays = true\n[scheme.tcp]\ncontroller = \"rcp\"",
            "x.toml:7: measure.delays = true: packets of scheme \"tcp\" carry a rate header in the field of the send time; allowed: false, or other schemes",
        ),
    ]);
}

#[test]
fn mistakes_in_batches_and_hosts() {
    check(&[
        (
            "[transport]",
            "[transport]\nsend_batch = 0",
            "x.toml:7: transport.send_batch = 0: out of range; allowed: a whole number from 1 to 65535",
        ),
        (
            "[transport]",
            "[transport]\nreceive_batch_timeout = \"0s\"",
            "x.toml:7: transport.receive_batch_timeout = \"0s\": out of range; allowed: a time from 1us to 10s",
        ),
        (
            "[transport]",
            "[transport]\n[host]\nreceive_cots = \"1us\"",
            "x.toml:8: host.receive_cots: unknown key; allowed: receive_cost, interrupt_after, interrupt_packets, ring, stall_every, stall_length, timestamp_at, timestamp_clock, ack_cost, timer_error, send_cost; did you mean \"receive_cost\"?",
        ),
        (
            "[transport]",
            "[transport]\n[host]\nreceive_cost = 1",
            "x.toml:8: host.receive_cost = 1: a time needs a unit, as in \"40ms\"; allowed: ps, ns, us, ms, s, min",
        ),
    ]);
}

#[test]
fn mistakes_in_noisy_hosts() {
    let with = |text: &str| changed("[transport]", &format!("[transport]\n{text}"));
    for (text, expected) in [
        (
            "[host]\ninterrupt_packets = 0\ninterrupt_after = \"50us\"",
            "x.toml:8: host.interrupt_packets = 0: out of range; allowed: a whole number from 1 to 4294967295",
        ),
        (
            "[host]\ninterrupt_packets = 32",
            "x.toml:8: host.interrupt_packets = 32: without interrupt_after; allowed: together with an interrupt_after above 0s",
        ),
        (
            "[host]\ntimestamp_clock = \"0s\"",
            "x.toml:8: host.timestamp_clock = \"0s\": out of range; allowed: a time from 1ns to 10s",
        ),
        (
            "[host]\ntimestamp_at = \"arival\"",
            "x.toml:8: host.timestamp_at = \"arival\": unknown; allowed: arrival, acknowledgment; did you mean \"arrival\"?",
        ),
        (
            "[host]\nring = 100",
            "x.toml:8: host.ring = 100: without interrupt_after; allowed: together with an interrupt_after above 0s",
        ),
        (
            "[host]\ninterrupt_after = \"1us\"\ninterrupt_packets = 8\nring = 4",
            "x.toml:10: host.ring = 4: fewer than wait for an interrupt; allowed: at least 8",
        ),
        (
            "[host]\ninterrupt_after = \"1us\"\nstall_every = \"1s\"",
            "x.toml:9: host.stall_every = \"1s\": without the other; allowed: stall_every and stall_length together",
        ),
        ("[host]\nack_cost = \"2s\"", "x.toml:8: host.ack_cost = \"2s\": out of range; allowed: a time from 0s to 1s"),
        (
            "[[host_at]]\nack_cost = \"1us\"",
            "x.toml:7: host_at.0.hosts: missing; allowed: a list of hosts, as in [\"left0\", \"right0\"]",
        ),
        (
            "[[host_at]]\nhosts = []\nack_cost = \"1us\"",
            "x.toml:8: host_at.0.hosts = []: no host; allowed: at least one",
        ),
        (
            "[[host_at]]\nhosts = [\"left0\", \"west\"]\nack_cost = \"1us\"",
            "x.toml:8: host_at.0.hosts.1 = \"west\": a router; allowed: the hosts left0, right0",
        ),
        (
            "[[host_at]]\nhosts = [\"left0\", \"left0\"]\nack_cost = \"1us\"",
            "x.toml:8: host_at.0.hosts.1 = \"left0\": listed twice; allowed: each host once",
        ),
        (
            "[[host_at]]\nhosts = [\"left0\"]",
            "x.toml:7: host_at.0: changes nothing; allowed: receive_cost, interrupt_after, interrupt_packets, ring, stall_every, \
             stall_length, timestamp_at, timestamp_clock, ack_cost, timer_error, send_cost",
        ),
        ("[host]\ninterrupt_after = \"1us\"\n[[host_at]]\nhosts = [\"left0\"]\ninterrupt_packets = 3", "no mistake"),
    ] {
        assert_eq!(with(text), expected, "{text}");
    }
}

#[test]
fn mistakes_in_writes() {
    let with = |writes: &str| changed("scheme = \"tcp\"", &format!("scheme = \"tcp\"\nwrites = {writes}"));
    for (writes, expected) in [
        (
            "{ first = \"1MB\", every = \"1s\" }",
            "x.toml:14: workload.writes.then: missing; allowed: bytes (\"9MB\"), full segments (\"9packets\") or \
             bandwidth-delay products (\"1bdp\")",
        ),
        (
            "{ first = \"1MB\", then = \"unlimited\", every = \"1s\" }",
            "x.toml:14: workload.writes.then = \"unlimited\": an unlimited write; allowed: bytes (\"9MB\"), full segments \
             (\"9packets\") or bandwidth-delay products (\"1bdp\")",
        ),
        (
            "{ first = \"0B\", then = \"1kB\", every = \"1s\" }",
            "x.toml:14: workload.writes.first = \"0B\": 0 bytes; allowed: 1 to 6270652249240, because segments of 1460 bytes have 32-bit numbers",
        ),
        (
            "{ first = \"1MB\", then = \"1kB\", every = \"0s\" }",
            "x.toml:14: workload.writes.every = \"0s\": out of range; allowed: a time from 1us to 1000000s",
        ),
        (
            "{ frist = \"1MB\", then = \"1kB\", every = \"1s\" }",
            "x.toml:14: workload.writes.frist: unknown key; allowed: first, then, every; did you mean \"first\"?",
        ),
        (
            "\"64kB\"",
            "x.toml:14: workload.writes = \"64kB\": not a table; allowed: a table such as { first = \"1.5MB\", then = \"64KB\", \
          every = \"100ms\" }",
        ),
    ] {
        assert_eq!(with(writes), expected, "{writes}");
    }
}

#[test]
fn mistakes_in_drops_and_samples() {
    let with = |text: &str| changed("[queue]", &format!("{text}\n[queue]"));
    let cases = [
        ("[[drop]]\nto = \"east\"", "x.toml:4: drop.0.from: missing; allowed: the name of a node"),
        (
            "[[drop]]\nfrom = \"west\"\nto = \"east\"",
            "x.toml:4: drop.0.segments: missing; allowed: a list of whole numbers, as in [20, 21]",
        ),
        (
            "[[drop]]\nfrom = \"west\"\nto = \"east\"\nsegments = [1, -2]",
            "x.toml:7: drop.0.segments.1 = -2: out of range; allowed: a whole number from 0 to 4294967295",
        ),
        (
            "[[drop]]\nfrom = \"west\"\nto = \"right9\"\nsegments = [1]",
            "x.toml:6: drop.0.to = \"right9\": no such node; allowed: left0, right0, west, east; did you mean \"right0\"?",
        ),
        ("[sample]", "x.toml:4: sample: nothing to sample; allowed: flows, queues, links"),
        (
            "[sample]\nflows = 0",
            "x.toml:5: sample.flows = 0: not a list; allowed: a list of flow numbers, as in [0, 1]",
        ),
        (
            "[sample]\ninterval = \"0s\"\nflows = [0]",
            "x.toml:5: sample.interval = \"0s\": out of range; allowed: a time above 0s, up to 1000000s",
        ),
        (
            "[sample]\nqueues = [[\"west\", \"left0\", \"east\"]]",
            "x.toml:5: sample.queues.0 = [\"west\", \"left0\", \"east\"]: not a list of two nodes, as in [\"r0\", \"r1\"]",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(with(text), expected, "{text}");
    }
}

#[test]
fn mistakes_in_cross_traffic() {
    let constant = "kind = \"constant\"\nfrom = [\"left0\"]\nto = [\"right0\"]\nrate = \"10Mbps\"";
    let aggregate =
        constant.replace("constant", "aggregate") + "\npeak = \"50Mbps\"\nsmallest = \"2kB\"\nlargest = \"90kB\"";
    let with = |text: &str| changed("[queue]", &format!("[[cross_traffic]]\n{text}\n[queue]"));
    assert_eq!([with(constant), with(&aggregate)], ["no mistake", "no mistake"]);
    let cases = [
        (
            constant.replace("constant", "steady"),
            "x.toml:5: cross_traffic.0.kind = \"steady\": unknown; allowed: constant, aggregate",
        ),
        (
            constant.replace("[\"right0\"]", "[\"right0\", \"left0\"]"),
            "x.toml:7: cross_traffic.0.to = [\"right0\", \"left0\"]: the lengths of from and to differ, 1 and 2; allowed: as \
             many hosts in each",
        ),
        (constant.replace("[\"left0\"]", "[]"), "x.toml:6: cross_traffic.0.from = []: no host; allowed: at least one"),
        (
            constant.replace("left0", "left7"),
            "x.toml:6: cross_traffic.0.from.0 = \"left7\": no such node; allowed: left0, right0, west, east; did you mean \
             \"left0\"?",
        ),
        (
            constant.replace("right0", "east"),
            "x.toml:7: cross_traffic.0.to.0 = \"east\": a router; allowed: the hosts left0, right0",
        ),
        (
            constant.replace("right0", "left0"),
            "x.toml:7: cross_traffic.0.to.0 = \"left0\": sends to itself; allowed: another host",
        ),
        (
            constant.replace("10Mbps", "2Gbps"),
            "x.toml:8: cross_traffic.0.rate = \"2Gbps\": the interface of host \"left0\" has 1 Gb/s; allowed: that or less",
        ),
        (
            format!("{constant}\npacket = \"39B\""),
            "x.toml:9: cross_traffic.0.packet = \"39B\": out of range; allowed: a size from 40B to 65535B",
        ),
        (
            format!("{constant}\nburst = 0"),
            "x.toml:9: cross_traffic.0.burst = 0: out of range; allowed: a whole number from 1 to 1000000",
        ),
        (
            format!("{constant}\njitter = 1.5"),
            "x.toml:9: cross_traffic.0.jitter = 1.5: out of range; allowed: a number from 0 to 1, or a percentage such as \
             \"30%\"",
        ),
        (
            format!("{constant}\npeak = \"50Mbps\""),
            "x.toml:9: cross_traffic.0.peak: unknown key; allowed: kind, from, to, rate, packet, class, bucket, start, stop, \
             burst, jitter",
        ),
        (
            format!("{constant}\nstart = \"2s\"\nstop = \"2s\""),
            "x.toml:10: cross_traffic.0.stop = \"2s\": not after start, 2s; allowed: a later time",
        ),
        (
            format!("{constant}\nbucket = {{ rate = \"9Mbps\", depth = \"9kB\" }}"),
            "x.toml:9: cross_traffic.0.bucket.rate = \"9Mbps\": below the mean rate of the source, 10 Mb/s; allowed: that or \
             more",
        ),
        (
            format!("{constant}\nbucket = {{ rate = \"11Mbps\", depth = \"1kB\" }}"),
            "x.toml:9: cross_traffic.0.bucket.depth = \"1kB\": less than a packet; allowed: 1500B or more",
        ),
        (
            aggregate.replace("\npeak = \"50Mbps\"", ""),
            "x.toml:4: cross_traffic.0.peak: missing; allowed: a rate from 1kbps to 100Tbps",
        ),
        (
            aggregate.replace("50Mbps", "1.5Gbps"),
            "x.toml:9: cross_traffic.0.peak = \"1.5Gbps\": the interface of host \"left0\" has 1 Gb/s; allowed: that or less",
        ),
        (
            aggregate.replace("2kB", "1kB"),
            "x.toml:10: cross_traffic.0.smallest = \"1kB\": less than a packet; allowed: 1500B or more",
        ),
        (
            aggregate.replace("90kB", "1900B"),
            "x.toml:11: cross_traffic.0.largest = \"1900B\": less than smallest; allowed: 2000B or more",
        ),
        (
            format!("{aggregate}\nshape = 0"),
            "x.toml:12: cross_traffic.0.shape = 0: out of range; allowed: a number above 0, up to 10",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(with(&text), expected, "{text}");
    }
}

#[test]
fn mistakes_in_overrides_name_the_override() {
    let cases = [
        ("duration=5", "--set duration = 5: a time needs a unit, as in \"40ms\"; allowed: ps, ns, us, ms, s, min"),
        (
            "topology.pears=3",
            "--set topology.pears: unknown key; allowed: kind, pairs, access_rate, access_delay, bottleneck_rate, bottleneck_delay; did you mean \"pairs\"?",
        ),
        (
            "shceme.tcp.controller=cubic",
            "--set shceme: unknown key; allowed: title, source, duration, seed, routing, threads, topology, link, queue, queue_at, switch, nic, host, host_at, transport, scheme, workload, cross_traffic, drop, change, measure, packets, sample, emulate; did you mean \"scheme\"?",
        ),
        (
            "scheme.rc3.levels=[10,5]",
            "--set scheme.rc3.levels = [10, 5]: out of range; allowed: at most 6 increasing whole numbers",
        ),
        (
            "workload.1.load=3",
            "--set workload.1: unknown key; allowed: kind, scheme, mix, mix_by, writes, connections, name, after, traffic_class, traffic_classes, flows, pairs, size, sizes, start, \
             spread, gap",
        ),
        ("queue", "--set queue: an override is KEY=VALUE, as in duration=10s"),
        ("workload.scheme=udp", "--set workload.scheme = \"udp\": no such scheme; allowed: tcp, rc3"),
    ];
    for (text, expected) in cases {
        assert_eq!(message(GOOD, &[text]), expected, "{text}");
    }
    assert_eq!(
        message(GOOD, &["workload.0.size=5MB", "scheme.new.controller=cubic", "queue.limit=30packets"]),
        "no mistake"
    );
    assert_eq!(message(GOOD, &["workload.mix={tcp=0.9,rc3=0.1}"]), "no mistake");
    assert_eq!(
        message(GOOD, &["workload.mix={tcp=0.9,rc3=0.2}"]),
        "--set workload.mix: the shares of the mix add up to 1.1; allowed: 1, to within 0.000001"
    );
}

#[test]
fn mistakes_with_rates_that_routers_compute() {
    let needs = "sends at rates that routers compute, but no router computes one; allowed: with a table [queue.rcp]";
    check(&[
        ("controller = \"newreno\"", "controller = \"rcp\"", &format!("x.toml:7: scheme.tcp: scheme \"tcp\" {needs}")),
        (
            "controller = \"rc3\"",
            "controller = \"rc3\"\ninner = \"rcp\"",
            &format!("x.toml:9: scheme.rc3: scheme \"rc3\" {needs}"),
        ),
        (
            "[queue]",
            "[queue.rcp]\nfloor = \"1Gbps\"",
            "x.toml:5: queue.rcp.floor = \"1Gbps\": above gamma times the slowest link, 100 Mb/s; allowed: up to 100 Mb/s",
        ),
        (
            "[nic]",
            "[nic.rcp]\ngamma = 0.5\nfloor = \"600Mbps\"",
            "x.toml:7: nic.rcp.floor = \"600Mbps\": above gamma times the slowest link, 1 Gb/s; allowed: up to 500 Mb/s",
        ),
        (
            "[queue]",
            "[queue.rcp]\ngamma = 1.5",
            "x.toml:5: queue.rcp.gamma = 1.5: out of range; allowed: a number above 0, up to 1",
        ),
        (
            "[queue]",
            "[queue.rcp]\nalhpa = 0.4",
            "x.toml:5: queue.rcp.alhpa: unknown key; allowed: alpha, beta, gamma, interval, initial_rtt, initial_rate, \
             floor; did you mean \"alpha\"?",
        ),
        (
            "[queue]",
            "[queue.rcp]\ninterval = \"0s\"",
            "x.toml:5: queue.rcp.interval = \"0s\": out of range; allowed: a time from 1us to 100s",
        ),
    ]);
}

#[test]
fn mistakes_in_web_users() {
    let with = |keys: &str| {
        let workload = format!("kind = \"web-users\"\nscheme = \"tcp\"\n{keys}");
        message(&GOOD.replace("kind = \"bulk\"\nscheme = \"tcp\"\n", &workload), &[])
    };
    let rest = "users = 5\nlargest_file = \"1MB\"";
    let pairs = format!("pairs = [[\"left0\", \"right0\"]]\n{rest}");
    assert_eq!(with(&pairs), "no mistake");
    assert_eq!(with(&format!("servers = [\"left0\"]\nclients = [\"right0\"]\n{rest}")), "no mistake");
    let cases = [
        (
            rest,
            "x.toml:11: workload.pairs: missing; allowed: a list such as [[\"server1\", \"client1\"]], or servers and clients",
        ),
        (
            &format!("servers = [\"left0\"]\n{rest}"),
            "x.toml:14: workload.servers = [\"left0\"]: the counterpart is missing; allowed: servers and clients, or pairs",
        ),
        (
            &format!("servers = [\"left0\"]\n{pairs}"),
            "x.toml:14: workload.servers = [\"left0\"]: pairs is also given; allowed: pairs, or servers and clients",
        ),
        (
            &format!("servers = [\"left0\"]\nclients = [\"right0\", \"right0\"]\n{rest}"),
            "x.toml:15: workload.clients = [\"right0\", \"right0\"]: 2 clients for 1 servers; allowed: equal numbers",
        ),
        (
            &format!("servers = [\"left0\"]\nclients = [\"left0\"]\n{rest}"),
            "x.toml:15: workload.clients.0 = \"left0\": its own server; allowed: two different hosts",
        ),
        (&format!("pairs = []\n{rest}"), "x.toml:14: workload.pairs = []: no pair; allowed: at least one"),
        (
            &pairs.replace("right0", "east"),
            "x.toml:14: workload.pairs.0.1 = \"east\": a router; allowed: the hosts left0, right0",
        ),
        (
            &pairs.replace("users = 5", "users = 0"),
            "x.toml:15: workload.users = 0: out of range; allowed: a whole number from 1 to 10000000",
        ),
        (
            &pairs.replace("right0\"]", "right0\"], [\"right0\", \"left0\"]").replace("= 5", "= 6000000"),
            "x.toml:15: workload.users = 6000000: for each of 2 pairs; allowed: 10000000 in all",
        ),
        (
            &pairs.replace("1MB", "100KB"),
            "x.toml:16: workload.largest_file = \"100KB\": below tail_from; allowed: 133000B or more",
        ),
        (
            &format!("{pairs}\ninactive_off_alpha = 1"),
            "x.toml:17: workload.inactive_off_alpha = 1: such a Pareto has no mean; allowed: a number above 1, up to 100",
        ),
        (
            &format!("{pairs}\nstart = \"6s\""),
            "x.toml:17: workload.start = \"6s\": the workload runs from 6s to 5s; allowed: an end after the start",
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(with(keys), expected, "{keys}");
    }
}

#[test]
fn mistakes_in_rapid() {
    let with = |line: &str| {
        let scheme = format!("controller = \"rapid\"\n{line}\n");
        message(&GOOD.replace("controller = \"newreno\"\n", &scheme), &[])
    };
    assert_eq!(with("rates = 2"), "no mistake");
    let cases = [
        ("rates = 1", "a whole number from 2 to 64 rates"),
        ("spread = 1.0", "a number from 1.001 to 8"),
        ("eta = 0.5", "a number from 1 to 1000 updates"),
        ("gamma = 0", "a whole number from 1 to 1000 p-streams"),
        ("tau = \"0s\"", "a time from 1us to 100s"),
    ];
    for (line, allowed) in cases {
        let found = with(line);
        assert!(found.contains(line.split(' ').next().unwrap_or_default()), "{found}");
        assert!(found.contains("out of range; allowed: ") && found.contains(allowed), "{found}");
    }
    let fast = with("initial_rate = \"300Gbps\"");
    assert!(
        fast.contains("`initial_rate` is 300 Gb/s; allowed: at most ") && fast.contains("rate of the interface"),
        "{fast}"
    );
}
