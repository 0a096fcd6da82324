//! Helpers for reading workloads: hosts, periods and sizes.

use super::{SizeContext, SizeDistribution, SizeForm, read_sizes};
use crate::schema::volume::{Volume, volume};
use crate::schema::{Field, Kind, ScenarioError, Section, Source, Warnings, nodes};
use sparelane_core::{Dur, Time};
use sparelane_sim::{Network, NodeId, Routing, Scheme};

/// The context in which a workload is read.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The available forms of sizes.
    pub sizes: &'a [&'static SizeForm],
    /// The place of other files.
    pub source: &'a Source,
    /// The network.
    pub network: &'a Network,
    /// The choice among equal-cost paths.
    pub routing: Routing,
    /// The schemes.
    pub schemes: &'a [Scheme],
    /// The bandwidth-delay product, bytes.
    pub bdp_bytes: u64,
    /// The length of the run.
    pub duration: Dur,
    /// The seed with which the workload is tried out.
    pub seed: u64,
    /// Collects warnings about the workload.
    pub warnings: &'a Warnings,
}

/// A workload's table and its context.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The table.
    pub section: &'a Section<'a>,
    /// The context.
    pub context: Context<'a>,
    /// The workload's number in its run, which makes its random draws independent.
    pub number: u32,
    /// The scheme of the flows by its index; [`UNDECIDED`](super::UNDECIDED) if a mix decides later.
    pub scheme: u16,
    /// The scheme whose segments are used for sizes in packets; all schemes of a mix have the same.
    pub first_scheme: u16,
}

impl Reader<'_> {
    /// Returns the hosts that a key lists, if it is given.
    ///
    /// # Errors
    /// Fails if a name is not that of a host.
    pub fn hosts(&self, key: &str) -> Result<Option<Vec<NodeId>>, ScenarioError> {
        let Some(list) = self.section.given(key) else { return Ok(None) };
        let hosts = list.list(Kind::Node)?;
        hosts.iter().map(|field| nodes::host(field, self.context.network)).collect::<Result<_, _>>().map(Some)
    }

    /// Returns the start and the end of the period in which flows start.
    ///
    /// # Errors
    /// Fails if the end is not after the start.
    pub fn period(&self) -> Result<(Dur, Dur), ScenarioError> {
        let section = self.section;
        let start = section.need("start")?.time()?;
        let end = section.maybe("end", Field::time)?.unwrap_or(self.context.duration);
        if end > start {
            return Ok((start, end));
        }
        let field = section.given("end").or_else(|| section.given("start"));
        let field = field.unwrap_or_else(|| section.whole_table().clone());
        Err(field.error(format!("the workload runs from {start} to {end}; allowed: an end after the start")))
    }

    /// Returns the distribution of sizes that `field` describes.
    pub fn sizes(&self, field: &Field<'_>) -> Result<SizeDistribution, ScenarioError> {
        read_sizes(
            field,
            &SizeContext {
                forms: self.context.sizes,
                source: self.context.source,
                mss_bytes: self.mss_bytes(),
                bdp_bytes: self.context.bdp_bytes,
                seed: self.context.seed,
            },
        )
    }

    /// Returns the single size that `field` gives; `None` for unlimited flows.
    pub fn size(&self, field: &Field<'_>) -> Result<Option<SizeDistribution>, ScenarioError> {
        match volume(field, self.mss_bytes(), self.context.bdp_bytes)? {
            Volume::Unlimited => Ok(None),
            Volume::Bytes(bytes) => {
                SizeDistribution::fixed(bytes).map(Some).map_err(|error| field.error(error.message))
            }
        }
    }

    /// Returns the payload bytes of a full segment.
    pub fn mss_bytes(&self) -> u64 {
        self.context.schemes[usize::from(self.first_scheme)].transport.mss_bytes
    }
}

/// Reads a source and a destination, as in `["left0", "right0"]`.
pub(super) fn host_pair(field: &Field<'_>, network: &Network) -> Result<(NodeId, NodeId), ScenarioError> {
    let [src, dst] = nodes::pair(field)?;
    let pair = (nodes::host(&src, network)?, nodes::host(&dst, network)?);
    if pair.0 == pair.1 {
        return Err(field.error("a host cannot send to itself; allowed: two different hosts"));
    }
    Ok(pair)
}

/// Returns the time `span` after the start of the run.
pub(super) fn at(span: Dur) -> Time {
    Time::ZERO + span
}
