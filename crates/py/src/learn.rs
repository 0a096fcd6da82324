//! Runs that advance step by step, with controllers whose limits are set from Python, for reinforcement learning.

use crate::errors::{physics_error, scenario_error};
use crate::plugin::{PyCatalogue, fault};
use crate::results::Results;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use sparelane_cc::param::{DefaultValue, Kind};
use sparelane_cc::window::INITIAL_WINDOW;
use sparelane_cc::{
    Ack, Blueprint, Congestion, CongestionControl, Controller, Cx, Limits, Needs, Param, Registry, Values,
};
use sparelane_core::{Dur, Rate, Time};
use sparelane_scenario::{Catalogue, Scenario, Source, results};
use sparelane_sim::Simulation;
use std::any::Any;
use std::path::PathBuf;
use std::sync::Mutex;

/// The key `pace`: the initial pace of an agent that sets one.
const PACE: Param = Param {
    name: "pace",
    kind: Kind::OptionalRate,
    default: DefaultValue::Rate(None),
    meaning: "initial pace of a connection, for agents that set a pace; none for agents that set only the window",
    source: "sparelane",
};

/// The key `law`: another controller that replaces the agent, for comparisons.
const LAW: Param = Param {
    name: "law",
    kind: Kind::Controller,
    default: DefaultValue::Word("none"),
    meaning: "a controller that decides instead of the agent, for comparisons",
    source: "sparelane",
};

/// The entry of the agent in the catalogue of learning environments; no other catalogue has it.
const AGENT: Controller = Controller {
    name: "agent",
    summary: "a window, or a pace, that an agent outside the run sets step by step",
    source: "sparelane",
    params: &[INITIAL_WINDOW, PACE, LAW],
    wire: None,
    make: &|values, plan| Ok(Box::new(Agent::new(values, plan)?)),
};

/// Totals of the events of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Observed {
    delivered_bytes: u64,
    rtt_sum_s: f64,
    rtts: u64,
    last_rtt_s: f64,
    min_rtt_s: f64,
    losses: u64,
    timeouts: u64,
    marks: u64,
}

/// A controller whose limits are set from outside, or that follows another controller.
#[derive(Debug)]
struct Agent {
    limits: Limits,
    observed: Observed,
    /// The controller that replaces the agent, if any.
    law: Option<Box<dyn CongestionControl>>,
}

impl Agent {
    fn new(values: &Values, plan: &Blueprint<'_>) -> Result<Agent, sparelane_cc::registry::BuildError> {
        let law = match values.word(&LAW) {
            "none" => None,
            name => Some(plan.registry.build(name, plan.inner, plan)?),
        };
        let own = Limits { cwnd_bytes: values.whole(&INITIAL_WINDOW) * plan.mss_bytes, pacing: values.rate(&PACE) };
        Ok(Agent { limits: law.as_ref().map_or(own, |law| law.limits()), observed: Observed::default(), law })
    }

    /// Copies the limits of the controller that replaces the agent.
    fn follow(&mut self) {
        if let Some(law) = &self.law {
            self.limits = law.limits();
        }
    }
}

impl CongestionControl for Agent {
    fn needs(&self) -> Needs {
        self.law.as_ref().map_or_else(Needs::default, |law| law.needs())
    }

    fn on_established(&mut self, explicit_rate: Option<Rate>, cx: &mut Cx<'_>) {
        if let Some(law) = &mut self.law {
            law.on_established(explicit_rate, cx);
        }
        self.follow();
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        self.observed.delivered_bytes += ack.delivered_bytes;
        if let Some(rtt) = ack.rtt {
            self.observed.rtt_sum_s += rtt.as_secs_f64();
            self.observed.rtts += 1;
            self.observed.last_rtt_s = rtt.as_secs_f64();
        }
        self.observed.min_rtt_s = cx.min_rtt.unwrap_or_default().as_secs_f64();
        if let Some(law) = &mut self.law {
            law.on_ack(ack, cx);
        }
        self.follow();
    }

    fn on_congestion(&mut self, event: Congestion, cx: &mut Cx<'_>) {
        match event {
            Congestion::Loss { .. } => self.observed.losses += 1,
            Congestion::Timeout { .. } => self.observed.timeouts += 1,
            Congestion::Marked { .. } => self.observed.marks += 1,
            Congestion::LostSyn | Congestion::Spurious => {}
        }
        if let Some(law) = &mut self.law {
            law.on_congestion(event, cx);
        }
        self.follow();
    }

    fn limits(&self) -> Limits {
        self.limits
    }
}

/// The state of a flow as its agent sees it: totals since the connection began, and current values.
///
/// Times are in seconds. `rtt_sum_s / rtts` is the mean round-trip time, and `pacing_bps` is `None` without a pace.
#[pyclass(frozen, get_all, name = "AgentView", module = "sparelane._native")]
pub struct AgentView {
    delivered_bytes: u64,
    rtt_sum_s: f64,
    rtts: u64,
    last_rtt_s: f64,
    min_rtt_s: f64,
    losses: u64,
    timeouts: u64,
    marks: u64,
    retransmissions: u64,
    cwnd_bytes: u64,
    pacing_bps: Option<f64>,
    in_flight_bytes: u64,
}

/// A run that advances step by step.
#[pyclass(frozen, module = "sparelane._native")]
pub struct Stepper {
    run: Mutex<Option<(Scenario, Simulation)>>,
    /// The rate of the slowest cable in bits per second.
    #[pyo3(get)]
    slowest_bps: f64,
    /// The simulated time at which the run ends, in seconds.
    #[pyo3(get)]
    duration_s: f64,
    /// Payload bytes of a full segment of the first scheme.
    #[pyo3(get)]
    mss_bytes: u64,
}

impl Stepper {
    fn with<T>(&self, act: impl FnOnce(&mut Simulation) -> PyResult<T>) -> PyResult<T> {
        let mut slot = self.run.lock().map_err(|_| PyRuntimeError::new_err("this run has failed"))?;
        act(&mut slot.as_mut().ok_or_else(|| PyRuntimeError::new_err("this run is over"))?.1)
    }
}

#[pymethods]
impl Stepper {
    #[new]
    #[pyo3(signature = (text, source_name, base_dir, overrides, catalogue=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        source_name: String,
        base_dir: PathBuf,
        overrides: Vec<String>,
        catalogue: Option<&PyCatalogue>,
    ) -> PyResult<Stepper> {
        let catalogue = catalogue.map_or_else(Catalogue::built_in, |own| own.0.clone());
        let registry = Registry::clone(&catalogue.controllers).with(AGENT);
        let registry = registry.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let catalogue = catalogue.with_controllers(registry);
        let source = Source { file: source_name, folder: base_dir };
        let built = py.detach(|| {
            let scenario = Scenario::parse_with(&catalogue, text, &source, &overrides)?;
            let config = scenario.build()?;
            let slowest =
                config.network.cables.iter().map(|cable| cable.rate_from(cable.a).min(cable.rate_from(cable.b)));
            let slowest = slowest.min().unwrap_or_default();
            let stop = config.stop;
            let mss_bytes = config.schemes.first().map_or(0, |scheme| scheme.transport.mss_bytes);
            let simulation = Simulation::new(config)
                .map_err(|error| sparelane_scenario::ScenarioError::in_file(&source.file, None, error.to_string()))?;
            Ok((scenario, simulation, slowest, stop, mss_bytes))
        });
        fault::check(py)?;
        let (scenario, simulation, slowest, stop, mss_bytes) = built.map_err(|error| scenario_error(py, &error))?;
        let (slowest_bps, duration_s) = (slowest.as_bps() as f64, stop.as_secs_f64());
        Ok(Stepper { run: Mutex::new(Some((scenario, simulation))), slowest_bps, duration_s, mss_bytes })
    }

    /// Runs until the simulated time `until_s` in seconds. Returns whether the run is over.
    ///
    /// Raises `ValueError` if the time is out of range.
    fn advance(&self, py: Python<'_>, until_s: f64) -> PyResult<bool> {
        if !(0.0..=1e6).contains(&until_s) {
            return Err(PyValueError::new_err(format!("until_s is {until_s}; allowed: 0 to a million seconds")));
        }
        let until = Time::ZERO + Dur::from_ps((until_s * 1e12).round() as u64);
        fault::take();
        let finished = self.with(|run| Ok(py.detach(|| run.advance_to(until)).map(|reached| reached.finished)))?;
        fault::check(py)?;
        py.check_signals()?;
        finished.map_err(|violation| physics_error(&violation))
    }

    /// Returns the state of a flow, or `None` if the flow is not open.
    ///
    /// Raises `ValueError` if the flow does not run under the controller `agent`.
    fn view(&self, flow: u32) -> PyResult<Option<AgentView>> {
        self.with(|run| {
            let view = run.view();
            let Some(flow_view) = view.flow(flow) else { return Ok(None) };
            let controller: &dyn Any = flow_view.sender.controller();
            let agent = controller.downcast_ref::<Agent>().ok_or_else(|| {
                PyValueError::new_err(format!("flow {flow} has another controller; allowed: flows under \"agent\""))
            })?;
            let (observed, counts) = (agent.observed, flow_view.sender.counts());
            Ok(Some(AgentView {
                delivered_bytes: observed.delivered_bytes,
                rtt_sum_s: observed.rtt_sum_s,
                rtts: observed.rtts,
                last_rtt_s: observed.last_rtt_s,
                min_rtt_s: observed.min_rtt_s,
                losses: observed.losses,
                timeouts: observed.timeouts,
                marks: observed.marks,
                retransmissions: counts.retransmissions,
                cwnd_bytes: agent.limits.cwnd_bytes,
                pacing_bps: agent.limits.pacing.map(|rate| rate.as_bps() as f64),
                in_flight_bytes: flow_view.sender.in_flight_bytes(),
            }))
        })
    }

    /// Sets the window of an agent's flow and, if it began with a pace, its pace. Returns whether the flow is open.
    ///
    /// A controller that replaces the agent is not changed.
    fn steer(&self, flow: u32, cwnd_bytes: u64, pacing_bps: Option<f64>) -> PyResult<bool> {
        self.with(|run| {
            Ok(run.steer(flow, &mut |controller| {
                let controller: &mut dyn Any = controller;
                if let Some(agent) = controller.downcast_mut::<Agent>()
                    && agent.law.is_none()
                {
                    agent.limits.cwnd_bytes = cwnd_bytes;
                    let pace = pacing_bps.map(|bps| Rate::from_bps(bps.max(1000.0) as u64));
                    agent.limits.pacing = agent.limits.pacing.map(|before| pace.unwrap_or(before));
                }
            }))
        })
    }

    /// Ends the run and returns its results. Raises `RuntimeError` if it has ended before.
    fn finish(&self) -> PyResult<Results> {
        let taken = self.run.lock().ok().and_then(|mut slot| slot.take());
        let (scenario, simulation) = taken.ok_or_else(|| PyRuntimeError::new_err("this run is over"))?;
        let records = simulation.finish().map_err(|violation| physics_error(&violation))?;
        Ok(Results { results: results::Results::new(&scenario, records), traced: Vec::new(), is_interrupted: false })
    }
}
