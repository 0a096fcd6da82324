//! The settings of a host on the wire, each declared once.
//!
//! A setting is a [`Param`], as a controller declares them, with its option on the command line and the field of the
//! configuration that it sets. Options, help texts, the attributes of Python's `Options`, their checks and the table of
//! the documentation are derived from [`SETTINGS`]. A new setting is one entry here and one field of a configuration.

use super::config::{Revocation, WireConfig};
use crate::carrier::DEFAULT_DSCP;
use crate::flow::{MAX_WINDOW_BYTES, TailConfig};
use crate::host::Waiting;
use crate::node::path::Unmarked;
use crate::node::{ChoiceError, parse_value};
use crate::udp::Gso;
use sparelane_cc::{DefaultValue, Kind, Param, Unit, Value};
use sparelane_core::{Dur, Rate};
use std::time::Duration;

/// A setting of a host on the wire.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name in Python, allowed values, default and meaning.
    pub param: Param,
    /// Describes the value that holds if the setting is left out, for settings whose default is no fixed value.
    pub unset: Option<&'static str>,
    /// The option on the command line. An option of a flag reverses the default.
    pub option: &'static str,
    /// The commands that have the option.
    pub commands: &'static [&'static str],
    /// Writes the value into the configuration.
    set: Set,
}

/// Writes a value of one type into a configuration.
#[derive(Clone, Copy, Debug)]
enum Set {
    Seconds(fn(&mut WireConfig, Duration)),
    Whole(fn(&mut WireConfig, u64)),
    Flag(fn(&mut WireConfig, bool)),
    Word(fn(&mut WireConfig, &str)),
    Rate(fn(&mut WireConfig, Rate)),
    Size(fn(&mut WireConfig, u64)),
    List(fn(&mut WireConfig, &[u64])),
}

const ALL: &[&str] = &["send", "recv", "tunnel", "path", "harm"];
const CONNECTING: &[&str] = &["send", "tunnel", "path"];
const LASTING: &[&str] = &["send", "recv", "tunnel"];
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

const fn param(name: &'static str, kind: Kind, default: DefaultValue, meaning: &'static str) -> Param {
    Param { name, kind, default, meaning, source: "sparelane" }
}

/// All settings, in the order of help texts.
pub static SETTINGS: &[Setting] = &[
    Setting {
        param: param("tail_rate", RATE, DefaultValue::Rate(None), "Highest rate of the tail, such as 100Mbps."),
        unset: Some("measured"),
        option: "--tail-rate",
        commands: ALL,
        set: Set::Rate(|config, rate| config.node.tail = TailConfig { rate, measured: false, ..config.node.tail }),
    },
    Setting {
        param: param("tail_rate_cap", RATE, DefaultValue::Rate(None), "Upper bound of the measured rate of the tail."),
        unset: Some("10Gbps"),
        option: "--tail-rate-cap",
        commands: ALL,
        set: Set::Rate(|config, rate| config.node.tail.cap = rate),
    },
    Setting {
        param: param(
            "unmarked",
            Kind::Choice(&["none", "scavenger", "ignore"]),
            DefaultValue::Word("none"),
            "Tail if the path clears the DSCP of lower classes: send none, back off when queues grow, or send anyway.",
        ),
        unset: None,
        option: "--unmarked",
        commands: ALL,
        set: Set::Word(|config, word| {
            config.node.unmarked = match word {
                "scavenger" => Unmarked::Scavenger,
                "ignore" => Unmarked::Ignore,
                _ => Unmarked::NoTail,
            }
        }),
    },
    Setting {
        param: param(
            "mtu",
            Kind::Whole { min: 1280, max: 9048, unit: Unit::Named("bytes") },
            DefaultValue::Whole(1500),
            "Largest IP packet, bytes.",
        ),
        unset: Some("1500, or less if the path carries less"),
        option: "--mtu",
        commands: ALL,
        // An IPv6 header with a UDP header; those of IPv4 are smaller.
        set: Set::Whole(|config, bytes| {
            config.udp_payload_bytes = u16::try_from(bytes.saturating_sub(48)).unwrap_or(u16::MAX)
        }),
    },
    Setting {
        param: param(
            "window",
            Kind::Size { min: 20_000, max: MAX_WINDOW_BYTES },
            DefaultValue::Size(32 << 20),
            "Largest memory of a flow, such as 32MB.",
        ),
        unset: Some("32MiB for files, 1MiB in a tunnel"),
        option: "--window",
        commands: ALL,
        set: Set::Size(|config, bytes| {
            (config.window_bytes, config.node.window_bytes) = (Some(bytes), bytes);
        }),
    },
    Setting {
        param: param(
            "memory",
            size(1_000_000),
            DefaultValue::Size(1_000_000_000),
            "Largest memory for received data of all peers, such as 1GB.",
        ),
        unset: None,
        option: "--memory",
        commands: SERVING,
        set: Set::Size(|config, bytes| config.node.memory_bytes = bytes),
    },
    Setting {
        param: param(
            "memory_per_key",
            size(1_000_000),
            DefaultValue::Size(250_000_000),
            "Largest memory for received data of one peer's key, such as 250MB.",
        ),
        unset: None,
        option: "--memory-per-key",
        commands: SERVING,
        set: Set::Size(|config, bytes| config.node.memory_per_key_bytes = bytes),
    },
    Setting {
        param: param(
            "dscp",
            Kind::Numbers,
            DefaultValue::List(&[
                DEFAULT_DSCP[0] as u64,
                DEFAULT_DSCP[1] as u64,
                DEFAULT_DSCP[2] as u64,
                DEFAULT_DSCP[3] as u64,
            ]),
            "DSCP of each class, highest class first; a single value turns the lower classes off.",
        ),
        unset: None,
        option: "--dscp",
        commands: ALL,
        // Larger numbers stay larger than any code point, so that the check of the socket's configuration names them.
        set: Set::List(|config, codes| {
            config.udp.dscp = codes.iter().map(|&code| u8::try_from(code).unwrap_or(u8::MAX)).collect();
        }),
    },
    Setting {
        param: param(
            "first_contact",
            Kind::Flag,
            DefaultValue::Flag(false),
            "If no peer is trusted yet, trust the first one and save its key.",
        ),
        unset: None,
        option: "--trust-on-first-contact",
        commands: ALL,
        set: Set::Flag(|config, is_set| config.first_contact = is_set),
    },
    Setting {
        param: param("line_rate", RATE, DefaultValue::Rate(None), "Line rate of this host."),
        unset: Some("the interface's speed"),
        option: "--line-rate",
        commands: ALL,
        set: Set::Rate(|config, rate| config.line_rate = Some(rate)),
    },
    Setting {
        param: param(
            "busy_wait",
            Kind::Flag,
            DefaultValue::Flag(false),
            "Time RAPID's gaps with a busy loop, which is exact but occupies a core.",
        ),
        unset: None,
        option: "--busy-wait",
        commands: ALL,
        set: Set::Flag(|config, is_set| config.waits = if is_set { Waiting::Busy } else { Waiting::Sleep }),
    },
    Setting {
        param: param("offload", Kind::Flag, DefaultValue::Flag(true), "Use one system call per datagram."),
        unset: None,
        option: "--no-offload",
        commands: ALL,
        set: Set::Flag(|config, is_set| config.udp.offload = is_set),
    },
    Setting {
        param: param(
            "gso",
            Kind::Choice(&["auto", "require", "off"]),
            DefaultValue::Word("auto"),
            "Send batches (GSO): if kernel and interface support it, or fail if they do not, or never.",
        ),
        unset: None,
        option: "--gso",
        commands: ALL,
        set: Set::Word(|config, word| {
            config.udp.gso = match word {
                "require" => Gso::Require,
                "off" => Gso::Off,
                _ => Gso::Auto,
            }
        }),
    },
    Setting {
        param: param(
            "connect_timeout_s",
            seconds(0.1, 3600.0),
            DefaultValue::Number(10.0),
            "Give up after this many seconds without an answer.",
        ),
        unset: None,
        option: "--connect-timeout",
        commands: CONNECTING,
        set: Set::Seconds(|config, time| config.connect_timeout = time),
    },
    Setting {
        param: param(
            "idle_timeout_s",
            seconds(1.0, 3600.0),
            DefaultValue::Number(30.0),
            "Disconnect a peer after this many seconds of silence.",
        ),
        unset: None,
        option: "--idle-timeout",
        commands: LASTING,
        set: Set::Seconds(|config, time| config.idle_timeout = time),
    },
    Setting {
        param: param(
            "stall_timeout_s",
            seconds(1.0, 86_400.0),
            DefaultValue::Number(300.0),
            "Disconnect a peer that makes no progress for this many seconds.",
        ),
        unset: None,
        option: "--stall-timeout",
        commands: FILES,
        set: Set::Seconds(|config, time| config.stall_timeout = time),
    },
    Setting {
        param: param(
            "revocation",
            Kind::Choice(&["end", "finish"]),
            DefaultValue::Word("end"),
            "After SIGHUP, end all that a removed key has open, or let what is running finish.",
        ),
        unset: None,
        option: "--revocation",
        commands: SERVING,
        set: Set::Word(|config, word| {
            config.revocation = if word == "finish" { Revocation::Finish } else { Revocation::End };
        }),
    },
    Setting {
        param: param("max_size", size(1), DefaultValue::Size(0), "Largest file that is received, such as 5GB."),
        unset: Some("no limit"),
        option: "--max-size",
        commands: RECEIVING,
        set: Set::Size(|config, bytes| config.max_size_bytes = Some(bytes)),
    },
    Setting {
        param: param(
            "quota",
            size(1),
            DefaultValue::Size(0),
            "Largest total of the files of one key while the command runs, such as 100GB.",
        ),
        unset: Some("no limit"),
        option: "--quota",
        commands: RECEIVING,
        set: Set::Size(|config, bytes| config.quota_bytes = Some(bytes)),
    },
    Setting {
        param: param(
            "min_free",
            size(0),
            DefaultValue::Size(0),
            "Refuse files that would leave less than this space free, such as 1GB.",
        ),
        unset: None,
        option: "--min-free",
        commands: RECEIVING,
        set: Set::Size(|config, bytes| config.min_free_bytes = bytes),
    },
    Setting {
        param: param(
            "sample_interval_s",
            seconds(1e-4, 3600.0),
            DefaultValue::Number(0.01),
            "Time between samples of --telemetry.",
        ),
        unset: None,
        option: "--sample-interval",
        commands: LASTING,
        set: Set::Seconds(|config, time| config.sample_interval = Dur::from_ns(time.as_nanos() as u64)),
    },
    Setting {
        param: param(
            "qlog_events",
            Kind::Whole { min: 1, max: 1_000_000_000, unit: Unit::Named("events") },
            DefaultValue::Whole(1_000_000),
            "Maximum number of events that --qlog writes.",
        ),
        unset: None,
        option: "--qlog-events",
        commands: LASTING,
        set: Set::Whole(|config, events| config.qlog_events = events),
    },
];

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
            setting.write(self, &value);
        }
        Ok(())
    }
}

impl Setting {
    /// Writes a value that the declaration allows.
    fn write(&self, config: &mut WireConfig, value: &Value) {
        match (self.set, value) {
            (Set::Seconds(set), Value::Number(seconds)) => set(config, Duration::from_secs_f64(*seconds)),
            (Set::Whole(set), Value::Whole(number)) => set(config, *number),
            (Set::Flag(set), Value::Flag(is_set)) => set(config, *is_set),
            (Set::Word(set), Value::Word(word)) => set(config, word),
            (Set::Rate(set), Value::Rate(Some(rate))) => set(config, *rate),
            (Set::Size(set), Value::Size(bytes)) => set(config, *bytes),
            (Set::List(set), Value::List(numbers)) => set(config, numbers),
            // A test writes the default of each setting, so no kind lacks its function.
            _ => debug_assert!(false, "{}: {value} has another type", self.param.name),
        }
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
                    setting.write(changed, &value);
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
