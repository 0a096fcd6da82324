//! RAPID's p-streams, smoothing and estimates, for use without a connection.

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sparelane_cc::algos::rapid::{Bass, Estimator, Excursion, Pair, Sample, Shape};
use sparelane_core::{Dur, Rate};

type Numbers<'py> = Bound<'py, PyArray1<f64>>;

/// The longest allowed time in seconds. Real gaps are far shorter, and sums of many such times still fit.
const MAX_SPAN_S: f64 = 1e6;

/// Returns the gap before each packet of a p-stream in seconds, and the rate that it probes in bits per second.
///
/// The stream has `rates` rates with `packets_per_rate` packets each, spread by the factor `spread` around
/// `average_bps`. `wire_bytes` is the size of a packet with its headers. Raises `ValueError` if a number is not above
/// zero.
#[pyfunction]
pub fn rapid_gaps(
    py: Python<'_>,
    rates: u32,
    packets_per_rate: u32,
    spread: f64,
    average_bps: u64,
    wire_bytes: u64,
) -> PyResult<(Numbers<'_>, Numbers<'_>)> {
    if rates == 0 || packets_per_rate == 0 || average_bps == 0 || wire_bytes == 0 {
        return Err(PyValueError::new_err(
            "rates, packets_per_rate, average_bps or wire_bytes is 0; allowed: a number above 0",
        ));
    }
    if !(spread.is_finite() && spread > 0.0) {
        return Err(PyValueError::new_err("the spread must be a number above 0"));
    }
    let shape = Shape::new(rates, packets_per_rate, spread);
    let probed: Vec<Rate> = (0..shape.packets()).map(|index| shape.rate(index, Rate::from_bps(average_bps))).collect();
    let gaps: Vec<f64> = probed.iter().map(|&rate| Shape::gap(wire_bytes, rate).as_secs_f64()).collect();
    let rates: Vec<f64> = probed.iter().map(|rate| rate.as_bps() as f64).collect();
    Ok((gaps.into_pyarray(py), rates.into_pyarray(py)))
}

/// Smooths the gaps of a p-stream by BASS.
///
/// `in_event` says whether the stream begins within an event of the previous one. Returns send gaps and receive gaps in
/// seconds, and the index at which an incomplete event at the end begins. Raises `ValueError` if a number is out of
/// range.
#[pyfunction]
pub fn bass<'py>(
    py: Python<'py>,
    send_s: PyReadonlyArray1<'py, f64>,
    receive_s: PyReadonlyArray1<'py, f64>,
    passes: u32,
    factor: f64,
    floor_s: f64,
    in_event: bool,
) -> PyResult<(Numbers<'py>, Numbers<'py>, usize)> {
    let bass = Bass { passes, factor: share("factor", factor)?, floor: span(floor_s)? };
    let mut gaps = pairs(&send_s, &receive_s)?;
    let end = bass.smooth(&mut gaps, in_event);
    let column = |of: fn(&Pair) -> Dur| gaps.iter().map(|gap| of(gap).as_secs_f64()).collect::<Vec<_>>();
    let (send, receive) = (column(|gap| gap.send), column(|gap| gap.receive));
    Ok((send.into_pyarray(py), receive.into_pyarray(py), end))
}

/// Returns the estimates of consecutive p-streams in bits per second; `None` for a stream with a single gap.
///
/// `lengths` has the number of gaps of each stream. Raises `ValueError` if lengths do not match, or a number is out of
/// range.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the thresholds of RAPID, one by one")]
pub fn rapid_estimates(
    send_s: PyReadonlyArray1<'_, f64>,
    receive_s: PyReadonlyArray1<'_, f64>,
    rate_bps: PyReadonlyArray1<'_, f64>,
    lengths: Vec<usize>,
    passes: u32,
    factor: f64,
    floor_s: f64,
    excursion_share: f64,
    persistence: f64,
    samples: u32,
) -> PyResult<Vec<Option<f64>>> {
    let bass = Bass { passes, factor: share("factor", factor)?, floor: span(floor_s)? };
    let excursion =
        Excursion { share: share("share", excursion_share)?, persistence: share("persistence", persistence)?, samples };
    let gaps = pairs(&send_s, &receive_s)?;
    let rates = rate_bps.as_slice()?;
    if gaps.len() != rates.len() || lengths.iter().sum::<usize>() != rates.len() {
        return Err(PyValueError::new_err(
            "there must be one rate for each gap, and the lengths must add up to the number of gaps",
        ));
    }
    let samples: Vec<Sample> =
        gaps.iter().zip(rates).map(|(&gap, &bps)| Sample { gap, rate: Rate::from_bps(bps as u64) }).collect();
    let most = lengths.iter().copied().max().unwrap_or_default();
    let mut estimator = Estimator::new(bass, excursion, most);
    let mut from = 0;
    let estimate = |length: usize| {
        let stream = &samples[from..from + length];
        from += length;
        estimator.estimate(stream).map(|rate| rate.as_bps() as f64)
    };
    Ok(lengths.into_iter().map(estimate).collect())
}

fn pairs(send_s: &PyReadonlyArray1<'_, f64>, receive_s: &PyReadonlyArray1<'_, f64>) -> PyResult<Vec<Pair>> {
    let (send, receive) = (send_s.as_slice()?, receive_s.as_slice()?);
    if send.len() != receive.len() {
        return Err(PyValueError::new_err("the numbers of send gaps and receive gaps differ"));
    }
    send.iter().zip(receive).map(|(&send, &receive)| Ok(Pair { send: span(send)?, receive: span(receive)? })).collect()
}

fn span(seconds: f64) -> PyResult<Dur> {
    if (0.0..=MAX_SPAN_S).contains(&seconds) {
        Ok(Dur::from_ps((seconds * 1e12).round() as u64))
    } else {
        Err(PyValueError::new_err(format!("{seconds} s; allowed: a time from 0 s to {MAX_SPAN_S} s")))
    }
}

fn share(name: &str, value: f64) -> PyResult<f64> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(PyValueError::new_err(format!("{name} is {value}; allowed: a number from 0")))
    }
}
