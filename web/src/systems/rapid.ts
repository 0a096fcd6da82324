/** RAPID's p-streams: the gaps of one of them, and the rate that follows from their estimates. */

import { si } from "../base/quantity.ts";
import { PacketKind, type Packets, type RunResults } from "../engine/index.ts";
import type { Line, Panel } from "../plot/figure.ts";
import { type Example, range, type Scenario } from "./page.ts";

type Values = { cross: number; more: number; start: number; tau: number; eta: number; stream: number };

const CAPACITY_BPS = 10e9;
/** The time of the additional cross traffic, seconds. */
const MORE_S = [0.09, 0.13] as const;
const END_S = 0.19;
const PACKETS = 64;
const PER_RATE = 16;
/** A gap that is longer than the previous one by this factor begins a p-stream, because gaps shrink within one. */
const RISE = 1.02;
/** The interval of the samples, seconds. */
const SAMPLES = 1_900;

function cross(pair: number, gbps: number, period = ""): string {
  return `
[[cross_traffic]]
kind = "constant"
from = ["left${pair}"]
to = ["right${pair}"]
rate = "${Math.round(gbps * 1000)}Mbps"
jitter = 1.0
${period}`;
}

function toml({ cross: rate, more, start, tau, eta }: Values): string {
  const extra = more > 0 ? cross(2, more, `start = "${1e3 * MORE_S[0]}ms"\nstop = "${1e3 * MORE_S[1]}ms"\n`) : "";
  return `# One RAPID transfer over 10 Gb/s with a round trip of 1 ms, beside cross traffic that does not react.
duration = "${1e3 * END_S}ms"
seed = 1

[topology]
kind = "dumbbell"
pairs = 3
access_rate = "10Gbps"
bottleneck_rate = "10Gbps"
bottleneck_delay = "500us"

[queue]
limit = "8MB"

[transport]
mss = "8948B"
delayed_ack = false
receive_window = "39MB"

[scheme.rapid]
controller = "rapid"
initial_rate = "${start}Gbps"
tau = "${tau}ms"
eta = ${eta}

[workload]
kind = "bulk"
scheme = "rapid"
pairs = [["left0", "right0"]]
size = "unlimited"
${rate > 0 ? cross(1, rate) : ""}${extra}`;
}

/** The gaps of a p-stream at the sender, and behind the bottleneck. */
interface Stream {
  sentS: number[];
  receivedS: number[];
  startS: number;
  wireBytes: number;
}

/** The complete p-streams of the recorded packets, in order. */
function streams(packets: Packets): Stream[] {
  const sent: number[] = [];
  const received: number[] = [];
  let wireBytes = 0;
  for (let packet = 0; packet < packets.count; packet += 1) {
    if (packets.kind[packet] !== PacketKind.Data || packets.isRetransmission[packet]) continue;
    const [first, end] = [packets.firstHop[packet]!, packets.firstHop[packet + 1]!];
    const leave = packets.hopLeaveS[first]!;
    // The last link is as fast as the bottleneck, so gaps at its end are those behind the bottleneck.
    const arrive = end > first ? packets.endS[packet]! : NaN;
    sent.push(leave);
    received.push(packets.fate[packet] === 0 ? arrive : NaN);
    wireBytes = packets.bytes[packet]!;
  }
  const gaps = (times: readonly number[]): number[] => times.slice(1).map((time, index) => time - times[index]!);
  const [sendGaps, receiveGaps] = [gaps(sent), gaps(received)];
  const starts = sendGaps.flatMap((gap, index) => (index > 0 && gap > RISE * sendGaps[index - 1]! ? [index] : []));
  return starts
    .filter((start, index) => (starts[index + 1] ?? sendGaps.length) - start === PACKETS)
    .map((start) => ({
      sentS: sendGaps.slice(start, start + PACKETS),
      receivedS: receiveGaps.slice(start, start + PACKETS),
      startS: sent[start]!,
      wireBytes,
    }));
}

function gapPanel(stream: Stream): Panel {
  const number = range(1, PACKETS);
  const rates = range(0, PACKETS - PER_RATE, PER_RATE).map((index) =>
    si((8 * stream.wireBytes) / stream.sentS[index]!, "b/s"),
  );
  return {
    title: `Gaps of the p-stream at ${si(stream.startS, "s")}, which probes ${rates.join(", ")}`,
    x: { label: "packet of the p-stream", unit: "", scale: "linear", from: 0, to: PACKETS + 1 },
    y: { label: "gap", unit: "s", scale: "linear" },
    lines: [
      { label: "gap at the sender", x: number, y: stream.sentS, colour: 0, form: "step" },
      { label: "gap at the receiver", x: number, y: stream.receivedS, colour: 1, form: "dots", size: 5 },
    ],
    description: `The gaps of a p-stream of ${PACKETS} packets. It probes ${rates.join(", ")}.`,
  };
}

function free(values: Values): { x: number[]; y: number[] } {
  const base = CAPACITY_BPS - 1e9 * values.cross;
  return { x: [0, ...MORE_S, END_S], y: [base, base - 1e9 * values.more, base, base] };
}

function ratePanel(results: RunResults, values: Values): Panel | null {
  const { series } = results;
  const quantities = series?.flows[0]?.quantities;
  const [rate, estimate] = [quantities?.["rate_bps"], quantities?.["estimate_bps"]];
  if (!series || !rate || !estimate) return null;
  const lines: Line[] = [
    { label: "available bandwidth", ...free(values), colour: 6, form: "step", dash: [6, 4] },
    {
      label: "ABest of the last p-stream",
      x: series.timeS,
      y: estimate.map((one) => (one > 0 ? one : NaN)),
      colour: 1,
      form: "dots",
      size: 2.5,
    },
    { label: "R_avg", x: series.timeS, y: rate, colour: 0, form: "step", width: 2 },
  ];
  return {
    title: "Rate, estimates, and the available bandwidth",
    x: { label: "time", unit: "s", scale: "linear", from: 0, to: END_S },
    y: { label: "rate", unit: "b/s", scale: "linear" },
    lines,
    description: `The average rate of RAPID over time. It ends at ${si(rate.at(-1) ?? NaN, "b/s")}; ${si(free(values).y[2]!, "b/s")} are available.`,
  };
}

function queuePanel(results: RunResults): Panel | null {
  const { series } = results;
  const link = series?.links.find(({ name }) => name === "west->east");
  if (!series || !link) return null;
  return {
    title: "Queue of the bottleneck",
    x: { label: "time", unit: "s", scale: "linear", from: 0, to: END_S },
    y: { label: "queue", unit: "B", scale: "linear" },
    lines: [{ label: "", x: series.timeS, y: link.backlogBytes, colour: 2, form: "step" }],
    description: `The queue over time. Its maximum is ${si(
      link.backlogBytes.reduce((most, one) => Math.max(most, one), 0),
      "B",
    )}.`,
  };
}

const gbps = (value: number): string => `${value} Gb/s`;

export const RAPID: Example<Values> = {
  id: "rapid",
  title: "TCP RAPID: every gap is a probe",
  lead:
    "RAPID chooses the gap before each packet. A p-stream of 64 packets probes four rates, 16 packets each. " +
    "If the gaps of a rate grow on the path, that rate exceeds the available bandwidth, and RAPID follows the highest rate below.",
  values: { cross: 2.5, more: 1.5, start: 4, tau: 10, eta: 3, stream: 80 },
  knobs: [
    { key: "cross", label: "Cross traffic", steps: range(0, 8, 0.5), write: gbps },
    { key: "more", label: "More from 90 to 130 ms", steps: range(0, 5, 0.5), write: gbps },
    { key: "start", label: "Initial rate", steps: range(1, 9), write: gbps },
    { key: "tau", label: "τ, time constant upwards", steps: [1, 2, 5, 10, 20, 50], write: (value) => `${value} ms` },
    { key: "eta", label: "η, updates downwards", steps: range(1, 10), write: String },
    { key: "stream", label: "P-stream in the first figure", steps: range(0, 300), write: (value) => `number ${value}` },
  ],
  scenarios: (values): Scenario[] => [{ label: "RAPID", toml: toml(values) }],
  options: () => ({ series: { samples: SAMPLES, flows: [0] }, packets: { flow: 0, most: 60_000 } }),
  outcome: (results, values) => {
    const [run] = results as [RunResults];
    const all = run.packets ? streams(run.packets) : [];
    const stream = all[Math.min(values.stream, all.length - 1)];
    const panels = [stream ? gapPanel(stream) : null, ratePanel(run, values), queuePanel(run)];
    return {
      figure: { title: "RAPID's p-streams", rows: panels.flatMap((panel) => (panel ? [[panel]] : [])) },
      height: 190,
      columns: [],
      verdict: verdict(run, values, all.length),
    };
  },
  prose: [
    [
      "ABest",
      "The estimate of a p-stream is the highest rate beyond which packets consistently queue. It is the highest probed rate if no gaps grow.",
    ],
    [
      "R_avg",
      "The average rate of a p-stream. It rises by l/τ of the difference to the estimate, where l is the duration of a p-stream, and falls by 1/η of the difference. RAPID updates it once in three p-streams.",
    ],
    [
      "The queue",
      "Gaps show whether a queue grows, not how long it is. So a queue from the time before an adaptation stays until the cross traffic ends.",
    ],
    [
      "What to try",
      "Set τ to 1 ms: the rate follows each noisy estimate. Set η to 10: the queue grows longer after 90 ms, because RAPID yields more slowly.",
    ],
  ],
  source:
    "P-streams and ABest: Yin, Kaur and Smith, INFOCOM 2017, section II. The path is our own example, and the other parameters are the defaults.",
};

function verdict(run: RunResults, values: Values, count: number): string {
  const rate = run.series?.flows[0]?.quantities["rate_bps"];
  const { timeS } = run.series ?? { timeS: new Float64Array(0) };
  // The mean of R_avg in the 20 ms before the additional cross traffic, when it has converged.
  const rows = [...timeS.keys()].filter((row) => timeS[row]! > MORE_S[0] - 0.02 && timeS[row]! <= MORE_S[0]);
  const mean = rate ? rows.reduce((sum, row) => sum + rate[row]!, 0) / rows.length : NaN;
  const available = CAPACITY_BPS - 1e9 * values.cross;
  return (
    `Before 90 ms, ${si(available, "b/s")} are available, and R_avg is ${si(mean, "b/s")} on average over the last 20 ms. ` +
    `The sender has sent ${count} complete p-streams.`
  );
}
