//! Recognizes the format of a file by its content, whatever its name.
//!
//! The first lines of a file decide its format. [`detect`] chooses the reader of a file, and [`recognized`] names the
//! format of a file that no reader accepts, with a remedy. The content is not interpreted here.

/// The purpose for which a scenario names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A scenario itself.
    Scenario,
    /// A network.
    Topology,
    /// A list of flows.
    Flows,
    /// A distribution of sizes.
    Sizes,
    /// A trace that a link follows.
    Trace,
}

/// A text format that sparelane reads. A distribution of sizes has no variant, because all of its forms have one reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// sparelane's own `.topo`.
    Topo,
    /// The `.topo` of htsim, which describes the tiers of a fat tree.
    HtsimTopo,
    /// `topology.txt` of the HPCC simulator.
    HpccTopology,
    /// GraphML.
    GraphMl,
    /// The Graph Modelling Language.
    Gml,
    /// SNDlib's XML.
    SndLib,
    /// The output of the topology generator BRITE.
    Brite,
    /// The output of the topology generator Inet.
    Inet,
    /// Rocketfuel's weights or latencies.
    Rocketfuel,
    /// sparelane's own `.flows`.
    Flows,
    /// sparelane's flows as CSV.
    FlowTable,
    /// `flow.txt` of the HPCC simulator.
    HpccFlows,
    /// htsim's connection matrix, `.cm`.
    ConnectionMatrix,
}

impl FileFormat {
    /// Returns the purpose for which a scenario names files of this format.
    pub fn purpose(self) -> Purpose {
        match self {
            FileFormat::Flows | FileFormat::FlowTable | FileFormat::HpccFlows | FileFormat::ConnectionMatrix => Flows,
            _ => Topology,
        }
    }

    /// Returns the format of files whose name ends in `extension`, if one format is usual for it.
    fn of_extension(extension: &str) -> Option<FileFormat> {
        Some(match extension {
            "topo" => FileFormat::Topo,
            "graphml" => FileFormat::GraphMl,
            "gml" => FileFormat::Gml,
            "xml" => FileFormat::SndLib,
            "brite" => FileFormat::Brite,
            "flows" => FileFormat::Flows,
            "csv" => FileFormat::FlowTable,
            "cm" => FileFormat::ConnectionMatrix,
            _ => return None,
        })
    }

    /// Returns the name of a format of another tool, for messages about its content. Formats whose messages show
    /// elements of the format, and sparelane's own, have none.
    pub fn foreign_name(self) -> Option<&'static str> {
        match self {
            FileFormat::Topo | FileFormat::Flows | FileFormat::FlowTable => None,
            FileFormat::GraphMl | FileFormat::Gml | FileFormat::SndLib => None,
            _ => FORMATS.iter().find(|format| format.reads == Some(self)).map(|format| format.what),
        }
    }
}

/// A known text format: one that sparelane reads, or one of another tool that it only names.
struct Format {
    /// The format's name in messages.
    what: &'static str,
    /// The reader of this format, if sparelane has one.
    reads: Option<FileFormat>,
    /// The advice to the user, by the purpose of a file that has no reader for this purpose.
    advice: &'static [(Purpose, &'static str)],
    /// Returns true for a file of this format. Formats are tried in order.
    matches: fn(&Sample<'_>, Purpose) -> bool,
}

/// The first lines and the last line of a text, without comments and empty lines.
struct Sample<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    last: &'t str,
}

use Purpose::{Flows, Scenario, Sizes, Topology};

/// Number of lines that are examined, besides the last.
const LINES: usize = 40;
/// Number of bytes of a binary file that are examined.
pub const PREFIX_BYTES: usize = 4096;

const AS_TOPO: (Purpose, &str) = (
    Topology,
    "write it as a .topo file with the lines `host ID`, `router ID NAME` and \
     `link ID ID RATE_IN_BPS DELAY_IN_NS QUEUE_IN_PACKETS`, or as GraphML",
);
const AS_FLOWS: (Purpose, &str) =
    (Flows, "write it as a .flows file with one flow on each line: `START_IN_NS SOURCE DESTINATION BYTES`");
const AS_SIZES: (Purpose, &str) = (
    Sizes,
    "write it with two columns: whole bytes and cumulative probability, 0 to 1 or in per cent, with a comma or blanks \
     between them",
);
const AS_SCENARIO: (Purpose, &str) =
    (Scenario, "a scenario is a TOML file: `sparelane new FILE` writes one to begin with");
const REWRITE: &[(Purpose, &str)] = &[AS_TOPO, AS_FLOWS, AS_SIZES, AS_SCENARIO];

const UNDER_TOPOLOGY: &str = "name it under [topology]: kind = \"file\" and path";
const UNDER_WORKLOAD: &str = "name it under [[workload]]: kind = \"flows\" and path";
/// The advice for a network that is named for another purpose.
const NETWORK: &[(Purpose, &str)] = &[
    (Flows, UNDER_TOPOLOGY),
    (Sizes, UNDER_TOPOLOGY),
    (Scenario, "name it in a scenario, by [topology] kind = \"file\" and path"),
];
/// The advice for a list of flows that is named for another purpose.
const FLOW_LIST: &[(Purpose, &str)] = &[
    (Topology, UNDER_WORKLOAD),
    (Sizes, UNDER_WORKLOAD),
    (Scenario, "name it in a scenario, by [[workload]] kind = \"flows\" and path"),
];

/// The name of packet-delivery traces.
const MAHIMAHI: &str = "a packet-delivery trace of Mahimahi: each line is a millisecond in which 1500 bytes may leave";
/// The name of scenarios.
const OWN_SCENARIO: &str = "a scenario of sparelane";

/// All known text formats.
static FORMATS: &[Format] = &[
    Format {
        what: "htsim's .topo format, which describes the tiers of a fat tree",
        reads: Some(FileFormat::HtsimTopo),
        advice: NETWORK,
        matches: |sample, _| sample.begins_with("nodes") && (sample.has_line("tiers") || sample.has_line("podsize")),
    },
    Format {
        what: "htsim's connection matrix (.cm)",
        reads: Some(FileFormat::ConnectionMatrix),
        advice: FLOW_LIST,
        matches: |sample, _| {
            let is_connection = |line: &&str| line.split_whitespace().next().is_some_and(|word| word.contains("->"));
            sample.has_line("connections") && sample.lines.iter().any(is_connection)
        },
    },
    Format {
        what: "the topology format of the HPCC and ns-3 RDMA simulators",
        reads: Some(FileFormat::HpccTopology),
        advice: NETWORK,
        matches: |sample, _| {
            let is_link = |line: &&&str| {
                let words: Vec<_> = line.split_whitespace().collect();
                let is_rate = words.get(2).is_some_and(|word| word.ends_with("bps") || word.ends_with("b/s"));
                is_rate && words.get(3).is_some_and(|word| word.ends_with('s'))
            };
            sample.numbers(0).is_some_and(|row| row.len() == 3) && sample.lines.iter().skip(1).find(is_link).is_some()
        },
    },
    Format {
        what: "the flow format of the HPCC and ns-3 RDMA simulators",
        reads: Some(FileFormat::HpccFlows),
        advice: FLOW_LIST,
        matches: |sample, _| {
            sample.numbers(0).is_some_and(|row| row.len() == 1)
                && sample.numbers(1).is_some_and(|row| (5..=6).contains(&row.len()))
        },
    },
    Format {
        what: "a size distribution of ns-2's and pFabric's scripts, with three columns",
        reads: None,
        advice: &[
            AS_TOPO,
            AS_FLOWS,
            (
                Sizes,
                "sparelane needs two columns, bytes and cumulative probability; the first column here is in packets: \
                 multiply it by their payload, `awk '{print $1 * 1460 \",\" $3}'`",
            ),
            AS_SCENARIO,
        ],
        matches: |sample, purpose| {
            let ends_at_1 = sample.last_numbers().is_some_and(|row| row.len() == 3 && (row[2] - 1.0).abs() < 0.01);
            purpose == Sizes && ends_at_1 && sample.columns(3)
        },
    },
    Format {
        what: MAHIMAHI,
        reads: None,
        advice: &[
            (Topology, "a link follows it by trace = \"FILE\" in [[link]]"),
            AS_FLOWS,
            AS_SIZES,
            (Scenario, "write a scenario in which a link follows it, by trace = \"FILE\" in [[link]]"),
        ],
        matches: |sample, purpose| {
            let rows: Vec<_> = (0..sample.lines.len()).filter_map(|line| sample.numbers(line)).collect();
            let is_single =
                rows.len() == sample.lines.len() && rows.iter().all(|row| row.len() == 1 && row[0].fract() == 0.0);
            ![Sizes, Purpose::Trace].contains(&purpose)
                && is_single
                && rows.windows(2).all(|pair| pair[0][0] <= pair[1][0])
        },
    },
    Format {
        what: "a packet trace of ns-2",
        reads: None,
        advice: REWRITE,
        matches: |sample, _| {
            let words: Vec<_> = sample.lines.first().map_or_else(Vec::new, |line| line.split_whitespace().collect());
            words.len() >= 8 && ["+", "-", "r", "d"].contains(&words[0]) && words[1].parse::<f64>().is_ok()
        },
    },
    Format {
        what: "a Tcl script of ns-2",
        reads: None,
        advice: REWRITE,
        matches: |sample, _| sample.text.contains("new Simulator]") || sample.begins_with("set ns"),
    },
    Format {
        what: "SNDlib's native format",
        reads: None,
        advice: &[
            (Topology, "take the network as XML from sndlib.put.poznan.pl, and name it .xml"),
            AS_FLOWS,
            AS_SIZES,
            AS_SCENARIO,
        ],
        matches: |sample, _| sample.text.trim_start().starts_with("?SNDlib"),
    },
    Format {
        what: "SNDlib's XML",
        reads: Some(FileFormat::SndLib),
        advice: NETWORK,
        matches: |sample, _| sample.element() == "network" && sample.text.contains("networkStructure"),
    },
    Format {
        what: "GraphML",
        reads: Some(FileFormat::GraphMl),
        advice: NETWORK,
        matches: |sample, _| sample.element() == "graphml",
    },
    Format {
        what: "an HTML page, perhaps in place of a download",
        reads: None,
        advice: &[
            (Topology, "fetch the file itself"),
            (Flows, "fetch the file itself"),
            (Sizes, "fetch the file itself"),
            AS_SCENARIO,
        ],
        matches: |sample, _| {
            sample.element().eq_ignore_ascii_case("html")
                || sample.text.trim_start().to_ascii_lowercase().starts_with("<!doctype html")
        },
    },
    Format {
        what: "XML of another kind",
        reads: None,
        advice: &[
            (Topology, "of XML, GraphML (.graphml) and SNDlib's networks (.xml) are read"),
            AS_FLOWS,
            AS_SIZES,
            AS_SCENARIO,
        ],
        matches: |sample, _| !sample.element().is_empty(),
    },
    Format {
        what: "GML, the Graph Modelling Language",
        reads: Some(FileFormat::Gml),
        advice: NETWORK,
        matches: |sample, purpose| {
            let begins = sample.lines.iter().any(|line| {
                line.split_whitespace().collect::<Vec<_>>().starts_with(&["graph", "["]) || *line == "graph"
            });
            begins && (sample.has_line("node") || sample.text.contains("node [")) && purpose != Scenario
        },
    },
    Format {
        what: "Graphviz's DOT",
        reads: None,
        advice: &[
            (
                Topology,
                "write it as GraphML, as by networkx: `nx.write_graphml(nx.nx_pydot.read_dot(FILE), \"map.graphml\")`",
            ),
            AS_FLOWS,
            AS_SIZES,
            AS_SCENARIO,
        ],
        matches: |sample, _| {
            ["graph", "digraph", "strict"].iter().any(|word| sample.begins_with(word)) && sample.text.contains('{')
        },
    },
    Format {
        what: "a topology of BRITE",
        reads: Some(FileFormat::Brite),
        advice: NETWORK,
        matches: |sample, _| {
            sample.lines.first().is_some_and(|line| line.starts_with("Topology: (") && line.contains("Nodes"))
        },
    },
    Format {
        what: "a topology of Inet",
        reads: Some(FileFormat::Inet),
        advice: NETWORK,
        matches: |sample, _| {
            let rows: Option<Vec<_>> = (0..sample.lines.len()).map(|line| sample.numbers(line)).collect();
            // The numbers of nodes and links, and then rows of three numbers whose first ones are the nodes 0, 1, ....
            rows.is_some_and(|rows| {
                let is_header =
                    rows[0].len() == 2 && rows[0][0] >= 2.0 && rows[0].iter().all(|count| count.fract() == 0.0);
                let is_numbered = |(place, row): (u32, &Vec<f64>)| row[0] == f64::from(place);
                is_header
                    && rows.len() > 1
                    && rows[1..].iter().all(|row| row.len() == 3)
                    && (0..).zip(rows[1..].iter().take(rows[0][0] as usize)).all(is_numbered)
            })
        },
    },
    Format {
        what: "weights or latencies of Rocketfuel",
        reads: Some(FileFormat::Rocketfuel),
        advice: NETWORK,
        matches: |sample, purpose| {
            let is_edge = |line: &&str| {
                let words: Vec<_> = line.split_whitespace().collect();
                let &[a, b, value] = &words[..] else { return false };
                [a, b].iter().all(|name| name.parse::<f64>().is_err()) && value.parse::<f64>().is_ok()
            };
            purpose == Topology && sample.lines.iter().all(is_edge)
        },
    },
    Format {
        what: "a graph of GT-ITM",
        reads: None,
        advice: REWRITE,
        matches: |sample, _| sample.text.trim_start().starts_with("GRAPH (#nodes"),
    },
    Format {
        what: "a map of Rocketfuel",
        reads: None,
        advice: REWRITE,
        matches: |sample, _| sample.lines.first().is_some_and(|line| line.contains(" @") && line.contains("->")),
    },
    Format {
        what: "a relationship file of CAIDA",
        reads: None,
        advice: REWRITE,
        matches: |sample, _| {
            let is_row = |line: &&str| line.split('|').count() >= 3 && line.starts_with(|c: char| c.is_ascii_digit());
            sample.lines.first().is_some_and(is_row)
        },
    },
    Format {
        what: "a network of OMNeT++ (.ned)",
        reads: None,
        advice: REWRITE,
        matches: |sample, _| {
            (sample.begins_with("network") || sample.begins_with("package") || sample.begins_with("import ned"))
                && sample.text.contains("submodules:")
        },
    },
    Format {
        what: "a Pajek network",
        reads: None,
        advice: REWRITE,
        matches: |sample, _| sample.begins_with("*vertices"),
    },
    Format {
        what: "a Python program",
        reads: None,
        advice: &[
            AS_TOPO,
            AS_FLOWS,
            AS_SIZES,
            (Scenario, "load controllers and traffic in Python with --plugin FILE, in addition to a scenario"),
        ],
        matches: |sample, _| {
            let is_code = |line: &&str| {
                let is_import = line.starts_with("import ") || (line.starts_with("from ") && line.contains(" import "));
                is_import
                    || line.starts_with("#!/usr/bin/env python")
                    || (line.starts_with("def ") && line.ends_with(':'))
            };
            sample.lines.iter().any(is_code) && !sample.text.contains("submodules:")
        },
    },
    Format {
        what: "JSON",
        reads: None,
        advice: &[
            (
                Topology,
                "write it as GraphML, as by networkx: \
                 `nx.write_graphml(nx.node_link_graph(json.load(open(FILE))), \"map.graphml\")`",
            ),
            AS_FLOWS,
            AS_SIZES,
            AS_SCENARIO,
        ],
        matches: |sample, _| {
            let text = sample.text.trim_start();
            text.starts_with('{')
                || (text.starts_with('[') && text[1..].trim_start().starts_with(['{', '[', '"']) && text.contains(':'))
        },
    },
    Format {
        what: OWN_SCENARIO,
        reads: None,
        advice: &[
            (Topology, "name a file of nodes and links: .topo, .graphml, .gml or .xml"),
            (Flows, "name a file of flows: .flows or .csv"),
            (Sizes, "name a CSV file of bytes and cumulative probability"),
        ],
        matches: |sample, purpose| {
            let is_table = |line: &&str| ["[topology]", "[[workload]]", "[workload]", "[queue]"].contains(line);
            purpose != Scenario && sample.lines.iter().any(is_table)
        },
    },
    Format {
        what: "a .topo file of sparelane",
        reads: Some(FileFormat::Topo),
        advice: NETWORK,
        matches: |sample, _| {
            let words = ["host", "router", "link"];
            let is_ours = |line: &&str| {
                line.split_whitespace().next().is_some_and(|word| words.contains(&word))
                    && line.contains(|c: char| c.is_ascii_digit())
                    && !line.contains('=')
            };
            !sample.lines.is_empty() && sample.lines.iter().all(is_ours)
        },
    },
    Format {
        what: "a .flows file of sparelane",
        reads: Some(FileFormat::Flows),
        advice: FLOW_LIST,
        matches: |sample, purpose| {
            purpose != Sizes && !sample.lines.is_empty() && sample.columns(4) && !sample.text.contains(',')
        },
    },
    Format {
        what: "CSV of flows",
        reads: Some(FileFormat::FlowTable),
        advice: FLOW_LIST,
        matches: |sample, _| {
            let names: Vec<_> = sample.lines[0].split(',').map(str::trim).collect();
            ["start", "src", "dst", "size"].iter().all(|column| names.contains(column))
        },
    },
    Format {
        what: "CSV with semicolons between the columns",
        reads: None,
        advice: &[
            AS_TOPO,
            (Flows, "write it with commas"),
            (Sizes, "write it with commas or blanks, and with points in numbers"),
            AS_SCENARIO,
        ],
        matches: |sample, _| {
            !sample.lines.is_empty()
                && sample
                    .lines
                    .iter()
                    .all(|line| line.matches(';').count() == sample.lines[0].matches(';').count() && line.contains(';'))
        },
    },
    Format {
        what: "a table with tabs between the columns",
        reads: None,
        advice: &[AS_TOPO, (Flows, "write it as CSV, with commas"), AS_SCENARIO],
        matches: |sample, purpose| {
            purpose != Sizes && sample.lines.iter().all(|line| line.contains('\t')) && !sample.text.contains(',')
        },
    },
    Format {
        what: "a list of edges, without rates and delays",
        reads: None,
        advice: REWRITE,
        matches: |sample, purpose| {
            let is_whole = !sample.text.contains([',', '.']);
            purpose == Topology && is_whole && sample.lines.len() > 1 && sample.columns(2)
        },
    },
];

/// The description of captures, which are read as flows only.
const CAPTURE: &str = "a packet capture; name it under [[workload]]: kind = \"flows\" and path";

/// The first bytes of binary files, with their description and advice.
const NOT_TEXT: &[(&[u8], &str)] = &[
    (b"\x1f\x8b", "gzip-compressed data; unpack it first, by `gunzip`"),
    (b"BZh", "bzip2-compressed data; unpack it first, by `bunzip2`"),
    (b"\xfd7zXZ", "xz-compressed data; unpack it first, by `unxz`"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data; unpack it first, by `unzstd`"),
    (b"PK\x03\x04", "a zip archive (a spreadsheet is one, too); unpack it first, or save it as CSV"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (b"\xd4\xc3\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\xc3\xd4", CAPTURE),
    (b"\x4d\x3c\xb2\xa1", CAPTURE),
    (b"\xa1\xb2\x3c\x4d", CAPTURE),
    (b"\x0a\x0d\x0d\x0a", CAPTURE),
    (b"PAR1", "a Parquet file; write it as CSV, as by `polars.read_parquet(FILE).write_csv(...)`"),
    (b"ARROW1", "an Arrow file; write it as CSV, as by `polars.read_ipc(FILE).write_csv(...)`"),
    (b"\x93NUMPY", "an array of NumPy; write it as CSV, as by `numpy.savetxt(..., delimiter=\",\")`"),
    (b"\x89HDF", "an HDF5 file; write it as CSV"),
    (b"SQLite format 3", "a SQLite database; write the table as CSV"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture (PNG)"),
    (b"\x7fELF", "a program (ELF)"),
    (b"\xff\xfe\x00\x00", "text in UTF-32; write it in UTF-8, by `iconv -f UTF-32 -t UTF-8`"),
    (b"\x00\x00\xfe\xff", "text in UTF-32; write it in UTF-8, by `iconv -f UTF-32 -t UTF-8`"),
    (b"\xff\xfe", "text in UTF-16; write it in UTF-8, by `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "text in UTF-16; write it in UTF-8, by `iconv -f UTF-16 -t UTF-8`"),
];

/// The byte order mark that some editors write before UTF-8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The error for content that is not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotText {
    /// The line where the text ends, counted from 1, if the file begins as text.
    pub line: Option<u32>,
    /// The format of the file and the advice to the user.
    pub message: String,
}

/// Returns true if a file that begins with `prefix` is a packet capture.
pub fn is_capture(prefix: &[u8]) -> bool {
    NOT_TEXT.iter().any(|(magic, what)| *what == CAPTURE && prefix.starts_with(magic))
}

/// Fails if a file that begins with `prefix` is binary. The error names the format and gives advice.
pub fn check_text(prefix: &[u8]) -> Result<(), NotText> {
    let not_text = |what: &str| NotText { line: None, message: format!("not a text file: this is {what}") };
    if let Some((_, what)) = NOT_TEXT.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return Err(not_text(what));
    }
    let prefix = &prefix[..prefix.len().min(PREFIX_BYTES)];
    if prefix.contains(&0) {
        let zeros_at = |odd: usize| prefix.iter().skip(odd).step_by(2).all(|byte| *byte == 0);
        let is_wide = prefix.len() > 1 && zeros_at(0) != zeros_at(1);
        return Err(not_text(if is_wide { "text in UTF-16; write it in UTF-8, by `iconv`" } else { "binary data" }));
    }
    Ok(())
}

/// Decodes a file's content as text, without a byte order mark.
///
/// # Errors
/// Fails if the content is not UTF-8. The error names the format and gives advice.
pub fn decoded(content: Vec<u8>) -> Result<String, NotText> {
    check_text(&content)?;
    let text = String::from_utf8(content).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let message = "not text in UTF-8; an older encoding is changed by `iconv -f LATIN1 -t UTF-8`".to_owned();
        NotText { line: u32::try_from(line).ok(), message }
    })?;
    Ok(match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Returns the format in which a text for `purpose` is read: that of its content, or else the usual one for its
/// extension. `None` if neither is a format for this purpose.
pub fn detect(text: &str, purpose: Purpose, extension: &str) -> Option<FileFormat> {
    let of_content = known(&Sample::of(text), purpose).and_then(|format| format.reads);
    let of_purpose = |format: Option<FileFormat>| format.filter(|format| format.purpose() == purpose);
    of_purpose(of_content).or_else(|| of_purpose(FileFormat::of_extension(extension)))
}

/// Returns the purpose of a file that sparelane reads and the name of its format, for a caller that does not know its
/// purpose. `None` if the format is unknown.
pub fn identify(text: &str, extension: &str) -> Option<(Purpose, &'static str)> {
    let sample = Sample::of(text);
    let of_content = |purpose: Purpose| {
        let format = known(&sample, purpose)?;
        format.reads.filter(|reads| reads.purpose() == purpose).map(|_| (purpose, format.what))
    };
    let ends_at_one = || {
        let (_, end) = sample.last_numbers().filter(|row| row.len() == 2).map(|row| (row[0], row[1]))?;
        [1.0, 100.0].contains(&end).then_some((Sizes, "a cumulative distribution of sizes"))
    };
    let sizes = || ends_at_one().filter(|_| !sample.lines.is_empty() && sample.columns(2));
    // A trace and a scenario are no formats of networks, but the list of known formats has them.
    let others = || match known(&sample, Topology)?.what {
        MAHIMAHI => Some((Purpose::Trace, MAHIMAHI)),
        OWN_SCENARIO => Some((Scenario, OWN_SCENARIO)),
        _ => None,
    };
    let rates = || {
        let names: Vec<_> = sample.lines.first()?.split(',').map(str::trim).collect();
        let has = |start: &str| names.iter().any(|name| name.starts_with(start));
        (has("time") && has("rate")).then_some((Purpose::Trace, "a trace of rates as CSV"))
    };
    let of_extension = || {
        let reads = FileFormat::of_extension(extension)?;
        let format = FORMATS.iter().find(|format| format.reads == Some(reads))?;
        Some((reads.purpose(), format.what))
    };
    of_content(Topology)
        .or_else(|| of_content(Flows))
        .or_else(sizes)
        .or_else(others)
        .or_else(rates)
        .or_else(of_extension)
}

/// Returns the format of a text that was rejected as a file for `purpose`, with advice:
/// `this is GraphML: name it under [topology]: kind = "file" and path`. Returns `None` if the format is unknown, or if
/// it is the one that the text was read as.
pub fn recognized(text: &str, purpose: Purpose, read_as: Option<FileFormat>) -> Option<String> {
    if text.trim().is_empty() {
        return Some("this file is empty".to_owned());
    }
    let format = known(&Sample::of(text), purpose)?;
    if format.reads.is_some() && format.reads == read_as {
        return None;
    }
    let (_, advice) = format.advice.iter().find(|(other, _)| *other == purpose)?;
    Some(format!("this is {}: {advice}", format.what))
}

/// Returns the first known format that a text has. A text of comments has none, although conditions on all of its lines
/// hold.
fn known(sample: &Sample<'_>, purpose: Purpose) -> Option<&'static Format> {
    if sample.lines.is_empty() {
        return None;
    }
    FORMATS.iter().find(|format| (format.matches)(sample, purpose))
}

impl<'t> Sample<'t> {
    fn of(text: &'t str) -> Sample<'t> {
        let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let lines: Vec<_> = text.lines().map(str::trim).filter(is_content).take(LINES).collect();
        let last = text.lines().rev().map(str::trim).find(is_content).unwrap_or_default();
        Sample { text, lines, last }
    }

    /// Returns true if the first line begins with this word, in any case.
    fn begins_with(&self, word: &str) -> bool {
        self.lines.first().is_some_and(|line| begins_with(line, word))
    }

    /// Returns true if a line begins with this word, in any case.
    fn has_line(&self, word: &str) -> bool {
        self.lines.iter().any(|line| begins_with(line, word))
    }

    /// Returns line number `line` if it consists of numbers, separated by blanks or commas.
    fn numbers(&self, line: usize) -> Option<Vec<f64>> {
        self.lines.get(line).and_then(|line| numbers(line))
    }

    fn last_numbers(&self) -> Option<Vec<f64>> {
        numbers(self.last)
    }

    /// Returns true if every line except a header consists of this many numbers.
    fn columns(&self, count: usize) -> bool {
        let is_row = |line: &&str| numbers(line).is_some_and(|row| row.len() == count);
        let header = usize::from(self.lines.first().is_some_and(|line| numbers(line).is_none()));
        self.lines.len() > header && self.lines[header..].iter().all(is_row)
    }

    /// Returns the name of the outermost element if this looks like XML, otherwise an empty string.
    fn element(&self) -> &'t str {
        let mut rest = self.text.trim_start();
        while let Some(inside) = rest.strip_prefix("<?").or_else(|| rest.strip_prefix("<!")) {
            let end = if inside.starts_with("--") { "-->" } else { ">" };
            let Some(place) = inside.find(end) else { return "" };
            rest = inside[place + end.len()..].trim_start();
        }
        let name = rest.strip_prefix('<').unwrap_or_default();
        let end = name.find(|c: char| !(c.is_alphanumeric() || "_-.:".contains(c))).unwrap_or(name.len());
        name[..end].rsplit(':').next().unwrap_or_default()
    }
}

fn begins_with(line: &str, word: &str) -> bool {
    let found = line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    found && !line[word.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

fn numbers(line: &str) -> Option<Vec<f64>> {
    let words = line.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    words.map(|word| word.parse::<f64>().ok().filter(|number| number.is_finite())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_comments_has_no_format() {
        for purpose in [Topology, Flows, Sizes, Scenario] {
            assert_eq!(recognized("# a comment\n\n# another\n", purpose, None), None);
        }
    }

    const TOPO: &str =
        "host 0\nhost 1\nrouter 2 west\nlink 0 2 1000000000 1000000 20\nlink 1 2 1000000000 1000000 20\n";
    const GML: &str = "Creator \"Topology Zoo\"\ngraph [\n  directed 0\n  node [\n    id 0\n  ]\n]\n";

    /// Each message contains the listed words in order.
    #[test]
    fn each_known_format_is_named_with_a_remedy() {
        let cases: &[(Purpose, &str, &[&str])] = &[
            (Flows, "Nodes 4\nTiers 2\nPodsize 4\nTier 0\n", &["htsim's .topo", "[topology]"]),
            (Topology, "Nodes 4\nConnections 2\n0->3 start 0 size 2000000\n", &["connection matrix", "[[workload]]"]),
            (Flows, "4 1 3\n3\n0 3 100Gbps 1000ns 0\n", &["topology format of the HPCC", "[topology]"]),
            (Topology, "2\n1 0 3 100 100000 0.0\n", &["flow format of the HPCC", "[[workload]]"]),
            (Flows, "Topology: ( 10 Nodes, 20 Edges )\n", &["BRITE", "[topology]"]),
            (Flows, "2 1\n0 5 5\n1 6 7\n0 1 2\n", &["Inet", "[topology]"]),
            (Topology, "start,src,dst,size\n0s,a,b,1kB\n", &["CSV of flows", "[[workload]]"]),
            (Sizes, "1 1 0\n6 1 0.15\n6667 1 1\n", &["ns-2", "three columns"]),
            (Topology, "1\n1\n2\n4\n10\n", &["Mahimahi", "1500 bytes", "trace = "]),
            (Flows, "+ 1.84 0 2 cbr 210 ------- 0 0.0 3.1 225 610\n", &["packet trace of ns-2"]),
            (Topology, "set ns [new Simulator]\nset n0 [$ns node]\n", &["Tcl script of ns-2"]),
            (Topology, "?SNDlib native format; type: network; version: 1.0\nNODES (\n", &["SNDlib's native", ".xml"]),
            (Flows, "<?xml version=\"1.0\"?>\n<!-- a -->\n<network><networkStructure/></network>", &["SNDlib's XML"]),
            (Flows, "<graphml xmlns=\"x\"><graph/></graphml>", &["GraphML", "[topology]"]),
            (Sizes, GML, &["GML", "[topology]"]),
            (Topology, "<?xml version=\"1.0\"?><gml:FeatureCollection/>", &["XML of another kind", ".graphml"]),
            (Topology, "<!DOCTYPE html>\n<html><body>404</body></html>", &["HTML page", "fetch"]),
            (Topology, "graph {\n a -- b;\n}\n", &["Graphviz", "GraphML"]),
            (Topology, "GRAPH (#nodes #edges id uu vv ww xx yy zz):\n", &["GT-ITM"]),
            (Topology, "1 @Amsterdam,+Netherlands bb (3) &1 -> <2> =r0 r0\n", &["Rocketfuel"]),
            (Topology, "# source\n1|11537|0|bgp\n", &["CAIDA"]),
            (Topology, "network Tandem {\n submodules:\n}\n", &["OMNeT++"]),
            (Topology, "*Vertices 3\n1 \"a\"\n", &["Pajek"]),
            (Topology, "{\"nodes\": [], \"links\": []}", &["JSON", "GraphML"]),
            (Topology, "from mininet.topo import Topo\nclass T(Topo):\n", &["Python program"]),
            (Topology, "duration = \"1s\"\n[topology]\nkind = \"star\"\n", &["scenario of sparelane", "graphml"]),
            (Flows, TOPO, &[".topo file of sparelane", "[topology]"]),
            (Topology, "0 0 1 1000\n5 1 0 1000\n", &[".flows file of sparelane", "[[workload]]"]),
            (Flows, "start;src;dst;size\n0s;h0;h1;1kB\n", &["semicolons", "commas"]),
            (Flows, "start\tsrc\tdst\tsize\n0s\th0\th1\t1kB\n", &["tabs", "commas"]),
            (Topology, "0 1\n1 2\n", &["list of edges", "rates and delays"]),
            (Topology, " \n\n", &["empty"]),
            (Scenario, TOPO, &[".topo file of sparelane", "kind = \"file\""]),
            (Scenario, "import sparelane as sl\n", &["Python program", "--plugin"]),
        ];
        for (purpose, text, words) in cases {
            let answer = recognized(text, *purpose, None).unwrap_or_default();
            let mut rest = answer.as_str();
            for word in *words {
                let place = rest.find(word).unwrap_or_else(|| panic!("{text}: {answer}; wanted {word}"));
                rest = &rest[place + word.len()..];
            }
        }
    }

    #[test]
    fn the_content_decides_the_format_and_else_the_extension() {
        use FileFormat::{Brite, ConnectionMatrix, FlowTable, Gml, GraphMl, HpccFlows, HpccTopology, HtsimTopo};
        use FileFormat::{Inet, Rocketfuel, SndLib, Topo};
        for (purpose, extension, text, expected) in [
            (Topology, "topo", TOPO, Some(Topo)),
            (Topology, "txt", TOPO, Some(Topo)),
            (Topology, "topo", "host 0\nwormhole 1\n", Some(Topo)),
            (Topology, "topo", "# comment\nnodes 16\ntiers 3\n", Some(HtsimTopo)),
            (Topology, "topo", "4 1 3\n3\n0 3 100Gbps 1000ns 0\n1 3 100Gbps 1000ns 0\n", Some(HpccTopology)),
            (Topology, "txt", "320 64 2\n256 257\n0 256 25Gb/s 0.001ms 0.000000\n", Some(HpccTopology)),
            (Topology, "xml", "<graphml xmlns=\"x\"><graph/></graphml>", Some(GraphMl)),
            (Topology, "graphml", "no xml", Some(GraphMl)),
            (Topology, "xml", GML, Some(Gml)),
            (Topology, "", "<network><networkStructure/></network>", Some(SndLib)),
            (Topology, "", "Topology: ( 10 Nodes, 20 Edges )\nModel (1 - RTWaxman): 10\n", Some(Brite)),
            (Topology, "", "2 1\n0 5 5\n1 6 7\n0 1 2\n", Some(Inet)),
            (Topology, "", "2 1\n0 5 5\n2 6 7\n0 1 2\n", None),
            (Topology, "intra", "Sydney,+Australia1 Perth,+Australia2 3.5\n", Some(Rocketfuel)),
            (Topology, "flows", "0 0 1 1000\n", None),
            (Flows, "flows", "2\n1 0 3 100 100000 0.0\n2 0 3 100 100000 0.001\n", Some(HpccFlows)),
            (Flows, "txt", "1\n1 0 3 100000 2.000000000\n", Some(HpccFlows)),
            (Flows, "flows", "Nodes 4\nConnections 1\n0->3 id 1 start 0 size 2000000\n", Some(ConnectionMatrix)),
            (Flows, "txt", "0 0 1 1000\n5 1 0 1000\n", Some(FileFormat::Flows)),
            (Flows, "txt", "size,src, dst,start\n", Some(FlowTable)),
            (Flows, "csv", "when,who\n", Some(FlowTable)),
            (Flows, "topo", TOPO, None),
            (Flows, "flows", "", Some(FileFormat::Flows)),
            (Flows, "txt", "# nothing\n", None),
        ] {
            assert_eq!(detect(text, purpose, extension), expected, "{text}");
        }
    }

    #[test]
    fn the_purpose_of_a_file_follows_from_its_content() {
        for (extension, text, purpose) in [
            ("txt", "4 1 3\n3\n0 3 100Gbps 1000ns 0\n", Some(Topology)),
            ("txt", "1\n1 0 3 100 100000 0.0\n", Some(Flows)),
            ("csv", "0,0\n100,0.5\n1000,1\n", Some(Sizes)),
            ("txt", "0 0\n100 5\n1000 100\n", Some(Sizes)),
            ("", "duration = \"1s\"\n[topology]\nkind = \"star\"\n", Some(Scenario)),
            ("down", "1\n1\n2\n10\n", Some(Purpose::Trace)),
            ("csv", "time_s,rate_mbps\n0,5\n", Some(Purpose::Trace)),
            ("graphml", "broken", Some(Topology)),
            ("csv", "broken", Some(Flows)),
            ("txt", "0 1\n1 2\n", None),
            ("txt", "broken", None),
            ("txt", "", None),
        ] {
            assert_eq!(identify(text, extension).map(|(purpose, _)| purpose), purpose, "{text}");
        }
    }

    #[test]
    fn a_sparelane_file_with_an_error_is_not_taken_for_another_format() {
        for (purpose, ending, text) in [
            (Topology, "topo", TOPO),
            (Topology, "topo", "host 0\nhost 0\nswitch 3\n"),
            (Topology, "gml", GML),
            (Topology, "graphml", "<graphml><graph><node/></graph></graphml>"),
            (Topology, "xml", "<network><networkStructure><nodes/></networkStructure></network>"),
            (Flows, "flows", "0 0 1 1000\n5 1 1 1000\n"),
            (Flows, "flows", "0 0 1\n"),
            (Flows, "csv", "start,src,dst,size\n0s,h0,h1,1 kB\n"),
            (Sizes, "csv", "0,0\n1000,0.5\n2000,1.2\n"),
            (Sizes, "csv", "0,0\n1000,0.5\n900,1\n"),
            (Scenario, "toml", "[[cross_traffic]]\nfrom = [\"left0\"]\nrate = = 1\n"),
        ] {
            assert_eq!(recognized(text, purpose, detect(text, purpose, ending)), None, "{text}");
        }
    }

    #[test]
    fn a_binary_file_is_named() {
        for (content, words) in [
            (&b"\x1f\x8b\x08\x00"[..], "gunzip"),
            (b"\xd4\xc3\xb2\xa1\x02\x00", "packet capture"),
            (b"\x0a\x0d\x0d\x0a\x1c\x00", "packet capture"),
            (b"PK\x03\x04\x14", "zip archive"),
            (b"PAR1\x15", "Parquet"),
            (b"\xff\xfeh\x00o\x00", "UTF-16"),
            (b"h\x00o\x00s\x00t\x00", "UTF-16"),
            (b"\x00h\x00o", "UTF-16"),
            (b"host 0\x00\x01\x02", "binary data"),
            (b"host 0\nrouter 1 M\xfcnchen\n", "not text in UTF-8"),
        ] {
            let error = decoded(content.to_vec()).expect_err(words);
            assert!(error.message.contains(words), "{error:?}");
        }
        assert_eq!(decoded(b"\xef\xbb\xbfhost 0".to_vec()), Ok("host 0".to_owned()));
        assert_eq!(decoded(Vec::new()), Ok(String::new()));
        assert_eq!(decoded(b"a\nb\xfc".to_vec()).map_err(|error| error.line), Err(Some(2)));
    }
}
