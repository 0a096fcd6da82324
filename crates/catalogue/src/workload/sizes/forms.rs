//! `sizes = { .. }`: the sizes of a workload's flows.

use super::{SizeDistribution, data_mining_flow_sizes, rc3_flow_sizes, w2000_flow_sizes, web_search_flow_sizes};
use crate::schema::volume::{Volume, max_flow_bytes, volume};
use crate::schema::{
    Fallback, Field, Form, Input, Key, Kind, MAX_FLOW_BYTES, Purpose, ScenarioError, Section, Shape, Source,
};
use crate::workload::WorkloadError;

const FLOW_SIZE: Kind = Kind::Size { min: 1, max: MAX_FLOW_BYTES };
const BYTES: Kind = Kind::Whole { min: 0, max: MAX_FLOW_BYTES };
const BYTES_LIST: Kind =
    Kind::Special("a list of whole numbers of bytes, as in [1460, 2920]", &Shape::List(&Shape::Of(BYTES)));
const SHARE: Kind = Kind::Share { max: 1.0 };
const SHARE_LIST: Kind = Kind::Special("a list of numbers from 0 to 1, one per size", &Shape::List(&Shape::Of(SHARE)));

/// The context in which sizes are read.
#[derive(Clone, Copy, Debug)]
pub struct SizeContext<'a> {
    /// The available forms.
    pub forms: &'a [&'static SizeForm],
    /// The place of other files.
    pub source: &'a Source,
    /// Payload bytes of a full segment.
    pub mss_bytes: u64,
    /// The bandwidth-delay product in bytes.
    pub bdp_bytes: u64,
    /// The seed of the run.
    pub seed: u64,
}

/// The form of a distribution of sizes in a scenario.
pub type SizeForm = Form<&'static ReadSizes>;

/// Creates a distribution from its table.
pub type ReadSizes = dyn Fn(&Section<'_>, &SizeContext<'_>) -> Result<SizeDistribution, ScenarioError> + Sync;

/// Every form of `sizes`.
pub static SIZE_FORMS: &[&SizeForm] = &[
    &Form {
        name: "rc3",
        summary: "the RC3 paper's eleven sizes, from 1 to 2107 packets of 1460 bytes, mean 269,333.5 bytes",
        source: "Allman, CCR 2013, as in the RC3 authors' simulator",
        keys: &[],
        read: &|_, _| Ok(rc3_flow_sizes()),
    },
    &Form {
        name: "w2000",
        summary: "a calibrated substitute for the RC3 paper's 2000 workload, which the paper does not identify: \
                  log-normal, median 1250 bytes, sigma 2.1, at most 30 MB, in whole packets of 1460 bytes, mean 8.4 \
                  packets",
        source: "sparelane, fitted to NSDI 2014 Table 1 by the paper's model; other parameters fit nearly as well",
        keys: &[],
        read: &|_, _| Ok(w2000_flow_sizes()),
    },
    &Form {
        name: "web-search",
        summary: "web search, mean 1,711,250 bytes: the table in bytes, with straight lines between its corners",
        source: "Alizadeh et al., SIGCOMM 2010 (DCTCP), as in the traffic generator of PIAS",
        keys: &[],
        read: &|_, _| Ok(web_search_flow_sizes()),
    },
    &Form {
        name: "data-mining",
        summary: "data mining, mean 12,658,199 bytes: the table in bytes, with straight lines between its corners",
        source: "Greenberg et al., SIGCOMM 2009 (VL2), as in the traffic generator of PIAS",
        keys: &[],
        read: &|_, _| Ok(data_mining_flow_sizes()),
    },
    &Form {
        name: "fixed",
        summary: "one size for all flows",
        source: "sparelane",
        keys: &[Key::new("size", Kind::Volume, Fallback::Required, "size of each flow")],
        read: &fixed,
    },
    &Form {
        name: "points",
        summary: "point masses: nothing between the sizes is ever drawn",
        source: "sparelane",
        keys: &[
            Key::new("bytes", BYTES_LIST, Fallback::Required, "sizes, increasing"),
            Key::new("probability", SHARE_LIST, Fallback::Required, "probability of each size; they add up to 1"),
        ],
        read: &|section, _| checked(section, SizeDistribution::points(&columns(section, "probability")?)),
    },
    &Form {
        name: "cdf",
        summary: "a cumulative distribution with straight lines between its corners",
        source: "as in the traffic generators of PIAS and pFabric",
        keys: &[
            Key::new("bytes", BYTES_LIST, Fallback::Nothing("from path"), "sizes, increasing"),
            Key::new(
                "cumulative",
                SHARE_LIST,
                Fallback::Nothing("from path"),
                "probability of each size or less; ends at 1",
            ),
            Key::new(
                "path",
                Kind::Path,
                Fallback::Nothing("from bytes and cumulative"),
                "file of two columns, bytes and cumulative probability, 0 to 1 or in per cent, with a comma or blanks \
                 between them; a first row of words is a header",
            ),
        ],
        read: &|section, context| read_cdf(section, context.source),
    },
    &Form {
        name: "lognormal",
        summary: "e to the power of a normal variable, cut to a cap",
        source: "sparelane",
        keys: &[
            Key::new("median", FLOW_SIZE, Fallback::Required, "median size"),
            Key::new("sigma", Kind::Positive { max: 10.0 }, Fallback::Required, "standard deviation of the logarithm"),
            Key::new("cap", FLOW_SIZE, Fallback::Required, "largest size"),
        ],
        read: &|section, _| {
            let sigma = section.need("sigma")?.positive()?;
            let (median, cap) = (section.need("median")?.size()?, section.need("cap")?.size()?);
            checked(section, SizeDistribution::log_normal(median, sigma, cap))
        },
    },
];

/// Returns the distribution that `field` describes, for flows of segments of `mss_bytes`.
///
/// # Errors
/// Returns the first error. Fails if a flow would have more segments than the transport can number.
pub fn read_sizes(field: &Field<'_>, context: &SizeContext<'_>) -> Result<SizeDistribution, ScenarioError> {
    let (form, section) = field.clone().form(&[], context.forms)?;
    let distribution = (form.read)(&section, context)?;
    let (largest, max) = (distribution.max_bytes(), max_flow_bytes(context.mss_bytes));
    if largest <= max {
        return Ok(distribution);
    }
    let allowed = format!("allowed: up to {max}, because segments of {} bytes have 32-bit numbers", context.mss_bytes);
    Err(field.error(format!("flows of up to {largest} bytes; {allowed}")))
}

fn checked(
    section: &Section<'_>,
    distribution: Result<SizeDistribution, WorkloadError>,
) -> Result<SizeDistribution, ScenarioError> {
    distribution.map_err(|error| section.whole_table().error(error.message))
}

fn fixed(section: &Section<'_>, context: &SizeContext<'_>) -> Result<SizeDistribution, ScenarioError> {
    let size = section.need("size")?;
    match volume(&size, context.mss_bytes, context.bdp_bytes)? {
        Volume::Bytes(bytes) => checked(section, SizeDistribution::fixed(bytes)),
        Volume::Unlimited => Err(size.error("a distribution needs a size; allowed: anything but \"unlimited\"")),
    }
}

fn read_cdf(section: &Section<'_>, source: &Source) -> Result<SizeDistribution, ScenarioError> {
    let Some(path) = section.given("path") else {
        let corners = columns(section, "cumulative")?;
        return SizeDistribution::cdf(&corners).map_err(|error| section.whole_table().error(error.message));
    };
    if let Some(field) = section.given("bytes").or_else(|| section.given("cumulative")) {
        return Err(field.error("path is also given; allowed: path, or bytes and cumulative"));
    }
    let input = source.read(&path, Purpose::Sizes)?;
    let corners = rows(&input)?;
    SizeDistribution::cdf(&corners).map_err(|error| input.error(error.line, error.message))
}

/// Reads `bytes` and another list of the same length.
fn columns(section: &Section<'_>, other: &str) -> Result<Vec<(u64, f64)>, ScenarioError> {
    let (sizes, shares) = (section.need("bytes")?, section.need(other)?);
    let sizes = sizes.list(BYTES)?.iter().map(Field::whole).collect::<Result<Vec<_>, _>>()?;
    let values = shares.list(SHARE)?.iter().map(Field::share).collect::<Result<Vec<_>, _>>()?;
    if sizes.len() != values.len() {
        return Err(shares.error(format!(
            "{} numbers for {} sizes; allowed: equal numbers",
            values.len(),
            sizes.len()
        )));
    }
    Ok(sizes.into_iter().zip(values).collect())
}

/// The last value of a cumulative distribution in per cent is 100, and that of one in probabilities is 1. Above this
/// value the file is in per cent.
const PER_CENT_ABOVE: f64 = 2.0;

/// Reads the rows of a file of sizes and cumulative probabilities, which are in per cent if they end at 100.
fn rows(input: &Input) -> Result<Vec<(u64, f64)>, ScenarioError> {
    let mut rows: Vec<(u64, f64)> = Vec::new();
    let lines = (1..).zip(input.text.lines().map(str::trim));
    for (line, text) in lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#')) {
        let is_header = rows.is_empty() && text.starts_with(|c: char| c.is_ascii_alphabetic());
        match row(text) {
            Some(row) => rows.push(row),
            None if is_header => {}
            None => {
                let message = format!(
                    "\"{text}\" is not a row; allowed: whole bytes and a cumulative probability, as in 1460,0.5 or \
                     1460 50"
                );
                return Err(input.error(Some(line), message));
            }
        }
    }
    let Some(&(_, end)) = rows.last() else { return Ok(rows) };
    if end > PER_CENT_ABOVE {
        if (end - 100.0).abs() > PER_CENT_TOLERANCE {
            let message = format!("the cumulative distribution ends at {end}; allowed: 1, or 100 in per cent");
            return Err(input.error(None, message));
        }
        rows.iter_mut().for_each(|(_, share)| *share /= 100.0);
    }
    Ok(rows)
}

/// The maximum deviation of the last value in per cent from 100.
const PER_CENT_TOLERANCE: f64 = 1e-4;

/// Splits a row at its comma, or at its blanks. Bytes may be written as `1e6` or `1000.0`, but must be whole.
fn row(text: &str) -> Option<(u64, f64)> {
    let (bytes, share) = text.split_once(',').or_else(|| text.split_once(char::is_whitespace))?;
    let (bytes, share) = (bytes.trim(), share.trim().parse().ok()?);
    let whole = || bytes.parse::<f64>().ok().filter(|bytes| bytes.fract() == 0.0 && (0.0..1e15).contains(bytes));
    Some((bytes.parse().ok().or_else(|| whole().map(|bytes| bytes as u64))?, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(u64, f64)>, String> {
        let input = Input { name: "f".to_owned(), format: None, text: text.to_owned(), purpose: Purpose::Sizes };
        rows(&input).map_err(|error| error.to_string())
    }

    #[test]
    fn a_distribution_in_per_cent_or_with_blanks_is_the_one_in_probabilities_with_commas() {
        let expected = Ok(vec![(0, 0.0), (100, 0.01), (1000, 1.0)]);
        for text in [
            "0,0\n100,0.01\n1000,1\n",
            "0 0\n100 0.01\n1000 1.0\n",
            "0 0\n100 1\n1000 100\n",
            "bytes,percent\n0,0\n100,1\n1e3,100.0\n",
            "# made by hand\n\n0\t0\n100.0\t1\n1000\t100",
            "  0   0\n  100   1\n  1000   100\n",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_row_that_is_no_pair_of_numbers_is_refused_with_its_line() {
        for (text, expected) in [
            ("0 0\n100 1\n1000 97.0\n", "f: the cumulative distribution ends at 97; allowed: 1, or 100 in per cent"),
            ("0 0\nbytes percent\n", "f:2: \"bytes percent\" is not a row; allowed: whole bytes and"),
            ("0 0\n1.5 100\n", "f:2: \"1.5 100\" is not a row"),
            ("0 0\n-5 100\n", "f:2: \"-5 100\" is not a row"),
            ("0 0\n5 1 100\n", "f:2: \"5 1 100\" is not a row"),
        ] {
            let found = read(text).expect_err(text);
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
