//! `[scheme.NAME]`: a controller with its parameters and its transport, under a name of the user's choice.

use crate::preset::Preset;
use crate::transport::{self, Transport};
use sparelane_catalogue::schema::ScenarioError;
use sparelane_catalogue::schema::document::Item;
use sparelane_catalogue::schema::{Fallback, Key, Kind, Shape};
use sparelane_catalogue::schema::{Field, Section};
use sparelane_cc::{Blueprint, CongestionControl, Controller, DefaultValue, Registry, TELEMETRY_BYTES, Value, Values};
use sparelane_core::Rate;
use sparelane_sim::{CLASSES, MAX_PACKET_BYTES, Scheme};
use sparelane_transport::{Ecn, MAX_HEADER_BYTES, TransportConfig};
use std::sync::Arc;

/// The keys of every scheme; the parameters of its controller are added.
pub static SCHEME: &[Key] = &[
    Key::new(
        "controller",
        Kind::Special("the name of a controller", &Shape::Entry("controller")),
        Fallback::Required,
        "the congestion controller",
    ),
    Key::new(
        "transport",
        Kind::Special("a table with keys of [transport]", &Shape::Table("transport")),
        Fallback::Nothing("as [transport]"),
        "transport settings of this scheme alone",
    ),
    Key::new(
        "class",
        Kind::Whole { min: 0, max: CLASSES as u64 - 1 },
        Fallback::Value("0"),
        "priority class of all packets of the scheme, 0 the highest; RC3's low-priority packets are in classes below it",
    ),
];

/// The keys of a nested controller other than its parameters.
pub static INNER: &[Key] = &[Key::new(
    "controller",
    Kind::Special("the name of a controller", &Shape::Entry("controller")),
    Fallback::Required,
    "the nested controller",
)];

/// A hint for users whose own controller is not found.
const OF_YOUR_OWN: &str =
    "; register a controller of your own first: in Python by @sparelane.controller, for a command by --plugin";

/// The schemes of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Schemes {
    /// The schemes, in the order of the file.
    pub all: Vec<Scheme>,
    /// The highest class number that each scheme sends in.
    pub lowest_class: Vec<u8>,
}

impl Schemes {
    /// Reads all schemes. Controllers are looked up in `registry`, `transport` gives the defaults, and `line_rate` is
    /// the rate of the slowest interface of a host.
    pub fn read(
        field: &Field<'_>,
        registry: &Arc<Registry>,
        transport: Transport,
        line_rate: Rate,
    ) -> Result<Schemes, ScenarioError> {
        let mut schemes = Schemes { all: Vec::new(), lowest_class: Vec::new() };
        for (name, field) in field.named()? {
            let (scheme, lowest_class) = read_scheme(name, field, registry, transport, line_rate)?;
            schemes.all.push(scheme);
            schemes.lowest_class.push(lowest_class);
        }
        if schemes.all.is_empty() || schemes.all.len() > usize::from(u16::MAX) {
            return Err(field.error("a scenario needs at least one scheme, as in [scheme.tcp]"));
        }
        Ok(schemes)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.all.iter().map(|scheme| scheme.name.as_str())
    }

    /// The first scheme that sends at low priority.
    pub fn with_low_priority(&self) -> Option<&str> {
        self.names().zip(&self.lowest_class).find(|(_, class)| **class > 0).map(|(name, _)| name)
    }

    /// The largest packet that any scheme sends, headers included.
    pub fn largest_packet_bytes(&self) -> u64 {
        self.all.iter().map(|scheme| scheme.transport.packet_bytes()).max().unwrap_or(0)
    }
}

fn read_scheme(
    name: &str,
    field: Field<'_>,
    registry: &Arc<Registry>,
    transport: Transport,
    line_rate: Rate,
) -> Result<(Scheme, u8), ScenarioError> {
    let (controller, section) = open(field, SCHEME, registry, |_| true)?;
    let transport = match section.given("transport") {
        Some(field) => transport::read(field, transport)?,
        None => transport,
    };
    let Transport { preset, config: mut transport } = transport;
    let (values, inner) = values(controller, &section, registry, preset)?;
    let plan = Blueprint {
        line_rate,
        header_bytes: transport.header_bytes,
        registry,
        ..Blueprint::of_any(transport.mss_bytes, &inner)
    };
    let built = controller.build(&values, &plan).map_err(|error| section.whole_table().error(error.to_string()))?;
    if built.needs().exact_marks {
        let lacks = match transport.ecn {
            Ecn::Accurate if transport.peer_ecn != Ecn::Accurate => {
                Some("needs receivers that report every mark; allowed: peer_ecn = \"accurate\" in [transport]")
            }
            ecn if !ecn.reports_every_mark() => Some(
                "needs receivers that report every mark; allowed: with ecn = \"dctcp\", \"l4s\" or \"accurate\" in \
                 [transport]",
            ),
            _ => None,
        };
        if let Some(message) = lacks {
            return Err(section.need("controller")?.error(message));
        }
    }
    if !transport.handshake {
        check_rdma(&transport, &*built).map_err(|message| match section.need("controller") {
            Ok(controller) => controller.error(message),
            Err(error) => error,
        })?;
    }
    if built.needs().telemetry {
        transport.header_bytes += TELEMETRY_BYTES;
        if transport.header_bytes > MAX_HEADER_BYTES || transport.packet_bytes() > MAX_PACKET_BYTES {
            return Err(section.need("controller")?.error(format!(
                "telemetry adds {TELEMETRY_BYTES} bytes to each header, which makes {} bytes, and a packet {}; allowed: \
                 headers up to {MAX_HEADER_BYTES}B and packets up to {MAX_PACKET_BYTES}B",
                transport.header_bytes,
                transport.packet_bytes()
            )));
        }
    }
    let class = section.need("class")?.whole()? as u8;
    let lowest_class = class + built.lowest_class();
    if usize::from(lowest_class) >= CLASSES {
        let message = format!("sends in class {lowest_class}; there are classes 0 to {}", CLASSES - 1);
        return Err(section.given("class").unwrap_or_else(|| section.whole_table().clone()).error(message));
    }
    let (name, registry) = (name.to_owned(), Arc::clone(registry));
    let scheme = Scheme { name, controller: *controller, registry, values, inner, transport: transport.into(), class };
    Ok((scheme, lowest_class))
}

/// Checks that a scheme needs no handshake and, with go-back-N, that it sends in order.
fn check_rdma(transport: &TransportConfig, controller: &dyn CongestionControl) -> Result<(), &'static str> {
    if transport.ecn == Ecn::Accurate {
        return Err(
            "ecn = \"accurate\" is negotiated in a handshake, and mode = \"rdma\" has none; allowed: \"dctcp\"",
        );
    }
    if controller.desired_rate().is_some() {
        return Err("gets its first rate in a handshake, and mode = \"rdma\" has none; allowed: mode = \"tcp\"");
    }
    if transport.goes_back() && controller.uses_tail() {
        return Err("sends from the end of the flow, and a receiver with go-back-N drops these segments; allowed: \
                    rdma_recovery = \"selective\" in [transport]");
    }
    Ok(())
}

/// The controller that a table names, and the table with that controller's parameters as keys.
fn open<'d, 'r>(
    field: Field<'d>,
    shared: &[Key],
    registry: &'r Registry,
    eligible: fn(&Controller) -> bool,
) -> Result<(&'r Controller, Section<'d>), ScenarioError> {
    let name = field.entry("controller", Kind::Special("the name of a controller", &Shape::Entry("controller")))?;
    let controller = find(&name, registry, eligible)?;
    let params: Vec<Key> = controller.params.iter().map(Key::declared).collect();
    Ok((controller, field.section(&[shared, &params])?))
}

fn find<'r>(
    name: &Field<'_>,
    registry: &'r Registry,
    eligible: fn(&Controller) -> bool,
) -> Result<&'r Controller, ScenarioError> {
    let allowed = registry.all().iter().filter(|controller| eligible(controller));
    let word = name.word(allowed.map(|controller| controller.name)).map_err(|mut error| {
        if matches!(name.item(), Item::Text(_)) {
            error.message.push_str(OF_YOUR_OWN);
        }
        error
    })?;
    registry.find(word).ok_or_else(|| name.refuse("unknown"))
}

/// Returns true if a controller can be nested: it must not contain a controller itself.
fn stands_alone(controller: &Controller) -> bool {
    controller.params.iter().all(|param| param.kind != sparelane_cc::Kind::Controller)
}

/// The parameters of a controller under a preset, before the table's own.
fn preset_values(controller: &Controller, preset: Option<Preset>) -> Values {
    preset.map_or_else(Values::default, |preset| preset.parameters(controller))
}

/// The parameters of a controller, and those of the nested one: from the tables, otherwise from the preset.
fn values(
    controller: &Controller,
    section: &Section<'_>,
    registry: &Registry,
    preset: Option<Preset>,
) -> Result<(Values, Values), ScenarioError> {
    let (mut values, mut inner) = (preset_values(controller, preset), Values::default());
    for param in controller.params {
        match (section.given(param.name), param.kind, param.default) {
            (Some(field), sparelane_cc::Kind::Controller, _) => {
                let (name, given) = read_inner(&field, registry, preset)?;
                values.set(param.name, Value::Word(name.to_owned()));
                inner = given;
            }
            (Some(field), ..) => values.set(param.name, field.declared(param)?),
            (None, sparelane_cc::Kind::Controller, DefaultValue::Word(name)) => {
                inner = registry.find(name).map_or_else(Values::default, |inside| preset_values(inside, preset));
            }
            (None, ..) => {}
        }
    }
    Ok((values, inner))
}

/// Reads a nested controller: its name, or a table with its name and parameters.
fn read_inner(
    field: &Field<'_>,
    registry: &Registry,
    preset: Option<Preset>,
) -> Result<(&'static str, Values), ScenarioError> {
    if !field.is_table() {
        let controller = find(field, registry, stands_alone)?;
        return Ok((controller.name, preset_values(controller, preset)));
    }
    let (controller, section) = open(field.clone(), INNER, registry, stands_alone)?;
    Ok((controller.name, values(controller, &section, registry, preset)?.0))
}
