//! The wire defaults of controllers that were designed for other networks, in virtual time.

use sparelane_cc::Registry;
use sparelane_core::{Dur, Rate, Time};
use sparelane_net::node::{ControllerChoice, NodeConfig, NodeEvent};
use sparelane_net::virt::{Path, Virtual};

/// Returns the seconds for a flow of `bytes` at 100 Mb/s and 40 ms between hosts whose timers are late by up to
/// `lateness`.
fn seconds(controller: &str, settings: &[(&str, &str)], line_rate: Rate, lateness: Dur, bytes: usize) -> f64 {
    let settings: Vec<_> = settings.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let controller = ControllerChoice::parse(controller, &settings, &Registry::built_in()).expect("settings that fit");
    let config = NodeConfig { controller, line_rate, ..NodeConfig::default() };
    let mut net = Virtual::new(Path { lateness, ..Path::default() }, config, 1).expect("settings that fit");
    let association = net.connect().expect("a peer");
    let limit = Time::ZERO + Dur::from_secs(300);
    while !matches!(net.next_event(limit), Some((0, NodeEvent::Opened { .. }))) {}
    let began = net.now();
    let flow = net.node(0).open_flow(began, association, Some(bytes as u64)).expect("a flow");
    net.node(0).write(flow, vec![7; bytes].into());
    net.node(0).finish(flow);
    while let Some((_, event)) = net.next_event(limit) {
        if let NodeEvent::Readable(flow) = event {
            while net.node(1).read(flow).is_some() {}
            if net.node(1).is_read(flow) {
                break;
            }
        }
    }
    (net.now() - began).as_secs_f64()
}

const GIGABIT: Rate = Rate::from_gbps(1);

#[test]
fn rapid_ends_within_about_a_second_and_with_the_papers_start_after_seven() {
    for lateness in [Dur::ZERO, Dur::from_ms(5)] {
        let wire = seconds("rapid", &[], GIGABIT, lateness, 3_000_000);
        assert!(wire < 1.2, "{wire} s with timers that are late by up to {lateness:?}");
    }
    let paper = [("initial_rate", "100kbps"), ("most_lateness", "1ms")];
    let as_printed = seconds("rapid", &paper, GIGABIT, Dur::ZERO, 3_000_000);
    assert!((7.0..9.0).contains(&as_printed), "{as_printed} s: 64 packets at 100 kb/s, and then all the rest");
}

#[test]
fn late_timers_keep_rapid_slow_with_the_papers_lateness() {
    let strict = [("most_lateness", "1ms")];
    let cut_short = seconds("rapid", &strict, GIGABIT, Dur::from_ms(5), 3_000_000);
    assert!(cut_short > 5.0, "{cut_short} s: without whole p-streams the rate stays where it began");
}

#[test]
fn rtcp_sends_5_mb_within_a_second_and_with_datacentre_settings_in_over_a_minute() {
    let datacentre = [("delta", "10000"), ("x_max", "2"), ("min_window", "1")];
    let long = seconds("rtcp", &datacentre, GIGABIT, Dur::ZERO, 5_000_000);
    assert!(long > 60.0, "{long} s: one segment in each round trip");
    let unknown = seconds("rtcp", &[], GIGABIT, Dur::ZERO, 5_000_000);
    assert!(unknown < 20.0, "{unknown} s: losses of the first round trips are repaired ten segments in each");
    let known = seconds("rtcp", &[], Rate::from_mbps(100), Dur::ZERO, 5_000_000);
    assert!(known < 1.0, "{known} s");
}
