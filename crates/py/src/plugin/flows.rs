//! Workloads written in Python: generators of flows.
//!
//! A generator is read when the scenario is parsed, until it ends or a flow starts after the end of the run. The run
//! itself calls no Python code.

use super::fault;
use super::params::{self, Declared, leaked};
use super::sizes::{arguments, random, values_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use sparelane_catalogue::schema::volume::max_flow_bytes;
use sparelane_catalogue::schema::{Form, Key};
use sparelane_catalogue::workload::{FlowList, ReadWorkload, Reader, UNDECIDED, WorkloadForm};
use sparelane_core::{Dur, Time};
use sparelane_sim::{FlowSpec, NodeId};
use std::collections::HashMap;
use std::sync::Arc;

/// The largest number of flows of one generator. All of them are kept in memory, at about 100 bytes each.
const MAX_FLOWS: usize = 2_000_000;

/// A function that is registered as a workload.
#[pyclass(frozen, module = "sparelane._native")]
pub struct WorkloadKind(pub &'static WorkloadForm);

/// The properties of a run that a generator of flows can use.
#[pyclass(frozen, get_all, name = "Run", module = "sparelane._native")]
pub struct Run {
    /// The names of the hosts, in the order of the topology.
    pub hosts: Vec<String>,
    /// The simulated time at which the run ends, in seconds.
    pub duration_s: f64,
    /// The bandwidth-delay product in bytes.
    pub bdp_bytes: u64,
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// The rate of the slowest interface of a host in bits per second.
    pub line_rate_bps: f64,
    /// A `random.Random` of this workload's own, seeded from the scenario's seed.
    pub random: Py<PyAny>,
}

/// A flow that a generator yields: any object with these attributes.
#[derive(FromPyObject)]
struct YieldedFlow {
    start_s: f64,
    src: String,
    dst: String,
    /// `None` for a flow without end.
    size_bytes: Option<f64>,
    scheme: Option<String>,
}

#[pymethods]
impl WorkloadKind {
    /// Registers a function. Raises `ValueError` if a parameter is invalid.
    #[new]
    fn new(
        function: Py<PyAny>,
        name: String,
        summary: String,
        source: String,
        declared: Vec<Declared<'_>>,
    ) -> PyResult<WorkloadKind> {
        let (name, params) = (leaked(name), params::params(declared)?);
        let read: &'static ReadWorkload = Box::leak(Box::new(move |reader: &Reader<'_>| {
            let values = values_of(reader.section, params)?;
            let asked = Python::attach(|py| {
                let named = arguments(py, params, &values)?;
                let flows = function.bind(py).call((run_of(py, reader)?,), Some(&named))?;
                collect(reader, &flows)
            });
            let list = asked.and_then(|flows| {
                let list = FlowList::of(flows, reader.context.network);
                list.map_err(|error| PyValueError::new_err(error.to_string().replacen("line", "flow", 1)))
            });
            match list {
                Ok(list) => Ok(Arc::new(list) as Arc<_>),
                Err(error) => {
                    let refusal = reader.section.whole_table().error(error.to_string());
                    fault::store(format!("workload \"{name}\""), None, error);
                    Err(refusal)
                }
            }
        }));
        let keys: Vec<Key> = params.iter().map(Key::declared).collect();
        let form = Form { name, summary: leaked(summary), source: leaked(source), keys: keys.leak(), read };
        Ok(WorkloadKind(Box::leak(Box::new(form))))
    }
}

/// Returns the properties of the run that is being parsed.
fn run_of(py: Python<'_>, reader: &Reader<'_>) -> PyResult<Run> {
    let context = &reader.context;
    let network = context.network;
    let hosts = network.hosts();
    let rates = network.cables.iter().flat_map(|cable| [(cable.a, cable), (cable.b, cable)]);
    let slowest = rates.filter(|(end, _)| hosts.contains(end)).map(|(end, cable)| cable.rate_from(end)).min();
    // Each workload of a run gets another seed; the factor is 2^64 divided by the golden ratio.
    let seed = context.seed.wrapping_add(u64::from(reader.number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    Ok(Run {
        hosts: hosts.iter().map(|host| network.nodes[host.index()].name.clone()).collect(),
        duration_s: context.duration.as_secs_f64(),
        bdp_bytes: context.bdp_bytes,
        mss_bytes: reader.mss_bytes(),
        line_rate_bps: slowest.unwrap_or_default().as_bps() as f64,
        random: random(py, seed)?.unbind(),
    })
}

/// Reads the generator until the end of the run, and validates each flow.
fn collect(reader: &Reader<'_>, given: &Bound<'_, PyAny>) -> PyResult<Vec<FlowSpec>> {
    let context = &reader.context;
    let nodes = (0..).zip(&context.network.nodes);
    let names: HashMap<_, _> = nodes.map(|(id, node)| (node.name.as_str(), NodeId(id))).collect();
    let end_s = context.duration.as_secs_f64();
    let mut flows: Vec<FlowSpec> = Vec::new();
    // Flows must be in order of start, because the simulator starts them in order.
    let mut last_s = 0.0;
    let listed = given.try_iter();
    let listed =
        listed.map_err(|_| PyTypeError::new_err(format!("{given} is not iterable; allowed: an iterable of flows")))?;
    for flow in listed {
        let number = flows.len() + 1;
        let refuse = |what: String| PyValueError::new_err(format!("flow {number}: {what}"));
        let flow = flow?;
        let Ok(asked) = flow.extract::<YieldedFlow>() else {
            return Err(refuse(format!(
                "{flow} is not a flow; allowed: sparelane.Flow(start_s, src, dst, size_bytes), numbers and names"
            )));
        };
        if !(asked.start_s >= last_s && asked.start_s.is_finite()) {
            let message =
                format!("start_s is {}; allowed: a time from {last_s}, the start of the flow before it", asked.start_s);
            return Err(refuse(message));
        }
        // Generators may be endless.
        if asked.start_s >= end_s {
            break;
        }
        if number > MAX_FLOWS {
            return Err(refuse(format!("too many flows before the end of the run; allowed: {MAX_FLOWS}")));
        }
        last_s = asked.start_s;
        let host = |what: &str, name: &str| {
            let hosts =
                || context.network.hosts().into_iter().map(|host| &context.network.nodes[host.index()].name[..]);
            let some: Vec<_> = hosts().take(5).collect();
            names.get(name).copied().ok_or_else(|| {
                refuse(format!("{what} is \"{name}\"; allowed: the name of a host, such as {}", some.join(", ")))
            })
        };
        let scheme = scheme_of(reader, asked.scheme.as_deref()).map_err(refuse)?;
        // The largest size depends on the segment size of the flow's scheme.
        let its_scheme = &context.schemes[usize::from(if scheme == UNDECIDED { reader.first_scheme } else { scheme })];
        let most = max_flow_bytes(its_scheme.transport.mss_bytes);
        if let Some(bytes) = asked.size_bytes.filter(|bytes| !(1.0..=most as f64).contains(bytes)) {
            return Err(refuse(format!("size_bytes is {bytes}; allowed: 1 to {most}, or None for a flow without end")));
        }
        let start = Time::ZERO + Dur::from_ps((asked.start_s * 1e12).round() as u64);
        let (src, dst) = (host("src", &asked.src)?, host("dst", &asked.dst)?);
        flows.push(FlowSpec::new(start, src, dst, asked.size_bytes.map(|bytes| bytes as u64), scheme));
    }
    Ok(flows)
}

/// Returns the index of the scheme of this name; without a name, that of the workload's scheme.
fn scheme_of(reader: &Reader<'_>, name: Option<&str>) -> Result<u16, String> {
    let Some(name) = name else { return Ok(reader.scheme) };
    let schemes = || reader.context.schemes.iter().map(|scheme| scheme.name.as_str());
    let found = schemes().position(|other| other == name);
    let allowed = || schemes().collect::<Vec<_>>().join(", ");
    found.map(|place| place as u16).ok_or_else(|| format!("scheme is \"{name}\"; allowed: {}, or None", allowed()))
}
