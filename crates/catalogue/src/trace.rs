//! Files of traces that links follow: Mahimahi's packet-delivery traces, and rates over time as CSV.
//!
//! The content decides on the format. If every line is one whole number, it is a trace of Mahimahi: each line is a time
//! in milliseconds at which 1500 bytes can leave. Otherwise the first line is the header of a CSV file with one column
//! of times (`time` with units, `time_s` or `time_ms`) and one of rates (`rate` with units, `rate_bps`, `rate_kbps` or
//! `rate_mbps`). Times count from the first row and are rounded to a microsecond. Each rate lasts until the next row,
//! and the last one as long as the one before it. Both kinds repeat at their end.

use crate::schema::{Field, Input, Purpose, ScenarioError, Source, units};
use sparelane_core::{Dur, Rate};
use sparelane_sim::trace::{Trace, TraceError};
use std::sync::Arc;

/// The largest file, bytes.
pub const MAX_BYTES: u64 = 64 << 20;
/// The latest time in a trace of Mahimahi.
const MAX_MS: u64 = 86_400_000;
/// The latest time and the highest rate in a CSV file, so that sums stay exact.
const MAX_SECONDS: f64 = 1e12;
const MAX_BPS: f64 = 1e14;

/// The columns of times and of rates, each with the unit as a factor; `None` means that each value has a unit.
const TIMES: &[(&str, Option<f64>)] = &[("time", None), ("time_s", Some(1.0)), ("time_ms", Some(1e-3))];
const RATES: &[(&str, Option<f64>)] =
    &[("rate", None), ("rate_bps", Some(1.0)), ("rate_kbps", Some(1e3)), ("rate_mbps", Some(1e6))];

/// Reads the trace that `field` names.
///
/// # Errors
/// The file is missing, too large, no text or no trace. The message names the line.
pub fn read(field: &Field<'_>, source: &Source) -> Result<Arc<Trace>, ScenarioError> {
    let input = source.read_at_most(field, Purpose::Trace, MAX_BYTES)?;
    parse(&input).map(Arc::new)
}

fn parse(input: &Input) -> Result<Trace, ScenarioError> {
    let lines = (1..).zip(input.text.lines().map(str::trim));
    let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
    let Some(&(number, first)) = lines.first() else { return Err(input.error(None, "the trace is empty")) };
    let found = if first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') {
        opportunities(&lines)
    } else if first.contains(',') {
        rates(&lines)
    } else {
        let allowed = "allowed: whole milliseconds (Mahimahi), or CSV with a header such as time_s,rate_mbps";
        Err((Some(number), format!("`{}` begins no trace; {allowed}", shortened(first))))
    };
    found.map_err(|(line, message)| input.error(line, message))
}

type Refusal = (Option<usize>, String);

/// The beginning of a line, for messages.
fn shortened(line: &str) -> String {
    line.chars().take(40).collect()
}

/// Puts an error at the line of its entry.
fn at_line(lines: &[(usize, &str)], error: TraceError) -> Refusal {
    let line = if let TraceError::Order { entry } = error { lines.get(entry).map(|line| line.0) } else { None };
    (line, error.to_string())
}

fn opportunities(lines: &[(usize, &str)]) -> Result<Trace, Refusal> {
    let time = |&(number, line): &(usize, &str)| {
        let ms = line.parse().ok().filter(|ms| *ms <= MAX_MS);
        let refuse = || format!("`{}` is no time; allowed: whole milliseconds from 0 to {MAX_MS}", shortened(line));
        ms.map(Dur::from_ms).ok_or_else(|| (Some(number), refuse()))
    };
    let times = lines.iter().map(time).collect::<Result<Vec<_>, _>>()?;
    Trace::opportunities(times).map_err(|error| at_line(lines, error))
}

fn rates(lines: &[(usize, &str)]) -> Result<Trace, Refusal> {
    let (header, rows) = (lines[0], &lines[1..]);
    let names: Vec<_> = header.1.split(',').map(str::trim).collect();
    let column = |known: &[(&str, Option<f64>)]| {
        let place = |(place, name): (usize, &&str)| known.iter().find(|one| one.0 == *name).map(|one| (place, one.1));
        let found: Vec<_> = names.iter().enumerate().filter_map(place).collect();
        let allowed = known.iter().map(|one| one.0).collect::<Vec<_>>().join(", ");
        match found[..] {
            [one] => Ok(one),
            _ => Err((Some(header.0), format!("{} such columns; allowed: exactly one of {allowed}", found.len()))),
        }
    };
    let (time, rate) = (column(TIMES)?, column(RATES)?);
    let mut found = Vec::with_capacity(rows.len());
    for &(number, line) in rows {
        let refuse = |message: String| (Some(number), message);
        let words: Vec<_> = line.split(',').map(str::trim).collect();
        if words.len() != names.len() {
            return Err(refuse(format!("{} fields; allowed: exactly {}, as in the header", words.len(), names.len())));
        }
        let (at, bps) = (words[time.0], words[rate.0]);
        let at = match time.1 {
            Some(unit) => decimal(at, MAX_SECONDS / unit),
            None => units::time_of(at).map(Dur::as_secs_f64),
        };
        let bps = match rate.1 {
            Some(unit) => decimal(bps, MAX_BPS / unit).map(|value| value * unit),
            None if bps == "0" => Ok(0.0),
            None => units::rate_of(bps).map(|rate| rate.as_bps() as f64),
        };
        let at = at.map_err(|allowed| refuse(format!("the time is `{}`; allowed: {allowed}", words[time.0])))?;
        let bps = bps.map_err(|allowed| refuse(format!("the rate is `{}`; allowed: {allowed}", words[rate.0])))?;
        found.push((at, Rate::from_bps(bps.round() as u64)));
    }
    if found.len() < 2 {
        return Err((None, format!("{} rows; allowed: at least 2, which give the length of a step", found.len())));
    }
    // Data sets often have the time of day: only differences count.
    if let Some(place) = found.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
        return Err(at_line(rows, TraceError::Order { entry: place + 1 }));
    }
    // Their difference comes before the conversion, and is rounded, because they have few digits to spare.
    let unit = time.1.unwrap_or(1.0);
    let (first, last) = (found[0].0, found[found.len() - 1].0);
    let length = (last - first + (last - found[found.len() - 2].0)) * unit;
    if length > 86_400.0 {
        return Err((None, format!("the trace lasts {length:.0} s; allowed: up to 24 hours")));
    }
    let micros = |seconds: f64| Dur::from_us((seconds * 1e6).round() as u64);
    let steps = found.iter().map(|&(at, rate)| (micros((at - first) * unit), rate)).collect();
    Trace::rates(steps, micros(length)).map_err(|error| at_line(rows, error))
}

/// A decimal number from 0 to `max`.
fn decimal(text: &str, max: f64) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..=max).contains(value));
    value.ok_or_else(|| format!("a number from 0 to {max:e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Result<Trace, String> {
        let input = Input { name: "t".to_owned(), format: None, text: text.to_owned(), purpose: Purpose::Trace };
        parse(&input).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_of_milliseconds_are_a_trace_of_mahimahi() {
        let found = trace("# a comment\n1\n1\n2\n4\n\n4\n4\n7\r\n10\n").expect("a trace");
        assert_eq!((found.mean(), found.period()), (Rate::from_bps(9_600_000), Dur::from_ms(10)));
    }

    #[test]
    fn csv_has_units_in_its_header_or_in_each_value() {
        let expected = Trace::rates(
            vec![(Dur::ZERO, Rate::from_mbps(8)), (Dur::from_ms(100), Rate::from_bps(0))],
            Dur::from_ms(200),
        );
        for text in [
            "time_s,rate_mbps\n0,8\n0.1,0\n",
            "rate_kbps, site, time_ms\n8000,a,1700000000000\n0,b,1700000000100\n",
            "time,rate\n0ms,8Mbps\n100ms,0\n",
        ] {
            assert_eq!(trace(text), expected.clone().map_err(|error| error.to_string()), "{text}");
        }
    }

    #[test]
    fn each_mistake_states_its_line_and_the_allowed_values() {
        for (text, message) in [
            ("", "t: this file is empty"),
            ("# nothing\n", "t: the trace is empty"),
            ("1\n3\n2\n", "t:3: times go back; allowed: times in order"),
            ("0\n0\n", "t: the trace lasts 0s; allowed: more than 0 s, up to 24 hours"),
            ("1\nx\n", "t:2: `x` is no time; allowed: whole milliseconds from 0 to 86400000"),
            ("-1\n", "t:1: `-1` is no time; allowed: whole milliseconds from 0 to 86400000"),
            (
                "a b\n",
                "t:1: `a b` begins no trace; allowed: whole milliseconds (Mahimahi), or CSV with a header such as",
            ),
            ("time_s,rate_mbps\n0,0\n1,0\n", "t: the mean rate is 0 bit/s; allowed: at least 1000 bit/s"),
            ("time_s,rate_mbps\n0,1\n", "t: 1 rows; allowed: at least 2, which give the length of a step"),
            ("time_s,rate_mbps\n1,1\n0,1\n", "t:3: times go back; allowed: times in order"),
            ("time_s,rate_mbps\n0,-1\n1,1\n", "t:2: the rate is `-1`; allowed: a number from 0 to 1e8"),
            ("time_s,rate_mbps\n0,1,2\n", "t:2: 3 fields; allowed: exactly 2, as in the header"),
            (
                "time_s,speed\n0,1\n",
                "t:1: 0 such columns; allowed: exactly one of rate, rate_bps, rate_kbps, rate_mbps",
            ),
        ] {
            let error = trace(text).expect_err("a mistake");
            assert!(error.starts_with(message), "{error}");
        }
    }
}
