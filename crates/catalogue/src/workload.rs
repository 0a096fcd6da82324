//! Workloads, which define the flows of a run. Each kind is a file with its keys and its flow generator, and a line in
//! [`WORKLOADS`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bulk;
mod classes;
mod collective;
mod core_load;
mod demand;
mod draws;
mod ends;
mod error;
mod graph;
pub mod list;
mod merge;
mod mix;
mod order;
mod paced;
mod poisson;
mod pooled;
mod reader;
mod receivers;
mod repeated;
mod requests;
mod sizes;
mod streams;
mod surge;
mod web_users;

pub use bulk::{Bulk, BulkSpec, Pairs, Starts};
pub use classes::{Classed, TRAFFIC_CLASSES, TrafficClasses};
pub use demand::Demand;
pub use error::WorkloadError;
pub use graph::cycle as find_cycle;
pub use list::FlowList;
pub use merge::Merge;
pub use mix::{Mix, MixBy, Mixed, UNDECIDED};
pub use order::read_order;
pub use paced::{Paced, WRITES};
pub use poisson::{ArrivalRate, LoadOn, Poisson, PoissonSpec};
pub use pooled::Pooled;
pub use reader::{Context, Reader};
pub use receivers::Destinations;
pub use requests::{FAN_OUT, FanOut, Requests, RequestsSpec};
pub use sizes::{
    BodyAndTail, ReadSizes, SIZE_FORMS, SizeContext, SizeDistribution, SizeForm, data_mining_flow_sizes,
    rc3_flow_sizes, read_sizes, w2000_flow_sizes, web_search_flow_sizes,
};
pub use surge::Surge;
pub use web_users::{MAX_WEB_USERS, WebUsers, WebUsersSpec};

use self::classes::{ClassReader, ClassedWorkload};
use self::mix::MixedWorkload;
use self::paced::PacedWorkload;
use self::pooled::PooledWorkload;
use self::reader::{at, host_pair};
use crate::schema::{Fallback, Field, Form, Key, Kind, ScenarioError, Section, Shape, did_you_mean};
use sparelane_core::{Dur, Time};
use sparelane_sim::{FlowSource, Network, Scheme};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

/// A workload that has been read and checked. It yields the same flows every time under the same seed.
pub trait Workload: Debug + Send + Sync {
    /// Returns the flows under `seed`.
    ///
    /// # Errors
    /// Fails if the network cannot carry such a workload.
    fn flows(&self, network: &Network, seed: u64) -> Result<Box<dyn FlowSource>, WorkloadError>;

    /// Estimates the load on the simulator in a run of `duration`.
    fn demand(&self, network: &Network, duration: Dur) -> Demand;

    /// Returns the schemes that it names in addition to that of its table.
    fn schemes(&self) -> Vec<u16> {
        Vec::new()
    }

    /// Returns true if it has a last flow, and each of its flows has an end, so that other workloads may wait for it.
    fn ends(&self) -> bool {
        true
    }
}

/// The form of a workload in a scenario.
pub type WorkloadForm = Form<&'static ReadWorkload>;

/// Creates a workload from its table.
pub type ReadWorkload = dyn Fn(&Reader<'_>) -> Result<Arc<dyn Workload>, ScenarioError> + Sync;

/// Every form of `[[workload]]`.
pub static WORKLOADS: &[&WorkloadForm] = &[
    &poisson::FORM,
    &bulk::FORM,
    &requests::FORM,
    &web_users::FORM,
    &list::FORM,
    &collective::ALL_REDUCE,
    &collective::ALL_TO_ALL,
];

/// The keys of every form of `[[workload]]`.
pub static WORKLOAD: &[Key] = &[
    Key::new(
        "scheme",
        Kind::Special("the name of a scheme", &Shape::Of(Kind::Text)),
        Fallback::Nothing("the only scheme"),
        "scheme of the flows; or give mix",
    ),
    MIX,
    MIX_BY,
    WRITES_KEY,
    pooled::CONNECTIONS,
    order::NAME,
    order::AFTER,
    Key::new(
        "traffic_class",
        Kind::Special("the name of a class", &Shape::Of(Kind::Text)),
        Fallback::Nothing("no class, or given by traffic_classes"),
        "traffic class of all flows, by which controllers may set weights",
    ),
    Key::new(
        "traffic_classes",
        Kind::Special(
            "a list such as [{ name = \"urgent\", below = \"30KB\" }, { name = \"high-volume\" }]",
            &Shape::List(&Shape::Table("traffic_classes")),
        ),
        Fallback::Nothing("no class, or given by traffic_class"),
        "traffic classes by the size of the flow, smallest first; the last has no bound",
    ),
];

const MIX: Key = Key::new(
    "mix",
    Kind::Special("a table such as { tcp = 0.9, critical = 0.1 }", &Shape::Named(&Shape::Of(Kind::Share { max: 1.0 }))),
    Fallback::Nothing("given by scheme"),
    "schemes and their shares, instead of scheme; start, size and endpoints of the flows do not depend on it",
);
const MIX_BY: Key = Key::new(
    "mix_by",
    Kind::Choice(&["flow", "host"]),
    Fallback::Value("flow"),
    "whether shares are of the flows, drawn one by one, or of the sending hosts behind each router, in order",
);
const WRITES_KEY: Key = Key::new(
    "writes",
    Kind::Special("a table such as { first = \"1.5MB\", then = \"64KB\", every = \"100ms\" }", &Shape::Table("writes")),
    Fallback::Nothing("everything at the start"),
    "the application writes first at a flow's start, and then in pieces until the flow's size is written",
)
.from("NSDI 2014 section 5.1.2");

const SIZES: Kind = Kind::Special("a table such as { kind = \"rc3\" }", &Shape::Table("sizes"));
const START: Key = Key::new("start", Kind::MOMENT, Fallback::Value("0s"), "earliest start of a flow");

/// A workload that was read from its table.
#[derive(Clone, Debug)]
pub struct Found {
    /// The workload.
    pub workload: Arc<dyn Workload>,
    /// The schemes that its flows can have, by index.
    pub schemes: BTreeSet<u16>,
    /// The start of its first flow, if it has any.
    pub first_start: Option<Time>,
    /// True if it has no second flow that starts by itself.
    pub is_single: bool,
    /// True if other workloads may wait for it.
    pub ends: bool,
}

/// Reads workload number `number`, in one of these forms. `classes` are the traffic classes of the run; those of this
/// workload are added to it.
///
/// # Errors
/// Returns the first error, with its place and the allowed values.
pub fn read(
    field: &Field<'_>,
    forms: &[&'static WorkloadForm],
    number: u32,
    context: Context<'_>,
    classes: &mut Vec<String>,
) -> Result<Found, ScenarioError> {
    let (form, section) = field.clone().form(WORKLOAD, forms)?;
    let mix = mix::read(&section, context.schemes)?;
    let (scheme, first_scheme) = match &mix {
        Some(mix) => (UNDECIDED, mix.shares[0].0),
        None => {
            let only = only_scheme(&section, context.schemes)?;
            (only, only)
        }
    };
    let reader = Reader { section: &section, context, number, scheme, first_scheme };
    let mut workload = (form.read)(&reader)?;
    let ends = workload.ends();
    workload.demand(context.network, context.duration).check(section.whole_table())?;
    let writes = section.maybe("writes", |field| paced::read(field, reader.mss_bytes(), context.bdp_bytes))?;
    let mut used: BTreeSet<_> = match &mix {
        Some(mix) => mix.shares.iter().map(|&(scheme, _)| scheme).collect(),
        None => [scheme].into(),
    };
    used.extend(workload.schemes().into_iter().filter(|&scheme| scheme != UNDECIDED));
    let schemes = used.clone();
    if let Some(classes) = (ClassReader { names: classes, schemes: context.schemes, used }).read(&section)? {
        workload = Arc::new(ClassedWorkload(workload, classes));
    }
    if let Some(writes) = writes {
        workload = Arc::new(PacedWorkload(workload, writes));
    }
    if section.need("connections")?.choice()? == "reused" {
        workload = Arc::new(PooledWorkload(workload, number));
    }
    // Try the workload out, so that errors show before the run.
    let tried = workload.flows(context.network, context.seed);
    let mut tried = tried.map_err(|error| section.whole_table().error(error.message))?;
    let first_start = tried.next_flow().map(|flow| flow.start);
    let is_single = tried.next_flow().is_none();
    let (Some(mix), Some(field)) = (mix, section.given("mix")) else {
        return Ok(Found { workload, schemes, first_start, is_single, ends });
    };
    let workload = MixedWorkload(workload, mix, number);
    let tried = workload.flows(context.network, context.seed);
    tried.map_err(|error| field.error(error.message))?;
    Ok(Found { workload: Arc::new(workload), schemes, first_start, is_single, ends })
}

/// Returns the scheme of a workload: the one it names, or the only one.
fn only_scheme(section: &Section<'_>, schemes: &[Scheme]) -> Result<u16, ScenarioError> {
    let Some(field) = section.given("scheme") else {
        return match schemes.len() {
            1 => Ok(0),
            _ => Err(section.missing_of("scheme", &scheme_names(schemes).collect::<Vec<_>>().join(", "))),
        };
    };
    find_scheme(&field, field.text()?, schemes)
}

/// Returns the scheme called `name`, which `field` gives.
fn find_scheme(field: &Field<'_>, name: &str, schemes: &[Scheme]) -> Result<u16, ScenarioError> {
    let found = scheme_names(schemes).position(|other| other == name);
    found.map(|place| place as u16).ok_or_else(|| {
        let allowed = scheme_names(schemes).collect::<Vec<_>>().join(", ");
        field.error(format!("no such scheme; allowed: {allowed}{}", did_you_mean(name, scheme_names(schemes))))
    })
}

fn scheme_names(schemes: &[Scheme]) -> impl Iterator<Item = &str> {
    schemes.iter().map(|scheme| scheme.name.as_str())
}
