//! Distributions of flow sizes in payload bytes.
//!
//! A draw is a whole number of bytes, at least one. The transport divides it into segments.

mod forms;
mod papers;

use crate::workload::WorkloadError;
use crate::workload::draws::{normal, pareto};
use sparelane_core::Stream;

pub use forms::{ReadSizes, SIZE_FORMS, SizeContext, SizeForm, read_sizes};
pub use papers::{data_mining_flow_sizes, rc3_flow_sizes, w2000_flow_sizes, web_search_flow_sizes};

/// The largest flow of a distribution: a petabyte, below which a float represents every whole number.
const MAX_BYTES: u64 = 1_000_000_000_000_000;
/// Maximum deviation of the probabilities of a list from a sum of one.
const SUM_TOLERANCE: f64 = 1e-6;
/// Maximum sigma; beyond it the mean is meaningless.
const MAX_SIGMA: f64 = 10.0;
/// Maximum mu, about the logarithm of the largest flow.
const MAX_MU: f64 = 34.0;
/// Maximum alpha; beyond it a Pareto distribution is practically fixed.
const MAX_ALPHA: f64 = 100.0;

/// A distribution of flow sizes in payload bytes, valid by construction.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution(Shape);

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Fixed(u64),
    /// Sizes with their cumulative probabilities; the last is exactly one.
    Points(Vec<(u64, f64)>),
    /// Corners of a cumulative distribution with straight lines between them; the last is exactly one.
    Cdf(Vec<(u64, f64)>),
    LogNormal {
        median_bytes: f64,
        sigma: f64,
        cap_bytes: f64,
    },
    BodyAndTail(BodyAndTail),
}

/// A log-normal body and a Pareto tail. A share of all sizes is drawn from the tail, the others from the body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyAndTail {
    /// Mean of the body's logarithm (of bytes).
    pub body_mu: f64,
    /// Standard deviation of the body's logarithm.
    pub body_sigma: f64,
    /// The share of the tail.
    pub tail_share: f64,
    /// The smallest size in the tail: the Pareto's k.
    pub tail_from_bytes: u64,
    /// The Pareto's alpha.
    pub tail_alpha: f64,
    /// Larger draws are cut to this size.
    pub largest_bytes: u64,
}

impl SizeDistribution {
    /// Creates a distribution in which every flow has `bytes` bytes.
    ///
    /// # Errors
    /// Fails if the size is out of bounds.
    pub fn fixed(bytes: u64) -> Result<SizeDistribution, WorkloadError> {
        Ok(SizeDistribution(Shape::Fixed(size("the size", bytes, 1)?)))
    }

    /// Creates a distribution of point masses, each a size in bytes and its probability. Nothing in between is ever
    /// drawn.
    ///
    /// # Errors
    /// Fails without points, if sizes are out of bounds or not increasing, if a probability is not above 0, or if the
    /// sum deviates from 1 by more than 10^-6.
    pub fn points(points: &[(u64, f64)]) -> Result<SizeDistribution, WorkloadError> {
        let mut cumulative = Vec::with_capacity(points.len());
        let (mut sum, mut previous) = (0.0, 0);
        for (index, &(bytes, probability)) in points.iter().enumerate() {
            let which = format!("the size of point {}", index + 1);
            size(&which, bytes, previous + 1)?;
            if !(probability > 0.0 && probability <= 1.0) {
                let message = format!("the probability of {bytes} bytes is {probability}; allowed: above 0, at most 1");
                return Err(WorkloadError::new(message));
            }
            sum += probability;
            previous = bytes;
            cumulative.push((bytes, sum));
        }
        end_at_one("the probabilities add up to", &mut cumulative)?;
        Ok(SizeDistribution(Shape::Points(cumulative)))
    }

    /// Creates a cumulative distribution. Each corner is a size in bytes and the probability of that size or less, with
    /// straight lines between corners. A first corner above 0, and a rise at a repeated size, are masses at that size.
    ///
    /// The first size may be 0 if its probability is 0: the line begins there, although no draw is below one byte.
    ///
    /// # Errors
    /// Fails without corners, if sizes are out of bounds, if corners do not rise (one of the two values may stay), or
    /// if the end deviates from 1 by more than 10^-6.
    pub fn cdf(corners: &[(u64, f64)]) -> Result<SizeDistribution, WorkloadError> {
        let mut checked: Vec<(u64, f64)> = Vec::with_capacity(corners.len());
        for (index, &(bytes, probability)) in corners.iter().enumerate() {
            let (last_bytes, last_probability) = checked.last().copied().unwrap_or((0, 0.0));
            let least = if probability > 0.0 { last_bytes.max(1) } else { last_bytes };
            let which = format!("the size of corner {}", index + 1);
            size(&which, bytes, least)?;
            let rises = index == 0 || bytes > last_bytes || probability > last_probability;
            if !(probability >= last_probability && probability <= 1.0 + SUM_TOLERANCE && rises) {
                let message = format!(
                    "corner {} is {probability} at {bytes} bytes, after {last_probability} at {last_bytes}; allowed: \
                     probabilities that never fall, up to 1, and no corner twice",
                    index + 1
                );
                return Err(WorkloadError::new(message));
            }
            checked.push((bytes, probability));
        }
        end_at_one("the cumulative distribution ends at", &mut checked)?;
        Ok(SizeDistribution(Shape::Cdf(checked)))
    }

    /// Creates a log-normal distribution: `exp` of a normal with mean `ln(median_bytes)` and standard deviation
    /// `sigma`, cut to `cap_bytes` and rounded to the nearest byte.
    ///
    /// # Errors
    /// Fails if the median or cap is out of bounds, the cap is below the median, or sigma is not above 0 or above 10.
    pub fn log_normal(median_bytes: u64, sigma: f64, cap_bytes: u64) -> Result<SizeDistribution, WorkloadError> {
        let median_bytes = size("the median size", median_bytes, 1)?;
        let cap_bytes = size("the cap", cap_bytes, median_bytes)?;
        if !(sigma > 0.0 && sigma <= MAX_SIGMA) {
            return Err(WorkloadError::new(format!("sigma is {sigma}; allowed: above 0, at most {MAX_SIGMA}")));
        }
        let shape = Shape::LogNormal { median_bytes: median_bytes as f64, sigma, cap_bytes: cap_bytes as f64 };
        Ok(SizeDistribution(shape))
    }

    /// Creates a distribution with a body and a tail, rounded to the nearest byte.
    ///
    /// # Errors
    /// Fails if sigma is not above 0 or above 10, the share is not between 0 and 1, alpha is not above 0, or the
    /// largest size is out of bounds or below the tail's smallest.
    pub fn body_and_tail(shape: BodyAndTail) -> Result<SizeDistribution, WorkloadError> {
        let from_bytes = size("the tail's smallest size", shape.tail_from_bytes, 1)?;
        size("the largest size", shape.largest_bytes, from_bytes)?;
        let BodyAndTail { body_mu, body_sigma, tail_share, tail_alpha, .. } = shape;
        for (name, value, least, most) in [
            ("the body's mu", body_mu, 0.0, MAX_MU),
            ("the body's sigma", body_sigma, 0.0, MAX_SIGMA),
            ("the tail's alpha", tail_alpha, 0.0, MAX_ALPHA),
        ] {
            if !(value > least && value <= most) {
                return Err(WorkloadError::new(format!("{name} is {value}; allowed: above {least}, at most {most}")));
            }
        }
        if !(0.0..=1.0).contains(&tail_share) {
            return Err(WorkloadError::new(format!("the tail's share is {tail_share}; allowed: 0 to 1")));
        }
        Ok(SizeDistribution(Shape::BodyAndTail(shape)))
    }

    /// Returns the expected size of a draw in bytes. It is exact, except that for a log-normal the rounding to whole
    /// bytes (less than a byte) is ignored.
    pub fn mean_bytes(&self) -> f64 {
        match &self.0 {
            Shape::Fixed(bytes) => *bytes as f64,
            Shape::Points(points) => masses(points).map(|(bytes, mass)| bytes as f64 * mass).sum(),
            Shape::Cdf(corners) => cdf_mean(corners),
            Shape::LogNormal { median_bytes, sigma, cap_bytes } => log_normal_mean(*median_bytes, *sigma, *cap_bytes),
            Shape::BodyAndTail(shape) => {
                let (from, largest) = (shape.tail_from_bytes as f64, shape.largest_bytes as f64);
                let body = log_normal_mean(libm::exp(shape.body_mu), shape.body_sigma, largest);
                (1.0 - shape.tail_share) * body + shape.tail_share * pareto_mean(from, shape.tail_alpha, largest)
            }
        }
    }

    /// Returns the largest size that is ever drawn, in bytes.
    pub fn max_bytes(&self) -> u64 {
        match &self.0 {
            Shape::Fixed(bytes) => *bytes,
            Shape::Points(sizes) | Shape::Cdf(sizes) => sizes.last().map_or(1, |&(bytes, _)| bytes.max(1)),
            Shape::LogNormal { cap_bytes, .. } => *cap_bytes as u64,
            Shape::BodyAndTail(shape) => shape.largest_bytes,
        }
    }

    /// Draws a size in bytes.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        match &self.0 {
            Shape::Fixed(bytes) => *bytes,
            Shape::Points(points) => points[position(points, stream.unit())].0,
            // Invert the cumulative distribution on the line that contains the draw.
            Shape::Cdf(corners) => {
                let u = stream.unit();
                let at = position(corners, u);
                let (high, high_probability) = corners[at];
                let Some(&(low, low_probability)) = at.checked_sub(1).and_then(|before| corners.get(before)) else {
                    return high;
                };
                let share = (u - low_probability) / (high_probability - low_probability);
                whole_bytes(low as f64 + (high - low) as f64 * share)
            }
            Shape::LogNormal { median_bytes, sigma, cap_bytes } => {
                whole_bytes((median_bytes * libm::exp(sigma * normal(stream))).min(*cap_bytes))
            }
            Shape::BodyAndTail(shape) => {
                let bytes = if stream.unit() < shape.tail_share {
                    pareto(shape.tail_from_bytes as f64, shape.tail_alpha, stream)
                } else {
                    libm::exp(shape.body_mu + shape.body_sigma * normal(stream))
                };
                whole_bytes(bytes.min(shape.largest_bytes as f64))
            }
        }
    }
}

/// Returns `bytes` if a flow may have this size and it is at least `least`.
fn size(what: &str, bytes: u64, least: u64) -> Result<u64, WorkloadError> {
    if (least..=MAX_BYTES).contains(&bytes) {
        return Ok(bytes);
    }
    Err(WorkloadError::new(format!("{what} is {bytes} bytes; allowed: {least} to {MAX_BYTES}")))
}

/// Sets the last value of `cumulative` to exactly one, if it is close.
fn end_at_one(what: &str, cumulative: &mut [(u64, f64)]) -> Result<(), WorkloadError> {
    let Some((_, end)) = cumulative.last_mut() else {
        return Err(WorkloadError::new("the size distribution is empty; allowed: one point or more"));
    };
    if (*end - 1.0).abs() > SUM_TOLERANCE {
        return Err(WorkloadError::new(format!("{what} {end}; allowed: 1, to within {SUM_TOLERANCE}")));
    }
    *end = 1.0;
    // Earlier values may exceed one within the tolerance.
    cumulative.iter_mut().for_each(|(_, probability)| *probability = probability.min(1.0));
    Ok(())
}

/// Returns the position of the first value of `cumulative` above `u`, which is below one.
fn position(cumulative: &[(u64, f64)], u: f64) -> usize {
    cumulative.partition_point(|&(_, probability)| probability <= u)
}

/// Returns the sizes with their own probabilities.
fn masses(cumulative: &[(u64, f64)]) -> impl Iterator<Item = (u64, f64)> {
    let before = std::iter::once(0.0).chain(cumulative.iter().map(|&(_, probability)| probability));
    cumulative.iter().zip(before).map(|(&(bytes, probability), before)| (bytes, probability - before))
}

/// Returns the mean. Rounding to the nearest byte keeps the centre of each line, except that 0 is drawn as 1.
fn cdf_mean(corners: &[(u64, f64)]) -> f64 {
    let at_first = corners[0].0 as f64 * corners[0].1;
    let line = |pair: &[(u64, f64)]| {
        let [(low, from), (high, to)] = [pair[0], pair[1]];
        let lifted = if low == 0 && high > 0 { 0.5 / high as f64 } else { 0.0 };
        (to - from) * ((low as f64 + high as f64) / 2.0 + lifted)
    };
    at_first + corners.windows(2).map(line).sum::<f64>()
}

fn whole_bytes(bytes: f64) -> u64 {
    ((bytes + 0.5) as u64).max(1)
}

/// Returns the standard normal's cumulative distribution.
fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// Returns E[min(X, cap)]: the part below the cap, plus the rest at the cap, with Phi the normal distribution.
fn log_normal_mean(median: f64, sigma: f64, cap: f64) -> f64 {
    let z = libm::log(cap / median) / sigma;
    median * libm::exp(sigma * sigma / 2.0) * normal_cdf(z - sigma) + cap * normal_cdf(-z)
}

/// Returns E[min(X, cap)] of a Pareto distribution that starts at `from`.
fn pareto_mean(from: f64, alpha: f64, cap: f64) -> f64 {
    let log = libm::log(cap / from);
    let beyond = if alpha == 1.0 { log } else { -libm::expm1((1.0 - alpha) * log) / (alpha - 1.0) };
    from * (1.0 + beyond)
}

#[cfg(test)]
mod tests;
