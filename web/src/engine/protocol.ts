/**
 * The messages between the page and the engine's worker, and the data in them.
 *
 * The engine is the simulator of `sparelane run`, compiled to WebAssembly. The page does not post these messages
 * itself: `client.ts` does. All times are in seconds of simulated time, sizes in bytes and rates in bits per second,
 * unless a name says otherwise. In a column of numbers, `NaN` means that a row has no value.
 */

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A JSON object. */
export type JsonObject = { [key: string]: Json };

/**
 * The place of a value in a scenario, from the top: names of keys, and numbers of elements in lists, counted from 0.
 * An example is `["workload", 0, "size"]`. A single table may be named as the first of a list, and the only table of a
 * list without its number, as in `sparelane run --set`.
 */
export type Path = readonly (string | number)[];

// ---------------------------------------------------------------------------------------------------------------------
// The catalogue
// ---------------------------------------------------------------------------------------------------------------------

/** One key of an entry of the catalogue. */
export interface CatalogueKey {
  name: string;
  /** What the key means, as a phrase. */
  meaning: string;
  /** The allowed values, in words. */
  allowed: string;
  /** The default: a value as a scenario would write it, `required`, or in parentheses the meaning of its absence. */
  default: string;
  /** The paper or standard that the default comes from. */
  source: string;
  isRequired: boolean;
  /** The kind of its values, for the choice of a control. */
  type: KeyType;
  /** The allowed values as JSON Schema. References lead into `definitions` of the schema of scenarios. */
  schema: JsonObject;
}

/**
 * The kind of a key's values.
 *
 * `time`, `rate` and `size` are texts with units, such as `"40ms"`, `"10Mbps"` and `"64kB"`; `limit` is a size that can
 * also be `"2bdp"` or `"100 packets"`; `volume` is such a size or `"unlimited"`. `share` is a number or a text such as `"5%"`. `path` is a file, which the page
 * cannot read. `other` has the form that `schema` says.
 */
export type KeyType =
  | "text"
  | "path"
  | "node"
  | "time"
  | "rate"
  | "size"
  | "limit"
  | "volume"
  | "whole"
  | "number"
  | "share"
  | "flag"
  | "choice"
  | "controller"
  | "other";

/** One thing that a scenario can name, or one of its tables. */
export interface CatalogueEntry {
  /** `controller`, `topology`, `workload`, `sizes`, `cross_traffic` or `queue`; `table` for tables of a scenario. */
  kind: string;
  name: string;
  /** One line of description. */
  summary: string;
  /** The paper or standard that defines it. */
  source: string;
  /** The key of a table that selects further keys, and the kind of the entries that it can name. */
  chooser: { key: string; kind: string } | null;
  keys: CatalogueKey[];
}

/** Everything that a scenario can name. */
export interface Catalogue {
  entries: CatalogueEntry[];
}

/** A ready-made scenario that the page can run, because it needs no file. */
export interface ShippedScenario {
  /** The name that `sparelane run` takes. */
  name: string;
  /** The comment at its top, which says what it shows. */
  summary: string;
  toml: string;
}

// ---------------------------------------------------------------------------------------------------------------------
// Scenarios as text
// ---------------------------------------------------------------------------------------------------------------------

/** A mistake in a scenario. */
export interface Mistake {
  /** The line, counted from 1; `null` if the mistake concerns the file as a whole. */
  line: number | null;
  /** The first column, counted from 1 in UTF-16 code units, as editors count; `null` if only the line is known. */
  column: number | null;
  /** The column after the last character; `null` if it is unknown. */
  endColumn: number | null;
  /** The key as a dotted path; empty if there is none. */
  key: string;
  /** The given value as a scenario would write it, shortened if it is long. */
  value: string | null;
  /** The cause, and the allowed values. */
  message: string;
  /** The whole message as `sparelane check` prints it, with file name and line. */
  text: string;
}

/** The result of parsing a scenario. */
export type Parsed =
  | {
      ok: true;
      /** The tables as written: keys that are absent have their defaults. */
      scenario: JsonObject;
      /** Warnings about keys without effect and settings that contradict each other, as `sparelane check` prints them. */
      warnings: string[];
      /** The network. */
      network: Network;
      /** The names of the schemes, in the order of the file. */
      schemes: string[];
      durationS: number;
      seed: number;
      /** The bytes that `"1bdp"` stands for in this scenario. */
      bdpBytes: number;
    }
  | {
      ok: false;
      /** All mistakes that the parser found: every mistake of TOML's syntax, or the first one of the keys and values. */
      mistakes: Mistake[];
      /** The tables as written if the text is valid TOML, so that a form can still show them. */
      scenario: JsonObject | null;
    };

/** The result of an edit of a scenario's text. */
export type Edited = { ok: true; toml: string } | { ok: false; mistakes: Mistake[] };

// ---------------------------------------------------------------------------------------------------------------------
// The network
// ---------------------------------------------------------------------------------------------------------------------

/** A node of a network. */
export interface NetworkNode {
  name: string;
  isHost: boolean;
  /** The position for drawing, from 0 (left) to 1 (right) and from 0 (top) to 1 (bottom); `null` without a layout. */
  x: number | null;
  y: number | null;
}

/** One direction of a cable. The two directions of a cable follow each other, the one from its first end first. */
export interface NetworkLink {
  /** The sending node, as an index into `nodes`. */
  from: number;
  /** The receiving node. */
  to: number;
  /** The rate at the start of the run. */
  rateBps: number;
  /** The propagation delay. */
  delayS: number;
}

/** A network, with positions if it is small enough to be drawn. */
export interface Network {
  nodes: NetworkNode[];
  links: NetworkLink[];
  /** The layout: routers in a row, one router in the middle of its hosts, any other small graph, or none. */
  layout: "row" | "star" | "graph" | "none";
}

// ---------------------------------------------------------------------------------------------------------------------
// The estimate of a run
// ---------------------------------------------------------------------------------------------------------------------

/** The expected effort of a run in this browser. */
export interface Estimate {
  /** The number of packets that cross links, each counted once for each link; `null` if it is unknown. */
  packetHops: number | null;
  /** Seconds in this browser, from a trial of the first moments; `null` if there was no trial. */
  seconds: number | null;
  /** Memory of network, open flows and rows of results, within a factor of two. */
  bytes: number;
  /** The expected number of flows. */
  flows: number;
  /** True if the trial ran the whole scenario, so that the numbers are exact. */
  isExact: boolean;
  /** The reason and the way out, if the page refuses to run this scenario; otherwise `null`. */
  refusal: Refusal | null;
}

/** A scenario that this page does not run. */
export interface Refusal {
  cause: "files" | "memory" | "time";
  /** A sentence for the user. */
  reason: string;
  /** The command for a terminal, which assumes that the scenario was saved as `scenario.toml`. */
  command: string;
}

// ---------------------------------------------------------------------------------------------------------------------
// A run
// ---------------------------------------------------------------------------------------------------------------------

/** The measurements of a run beyond those that the scenario asks for. They change no result and no digest. */
export interface RunOptions {
  /** A label of the run, which is passed through to the results. */
  label?: string;
  /** The time series; `null` for none. The default is `{}`. */
  series?: SeriesOptions | null;
  /** The packets to record; `null` for none, which is the default. */
  packets?: PacketOptions | null;
}

/** The time series of a run. */
export interface SeriesOptions {
  /** The number of samples from the start to the end of the run, 2 to 20,000; 1,000 by default. */
  samples?: number;
  /** The flows to sample, by their number in order of start; by default the first 16. */
  flows?: number[];
  /**
   * The links to sample, as indices into `Network.links`. By default these are the links between routers and those
   * from routers to hosts, up to 32, the links between routers first.
   */
  links?: number[];
}

/** The packets of a window of time. */
export interface PacketOptions {
  /** The start of the window; 0 by default. A packet belongs to the window if it is sent in it. */
  fromS?: number;
  /** The end of the window; the end of the run by default. */
  toS?: number;
  /** The number of packets after which recording stops, up to 200,000; 100,000 by default. */
  most?: number;
  /** The only flow whose packets are recorded, by its number in order of start; by default those of all flows. */
  flow?: number;
}

/** The progress of a run. */
export interface Progress {
  /** Simulated time. */
  nowS: number;
  /** The simulated time at which the run ends. */
  durationS: number;
  /** The share of simulated time that is done, 0 to 1. */
  share: number;
  /** Seconds since the run began, of real time. */
  elapsedS: number;
}

/** A column of numbers or flags (0 or 1). */
export interface NumberColumn {
  type: "number" | "flag";
  /** One value for each row; `NaN` if the row has none. Whole numbers are exact up to 2^53. */
  values: Float64Array;
}

/** A column of text. */
export interface TextColumn {
  type: "text";
  /** For each row, an index into `dictionary`; `NO_TEXT` if the row has no value. */
  codes: Uint32Array;
  dictionary: string[];
}

export type Column = NumberColumn | TextColumn;

/** The code of a row without text. */
export const NO_TEXT = 0xffffffff;

/** A table with named columns of equal length, in the order of `sparelane run`'s files. */
export interface Table {
  rows: number;
  columns: Record<string, Column>;
}

/** The samples of a flow. All arrays have one value for each sample; `NaN` while the flow is not open. */
export interface FlowSeries {
  /** The flow's number in order of start. */
  flow: number;
  scheme: string;
  /**
   * The samples by quantity. `cwnd_bytes`, `in_flight_bytes`, `srtt_s` and `throughput_bps` (payload that the receiver
   * got in sequence since the previous sample) exist for each flow; others depend on the controller, such as
   * `ssthresh_bytes` or `pace_bps`. A value without a bound is `NaN`.
   */
  quantities: Record<string, Float64Array>;
}

/** The samples of a link. */
export interface LinkSeries {
  /** An index into `Network.links`. */
  link: number;
  /** The names of its nodes, such as `r0->r1`. */
  name: string;
  /** The bytes in its queue at each sample. */
  backlogBytes: Float64Array;
  /** The share of its capacity that was used since the previous sample, 0 to 1. */
  utilization: Float64Array;
}

/** The samples of all flows of a scheme together. */
export interface SchemeSeries {
  scheme: string;
  /** Payload that the receivers got in sequence since the previous sample, as a rate. */
  throughputBps: Float64Array;
  /** The number of open flows at each sample. */
  openFlows: Float64Array;
}

/** The time series of a run. */
export interface Series {
  /** The time of each sample, which all arrays share. */
  timeS: Float64Array;
  flows: FlowSeries[];
  links: LinkSeries[];
  schemes: SchemeSeries[];
}

/** The kind of a packet, as in `Packets.kind`. */
export const PacketKind = { Data: 0, Acknowledgment: 1, Syn: 2, SynAck: 3 } as const;

/** The fate of a packet, as in `Packets.fate`. `Unknown` if it was in the network when the run ended. */
export const PacketFate = { Arrived: 0, Dropped: 1, Unknown: 2 } as const;

/**
 * The packets that were sent in a window of time, in order of sending, as columns. This serves the animation, and the
 * sequence plot of a flow: `sentS`, `offset` and `class` of its data, and of its acknowledgments.
 */
export interface Packets {
  count: number;
  /** True if the window had more packets than the limit, so that the last ones are missing. */
  isCut: boolean;
  /** The window that the packets cover: it ends earlier than asked if `isCut`. */
  fromS: number;
  toS: number;
  /** The number of its flow. */
  flow: Uint32Array;
  /** A value of `PacketKind`. */
  kind: Uint8Array;
  /** Its priority class; 0 is the highest. */
  class: Uint8Array;
  /** For data, the segment; for an acknowledgment, the first missing segment; otherwise 0. */
  segment: Uint32Array;
  /** For data, the offset of its first byte in the stream; for an acknowledgment, the bytes that it acknowledges. */
  offset: Float64Array;
  /** Its size on the wire. */
  bytes: Uint32Array;
  /** 1 if the segment had been sent before. */
  isRetransmission: Uint8Array;
  /** 1 if it carried a congestion mark when it was last seen. */
  isMarked: Uint8Array;
  /** The time at which it was handed to the interface of its host. */
  sentS: Float64Array;
  /** The time of its arrival, or of its drop; `NaN` if neither happened. */
  endS: Float64Array;
  /** A value of `PacketFate`. */
  fate: Uint8Array;
  /**
   * The position of its first hop in the columns below; its hops end where those of the next packet begin. The last
   * value is the number of all hops, so there is one value more than packets.
   */
  firstHop: Uint32Array;
  /** For each hop, the link as an index into `Network.links`. */
  hopLink: Uint32Array;
  /** The time at which it entered the queue of the link. */
  hopEnterS: Float64Array;
  /** The time at which its first bit left the queue; `NaN` if it was dropped there, or had not left yet. */
  hopStartS: Float64Array;
  /** The time at which its last bit left the queue; `NaN` likewise. It reaches the next node a link's delay later. */
  hopLeaveS: Float64Array;
}

/** The flows of a scheme in numbers, as `sparelane run` prints them. `NaN` stands for "no value". */
export interface SchemeSummary {
  scheme: string;
  flows: number;
  finished: number;
  /** Completion times. A percentile has a value only if there are enough flows: 20 for p95, 100 for p99. */
  meanS: number;
  medianS: number;
  p95S: number;
  p99S: number;
  p999S: number;
  /** The mean and the 99th percentile of completion time divided by the time in an empty network. */
  slowdown: number;
  p99Slowdown: number;
  /** Payload delivered, from the first start to the last finish. */
  goodputBps: number;
  /** Retransmissions per packet of the highest class. */
  retransmitted: number;
  timeouts: number;
  /** The mean over flows of the smoothed round-trip time, and of its excess over the smallest one. */
  rttS: number;
  queueingS: number;
  /** Jain's index of the rates of the flows that are open at the end. */
  jain: number;
}

/** The totals of a run. */
export interface Totals {
  endS: number;
  events: number;
  packetHops: number;
  flows: number;
  finishedFlows: number;
}

/** The results of a run. */
export interface RunResults {
  label: string;
  /** The digest of the results, which is equal to that of `sparelane run` with the same version. */
  digest: string;
  /** The version of sparelane. */
  version: string;
  seed: number;
  /** The scenario as TOML, with the seed. */
  toml: string;
  warnings: string[];
  totals: Totals;
  /** Seconds of real time that the run took, and packet-hops per second of it. */
  elapsedS: number;
  packetHopsPerS: number;
  network: Network;
  summary: SchemeSummary[];
  /** One row for each flow: the columns of `flows.parquet`. */
  flows: Table;
  /** One row for each direction of a cable, in the order of `Network.links`. */
  links: Table;
  /** One row for each direction of a cable and class. */
  drops: Table;
  /** One row for each bin of one-way delays, if the scenario measures them. */
  delays: Table;
  series: Series | null;
  packets: Packets | null;
  /** The reason for missing packets, if they were asked for but cannot be recorded; otherwise `null`. */
  packetsMissing: string | null;
}

/** The outcome of a run. */
export type RunOutcome =
  | { type: "done"; results: RunResults }
  | { type: "mistakes"; mistakes: Mistake[] }
  | { type: "refused"; refusal: Refusal }
  | { type: "cancelled" }
  /** The engine failed: a defect, or no memory. */
  | { type: "failed"; message: string };

/** The difference of a variant from the first one. */
export interface Difference {
  /** The label of the variant. */
  label: string;
  /** The label of the first variant. */
  baseline: string;
  /** The scheme whose flows are compared; `null` if the flows of all schemes are compared together. */
  scheme: string | null;
  /** Sentences, the most important first. */
  sentences: string[];
}

// ---------------------------------------------------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------------------------------------------------

/** The calls of a worker, except for runs: the arguments and the result of each. */
export interface Calls {
  catalogue: { arguments: []; result: Catalogue };
  schema: { arguments: []; result: JsonObject };
  scenarios: { arguments: []; result: ShippedScenario[] };
  parse: { arguments: [toml: string]; result: Parsed };
  setKey: { arguments: [toml: string, path: Path, value: Json | undefined]; result: Edited };
  toToml: { arguments: [scenario: JsonObject]; result: Edited };
  estimate: { arguments: [toml: string]; result: Estimate | { mistakes: Mistake[] } };
  version: { arguments: []; result: string };
}

/** The name of a call. */
export type CallName = keyof Calls;

/** A message from the page to a worker. The first one has the engine. */
export type ToWorker =
  | { type: "load"; module: WebAssembly.Module }
  | { type: "call"; id: number; name: CallName; arguments: readonly unknown[] }
  | { type: "run"; id: number; toml: string; options: RunOptions };

/** A message from a worker to the page. */
export type FromWorker =
  | { type: "ready" }
  | { type: "result"; id: number; result: unknown }
  | { type: "error"; id: number | null; message: string }
  | { type: "progress"; id: number; progress: Progress }
  | { type: "outcome"; id: number; outcome: RunOutcome };
