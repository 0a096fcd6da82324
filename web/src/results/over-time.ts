/** Figures over time: throughput, window, round-trip time, queue and use of links, a panel for each variant. */

import { si } from "../base/quantity.ts";
import type { FlowSeries, LinkSeries, RunResults, Series } from "../engine/index.ts";
import { type Axis, type Figure, type Line, type Panel, extent } from "../plot/figure.ts";

/** The largest number of flows that are drawn one by one. */
const MOST_FLOWS = 6;
/** The largest number of links that are drawn. */
const MOST_LINKS = 3;
/** Rates are means over this share of the run, because few packets pass between two samples. */
const WINDOWS = 200;

/** A figure with a row for each quantity. */
export function overTime(results: readonly RunResults[]): Figure {
  const shown = results.filter((one): one is RunResults & { series: Series } => one.series !== null);
  const areFew = shown.every((one) => one.flows.rows <= MOST_FLOWS);
  const rows = [
    row(shown, (one) =>
      panel(one, throughputTitle(one), "throughput", "b/s", areFew ? flowRates(one.series) : schemeRates(one.series)),
    ),
    areFew
      ? row(shown, (one) => panel(one, "Congestion window", "window", "B", flowLines(one.series, "cwnd_bytes")))
      : row(shown, (one) => panel(one, "Open flows", "flows", "", openFlows(one.series))),
    areFew
      ? row(shown, (one) => panel(one, "Round-trip time, smoothed", "time", "s", flowLines(one.series, "srtt_s")))
      : [],
    row(shown, (one) =>
      panel(
        one,
        "Queue",
        "backlog",
        "B",
        linkLines(one, ({ backlogBytes }) => backlogBytes, "step"),
      ),
    ),
    row(shown, (one) => {
      const lines = linkLines(one, ({ utilization }) => smoothed(utilization, one.series.timeS.length), "step");
      const range: Axis = { label: "use", unit: "%", scale: "linear", from: 0, to: 1.02 };
      return { ...panel(one, "Link use", "use", "%", lines), y: range };
    }),
  ];
  return { title: "Over time", rows: rows.filter((one) => one.some(({ lines }) => lines.length > 0)) };
}

function row(
  results: readonly (RunResults & { series: Series })[],
  make: (one: RunResults & { series: Series }) => Panel,
): Panel[] {
  return results.map(make);
}

function panel(
  results: RunResults & { series: Series },
  title: string,
  label: string,
  unit: string,
  lines: Line[],
): Panel {
  return {
    title,
    x: { label: "time", unit: "s", scale: "linear", from: 0, to: results.totals.endS },
    y: { label, unit, scale: "linear" },
    lines,
    description: `${title} over time, ${results.label}. ${lines.map((line) => describe(line, unit)).join(" ")}`,
  };
}

function describe(line: Line, unit: string): string {
  const range = extent(Array.from(line.y));
  if (!range) return `${line.label}: no values.`;
  const values = Array.from(line.y).filter(Number.isFinite);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const write = (value: number): string => (unit === "%" ? `${Math.round(100 * value)} %` : si(value, unit));
  return `${line.label}: mean ${write(mean)}, from ${write(range[0])} to ${write(range[1])}.`;
}

function throughputTitle({ series }: RunResults & { series: Series }): string {
  const { timeS } = series;
  const span = (timeS.at(-1)! - timeS[0]!) / (timeS.length - 1);
  return `Throughput, mean over ${si(span * every(timeS.length), "s", 2)}`;
}

/** The number of samples in a window. */
function every(samples: number): number {
  return Math.max(1, Math.round(samples / WINDOWS));
}

/** Means over windows; each value stands for the time since the previous sample, so the mean is exact. */
function smoothed(values: Float64Array, samples: number): Float64Array {
  const size = every(samples);
  const result = new Float64Array(values.length).fill(NaN);
  for (let start = 1; start < values.length; start += size) {
    const end = Math.min(values.length, start + size);
    let sum = 0;
    let count = 0;
    for (let index = start; index < end; index += 1) {
      if (!Number.isFinite(values[index])) continue;
      sum += values[index]!;
      count += 1;
    }
    result.fill(count > 0 ? sum / count : NaN, start, end);
  }
  return result;
}

function flowRates(series: Series): Line[] {
  return series.flows.map((flow, index) => ({
    ...base(series, flowName(flow, series), index),
    y: smoothed(flow.quantities["throughput_bps"] ?? new Float64Array(series.timeS.length), series.timeS.length),
    form: "step",
  }));
}

function schemeRates(series: Series): Line[] {
  return series.schemes.map((scheme, index) => ({
    ...base(series, `all flows of ${scheme.scheme}`, index),
    y: smoothed(scheme.throughputBps, series.timeS.length),
    form: "step",
  }));
}

function openFlows(series: Series): Line[] {
  return series.schemes.map((scheme, index) => ({
    ...base(series, `all flows of ${scheme.scheme}`, index),
    y: scheme.openFlows,
    form: "step",
  }));
}

function flowLines(series: Series, quantity: string): Line[] {
  return series.flows.flatMap((flow, index) => {
    const values = flow.quantities[quantity];
    return values ? [{ ...base(series, flowName(flow, series), index), y: values, form: "line" as const }] : [];
  });
}

function base(series: Series, label: string, colour: number): { label: string; x: Float64Array; colour: number } {
  return { label, x: series.timeS, colour };
}

/** The name of a flow, with its scheme if there are several. */
export function flowName(flow: FlowSeries, series: Series): string {
  const hasSeveral = new Set(series.flows.map(({ scheme }) => scheme)).size > 1;
  return hasSeveral ? `flow ${flow.flow} (${flow.scheme})` : `flow ${flow.flow}`;
}

function linkLines(
  results: RunResults & { series: Series },
  values: (link: LinkSeries) => Float64Array,
  form: "step",
): Line[] {
  return busiest(results.series).map((link, index) => ({
    ...base(results.series, link.name.replace("->", " → "), index),
    y: values(link),
    form,
  }));
}

/** The links with the longest queues on average; links without a queue only if there is no other. */
function busiest(series: Series): LinkSeries[] {
  const byQueue = series.links
    .map((link) => ({ link, backlog: mean(link.backlogBytes), use: mean(link.utilization) }))
    .sort((one, other) => other.backlog - one.backlog || other.use - one.use);
  const most = byQueue[0]?.backlog ?? 0;
  return byQueue
    .filter(({ backlog }, index) => index === 0 || backlog > 0.02 * most)
    .slice(0, MOST_LINKS)
    .map(({ link }) => link);
}

function mean(values: Float64Array): number {
  let sum = 0;
  let count = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    sum += value;
    count += 1;
  }
  return count > 0 ? sum / count : 0;
}
