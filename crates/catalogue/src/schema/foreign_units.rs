//! Hints for units of other tools, such as `10Mbit`, `1.25MB/s` or `1h`.
//!
//! A suggestion never misses the intended value by a factor. A unit with two meanings, such as tc's `mbps` (megabytes
//! per second), gets one suggestion for each. Sources: tc(8) (UNITS), iperf3(1).

use super::number::Decimal;
use super::units::{AMOUNT, Measure, RATE, TIME};

/// Bits of a full packet, for rates in packets.
const PACKET_BITS: u128 = 12_000;

/// Units of suggested values, the largest first.
const RATES: [(&str, u128); 5] =
    [("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("kbps", 1_000), ("bps", 1)];
const SIZES: [(&str, u128); 4] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000), ("B", 1)];
const BINARY_SIZES: [(&str, u128); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
const TIMES: [(&str, u128); 5] = [("s", SECOND), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
/// A second in picoseconds.
const SECOND: u128 = 1_000_000_000_000;

/// Words for times, in lower case, with their size in picoseconds.
const TIME_WORDS: [(&[&str], u128); 8] = [
    (&["w", "week", "weeks"], 604_800 * SECOND),
    (&["d", "day", "days"], 86_400 * SECOND),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600 * SECOND),
    (&["min", "mins", "minute", "minutes"], 60 * SECOND),
    (&["s", "sec", "secs", "second", "seconds"], SECOND),
    (&["ms", "msec", "msecs", "millis", "millisecond", "milliseconds"], 1_000_000_000),
    (&["us", "usec", "usecs", "mcs", "micros", "microsecond", "microseconds"], 1_000_000),
    (&["ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"], 1_000),
];

/// Words for packets, in lower case.
const PACKETS: [&str; 16] = [
    "p",
    "pkt",
    "pkts",
    "pckt",
    "pckts",
    "packet",
    "packets",
    "seg",
    "segs",
    "segment",
    "segments",
    "frame",
    "frames",
    "mss",
    "datagram",
    "datagrams",
];

/// Returns the meaning of `unit` for a value of `measure` and the text to write instead. `text` is the number and the
/// unit as the user wrote them. Returns `None` for a unit of no known tool.
pub(super) fn hint(measure: &'static Measure, number: Decimal, unit: &str, text: &str) -> Option<String> {
    let given = Given { number, unit, text };
    let found = match measure {
        _ if std::ptr::eq(measure, &RATE) => given.as_rate(),
        _ if std::ptr::eq(measure, &TIME) => given.as_time(),
        _ => given.as_size(std::ptr::eq(measure, &AMOUNT)),
    };
    found.or_else(|| {
        let others = [(&RATE, "rate"), (&TIME, "time"), (&AMOUNT, "size")];
        let (_, what) = others.into_iter().find(|(other, _)| other.names().any(|name| name == unit))?;
        Some(format!("it is a unit of {what}, and {measure} is needed"))
    })
}

#[derive(Clone, Copy)]
struct Given<'t> {
    number: Decimal,
    unit: &'t str,
    text: &'t str,
}

/// The quantity that a unit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noun {
    Bits,
    Bytes,
    /// Bits in some tools, bytes in others.
    Either,
    Packets,
}

/// A unit such as `Kibit/s`, in parts.
#[derive(Clone, Copy, Debug)]
struct Parts {
    /// The factor of the prefix.
    factor: u128,
    is_binary: bool,
    noun: Noun,
    /// True for a unit of tc, whose `bps` counts bytes: all letters are lower case.
    is_of_tc: bool,
    /// True if no word follows the prefix, as in `64K`.
    is_bare: bool,
}

impl Given<'_> {
    /// Returns the number times a fraction, in quotes, in the largest of `units` of which it has at least one. The
    /// result is exact unless the number is finer than the smallest unit.
    fn written(self, numerator: u128, denominator: u128, units: &[(&str, u128)]) -> Option<String> {
        let value = self.number.ratio(numerator, denominator)?;
        let fits = |(_, size): &&(&str, u128)| value >= *size && (value % *size == 0 || is_power_of_ten(*size));
        let (name, size) = units.iter().find(fits)?;
        let (whole, rest) = (value / size, value % size);
        let places = size.ilog10() as usize;
        let fraction = if rest == 0 { String::new() } else { format!(".{rest:0places$}") };
        Some(format!("\"{whole}{}{name}\"", fraction.trim_end_matches('0')))
    }

    fn as_rate(self) -> Option<String> {
        let lower = self.unit.to_ascii_lowercase();
        let per_second = ["/seconds", "/second", "/sec", "/s", "ps"].into_iter().find(|end| lower.ends_with(end));
        let body = &self.unit[..self.unit.len() - per_second.map_or(0, str::len)];
        let Parts { factor, noun, is_of_tc, is_bare, .. } = parts(body)?;
        let bits = self.written(factor, 1, &RATES);
        let bytes = self.written(8 * factor, 1, &RATES);
        // In `MBPS` the case of the B carries no meaning.
        let is_shouted = per_second == Some("ps") && self.unit.ends_with("PS");
        Some(match noun {
            Noun::Packets => {
                let full = self.written(PACKET_BITS, 1, &RATES)?;
                format!("rates are in bits per second; this rate in packets of 1500 bytes is {full}")
            }
            Noun::Bits if !is_shouted => format!("write {}", bits?),
            Noun::Bytes if !is_shouted => {
                let second = if per_second.is_none() { " per second" } else { "" };
                format!("rates are in bits per second, and {}{second} is {}", self.text, bytes?)
            }
            _ if is_bare => format!("write {} for bits per second, as iperf reads it, or {} for bytes", bits?, bytes?),
            _ => {
                let tc = if is_of_tc && per_second == Some("ps") { ", as tc reads it" } else { "" };
                format!(
                    "it has two meanings: write {} for bits per second, or {} for bytes per second{tc}",
                    bits?, bytes?
                )
            }
        })
    }

    fn as_time(self) -> Option<String> {
        let lower = self.unit.to_lowercase().replace(['\u{b5}', '\u{3bc}'], "u");
        if lower == "m" {
            let [minutes, millis] = [60 * SECOND, SECOND / 1000].map(|size| self.as_time_of(size));
            return Some(format!(
                "it has two meanings: write {} for minutes, or {} for milliseconds",
                minutes?, millis?
            ));
        }
        let (_, size) = TIME_WORDS.into_iter().find(|(words, _)| words.contains(&lower.as_str()))?;
        Some(format!("write {}", self.as_time_of(size)?))
    }

    /// Returns the time of this number of units of `size` picoseconds: in the same unit if scenarios have it, otherwise
    /// in minutes.
    fn as_time_of(self, size: u128) -> Option<String> {
        let same = TIMES.into_iter().find(|(_, other)| *other == size).unwrap_or(("min", 60 * SECOND));
        self.written(size, 1, &[same]).or_else(|| self.written(size, 1, &TIMES))
    }

    fn as_size(self, takes_packets: bool) -> Option<String> {
        let lower = self.unit.to_ascii_lowercase();
        let (is_packets, is_bdp) = (PACKETS.contains(&lower.as_str()), lower == "bdp" || lower == "bdps");
        if is_packets || is_bdp {
            return match (takes_packets, is_bdp) {
                (false, _) => Some("sizes are in bytes here".to_owned()),
                (true, true) => Some("write \"1bdp\" for one bandwidth-delay product".to_owned()),
                (true, false) => Some(format!("write {}", self.written(1, 1, &[("packets", 1)])?)),
            };
        }
        let Parts { factor, is_binary, noun, is_bare, .. } = parts(self.unit)?;
        let is_spelt_out = lower.contains("byte");
        // A lower-case b after a prefix may mean bits or bytes.
        let noun = if self.unit.ends_with('b') { Noun::Either } else { noun };
        let (bits, decimal) = (self.written(factor, 8, &SIZES), self.written(factor, 1, &SIZES));
        let binary = self.written(binary_of(factor), 1, &BINARY_SIZES);
        // Outside IEC units, k may mean 1000 or 1024.
        let is_loose = factor > 1 && !is_binary;
        Some(match noun {
            Noun::Packets => return None,
            Noun::Bits => format!("sizes are in bytes, and {} is {}", self.text, bits?),
            _ if is_bare || (is_spelt_out && is_loose) => {
                format!("it has two meanings: write {} for powers of 1000, or {} for powers of 1024", decimal?, binary?)
            }
            Noun::Bytes if is_binary => format!("write {}", binary?),
            Noun::Bytes => format!("write {}", decimal?),
            Noun::Either if is_loose => {
                let (decimal, bits) = (decimal?, bits?);
                format!(
                    "it has several meanings: write {decimal} for bytes, {} for bytes as tc reads it, or {bits} for \
                     bits",
                    binary?
                )
            }
            Noun::Either => format!(
                "it has two meanings: write {} for bytes, or {} for bits",
                if is_binary { binary } else { decimal }?,
                bits?
            ),
        })
    }
}

fn is_power_of_ten(size: u128) -> bool {
    10_u128.pow(size.ilog10()) == size
}

/// Returns the power of 1024 for the prefix that stands for this power of 1000 or 1024.
fn binary_of(factor: u128) -> u128 {
    1 << (10 * (factor.max(1).ilog10() / 3))
}

/// Returns the parts of a unit of data without its "per second".
fn parts(body: &str) -> Option<Parts> {
    let lower = body.to_ascii_lowercase();
    if PACKETS.contains(&lower.as_str()) {
        return Some(Parts { factor: 1, is_binary: false, noun: Noun::Packets, is_of_tc: false, is_bare: false });
    }
    let power = body.chars().next().and_then(|first| "kmgtpe".find(first.to_ascii_lowercase()));
    let rest = if power.is_some() { &body[1..] } else { body };
    let binary = rest.strip_prefix(['i', 'I']).filter(|_| power.is_some());
    let word = binary.unwrap_or(rest);
    let exponent = power.map_or(0, |place| place as u32 + 1);
    let factor = if binary.is_some() { 1024_u128.pow(exponent) } else { 1000_u128.pow(exponent) };
    // An upper-case prefix suggests that the author distinguishes b (bit) from B (byte).
    let is_careful = body.starts_with(|first: char| first.is_ascii_uppercase());
    let noun = match word {
        "" if (1..=4).contains(&exponent) && binary.is_none() => Noun::Either,
        "B" => Noun::Bytes,
        "b" if is_careful => Noun::Bits,
        "b" => Noun::Either,
        _ => match word.to_ascii_lowercase().as_str() {
            "bit" | "bits" => Noun::Bits,
            "byte" | "bytes" => Noun::Bytes,
            _ => return None,
        },
    };
    let is_of_tc = body.bytes().all(|byte| byte.is_ascii_lowercase());
    Some(Parts { factor, is_binary: binary.is_some(), noun, is_of_tc, is_bare: word.is_empty() })
}

#[cfg(test)]
mod tests {
    use crate::schema::units::{AMOUNT, Measure, RATE, SIZE, TIME};

    /// Each hint contains exactly the listed suggestions.
    #[test]
    fn each_meaning_of_a_unit_of_another_tool_is_suggested_with_its_value() {
        let cases: &[(&'static Measure, &str, &[&str])] = &[
            // tc and iperf: bits, in any case.
            (&RATE, "10Mbit", &["10Mbps"]),
            (&RATE, "10mbit", &["10Mbps"]),
            (&RATE, "1.5gbit", &["1.5Gbps"]),
            (&RATE, "10 Mbit/s", &["10Mbps"]),
            (&RATE, "10Mbits/sec", &["10Mbps"]),
            (&RATE, "10kibit", &["10.24kbps"]),
            (&RATE, "10Kbps", &["10kbps"]),
            (&RATE, "1Pbps", &["1000Tbps"]),
            (&RATE, "0.01Mbit", &["10kbps"]),
            // Bytes per second.
            (&RATE, "10MBps", &["80Mbps"]),
            (&RATE, "1.25MB/s", &["10Mbps"]),
            (&RATE, "1MiB/s", &["8.388608Mbps"]),
            (&RATE, "10Bps", &["80bps"]),
            (&RATE, "10MBytes/sec", &["80Mbps"]),
            (&RATE, "10MB", &["80Mbps"]),
            // Bits in some tools, bytes in others.
            (&RATE, "10mbps", &["10Mbps", "80Mbps"]),
            (&RATE, "10gbps", &["10Gbps", "80Gbps"]),
            (&RATE, "10kibps", &["10.24kbps", "81.92kbps"]),
            (&RATE, "10MBPS", &["10Mbps", "80Mbps"]),
            (&RATE, "10mb/s", &["10Mbps", "80Mbps"]),
            (&RATE, "10M", &["10Mbps", "80Mbps"]),
            (&RATE, "10k", &["10kbps", "80kbps"]),
            (&RATE, "1000pps", &["12Mbps"]),
            (&RATE, "10ms", &[]),
            (&RATE, "10lightyears", &["100Mbps"]),
            (&TIME, "1h", &["60min"]),
            (&TIME, "0.01h", &["36s"]),
            (&TIME, "2 days", &["2880min"]),
            (&TIME, "5m", &["5min", "5ms"]),
            (&TIME, "1.5m", &["90s", "1.5ms"]),
            (&TIME, "5msec", &["5ms"]),
            (&TIME, "5mS", &["5ms"]),
            (&TIME, "5MS", &["5ms"]),
            (&TIME, "5 seconds", &["5s"]),
            (&TIME, "0.5sec", &["500ms"]),
            (&TIME, "5\u{b5}sec", &["5us"]),
            (&TIME, "5minutes", &["5min"]),
            (&TIME, "5Mbps", &[]),
            (&SIZE, "64K", &["64kB", "64KiB"]),
            (&SIZE, "64k", &["64kB", "64KiB"]),
            (&SIZE, "5M", &["5MB", "5MiB"]),
            (&SIZE, "64kb", &["64kB", "64KiB", "8kB"]),
            (&SIZE, "64Kb", &["64kB", "64KiB", "8kB"]),
            (&SIZE, "64kbit", &["8kB"]),
            (&SIZE, "64KBytes", &["64kB", "64KiB"]),
            (&SIZE, "64bytes", &["64B"]),
            (&SIZE, "64b", &["64B", "8B"]),
            (&SIZE, "64kib", &["64KiB", "8.192kB"]),
            (&SIZE, "64KIB", &["64KiB"]),
            (&SIZE, "5TB", &["5000GB"]),
            (&SIZE, "5mB", &["5MB"]),
            (&SIZE, "5packets", &[]),
            (&AMOUNT, "5pkts", &["5packets"]),
            (&AMOUNT, "5p", &["5packets"]),
            (&AMOUNT, "5segments", &["5packets"]),
            (&AMOUNT, "1BDP", &["1bdp"]),
            (&AMOUNT, "20ms", &[]),
        ];
        for (measure, text, suggested) in cases {
            let error = measure.parse(text).expect_err(text).to_string();
            let quoted: Vec<&str> = error.split('"').skip(3).step_by(2).collect();
            assert_eq!(quoted, *suggested, "{text}: {error}");
            for suggestion in *suggested {
                let unit = suggestion.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                assert!(measure.names().any(|name| name == unit), "{text}: {suggestion}");
            }
        }
    }

    #[test]
    fn a_suggestion_states_its_meaning() {
        let answer = |measure: &'static Measure, text: &str| measure.parse(text).expect_err(text).to_string();
        for (measure, text, words) in [
            (&RATE, "1.25MB/s", "for a rate: rates are in bits per second, and 1.25MB/s is \"10Mbps\"; allowed: bps"),
            (
                &RATE,
                "10mbps",
                "write \"10Mbps\" for bits per second, or \"80Mbps\" for bytes per second, as tc reads it",
            ),
            (&RATE, "10ms", "it is a unit of time, and a rate is needed"),
            (&TIME, "5m", "write \"5min\" for minutes, or \"5ms\" for milliseconds"),
            (&SIZE, "64K", "write \"64kB\" for powers of 1000, or \"64KiB\" for powers of 1024"),
            (&SIZE, "9packets", "sizes are in bytes here"),
        ] {
            assert!(answer(measure, text).contains(words), "{text}: {}", answer(measure, text));
        }
        assert!(!answer(&RATE, "10mb/s").contains("tc"), "tc has no such unit");
    }

    #[test]
    fn separators_of_other_languages_are_answered_with_the_number_as_it_is_written_here() {
        for (measure, text, suggested) in [
            (&RATE, "1,5Mbps", "write \"1.5Mbps\""),
            (&RATE, "1,500Mbps", "write \"1500Mbps\" or \"1.500Mbps\""),
            (&RATE, "1,000,000bps", "write \"1000000bps\""),
            (&RATE, "1_000Mbps", "write \"1000Mbps\""),
            (&SIZE, "10 000 B", "write \"10000 B\""),
            (&TIME, ".5s", "write \"0.5s\""),
        ] {
            let error = measure.parse(text).expect_err(text).to_string();
            assert!(error.ends_with(suggested), "{text}: {error}");
        }
    }
}
