/**
 * Statistics of flows: the same as `sparelane run` prints, by the rules of `python/sparelane/simulation/summary.py`,
 * `goodput.py` next to it, and `python/sparelane/common/percentiles.py`. A test compares both.
 *
 * Numbers without a value are `NaN`.
 */

import type { SchemeSummary, Table } from "./protocol.ts";

/** The columns of some flows. */
export interface Flows {
  sizeBytes: Float64Array;
  startS: Float64Array;
  finishS: Float64Array;
  completionS: Float64Array;
  idealS: Float64Array;
  deliveredBytes: Float64Array;
  firstClass: Float64Array;
  retransmissions: Float64Array;
  timeouts: Float64Array;
  srttS: Float64Array;
  minRttS: Float64Array;
  meanDelayS: Float64Array;
  request: Float64Array;
}

const COLUMNS: Record<keyof Flows, string> = {
  sizeBytes: "size_bytes",
  startS: "start_s",
  finishS: "finish_s",
  completionS: "completion_s",
  idealS: "ideal_s",
  deliveredBytes: "delivered_bytes",
  firstClass: "sent_packets_0",
  retransmissions: "retransmissions",
  timeouts: "timeouts",
  srttS: "srtt_s",
  minRttS: "min_rtt_s",
  meanDelayS: "mean_delay_s",
  request: "request",
};

/** The flows of a run, or of one scheme. */
export function flowsOf(table: Table, scheme: string | null = null): Flows {
  const schemes = table.columns["scheme"];
  let rows: number[] | null = null;
  if (scheme !== null && schemes?.type === "text") {
    const code = schemes.dictionary.indexOf(scheme);
    rows = [...schemes.codes.keys()].filter((row) => schemes.codes[row] === code);
  }
  const read = (name: string): Float64Array => {
    const column = table.columns[name];
    if (!column || column.type === "text") throw new Error(`the flows have no numbers "${name}"`);
    return rows === null ? column.values : Float64Array.from(rows, (row) => column.values[row]!);
  };
  return Object.fromEntries(Object.entries(COLUMNS).map(([key, name]) => [key, read(name)])) as unknown as Flows;
}

/** The schemes that have flows, in order of their first flow. */
export function schemesOf(table: Table): string[] {
  const column = table.columns["scheme"];
  if (column?.type !== "text") return [];
  return [...new Set(column.codes)].map((code) => column.dictionary[code]!);
}

/** One row for each scheme that has flows. */
export function summarise(table: Table, endS: number): SchemeSummary[] {
  return schemesOf(table).map((scheme) => summaryOf(scheme, flowsOf(table, scheme), endS));
}

function summaryOf(scheme: string, flows: Flows, endS: number): SchemeSummary {
  const times = present(flows.completionS);
  const slowdowns = slowdownsOf(flows);
  return {
    scheme,
    flows: flows.startS.length,
    finished: times.length,
    meanS: mean(times),
    medianS: median(times),
    p95S: percentile(times, 0.95),
    p99S: percentile(times, 0.99),
    p999S: percentile(times, 0.999),
    slowdown: mean(slowdowns),
    p99Slowdown: percentile(slowdowns, 0.99),
    goodputBps: goodputBps(flows, endS),
    retransmitted: ratio(sum(flows.retransmissions), sum(flows.firstClass)),
    timeouts: sum(flows.timeouts),
    rttS: mean(present(flows.srttS)),
    queueingS: mean(queueingOf(flows)),
    jain: jain(openRatesBps(flows, endS)),
  };
}

/** Completion times divided by the time in an empty network, of finished flows. */
export function slowdownsOf(flows: Flows): Float64Array {
  return flows.completionS.map((time, row) => time / flows.idealS[row]!).filter(Number.isFinite);
}

/** The smoothed round-trip time beyond the smallest one, of flows that have one. */
export function queueingOf(flows: Flows): Float64Array {
  return present(flows.srttS.map((srtt, row) => srtt - flows.minRttS[row]!));
}

/** The goodput of flows together, from the first start to the last finish. */
export function goodputBps(flows: Flows, endS: number): number {
  if (flows.startS.length === 0) return NaN;
  const last = flows.finishS.reduce((most, finish) => Math.max(most, Number.isNaN(finish) ? endS : finish), -Infinity);
  const spanS = last - flows.startS.reduce((least, start) => Math.min(least, start), Infinity);
  return spanS > 0 ? (8 * sum(flows.deliveredBytes)) / spanS : NaN;
}

/** The mean rates of the flows that were open at the end of the run. */
export function openRatesBps(flows: Flows, endS: number): Float64Array {
  const rates = flows.startS.map((start, row) => {
    const isOpen = Number.isNaN(flows.finishS[row]!) && endS > start;
    return isOpen ? (8 * flows.deliveredBytes[row]!) / (endS - start) : NaN;
  });
  return present(rates);
}

/** Jain's index of fairness; `NaN` for fewer than two rates, or if all rates are 0. */
export function jain(rates: Float64Array): number {
  const squares = rates.reduce((total, rate) => total + rate * rate, 0);
  return rates.length > 1 && squares > 0 ? sum(rates) ** 2 / (rates.length * squares) : NaN;
}

/** The completion times of requests, each of which finishes with its last flow. */
export function requestTimes(flows: Flows): Float64Array {
  const ends = new Map<number, [start: number, finish: number]>();
  flows.request.forEach((request, row) => {
    if (Number.isNaN(request)) return;
    const [start, finish] = ends.get(request) ?? [Infinity, -Infinity];
    // A flow without a finish makes its request unfinished: the maximum with NaN is NaN.
    ends.set(request, [Math.min(start, flows.startS[row]!), Math.max(finish, flows.finishS[row]!)]);
  });
  return Float64Array.from([...ends.values()], ([start, finish]) => finish - start).filter(Number.isFinite);
}

/** The values that are not `NaN`. */
export function present(values: Float64Array): Float64Array {
  return values.filter((value) => !Number.isNaN(value));
}

export function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}

export function mean(values: Float64Array): number {
  return ratio(sum(values), values.length);
}

export function median(values: Float64Array): number {
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  if (sorted.length === 0) return NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The smallest sample that has this percentile: 20 values for p95, 100 for p99, 1,000 for p99.9. */
export function fewest(share: number): number {
  return Math.ceil(1 / (1 - share) - 1e-6);
}

/** The smallest value that at least `share` of the values do not exceed; `NaN` for too small a sample. */
export function percentile(values: Float64Array, share: number): number {
  if (values.length < fewest(share)) return NaN;
  const sorted = Float64Array.from(values).sort();
  // Rounding errors of the product must not select the next value.
  return sorted[Math.max(0, Math.ceil(share * sorted.length - 1e-9) - 1)]!;
}

function ratio(one: number, other: number): number {
  return other > 0 ? one / other : NaN;
}
