/** RTCP's counter: two flows to one receiver, an urgent one and a high-volume one. */

import { percent } from "../base/quantity.ts";
import type { RunResults, Series } from "../engine/index.ts";
import type { Line, Panel } from "../plot/figure.ts";
import { type Example, range, type Scenario } from "./page.ts";

type Values = { urgent: number; other: number; alpha: number; delay: number; startMs: number };

const END_MS = 8;
const MSS_BYTES = 1460;
const READINGS = ["coupled", "printed"] as const;
const FLOWS = ["high-volume", "urgent"] as const;

function toml({ urgent, other, alpha, delay, startMs }: Values, counter: string): string {
  return `# Two RTCP flows to one receiver on 1 Gb/s. The urgent one starts after ${startMs} ms.
duration = "${END_MS}ms"
seed = 1

[topology]
kind = "star"
hosts = 3
rate = "1Gbps"
delay = "${delay}us"

[queue]
limit = "4.5MB"

[transport]
delayed_ack = false

[scheme.rtcp]
controller = "rtcp"
alpha = ${alpha}
delta = 125
interface = "delay"
x_max = 2
counter = "${counter}"
weights = { urgent = ${urgent * 1000}, high-volume = ${other * 1000} }

[[workload]]
kind = "bulk"
pairs = [["h1", "h3"]]
size = "unlimited"
traffic_class = "high-volume"

[[workload]]
kind = "bulk"
pairs = [["h2", "h3"]]
size = "unlimited"
traffic_class = "urgent"
start = "${startMs}ms"
`;
}

type Make = (series: Series, values: Values) => Line[];

function perFlow(quantity: string, scale: number, dash?: readonly number[]): Make {
  return (series) =>
    series.flows.flatMap((flow, index) => {
      const found = flow.quantities[quantity];
      if (!found) return [];
      const name = FLOWS[index] ?? `flow ${flow.flow}`;
      const label = dash ? `αS of the ${name} flow` : `${name} flow`;
      return [
        {
          label,
          x: series.timeS,
          y: found.map((value) => scale * value),
          colour: index,
          form: "step" as const,
          ...(dash ? { dash, width: 1 } : {}),
        },
      ];
    });
}

function weights(series: Series, { urgent, other }: Values): Line[] {
  const x = [series.timeS[0]!, series.timeS.at(-1)!];
  return [other, urgent].map((weight, index) => ({
    label: `weight ω of the ${FLOWS[index]} flow`,
    x,
    y: [1000 * weight, 1000 * weight],
    colour: index,
    form: "line",
    dash: [2, 3],
    width: 1,
  }));
}

const PANELS: readonly { title: string; unit: string; make: Make }[] = [
  {
    title: "Counter H; the window halves while H is below αS",
    unit: "B",
    make: (series, values) => [
      ...perFlow("counter_bytes", 1)(series, values),
      ...perFlow("congestion_kb", values.alpha, [6, 4])(series, values),
      ...weights(series, values),
    ],
  },
  { title: "Target rate γ, in line rates", unit: "", make: perFlow("target_share", 1) },
  { title: "Window, in segments", unit: "", make: perFlow("cwnd_bytes", 1 / MSS_BYTES) },
  {
    title: "Queue of the receiver's port",
    unit: "B",
    make: (series) =>
      series.links
        .filter(({ name }) => name === "switch->h3")
        .map((link) => ({ label: "", x: series.timeS, y: link.backlogBytes, colour: 2, form: "step" as const })),
  },
];

export const RTCP: Example<Values> = {
  id: "rtcp",
  title: "RTCP: a counter of what a flow lacks",
  lead:
    "An RTCP sender counts what its flow lacks. The counter H grows at the target rate γ and falls at the actual rate. " +
    "While H is below the congestion αS, each acknowledgment halves the window; otherwise it doubles the window. " +
    "A flow with a larger weight keeps a larger H, so it yields later.",
  values: { urgent: 24, other: 12, alpha: 500, delay: 50, startMs: 3 },
  knobs: [
    {
      key: "urgent",
      label: "Weight ω of the urgent flow",
      steps: [3, 6, 12, 18, 24, 36, 48, 96],
      write: (value) => `${value} kB`,
    },
    {
      key: "other",
      label: "Weight ω of the high-volume flow",
      steps: [3, 6, 12, 18, 24, 36, 48, 96],
      write: (value) => `${value} kB`,
    },
    { key: "alpha", label: "α, weight of congestion", steps: [50, 100, 200, 500, 1000, 2000, 5000], write: String },
    { key: "delay", label: "Delay of a cable", steps: [5, 10, 20, 50, 100, 200], write: (value) => `${value} µs` },
    { key: "startMs", label: "Start of the urgent flow", steps: range(0, 6, 0.5), write: (value) => `${value} ms` },
  ],
  scenarios: (values): Scenario[] =>
    READINGS.map((counter) => ({ label: `${counter} counter`, toml: toml(values, counter) })),
  options: () => ({ series: { samples: 801, flows: [0, 1] } }),
  outcome: (results, values) => {
    const shown = results.flatMap(({ series, label }) => (series ? [{ series, label }] : []));
    return {
      figure: {
        title: "RTCP's counter",
        rows: PANELS.map(({ title, unit, make }) =>
          shown.map(
            ({ series, label }): Panel => ({
              title,
              x: { label: "time", unit: "s", scale: "linear", from: 0, to: END_MS / 1000 },
              y: { label: title, unit, scale: "linear" },
              lines: make(series, values),
              description: `${title} over time, ${label}.`,
            }),
          ),
        ),
      },
      height: 150,
      columns: results.map(({ label }) => label),
      verdict: verdict(results, values),
    };
  },
  prose: [
    [
      "The target rate",
      "The utility of a flow is ω log(1 + x). Its optimum is γ = ω/H − 1, and at least 0 (eq. 6). So an empty counter asks for much, and a full one for nothing.",
    ],
    [
      "Congestion",
      "S is smoothed from Q + δD: the backlog at the interface of the sender, and the rise of the round-trip time. Here D contains both (eq. 8).",
    ],
    [
      "Two readings",
      "In the coupled reading, eqs. (1) and (6) hold at every instant, and H never exceeds ω. In the printed reading, eq. (10) is computed at each acknowledgment, and γ is constant until the next one.",
    ],
    [
      "The window does not settle",
      "All acknowledgments of a round trip see the same congestion. So a window alternates between one segment and its bound.",
    ],
    ["What to try", "Give both flows the same weight. Then raise α: windows halve earlier, and the queue is shorter."],
  ],
  source:
    "Regulated TCP (RTCP), section II and the settings of the testbed in section V-A; x_max = 2 bounds the window and is our choice.",
};

/** Rates from the time at which both flows are open. */
function verdict(results: readonly RunResults[], { startMs }: Values): string {
  const words = results.flatMap(({ series, label }) => {
    if (!series) return [];
    const rows = [...series.timeS.keys()].filter((row) => series.timeS[row]! > (startMs + 0.5) / 1000);
    const rates = series.flows.map(({ quantities }) => {
      const rate = quantities["throughput_bps"];
      return rate
        ? rows.reduce((sum, row) => sum + (Number.isFinite(rate[row]!) ? rate[row]! : 0), 0) / Math.max(1, rows.length)
        : NaN;
    });
    const [other, urgent] = rates.map((rate) => percent(rate / 1e9, 0));
    return [`With the ${label}, the urgent flow has ${urgent} of the link and the high-volume flow ${other}.`];
  });
  return `${words.join(" ")} This is payload, from half a millisecond after the start of the urgent flow.`;
}
