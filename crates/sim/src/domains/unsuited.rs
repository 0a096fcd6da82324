//! The runs that need a single domain.

use crate::config::{Discipline, RunConfig, Scheme};
use sparelane_transport::TransportConfig;
use thiserror::Error;

/// The reason that a run stays in a single domain.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unsuited {
    /// No cable may lie between domains, or the network has a single router.
    #[error(
        "no part of the network is far enough from the rest: all of its routers are joined by cables without delay"
    )]
    Undivided,
    /// The start of a flow depends on the end of another.
    #[error(
        "flows depend on the course of the run: they start when others end, share connections, or are written in pieces"
    )]
    ClosedLoop,
    /// Observers see one event after another.
    #[error("time series, packets or delays are recorded, which takes the events of the whole network in order")]
    Observed,
    /// Cross traffic is counted in one place.
    #[error("there is cross traffic")]
    CrossTraffic,
    /// Packets are dropped by script.
    #[error("packets are dropped by script")]
    ScriptedDrops,
    /// Links change.
    #[error("links change during the run")]
    Changes,
    /// Packets pass stages with random delays or duplicates.
    #[error("links delay packets at random or duplicate them")]
    Stages,
    /// Packets are sprayed.
    #[error("each packet of a flow takes a path of its own")]
    Spraying,
    /// Cables have PAUSE or priority-based flow control.
    #[error("cables have PAUSE or priority-based flow control")]
    Pause,
    /// Packets collect telemetry.
    #[error("packets collect telemetry on their paths, which is kept in one place")]
    Telemetry,
    /// Receivers answer after the other end of the flow has forgotten it.
    #[error("received data waits in hosts: to be processed, merged or read")]
    SlowReceivers,
    /// Senders send after the other end of the flow has forgotten it.
    #[error("a controller schedules the departure of segments, and some are sent after everything has arrived")]
    SlowSenders,
    /// Flows start with what earlier ones learned.
    #[error("flows start at the threshold that earlier ones reached")]
    CachedThresholds,
    /// A queue tells flows apart by their slots.
    #[error("a queue serves flows in turn")]
    FairQueues,
    /// A controller runs in another language, whose interpreter runs on one thread.
    #[error("a controller runs on one thread at a time")]
    Controller,
}

impl Unsuited {
    /// The reason that this run needs a single domain, whatever its network, if there is one.
    pub(crate) fn of(config: &RunConfig) -> Option<Unsuited> {
        let disciplines = config.queues_at.iter().map(|at| &at.queue.discipline);
        let mut disciplines = disciplines.chain([&config.router_queue.discipline, &config.nic_queue.discipline]);
        let reasons = [
            (!config.observers.is_empty(), Unsuited::Observed),
            (!config.flows.is_open_loop(), Unsuited::ClosedLoop),
            (!config.cross_traffic.is_empty(), Unsuited::CrossTraffic),
            (!config.drops.is_empty(), Unsuited::ScriptedDrops),
            (!config.changes.is_empty(), Unsuited::Changes),
            (config.stages() > 0, Unsuited::Stages),
            (config.routing.is_spray(), Unsuited::Spraying),
            (config.network.has_pause(), Unsuited::Pause),
            (config.schemes.iter().any(Scheme::wants_telemetry), Unsuited::Telemetry),
            (config.schemes.iter().any(Scheme::schedules_departures), Unsuited::SlowSenders),
            (waits_at_receivers(config), Unsuited::SlowReceivers),
            (config.schemes.iter().any(|scheme| scheme.transport.cached_ssthresh), Unsuited::CachedThresholds),
            (disciplines.any(tells_flows_apart), Unsuited::FairQueues),
            (config.schemes.iter().any(|scheme| !scheme.runs_on_any_thread()), Unsuited::Controller),
        ];
        reasons.into_iter().find_map(|(applies, reason)| applies.then_some(reason))
    }
}

fn tells_flows_apart(discipline: &Discipline) -> bool {
    discipline.active().is_some_and(|law| law.tells_flows_apart())
}

/// True if data may wait at a receiver, which then answers late: perhaps after the flow is over, which the whole network
/// knows at once in a single domain.
fn waits_at_receivers(config: &RunConfig) -> bool {
    let mut hosts = config.hosts_at.iter().map(|at| &at.spec).chain([&config.host]);
    let waits = |transport: &TransportConfig| transport.receive_batch > 1 || transport.read_rate.is_some();
    hosts.any(|host| !host.receive_cost.is_zero()) || config.schemes.iter().any(|scheme| waits(&scheme.transport))
}
