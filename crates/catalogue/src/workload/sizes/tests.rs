//! Tests of size distributions.

use super::*;
use crate::workload::Surge;
use sparelane_core::Domain;

const DRAWS: u32 = 400_000;

fn draws(sizes: &SizeDistribution) -> impl Iterator<Item = u64> {
    let mut stream = Stream::new(1, Domain::Test, 0);
    (0..DRAWS).map(move |_| sizes.draw(&mut stream))
}

fn measured_mean(sizes: &SizeDistribution) -> f64 {
    draws(sizes).map(|bytes| bytes as f64).sum::<f64>() / f64::from(DRAWS)
}

fn error(result: Result<SizeDistribution, WorkloadError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_rc3_sizes_have_the_published_mean_and_masses() {
    let sizes = rc3_flow_sizes();
    assert!((sizes.mean_bytes() - 269_333.5).abs() < 1e-6, "{}", sizes.mean_bytes());
    assert!((measured_mean(&sizes) / sizes.mean_bytes() - 1.0).abs() < 0.02);
    let share = |wanted: u64| draws(&sizes).filter(|&bytes| bytes == wanted).count() as f64 / f64::from(DRAWS);
    assert!((share(1460) - 0.5).abs() < 0.005);
    assert!((share(2107 * 1460) - 0.05).abs() < 0.005);
    assert!(draws(&sizes).all(|bytes| bytes % 1460 == 0));
}

/// The log-normal's own quantiles and bins, computed independently of this code.
#[test]
fn the_substitute_for_the_2000_workload_has_whole_segments_and_a_mean_of_8_4() {
    let sizes = w2000_flow_sizes();
    let mean_segments = sizes.mean_bytes() / 1460.0;
    assert!((mean_segments - 8.4).abs() < 0.05, "{mean_segments}");
    assert!((measured_mean(&sizes) / sizes.mean_bytes() - 1.0).abs() < 0.05);
    assert!(draws(&sizes).all(|bytes| bytes % 1460 == 0 && bytes <= 30_000_080));
    let share = |most: u64| draws(&sizes).filter(|&bytes| bytes <= most * 1460).count() as f64 / f64::from(DRAWS);
    for (segments, probability) in [(1, 0.5295), (2, 0.6569), (10, 0.8791), (100, 0.9883)] {
        assert!((share(segments) - probability).abs() < 0.005, "{segments}: {}", share(segments));
    }
}

#[test]
fn points_in_bytes_with_probabilities_are_the_same_as_the_built_in_table() {
    let points = [(1000, 0.25), (2000, 0.25), (9000, 0.5)];
    let sizes = SizeDistribution::points(&points).unwrap();
    assert_eq!(sizes.mean_bytes(), 5250.0);
    assert!(draws(&sizes).all(|drawn| points.iter().any(|&(bytes, _)| bytes == drawn)));
}

/// Mean and quantiles of SURGE's files, computed independently of this code: the mean of the body below the cap, and of
/// the tail.
#[test]
fn a_body_with_a_tail_has_the_mean_and_the_shares_of_both() {
    let files = Surge::published(100_000_000).files;
    let sizes = SizeDistribution::body_and_tail(files).unwrap();
    // 0.93 exp(9.357 + 1.318^2 / 2) + 0.07 x 133000 (1 + 10 (1 - (133000 / 10^8)^0.1)).
    assert!((sizes.mean_bytes() - 80_067.0).abs() < 10.0, "{}", sizes.mean_bytes());
    assert!((measured_mean(&sizes) / sizes.mean_bytes() - 1.0).abs() < 0.05, "{}", measured_mean(&sizes));
    assert_eq!(sizes.max_bytes(), draws(&sizes).max().unwrap());
    let above = |least: u64| draws(&sizes).filter(|&bytes| bytes > least).count() as f64 / f64::from(DRAWS);
    // Half of the body is above exp(9.357); all of the tail is. Above 1 MB the body is negligible.
    assert!((above(11_580) - (0.93 * 0.5 + 0.07)).abs() < 0.005);
    assert!((above(1_000_000) - (0.07 * 0.133_f64.powf(1.1) + 0.93 * 0.00036)).abs() < 0.001);
    for (change, expected) in [
        (
            BodyAndTail { largest_bytes: 99, ..files },
            "the largest size is 99 bytes; allowed: 133000 to 1000000000000000",
        ),
        (BodyAndTail { tail_share: 1.5, ..files }, "the tail's share is 1.5; allowed: 0 to 1"),
        (BodyAndTail { tail_alpha: 0.0, ..files }, "the tail's alpha is 0; allowed: above 0, at most 100"),
    ] {
        assert_eq!(error(SizeDistribution::body_and_tail(change)), expected);
    }
}

#[test]
fn a_fixed_size_is_always_that_size() {
    let sizes = SizeDistribution::fixed(1_000_000).unwrap();
    assert_eq!(sizes.mean_bytes(), 1e6);
    assert!(draws(&sizes).take(10).all(|bytes| bytes == 1_000_000));
}

#[test]
fn a_cdf_is_drawn_along_straight_lines_with_the_trapezoid_mean() {
    // The web-search sizes of DCTCP, as used in datacentre papers.
    let corners = [
        (0, 0.0),
        (10_000, 0.15),
        (20_000, 0.2),
        (30_000, 0.3),
        (50_000, 0.4),
        (80_000, 0.53),
        (200_000, 0.6),
        (1_000_000, 0.7),
        (2_000_000, 0.8),
        (5_000_000, 0.9),
        (10_000_000, 0.97),
        (30_000_000, 1.0),
    ];
    let sizes = SizeDistribution::cdf(&corners).unwrap();
    assert!((sizes.mean_bytes() - 1_711_250.0).abs() < 0.001, "{}", sizes.mean_bytes());
    assert!((measured_mean(&sizes) / 1_711_250.0 - 1.0).abs() < 0.01);
    for (bytes, probability) in corners {
        let below = draws(&sizes).filter(|&drawn| drawn <= bytes).count() as f64 / f64::from(DRAWS);
        assert!((below - probability).abs() < 0.005, "{bytes}: {below}");
    }
}

#[test]
fn a_first_corner_and_a_size_given_twice_are_masses() {
    for corners in [&[(1, 0.5), (3, 1.0)][..], &[(1, 0.0), (1, 0.5), (3, 1.0)]] {
        let sizes = SizeDistribution::cdf(corners).unwrap();
        assert_eq!(sizes.mean_bytes(), 1.5);
        assert!((measured_mean(&sizes) - 1.5).abs() < 0.01);
        // Half of the draws are at the mass, and the first quarter of the line from 1 to 3 rounds to it.
        let ones = draws(&sizes).filter(|&bytes| bytes == 1).count() as f64 / f64::from(DRAWS);
        assert!((ones - 0.625).abs() < 0.005, "{ones}");
    }
}

#[test]
fn tiny_sizes_are_drawn_as_one_byte_and_counted_so_in_the_mean() {
    let sizes = SizeDistribution::cdf(&[(0, 0.0), (2, 1.0)]).unwrap();
    assert_eq!(sizes.mean_bytes(), 1.25);
    assert!((measured_mean(&sizes) - 1.25).abs() < 0.01);
}

#[test]
fn a_log_normal_has_its_median_its_mean_and_its_cap() {
    let sizes = SizeDistribution::log_normal(1250, 2.1, 30_000_000).unwrap();
    assert!((measured_mean(&sizes) / sizes.mean_bytes() - 1.0).abs() < 0.05);
    let below = draws(&sizes).filter(|&bytes| bytes <= 1250).count() as f64 / f64::from(DRAWS);
    assert!((below - 0.5).abs() < 0.005);
    let narrow = SizeDistribution::log_normal(10_000, 0.5, 12_000).unwrap();
    assert_eq!(draws(&narrow).max(), Some(12_000));
    assert!((measured_mean(&narrow) / narrow.mean_bytes() - 1.0).abs() < 0.002);
    // Without the effect of the cap: median x exp(sigma^2 / 2).
    let wide = SizeDistribution::log_normal(1000, 1.0, 1_000_000_000).unwrap();
    assert!((wide.mean_bytes() - 1000.0 * libm::exp(0.5)).abs() < 1e-6);
}

#[test]
fn no_draw_is_above_the_largest_size_and_some_come_close() {
    for (sizes, max_bytes) in [
        (SizeDistribution::fixed(7), 7),
        (SizeDistribution::points(&[(10, 0.5), (90, 0.5)]), 90),
        (SizeDistribution::cdf(&[(0, 0.0), (1000, 1.0)]), 1000),
        (SizeDistribution::log_normal(10_000, 0.5, 12_000), 12_000),
        (Ok(rc3_flow_sizes()), 2107 * 1460),
    ] {
        let sizes = sizes.unwrap();
        assert_eq!((sizes.max_bytes(), draws(&sizes).max()), (max_bytes, Some(max_bytes)));
    }
}

#[test]
fn each_error_states_the_allowed_values() {
    use SizeDistribution as Sizes;
    for (result, expected) in [
        (Sizes::fixed(0), "the size is 0 bytes; allowed: 1 to 1000000000000000"),
        (Sizes::points(&[]), "the size distribution is empty; allowed: one point or more"),
        (Sizes::points(&[(1, 0.5), (1, 0.5)]), "the size of point 2 is 1 bytes; allowed: 2 to 1000000000000000"),
        (Sizes::points(&[(1, 0.0)]), "the probability of 1 bytes is 0; allowed: above 0, at most 1"),
        (Sizes::points(&[(1, f64::NAN)]), "the probability of 1 bytes is NaN; allowed: above 0, at most 1"),
        (Sizes::points(&[(1, 0.5)]), "the probabilities add up to 0.5; allowed: 1, to within 0.000001"),
        (Sizes::cdf(&[(1, 0.5)]), "the cumulative distribution ends at 0.5; allowed: 1, to within 0.000001"),
        (Sizes::cdf(&[(0, 0.5), (2, 1.0)]), "the size of corner 1 is 0 bytes; allowed: 1 to 1000000000000000"),
        (Sizes::cdf(&[(5, 0.5), (2, 1.0)]), "the size of corner 2 is 2 bytes; allowed: 5 to 1000000000000000"),
        (
            Sizes::cdf(&[(1, 0.5), (2, 0.4), (3, 1.0)]),
            "corner 2 is 0.4 at 2 bytes, after 0.5 at 1; allowed: probabilities that never fall, up to 1, and no \
             corner twice",
        ),
        (
            Sizes::cdf(&[(1, 1.0), (1, 1.0)]),
            "corner 2 is 1 at 1 bytes, after 1 at 1; allowed: probabilities that never fall, up to 1, and no corner \
             twice",
        ),
        (Sizes::log_normal(0, 1.0, 10), "the median size is 0 bytes; allowed: 1 to 1000000000000000"),
        (Sizes::log_normal(20, 1.0, 10), "the cap is 10 bytes; allowed: 20 to 1000000000000000"),
        (Sizes::log_normal(20, 0.0, 100), "sigma is 0; allowed: above 0, at most 10"),
        (Sizes::log_normal(20, f64::NAN, 100), "sigma is NaN; allowed: above 0, at most 10"),
    ] {
        assert_eq!(error(result), expected);
    }
}
