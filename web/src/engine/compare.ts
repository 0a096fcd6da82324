/**
 * The difference between variants in words, as `sparelane compare` states it for one seed.
 *
 * The rules are those of `python/sparelane/sweeps`: `metrics.py` has the metrics and their order, `measure.py` their
 * values, and `headline` in `verdict.py` the sentences. A run in the page has one seed, so there is no interval and no
 * test of significance. The page must print `NO_INTERVAL` next to the sentences.
 */

import type { Difference, RunResults } from "./protocol.ts";
import {
  type Flows,
  flowsOf,
  goodputBps,
  jain,
  mean,
  openRatesBps,
  percentile,
  present,
  queueingOf,
  requestTimes,
  schemesOf,
  slowdownsOf,
  sum,
} from "./statistics.ts";

/** The limit of these comparisons, as a sentence. */
export const NO_INTERVAL = "One seed cannot support an interval, so small differences may be chance.";

/** The unit of a change: a ratio in percent, or a difference of shares, or of counts per flow. */
type Unit = "%" | "points" | "per flow";

interface Metric {
  label: string;
  unit: Unit;
  value(flows: Flows, endS: number): number;
}

/** Flows without an end. Sized flows that are open at the end are few and late, and differ between variants. */
function endless(flows: Flows): Flows {
  const rows = [...flows.sizeBytes.keys()].filter((row) => Number.isNaN(flows.sizeBytes[row]!));
  const pick = (values: Float64Array): Float64Array => Float64Array.from(rows, (row) => values[row]!);
  return Object.fromEntries(Object.entries(flows).map(([key, values]) => [key, pick(values)])) as unknown as Flows;
}

function byteWeighted(flows: Flows): number {
  const done = [...flows.completionS.keys()].filter((row) => !Number.isNaN(flows.completionS[row]!));
  const bytes = done.reduce((total, row) => total + flows.sizeBytes[row]!, 0);
  const weighted = done.reduce((total, row) => total + flows.sizeBytes[row]! * flows.completionS[row]!, 0);
  return bytes > 0 ? weighted / bytes : NaN;
}

/** `HEADLINES` of `metrics.py`, in its order: the first one with a value in both variants is the main one. */
const METRICS: readonly Metric[] = [
  { label: "mean completion time", unit: "%", value: (flows) => mean(present(flows.completionS)) },
  { label: "mean completion time of requests", unit: "%", value: (flows) => mean(requestTimes(flows)) },
  {
    label: "mean throughput of a flow",
    unit: "%",
    value: (flows, endS) => mean(openRatesBps(endless(flows), endS)),
  },
  { label: "byte-weighted mean completion time", unit: "%", value: byteWeighted },
  { label: "p95 completion time", unit: "%", value: (flows) => percentile(present(flows.completionS), 0.95) },
  { label: "p99 completion time", unit: "%", value: (flows) => percentile(present(flows.completionS), 0.99) },
  { label: "p99.9 completion time", unit: "%", value: (flows) => percentile(present(flows.completionS), 0.999) },
  { label: "p99 completion time of requests", unit: "%", value: (flows) => percentile(requestTimes(flows), 0.99) },
  { label: "mean slowdown", unit: "%", value: (flows) => mean(slowdownsOf(flows)) },
  { label: "p99 slowdown", unit: "%", value: (flows) => percentile(slowdownsOf(flows), 0.99) },
  {
    label: "share of finished flows",
    unit: "points",
    value: (flows) => (100 * present(flows.completionS).length) / present(flows.sizeBytes).length,
  },
  { label: "goodput", unit: "%", value: goodputBps },
  { label: "Jain's index", unit: "%", value: (flows, endS) => jain(openRatesBps(endless(flows), endS)) },
  {
    label: "retransmissions",
    unit: "points",
    value: (flows) => (100 * sum(flows.retransmissions)) / sum(flows.firstClass),
  },
  { label: "mean timeouts", unit: "per flow", value: (flows) => mean(flows.timeouts) },
  { label: "mean queueing delay", unit: "%", value: (flows) => mean(queueingOf(flows)) },
  { label: "mean one-way delay", unit: "%", value: (flows) => mean(present(flows.meanDelayS)) },
];

/**
 * Compares each variant with the first one.
 *
 * Variants with the same several schemes are compared scheme by scheme, and otherwise by all their flows together.
 */
export function compare(results: readonly RunResults[]): Difference[] {
  const [first, ...others] = results;
  if (!first) return [];
  return others.flatMap((other) => {
    const schemes = schemesOf(first.flows);
    const isShared = schemes.length > 1 && sameNames(schemes, schemesOf(other.flows));
    const parts: (string | null)[] = isShared ? schemes : [null];
    return parts.map((scheme) => ({
      label: other.label,
      baseline: first.label,
      scheme,
      sentences: sentences(first, other, scheme),
    }));
  });
}

function sentences(first: RunResults, other: RunResults, scheme: string | null): string[] {
  const [ours, theirs] = [flowsOf(first.flows, scheme), flowsOf(other.flows, scheme)];
  return METRICS.flatMap((metric) => {
    const before = metric.value(ours, first.totals.endS);
    const after = metric.value(theirs, other.totals.endS);
    if (!Number.isFinite(before) || !Number.isFinite(after)) return [];
    return [sentence(metric, before, after, first.label, other.label)];
  });
}

function sentence(metric: Metric, before: number, after: number, baseline: string, other: string): string {
  const label = metric.label[0]!.toUpperCase() + metric.label.slice(1);
  if (before === after) return `${label} is equal between ${other} and ${baseline}.`;
  return `${label} is ${size(metric, before, after)} under ${other} than under ${baseline}.`;
}

/** The size of a change and its direction: "43 % lower". */
function size(metric: Metric, before: number, after: number): string {
  const word = after < before ? "lower" : "higher";
  if (metric.unit !== "%") return `${number(Math.abs(after - before))} ${metric.unit} ${word}`;
  if (before <= 0) return `${word} (from 0)`;
  return `${number(100 * Math.abs(after / before - 1))} % ${word}`;
}

/** Two significant digits below 10, and whole numbers above. */
function number(value: number): string {
  return value.toFixed(value >= 9.95 ? 0 : value >= 0.095 ? 1 : 2);
}

function sameNames(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((name) => others.includes(name));
}
