//! The settings of a host on the wire, each declared once.
//!
//! A setting is a [`Param`], as a controller declares them, with its option on the command line. Its
//! declaration below makes an entry of [`SETTINGS`] and, with `field`, a field of [`Settings`].
//! Options, help texts, the attributes of Python's `Options`, their checks and the table of the
//! documentation are derived from these entries.

use super::config::{Revocation, WireConfig};
use crate::carrier::DEFAULT_DSCP;
use crate::flow::{MAX_WINDOW_BYTES, TailConfig};
use crate::node::path::Unmarked;
use crate::node::{ChoiceError, parse_value};
use crate::transfer::Compare;
use crate::transfer::folder::Fsync;
use crate::udp::Gso;
use sparelane_cc::DefaultValue::{self, Flag, List, Number, Size, Whole, Word};
use sparelane_cc::{Kind, Param, Unit, Value};
use sparelane_core::{Dur, Rate};
use std::time::Duration;

/// A setting of a host on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in Python, allowed values, default and meaning.
    pub param: Param,
    /// Describes the value that holds if the setting is left out, for settings whose default is no
    /// fixed value.
    pub unset: Option<&'static str>,
    /// The option on the command line. An option of a flag reverses the default.
    pub option: &'static str,
    /// The commands that have the option.
    pub commands: &'static [&'static str],
    /// Writes a value into the configuration.
    write: fn(&mut WireConfig, &Value),
}

/// A type of a setting's value.
trait FromValue: Sized {
    /// Converts a value that the declaration allows; `None` if it has another type.
    fn from_value(value: &Value) -> Option<Self>;
}

/// Implements `FromValue` by patterns of values and the results.
macro_rules! from_value {
    ($($type:ty: $pattern:pat => $result:expr),+ $(,)?) => {$(
        impl FromValue for $type {
            fn from_value(value: &Value) -> Option<$type> {
                match value {
                    $pattern => Some($result),
                    _ => None,
                }
            }
        }
    )+};
}

from_value! {
    bool: Value::Flag(is_set) => *is_set,
    f64: Value::Number(number) => *number,
    u64: Value::Whole(number) | Value::Size(number) => *number,
    Duration: Value::Number(seconds) => Duration::from_secs_f64(*seconds),
    Dur: Value::Number(seconds) => Dur::from_ns(Duration::from_secs_f64(*seconds).as_nanos() as u64),
    Rate: Value::Rate(Some(rate)) => *rate,
    Vec<u64>: Value::List(numbers) => numbers.clone(),
    String: Value::Word(word) => word.clone(),
    Compare: Value::Word(word) => if word == "time" { Compare::Time } else { Compare::Hash },
    Fsync: Value::Word(word) => match word.as_str() {
        "each" => Fsync::Each,
        "none" => Fsync::Never,
        _ => Fsync::Batch,
    },
    Revocation: Value::Word(word) => if word == "finish" { Revocation::Finish } else { Revocation::End },
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Option<T>> {
        T::from_value(value).map(Some)
    }
}

/// The value of a field whose setting is left out.
fn initial<T: FromValue + Default>(name: &str) -> T {
    let declared = SETTINGS.iter().find(|setting| setting.param.name == name && setting.unset.is_none());
    declared.and_then(|setting| T::from_value(&Value::from(setting.param.default))).unwrap_or_default()
}

const ALL: &[&str] = &["send", "recv", "tunnel", "path", "harm"];
const CONNECTING: &[&str] = &["send", "tunnel", "path"];
const LASTING: &[&str] = &["send", "recv", "tunnel"];
const SENDING: &[&str] = &["send", "tunnel"];
const RECEIVING: &[&str] = &["recv"];
const SERVING: &[&str] = &["recv", "tunnel"];
const FILES: &[&str] = &["send", "recv"];

const RATE: Kind = Kind::Rate { min: Rate::from_mbps(1), max: Rate::from_gbps(1000) };

const fn size(min: u64) -> Kind {
    Kind::Size { min, max: 1_000_000_000_000_000 }
}

const fn seconds(min: f64, max: f64) -> Kind {
    Kind::Number { min, max, unit: Unit::Named("seconds") }
}

/// Declares the settings. Each declaration has these parts:
///
/// - the doc comment, which is the help text, and the name in Python; the field is documented by
///   the first line
/// - `option` and `commands`
/// - `kind`, the allowed values
/// - `default`, a fixed value, or `unset`, which describes the value if the setting is left out
/// - `field`, a field of [`Settings`] with its type, or `set`, which writes into another part of
///   the configuration
macro_rules! settings {
    ($(
        #[doc = $meaning:literal]
        $(#[doc = $more:literal])*
        $name:ident {
            option: $option:literal,
            commands: $commands:expr,
            kind: $kind:expr,
            $(default: $default:expr,)?
            $(unset: $unset:literal,)?
            $(field: $field:ident: $type:ty,)?
            $(set: |$config:ident, $value:ident: $value_type:ty| $body:expr,)?
        }
    )+) => {
        /// The settings that belong to no other part of the configuration.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(
                #[doc = $meaning]
                pub $field: $type,
            )?)+
        }

        impl Default for Settings {
            fn default() -> Settings {
                Settings { $($($field: initial(stringify!($name)),)?)+ }
            }
        }

        /// All settings, in the order of help texts.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            param: Param {
                name: stringify!($name),
                kind: $kind,
                default: settings!(@default $($default)?),
                meaning: concat!($meaning $(, $more)*).trim_ascii_start(),
                source: "sparelane",
            },
            unset: settings!(@unset $($unset)?),
            option: $option,
            commands: $commands,
            write: |config, value| {
                $(
                    let written = <$type>::from_value(value).map(|value| config.settings.$field = value);
                )?
                $(
                    let written = <$value_type>::from_value(value).map(|$value| {
                        let $config = config;
                        $body
                    });
                )?
                // A test writes the default of each setting, so all types agree.
                debug_assert!(written.is_some(), "{}: {value} has another type", stringify!($name));
            },
        }),+];
    };
    (@default $default:expr) => {
        $default
    };
    // A setting without a fixed default needs some value of `Param`; nothing reads it.
    (@default) => {
        DefaultValue::Rate(None)
    };
    (@unset $unset:literal) => {
        Some($unset)
    };
    (@unset) => {
        None
    };
}

settings! {
    /// Highest rate of the tail, such as 100Mbps.
    tail_rate {
        option: "--tail-rate",
        commands: ALL,
        kind: RATE,
        unset: "measured",
        set: |config, rate: Rate| config.node.tail = TailConfig { rate, measured: false, ..config.node.tail },
    }
    /// Upper bound of the measured rate of the tail.
    tail_rate_cap {
        option: "--tail-rate-cap",
        commands: ALL,
        kind: RATE,
        unset: "10Gbps",
        set: |config, rate: Rate| config.node.tail.cap = rate,
    }
    /// Tail if the path clears the DSCP of lower classes: send none, back off when queues grow, or
    /// send anyway.
    unmarked {
        option: "--unmarked",
        commands: ALL,
        kind: Kind::Choice(&["none", "scavenger", "ignore"]),
        default: Word("none"),
        set: |config, word: String| config.node.unmarked = match word.as_str() {
            "scavenger" => Unmarked::Scavenger,
            "ignore" => Unmarked::Ignore,
            _ => Unmarked::NoTail,
        },
    }
    /// Highest rate at which this host sends packets, such as 50Mbps.
    rate {
        option: "--rate",
        commands: SENDING,
        kind: RATE,
        unset: "no limit",
        field: rate: Option<Rate>,
    }
    /// Largest IP packet, bytes.
    mtu {
        option: "--mtu",
        commands: ALL,
        kind: Kind::Whole { min: 1280, max: 9048, unit: Unit::Named("bytes") },
        unset: "1500, or less if the path carries less",
        set: |config, bytes: u64| {
            // An IPv6 header with a UDP header; those of IPv4 are smaller.
            config.udp_payload_bytes = u16::try_from(bytes.saturating_sub(48)).unwrap_or(u16::MAX);
        },
    }
    /// Largest memory of a flow, such as 32MB.
    window {
        option: "--window",
        commands: ALL,
        kind: Kind::Size { min: 20_000, max: MAX_WINDOW_BYTES },
        unset: "32MiB for files, 1MiB in a tunnel",
        set: |config, bytes: u64| (config.window_bytes, config.node.window_bytes) = (Some(bytes), bytes),
    }
    /// Largest memory for received data of all peers, such as 1GB.
    memory {
        option: "--memory",
        commands: SERVING,
        kind: size(1_000_000),
        default: Size(1_000_000_000),
        set: |config, bytes: u64| config.node.memory_bytes = bytes,
    }
    /// Largest memory for received data of one peer's key, such as 250MB.
    memory_per_key {
        option: "--memory-per-key",
        commands: SERVING,
        kind: size(1_000_000),
        default: Size(250_000_000),
        set: |config, bytes: u64| config.node.memory_per_key_bytes = bytes,
    }
    /// DSCP of each class, highest class first; a single value turns the lower classes off.
    dscp {
        option: "--dscp",
        commands: ALL,
        kind: Kind::Numbers,
        default: List(&[
            DEFAULT_DSCP[0] as u64,
            DEFAULT_DSCP[1] as u64,
            DEFAULT_DSCP[2] as u64,
            DEFAULT_DSCP[3] as u64,
        ]),
        set: |config, codes: Vec<u64>| {
            // Larger numbers stay larger than any code point, so that the check of the socket's
            // configuration names them.
            config.udp.dscp = codes.iter().map(|&code| u8::try_from(code).unwrap_or(u8::MAX)).collect();
        },
    }
    /// If no peer is trusted yet, trust the first one and save its key.
    first_contact {
        option: "--trust-on-first-contact",
        commands: ALL,
        kind: Kind::Flag,
        default: Flag(false),
        field: first_contact: bool,
    }
    /// Line rate of this host.
    line_rate {
        option: "--line-rate",
        commands: ALL,
        kind: RATE,
        unset: "the interface's speed",
        field: line_rate: Option<Rate>,
    }
    /// Time RAPID's gaps with a busy loop, which is exact but occupies a core.
    busy_wait {
        option: "--busy-wait",
        commands: ALL,
        kind: Kind::Flag,
        default: Flag(false),
        field: busy_wait: bool,
    }
    /// Use one system call per datagram.
    offload {
        option: "--no-offload",
        commands: ALL,
        kind: Kind::Flag,
        default: Flag(true),
        set: |config, is_set: bool| config.udp.offload = is_set,
    }
    /// Send batches (GSO): if kernel and interface support it, or fail if they do not, or never.
    gso {
        option: "--gso",
        commands: ALL,
        kind: Kind::Choice(&["auto", "require", "off"]),
        default: Word("auto"),
        set: |config, word: String| config.udp.gso = match word.as_str() {
            "require" => Gso::Require,
            "off" => Gso::Off,
            _ => Gso::Auto,
        },
    }
    /// Give up after this many seconds without an answer.
    connect_timeout_s {
        option: "--connect-timeout",
        commands: CONNECTING,
        kind: seconds(0.1, 3600.0),
        default: Number(10.0),
        field: connect_timeout: Duration,
    }
    /// Restore a lost connection for up to this many seconds; 0 gives up at once.
    retry_s {
        option: "--retry",
        commands: &["send"],
        kind: seconds(0.0, 86_400.0),
        default: Number(60.0),
        field: retry: Duration,
    }
    /// Disconnect a peer after this many seconds of silence.
    idle_timeout_s {
        option: "--idle-timeout",
        commands: LASTING,
        kind: seconds(1.0, 3600.0),
        default: Number(30.0),
        field: idle_timeout: Duration,
    }
    /// Disconnect a peer that makes no progress for this many seconds.
    stall_timeout_s {
        option: "--stall-timeout",
        commands: FILES,
        kind: seconds(1.0, 86_400.0),
        default: Number(300.0),
        field: stall_timeout: Duration,
    }
    /// After SIGHUP, end all that a removed key has open, or let what is running finish.
    revocation {
        option: "--revocation",
        commands: SERVING,
        kind: Kind::Choice(&["end", "finish"]),
        default: Word("end"),
        field: revocation: Revocation,
    }
    /// Count files as sent that the receiver has with an equal hash, or with equal size and time.
    compare {
        option: "--compare",
        commands: &["send"],
        kind: Kind::Choice(&["hash", "time"]),
        default: Word("hash"),
        field: compare: Compare,
    }
    /// Largest file that is received, such as 5GB.
    max_size {
        option: "--max-size",
        commands: RECEIVING,
        kind: size(1),
        unset: "no limit",
        field: max_size_bytes: Option<u64>,
    }
    /// Largest total of the files of one key while the command runs, such as 100GB.
    quota {
        option: "--quota",
        commands: RECEIVING,
        kind: size(1),
        unset: "no limit",
        field: quota_bytes: Option<u64>,
    }
    /// Refuse files that would leave less than this space free, such as 1GB.
    min_free {
        option: "--min-free",
        commands: RECEIVING,
        kind: size(0),
        default: Size(0),
        field: min_free_bytes: u64,
    }
    /// Force files to the disk one by one, or several together; none leaves it to the system.
    fsync {
        option: "--fsync",
        commands: RECEIVING,
        kind: Kind::Choice(&["each", "batch", "none"]),
        default: Word("batch"),
        field: fsync: Fsync,
    }
    /// Remove incomplete files that have not changed for this many days.
    partial_age_days {
        option: "--partial-age",
        commands: RECEIVING,
        kind: Kind::Number { min: 0.0, max: 36_500.0, unit: Unit::Named("days") },
        default: Number(30.0),
        field: partial_age_days: f64,
    }
    /// Time between samples of --telemetry.
    sample_interval_s {
        option: "--sample-interval",
        commands: LASTING,
        kind: seconds(1e-4, 3600.0),
        default: Number(0.01),
        field: sample_interval: Dur,
    }
    /// Maximum number of events that --qlog writes.
    qlog_events {
        option: "--qlog-events",
        commands: LASTING,
        kind: Kind::Whole { min: 1, max: 1_000_000_000, unit: Unit::Named("events") },
        default: Whole(1_000_000),
        field: qlog_events: u64,
    }
}

impl WireConfig {
    /// Applies settings, given as pairs of name and text, such as `("gso", "off")`.
    ///
    /// # Errors
    /// A name is unknown, or a value is not allowed. The code points are checked together by
    /// [`UdpConfig::fault`](crate::udp::UdpConfig::fault).
    pub fn apply(&mut self, settings: &[(String, String)]) -> Result<(), ChoiceError> {
        for (name, text) in settings {
            let setting = SETTINGS.iter().find(|setting| setting.param.name == name).ok_or_else(|| {
                let known: Vec<_> = SETTINGS.iter().map(|setting| setting.param.name).collect();
                ChoiceError::Setting { key: name.clone(), known: known.join(", ") }
            })?;
            let value = parse_value(&setting.param, name, text).map_err(|_| ChoiceError::Form {
                key: name.clone(),
                text: text.clone(),
                allowed: setting.param.kind.to_string().trim_end().to_owned(),
            })?;
            (setting.write)(self, &value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Identity, Trusted};

    fn config() -> WireConfig {
        WireConfig::new(Identity::generate().expect("a key"), Trusted::default())
    }

    #[test]
    fn declared_defaults_are_those_of_the_configuration() {
        let (plain, mut written) = (config(), None);
        for setting in SETTINGS {
            let changed = written.get_or_insert_with(|| plain.clone());
            match setting.param.default {
                _ if setting.unset.is_some() => {}
                default => {
                    let value = Value::from(default);
                    setting.param.check(&value).expect(setting.param.name);
                    (setting.write)(changed, &value);
                }
            }
        }
        let written = written.expect("there are settings");
        assert_eq!(format!("{written:?}"), format!("{plain:?}"));
    }

    #[test]
    fn names_options_and_texts_are_complete_and_unique() {
        for (at, setting) in SETTINGS.iter().enumerate() {
            let name = setting.param.name;
            assert!(SETTINGS[..at].iter().all(|other| other.param.name != name && other.option != setting.option));
            assert!(setting.option.starts_with("--") && setting.param.meaning.ends_with('.'), "{name}");
            assert!(!setting.commands.is_empty() && setting.commands.iter().all(|name| ALL.contains(name)), "{name}");
        }
    }

    #[test]
    fn errors_state_the_allowed_values() {
        let cases = [
            ("speed", "1", "there is no setting \"speed\"; there are tail_rate, "),
            ("tail_rate", "100", "tail_rate = \"100\"; allowed: a rate such as \"100Mbps\", from 1 Mb/s"),
            ("tail_rate_cap", "0Mbps", "tail_rate_cap = \"0Mbps\"; allowed: a rate such as \"100Mbps\", from 1 Mb/s"),
            ("window", "2GB", "window = \"2GB\"; allowed: a size such as \"64KB\", from 20000 to"),
            ("gso", "maybe", "gso = \"maybe\"; allowed: one of auto, require, off"),
            ("idle_timeout_s", "0.5", "idle_timeout_s = \"0.5\"; allowed: a number from 1 to 3600 seconds"),
            ("dscp", "a", "dscp = \"a\"; allowed: whole numbers such as 0,3,11,19"),
        ];
        for (name, text, start) in cases {
            let error = config().apply(&[(name.to_owned(), text.to_owned())]).expect_err(name);
            assert!(error.to_string().starts_with(start), "{error}");
        }
    }
}
