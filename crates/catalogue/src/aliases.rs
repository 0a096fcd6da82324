//! Other names of things in the catalogue, and names of things that it lacks.
//!
//! One rule holds for controllers, queues, topologies, workloads and sizes. Scenarios use the names of the catalogue
//! only, so that saved scenarios, sweeps and the JSON Schema have one name per thing. Another name is rejected, and the
//! message gives the precise one. `sparelane list` finds both.

/// A name from another tool or paper, and its name in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// Other names, in the form of [`normalized`].
    pub words: &'static [&'static str],
    /// The names in the catalogue, or the nearest names of something that is not built in.
    pub names: &'static [&'static str],
    /// Keys of a scenario that have this effect, as `TABLE KEY`.
    pub keys: &'static [&'static str],
    /// A sentence for users without its full stop. It states whether the thing is built in.
    pub remark: &'static str,
    /// True if the catalogue has the thing.
    pub is_here: bool,
}

const fn called(words: &'static [&'static str], names: &'static [&'static str], remark: &'static str) -> Alias {
    Alias { words, names, keys: &[], remark, is_here: true }
}

const fn done_by(words: &'static [&'static str], keys: &'static [&'static str], remark: &'static str) -> Alias {
    Alias { words, names: &[], keys, remark, is_here: true }
}

const fn lacking(words: &'static [&'static str], nearest: &'static [&'static str], remark: &'static str) -> Alias {
    Alias { words, names: nearest, keys: &[], remark, is_here: false }
}

/// All aliases. A word may occur in several, for things of several kinds.
pub static ALIASES: &[Alias] = &[
    // Controllers.
    called(&["reno", "aimd", "rfc5681", "rfc6582"], &["newreno"], "Reno with the fast recovery of RFC 6582 is newreno"),
    called(&["bbr1", "bbrv1"], &["bbr"], "version 1 of BBR is bbr"),
    called(&["bbrv3"], &["bbr3"], "version 3 of BBR is bbr3"),
    called(&["hstcp"], &["highspeed"], "HighSpeed TCP (RFC 3649) is highspeed"),
    called(&["stcp"], &["scalable"], "Scalable TCP is scalable"),
    called(&["ctcp"], &["compound"], "Compound TCP is compound"),
    called(&["ledbat++", "ledbatpp"], &["ledbat-plus-plus"], "LEDBAT++ is ledbat-plus-plus"),
    called(&["westwood+", "westwoodplus"], &["westwood"], "Westwood+ is westwood"),
    called(&["newvegas"], &["nv"], "TCP New Vegas is nv"),
    called(&["allegro"], &["pcc-allegro"], "PCC Allegro is pcc-allegro"),
    called(&["vivace"], &["pcc-vivace"], "PCC Vivace is pcc-vivace"),
    called(&["pcc"], &["pcc-allegro", "pcc-vivace"], "PCC has two versions"),
    lacking(&["bbr2", "bbrv2"], &["bbr3"], "BBRv2 is not built in; bbr3 is its successor"),
    called(&["tcpprague", "l4s"], &["prague"], "the controller of L4S is prague"),
    done_by(&["accecn", "accurateecn"], &["[transport] ecn"], "AccECN (RFC 9768) is ecn = \"accurate\" in [transport]"),
    lacking(&["tahoe"], &[], "TCP Tahoe is not built in"),
    lacking(&["sprout"], &[], "Sprout is not built in"),
    lacking(&["scream", "gcc", "googcc"], &["prague"], "controllers of media flows are not built in"),
    lacking(&["c4"], &["copa", "bbr3"], "C4 is not built in"),
    lacking(&["verus"], &[], "Verus is not built in"),
    called(&["hpcc++", "hpccpp"], &["hpcc"], "HPCC is hpcc; HPCC++ is not built in"),
    done_by(
        &["int", "inbandtelemetry", "innetworktelemetry"],
        &["[queue] telemetry"],
        "routers write telemetry into packets of hpcc; telemetry of [queue] sets what the records count",
    ),
    lacking(&["xcp"], &["rcp"], "XCP is not built in; rcp is explicit control by routers, too"),
    lacking(&["remy", "remycc", "lola", "aurora", "orca", "indigo"], &[], "this controller is not built in"),
    // Queues.
    called(
        &["droptail", "taildrop", "pfifo", "bfifo", "fifotaildrop"],
        &["fifo"],
        "a queue that drops arrivals when it is full (drop-tail) is fifo",
    ),
    called(&["prio", "pq", "strictpriority"], &["priority"], "strict priority is priority"),
    called(
        &["pfifofast"],
        &["priority", "fifo"],
        "Linux's pfifo_fast is strict priority, or fifo if all packets have one class",
    ),
    called(&["wtd"], &["weighted-tail-drop"], "WTD is weighted-tail-drop"),
    lacking(
        &["fq", "sfq", "wfq", "drr", "wrr"],
        &["fq-codel"],
        "fair queueing without CoDel is not built in; in fq-codel flows take turns",
    ),
    lacking(
        &["cake"],
        &["fq-codel", "cobalt"],
        "CAKE is not built in; fq-codel is what it grew from, and cobalt the law of its queues",
    ),
    called(&["dualq", "dualqueue", "l4squeue"], &["dualpi2"], "the coupled dual queue of RFC 9332 is dualpi2"),
    lacking(&["pi2"], &["dualpi2"], "PI2 alone is not built in; it controls the classic queue of dualpi2"),
    lacking(&["ared", "adaptivered", "wred", "gred"], &["red"], "this variant of RED is not built in"),
    lacking(&["blue"], &["cobalt"], "BLUE alone is not built in; cobalt joins it with CoDel"),
    lacking(&["sfb", "choke", "avq", "rem", "hhf"], &["red", "codel", "pie"], "this queue is not built in"),
    Alias {
        words: &["tbf", "htb", "hfsc", "tokenbucket", "shaper", "policer"],
        names: &[],
        keys: &["[[link]] rate", "[[link]] policer", "[[cross_traffic]] bucket"],
        remark: "a policer is a key of [[link]]; a link has a rate, and cross traffic a token bucket",
        is_here: false,
    },
    called(
        &["aqm", "activequeuemanagement"],
        &["red", "codel", "fq-codel", "cobalt", "pie", "fq-pie"],
        "laws of active queue management",
    ),
    // Topologies.
    called(
        &["bottleneck", "singlebottleneck", "barbell"],
        &["dumbbell"],
        "two routers with one bottleneck between them are dumbbell",
    ),
    called(
        &["parkinglot", "line", "linear", "daisychain", "multibottleneck"],
        &["chain"],
        "routers in a row, as in a parking lot, are chain",
    ),
    called(&["leafspine"], &["spine-leaf"], "leaf and spine switches are spine-leaf"),
    called(
        &["clos"],
        &["spine-leaf", "fat-tree"],
        "Clos networks are spine-leaf with two layers and fat-tree with three",
    ),
    called(&["singleswitch", "rack"], &["star"], "hosts at one switch are star"),
    called(
        &["graphml", "gml", "sndlib", "topo", "topologyzoo", "zoo", "map"],
        &["file"],
        "a map is read by file, with its path",
    ),
    called(
        &["htsim", "topologytxt"],
        &["file"],
        "a topology of htsim or of HPCC's simulator is read by file, with its path",
    ),
    called(
        &["cm", "connectionmatrix", "flowtxt"],
        &["flows"],
        "a list of flows of htsim or of HPCC's simulator is read by flows, with its path",
    ),
    lacking(
        &["ring", "mesh", "torus", "jellyfish", "dragonfly", "bcube", "dcell", "brite", "tree"],
        &["file"],
        "this topology is not built in; file reads any network",
    ),
    // Workloads.
    called(
        &[
            "ftp",
            "greedy",
            "iperf",
            "iperf3",
            "netperf",
            "longlived",
            "elephant",
            "elephants",
            "backlogged",
            "persistent",
        ],
        &["bulk"],
        "flows that send all the time are bulk",
    ),
    called(&["openloop"], &["poisson"], "flows that arrive at random are poisson"),
    called(
        &["rpc", "requestresponse", "query", "clientserver", "partitionaggregate"],
        &["requests"],
        "clients that ask servers are requests",
    ),
    called(
        &["incast"],
        &["bulk", "requests"],
        "bulk with pairs = \"incast\" sends from all hosts to one; in requests, fan_out asks several servers at once",
    ),
    called(&["web", "http", "surge", "browsing"], &["web-users"], "users who browse are web-users"),
    called(&["trace", "csv", "flowlist", "listed"], &["flows"], "a list of flows in a file is read by flows"),
    // Cross traffic, and sizes.
    called(&["cbr", "udp", "constantbitrate"], &["constant"], "datagrams at a constant rate are constant"),
    called(
        &["selfsimilar", "onoff", "pareto"],
        &["aggregate"],
        "sources that switch on and off, with Pareto times, are aggregate",
    ),
    Alias {
        words: &["onoff", "thinktime"],
        names: &["web-users"],
        keys: &["[[workload]] writes"],
        remark: "applications that pause are web-users, or any workload with writes",
        is_here: true,
    },
    called(&["deterministic"], &["fixed"], "one size for all is fixed"),
    called(&["empirical"], &["cdf"], "a distribution from a table or file is cdf"),
    called(&["vl2"], &["data-mining"], "the workload of VL2 is data-mining"),
    lacking(
        &["pareto", "exponential", "weibull", "uniform"],
        &["cdf", "lognormal"],
        "this distribution is not built in; cdf takes any as a table",
    ),
    // Choices.
    called(&["rfc3168"], &["classic"], "ECN by RFC 3168 is ecn = \"classic\""),
    // Features that have keys instead of a name.
    done_by(
        &["netem"],
        &["[[link]] delay", "[[link]] loss", "[[link]] rate", "[[link]] limit", "[[change]] at"],
        "the effects of tc's netem belong to a cable: its delay, loss, rate and limit",
    ),
    done_by(
        &["bandwidth", "capacity", "speed", "throughput"],
        &["[[link]] rate"],
        "the bandwidth of a link is its rate",
    ),
    done_by(&["latency", "propagation", "ping"], &["[[link]] delay"], "the latency of a link is its delay, one way"),
    done_by(
        &["rtt", "roundtrip", "basertt"],
        &["[[link]] delay"],
        "a base round-trip time is twice the sum of the delays on the path",
    ),
    done_by(
        &["buffer", "buffersize", "bufferbloat", "qlen", "queuesize", "queuelength", "txqueuelen"],
        &["[queue] limit", "[nic] limit", "[[link]] limit"],
        "the size of a buffer is the limit of its queue",
    ),
    done_by(
        &["8023x", "flowcontrol", "linklevelflowcontrol", "pauseframes"],
        &["[[link]] pause"],
        "link-level flow control (IEEE 802.3x) is the pause of a link; priority-based flow control is not built in",
    ),
    done_by(
        &["sharedbuffer", "dynamicthreshold"],
        &["[switch] memory", "[switch] share"],
        "queues of a router share memory by [switch]",
    ),
    done_by(
        &["markingthreshold", "kmin", "ecnthreshold"],
        &["[queue] mark_at"],
        "the marking threshold of a queue is mark_at",
    ),
    done_by(
        &["mtu", "packetsize", "segmentsize"],
        &["[transport] mss", "[transport] header"],
        "a full packet has mss and header bytes",
    ),
    done_by(&["tso", "gso"], &["[transport] send_batch"], "segmentation offload is send_batch"),
    done_by(
        &["gro", "lro"],
        &["[transport] receive_batch", "[transport] receive_batch_timeout"],
        "receive offload is receive_batch",
    ),
    done_by(
        &["delack", "delayedack", "delayedacks"],
        &["[transport] delayed_ack"],
        "delayed acknowledgments are delayed_ack",
    ),
    done_by(&["tlp", "rack"], &["[transport] rack_tlp"], "RACK and tail loss probes (RFC 8985) are rack_tlp"),
    done_by(
        &["rwnd", "rmem", "rcvbuf", "wmem", "sndbuf"],
        &["[transport] receive_window", "[transport] send_buffer"],
        "the buffers of a socket are receive_window and send_buffer",
    ),
    done_by(
        &["slowreader", "slowreceiver", "zerowindow", "persist", "windowprobe"],
        &["[transport] read_rate", "[transport] receive_window"],
        "an application that reads slowly has a read_rate, and its buffer is receive_window",
    ),
    done_by(
        &["asymmetric", "asymmetry", "asymmetricaccess"],
        &["[[link]] rate_from", "[[link]] loss_from"],
        "the directions of a cable differ by rate_from and loss_from",
    ),
    done_by(
        &["randomloss", "plr", "ber", "lossy"],
        &["[[link]] loss", "[[drop]] segments"],
        "random loss is the loss of a link; [[drop]] drops chosen packets",
    ),
    done_by(
        &["loadbalancing", "multipath"],
        &["(top level) routing"],
        "flows spread over equal paths by routing = \"ecmp\"",
    ),
    done_by(
        &["dscp", "tos", "qos"],
        &["[scheme.NAME] class", "[[cross_traffic]] class"],
        "the priority of packets is their class",
    ),
    done_by(
        &["stagger", "staggered", "arrival"],
        &["[[workload]] scheme"],
        "the workload's kind decides when flows start: start, gap and spread of bulk",
    ),
];

/// Returns a word in lower case without `-`, `_`, blanks and points, and without `tcp` before or after a name.
pub fn normalized(word: &str) -> String {
    let plain: String = word.to_lowercase().chars().filter(|c| !matches!(c, '-' | '_' | ' ' | '.' | '/')).collect();
    let bare = plain.strip_prefix("tcp").or_else(|| plain.strip_suffix("tcp").filter(|rest| rest.len() > 2));
    bare.filter(|rest| !rest.is_empty()).unwrap_or(&plain).to_owned()
}

/// Returns the entries for `word`.
pub fn of(word: &str) -> impl Iterator<Item = &'static Alias> {
    let (short, long) = (normalized(word), word.to_lowercase().replace(['-', '_', ' '], ""));
    ALIASES.iter().filter(move |alias| alias.words.iter().any(|other| *other == short || *other == long))
}

/// Returns the advice for `word` if only `allowed` names are accepted, beginning with `; `. Returns `None` if no alias
/// and no other spelling is known.
pub fn advice<'a>(word: &str, allowed: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let plain = normalized(word);
    if let Some(name) = allowed.clone().find(|name| normalized(name) == plain) {
        return Some(format!("; did you mean \"{name}\"?"));
    }
    let among = |alias: &&Alias| alias.names.iter().any(|name| allowed.clone().any(|other| other == *name));
    if let Some(alias) = of(word).filter(|alias| alias.is_here).find(among) {
        let names: Vec<_> = alias.names.iter().filter(|name| allowed.clone().any(|other| other == **name)).collect();
        let quoted: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
        return Some(format!("; here it is called {}: {}", quoted.join(" or "), alias.remark));
    }
    of(word).find(|alias| !alias.is_here).map(|alias| format!("; {}", alias.remark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    fn names() -> Vec<&'static str> {
        let Catalogue { controllers, queues, topologies, workloads, sizes } = Catalogue::built_in();
        let mut names: Vec<_> = controllers.all().iter().map(|one| one.name).collect();
        names.extend(queues.names());
        names.extend(topologies.iter().map(|form| form.name));
        names.extend(workloads.iter().map(|form| form.name));
        names.extend(sizes.iter().map(|form| form.name));
        names
    }

    #[test]
    fn every_alias_is_normalized_and_not_a_name() {
        let names = names();
        for alias in ALIASES {
            assert!(!alias.remark.is_empty() && !alias.remark.ends_with('.'), "{alias:?}");
            for word in alias.words {
                assert!(word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '+'), "{word}");
                assert!(names.iter().all(|name| name != word), "{word} is in the catalogue");
            }
        }
    }

    #[test]
    fn every_name_that_an_alias_gives_is_in_the_catalogue() {
        let names = names();
        // The forms of cross traffic and of ECN are not in this crate.
        let elsewhere = ["constant", "aggregate", "classic"];
        for name in ALIASES.iter().flat_map(|alias| alias.names) {
            assert!(names.contains(name) || elsewhere.contains(name), "{name}");
        }
    }

    #[test]
    fn another_name_yields_the_precise_one_and_never_a_lookalike() {
        let names = names();
        for (word, wanted, unwanted) in [
            ("reno", "\"newreno\"", "veno"),
            ("Reno", "\"newreno\"", "veno"),
            ("new-reno", "\"newreno\"", "veno"),
            ("TCP-Reno", "\"newreno\"", "veno"),
            ("htcp", "\"h-tcp\"", "rtcp"),
            ("hstcp", "\"highspeed\"", "h-tcp"),
            ("ctcp", "\"compound\"", "dctcp"),
            ("stcp", "\"scalable\"", "rtcp"),
            ("ledbat++", "\"ledbat-plus-plus\"", "\"ledbat\""),
            ("bbrv3", "\"bbr3\"", "\"bbr\""),
            ("bbr2", "not built in", "\"bbr\""),
            ("fq_codel", "\"fq-codel\"", "\"codel\""),
            ("tail-drop", "\"fifo\"", "weighted"),
            ("Drop_Tail", "\"fifo\"", "weighted"),
            ("pfifo", "\"fifo\"", "pie"),
            ("pi2", "not built in", "\"pie\""),
            ("dualq", "\"dualpi2\"", "\"pie\""),
            ("wred", "not built in", "\"red\""),
            ("FatTree", "\"fat-tree\"", "star"),
            ("parking-lot", "\"chain\"", "star"),
            ("websearch", "\"web-search\"", "data"),
        ] {
            let advice = advice(word, names.iter().copied()).unwrap_or_default();
            assert!(advice.contains(wanted) && !advice.contains(unwanted), "{word}: {advice}");
        }
        assert_eq!(advice("cubci", names.iter().copied()), None);
    }
}
