//! Warnings about priority classes: several classes in queues that treat all alike, and settings for classes that
//! nothing uses.

use super::{Facts, each_queue_table, idle};
use sparelane_catalogue::queue::kind_of;
use sparelane_catalogue::schema::nodes::listed;
use sparelane_catalogue::schema::{Kind, ScenarioError, Warnings};
use sparelane_sim::{Discipline, NodeKind, QueueSpec, Scheme};
use std::collections::BTreeSet;

pub(super) fn check(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let used = classes(facts, facts.used());
    if let (Some(highest), Some(&lowest)) = (used.first(), used.last())
        && *highest < lowest
    {
        mixed(facts, lowest, warnings);
    }
    // A scheme without flows may be declared for workloads to choose, and would share its queues with the others.
    let declared = classes(facts, facts.schemes.all.iter().enumerate());
    let (Some(&highest), Some(&lowest)) = (declared.first(), declared.last()) else { return Ok(()) };
    if highest == lowest {
        alone(facts, highest, warnings)?;
    }
    if lowest == 0 {
        each_queue_table(facts, |section| {
            if section.own("low_priority").is_some() {
                idle(section, "low_priority", "no packet is below class 0", warnings);
            }
        })?;
    }
    Ok(())
}

/// The classes of the packets of these schemes and of cross traffic.
fn classes<'s>(facts: &Facts<'_>, schemes: impl Iterator<Item = (usize, &'s Scheme)>) -> BTreeSet<u8> {
    let of_flows = schemes.flat_map(|(place, scheme)| scheme.class..=facts.schemes.lowest_class[place]);
    of_flows.chain(facts.cross_traffic.iter().map(|source| source.class)).collect()
}

/// Returns true if a queue serves packets of all classes alike.
fn is_blind(queue: &QueueSpec) -> bool {
    !queue.bars_low_priority
        && match &queue.discipline {
            Discipline::Fifo => true,
            Discipline::Priority => false,
            Discipline::Active(law) => !law.separates_classes(),
        }
}

/// Warns about routers that do not separate the classes.
fn mixed(facts: &Facts<'_>, lowest: u8, warnings: &Warnings) {
    let (mut routers, mut blind, mut kinds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (number, cable) in facts.network.cables.iter().enumerate() {
        for end in [cable.a, cable.b] {
            if facts.network.nodes[end.index()].kind == NodeKind::Router {
                let queue = facts.queue_at(number, end);
                routers.insert(end);
                if is_blind(queue) {
                    blind.insert(end);
                    kinds.insert(kind_of(&queue.discipline));
                }
            }
        }
    }
    if blind.is_empty() {
        return;
    }
    let names = || blind.iter().map(|end| facts.network.nodes[end.index()].name.as_str());
    let place = match blind.len() {
        all if all == routers.len() => "all routers".to_owned(),
        some => format!("{some} of {} routers ({})", routers.len(), listed(names())),
    };
    let senders = facts.used().filter(|(place, _)| facts.schemes.lowest_class[*place] > 0);
    let senders = senders.map(|(_, scheme)| format!("scheme {}", scheme.name)).collect::<Vec<_>>();
    let who = match &senders[..] {
        [] => "cross traffic sends".to_owned(),
        [one] => format!("{one} sends"),
        several => format!("{} send", several.join(", ")),
    };
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
    let remedy = if kinds == "dualpi2" { "queue.lower_bands = true" } else { "queue.kind = \"priority\"" };
    warnings.add(format!(
        "{who} in priority classes down to {lowest}, but the queues of {place} treat all classes alike ({kinds}), so that \
         low-priority packets delay and displace others; {remedy} separates the classes"
    ));
}

/// Warns about settings for several classes if all packets have the same class.
fn alone(facts: &Facts<'_>, class: u8, warnings: &Warnings) -> Result<(), ScenarioError> {
    let reason = format!("all packets are in class {class}");
    each_queue_table(facts, |section| {
        // The table [nic] has no such key.
        if section.whole_table().path != "nic" {
            idle(section, "push_out", &reason, warnings);
        }
        idle(section, "lower_bands", &reason, warnings);
        if let Some(kind) = section.own("kind").filter(|kind| kind.is_text("priority")) {
            warnings.add(format!("{} = \"priority\" serves packets like a fifo here: {reason}", kind.path));
        }
    })?;
    let by_class = |queue: &QueueSpec| match &queue.discipline {
        Discipline::Active(law) => law.separates_classes(),
        Discipline::Fifo | Discipline::Priority => queue.bars_low_priority,
    };
    if class == 0 || facts.router_queues().chain([&facts.queues.nic]).any(by_class) {
        return Ok(());
    }
    let schemes = facts.root.need("scheme")?;
    let named = schemes.named()?;
    for (_, table) in &named {
        if let Ok(field) = table.entry("class", Kind::TABLE) {
            warnings.add(format!("{} = {} gives no priority: {reason}", field.path, field.item()));
        }
    }
    for table in facts.root.need("cross_traffic")?.tables()? {
        if let Ok(field) = table.entry("class", Kind::TABLE) {
            warnings.add(format!("{} = {} gives no priority: {reason}", field.path, field.item()));
        }
    }
    Ok(())
}
