//! The forms of values in a scenario, and their meaning.

use sparelane_cc::{DefaultValue, UNBOUNDED, Value};
use sparelane_core::{Dur, Rate, Time};
use sparelane_scenario::{Scenario, Source};
use sparelane_sim::{Discipline, FlowSpec, Limit, Loss, NodeKind, RoomNeeded, Routing, RunConfig};
use std::path::PathBuf;

const SCHEMES: &str = "[scheme.tcp]\ncontroller = \"newreno\"\n[scheme.rc3]\ncontroller = \"rc3\"\n";

fn scenario(text: &str) -> Scenario {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/inputs");
    let source = Source { file: "x.toml".to_owned(), folder };
    Scenario::parse(&format!("duration = \"5s\"\n{text}"), &source, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn build(text: &str) -> RunConfig {
    scenario(text).build().expect("a run")
}

/// Two schemes on a dumbbell of two pairs, with this workload.
fn flows(workload: &str) -> Vec<FlowSpec> {
    let text = format!("[topology]\nkind = \"dumbbell\"\npairs = 2\n{SCHEMES}[workload]\nscheme = \"tcp\"\n{workload}");
    let mut run = build(&text);
    std::iter::from_fn(|| run.flows.next_flow()).collect()
}

fn pairs(flows: &[FlowSpec]) -> Vec<(u32, u32)> {
    flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect()
}

#[test]
fn bulk_flows_connect_the_halves_of_the_hosts_by_default() {
    let halves = flows("kind = \"bulk\"");
    assert_eq!(pairs(&halves), [(0, 2), (1, 3)]);
    assert!(halves.iter().all(|flow| flow.size_bytes.is_none() && flow.start == Time::ZERO && flow.scheme == 0));
    assert_eq!(flows("kind = \"bulk\"\npairs = \"all\"").len(), 12);
    assert_eq!(flows("kind = \"bulk\"\npairs = \"permutation\"").len(), 4);
    let given =
        flows("kind = \"bulk\"\nflows = 3\npairs = [[\"left1\", \"left0\"], [\"right0\", \"left1\"]]\ngap = \"1s\"");
    assert_eq!(pairs(&given), [(1, 0), (2, 1), (1, 0)]);
    assert_eq!(given[2].start, Time::ZERO + Dur::from_secs(2));
}

#[test]
fn sizes_are_bytes_segments_products_or_drawn() {
    let size = |workload: &str| flows(&format!("kind = \"bulk\"\n{workload}"))[0].size_bytes;
    assert_eq!(size("size = \"10MB\""), Some(10_000_000));
    assert_eq!(size("size = \"66packets\""), Some(66 * 1460));
    assert_eq!(size("size = \"0.5bdp\""), Some(250_000));
    assert_eq!(size("sizes = { kind = \"fixed\", size = \"2packets\" }"), Some(2920));
    assert_eq!(size("sizes = { kind = \"points\", bytes = [7], probability = [1] }"), Some(7));
    assert!(size("sizes = { kind = \"cdf\", path = \"cdf.csv\" }").is_some_and(|bytes| bytes <= 2000));
    assert!(size("sizes = { kind = \"cdf\", bytes = [0, 9], cumulative = [0, 1] }").is_some_and(|bytes| bytes <= 9));
    assert!(size("sizes = { kind = \"w2000\" }").is_some_and(|bytes| bytes % 1460 == 0));
    let lognormal = "sizes = { kind = \"lognormal\", median = \"1kB\", sigma = 2, cap = \"2kB\" }";
    assert!(size(lognormal).is_some_and(|bytes| bytes <= 2000));
}

#[test]
fn poisson_arrivals_keep_to_their_sources_and_times() {
    let poisson =
        "kind = \"poisson\"\nsizes = { kind = \"rc3\" }\nstart = \"1s\"\nend = \"2s\"\nsources = [\"left1\"]\n";
    let drawn = flows(&format!("{poisson}flows_per_second = 500"));
    assert!((350..650).contains(&drawn.len()), "{}", drawn.len());
    assert!(drawn.iter().all(|flow| flow.src.0 == 1 && flow.dst.0 >= 2));
    let second = |number: u64| Time::ZERO + Dur::from_secs(number);
    assert!(drawn.iter().all(|flow| second(1) <= flow.start && flow.start < second(2)));
    assert!(flows(&format!("{poisson}load = \"30%\"\ndestinations = \"any\"")).iter().any(|flow| flow.dst.0 == 0));
}

#[test]
fn listed_flows_name_their_schemes() {
    let listed = flows("kind = \"flows\"\npath = \"good.csv\"");
    assert_eq!(
        listed.iter().map(|flow| (flow.size_bytes, flow.scheme)).collect::<Vec<_>>(),
        [(None, 0), (Some(1000), 1)]
    );
}

#[test]
fn a_mix_changes_the_schemes_of_flows_and_nothing_else() {
    let poisson = "kind = \"poisson\"\nsizes = { kind = \"rc3\" }\nflows_per_second = 500\n";
    let mixed = |workload: &str, mix: &str| {
        let text = format!("[topology]\nkind = \"dumbbell\"\npairs = 2\n{SCHEMES}[workload]\n{mix}\n{workload}");
        let mut run = build(&text);
        std::iter::from_fn(|| run.flows.next_flow()).collect::<Vec<_>>()
    };
    for workload in [poisson, "kind = \"bulk\"\nflows = 5000\nspread = \"1s\"\nsize = \"7packets\""] {
        let plain = mixed(workload, "scheme = \"tcp\"");
        let drawn = mixed(workload, "mix = { tcp = 0.75, rc3 = \"25%\" }");
        let same = |flows: &[FlowSpec]| flows.iter().map(|&flow| FlowSpec { scheme: 0, ..flow }).collect::<Vec<_>>();
        assert_eq!(same(&plain), same(&drawn));
        let share = drawn.iter().filter(|flow| flow.scheme == 1).count() as f64 / drawn.len() as f64;
        assert!((share - 0.25).abs() < 0.03, "{share} of {}", drawn.len());
        let by_host = mixed(workload, "mix = { tcp = 0.5, rc3 = 0.5 }\nmix_by = \"host\"");
        assert_eq!(same(&plain), same(&by_host));
        assert!(by_host.iter().all(|flow| flow.scheme == (flow.src.0 % 2) as u16));
    }
    let listed = mixed("kind = \"flows\"\npath = \"good.csv\"", "mix = { rc3 = 1 }");
    assert!(listed.iter().all(|flow| flow.scheme == 1), "{listed:?}");
}

#[test]
fn several_workloads_share_one_run_in_order_of_start() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\n{SCHEMES}[[workload]]\nkind = \"bulk\"\nscheme = \"rc3\"\nstart = \"2s\"\n\
         [[workload]]\nkind = \"bulk\"\nscheme = \"tcp\"\nstart = \"1s\"\n"
    );
    let mut run = build(&text);
    let schemes: Vec<_> = std::iter::from_fn(|| run.flows.next_flow()).map(|flow| flow.scheme).collect();
    assert_eq!(schemes, [0, 1]);
}

#[test]
fn queues_have_priorities_if_a_scheme_needs_them_and_hold_one_product() {
    let workload = "[topology]\nkind = \"dumbbell\"\n[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\n";
    let tcp = build(&format!("{workload}[scheme.tcp]\ncontroller = \"newreno\"\n"));
    assert_eq!((tcp.router_queue.discipline, tcp.router_queue.limit), (Discipline::Fifo, Limit::Bytes(500_000)));
    assert_eq!((tcp.nic_queue.discipline, tcp.nic_queue.limit), (Discipline::Fifo, Limit::Bytes(2_048_000_000)));
    let rc3 = build(&format!("{workload}[queue]\nlimit = \"9packets\"\n{SCHEMES}"));
    assert_eq!((rc3.router_queue.discipline, rc3.router_queue.limit), (Discipline::Priority, Limit::Packets(9)));
    assert_eq!(rc3.nic_queue.discipline, Discipline::Priority);
}

#[test]
fn chosen_cables_take_the_given_values_and_the_product_follows() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\n{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\n\
         [[link]]\nselect = \"core\"\nrate = \"10Mbps\"\nloss = \"0.01%\"\nlimit = \"2bdp\"\n\
         [[link]]\nbetween = [\"right0\", \"east\"]\ndelay = \"11ms\"\n"
    );
    assert_eq!(scenario(&text).bdp_bytes, 10_000_000 / 8 * 60 / 1000);
    let core =
        build(&text).network.cables.into_iter().find(|cable| cable.rates == [Rate::from_mbps(10); 2]).expect("a core");
    assert_eq!((core.loss, core.limit), ([Loss::of_any(0.0001); 2], Some(Limit::Bytes(150_000))));
}

#[test]
fn loss_is_of_both_directions_or_one_and_of_any_packet_or_of_data() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\n{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\n\
         [[link]]\nselect = \"all\"\nloss = 1e-8\nloss_of = \"data\"\n\
         [[link]]\nbetween = [\"east\", \"west\"]\nloss = 0.5\nloss_from = \"east\"\n"
    );
    let network = build(&text).network;
    let [west, east] = ["west", "east"].map(|name| network.find(name).expect("a router"));
    let data = Loss { probability: 1e-8, data_only: true };
    for cable in &network.cables {
        let is_core = [cable.a, cable.b] == [west, east];
        assert_eq!(cable.loss, if is_core { [data, Loss::of_any(0.5)] } else { [data; 2] });
    }
}

#[test]
fn a_graph_without_hosts_gets_them_and_its_capacities_by_rule() {
    let file = "[topology]\nkind = \"file\"\npath = \"two.graphml\"\nhosts_per_router = 3\n";
    let rest = format!("{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\n");
    let given = build(&format!("{file}{rest}")).network;
    assert_eq!(given.nodes.iter().filter(|node| node.kind == NodeKind::Host).count(), 6);
    assert_eq!((given.cables[0].rates, given.cables[0].delay), ([Rate::from_gbps(5); 2], Dur::from_ms(5)));
    let ruled = build(&format!("{file}capacity = \"internet2-rule\"\n{rest}")).network;
    assert_eq!(ruled.cables[0].rates, [Rate::from_gbps(3); 2]);
}

#[test]
fn a_fat_tree_takes_its_size_and_rates_from_the_scenario() {
    let rest = format!("{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\npairs = \"permutation\"\n");
    let network = |keys: &str| build(&format!("[topology]\nkind = \"fat-tree\"\n{keys}{rest}")).network;
    let default = network("");
    assert_eq!((default.hosts().len(), default.cables.len()), (16, 48));
    assert!(default.cables.iter().all(|cable| cable.rates == [Rate::from_gbps(100); 2]));
    let given = network("k = 6\nrate = \"40Gbps\"\nhost_rate = \"10Gbps\"\ndelay = \"500ns\"\n");
    let [first, .., last] = given.cables.as_slice() else { panic!("no cables") };
    assert_eq!((given.hosts().len(), first.slowest(), last.slowest()), (54, Rate::from_gbps(40), Rate::from_gbps(10)));
    assert_eq!((first.delay, last.delay), (Dur::from_ns(500), Dur::from_ns(500)));
}

#[test]
fn a_spine_leaf_network_and_a_star_take_their_sizes_and_rates_from_the_scenario() {
    let rest = format!("{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\npairs = \"permutation\"\n");
    let network = |keys: &str| build(&format!("[topology]\nkind = {keys}\n{rest}")).network;
    let default = network("\"spine-leaf\"");
    assert_eq!((default.hosts().len(), default.cables.len()), (96, 120));
    let [up, .., server] = default.cables.as_slice() else { panic!("no cables") };
    assert_eq!((up.slowest(), server.slowest(), up.delay), (Rate::from_gbps(40), Rate::from_gbps(10), Dur::from_us(1)));
    let keys = "spines = 2\nleaves = 3\nservers = 4\nserver_rate = \"1Gbps\"\nspine_rate = \"2Gbps\"\n\
                over_subscription = 2\ndelay = \"5us\"";
    let given = network(&format!("\"spine-leaf\"\n{keys}"));
    assert_eq!((given.hosts().len(), given.cables.len()), (12, 6 + 12));
    assert!(given.cables.iter().all(|cable| (cable.slowest(), cable.delay) == (Rate::from_gbps(1), Dur::from_us(5))));
    assert!(given.find("leaf3_h4").is_some() && given.find("leaf3_h5").is_none());
    let star = network("\"star\"\nhosts = 96\nrate = \"10Gbps\"\ndelay = \"2us\"");
    assert_eq!((star.hosts().len(), star.find("h96").is_some()), (96, true));
    assert!(star.cables.iter().all(|cable| (cable.slowest(), cable.delay) == (Rate::from_gbps(10), Dur::from_us(2))));
}

#[test]
fn one_direction_of_cables_may_have_a_rate_of_its_own() {
    let rest = format!("{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\n");
    for (kind, core) in [("\"internet2\"", 16), ("\"file\"\npath = \"two.graphml\"\ncapacity = \"internet2-rule\"", 1)]
    {
        let topology = format!("[topology]\nkind = {kind}\nhosts_per_router = 3\n");
        let even = build(&format!("{topology}{rest}")).network;
        let uneven = scenario(&format!(
            "{topology}{rest}[[link]]\nselect = \"access\"\nrate = \"100Mbps\"\nrate_from = \"routers\"\n"
        ));
        let network = uneven.build().expect("a run").network;
        assert_eq!(network.cables[..core], even.cables[..core]);
        for host in network.hosts() {
            let router = network.attachment(host).expect("a router");
            let cable = network.cables.iter().find(|cable| cable.b == host).expect("a cable");
            assert_eq!((cable.rate_from(host), cable.rate_from(router)), (Rate::from_gbps(1), Rate::from_mbps(100)));
        }
        let rtt = uneven.bdp_bytes as f64 * 8.0 / 1e8;
        assert!((0.01..0.05).contains(&rtt), "one product is counted at the slower direction, {rtt} s");
    }
}

#[test]
fn the_end_that_sends_takes_the_rate_or_the_loss() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\n{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\n\
         [[link]]\nbetween = [\"west\", \"east\"]\nrate = \"5Mbps\"\nrate_from = \"east\"\n\
         [[link]]\nselect = \"access\"\nloss = 0.5\nloss_from = \"hosts\"\n"
    );
    let network = build(&text).network;
    for cable in &network.cables {
        let [a, b] = [cable.a, cable.b].map(|end| network.nodes[end.index()].kind);
        if a == b {
            assert_eq!(cable.rates, [Rate::from_mbps(100), Rate::from_mbps(5)]);
            assert_eq!(cable.loss, [Loss::NONE; 2]);
        } else {
            let (host, router) = if a == NodeKind::Host { (cable.a, cable.b) } else { (cable.b, cable.a) };
            assert_eq!((cable.loss_from(host), cable.loss_from(router)), (Loss::of_any(0.5), Loss::NONE));
            assert_eq!(cable.rates, [Rate::from_gbps(1); 2]);
        }
    }
}

#[test]
fn a_queue_needs_room_for_the_packet_or_for_a_full_one() {
    let text = format!(
        "[topology]\nkind = \"dumbbell\"\n{SCHEMES}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"\n\
         [queue]\nroom = \"full-packet\"\n[[queue_at]]\nrouters = [\"west\"]\nkind = \"codel\"\n"
    );
    let run = build(&text);
    assert_eq!((run.router_queue.room, run.nic_queue.room), (RoomNeeded::FullPacket, RoomNeeded::Packet));
}

#[test]
fn core_rates_are_drawn_with_the_seed_wherever_it_is_given() {
    let text = "[topology]\nkind = \"internet2\"\nhosts_per_router = 2\ncore_rate_min = \"500Mbps\"\ncore_rate_max = \"2Gbps\"\n";
    let text = format!(
        "duration = \"5s\"\nseed = 1\n{text}{SCHEMES}[workload]\nkind = \"poisson\"\nscheme = \"tcp\"\n\
                        load = 0.3\nsizes = {{ kind = \"rc3\" }}\n"
    );
    let run = |text: &str, overrides: &[String]| {
        let source = Source { file: "x.toml".to_owned(), folder: PathBuf::new() };
        Scenario::parse(text, &source, overrides).unwrap_or_else(|error| panic!("{error}")).build().expect("a run")
    };
    let cables = |text: &str, overrides: &[String]| run(text, overrides).network.cables;
    let seven = text.replace("seed = 1", "seed = 7");
    assert_eq!(cables(&seven, &[]), cables(&text, &["seed=7".to_owned()]));
    assert_ne!(cables(&seven, &[]), cables(&text, &[]));
    // A load on access links leaves the flows those of the even core.
    let even = run(&text.replace("core_rate_min = \"500Mbps\"\ncore_rate_max = \"2Gbps\"\n", ""), &[]).flows;
    let (mut even, mut drawn) = (even, run(&text, &[]).flows);
    for _ in 0..100 {
        assert_eq!(even.next_flow(), drawn.next_flow());
    }
}

#[test]
fn schemes_override_the_transport_one_by_one() {
    let run = build(
        "routing = \"ecmp\"\n[topology]\nkind = \"dumbbell\"\n[transport]\nmss = \"1000B\"\nsack = false\n\
         [scheme.a]\ncontroller = \"cubic\"\ntransport = { sack = true }\n[scheme.b]\ncontroller = \"cubic\"\n\
         [workload]\nkind = \"bulk\"\nscheme = \"a\"\n[sample]\nflows = [3]\nqueues = [[\"west\", \"east\"]]\n",
    );
    let settings: Vec<_> =
        run.schemes.iter().map(|scheme| (scheme.transport.mss_bytes, scheme.transport.sack)).collect();
    assert_eq!(settings, [(1000, true), (1000, false)]);
    assert_eq!(run.routing, Routing::PerFlowEcmp);
    let [sampler] = &run.observers[..] else { panic!("{} observers", run.observers.len()) };
    let interest = sampler.interest();
    assert_eq!((interest.first_sample, interest.queues.len()), (Some(Time::ZERO), 1));
}

#[test]
fn a_threshold_is_a_number_or_unbounded_and_unbounded_by_default() {
    let tcp = |line: &str| {
        let text = format!("[topology]\nkind = \"dumbbell\"\n[scheme.tcp]\ncontroller = \"newreno\"\n{line}\n");
        build(&format!("{text}[workload]\nkind = \"bulk\"\nscheme = \"tcp\"")).schemes[0].values.clone()
    };
    let given = |line| tcp(line).given("initial_ssthresh").cloned();
    assert_eq!(given(""), None);
    assert_eq!(given("initial_ssthresh = 20"), Some(Value::Whole(20)));
    assert_eq!(given("initial_ssthresh = \"unbounded\""), Some(Value::Whole(UNBOUNDED)));
    let entries = sparelane_scenario::catalogue(&sparelane_scenario::Catalogue::built_in());
    let newreno = entries.iter().find(|entry| entry.name == "newreno").expect("a controller");
    let ssthresh = newreno.params.iter().find(|param| param.name == "initial_ssthresh").expect("a parameter");
    assert_eq!(
        (ssthresh.default.as_str(), ssthresh.allowed.as_str()),
        ("unbounded", "a whole number from 2 segments, or \"unbounded\"")
    );
}

#[test]
fn every_printed_default_of_a_controller_is_read_as_that_default() {
    for controller in sparelane_cc::Registry::built_in().all() {
        for param in controller.params {
            let printed = match param.default {
                DefaultValue::Whole(UNBOUNDED)
                | DefaultValue::Word(_)
                | DefaultValue::Span(_)
                | DefaultValue::Rate(_)
                | DefaultValue::Size(_) => {
                    format!("\"{}\"", param.default)
                }
                _ => param.default.to_string(),
            };
            let text = format!(
                "[topology]\nkind = \"dumbbell\"\n[queue.rcp]\n[transport]\necn = \"dctcp\"\n[scheme.one]\ncontroller = \"{}\"\n{} = {printed}\n\
                 [workload]\nkind = \"bulk\"\nscheme = \"one\"",
                controller.name, param.name
            );
            let values = &build(&text).schemes[0].values;
            assert_eq!(
                values.given(param.name),
                Some(&Value::from(param.default)),
                "{} {}",
                controller.name,
                param.name
            );
        }
    }
}

#[test]
fn flows_are_of_one_class_of_traffic_or_of_classes_by_size() {
    let classes = |workload: &str| -> Vec<_> { flows(workload).iter().map(|flow| flow.traffic_class).collect() };
    let three = "kind = \"bulk\"\nflows = 3\nsize = \"20KB\"\n";
    assert_eq!(classes(three), [None; 3]);
    assert_eq!(classes(&format!("{three}traffic_class = \"web\"")), [Some(0); 3]);
    let by_size = "traffic_classes = [{ name = \"urgent\", below = \"30KB\" }, { name = \"high-volume\" }]";
    assert_eq!(classes(&format!("kind = \"bulk\"\nsize = \"20KB\"\n{by_size}")), [Some(0); 2]);
    assert_eq!(classes(&format!("kind = \"bulk\"\nsize = \"30KB\"\n{by_size}")), [Some(1); 2]);
    assert_eq!(classes(&format!("kind = \"bulk\"\n{by_size}")), [Some(1); 2], "without end");
}

#[test]
fn hosts_send_to_a_random_other_to_the_next_or_all_to_the_first() {
    assert_eq!(pairs(&flows("kind = \"bulk\"\npairs = \"next\"")), [(0, 1), (1, 2), (2, 3), (3, 0)]);
    assert_eq!(pairs(&flows("kind = \"bulk\"\npairs = \"incast\"")), [(1, 0), (2, 0), (3, 0)]);
    let random = pairs(&flows("kind = \"bulk\"\npairs = \"random\""));
    assert_eq!(random.iter().map(|pair| pair.0).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert!(random.iter().all(|(src, dst)| src != dst && *dst < 4), "{random:?}");
}

#[test]
fn requests_fetch_their_flows_at_once_and_have_numbers() {
    let asked = flows(
        "kind = \"requests\"\nload = 0.5\nsizes = { kind = \"web-search\" }\nservers = [\"left1\", \"right0\"]\n\
         fan_out = [{ flows = 2, share = 1.0 }]",
    );
    assert!(asked.len() > 10 && asked.iter().all(|flow| flow.dst.0 == 0 && [1, 2].contains(&flow.src.0)));
    for pair in asked.chunks(2) {
        assert_eq!((pair[0].start, pair[0].request), (pair[1].start, pair[1].request));
        assert_ne!(pair[0].src, pair[1].src);
    }
    assert_eq!(asked[2].request, Some(1));
}
