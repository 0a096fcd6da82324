//! Scenario files: from text to a run, and from a run to columns of results.
//!
//! A scenario is TOML with units in its values. It is parsed once into types, with overrides from the command line. The
//! parser finds every mistake, and reports it with file, line, key, value and the allowed values. The result is a
//! [`Scenario`], which builds the configuration of a run. The run's records become [`Results`] with named columns.
//!
//! Every key is declared in a table next to the code that reads it. These tables determine the allowed keys and their
//! defaults, and [`catalogue`] lists them.
//!
//! ```
//! use sparelane_scenario::{Scenario, Source};
//!
//! let text = r#"
//!     duration = "5s"
//!     [topology]
//!     kind = "dumbbell"
//!     [scheme.tcp]
//!     controller = "cubic"
//!     [workload]
//!     kind = "bulk"
//!     size = "9MB"
//! "#;
//! let source = Source { file: "example.toml".to_owned(), folder: ".".into() };
//! let scenario = Scenario::parse(text, &source, &["topology.bottleneck_rate=50Mbps".to_owned()])?;
//! let records = scenario.simulate()?.run()?;
//! assert_eq!(records.totals.finished_flows, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod changes;
pub mod columns;
mod cross_traffic;
pub mod digest;
mod drops;
mod effects;
mod emulate;
mod host;
mod json_schema;
mod links;
mod listing;
mod measure;
mod packet_log;
mod pause;
mod pfc;
mod ports;
mod preset;
mod queue_at;
mod queues;
mod rcp_rates;
pub mod reach;
pub mod results;
mod sampling;
pub mod scenario;
mod schemes;
mod size;
mod switch;
mod tables;
mod telemetry;
mod transport;
mod warnings;

pub use columns::{Column, Data, Table};
pub use digest::digest;
pub use emulate::EmulateSpec;
pub use json_schema::{Document, json_schema};
pub use listing::{Entry, Forms, Parameter, catalogue};
pub use ports::Port;
pub use results::{
    Results, columns_of_drops, columns_of_links, cross_traffic_columns, delay_columns, drop_columns, flow_columns,
    link_columns, packet_columns, series_columns,
};
pub use scenario::{Exported, Scenario, whole_nanoseconds};
pub use size::Size;
pub use sparelane_catalogue::schema::json::Json;
pub use sparelane_catalogue::schema::{ScenarioError, Source, formats, open_capture, overrides, units};
pub use sparelane_catalogue::workload::list::{capture, hosts_needed};
pub use sparelane_catalogue::{Catalogue, aliases};
pub use tables::tables;
