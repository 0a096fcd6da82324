//! One run in steps, with everything that the page shows of it.

use crate::columns::Columns;
use crate::files;
use crate::packets::{self, MOST_CABLES, Packets};
use crate::series::{self, Series};
use crate::text::{self, FILE, Mistake};
use crate::{VERSION, network};
use sparelane_core::{Dur, Time};
use sparelane_scenario::results::{Results, delay_columns, drop_columns, flow_columns, link_columns};
use sparelane_scenario::{Json, Scenario, Size};
use sparelane_sim::{BuildError, PhysicsViolation, Records, Simulation};

/// The largest memory of network and open flows in a page, bytes. Browsers allow a page 4 GB, and tables come on top.
const MOST_BYTES: f64 = 1e9;

/// Memory of the results of one flow, bytes.
const FLOW_BYTES: f64 = 500.0;

/// The measurements of a run beyond those of the scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The number of samples of time series; 0 for none.
    pub samples: u32,
    /// The flows that are sampled; empty for the first ones.
    pub flows: Vec<u32>,
    /// The links that are sampled; empty for those of routers.
    pub links: Vec<u32>,
    /// The packets that are recorded.
    pub packets: Option<PacketOptions>,
}

/// The packets to record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketOptions {
    /// The start of the window, seconds.
    pub from_s: f64,
    /// The end of the window, seconds; infinite for the end of the run.
    pub to_s: f64,
    /// The largest number of packets.
    pub most: u32,
    /// The only flow that is recorded.
    pub flow: Option<u32>,
}

/// The reason that a scenario does not run in a page.
#[derive(Clone, Debug, PartialEq)]
pub enum Refused {
    /// Mistakes in its text.
    Mistakes(Vec<Mistake>),
    /// A need that a page cannot meet.
    Need(Need),
}

/// A need of a scenario that a page cannot meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// `files` or `memory`.
    pub cause: &'static str,
    /// A sentence for the user.
    pub reason: String,
}

impl Need {
    /// The need as JSON: `Refusal` of the protocol.
    pub fn to_json(&self) -> Json {
        Json::object([
            ("cause", Json::text(self.cause)),
            ("reason", Json::text(&self.reason)),
            ("command", Json::text(format!("sparelane run {FILE}"))),
        ])
    }
}

impl Refused {
    /// The reason as JSON: `{"mistakes": ...}` or `{"refusal": ...}`.
    pub fn to_json(&self) -> Json {
        match self {
            Refused::Mistakes(mistakes) => Json::object([("mistakes", text::to_json(mistakes))]),
            Refused::Need(need) => Json::object([("refusal", need.to_json())]),
        }
    }
}

/// A run.
#[derive(Debug)]
pub struct Run {
    scenario: Scenario,
    simulation: Simulation,
    series: Option<Series>,
    packets: Option<Packets>,
    packets_missing: Option<String>,
}

/// The size of a run that is expected, before it is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// The number of flows.
    pub flows: f64,
    /// Memory, bytes.
    pub bytes: f64,
}

/// Checks that a scenario can run in a page, and returns it with its expected size.
///
/// # Errors
/// Mistakes, and needs that a page cannot meet.
pub fn check(text: &str) -> Result<(Scenario, Expected), Refused> {
    let scenario = match text::scenario(text) {
        Ok(scenario) => scenario,
        Err(mistakes) => {
            // A missing file is a mistake like any other for the parser.
            let files = files::named(text);
            let missing = files.iter().find(|file| mistakes.iter().any(|mistake| mistake.key == file.key));
            return Err(missing.map_or(Refused::Mistakes(mistakes), |file| Refused::Need(needs_file(file))));
        }
    };
    if let Some(file) = files::named(text).first() {
        return Err(Refused::Need(needs_file(file)));
    }
    let size = Size::of(&scenario);
    let expected = Expected { flows: size.flows, bytes: size.bytes() + FLOW_BYTES * size.flows };
    if expected.bytes > MOST_BYTES {
        let reason = format!(
            "This scenario needs about {:.1} GB of memory; a page may use {:.0} GB. Run it in a terminal.",
            expected.bytes / 1e9,
            MOST_BYTES / 1e9
        );
        return Err(Refused::Need(Need { cause: "memory", reason }));
    }
    Ok((scenario, expected))
}

fn needs_file(file: &files::Named) -> Need {
    let reason = format!(
        "This scenario reads the file \"{}\" ({}), and a page cannot read files. Run it in a terminal.",
        file.path, file.key
    );
    Need { cause: "files", reason }
}

impl Run {
    /// Builds a run of the scenario in `text`.
    ///
    /// # Errors
    /// Those of [`check`], and a network that is too large for the engine.
    pub fn new(text: &str, options: &Options) -> Result<Run, Refused> {
        let (scenario, _) = check(text)?;
        Run::of(scenario, options)
    }

    /// Builds a run of a scenario that [`check`] returned.
    ///
    /// # Errors
    /// A network that is too large for the engine.
    pub fn of(scenario: Scenario, options: &Options) -> Result<Run, Refused> {
        let (network, stop) = (scenario.network(), Time::ZERO + scenario.duration);
        let series = (options.samples > 0).then(|| {
            let (flows, links) = (options.flows.clone(), options.links.clone());
            let spec = series::Spec::new(network, scenario.duration, options.samples, flows, links);
            Series::new(&spec, network, scenario.scheme_names().len())
        });
        let cables = network.cables.len();
        let wanted = options.packets.map(|options| packets::Spec {
            from: at(options.from_s, stop),
            to: at(options.to_s, stop),
            most: options.most,
            flow: options.flow,
        });
        let (packets, mut packets_missing) = match wanted {
            Some(_) if cables > MOST_CABLES => {
                (None, Some(format!("The network has {cables} cables; packets are shown for up to {MOST_CABLES}.")))
            }
            wanted => (wanted.map(|spec| Packets::new(spec, network)), None),
        };
        let build = |packets: &Option<Packets>| {
            let mut config = scenario.build().map_err(Failed::Scenario)?;
            config
                .observers
                .extend(series.clone().map(|series| -> Box<dyn sparelane_sim::observe::Observer> { Box::new(series) }));
            config.observers.extend(
                packets.clone().map(|packets| -> Box<dyn sparelane_sim::observe::Observer> { Box::new(packets) }),
            );
            Simulation::new(config).map_err(Failed::Build)
        };
        let mut packets = packets;
        let built = match build(&packets) {
            // RCP's rate header takes the place of the field that tells packets apart. The run itself is possible.
            Err(Failed::Build(error @ BuildError::Unlogged { .. })) => {
                packets_missing = Some(format!("Packets cannot be shown: {error}."));
                packets = None;
                build(&packets)
            }
            built => built,
        };
        let simulation = built.map_err(|failed| {
            let message = match failed {
                Failed::Scenario(error) => error.message,
                Failed::Build(error) => error.to_string(),
            };
            let text = format!("{FILE}: {message}");
            Refused::Mistakes(vec![Mistake {
                line: None,
                columns: None,
                key: String::new(),
                value: None,
                message,
                text,
            }])
        })?;
        Ok(Run { scenario, simulation, series, packets, packets_missing })
    }

    /// The simulated time at which the run ends, seconds.
    pub fn duration_s(&self) -> f64 {
        (Time::ZERO + self.scenario.duration).as_secs_f64()
    }

    /// Handles up to `events` events. Returns the simulated time in seconds, and whether the run has ended.
    ///
    /// # Errors
    /// A law of physics was broken: a defect of the simulator.
    pub fn advance(&mut self, events: u64) -> Result<(f64, bool), PhysicsViolation> {
        let progress = self.simulation.advance(events)?;
        Ok((progress.now.as_secs_f64(), progress.finished))
    }

    /// Ends the run now, and returns its records.
    ///
    /// # Errors
    /// A law of physics was broken: a defect of the simulator.
    pub fn records(self) -> Result<Records, PhysicsViolation> {
        self.simulation.finish()
    }

    /// Ends the run now. Returns its results as JSON with columns: `RunResults` of the protocol, without the parts that
    /// the worker adds.
    ///
    /// # Errors
    /// A law of physics was broken: a defect of the simulator.
    pub fn finish(self) -> Result<(Json, Columns), PhysicsViolation> {
        let Run { scenario, simulation, series, packets, packets_missing } = self;
        let results = Results::new(&scenario, simulation.finish()?);
        let totals = results.records.totals;
        let mut columns = Columns::default();
        let network = scenario.network();
        let texts = |texts: &[String]| Json::List(texts.iter().map(Json::text).collect());
        let end = Time::from_ps(totals.end_ps);
        let series = series.map_or(Json::Null, |series| series.to_json(network, &results.schemes, &mut columns));
        let packets = packets.map_or(Json::Null, |packets| packets.to_json(network, end, &mut columns));
        let json = Json::object([
            ("digest", Json::text(&results.digest)),
            ("version", Json::text(VERSION)),
            ("seed", Json::whole(results.seed)),
            ("toml", Json::text(&results.scenario)),
            ("warnings", texts(&results.warnings)),
            (
                "totals",
                Json::object([
                    ("endS", Json::Number(end.as_secs_f64())),
                    ("events", Json::whole(totals.events)),
                    ("packetHops", Json::whole(totals.packet_hops)),
                    ("flows", Json::whole(totals.flows)),
                    ("finishedFlows", Json::whole(totals.finished_flows)),
                ]),
            ),
            ("network", network::to_json(network)),
            ("flows", columns.table(flow_columns(&results))),
            ("links", columns.table(link_columns(&results))),
            ("drops", columns.table(drop_columns(&results))),
            ("delays", columns.table(delay_columns(&results))),
            ("series", series),
            ("packets", packets),
            ("packetsMissing", packets_missing.map_or(Json::Null, Json::Text)),
        ]);
        Ok((json, columns))
    }
}

enum Failed {
    Scenario(sparelane_scenario::ScenarioError),
    Build(BuildError),
}

/// A time in seconds from the page, at most `stop`.
fn at(seconds: f64, stop: Time) -> Time {
    if seconds.is_nan() || seconds <= 0.0 {
        return Time::ZERO;
    }
    if seconds >= stop.as_secs_f64() { stop } else { Time::ZERO + Dur::from_secs_f64(seconds) }
}
