//! Warnings about tables and keys without effect because later or more specific tables override them.

use super::{Facts, idle};
use crate::effects;
use crate::host::{HOST, HOST_AT};
use crate::links::{self, LINK};
use crate::queue_at::QUEUE_AT;
use crate::queues::{NIC_QUEUE, QUEUE_KEYS, ROUTER_QUEUE};
use sparelane_catalogue::schema::{Field, Key, Kind, ScenarioError, Section, Warnings};
use sparelane_sim::{Discipline, NodeId, NodeKind};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    cables(facts, warnings)?;
    limits(facts, warnings)?;
    queues(facts, warnings)?;
    hosts(facts, warnings)
}

/// Rates, delays and losses of `[[link]]`.
fn cables(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let field = facts.root.need("link")?;
    let tables = field.tables()?;
    for (place, key) in links::overridden(&tables, facts.network)? {
        let section = tables[place].clone().section(LINK)?;
        idle(&section, key, &format!("a later [[link]] sets the {key} of each of its cables"), warnings);
    }
    for table in tables {
        let section = table.section(LINK)?;
        let is_lossless = section.maybe("loss", Field::share)?.is_some_and(|loss| loss <= 0.0);
        for key in ["loss_of", "loss_from"].into_iter().filter(|_| is_lossless) {
            idle(&section, key, "loss is 0", warnings);
        }
        for (key, reason) in effects::idle_details(&section) {
            idle(&section, key, &reason, warnings);
        }
    }
    Ok(())
}

/// Limits of `[[link]]`, `[queue]` and `[nic]`.
fn limits(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let mut used = BTreeSet::new();
    let (mut of_queue, mut of_nic) = (false, false);
    for (number, cable) in facts.network.cables.iter().enumerate() {
        for end in [cable.a, cable.b] {
            let is_host = facts.network.nodes[end.index()].kind == NodeKind::Host;
            let table = facts.ports.decided.get(&(number, end)).map(|&place| &facts.differing[place]);
            if table.is_some_and(|table| table.has_limit()) {
                continue;
            }
            match (cable.limit, facts.limits[number]) {
                (Some(_), Some(place)) => _ = used.insert(place),
                (Some(_), None) => {}
                (None, _) if is_host => of_nic = true,
                (None, _) => of_queue = true,
            }
        }
    }
    let field = facts.root.need("link")?;
    for (place, table) in field.tables()?.into_iter().enumerate() {
        if !used.contains(&place) {
            let reason = "a later [[link]] or a [[queue_at]] sets the limit of each of its queues";
            idle(&table.section(LINK)?, "limit", reason, warnings);
        }
    }
    let laws = facts.kinds.all_keys();
    let reason = "[[link]], [[queue_at]] or the topology set the limit of each queue";
    if !of_queue {
        idle(&facts.root.need("queue")?.section(&[ROUTER_QUEUE, &laws])?, "limit", reason, warnings);
    }
    if !of_nic {
        idle(&facts.root.need("nic")?.section(&[NIC_QUEUE, &laws])?, "limit", reason, warnings);
    }
    Ok(())
}

/// `[[queue_at]]` tables, and keys of `[queue]` that none of them inherits.
fn queues(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let laws = facts.kinds.all_keys();
    let field = facts.root.need("queue_at")?;
    let deciding = facts.ports.deciding();
    let mut rows = Vec::new();
    for (place, table) in field.tables()?.into_iter().enumerate() {
        let section = table.section(&[QUEUE_AT, QUEUE_KEYS, &laws])?;
        if deciding.contains(&place) {
            rows.push((place, section));
        } else if facts.differing[place].names_any() {
            let reason = "later [[queue_at]] tables decide on each of its queues";
            warnings.add(section.whole_table().without_effect(reason));
        }
    }
    if facts.ports.has_usual() || rows.is_empty() {
        return Ok(());
    }
    let table = facts.root.need("queue")?.section(&[ROUTER_QUEUE, &laws])?;
    let is_inherited = |key: &Key| {
        rows.iter().any(|(place, row)| row.own(key.name).is_none() && facts.inherits(*place, key.name, &laws))
    };
    for key in ROUTER_QUEUE.iter().chain(&laws).filter(|key| !["limit", "rcp"].contains(&key.name)) {
        if !is_inherited(key) {
            idle(&table, key.name, "[[queue_at]] sets it for each queue", warnings);
        }
    }
    Ok(())
}

impl Facts<'_> {
    /// Returns true if a `[[queue_at]]` that does not give a key takes it from `[queue]`.
    fn inherits(&self, place: usize, key: &str, laws: &[Key]) -> bool {
        let queue = self.differing[place].queue();
        let is_plain = matches!(queue.discipline, Discipline::Fifo | Discipline::Priority);
        match key {
            "kind" | "low_priority" => true,
            "mark_at" | "room" | "telemetry" => is_plain,
            "push_out" => queue.discipline == Discipline::Priority,
            law if laws.iter().any(|key| key.name == law) => {
                sparelane_catalogue::queue::kind_of(&queue.discipline)
                    == sparelane_catalogue::queue::kind_of(&self.queues.router.discipline)
            }
            _ => true,
        }
    }
}

/// `[[host_at]]` tables, and keys of `[host]` that they give for every host.
fn hosts(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let field = facts.root.need("host_at")?;
    let sections = field.tables()?.into_iter().map(|table| table.section(&[HOST_AT, HOST]));
    let sections = sections.collect::<Result<Vec<Section<'_>>, _>>()?;
    let mut deciding: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (place, section) in sections.iter().enumerate() {
        let list = section.need("hosts")?;
        for name in list.list(Kind::Node)? {
            deciding.extend(facts.network.find(name.text()?).map(|host| (host, place)));
        }
    }
    let rows: BTreeSet<usize> = deciding.values().copied().collect();
    for (_, section) in sections.iter().enumerate().filter(|(place, _)| !rows.contains(place)) {
        warnings.add(section.whole_table().without_effect("later [[host_at]] tables decide on each of its hosts"));
    }
    if !rows.is_empty() && deciding.len() == facts.network.hosts().len() {
        let host = facts.root.need("host")?.section(&[HOST])?;
        for key in HOST.iter().filter(|key| rows.iter().all(|&row| sections[row].own(key.name).is_some())) {
            idle(&host, key.name, "[[host_at]] sets it for every host", warnings);
        }
    }
    Ok(())
}
