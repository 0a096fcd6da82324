//! Draws from distributions that several workloads use. All logarithms and powers come from `libm`, so that results do
//! not depend on the platform.

use sparelane_core::Stream;

/// Draws a standard normal variable by Marsaglia's polar method. The second normal of each pair is discarded.
pub(super) fn normal(stream: &mut Stream) -> f64 {
    loop {
        let (x, y) = (2.0 * stream.unit() - 1.0, 2.0 * stream.unit() - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

/// Draws a Pareto variable, above x with probability (least / x)^alpha.
pub(super) fn pareto(least: f64, alpha: f64, stream: &mut Stream) -> f64 {
    least * libm::pow(stream.unit_above_zero(), -1.0 / alpha)
}

/// Draws the remainder of a Pareto span at a random time: the equilibrium distribution, with `alpha` above 1. Its mean
/// is finite only for an `alpha` above 2.
pub(super) fn pareto_left(least: f64, alpha: f64, stream: &mut Stream) -> f64 {
    // The density is P(X > x) / E[X]; a share of 1 - 1 / alpha of it lies evenly below `least`.
    let above = alpha * stream.unit_above_zero();
    if above > 1.0 { least * (alpha - above) / (alpha - 1.0) } else { least * libm::pow(above, -1.0 / (alpha - 1.0)) }
}

/// Draws a Weibull variable, above x with probability exp(-(x / scale)^shape).
pub(super) fn weibull(scale: f64, shape: f64, stream: &mut Stream) -> f64 {
    scale * libm::pow(-libm::log(stream.unit_above_zero()), 1.0 / shape)
}

/// Returns the mean of a Weibull distribution.
pub(super) fn weibull_mean(scale: f64, shape: f64) -> f64 {
    scale * libm::tgamma(1.0 + 1.0 / shape)
}

/// Draws the remainder of a Weibull span at a random time: a random part of a span that is chosen with a probability
/// proportional to its length. For such a span, (x / scale)^shape is gamma distributed.
pub(super) fn weibull_left(scale: f64, shape: f64, stream: &mut Stream) -> f64 {
    let whole = scale * libm::pow(gamma(1.0 + 1.0 / shape, stream), 1.0 / shape);
    whole * stream.unit()
}

/// Draws a gamma variable of `shape` at least 1 and scale 1 (Marsaglia and Tsang, ACM TOMS 26(3), 2000).
fn gamma(shape: f64, stream: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(stream);
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(stream.unit_above_zero()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparelane_core::Domain;

    const DRAWS: u32 = 200_000;

    /// Compares the share of draws above each bound with the expected share.
    fn check(name: &str, draw: impl Fn(&mut Stream) -> f64, above: impl Fn(f64) -> f64, bounds: &[f64]) {
        let mut stream = Stream::new(9, Domain::Test, 0);
        let draws: Vec<_> = (0..DRAWS).map(|_| draw(&mut stream)).collect();
        for &bound in bounds {
            let share = draws.iter().filter(|&&x| x > bound).count() as f64 / f64::from(DRAWS);
            let expected = above(bound);
            let error = 5.0 * (expected * (1.0 - expected) / f64::from(DRAWS)).sqrt();
            assert!((share - expected).abs() <= error, "{name} above {bound}: {share}, not {expected}");
        }
    }

    #[test]
    fn spans_follow_their_distributions() {
        check("pareto", |stream| pareto(2.0, 1.5, stream), |x| (2.0 / x).powf(1.5), &[2.0, 3.0, 10.0, 500.0]);
        check(
            "weibull",
            |stream| weibull(0.4, 1.46, stream),
            |x| (-(x / 0.4_f64).powf(1.46)).exp(),
            &[0.01, 0.3, 0.5, 1.0],
        );
    }

    /// The share of time in which more than x remains is the integral of the distribution beyond x over its mean.
    #[test]
    fn the_remainder_of_a_span_is_that_at_a_random_time() {
        let pareto_above = |x: f64| if x < 2.0 { 1.0 - x / 6.0 } else { (2.0 / x).sqrt() / 1.5 };
        check("pareto", |stream| pareto_left(2.0, 1.5, stream), pareto_above, &[0.1, 1.0, 2.0, 5.0, 100.0, 10_000.0]);
        for shape in [1.46, 0.7] {
            let beyond = |x: f64| {
                let step = 1e-4;
                let survival = |k: u32| (-((x + (f64::from(k) + 0.5) * step) / 0.4).powf(shape)).exp();
                (0..200_000).map(survival).sum::<f64>() * step / weibull_mean(0.4, shape)
            };
            check("weibull", |stream| weibull_left(0.4, shape, stream), beyond, &[0.01, 0.1, 0.3, 0.6, 1.0]);
        }
    }

    #[test]
    fn the_mean_of_a_weibull_is_that_of_its_draws() {
        let mut stream = Stream::new(9, Domain::Test, 0);
        let mean = (0..DRAWS).map(|_| weibull(0.382, 1.46, &mut stream)).sum::<f64>() / f64::from(DRAWS);
        assert!((mean / weibull_mean(0.382, 1.46) - 1.0).abs() < 0.01, "{mean}");
    }
}
