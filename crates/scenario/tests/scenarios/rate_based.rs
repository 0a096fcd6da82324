//! Rate-based controllers from end to end on dumbbells: utilization, queue, fairness between two flows, and the effect
//! of random loss.

use sparelane_scenario::{Scenario, Source};
use sparelane_sim::Records;
use std::path::Path;

const MS: u64 = 1_000_000_000;

/// A dumbbell of 20 Mb/s and 40 ms, 100 kB in flight, whose queue holds twice that.
const WAN: &str = "[topology]
kind = \"dumbbell\"
pairs = 2
access_rate = \"1Gbps\"
access_delay = \"1ms\"
bottleneck_rate = \"20Mbps\"
bottleneck_delay = \"18ms\"
[queue]
limit = \"2bdp\"
";

/// One per cent of the packets is lost at random.
const LOSS: &str = "[[link]]
between = [\"west\", \"east\"]
loss = 0.01
";

/// Measurements of flows without end and of their bottleneck, after a warm-up.
struct Seen {
    /// Payload that each flow delivered, b/s.
    bps: Vec<f64>,
    /// The queue, bytes, at every sample.
    backlog: Vec<f64>,
    records: Records,
}

impl Seen {
    /// Starts one flow at each of `starts`, and measures between two times, milliseconds.
    fn of(controller: &str, network: &str, starts: &[&str], from_ms: u64, to_ms: u64) -> Seen {
        let before = run(controller, network, starts, from_ms);
        let records = run(controller, network, starts, to_ms);
        let delivered = |flow: usize| records.flows.delivered_bytes[flow] - before.flows.delivered_bytes[flow];
        let bps = (0..starts.len()).map(|flow| delivered(flow) as f64 * 8e3 / (to_ms - from_ms) as f64).collect();
        let series = &records.series;
        let is_seen = |row: &usize| series.quantity[*row] == "backlog_bytes" && series.time_ps[*row] >= from_ms * MS;
        let backlog = (0..series.time_ps.len()).filter(is_seen).map(|row| series.value[row]).collect();
        Seen { bps, backlog, records }
    }

    /// The trace of `quantity` by flow 0 over the whole run, by time in milliseconds.
    fn reported(&self, quantity: &str) -> Vec<(f64, f64)> {
        let series = &self.records.series;
        let is_it = |row: &usize| series.probe[*row] == 0 && series.quantity[*row] == quantity;
        let point = |row: usize| (series.time_ps[row] as f64 / MS as f64, series.value[row]);
        (0..series.time_ps.len()).filter(is_it).map(point).collect()
    }

    fn most_backlog(&self) -> f64 {
        self.backlog.iter().copied().fold(0.0, f64::max)
    }

    fn mean_backlog(&self) -> f64 {
        self.backlog.iter().sum::<f64>() / self.backlog.len() as f64
    }
}

fn run(controller: &str, network: &str, starts: &[&str], duration_ms: u64) -> Records {
    let mut text = format!("duration = \"{duration_ms}ms\"\n{network}[scheme.it]\n{controller}\n");
    for (pair, start) in starts.iter().enumerate() {
        text += &format!(
            "[[workload]]\nkind = \"bulk\"\nscheme = \"it\"\npairs = [[\"left{pair}\", \"right{pair}\"]]\n\
             size = \"unlimited\"\nstart = \"{start}\"\n"
        );
    }
    let flows: Vec<_> = (0..starts.len()).collect();
    text += &format!("[sample]\ninterval = \"{}us\"\nflows = {flows:?}\n", duration_ms.min(1000));
    text += "queues = [[\"west\", \"east\"]]\n";
    let scenario = Scenario::parse(&text, &Source::at(Path::new("x.toml")), &[]).unwrap_or_else(|e| panic!("{e}"));
    scenario.simulate().expect("a run").run().expect("lawful physics")
}

/// A dumbbell of 10 Gb/s and 20 us, whose queue holds 1 MB: 800 us.
const DATACENTRE: &str = "[topology]
kind = \"dumbbell\"
pairs = 8
access_rate = \"10Gbps\"
access_delay = \"1us\"
bottleneck_rate = \"10Gbps\"
bottleneck_delay = \"8us\"
[queue]
limit = \"1MB\"
";

/// The payload rate at 20 Mb/s.
const WAN_BPS: f64 = 20e6 * 1460.0 / 1500.0;
/// The bandwidth-delay product of 20 Mb/s and 40 ms, bytes.
const WAN_BDP: f64 = 100e3;

const BBR: &str = "controller = \"bbr\"";

#[test]
fn bbr_alone_fills_the_link_and_keeps_the_queue_short() {
    let seen = Seen::of(BBR, WAN, &["0s"], 10_000, 40_000);
    assert!(seen.bps[0] > 0.96 * WAN_BPS, "{:?}", seen.bps);
    // A probe of 25 % lasts a round trip; there is no queue for the rest of the time.
    assert!(seen.mean_backlog() < 0.1 * WAN_BDP && seen.most_backlog() < 0.4 * WAN_BDP, "{}", seen.mean_backlog());
    assert_eq!(seen.records.flows.retransmissions, [0]);
}

/// Each flow attributes its own packets to the path, so two bandwidth-delay products are in flight, one of them in the
/// queue.
#[test]
fn two_bbr_flows_share_the_link_with_a_queue_of_a_bandwidth_delay_product() {
    let seen = Seen::of(BBR, WAN, &["0s", "5s"], 15_000, 45_000);
    for bps in &seen.bps {
        assert!((0.35..0.65).contains(&(bps / WAN_BPS)), "{:?}", seen.bps);
    }
    assert!(seen.bps.iter().sum::<f64>() > 0.96 * WAN_BPS, "{:?}", seen.bps);
    assert!((0.6 * WAN_BDP..1.4 * WAN_BDP).contains(&seen.mean_backlog()), "{}", seen.mean_backlog());
}

#[test]
fn bbr_keeps_its_rate_under_random_loss_that_slows_newreno() {
    let lossy = format!("{WAN}{LOSS}");
    let bps = |controller: &str| Seen::of(controller, &lossy, &["0s"], 10_000, 40_000).bps[0];
    assert!(bps(BBR) > 0.93 * WAN_BPS, "{}", bps(BBR));
    assert!(bps("controller = \"newreno\"") < 0.4 * WAN_BPS);
}

#[test]
fn bbr_looks_for_the_delay_every_ten_seconds_with_four_segments_for_200_ms() {
    let seen = Seen::of(BBR, WAN, &["0s"], 1_000, 35_000);
    let window = seen.reported("cwnd_bytes");
    let small: Vec<f64> = window.iter().filter(|(_, bytes)| *bytes <= 4.0 * 1460.0).map(|(at, _)| *at).collect();
    let begins: Vec<f64> =
        (0..small.len()).filter(|&n| n == 0 || small[n] - small[n - 1] > 5.0).map(|n| small[n]).collect();
    assert_eq!(begins.len(), 3, "{begins:?}");
    assert!(begins.windows(2).all(|pair| (10_000.0..10_500.0).contains(&(pair[1] - pair[0]))), "{begins:?}");
    // Until the pipe is empty, 200 ms, and the rest of a round trip.
    assert!((200..300).contains(&(small.len() / 3)), "{} ms", small.len());
}

const TIMELY: &str = "controller = \"timely\"";

#[test]
fn timely_alone_takes_the_line_without_a_queue() {
    let seen = Seen::of(TIMELY, DATACENTRE, &["0s"], 20, 60);
    assert!(seen.bps[0] > 0.99 * 10e9 * 1460.0 / 1500.0, "{:?}", seen.bps);
    assert_eq!((seen.most_backlog(), &seen.records.flows.retransmissions[..]), (0.0, &[0][..]));
}

/// The shares of flows are random (Zhu et al., CoNEXT 2016, section 5), but queues stay near T_low, 30 us above the
/// path's 20 us: 37,500 bytes. Two flows that start at the line rate overload the link twofold, and lose nothing.
#[test]
fn timely_flows_hold_the_queue_near_t_low() {
    let seen = Seen::of("controller = \"timely\"\nstart = 1.0", DATACENTRE, &["0s", "0s"], 20, 120);
    assert!(seen.bps.iter().sum::<f64>() > 0.85 * 10e9 * 1460.0 / 1500.0, "{:?}", seen.bps);
    assert!(seen.bps.iter().all(|&bps| bps > 1e9), "{:?}", seen.bps);
    assert!(seen.most_backlog() < 2.0 * 37_500.0, "{}", seen.most_backlog());
    assert_eq!(seen.records.flows.retransmissions, [0, 0]);
}

const ALLEGRO: &str = "controller = \"pcc-allegro\"";
const VIVACE: &str = "controller = \"pcc-vivace\"";

/// Allegro reacts to loss alone, and hardly to less than 5 %: it uses the whole link and the whole queue.
#[test]
fn allegro_fills_the_link_and_the_queue_with_and_without_random_loss() {
    for network in [WAN.to_owned(), format!("{WAN}{LOSS}")] {
        let seen = Seen::of(ALLEGRO, &network, &["0s"], 20_000, 60_000);
        assert!(seen.bps[0] > 0.96 * WAN_BPS, "{:?}", seen.bps);
        assert!(seen.mean_backlog() > WAN_BDP, "{}", seen.mean_backlog());
        assert_eq!(seen.records.flows.timeouts, [0]);
    }
}

#[test]
fn two_allegro_flows_come_to_share_the_link() {
    let seen = Seen::of(ALLEGRO, WAN, &["0s", "0s"], 60_000, 120_000);
    assert!(seen.bps.iter().all(|bps| (0.35..0.65).contains(&(bps / WAN_BPS))), "{:?}", seen.bps);
    assert!(seen.bps.iter().sum::<f64>() > 0.96 * WAN_BPS, "{:?}", seen.bps);
}

#[test]
fn vivace_fills_the_link_without_a_queue() {
    let seen = Seen::of(VIVACE, WAN, &["0s"], 20_000, 60_000);
    assert!(seen.bps[0] > 0.9 * WAN_BPS, "{:?}", seen.bps);
    assert!(seen.mean_backlog() < 0.05 * WAN_BDP, "{}", seen.mean_backlog());
}

#[test]
fn two_vivace_flows_share_the_link() {
    let seen = Seen::of(VIVACE, WAN, &["0s", "5s"], 20_000, 60_000);
    assert!(seen.bps.iter().all(|bps| (0.3..0.7).contains(&(bps / WAN_BPS))), "{:?}", seen.bps);
    assert!(seen.bps.iter().sum::<f64>() > 0.85 * WAN_BPS, "{:?}", seen.bps);
    assert!(seen.mean_backlog() < WAN_BDP, "{}", seen.mean_backlog());
}

/// A tenth of the packets is lost, including retransmissions: no packet waits for a timeout.
#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    let lossy = format!("{WAN}{}", LOSS.replace("0.01", "0.1"));
    let seen = Seen::of(BBR, &lossy, &["0s"], 1_000, 20_000);
    assert!(seen.records.flows.retransmissions[0] > 1000, "{:?}", seen.records.flows.retransmissions);
    assert_eq!(seen.records.flows.timeouts, [0]);
}

const BBR3: &str = "controller = \"bbr3\"";

#[test]
fn bbr3_alone_fills_the_link_and_keeps_the_queue_short() {
    let seen = Seen::of(BBR3, WAN, &["0s"], 10_000, 50_000);
    assert!(seen.bps[0] > 0.95 * WAN_BPS, "{:?}", seen.bps);
    assert!(seen.mean_backlog() < 0.1 * WAN_BDP, "{}", seen.mean_backlog());
    assert_eq!(seen.records.flows.retransmissions, [0]);
}

/// If the buffer holds a fifth of a bandwidth-delay product, probes overflow it: BBRv1 does not react, BBRv3 does.
#[test]
fn bbr3_loses_much_less_than_bbr_at_a_shallow_buffer_and_shares_as_well() {
    let shallow = WAN.replace("2bdp", "20KB");
    let [one, three] = [BBR, BBR3].map(|controller| Seen::of(controller, &shallow, &["0s", "5s"], 10_000, 50_000));
    let lost = |seen: &Seen| seen.records.flows.retransmissions.iter().sum::<u64>();
    assert!(lost(&three) * 5 < lost(&one), "{} {}", lost(&three), lost(&one));
    assert!(three.bps.iter().sum::<f64>() > 0.95 * WAN_BPS, "{:?}", three.bps);
    assert!(three.bps.iter().all(|bps| (0.35..0.65).contains(&(bps / WAN_BPS))), "{:?}", three.bps);
}

#[test]
fn bbr3_bears_random_loss_below_two_per_cent_and_not_above() {
    let bps = |controller: &str, loss: &str| {
        let lossy = format!("{WAN}{}", LOSS.replace("0.01", loss));
        Seen::of(controller, &lossy, &["0s"], 10_000, 50_000).bps[0] / WAN_BPS
    };
    assert!(bps(BBR3, "0.01") > 0.7, "{}", bps(BBR3, "0.01"));
    assert!(bps(BBR3, "0.04") < 0.4 && bps(BBR, "0.04") > 0.85, "{} {}", bps(BBR3, "0.04"), bps(BBR, "0.04"));
}

#[test]
fn bbr3_halves_the_data_in_flight_every_five_seconds() {
    let seen = Seen::of(BBR3, WAN, &["0s"], 1_000, 21_500);
    // At least half of the payload that 20 Mb/s and 40 ms hold.
    let half = WAN_BPS / 8.0 * 0.04 / 2.0;
    let window = seen.reported("cwnd_bytes");
    let small: Vec<(f64, f64)> =
        window.into_iter().filter(|(at, bytes)| *at > 1_000.0 && *bytes < 1.2 * half).collect();
    assert!(small.iter().all(|(_, bytes)| *bytes > 0.9 * half), "{small:?}");
    let begins: Vec<f64> =
        (0..small.len()).filter(|&n| n == 0 || small[n].0 - small[n - 1].0 > 500.0).map(|n| small[n].0).collect();
    assert_eq!(begins.len(), 4, "{begins:?}");
    assert!(begins.windows(2).all(|pair| (5_000.0..5_500.0).contains(&(pair[1] - pair[0]))), "{begins:?}");
}

const COPA: &str = "controller = \"copa\"";
/// Copa in its default mode. Flows alone would sometimes compete by mistake, as Jiang et al. (Copa+, INFOCOM 2022) report.
const COPA_ALONE: &str = "controller = \"copa\"\nmode_switching = false";

/// With one flow, the queue varies between 0 and 2.5 / delta = 5 packets of 1500 bytes (NSDI 2018, section 3).
#[test]
fn copa_alone_fills_the_link_and_keeps_a_few_packets_in_the_queue() {
    let seen = Seen::of(COPA_ALONE, WAN, &["0s"], 10_000, 40_000);
    assert!(seen.bps[0] > 0.95 * WAN_BPS, "{:?}", seen.bps);
    assert!(seen.mean_backlog() < 5.0 * 1500.0, "{}", seen.mean_backlog());
    assert_eq!(seen.records.flows.retransmissions, [0]);
}

/// The queue of one flow varies between 0 and 2.5 / delta packets (section 3), so its mean lies between.
#[test]
fn copa_holds_packets_in_the_queue_by_the_reciprocal_of_delta() {
    let mut least = 0.0;
    for delta in [0.5, 0.2, 0.1, 0.05] {
        let seen = Seen::of(&format!("{COPA_ALONE}\ndelta = {delta}"), WAN, &["0s"], 10_000, 40_000);
        let packets = seen.mean_backlog() / 1500.0;
        assert!((0.5 / delta..2.5 / delta).contains(&packets), "{packets} packets with a delta of {delta}");
        assert!(packets > 1.5 * least, "{packets} packets with a delta of {delta}, {least} with the one before");
        assert!(seen.bps[0] > 0.95 * WAN_BPS, "{:?}", seen.bps);
        least = packets;
    }
}

/// Four flows let the queue swing between 0 and 20 packets, 5 ms, and empty it about once in five round trips (section
/// 3). Now and then it takes longer. In the default mode, each such time looks like another flow that fills the queue.
#[test]
fn copa_flows_alone_sometimes_need_more_than_five_round_trips_to_empty_the_queue() {
    let network = "[topology]\nkind = \"dumbbell\"\npairs = 4\naccess_rate = \"1Gbps\"\naccess_delay = \"0s\"\n\
                   bottleneck_rate = \"48Mbps\"\nbottleneck_delay = \"25ms\"\n[queue]\nlimit = \"2bdp\"\n";
    let records = run(COPA_ALONE, network, &["0s", "1s", "2s", "3s"], 60_000);
    let seen = Seen { bps: Vec::new(), backlog: Vec::new(), records };
    let delays: Vec<_> = seen.reported("queuing_s").into_iter().filter(|(ms, _)| *ms > 10_000.0).collect();
    let most_ms = delays.iter().map(|(_, queuing_s)| queuing_s * 1e3).fold(0.0, f64::max);
    assert!((4.0..6.0).contains(&most_ms), "{most_ms}");
    // The round-trip time is at most 55 ms. Samples are a millisecond apart.
    let (rtt_ms, window) = (55.0, 220);
    let mut empty_ms = Vec::new();
    for end in window..delays.len() {
        let most = delays[end - window..=end].iter().map(|(_, queuing_s)| *queuing_s).fold(0.0, f64::max);
        if delays[end].1 < 0.1 * most {
            empty_ms.push(delays[end].0);
        }
    }
    let gaps: Vec<_> = empty_ms.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 2.0).collect();
    let long = gaps.iter().filter(|gap| **gap > 5.0 * rtt_ms).count();
    assert!(gaps.len() > 100 && long > 0 && long * 5 < gaps.len(), "{long} of {}", gaps.len());
}

/// NewReno fills the queue. Copa gets its share in the competitive mode only.
#[test]
fn copa_competes_with_newreno_only_in_its_competitive_mode() {
    let share_of_newreno = |copa: &str| {
        let reno = format!(
            "{WAN}[scheme.reno]\ncontroller = \"newreno\"\n[[workload]]\nkind = \"bulk\"\nscheme = \"reno\"\n\
             pairs = [[\"left1\", \"right1\"]]\nsize = \"unlimited\"\n"
        );
        // The workload of NewReno comes first, and its flow is flow 0.
        Seen::of(copa, &reno, &["0s"], 20_000, 120_000).bps[0] / WAN_BPS
    };
    let (switching, constant) = (share_of_newreno(COPA), share_of_newreno(COPA_ALONE));
    assert!((0.3..0.7).contains(&switching) && constant > 0.9, "{switching}, {constant}");
}

const SWIFT: &str = "controller = \"swift\"\nbase_target = \"60us\"";

#[test]
fn swift_alone_takes_the_line_with_a_queue_below_its_target() {
    let seen = Seen::of(SWIFT, DATACENTRE, &["0s"], 20, 60);
    assert!(seen.bps[0] > 0.98 * 10e9 * 1460.0 / 1500.0, "{:?}", seen.bps);
    // The target of 66 us is 46 us above the empty path: 57,500 bytes.
    assert!(seen.most_backlog() < 1.5 * 57_500.0, "{}", seen.most_backlog());
    assert_eq!(seen.records.flows.retransmissions, [0]);
}

/// A flow's round-trip time settles at its target: 3 us for the router of the path, and 60 or 120 us. The empty path
/// takes 20 us.
#[test]
fn swift_holds_the_delay_at_its_target() {
    for target_us in [60.0, 120.0] {
        let swift = format!("controller = \"swift\"\nbase_target = \"{target_us}us\"\nflow_scaling_range = \"0s\"");
        let seen = Seen::of(&swift, DATACENTRE, &["0s"; 4], 50, 150);
        let queueing_us = seen.mean_backlog() * 8.0 / 10e9 * 1e6;
        let aim_us = target_us + 3.0 * 2.0 - 20.0;
        assert!((0.6 * aim_us..1.1 * aim_us).contains(&queueing_us), "{queueing_us} us beside {aim_us} us");
    }
}

#[test]
fn swift_flows_share_the_link() {
    let seen = Seen::of(SWIFT, DATACENTRE, &["0s"; 4], 50, 150);
    let total: f64 = seen.bps.iter().sum();
    assert!(total > 0.97 * 10e9 * 1460.0 / 1500.0, "{:?}", seen.bps);
    assert!(seen.bps.iter().all(|bps| (0.2..0.3).contains(&(bps / total))), "{:?}", seen.bps);
}

/// Runs 1000 flows of Swift to one host for 100 ms. Returns the retransmissions of the second half, the share of the
/// line that it used, and the smallest final window in bytes.
fn incast(min_window: &str) -> (u64, f64, f64) {
    let text = |ms: u64| {
        format!(
            "duration = \"{ms}ms\"\n[topology]\nkind = \"star\"\nhosts = 1001\nrate = \"10Gbps\"\ndelay = \"5us\"\n\
             [queue]\nlimit = \"1MB\"\n[transport]\nmin_rto = \"1ms\"\n[scheme.it]\ncontroller = \"swift\"\n\
             min_window = {min_window}\n[[workload]]\nkind = \"bulk\"\npairs = \"incast\"\nsize = \"unlimited\"\n\
             [sample]\ninterval = \"1ms\"\nflows = [0, 1, 2, 3]\n"
        )
    };
    let run = |ms| {
        let scenario =
            Scenario::parse(&text(ms), &Source::at(Path::new("x.toml")), &[]).unwrap_or_else(|e| panic!("{e}"));
        scenario.simulate().expect("a run").run().expect("lawful physics")
    };
    let (before, after) = (run(50), run(100));
    let sum = |values: &[u64]| values.iter().sum::<u64>();
    let delivered = sum(&after.flows.delivered_bytes) - sum(&before.flows.delivered_bytes);
    let series = &after.series;
    let windows =
        (0..series.value.len()).filter(|&row| series.quantity[row] == "cwnd_bytes").map(|row| series.value[row]);
    let lost = sum(&after.flows.retransmissions) - sum(&before.flows.retransmissions);
    (lost, delivered as f64 * 8.0 / 0.05 / (10e9 * 1460.0 / 1500.0), windows.fold(f64::INFINITY, f64::min))
}

/// A thousand windows of one segment are 1.5 MB, more than queue and path hold. Windows below one segment fit.
#[test]
fn swift_survives_an_incast_of_a_thousand_flows_by_windows_below_one_segment() {
    let (lost, used, least_window) = incast("0.001");
    assert!(least_window < 0.5 * 1460.0, "{least_window}");
    assert!(lost == 0 && used > 0.9, "{lost} lost, {used} of the line");
    let (lost, ..) = incast("1");
    assert!(lost > 1000, "{lost}");
}
