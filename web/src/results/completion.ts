/** Figures of completion times: their distribution, and their mean by the size of flows. */

import { si } from "../base/quantity.ts";
import type { RunResults } from "../engine/index.ts";
import type { Figure, Line, Panel } from "../plot/figure.ts";
import { numbers, text } from "./columns.ts";

/** The number of groups of flows by size, each with equally many flows. */
const GROUPS = 10;
/** The smallest number of flows of a group. */
const LEAST_OF_GROUP = 5;

interface Finished {
  label: string;
  colour: number;
  sizeBytes: number[];
  startS: number[];
  completionS: number[];
  all: number;
}

/** The distribution of completion times, and completion times by size; `null` if no flow has finished. */
export function completionTimes(results: readonly RunResults[]): Figure | null {
  const all = results.flatMap((one) => byScheme(one, results.length)).map((one, colour) => ({ ...one, colour }));
  const shown = all.filter(({ completionS }) => completionS.length > 0);
  if (shown.length === 0) return null;
  const sizes = new Set(shown.flatMap(({ sizeBytes }) => sizeBytes));
  return {
    title: "Completion times",
    rows: [[distribution(shown), sizes.size > 2 ? bySize(shown) : byStart(shown)]],
  };
}

/** The finished flows of each scheme of a run. Flows that had not finished count in `all`. */
function byScheme(results: RunResults, variants: number): Finished[] {
  const { flows } = results;
  const [size, start, completion] = ["size_bytes", "start_s", "completion_s"].map((name) => numbers(flows, name)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const groups = new Map<string, Finished>();
  for (let row = 0; row < flows.rows; row += 1) {
    // Flows without an end have no completion time.
    if (Number.isNaN(size[row]!)) continue;
    const scheme = text(flows, "scheme", row);
    const group = groups.get(scheme) ?? {
      label: scheme,
      colour: 0,
      sizeBytes: [],
      startS: [],
      completionS: [],
      all: 0,
    };
    groups.set(scheme, group);
    group.all += 1;
    if (Number.isNaN(completion[row]!)) continue;
    group.sizeBytes.push(size[row]!);
    group.startS.push(start[row]!);
    group.completionS.push(completion[row]!);
  }
  const found = [...groups.values()];
  return found.map((group) => ({
    ...group,
    label: variants === 1 ? group.label : found.length > 1 ? `${results.label}: ${group.label}` : results.label,
  }));
}

function distribution(all: readonly Finished[]): Panel {
  const lines = all.map((one): Line => {
    const times = [...one.completionS].sort((a, b) => a - b);
    return {
      label: one.label,
      x: times,
      // The share counts flows that did not finish, so that the curve does not reach 1 with them.
      y: times.map((_, index) => (index + 1) / one.all),
      colour: one.colour,
      form: times.length > 1 ? "step" : "dots",
      size: 7,
    };
  });
  const words = all.map((one) => {
    const times = [...one.completionS].sort((a, b) => a - b);
    return `${one.label}: ${times.length} of ${one.all} flows finished, median ${si(times[Math.floor(times.length / 2)] ?? NaN, "s")}.`;
  });
  return {
    title: "Share of flows that completed within a time",
    x: { label: "completion time", unit: "s", scale: "log" },
    y: { label: "share of flows", unit: "%", scale: "linear", from: 0, to: 1.02 },
    lines,
    description: `Distribution of completion times. ${words.join(" ")}`,
  };
}

function bySize(all: readonly Finished[]): Panel {
  const lines = all.map((one): Line => {
    const order = [...one.sizeBytes.keys()].sort((a, b) => one.sizeBytes[a]! - one.sizeBytes[b]!);
    const count = Math.max(1, Math.min(GROUPS, Math.floor(order.length / LEAST_OF_GROUP)));
    const groups = Array.from({ length: count }, (_, index) =>
      order.slice(Math.floor((index * order.length) / count), Math.floor(((index + 1) * order.length) / count)),
    );
    const means = groups.map((rows) => [average(rows, one.sizeBytes), average(rows, one.completionS)] as const);
    return {
      label: one.label,
      x: means.map(([size]) => size),
      y: means.map(([, time]) => time),
      colour: one.colour,
      form: means.length > 1 ? "line" : "dots",
      size: 7,
    };
  });
  return {
    title: "Mean completion time by size of flow",
    x: { label: "size of flow", unit: "B", scale: "log" },
    y: { label: "completion time", unit: "s", scale: "log" },
    lines,
    description: `Mean completion time of groups of flows by size. ${lines
      .map(
        ({ label, x, y }) =>
          `${label}: ${si(y[0]!, "s")} for ${si(x[0]!, "B")}, ${si(y[y.length - 1]!, "s")} for ${si(x[x.length - 1]!, "B")}.`,
      )
      .join(" ")}`,
  };
}

function byStart(all: readonly Finished[]): Panel {
  const lines = all.map((one): Line => {
    const order = [...one.startS.keys()].sort((a, b) => one.startS[a]! - one.startS[b]!);
    return {
      label: one.label,
      x: order.map((row) => one.startS[row]!),
      y: order.map((row) => one.completionS[row]!),
      colour: one.colour,
      form: "dots",
      size: 6,
    };
  });
  return {
    title: "Completion time by start of flow",
    x: { label: "start", unit: "s", scale: "linear" },
    y: { label: "completion time", unit: "s", scale: "log" },
    lines,
    description: "Completion time of each flow by its start. All flows have about the same size.",
  };
}

function average(rows: readonly number[], values: readonly number[]): number {
  return rows.reduce((sum, row) => sum + values[row]!, 0) / rows.length;
}
