//! The functions that JavaScript calls. They convert arguments and results, and have no logic.

use crate::columns::{Columns, Data};
use crate::run::{Options, PacketOptions, Run, check};
use crate::{VERSION, catalogue, files, text};
use sparelane_scenario::Json;
use std::panic;
use std::sync::{Mutex, PoisonError};
use wasm_bindgen::prelude::wasm_bindgen;

/// The message of the last panic. After a panic the module stops, so the worker reads the message and is then replaced.
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Keeps the message of a panic for [`last_panic`]. Runs once, when the module is instantiated.
#[wasm_bindgen(start)]
pub fn start() {
    panic::set_hook(Box::new(|info| {
        *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = info.to_string();
    }));
}

/// The message of the last panic; empty if there was none.
#[wasm_bindgen(js_name = lastPanic)]
pub fn last_panic() -> String {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The version of sparelane.
#[wasm_bindgen]
pub fn version() -> String {
    VERSION.to_owned()
}

/// See [`catalogue::catalogue`].
#[wasm_bindgen(js_name = catalogue)]
pub fn catalogue_json() -> String {
    catalogue::catalogue().to_string()
}

/// See [`catalogue::schema`].
#[wasm_bindgen]
pub fn schema() -> String {
    catalogue::schema().to_string()
}

/// See [`text::parse`].
#[wasm_bindgen]
pub fn parse(toml: &str) -> String {
    text::parse(toml).to_string()
}

/// See [`text::set_key`].
#[wasm_bindgen(js_name = setKey)]
pub fn set_key(toml: &str, path: Vec<String>, value: Option<String>) -> String {
    text::edited(text::set_key(toml, &path, value.as_deref())).to_string()
}

/// See [`text::to_toml`].
#[wasm_bindgen(js_name = toToml)]
pub fn to_toml(tables: &str) -> String {
    text::edited(text::to_toml(tables)).to_string()
}

/// True if a scenario names files.
#[wasm_bindgen(js_name = needsFiles)]
pub fn needs_files(toml: &str) -> bool {
    !files::named(toml).is_empty()
}

/// The expected size of a run as JSON: `{"flows": ..., "bytes": ...}`, or the reason against the run.
#[wasm_bindgen]
pub fn expect(toml: &str) -> String {
    let json = match check(toml) {
        Ok((_, size)) => Json::object([("flows", Json::Number(size.flows)), ("bytes", Json::Number(size.bytes))]),
        Err(refused) => refused.to_json(),
    };
    json.to_string()
}

/// A run, or the reason against it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session {
    run: Option<Run>,
    refused: String,
    now_s: f64,
    columns: Columns,
}

#[wasm_bindgen]
impl Session {
    /// Builds a run. With `samples` = 0 there are no series, and with `most_packets` = 0 no packets.
    #[wasm_bindgen(constructor)]
    #[expect(clippy::too_many_arguments, reason = "named in worker.ts")]
    pub fn new(
        toml: &str,
        samples: u32,
        flows: Vec<u32>,
        links: Vec<u32>,
        most_packets: u32,
        from_s: f64,
        to_s: f64,
        flow: Option<u32>,
    ) -> Session {
        let packets = (most_packets > 0).then_some(PacketOptions { from_s, to_s, most: most_packets, flow });
        let (run, refused) = match Run::new(toml, &Options { samples, flows, links, packets }) {
            Ok(run) => (Some(run), String::new()),
            Err(refused) => (None, refused.to_json().to_string()),
        };
        Session { run, refused, now_s: 0.0, columns: Columns::default() }
    }

    /// The reason against the run as JSON; empty if it can run.
    pub fn refused(&self) -> String {
        self.refused.clone()
    }

    /// The simulated time at which the run ends, seconds.
    #[wasm_bindgen(js_name = durationS)]
    pub fn duration_s(&self) -> f64 {
        self.run.as_ref().map_or(0.0, Run::duration_s)
    }

    /// Simulated time, seconds.
    #[wasm_bindgen(js_name = nowS)]
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Handles up to `events` events. Returns true once the run has ended. A defect of the simulator is an exception.
    pub fn advance(&mut self, events: u32) -> Result<bool, String> {
        let run = self.run.as_mut().ok_or("there is no run")?;
        let (now_s, is_over) = run.advance(u64::from(events)).map_err(|violation| violation.to_string())?;
        self.now_s = now_s;
        Ok(is_over)
    }

    /// Ends the run now, and returns the number of packet-hops. For trials.
    #[wasm_bindgen(js_name = packetHops)]
    pub fn packet_hops(&mut self) -> Result<f64, String> {
        let run = self.run.take().ok_or("there is no run")?;
        let records = run.records().map_err(|violation| violation.to_string())?;
        Ok(records.totals.packet_hops as f64)
    }

    /// Ends the run now, and returns its results as JSON. `column` has the columns.
    pub fn finish(&mut self) -> Result<String, String> {
        let run = self.run.take().ok_or("there is no run")?;
        let (json, columns) = run.finish().map_err(|violation| violation.to_string())?;
        self.columns = columns;
        Ok(json.to_string())
    }

    /// The type of a column: 0 for 64-bit numbers, 1 for 32-bit and 2 for 8-bit whole numbers, 3 if there is none.
    #[wasm_bindgen(js_name = columnType)]
    pub fn column_type(&self, index: usize) -> u32 {
        match self.columns.0.get(index) {
            Some(Data::F64(_)) => 0,
            Some(Data::U32(_)) => 1,
            Some(Data::U8(_)) => 2,
            None => 3,
        }
    }

    /// Takes a column of 64-bit numbers.
    #[wasm_bindgen(js_name = takeF64)]
    pub fn take_f64(&mut self, index: usize) -> Vec<f64> {
        match self.columns.0.get_mut(index) {
            Some(Data::F64(values)) => std::mem::take(values),
            _ => Vec::new(),
        }
    }

    /// Takes a column of 32-bit whole numbers.
    #[wasm_bindgen(js_name = takeU32)]
    pub fn take_u32(&mut self, index: usize) -> Vec<u32> {
        match self.columns.0.get_mut(index) {
            Some(Data::U32(values)) => std::mem::take(values),
            _ => Vec::new(),
        }
    }

    /// Takes a column of 8-bit whole numbers.
    #[wasm_bindgen(js_name = takeU8)]
    pub fn take_u8(&mut self, index: usize) -> Vec<u8> {
        match self.columns.0.get_mut(index) {
            Some(Data::U8(values)) => std::mem::take(values),
            _ => Vec::new(),
        }
    }
}
