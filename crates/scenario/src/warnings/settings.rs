//! Warnings about settings of transport, queues and hosts that depend on another setting, which is off.

use super::{Facts, each_queue_table, idle};
use crate::emulate::EMULATE;
use crate::host::{HOST, HOST_AT};
use crate::rcp_rates::wants_rate;
use crate::scenario::SCENARIO;
use crate::transport::TRANSPORT;
use sparelane_catalogue::schema::{Field, Kind, ScenarioError, Section, Warnings};
use sparelane_sim::{Limit, Scheme};
use sparelane_transport::Ecn;
use std::collections::BTreeSet;

pub(super) fn check(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    transport(facts, warnings)?;
    scalable_schemes(facts, warnings);
    marking(facts, warnings)?;
    dual_queues(facts, warnings)?;
    selectors(facts, warnings)?;
    rates(facts, warnings)?;
    hosts(facts, warnings)?;
    buckets(facts, warnings)?;
    byte_limits(facts, warnings)?;
    reordering(facts, warnings)?;
    // A connected network with one cable fewer than nodes is a tree.
    if facts.network.cables.len() + 1 == facts.network.nodes.len() {
        let root = facts.root.whole_table().clone().section(&[SCENARIO])?;
        idle(&root, "routing", "there is one path between any two nodes", warnings);
    }
    let emulate = facts.root.need("emulate")?.section(&[EMULATE])?;
    for key in ["classes", "delay_error"] {
        idle(&emulate, key, "sparelane emulate alone uses it", warnings);
    }
    Ok(())
}

/// Schemes that take packets for lost that others have overtaken, although packets are sprayed.
fn reordering(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    if !facts.routing.is_spray() {
        return Ok(());
    }
    let root = facts.root.whole_table().clone().section(&[SCENARIO])?;
    let field = root.need("routing")?;
    let routing = field.choice()?;
    let goes_back = |scheme: &Scheme| scheme.transport.goes_back();
    for (_, scheme) in facts.used().filter(|(_, scheme)| goes_back(scheme)) {
        warnings.add(format!(
            "{} = \"{routing}\" lets packets overtake each other, and the receivers of scheme {} drop overtaken packets, which \
             are all sent again; rdma_recovery = \"selective\" in [transport] keeps them",
            field.path, scheme.name
        ));
    }
    let tolerates = |scheme: &Scheme| scheme.transport.rack_tlp || scheme.transport.adaptive_reordering;
    for (_, scheme) in facts.used().filter(|(_, scheme)| !tolerates(scheme) && !goes_back(scheme)) {
        warnings.add(format!(
            "{} = \"{routing}\" lets packets overtake each other, and scheme {} takes a segment for lost after three later \
             arrivals: it retransmits and reduces its window without loss; rack_tlp or adaptive_reordering of \
             [transport] tolerate reordering",
            field.path, scheme.name
        ));
    }
    Ok(())
}

/// The reason for a transport setting having no effect for a scheme, if it has none.
fn without_use(facts: &Facts<'_>, scheme: &Scheme, key: &str) -> Option<&'static str> {
    let config = &scheme.transport;
    let controller = scheme.any_controller().ok();
    let needs = controller.as_ref().map(|cc| cc.needs()).unwrap_or_default();
    let is_scheduled = controller.as_ref().is_some_and(|cc| cc.schedules_departures());
    let is_own_clock = is_scheduled || controller.as_ref().is_some_and(|cc| cc.owns_send_clock());
    let has_threshold = controller.as_ref().is_none_or(|cc| cc.slow_start_threshold().is_some());
    let is_paced = controller.is_none_or(|cc| cc.paces());
    match key {
        "rdma_recovery" if config.handshake => Some("mode is \"tcp\""),
        "syn_timeout" | "rtt_from_handshake" | "syn_loss_resets_window" if !config.handshake => {
            Some("connections of mode = \"rdma\" have no handshake")
        }
        "sack"
        | "limited_transmit"
        | "prr"
        | "rack_tlp"
        | "rack_timer_delay"
        | "detect_lost_retransmissions"
        | "adaptive_reordering"
        | "sack_survives_timeout"
            if config.goes_back() =>
        {
            Some("losses are repaired by go-back-N")
        }
        "rack_timer_delay" if !config.rack_tlp => Some("rack_tlp is off"),
        "limited_transmit" if config.rack_tlp => Some("rack_tlp finds losses by time"),
        "detect_lost_retransmissions" if config.rack_tlp => Some("rack_tlp finds them"),
        "detect_lost_retransmissions" if needs.segments => {
            Some("the controller hears of every segment, which finds them")
        }
        "cached_ssthresh" if !has_threshold => Some("the controller has no slow-start threshold"),
        "sack_survives_timeout" if !config.sack => Some("sack is off"),
        "resent_rtt_tick" if !config.timestamps => Some("timestamps is off"),
        "receive_batch_timeout" if config.receive_batch <= 1 => Some("receive_batch is 1"),
        "pacing_catch_up" if !is_paced => Some("the controller does not pace"),
        "pacing_catch_up" if is_own_clock => Some("the controller has a send clock of its own"),
        "send_batch" if is_scheduled => Some("the controller schedules each segment"),
        "ecn" if !facts.any_queue_marks() => Some("no queue marks packets"),
        "peer_ecn" | "ecn_option" if config.ecn != Ecn::Accurate => Some("ecn is not \"accurate\""),
        "peer_ecn" | "ecn_option" if !facts.any_queue_marks() => Some("no queue marks packets"),
        "ecn_option" if config.peer_ecn != Ecn::Accurate => Some("the receiver does not support accurate ECN"),
        _ => None,
    }
}

/// `[transport]`, and the transport of each scheme.
fn transport(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let field = facts.root.need("scheme")?;
    let named = field.named()?;
    let mut tables = Vec::new();
    for ((_, table), scheme) in named.iter().zip(&facts.schemes.all) {
        let own = table.entry("transport", Kind::TABLE).ok().map(|table| table.section(&[TRANSPORT])).transpose()?;
        tables.push((scheme, own));
    }
    let overrides = |own: &Option<Section<'_>>, key: &str| {
        own.as_ref().is_some_and(|own| own.own(key).is_some() || own.own("preset").is_some())
    };
    let used: BTreeSet<usize> = facts.used().map(|(place, _)| place).collect();
    let all = facts.root.need("transport")?.section(&[TRANSPORT])?;
    for key in TRANSPORT {
        let mut inherit = tables.iter().filter(|(_, own)| !overrides(own, key.name)).peekable();
        if inherit.peek().is_none() {
            idle(&all, key.name, "each scheme has its own", warnings);
        } else {
            let reasons: Option<Vec<_>> = inherit.map(|(scheme, _)| without_use(facts, scheme, key.name)).collect();
            if let Some(reason) = reasons.as_ref().and_then(|reasons| reasons.first()) {
                idle(&all, key.name, reason, warnings);
            }
        }
        for (place, (scheme, own)) in tables.iter().enumerate() {
            if let (Some(own), true, Some(reason)) = (own, used.contains(&place), without_use(facts, scheme, key.name))
            {
                idle(own, key.name, reason, warnings);
            }
        }
    }
    Ok(())
}

/// Queues that mark while no flow is ECN-capable.
fn marking(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let is_capable = facts.schemes.all.iter().any(|scheme| scheme.transport.ecn != Ecn::Off);
    each_queue_table(facts, |section| {
        let marks = section.own("ecn").is_some_and(|field| field.flag() == Ok(true));
        let reason = "no scheme is ECN-capable; transport.ecn makes one so";
        if !is_capable {
            idle(section, "mark_at", reason, warnings);
            if marks {
                idle(section, "ecn", reason, warnings);
            }
            idle(section, "mark_ecn_threshold", reason, warnings);
            idle(section, "ce_threshold", reason, warnings);
        } else if section.given("ecn").is_none_or(|field| field.flag() == Ok(false)) {
            idle(section, "mark_ecn_threshold", "ecn is off in this queue", warnings);
        }
    })
}

/// Returns true if the packets of a scheme are ECT(1).
fn sends_ect_1(scheme: &Scheme) -> bool {
    match (scheme.transport.ecn, scheme.transport.peer_ecn) {
        (Ecn::L4s, _) => true,
        (Ecn::Accurate, Ecn::Accurate) => scheme.any_controller().is_ok_and(|cc| cc.needs().scalable),
        _ => false,
    }
}

/// Schemes whose ECN does not suit their controller.
fn scalable_schemes(facts: &Facts<'_>, warnings: &Warnings) {
    for (_, scheme) in facts.used() {
        let made = scheme.any_controller();
        let needs = made.as_ref().map(|cc| cc.needs()).unwrap_or_default();
        let (name, controller) = (&scheme.name, scheme.controller.name);
        // Telemetry keeps queues short without marks. In a lossless network, such packets may still be ECN-capable so that
        // queues treat them as those of others.
        let ignores_marks = made.as_ref().is_ok_and(|cc| !cc.reacts_to_marks()) && !needs.telemetry;
        if ignores_marks && !matches!(scheme.transport.ecn, Ecn::Off | Ecn::L4s) {
            warnings.add(format!(
                "scheme.{name}: transport.ecn makes packets ECN-capable, but \"{controller}\" does not react to marks, so a \
                 queue that marks cannot slow it; transport.ecn = \"off\" lets queues drop its packets instead"
            ));
        }
        let is_scalable = needs.scalable || needs.exact_marks;
        if scheme.transport.ecn == Ecn::L4s && !is_scalable {
            warnings.add(format!(
                "scheme.{name}: transport.ecn = \"l4s\" sends ECT(1), which RFC 9331 reserves for controllers that react to \
                 the share of marks; \"{controller}\" does not, so it can fill the L queue"
            ));
        }
        if needs.scalable && !scheme.transport.ecn.reports_every_mark() {
            let lacks = "without reports of every mark, it reacts to marks as to losses";
            warnings.add(format!("scheme.{name}: {lacks}; transport.ecn = \"accurate\" reports them"));
        } else if scheme.transport.ecn == Ecn::Accurate && scheme.transport.peer_ecn != Ecn::Accurate {
            let peer = if scheme.transport.peer_ecn == Ecn::Off { "without ECN" } else { "with classic ECN" };
            warnings.add(format!(
                "scheme.{name}: transport.ecn = \"accurate\" is not negotiated, because peer_ecn names a receiver {peer}"
            ));
        }
    }
}

/// Selectors of packets with ECT(1) where no packet can be selected.
fn selectors(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let is_scalable = facts.schemes.all.iter().any(sends_ect_1);
    each_queue_table(facts, |section| {
        if section.given("ce_threshold").is_none() {
            idle(section, "ce_threshold_selector", "ce_threshold is not given", warnings);
        } else if section.given("ce_threshold_selector").is_some_and(|field| field.is_text("ect-1")) && !is_scalable {
            idle(section, "ce_threshold", "no scheme sends ECT(1); transport.ecn = \"l4s\" lets one", warnings);
        }
    })
}

/// Coupled dual queues without traffic of low latency, and their settings that others replace.
fn dual_queues(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let is_scalable = facts.schemes.all.iter().any(sends_ect_1);
    each_queue_table(facts, |section| {
        if let (Some(kind), false) = (section.own("kind").filter(|kind| kind.is_text("dualpi2")), is_scalable) {
            let remark = "no scheme sends ECT(1), so none can use the L queue; transport.ecn = \"l4s\" lets one use it";
            warnings.add(format!("{} = \"dualpi2\": {remark}", kind.path));
        }
        let shifts = section.given("scheduler").is_some_and(|field| field.is_text("ts-fifo"));
        let (name, reason) = match shifts {
            true => ("classic_weight", "scheduler is ts-fifo"),
            false => ("t_shift", "scheduler is wrr"),
        };
        idle(section, name, reason, warnings);
        if section.given("alpha").is_some() && section.given("beta").is_some() {
            idle(section, "rtt_max", "alpha and beta are given", warnings);
        }
    })
}

/// Rates for RCP that no scheme requests.
fn rates(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    if facts.schemes.all.iter().any(wants_rate) {
        return Ok(());
    }
    for name in ["queue", "nic"] {
        if let Ok(table) = facts.root.need(name)?.entry("rcp", Kind::TABLE) {
            warnings.add(table.without_effect("no scheme asks for a rate"));
        }
    }
    Ok(())
}

/// Settings about limits in bytes, if all limits of routers are in packets and they share no memory.
fn byte_limits(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let queues = facts.differing.iter().map(|differing| differing.queue()).chain([&facts.queues.router]);
    let limits = queues.map(|queue| queue.limit).chain(facts.network.cables.iter().filter_map(|cable| cable.limit));
    let counts_bytes = limits.into_iter().any(|limit| matches!(limit, Limit::Bytes(_)));
    if counts_bytes || facts.root.given("switch").is_some() {
        return Ok(());
    }
    each_queue_table(facts, |section| {
        if section.whole_table().path != "nic" {
            idle(section, "cell", "limits are in packets", warnings);
            idle(section, "room", "limits are in packets", warnings);
        }
    })
}

/// Token buckets that never delay a packet, because packets arrive one by one and no faster than tokens.
fn buckets(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let field = facts.root.need("cross_traffic")?;
    for table in field.tables()? {
        let varies = |key: &str, even: &[&str]| {
            table.entry(key, Kind::TABLE).is_ok_and(|field| !even.contains(&field.item().to_string().as_str()))
        };
        let is_constant = table.entry("kind", Kind::TABLE).is_ok_and(|kind| kind.is_text("constant"));
        let is_uneven = varies("burst", &["1"]) || varies("jitter", &["0", "0.0"]);
        if let (Ok(bucket), true, false) = (table.entry("bucket", Kind::TABLE), is_constant, is_uneven) {
            warnings.add(bucket.without_effect("packets at even intervals never wait for a token"));
        }
    }
    Ok(())
}

/// Clocks and timers of hosts that no controller uses.
fn hosts(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let controllers: Vec<_> = facts.schemes.all.iter().filter_map(|scheme| scheme.any_controller().ok()).collect();
    let reads_clocks = controllers.iter().any(|cc| cc.needs().one_way_delay || cc.needs().receive_time);
    let is_paced = controllers.iter().any(|cc| cc.paces());
    let stamps = reads_clocks || facts.root.given("packets").is_some();
    let check = |section: &Section<'_>| {
        if !stamps {
            let reason = "no controller uses receive times or one-way delays";
            idle(section, "timestamp_at", reason, warnings);
            idle(section, "timestamp_clock", reason, warnings);
        }
        if !is_paced {
            idle(section, "timer_error", "no controller paces", warnings);
        }
    };
    check(&facts.root.need("host")?.section(&[HOST])?);
    let field = facts.root.need("host_at")?;
    field.tables()?.into_iter().try_for_each(|table: Field<'_>| {
        check(&table.section(&[HOST_AT, HOST])?);
        Ok(())
    })
}
