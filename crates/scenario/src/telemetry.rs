//! `telemetry` of `[queue]`: the records that routers write into the packets of HPCC.
//!
//! A controller that relies on telemetry does not see a link whose queue writes none, and fills it. A warning names such
//! queues. If no router writes telemetry, the scenario is refused.

use crate::warnings::{Facts, each_queue_table, idle};
use sparelane_catalogue::queue::kind_of;
use sparelane_catalogue::schema::{ScenarioError, Warnings};
use sparelane_sim::{NodeId, NodeKind, Scheme};

/// The output queue of a router that writes no telemetry.
struct Silent {
    from: NodeId,
    to: NodeId,
    reason: String,
}

/// The output queues of routers that write no telemetry, and the number of all output queues of routers.
fn silent_queues(facts: &Facts<'_>) -> (Vec<Silent>, usize) {
    let (mut silent, mut count) = (Vec::new(), 0);
    for (index, cable) in facts.network.cables.iter().enumerate() {
        for (from, to) in [(cable.a, cable.b), (cable.b, cable.a)] {
            if facts.network.nodes[from.index()].kind != NodeKind::Router {
                continue;
            }
            count += 1;
            let queue = facts.queue_at(index, from);
            let reason = if queue.discipline.active().is_some() {
                format!("its kind is {}", kind_of(&queue.discipline))
            } else if !queue.writes_telemetry() {
                "its telemetry is off".to_owned()
            } else if cable.traces[cable.direction_from(from)].is_some() {
                "its link follows a trace".to_owned()
            } else {
                continue;
            };
            silent.push(Silent { from, to, reason });
        }
    }
    (silent, count)
}

/// Refuses a scheme that needs telemetry if no router writes any.
pub(crate) fn check(facts: &Facts<'_>) -> Result<(), ScenarioError> {
    let Some(scheme) = facts.schemes.all.iter().find(|scheme| scheme.wants_telemetry()) else { return Ok(()) };
    let (silent, count) = silent_queues(facts);
    if silent.len() < count || count == 0 {
        return Ok(());
    }
    let table = facts.root.need("scheme")?;
    let named = table.named()?;
    let field = named.iter().find(|(name, _)| *name == scheme.name).map_or(&table, |(_, field)| field);
    Err(field.error(format!(
        "scheme \"{}\" follows the telemetry of routers, but no router writes any; allowed: telemetry = \"port\" or \
         \"class\" in [queue], with kind = fifo or priority and links without a trace",
        scheme.name
    )))
}

/// Warns about queues without telemetry, and about telemetry that no scheme reads.
pub(crate) fn warn(facts: &Facts<'_>, warnings: &Warnings) -> Result<(), ScenarioError> {
    let users: Vec<&Scheme> = facts.schemes.all.iter().filter(|scheme| scheme.wants_telemetry()).collect();
    let Some(scheme) = users.first() else {
        return each_queue_table(facts, |section| {
            if section.whole_table().path != "nic" {
                idle(section, "telemetry", "no controller reads telemetry", warnings);
            }
        });
    };
    let (silent, _) = silent_queues(facts);
    if let Some(Silent { from, to, reason }) = silent.first() {
        let [from, to] = [from, to].map(|node| &facts.network.nodes[node.index()].name);
        let others = match silent.len() {
            1 => String::new(),
            count => format!(", and {} other queues write none", count - 1),
        };
        warnings.add(format!(
            "scheme {} does not see the queue of \"{from}\" towards \"{to}\", which writes no telemetry, because \
             {reason}{others}",
            scheme.name
        ));
    }
    if let Some(scheme) = users.iter().find(|scheme| scheme.transport.delayed_ack.is_some()) {
        warnings.add(format!(
            "scheme {} gets the telemetry of the last packet of each delayed acknowledgment alone; delayed_ack = false \
             returns that of each packet",
            scheme.name
        ));
    }
    if facts.routing.is_spray() {
        warnings.add(format!(
            "scheme {} compares reports of the same port, and if packets are sprayed (routing), a port sees few packets of a flow",
            scheme.name
        ));
    }
    Ok(())
}
