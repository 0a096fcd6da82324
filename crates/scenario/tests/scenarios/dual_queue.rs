//! Coupled dual queues from end to end: DCTCP in the L queue beside CUBIC in the C queue.

use super::run;
use sparelane_cc::Registry;
use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;

const SECONDS: f64 = 40.0;
const WARM_UP_S: f64 = 20.0;

/// A bottleneck with flow 0 of DCTCP and flow 1 of CUBIC, each between hosts of their own.
#[derive(Clone, Copy)]
struct Path {
    mbps: f64,
    rtt_ms: f64,
}

impl Path {
    /// Runs both flows. `ecn` is the setting of DCTCP, and `queue` has the keys of the bottleneck's queue.
    fn run(self, ecn: &str, queue: &str) -> Records {
        self.run_beside_cubic("dctcp", ecn, queue)
    }

    /// Runs a flow of `controller` with this setting of ECN beside one of CUBIC.
    fn run_beside_cubic(self, controller: &str, ecn: &str, queue: &str) -> Records {
        let Path { mbps, rtt_ms } = self;
        let delay_us = rtt_ms * 500.0;
        run(&format!(
            "duration = \"{SECONDS}s\"\nseed = 1\nmeasure = {{ delays = true, from = \"{WARM_UP_S}s\" }}\n[topology]\n\
             kind = \"dumbbell\"\npairs = 2\naccess_rate = \"1Gbps\"\naccess_delay = \"0s\"\nbottleneck_rate = \
             \"{mbps}Mbps\"\nbottleneck_delay = \"{delay_us}us\"\n[queue]\n{queue}\nlimit = \"10000packets\"\n\
             [scheme.l]\ncontroller = \"{controller}\"\ntransport = {{ ecn = \"{ecn}\" }}\n[scheme.c]\ncontroller = \"cubic\"\n\
             [[workload]]\nkind = \"bulk\"\nscheme = \"l\"\npairs = [[\"left0\", \"right0\"]]\nsize = \"unlimited\"\n\
             [[workload]]\nkind = \"bulk\"\nscheme = \"c\"\npairs = [[\"left1\", \"right1\"]]\nsize = \"unlimited\"\n"
        ))
    }

    /// The one-way delay without any queue: propagation, and a full packet at each of three links.
    fn idle_ms(self) -> f64 {
        self.rtt_ms / 2.0 + 12.0 / self.mbps + 2.0 * 0.012
    }

    fn measure(self, records: &Records) -> [Measure; 2] {
        [0, 1].map(|scheme| {
            let delays = &records.delays;
            let rows: Vec<_> = (0..delays.scheme.len())
                .filter(|&row| delays.scheme[row] == scheme)
                .map(|row| (delays.delay_ns[row] as f64 / 1e6 - self.idle_ms(), delays.packets[row] as f64))
                .collect();
            let packets: f64 = rows.iter().map(|(_, packets)| packets).sum();
            let mean_ms = rows.iter().map(|(delay, packets)| delay * packets).sum::<f64>() / packets;
            let mut seen = 0.0;
            let p99 = rows.iter().find(|(_, packets)| {
                seen += packets;
                seen >= 0.99 * packets_of(&rows)
            });
            Measure { packets, mean_ms, p99_ms: p99.expect("packets").0 }
        })
    }
}

fn packets_of(rows: &[(f64, f64)]) -> f64 {
    rows.iter().map(|(_, packets)| packets).sum()
}

/// The delivered packets of a scheme, and their delays in the bottleneck's queue.
#[derive(Clone, Copy, Debug)]
struct Measure {
    packets: f64,
    mean_ms: f64,
    p99_ms: f64,
}

/// PI2 has an integral part, so the mean delay of C settles at its target. With windows W_L = 2 / p_CL of DCTCP (RFC
/// 9332 appendix C.1), W_C = 1.68 / sqrt(p_C) of CUBIC at short round trips (RFC 9438 section 4.3) and k = 2, W_L / W_C
/// = 0.6; the test allows a factor of two. The rates differ more, since the delay of C is part of its round trip only.
#[test]
fn the_coupling_balances_windows_and_the_integral_part_holds_the_classic_target() {
    for (mbps, rtt_ms) in [(12.0, 5.0), (12.0, 10.0), (40.0, 5.0), (40.0, 10.0), (120.0, 5.0), (200.0, 5.0)] {
        let path = Path { mbps, rtt_ms };
        let records = path.run("l4s", "kind = \"dualpi2\"");
        let [l, c] = path.measure(&records);
        let case = format!("{mbps} Mb/s, {rtt_ms} ms: {l:?}, {c:?}");
        let used = (l.packets + c.packets) * 12e-3 / (mbps * (SECONDS - WARM_UP_S));
        assert!(used > 0.99, "{used} of {case}");
        assert!((c.mean_ms - 15.0).abs() < 2.0, "{case}");
        let windows = l.packets * (rtt_ms + l.mean_ms) / (c.packets * (rtt_ms + c.mean_ms));
        assert!((0.3..1.2).contains(&windows), "{windows} of {case}");
        // The ramp of L ends at 1.2 ms. On the slowest link, two packets of C add a millisecond each: one in
        // transmission, and one that is due by its weight.
        let most_ms = if mbps < 40.0 { 1.2 + 2.0 * 12.0 / mbps } else { 1.0 };
        assert!(l.p99_ms < most_ms, "{case}");
    }
}

/// DCTCP whose packets are ECT(0) shares the delay of C.
#[test]
fn only_ect_1_gives_low_latency() {
    let path = Path { mbps: 40.0, rtt_ms: 10.0 };
    let [l4s, dctcp] = ["l4s", "dctcp"].map(|ecn| path.measure(&path.run(ecn, "kind = \"dualpi2\""))[0]);
    assert!(l4s.mean_ms < 1.0 && dctcp.mean_ms > 8.0, "{l4s:?}, {dctcp:?}");
}

/// The aim of RFC 9332 with its scalable controller: rates within a factor of two, below 1 ms in L, and 15 ms in C.
#[test]
fn prague_with_accurate_ecn_shares_the_link_with_cubic_and_keeps_its_delay_below_a_millisecond() {
    for (mbps, rtt_ms) in [(40.0, 5.0), (40.0, 10.0), (120.0, 5.0)] {
        let path = Path { mbps, rtt_ms };
        let [l, c] = path.measure(&path.run_beside_cubic("prague", "accurate", "kind = \"dualpi2\""));
        let case = format!("{mbps} Mb/s, {rtt_ms} ms: {l:?}, {c:?}");
        assert!((0.5..2.0).contains(&(l.packets / c.packets)), "{case}");
        assert!(l.p99_ms < 1.0 && (c.mean_ms - 15.0).abs() < 2.0, "{case}");
        assert!((l.packets + c.packets) * 12e-3 / (mbps * (SECONDS - WARM_UP_S)) > 0.99, "{case}");
    }
}

/// Queues that do not distinguish ECT(0) from ECT(1) treat them alike.
#[test]
fn l4s_is_dctcp_on_other_queues() {
    let path = Path { mbps: 12.0, rtt_ms: 10.0 };
    for queue in ["kind = \"fifo\"\nmark_at = \"20packets\"", "kind = \"pie\"\necn = true"] {
        let [l4s, dctcp] = ["l4s", "dctcp"].map(|ecn| path.run(ecn, queue));
        assert!(l4s.links.marked_packets.iter().sum::<u64>() > 50);
        assert_eq!((l4s.flows, l4s.links), (dctcp.flows, dctcp.links));
    }
}

/// At 15 Mb/s on a link of 10 Mb/s, traffic that ignores marks and losses must lose a third of its packets for the
/// delay to settle at the target of 15 ms. Datagrams without ECN lose them in C. In L, marks alone would not reduce the
/// delay: from p_C = 1/4 on, L drops, too. Retransmissions are not ECN-capable, so C has the older head then.
#[test]
fn unresponsive_traffic_is_dropped_down_to_the_target_in_either_queue() {
    let datagrams =
        "[[cross_traffic]]\nkind = \"constant\"\nrate = \"15Mbps\"\nfrom = [\"left1\"]\nto = [\"right1\"]\n";
    let l4s = "[scheme.flood]\ncontroller = \"constant\"\npace = \"15Mbps\"\nwindow = 10000\ntransport = { ecn = \"l4s\" }\n\
               [[workload]]\nkind = \"bulk\"\nscheme = \"flood\"\npairs = [[\"left1\", \"right1\"]]\nsize = \"unlimited\"\n";
    for traffic in [datagrams, l4s] {
        let records = run(&format!(
            "duration = \"60s\"\nsample = {{ interval = \"10ms\", queues = [[\"west\", \"east\"]] }}\n[topology]\nkind = \
             \"dumbbell\"\npairs = 2\nbottleneck_rate = \"10Mbps\"\nbottleneck_delay = \"5ms\"\naccess_rate = \"1Gbps\"\n\
             [queue]\nkind = \"dualpi2\"\nlimit = \"10000packets\"\n[scheme.cubic]\ncontroller = \"cubic\"\n\
             [[workload]]\nkind = \"bulk\"\nscheme = \"cubic\"\npairs = [[\"left0\", \"right0\"]]\nsize = \"1MB\"\n{traffic}"
        ));
        let series = &records.series;
        let late = (0..series.time_ps.len()).filter(|&row| series.time_ps[row] > records.totals.end_ps / 2);
        let held: Vec<f64> = late.map(|row| series.value[row] * 8.0 / 10e6 * 1e3).collect();
        let mean_ms = held.iter().sum::<f64>() / held.len() as f64;
        // The queue is served at 15 Mb/s: 10 Mb/s leave, and 5 Mb/s are dropped at the head.
        let delay_ms = mean_ms / 1.5;
        let least_ms = if traffic == datagrams { 13.0 } else { 0.0 };
        assert!((least_ms..17.0).contains(&delay_ms), "{delay_ms} ms");
    }
}

/// No queue can hold a delay of 1 ps, so a large gain soon lifts p' to 1, where it stays. Flows still end, because less
/// than two full packets are not dropped.
#[test]
fn flows_end_under_a_target_that_no_queue_can_meet() {
    let records = run(
        "duration = \"300s\"\n[topology]\nkind = \"dumbbell\"\npairs = 4\nbottleneck_rate = \"10Mbps\"\n\
         bottleneck_delay = \"5ms\"\n[queue]\nkind = \"dualpi2\"\ntarget = \"1ps\"\nalpha = 100.0\n[scheme.x]\ncontroller = \"newreno\"\n\
         [workload]\nkind = \"bulk\"\nsize = \"500kB\"\n",
    );
    assert_eq!((records.totals.flows, records.totals.finished_flows), (4, 4));
}

#[test]
fn a_warning_says_if_no_scheme_can_use_the_low_latency_queue() {
    let warnings = |controller, ecn| {
        let text = format!(
            "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\nbottleneck_rate = \"10Mbps\"\n\
             bottleneck_delay = \"5ms\"\n[queue]\nkind = \"dualpi2\"\n[transport]\n{ecn}\n[scheme.x]\n\
             controller = \"{controller}\"\n[workload]\nkind = \"bulk\"\nsize = \"1MB\"\n"
        );
        let scenario = Scenario::parse(&text, &Source::at(std::path::Path::new("x.toml")), &[]).expect("a scenario");
        scenario.warnings().to_vec()
    };
    assert_eq!(warnings("dctcp", "ecn = \"l4s\"").len(), 0);
    let expected = "queue.kind = \"dualpi2\": no scheme sends ECT(1), so none can use the L queue; \
                    transport.ecn = \"l4s\" lets one use it";
    assert_eq!(warnings("newreno", "ecn = \"classic\""), [expected]);
    // Accurate ECN without a scalable controller sends ECT(0).
    assert_eq!(warnings("newreno", "ecn = \"accurate\""), [expected]);
    let refused =
        "scheme.x: transport.ecn = \"accurate\" is not negotiated, because peer_ecn names a receiver with classic ECN";
    assert_eq!(warnings("newreno", "ecn = \"accurate\"\npeer_ecn = \"classic\""), [refused, expected]);
}

#[test]
fn a_warning_says_if_a_controller_in_the_low_latency_queue_does_not_react_to_the_share_of_marks() {
    let text = "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\nbottleneck_rate = \"10Mbps\"\n\
                bottleneck_delay = \"5ms\"\n[queue]\nkind = \"dualpi2\"\n[transport]\necn = \"l4s\"\n[scheme.x]\n\
                controller = \"copa\"\n[workload]\nkind = \"bulk\"\nsize = \"1MB\"\n";
    let scenario = Scenario::parse(text, &Source::at(std::path::Path::new("x.toml")), &[]).expect("a scenario");
    let expected = "scheme.x: transport.ecn = \"l4s\" sends ECT(1), which RFC 9331 reserves for controllers that react to \
                    the share of marks; \"copa\" does not, so it can fill the L queue";
    assert_eq!(scenario.warnings(), [expected]);
}

/// Parses a scenario with a scheme on a coupled dual queue, and returns its warnings.
fn warnings(queue: &str, scheme: &str) -> Vec<String> {
    let text = format!(
        "duration = \"1s\"\n[topology]\nkind = \"dumbbell\"\npairs = 1\nbottleneck_rate = \"10Mbps\"\n\
         bottleneck_delay = \"5ms\"\n[queue]\nkind = \"dualpi2\"\n{queue}\n[scheme.x]\n{scheme}\n[workload]\n\
         kind = \"bulk\"\nsize = \"1MB\"\n"
    );
    warnings_of(&text)
}

fn warnings_of(text: &str) -> Vec<String> {
    let scenario = Scenario::parse(text, &Source::at(std::path::Path::new("x.toml")), &[]).expect("a scenario");
    scenario.warnings().to_vec()
}

#[test]
fn a_warning_says_if_rc3_lacks_the_lower_bands_or_nothing_needs_them() {
    let rc3 = "controller = \"rc3\"\ninner = \"prague\"\ntransport = { ecn = \"accurate\" }";
    let prague = "controller = \"prague\"\ntransport = { ecn = \"accurate\" }";
    let lacking = "scheme x sends in priority classes down to 4, but the queues of all routers treat all classes alike \
                   (dualpi2), so that low-priority packets delay and displace others; queue.lower_bands = true separates \
                   the classes";
    assert_eq!(warnings("", rc3), [lacking]);
    assert_eq!(warnings("lower_bands = true", rc3).len(), 0);
    assert_eq!(warnings("", prague).len(), 0);
    let [idle] = &warnings("lower_bands = true", prague)[..] else { panic!("one warning") };
    assert!(idle.contains("queue.lower_bands") && idle.contains("all packets are in class 0"), "{idle}");
}

#[test]
fn a_warning_says_if_a_controller_whose_packets_are_ecn_capable_ignores_marks() {
    let of = |controller, ecn| {
        let scheme = format!("controller = \"{controller}\"\ntransport = {{ ecn = \"{ecn}\" }}");
        warnings("", &scheme).into_iter().filter(|warning| warning.contains("does not react to marks")).count()
    };
    for (controller, warned) in [("bbr3", 1), ("bbr", 1), ("swift", 1), ("rapid", 1), ("cubic", 0), ("copa", 0)] {
        assert_eq!((of(controller, "classic"), of(controller, "off")), (warned, 0), "{controller}");
    }
}

/// Four flows at 20 Mb/s whose packets are marked once this many wait in the queue, which holds 60.
fn marked_from(controller: &str, packets: u32) -> String {
    format!(
        "duration = \"3s\"\nseed = 1\n[topology]\nkind = \"dumbbell\"\npairs = 1\nbottleneck_rate = \"20Mbps\"\n\
         bottleneck_delay = \"10ms\"\n[queue]\nkind = \"fifo\"\nlimit = \"60packets\"\nmark_at = \"{packets}packets\"\n\
         [scheme.x]\ncontroller = \"{controller}\"\ntransport = {{ ecn = \"accurate\" }}\n[workload]\nkind = \"bulk\"\n\
         flows = 4\nsize = \"unlimited\"\n"
    )
}

/// `rcp` takes its rate from routers, and a queue that computes rates has its own kind of network. `hpcc` has its telemetry
/// in place of marks.
#[test]
fn marks_change_the_flows_of_exactly_the_controllers_without_that_warning() {
    let all = Registry::built_in();
    for controller in all.all().iter().map(|controller| controller.name).filter(|name| !["hpcc", "rcp"].contains(name))
    {
        let text = marked_from(controller, 1);
        let is_warned = warnings_of(&text).iter().any(|warning| warning.contains("does not react to marks"));
        let is_same = run(&text).flows == run(&marked_from(controller, 60)).flows;
        assert_eq!(is_warned, is_same, "{controller}");
    }
}

/// A flow of `scheme` with 3 MB after 10 s, beside a flow of Prague and one of CUBIC that fill the link: the delays of
/// both from then on, and the bytes that both delivered by 11 s.
fn beside_long_flows(scheme: &str, keys: &str) -> ([Measure; 2], u64) {
    let path = Path { mbps: 100.0, rtt_ms: 40.0 };
    let records = run(&format!(
        "duration = \"11s\"\nseed = 1\nmeasure = {{ delays = true, from = \"10s\" }}\n[topology]\nkind = \"dumbbell\"\n\
         pairs = 3\naccess_rate = \"1Gbps\"\naccess_delay = \"0s\"\nbottleneck_rate = \"100Mbps\"\n\
         bottleneck_delay = \"20ms\"\n[queue]\nkind = \"dualpi2\"\nlimit = \"10000packets\"\n{keys}\n[scheme.l]\n\
         controller = \"prague\"\ntransport = {{ ecn = \"accurate\" }}\n[scheme.c]\ncontroller = \"cubic\"\n[scheme.x]\n\
         {scheme}\ntransport = {{ ecn = \"accurate\" }}\n\
         [[workload]]\nkind = \"bulk\"\nscheme = \"l\"\npairs = [[\"left0\", \"right0\"]]\nsize = \"unlimited\"\n\
         [[workload]]\nkind = \"bulk\"\nscheme = \"c\"\npairs = [[\"left1\", \"right1\"]]\nsize = \"unlimited\"\n\
         [[workload]]\nkind = \"bulk\"\nscheme = \"x\"\npairs = [[\"left2\", \"right2\"]]\nsize = \"3MB\"\nstart = \"10s\"\n"
    ));
    let delivered = records.flows.delivered_bytes[0] + records.flows.delivered_bytes[1];
    (path.measure(&records), delivered)
}

/// RC3's tail of 3 MB arrives at 1 Gb/s. In lower bands it delays no other flow. In the L queue, it is ahead of others.
#[test]
fn lower_bands_keep_the_tail_of_rc3_away_from_both_queues() {
    let ([l, _], delivered) = beside_long_flows("controller = \"prague\"", "");
    let rc3 = "controller = \"rc3\"\ninner = \"prague\"";
    let ([banded_l, _], banded) = beside_long_flows(rc3, "lower_bands = true");
    let ([mixed_l, _], mixed) = beside_long_flows(rc3, "");
    assert!(l.p99_ms < 1.0 && banded_l.p99_ms < 1.0 && mixed_l.p99_ms > 2.0, "{l:?}, {banded_l:?}, {mixed_l:?}");
    assert!(banded as f64 > 0.98 * delivered as f64 && mixed < banded, "{delivered}, {banded}, {mixed}");
}

/// A path of 100 Mb/s and 36 ms.
#[test]
fn on_a_longer_path_prague_and_cubic_share_within_a_factor_of_two() {
    let path = Path { mbps: 100.0, rtt_ms: 36.0 };
    let [l, c] = path.measure(&path.run_beside_cubic("prague", "accurate", "kind = \"dualpi2\""));
    assert!((0.5..2.0).contains(&(l.packets / c.packets)), "{l:?}, {c:?}");
    assert!(l.p99_ms < 1.0, "{l:?}");
    assert!(c.mean_ms < 17.0, "{c:?}");
}
