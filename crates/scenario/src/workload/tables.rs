//! The keys of `[[workload]]`.

use super::web_users::WEB_USERS;
use crate::keys::{Fallback, Key, Kind, MAX_DURATION, Variant};
use sparelane_core::Dur;

/// The most flows of one bulk workload.
pub const MAX_BULK_FLOWS: u64 = 10_000_000;

/// The keys of every form of `[[workload]]`.
pub static WORKLOAD: &[Key] = &[
    Key::new(
        "scheme",
        Kind::Special("the name of a scheme"),
        Fallback::Nothing("the only scheme"),
        "the scheme of the flows; or give mix",
    ),
    MIX,
    MIX_BY,
    WRITES,
    Key::new(
        "traffic_class",
        Kind::Special("the name of a class"),
        Fallback::Nothing("no class, or as traffic_classes says"),
        "the class of traffic of all flows, which controllers may weigh by",
    ),
    Key::new(
        "traffic_classes",
        Kind::Special("a list such as [{ name = \"urgent\", below = \"30KB\" }, { name = \"high-volume\" }]"),
        Fallback::Nothing("no class, or as traffic_class says"),
        "classes of traffic by the size of the flow, smallest first; the last has no bound",
    ),
];

const MIX: Key = Key::new(
    "mix",
    Kind::Special("a table such as { tcp = 0.9, critical = 0.1 }"),
    Fallback::Nothing("as scheme says"),
    "schemes and their shares, in place of scheme; start, size and ends of the flows do not depend on it",
);
const MIX_BY: Key = Key::new(
    "mix_by",
    Kind::Choice(&["flow", "host"]),
    Fallback::Value("flow"),
    "shares of the flows, drawn one by one; or of the hosts behind each router, in order, for what they send",
);
const WRITES: Key = Key::new(
    "writes",
    Kind::Special("a table such as { first = \"1.5MB\", then = \"64KB\", every = \"100ms\" }"),
    Fallback::Nothing("everything at the start"),
    "the application writes first at a flow's start, then so much every so often until the flow's size is written",
)
.from("NSDI 2014 section 5.1.2");

const SIZES: Kind = Kind::Special("a table such as { kind = \"rc3\" }");
const START: Key = Key::new("start", Kind::MOMENT, Fallback::Value("0s"), "when the first flow may start");

/// Every form of `[[workload]]`.
pub static WORKLOADS: &[Variant] = &[
    Variant {
        name: "poisson",
        summary: "flows that arrive at random at every source, to random destinations",
        source: "sparelane",
        keys: &[
            Key::new(
                "load",
                Kind::Share { max: 2.0 },
                Fallback::Nothing("as flows_per_second says"),
                "expected payload as a share of the links' rates; or give flows_per_second",
            ),
            Key::new(
                "load_on",
                Kind::Choice(&["access", "mean-core", "busiest-core"]),
                Fallback::Value("access"),
                "whose share load is: each source's own cable (of its slower direction), the mean of the links between \
                 routers, or the busiest; rates and paths as they are in the run, and flows that are spread in even parts",
            ),
            Key::new(
                "flows_per_second",
                Kind::Positive { max: 1e9 },
                Fallback::Nothing("as load says"),
                "flows that each source starts per second",
            ),
            Key::new("sizes", SIZES, Fallback::Required, "how large the flows are"),
            Key::new(
                "sources",
                Kind::Special("a list of hosts, as in [\"h10\", \"h11\"]"),
                Fallback::Nothing("all hosts"),
                "the hosts that send",
            ),
            Key::new(
                "destinations",
                Kind::Choice(&["another-router", "any"]),
                Fallback::Value("another-router"),
                "to whom: hosts behind another router, or any other host; each as likely",
            ),
            START,
            Key::new(
                "end",
                Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION },
                Fallback::Nothing("the end of the run"),
                "no flow starts at this time or later",
            ),
        ],
    },
    Variant {
        name: "bulk",
        summary: "a given number of flows between given hosts",
        source: "sparelane",
        keys: &[
            Key::new(
                "flows",
                Kind::Whole { min: 1, max: MAX_BULK_FLOWS },
                Fallback::Nothing("one for each pair"),
                "how many; each takes the next pair, from the first again after the last",
            ),
            Key::new(
                "pairs",
                Kind::Special(
                    "a list such as [[\"left0\", \"right0\"]], or one of halves, all, permutation, random, next, incast",
                ),
                Fallback::Value("halves"),
                "who sends to whom: the first half of the hosts to the second in order, every host to every other, \
                 or every host to one other at random, such that each gets one (permutation) or not (random), every host to \
                 the next one, or all others to the first host",
            ),
            Key::new("size", Kind::Volume, Fallback::Value("unlimited"), "how much each flow carries"),
            Key::new("sizes", SIZES, Fallback::Nothing("as size says"), "sizes from a distribution, in place of size"),
            START,
            Key::new(
                "spread",
                Kind::MOMENT,
                Fallback::Value("0s"),
                "each flow starts at random in so long a time from start",
            ),
            Key::new("gap", Kind::MOMENT, Fallback::Nothing("no gap"), "each flow starts so long after the one before"),
        ],
    },
    Variant {
        name: "requests",
        summary: "clients that ask at random, each time for one flow or several from servers",
        source: "RTCP section V-A",
        keys: &[
            Key::new(
                "load",
                Kind::Share { max: 2.0 },
                Fallback::Required,
                "payload as a share of the rate towards each client",
            ),
            Key::new("sizes", SIZES, Fallback::Required, "how large the flows are"),
            Key::new(
                "clients",
                Kind::Special("a list of hosts, as in [\"h1\"]"),
                Fallback::Nothing("the first host"),
                "the hosts that ask",
            ),
            Key::new(
                "servers",
                Kind::Special("a list of hosts, as in [\"h2\", \"h3\"]"),
                Fallback::Nothing("all hosts but the client"),
                "the hosts that answer; a request draws among them, none twice before all had a turn",
            ),
            Key::new(
                "fan_out",
                Kind::Special("a list such as [{ flows = 1, share = 0.5 }, { flows = 8, share = 0.5 }]"),
                Fallback::Nothing("one flow"),
                "how many flows a request fetches, all at once, and the share of such requests",
            ),
            START,
            Key::new(
                "end",
                Kind::Time { min: Dur::from_ps(1), max: MAX_DURATION },
                Fallback::Nothing("the end of the run"),
                "no request comes at this time or later",
            ),
        ],
    },
    WEB_USERS,
    Variant {
        name: "flows",
        summary: "flows of a file: .flows (start in ns, src, dst, bytes) or .csv (start, src, dst, size, scheme)",
        source: "sparelane",
        keys: &[Key::new("path", Kind::Path, Fallback::Required, "the file, ending in .flows or .csv")],
    },
];
