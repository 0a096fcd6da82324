//! A random scenario: small enough to run in milliseconds, with any key that a scenario can have.

use super::value::{limit, of_key, of_param, one_in, one_of, rate, span, whole};
use sparelane_catalogue::queue::QUEUES;
use sparelane_cc::{Controller, Kind, Registry};
use sparelane_core::{Domain, Dur, Stream};
use sparelane_scenario::{Scenario, Source};
use sparelane_sim::{Network, NodeKind};
use std::fmt::Write;
use std::path::Path;

/// A scenario in parts, some of which can be left out or replaced.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The end of the run, microseconds.
    pub duration_us: u64,
    /// True if every flow has an end.
    pub ends: bool,
    /// All other tables.
    pub network: String,
    /// Names of the schemes, with the text of each table.
    pub schemes: Vec<(String, String)>,
    /// Time series, measures and a log of packets.
    pub observers: String,
    /// Names and contents of the traces, which the scenario expects in its folder.
    pub traces: Vec<(String, String)>,
}

/// Beginnings of keys, each of which some scenarios must have.
pub const COUNTED_KEYS: [&str; 13] = [
    "[[change]]",
    "down = true",
    "reorder = true",
    "trace =",
    "jitter =",
    "reorder_distance =",
    "duplicate =",
    "burst_loss =",
    "policer =",
    "pause =",
    "pfc =",
    "\nafter =",
    "kind = \"all-",
];

/// The variant of a [`Drawn`] to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The scenario as drawn.
    AsDrawn,
    /// Longer by this many seconds, without observers.
    Longer(u64),
    /// Like [`Form::Longer`], with plain TCP in place of every controller.
    Plain(u64),
}

impl Drawn {
    /// The scenario as a file.
    pub fn text(&self, form: Form) -> String {
        let longer = if let Form::Longer(seconds) | Form::Plain(seconds) = form { seconds } else { 0 };
        let mut text = format!("duration = \"{}us\"\n{}", self.duration_us + longer * 1_000_000, self.network);
        for (name, scheme) in &self.schemes {
            let _ = write!(text, "\n[scheme.{name}]\n");
            if form == Form::Plain(longer) {
                let stays = |line: &&str| line.starts_with("class") || line.starts_with("transport");
                text += "controller = \"newreno\"\n";
                scheme.lines().filter(stays).for_each(|line| text += &format!("{line}\n"));
            } else {
                text += scheme;
            }
        }
        text + if form == Form::AsDrawn { &self.observers } else { "" }
    }
}

/// Draws scenario number `index` under `seed`. The parser refuses some, because settings are drawn one by one and not
/// all are compatible.
pub fn draw(seed: u64, index: u64) -> Drawn {
    let rng = &mut Stream::new(seed, Domain::Test, index);
    let duration_us = whole(rng, 20_000, 800_000);
    let routings = ["single-path", "first-cable", "ecmp", "spray", "spray-round-robin"];
    let (topology, routing) = (topology(rng), one_of(rng, &routings));
    let mut text = format!("seed = {}\nrouting = \"{routing}\"\n{topology}", rng.below(1_000_000));
    let network = parsed(&topology);
    let schemes: Vec<_> = (0..=rng.below(3)).map(|number| (format!("s{number}"), scheme(rng))).collect();
    let wants = |word: &str| schemes.iter().any(|(_, scheme)| scheme.contains(&format!("\"{word}\"")));
    let rcp = wants("rcp");
    let priority = schemes.iter().any(|(_, scheme)| scheme.contains("class =") || scheme.contains("\"rc3\""));

    text += &queues(rng, priority, rcp);
    text += &links(rng, &network);
    text += &hosts(rng, &network);
    text += &transport(rng, "transport");
    let mut ends = true;
    for number in 0..=rng.below(3) {
        let (workload, has_end) = workload(rng, &network, duration_us, &schemes);
        let _ = writeln!(text, "{workload}name = \"w{number}\"");
        if number > 0 && one_in(rng, 3) {
            let _ = writeln!(text, "after = [\"w{}\"]", rng.below(number));
        }
        ends &= has_end;
    }
    text += &cross_traffic(rng, &network, duration_us);
    text += &drops(rng, &network);
    let observers = observers(rng, &network, duration_us, rcp);
    text += &changes(rng, &network, duration_us);
    text += &effects(rng, &network);
    let (links, traces) = traces(rng, &network, &format!("{seed}-{index}"));
    text += &links;
    Drawn { duration_us, ends, network: text, schemes, observers, traces }
}

/// The network of a topology table.
fn parsed(topology: &str) -> Network {
    let rest = "\n[queue]\nlimit = \"1MB\"\n[scheme.s]\ncontroller = \"newreno\"\n[workload]\nkind = \"bulk\"\npairs = \"random\"\nflows = 1\n";
    let text = format!("duration = \"1s\"\n{topology}{rest}");
    let built =
        Scenario::parse(&text, &Source::at(Path::new("topology.toml")), &[]).and_then(|scenario| scenario.build());
    built.unwrap_or_else(|error| panic!("{error}\n{text}")).network
}

fn topology(rng: &mut Stream) -> String {
    let delay = |rng: &mut Stream| span(rng, Dur::ZERO, Dur::from_ms(20));
    let link = |rng: &mut Stream| rate(rng, 1_000_000, 100_000_000);
    let (a, b, c, d) = (link(rng), link(rng), delay(rng), delay(rng));
    let (few, more) = (1 + rng.below(3), 2 + rng.below(4));
    match rng.below(8) {
        0..3 => format!(
            "[topology]\nkind = \"dumbbell\"\npairs = {few}\naccess_rate = {a}\naccess_delay = {c}\n\
             bottleneck_rate = {b}\nbottleneck_delay = {d}\n"
        ),
        3 | 4 => format!(
            "[topology]\nkind = \"chain\"\nrouters = {more}\nhosts_per_router = {few}\nlink_rate = {b}\n\
             link_delay = {d}\naccess_rate = {a}\naccess_delay = {c}\n"
        ),
        5 => format!("[topology]\nkind = \"star\"\nhosts = {more}\nrate = {a}\ndelay = {c}\n"),
        6 => format!("[topology]\nkind = \"fat-tree\"\nk = 4\nrate = {a}\nhost_rate = {b}\ndelay = {c}\n"),
        _ => format!(
            "[topology]\nkind = \"spine-leaf\"\nspines = {few}\nleaves = {more}\nservers = 2\nserver_rate = {a}\n\
             spine_rate = {b}\ndelay = {c}\n"
        ),
    }
}

/// A controller with up to three of its parameters, with its own transport or the run's.
fn scheme(rng: &mut Stream) -> String {
    let registry = Registry::built_in();
    let all = registry.all();
    // RC3 is drawn one time in five, because most controllers can be nested in it.
    let rc3 = registry.find("rc3").filter(|_| one_in(rng, 5));
    let controller = rc3.unwrap_or(&all[rng.below(all.len() as u64) as usize]);
    let mut text = format!("controller = \"{}\"\n", controller.name);
    text += &params(rng, controller, "\n");
    let mut names = vec![controller.name];
    if let Some(param) = controller.params.iter().find(|param| param.kind == Kind::Controller) {
        let inside: Vec<_> = all.iter().filter(|inside| !["rc3", "rapid"].contains(&inside.name)).collect();
        let inside = one_of(rng, &inside);
        names.push(inside.name);
        let inner = params(rng, inside, ", ");
        let _ = writeln!(text, "{} = {{ controller = \"{}\"{inner} }}", param.name, inside.name);
    }
    let classed = one_in(rng, 8);
    if classed && !names.contains(&"rc3") {
        let _ = writeln!(text, "class = {}", rng.below(8));
    }
    let exact_marks = names.iter().any(|name| ["dctcp", "rtcp"].contains(name));
    if exact_marks || one_in(rng, 6) {
        let ecn = if exact_marks {
            one_of(rng, &["dctcp", "l4s", "accurate"])
        } else {
            one_of(rng, &["off", "classic", "dctcp", "l4s", "accurate"])
        };
        let _ = writeln!(text, "transport = {{ ecn = \"{ecn}\" }}");
    }
    text
}

/// Up to three parameters, each after a comma or on a line.
fn params(rng: &mut Stream, controller: &Controller, separator: &str) -> String {
    let mut text = String::new();
    let chance = 1 + controller.params.len() as u64 / (1 + rng.below(3));
    for param in controller.params.iter().filter(|_| one_in(rng, chance)).collect::<Vec<_>>() {
        if let Some(value) = of_param(rng, param) {
            text += &match separator {
                "\n" => format!("{} = {value}\n", param.name),
                _ => format!("{separator}{} = {value}", param.name),
            };
        }
    }
    text
}

/// The tables of queues: any discipline, or priorities if schemes need them.
fn queues(rng: &mut Stream, priority: bool, rcp: bool) -> String {
    let mut text = "[queue]\n".to_owned();
    text += &queue(rng, priority, rcp);
    text += if rcp { "rcp = {}\n" } else { "" };
    text += "[nic]\n";
    if priority {
        text += "kind = \"priority\"\n";
    }
    if one_in(rng, 3) {
        let _ = writeln!(text, "limit = {}\nfull = \"{}\"", limit(rng), one_of(rng, &["drop", "wait", "cut"]));
    }
    if one_in(rng, 8) {
        let memory = whole(rng, 5_000, 500_000);
        let _ = writeln!(text, "[switch]\nmemory = \"{memory}B\"\nshare = {:?}", 0.1 + rng.unit() * 4.0);
    }
    if one_in(rng, 6) {
        let of = one_of(rng, &["routers", "queues"]);
        let share = one_of(rng, &["0.5", "1.0"]);
        let _ = write!(text, "[[queue_at]]\nof = \"{of}\"\nshare = {share}\nlimit = {}\n", limit(rng));
        text += &queue(rng, priority, rcp).replace("limit = ", "#");
    }
    text
}

/// The keys of one queue.
fn queue(rng: &mut Stream, priority: bool, rcp: bool) -> String {
    let plain = rcp || one_in(rng, 2);
    let form = &QUEUES[if plain { usize::from(priority) } else { rng.below(QUEUES.len() as u64) as usize }];
    let mut text = format!("kind = \"{}\"\nlimit = {}\n", form.name, limit(rng));
    for key in form.keys {
        let required = key.default == sparelane_catalogue::schema::Fallback::Required;
        if let (true, Some(value)) = (required || one_in(rng, 3), of_key(rng, key)) {
            // The two thresholds of RED must be in order.
            let value = match key.name {
                "min" => format!("\"{}B\"", whole(rng, 1_000, 20_000)),
                "max" => format!("\"{}B\"", whole(rng, 21_000, 200_000)),
                "cell" => format!("\"{}B\"", whole(rng, 1, 2_000)),
                _ => value,
            };
            let _ = writeln!(text, "{} = {value}", key.name);
        }
    }
    if ["fifo", "priority"].contains(&form.name) && one_in(rng, 3) {
        let _ = writeln!(text, "mark_at = {}", limit(rng));
    }
    if form.name == "priority" && one_in(rng, 3) {
        let _ = writeln!(text, "push_out = {}", one_in(rng, 2));
    }
    if one_in(rng, 8) {
        text += "low_priority = \"drop\"\n";
    }
    text
}

fn links(rng: &mut Stream, network: &Network) -> String {
    let mut text = String::new();
    if one_in(rng, 2) {
        let loss = one_of(rng, &[0.0001, 0.001, 0.01, 0.05, 0.2]);
        let select = one_of(rng, &["access", "all"]);
        let of = one_of(rng, &["all", "data"]);
        let _ = write!(text, "[[link]]\nselect = \"{select}\"\nloss = {loss}\nloss_of = \"{of}\"\n");
        if select == "access" && one_in(rng, 2) {
            let _ = writeln!(text, "loss_from = \"{}\"", one_of(rng, &["hosts", "routers"]));
        }
    }
    if one_in(rng, 4) {
        let [from, to] = cable(rng, network);
        let rate = rate(rng, 500_000, 200_000_000);
        let _ = write!(text, "[[link]]\nbetween = [\"{from}\", \"{to}\"]\nrate = {rate}\nrate_from = \"{from}\"\n");
        let _ = write!(text, "delay = {}\nlimit = {}\n", span(rng, Dur::ZERO, Dur::from_ms(50)), limit(rng));
    }
    if one_in(rng, 6) {
        let select = one_of(rng, &["access", "all"]);
        let (packets, quanta) = (whole(rng, 1, 30), whole(rng, 20, 65_535));
        let unit = one_of(rng, &["packets", "kB"]);
        let (xoff, xon) = (format!("{packets}{unit}"), format!("{}{unit}", rng.below(packets)));
        let _ = write!(text, "[[link]]\nselect = \"{select}\"\n");
        let _ = writeln!(text, "pause = {{ xoff = \"{xoff}\", xon = \"{xon}\", quanta = {quanta} }}");
    } else if one_in(rng, 4) {
        let (select, kilobytes) = (one_of(rng, &["access", "all"]), whole(rng, 1, 30));
        let _ = write!(text, "[[link]]\nselect = \"{select}\"\n");
        let _ = writeln!(text, "pfc = {{ xoff = \"{kilobytes}kB\"{} }}", classes(rng));
    }
    text
}

/// The key of the lossless classes: all, or one of the first four.
fn classes(rng: &mut Stream) -> String {
    if one_in(rng, 2) { format!(", classes = [{}]", rng.below(4)) } else { String::new() }
}

/// The two ends of some cable, in either order.
fn cable(rng: &mut Stream, network: &Network) -> [String; 2] {
    let cable = &network.cables[rng.below(network.cables.len() as u64) as usize];
    let mut ends = [cable.a, cable.b].map(|end| network.nodes[end.index()].name.clone());
    if one_in(rng, 2) {
        ends.reverse();
    }
    ends
}

/// Two hosts, by name.
fn pair(rng: &mut Stream, network: &Network) -> [String; 2] {
    let names: Vec<_> =
        network.nodes.iter().filter(|node| node.kind == NodeKind::Host).map(|node| &node.name).collect();
    let first = rng.below(names.len() as u64) as usize;
    let step = 1 + rng.below(names.len() as u64 - 1) as usize;
    [names[first].clone(), names[(first + step) % names.len()].clone()]
}

fn hosts(rng: &mut Stream, network: &Network) -> String {
    let mut text = String::new();
    if one_in(rng, 4) {
        text += "[host]\n";
        text += &host(rng);
    }
    if one_in(rng, 6) {
        let _ = writeln!(text, "[[host_at]]\nhosts = [\"{}\"]", pair(rng, network)[0]);
        text += &host(rng);
    }
    text
}

fn host(rng: &mut Stream) -> String {
    let mut text = String::new();
    for key in ["receive_cost", "ack_cost", "timer_error", "send_cost"] {
        if one_in(rng, 3) {
            let _ = writeln!(text, "{key} = {}", span(rng, Dur::ZERO, Dur::from_us(500)));
        }
    }
    if one_in(rng, 2) {
        let _ = writeln!(text, "interrupt_after = {}", span(rng, Dur::from_ns(1), Dur::from_ms(2)));
        if one_in(rng, 2) {
            let _ = writeln!(text, "interrupt_packets = {}", whole(rng, 1, 64));
        }
        if one_in(rng, 2) {
            let _ = writeln!(text, "ring = {}", whole(rng, 1, 256));
        }
        if one_in(rng, 3) {
            let every = span(rng, Dur::from_ms(1), Dur::from_ms(50));
            let _ = writeln!(text, "stall_every = {every}\nstall_length = {}", span(rng, Dur::ZERO, Dur::from_ms(5)));
        }
    }
    if one_in(rng, 3) {
        let at = one_of(rng, &["arrival", "acknowledgment"]);
        let clock = one_of(rng, &["exact", "1us", "4ms", "10ns"]);
        let _ = writeln!(text, "timestamp_at = \"{at}\"\ntimestamp_clock = \"{clock}\"");
    }
    text
}

fn transport(rng: &mut Stream, table: &str) -> String {
    let mut text = format!("[{table}]\n");
    if one_in(rng, 4) {
        let _ = writeln!(text, "preset = \"{}\"", one_of(rng, &["linux", "rfc", "ns-3"]));
    }
    let sack = !one_in(rng, 6);
    if !sack {
        text += "sack = false\nprr = false\nrack_tlp = false\ndetect_lost_retransmissions = false\nadaptive_reordering = false\n";
    } else {
        for key in ["prr", "rack_tlp", "detect_lost_retransmissions", "adaptive_reordering"] {
            if one_in(rng, 3) {
                let _ = writeln!(text, "{key} = {}", !one_in(rng, 3));
            }
        }
    }
    for key in [
        "limited_transmit",
        "timestamps",
        "rtt_from_handshake",
        "cached_ssthresh",
        "sack_survives_timeout",
        "undo_spurious",
        "syn_loss_resets_window",
    ] {
        if one_in(rng, 5) {
            let _ = writeln!(text, "{key} = {}", one_in(rng, 2));
        }
    }
    if one_in(rng, 3) {
        let restart = one_of(rng, &["no", "rfc5681", "linux"]);
        let _ = writeln!(text, "restart_after_idle = \"{restart}\"");
    }
    if one_in(rng, 4) {
        let flight = one_of(rng, &["clipped", "window", "pipe", "outstanding"]);
        let _ = writeln!(text, "flight_size = \"{flight}\"");
    }
    if one_in(rng, 4) {
        let (every, timeout) = (whole(rng, 1, 64), span(rng, Dur::from_us(1), Dur::from_ms(500)));
        let _ = writeln!(text, "delayed_ack = {{ every = {every}, timeout = {timeout} }}");
    }
    if one_in(rng, 4) {
        let mss = whole(rng, 64, 9_000);
        let _ = writeln!(text, "mss = \"{mss}B\"\nheader = \"{}B\"", whole(rng, 40, 100));
        if one_in(rng, 2) {
            let _ = writeln!(text, "receive_window = \"{}B\"", whole(rng, mss, 100 * mss));
        }
        if one_in(rng, 4) {
            let _ = writeln!(text, "read_rate = \"{}kbps\"", 100 << whole(rng, 0, 12));
        }
        if one_in(rng, 2) {
            let _ = writeln!(text, "send_buffer = \"{}B\"", whole(rng, mss, 100 * mss));
        }
    }
    for (key, min, max) in [("min_rto", 1, 1_000), ("rto_variance_floor", 1, 500), ("syn_timeout", 1, 3_000)] {
        if one_in(rng, 4) {
            let _ = writeln!(text, "{key} = {}", span(rng, Dur::from_ms(min), Dur::from_ms(max)));
        }
    }
    if one_in(rng, 6) {
        let _ = writeln!(text, "max_rto = {}", span(rng, Dur::from_secs(3), Dur::from_secs(60)));
    }
    if one_in(rng, 6) {
        let _ = writeln!(text, "rtt_granularity = \"{}\"", one_of(rng, &["exact", "1ms", "1us", "10ms"]));
    }
    if one_in(rng, 6) {
        let _ = writeln!(text, "resent_rtt_tick = \"{}\"", one_of(rng, &["untold", "1ms", "10ms"]));
    }
    if one_in(rng, 6) {
        let _ = writeln!(text, "rack_timer_delay = {}", span(rng, Dur::from_us(1), Dur::from_ms(50)));
    }
    if one_in(rng, 4) {
        let _ = writeln!(text, "ecn = \"{}\"", one_of(rng, &["off", "classic", "dctcp", "l4s", "accurate"]));
    }
    if one_in(rng, 6) {
        let (send, receive) = (whole(rng, 1, 64), whole(rng, 1, 64));
        let _ = writeln!(text, "send_batch = {send}\nreceive_batch = {receive}");
        let _ = writeln!(text, "receive_batch_timeout = {}", span(rng, Dur::from_us(1), Dur::from_ms(5)));
    }
    text
}

/// A workload. Also returns true if all its flows have an end.
fn workload(rng: &mut Stream, network: &Network, duration_us: u64, schemes: &[(String, String)]) -> (String, bool) {
    let [from, to] = pair(rng, network);
    let size = one_of(rng, &[1, 1_460, 20_000, 150_000, 500_000, 2_000_000]);
    let size = format!("\"{}B\"", 1 + rng.below(size));
    let sizes = match rng.below(4) {
        0 => "{ kind = \"rc3\" }".to_owned(),
        1 => "{ kind = \"w2000\" }".to_owned(),
        2 => "{ kind = \"points\", bytes = [1, 1460, 30000], probability = [0.4, 0.4, 0.2] }".to_owned(),
        _ => format!("{{ kind = \"fixed\", size = {size} }}"),
    };
    let mut ends = true;
    let start_us = rng.below(duration_us / 2);
    let end_us = start_us + 1 + rng.below(duration_us / 2);
    let repeat = whole(rng, 1, 5);
    let mut text = match rng.below(7) {
        0 if one_in(rng, 2) => format!(
            "kind = \"all-reduce\"\nsize = {size}\nalgorithm = \"{}\"\nrepeat = {repeat}\ncompute = {}\n\
             start = \"{start_us}us\"\n",
            one_of(rng, &["ring", "tree"]),
            span(rng, Dur::ZERO, Dur::from_ms(20)),
        ),
        0 => format!("kind = \"all-to-all\"\nsize = {size}\nrepeat = {repeat}\nstart = \"{start_us}us\"\n"),
        1 => format!(
            "kind = \"poisson\"\nflows_per_second = {}\nsizes = {sizes}\ndestinations = \"any\"\nsources = [\"{from}\"]\n\
             end = \"{end_us}us\"\nstart = \"{start_us}us\"\n",
            whole(rng, 1, 200)
        ),
        2 if !sizes.contains("fixed") => format!(
            "kind = \"requests\"\nload = {:?}\nsizes = {sizes}\nclients = [\"{to}\"]\nservers = [\"{from}\"]\n\
             fan_out = [{{ flows = {}, share = 1.0 }}]\nend = \"{end_us}us\"\nstart = \"{start_us}us\"\n",
            0.01 + rng.unit() / 2.0,
            whole(rng, 1, 8)
        ),
        3 => format!(
            "kind = \"web-users\"\npairs = [[\"{from}\", \"{to}\"]]\nusers = {}\nlargest_file = \"200KB\"\n\
             end = \"{end_us}us\"\nstart = \"{start_us}us\"\n",
            whole(rng, 1, 20)
        ),
        _ => {
            ends = !one_in(rng, 6);
            let size = if ends { size } else { "\"unlimited\"".to_owned() };
            let pairs = match one_of(rng, &["given", "random", "permutation", "incast", "next"]) {
                "given" => format!("[[\"{from}\", \"{to}\"]]"),
                word => format!("\"{word}\""),
            };
            let flows = whole(rng, 1, 6);
            let mut text = format!("kind = \"bulk\"\npairs = {pairs}\nflows = {flows}\nsize = {size}\n");
            match rng.below(3) {
                0 => text += &format!("spread = \"{}us\"\n", duration_us / 2),
                1 => text += &format!("gap = \"{}us\"\n", rng.below(duration_us / 12)),
                _ => {}
            }
            if ends && one_in(rng, 5) {
                let (first, then) = (whole(rng, 1, 50_000), whole(rng, 2_000, 50_000));
                let every = whole(rng, 100, 20_000);
                let _ =
                    writeln!(text, "writes = {{ first = \"{first}B\", then = \"{then}B\", every = \"{every}us\" }}");
            }
            text
        }
    };
    let scheme = &schemes[rng.below(schemes.len() as u64) as usize].0;
    if schemes.len() > 1 && one_in(rng, 4) && !text.contains("web-users") {
        let _ = writeln!(text, "mix = {{ {} = 0.3, {} = 0.7 }}", schemes[0].0, schemes[1].0);
    } else {
        let _ = writeln!(text, "scheme = \"{scheme}\"");
    }
    if one_in(rng, 3) {
        text += "connections = \"reused\"\n";
    }
    (format!("[[workload]]\n{text}"), ends)
}

fn cross_traffic(rng: &mut Stream, network: &Network, duration_us: u64) -> String {
    if !one_in(rng, 4) {
        return String::new();
    }
    let [from, to] = pair(rng, network);
    let (rate, packet) = (rate(rng, 50_000, 5_000_000), whole(rng, 64, 1_500));
    let mut text = format!(
        "[[cross_traffic]]\nfrom = [\"{from}\"]\nto = [\"{to}\"]\nrate = {rate}\npacket = \"{packet}B\"\nclass = {}\n\
         start = \"{}us\"\nstop = \"{duration_us}us\"\n",
        rng.below(8),
        rng.below(duration_us / 2)
    );
    text += &match rng.below(3) {
        0 => format!("kind = \"constant\"\nburst = {}\njitter = {:?}\n", whole(rng, 1, 20), rng.unit()),
        1 => "kind = \"constant\"\n".to_owned(),
        _ => "kind = \"aggregate\"\npeak = \"10Mbps\"\nsmallest = \"1500B\"\nlargest = \"60KB\"\n".to_owned(),
    };
    if one_in(rng, 3) {
        text += "bucket = { rate = \"6Mbps\", depth = \"3kB\" }\n";
    }
    text
}

/// Scripted drops of the first transmissions of a flow's segments.
fn drops(rng: &mut Stream, network: &Network) -> String {
    let mut text = String::new();
    for _ in 0..rng.below(3) {
        let [from, to] = cable(rng, network);
        let mut segments: Vec<_> = (0..=rng.below(5)).map(|_| rng.below(40)).collect();
        segments.sort_unstable();
        segments.dedup();
        let (flow, copies) = (rng.below(4), 1 + rng.below(3));
        let _ = write!(text, "[[drop]]\nfrom = \"{from}\"\nto = \"{to}\"\nflow = {flow}\n");
        let _ = write!(text, "segments = {segments:?}\ncopies = {copies}\n");
    }
    text
}

/// Jitter, reordering, duplicates, bursts of loss and policers of some cables.
fn effects(rng: &mut Stream, network: &Network) -> String {
    let mut text = String::new();
    let count = if one_in(rng, 3) { 1 + rng.below(3) } else { 0 };
    for _ in 0..count {
        let cable = cable(rng, network);
        let _ = writeln!(text, "[[link]]\nbetween = {cable:?}");
        if one_in(rng, 2) {
            let _ = writeln!(text, "effects_from = \"{}\"", cable[0]);
        }
        let _ = writeln!(text, "corrupt = {:?}", rng.unit() / 100.0);
        if one_in(rng, 2) {
            let (jitter, correlation) = (span(rng, Dur::ZERO, Dur::from_ms(5)), one_of(rng, &["0.0", "0.6"]));
            let distribution = one_of(rng, &["uniform", "normal", "pareto"]);
            let _ = writeln!(text, "jitter = {jitter}\njitter_distribution = \"{distribution}\"");
            let _ = writeln!(text, "jitter_correlation = {correlation}\njitter_reorders = {}", one_in(rng, 2));
        }
        if one_in(rng, 2) {
            let within = span(rng, Dur::ZERO, Dur::from_ms(20));
            let _ = writeln!(text, "reorder = {:?}\nreorder_distance = {}", rng.unit() / 5.0, 1 + rng.below(9));
            let _ = writeln!(text, "reorder_within = {within}");
        }
        if one_in(rng, 2) {
            let _ = writeln!(text, "duplicate = {:?}", rng.unit() / 10.0);
        }
        if one_in(rng, 4) {
            let (p, r) = (rng.unit() / 50.0, 0.1 + rng.unit() * 0.9);
            let _ = writeln!(text, "burst_loss = {{ p = {p:?}, r = {r:?}, \"1-h\" = {:?} }}", 0.5 + rng.unit() / 2.0);
        }
        if one_in(rng, 4) {
            let rate = rate(rng, 1_000_000, 100_000_000);
            let _ = writeln!(text, "policer = {{ rate = {rate}, burst = \"{}kB\" }}", 10 + rng.below(200));
        }
    }
    text
}

/// Cables that follow traces, and these traces. File names begin with `prefix`.
fn traces(rng: &mut Stream, network: &Network, prefix: &str) -> (String, Vec<(String, String)>) {
    let (mut text, mut files) = (String::new(), Vec::new());
    let count = if one_in(rng, 4) { 1 + rng.below(2) } else { 0 };
    for number in 0..count {
        let name = format!("{prefix}-{number}.trace");
        let cable = cable(rng, network);
        let _ = writeln!(text, "[[link]]\nbetween = {cable:?}\ntrace = \"{name}\"");
        if one_in(rng, 2) {
            let _ = writeln!(text, "trace_from = \"{}\"", cable[0]);
        }
        files.push((name, if one_in(rng, 2) { opportunities(rng) } else { rates(rng) }));
    }
    (text, files)
}

/// A trace of opportunities, of 100 kb/s or more.
fn opportunities(rng: &mut Stream) -> String {
    let period_ms = whole(rng, 1, 400);
    let mut times: Vec<_> = (0..whole(rng, 1 + period_ms / 100, 2_000)).map(|_| rng.below(period_ms + 1)).collect();
    times.push(period_ms);
    times.sort_unstable();
    times.iter().map(|ms| format!("{ms}\n")).collect()
}

/// A trace of rates, with outages.
fn rates(rng: &mut Stream) -> String {
    let (mut text, mut at_us) = ("time_ms,rate_kbps\n".to_owned(), 0);
    for _ in 0..rng.below(8) {
        let kbps = if one_in(rng, 4) { 0 } else { whole(rng, 100, 200_000) };
        let _ = writeln!(text, "{}.{:03},{kbps}", at_us / 1_000, at_us % 1_000);
        at_us += whole(rng, 1, 100_000);
    }
    // The last rate lasts as long as the one before it.
    let _ = writeln!(text, "{}.{:03},{}", at_us / 1_000, at_us % 1_000, whole(rng, 500, 200_000));
    let _ = writeln!(text, "{}.{:03},{}", at_us / 1_000 + 20, at_us % 1_000, whole(rng, 500, 200_000));
    text
}

/// Changes of cables in order of time. A cable that goes down comes up again, so that flows can end.
fn changes(rng: &mut Stream, network: &Network, duration_us: u64) -> String {
    let mut text = String::new();
    let mut at_us = 0;
    let mut table = |at_us: u64, cable: &[String; 2], keys: &str| {
        let _ = write!(text, "[[change]]\nat = \"{at_us}us\"\nbetween = {cable:?}\n{keys}\n");
    };
    let count = if one_in(rng, 3) { 1 + rng.below(8) } else { 0 };
    for _ in 0..count {
        at_us += rng.below(duration_us / 8);
        let cable = cable(rng, network);
        let from = if one_in(rng, 2) { format!("from = \"{}\"\n", cable[0]) } else { String::new() };
        let reorder = if one_in(rng, 2) { "\nreorder = true" } else { "" };
        match rng.below(5) {
            0 => {
                table(at_us, &cable, &format!("{from}down = true"));
                at_us += rng.below(duration_us / 20);
                table(at_us, &cable, &format!("{from}down = false"));
            }
            1 => table(at_us, &cable, &format!("{from}loss = {:?}", rng.unit() / 10.0)),
            2 => table(at_us, &cable, &format!("{from}delay = {}{reorder}", span(rng, Dur::ZERO, Dur::from_ms(20)))),
            3 => table(at_us, &cable, &format!("{from}rate = {}", rate(rng, 1_000_000, 200_000_000))),
            _ => {
                let (rate, delay) = (rate(rng, 500_000, 100_000_000), span(rng, Dur::ZERO, Dur::from_ms(5)));
                table(at_us, &cable, &format!("{from}rate = {rate}\ndelay = {delay}{reorder}"));
            }
        }
    }
    text
}

fn observers(rng: &mut Stream, network: &Network, duration_us: u64, rcp: bool) -> String {
    let mut text = String::new();
    if one_in(rng, 3) {
        let [from, to] = cable(rng, network);
        let interval = whole(rng, 100, duration_us);
        let _ = write!(text, "\n[sample]\ninterval = \"{interval}us\"\nflows = [0, {}]\n", 1 + rng.below(5));
        let _ = write!(text, "queues = [[\"{from}\", \"{to}\"]]\nlinks = [[\"{to}\", \"{from}\"]]\n");
    }
    if one_in(rng, 3) {
        let (delays, from_us) = (!rcp && one_in(rng, 2), rng.below(duration_us));
        let _ = write!(text, "\n[measure]\ndelays = {delays}\nfrom = \"{from_us}us\"\n");
    }
    if one_in(rng, 4) {
        let _ = write!(text, "\n[packets]\nflow = {}\ncount = {}\n", rng.below(3), whole(rng, 1, 1_000));
    }
    text
}
