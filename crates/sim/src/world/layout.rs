//! The static network of a run: nodes and cables, the links that they form, and the routes over them.

use super::positions::Positions;
use crate::config::{RunConfig, Scheme};
use crate::flow::FlowSpec;
use crate::hosts::Hosts;
use crate::routing::network::{Cable, Network, NodeId, NodeKind};
use crate::routing::routes::{Routes, link_of};
use crate::wire::link::LinkSpec;
use crate::wire::memory::SharedMemory;
use crate::wire::telemetry::{Stamper, TelemetrySlab};
use sparelane_core::Dur;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The network of a run, with its links and routes.
#[derive(Clone)]
pub(crate) struct Layout {
    pub(crate) network: Arc<Network>,
    /// Both directions of every cable, in the order of `link_of`.
    pub(crate) links: Arc<Vec<LinkSpec>>,
    pub(crate) routes: Arc<Routes>,
    /// The allocator of positions in the fabric's table of routes.
    pub(crate) positions: Positions,
    /// Queues that observers may read between packets.
    pub(super) queues_in_view: BTreeSet<(NodeId, NodeId)>,
    /// The telemetry of packets in flight, which links write.
    pub(super) telemetry: TelemetrySlab,
}

/// The links of a connection, there and back.
pub(crate) type Paths = [Vec<u32>; 2];

/// Returns the links of a connection in both directions.
pub(crate) fn paths_of(network: &Network, routes: &Routes, spec: &FlowSpec, connection: u32) -> Paths {
    [(spec.src, spec.dst), (spec.dst, spec.src)].map(|(from, to)| {
        let links = routes.links(network, from, to, u64::from(connection));
        links.unwrap_or_else(|| unreachable!("paths were checked before the run"))
    })
}

impl Layout {
    /// Returns the links of a connection in both directions.
    pub(crate) fn paths(&self, spec: &FlowSpec, connection: u32) -> Paths {
        paths_of(&self.network, &self.routes, spec, connection)
    }

    /// The link from one node to another, if a cable connects them.
    pub(crate) fn link_between(&self, from: NodeId, to: NodeId) -> Option<u32> {
        let cable = self
            .network
            .cables
            .iter()
            .position(|cable| (cable.a, cable.b) == (from, to) || (cable.b, cable.a) == (from, to))?;
        Some(link_of(&self.network, cable, from))
    }
}

/// Builds the links of a run: both directions of every cable, in the order of `link_of`. Ports write telemetry into
/// `telemetry`.
pub(crate) fn link_specs(
    config: &RunConfig,
    hosts: &Hosts,
    in_view: &BTreeSet<(NodeId, NodeId)>,
    telemetry: &TelemetrySlab,
) -> Vec<LinkSpec> {
    let datagrams = config.cross_traffic.iter().map(|traffic| u64::from(traffic.packet_bytes));
    let largest_bytes = largest_packet_bytes(&config.schemes).max(datagrams.max().unwrap_or(0));
    let differing: BTreeMap<_, _> =
        config.queues_at.iter().map(|at| ((at.cable, at.from), Arc::new(at.queue.clone()))).collect();
    let dropping = config.drops.iter().map(|drop| (drop.from, drop.to));
    let watched: BTreeSet<_> = dropping.chain(in_view.iter().copied()).collect();
    let changing: BTreeSet<_> = config.changes.iter().map(|change| (change.cable, change.from)).collect();
    let reordering = config.reordering_directions();
    let (router_queue, nic_queue) = (Arc::new(config.router_queue.clone()), Arc::new(config.nic_queue.clone()));
    let with_pause = config.network.queues_with_pause();
    let (has_pfc, pfc_routers) = (config.network.has_pfc(), config.network.routers_with_pfc());
    let wants_rate = |scheme: &Scheme| scheme.any_controller().is_ok_and(|cc| cc.desired_rate().is_some());
    let some_want_rates = config.schemes.iter().any(wants_rate);
    let some_want_telemetry = config.schemes.iter().any(Scheme::wants_telemetry);
    let spec = |index: usize, cable: &Cable, from: NodeId| {
        let is_host = config.network.nodes[from.index()].kind == NodeKind::Host;
        let usual = if is_host { &nic_queue } else { &router_queue };
        let differs = differing.get(&(index, from));
        let queue = Arc::clone(differs.unwrap_or(usual));
        let limit = cable.limit.filter(|_| differs.is_none()).unwrap_or(queue.limit);
        let memory = config.switch.filter(|_| !is_host).map(|spec| SharedMemory { router: from, spec });
        let (rate, delay, loss) = (cable.rate_from(from), cable.delay, cable.loss_from(from));
        let min_time = if is_host { hosts.spec(from).send_cost } else { Dur::ZERO };
        let is_watched = watched.contains(&(from, if from == cable.a { cable.b } else { cable.a }));
        let pauses = cable.pause.filter(|_| !is_host);
        let pfc = cable.pfc.filter(|_| !is_host);
        let pfc_router = pfc_routers.get(&from).copied();
        let grants_rates = queue.rcp.is_some() && some_want_rates;
        let writes_telemetry = some_want_telemetry && !is_host && queue.writes_telemetry();
        let stamper = || Stamper::new(telemetry, queue.telemetry, link_of(&config.network, index, from));
        let stamper = writes_telemetry.then(stamper);
        let is_controlled = with_pause[index][cable.direction_from(from)] || grants_rates || writes_telemetry;
        let changes = changing.contains(&(index, from));
        let trace = cable.traces[cable.direction_from(from)].clone();
        let effects = cable.effects[cable.direction_from(from)].clone();
        LinkSpec {
            rate,
            delay: effects.as_ref().map_or(delay, |effects| effects.shortest(delay)),
            mean_delay: delay,
            effects,
            queue,
            limit,
            loss,
            min_time,
            memory,
            is_watched,
            pauses,
            pfc,
            pfc_router,
            has_class_queues: has_pfc && is_controlled,
            is_controlled,
            telemetry: stamper,
            changes,
            reorders: reordering.contains(&(index, from)),
            trace,
            largest_bytes,
        }
    };
    let cables = config.network.cables.iter().enumerate();
    cables.flat_map(|(index, cable)| [spec(index, cable, cable.a), spec(index, cable, cable.b)]).collect()
}

/// The size of the largest packet that any scheme sends.
fn largest_packet_bytes(schemes: &[Scheme]) -> u64 {
    schemes.iter().map(|scheme| scheme.transport.packet_bytes()).max().unwrap_or(0)
}
