/** The results in numbers: a table with one row for each scheme of each variant, and the differences in words. */

import { html, nothing, type TemplateResult } from "lit-html";
import { percent, si, whole } from "../base/quantity.ts";
import { compare, NO_INTERVAL, type RunResults, type SchemeSummary } from "../engine/index.ts";

/** The number of sentences of a comparison that are shown without a click, and the same with many comparisons. */
const FIRST_SENTENCES = 3;
const FIRST_OF_MANY = 1;

interface Column {
  title: string;
  hint: string;
  value(row: SchemeSummary): string;
}

const COLUMNS: readonly Column[] = [
  {
    title: "flows",
    hint: "finished flows of all flows",
    value: (row) => `${whole(row.finished)} of ${whole(row.flows)}`,
  },
  { title: "mean", hint: "mean completion time", value: (row) => si(row.meanS, "s") },
  { title: "median", hint: "median completion time", value: (row) => si(row.medianS, "s") },
  {
    title: "p99",
    hint: "99th percentile of the completion time, with at least 100 flows",
    value: (row) => si(row.p99S, "s"),
  },
  {
    title: "slowdown",
    hint: "completion time relative to an empty network, mean",
    value: (row) => (Number.isFinite(row.slowdown) ? Number(row.slowdown.toPrecision(3)).toLocaleString("en-US") : "–"),
  },
  {
    title: "goodput",
    hint: "payload delivered, from the first start to the last finish",
    value: (row) => si(row.goodputBps, "b/s"),
  },
  { title: "resent", hint: "retransmissions per packet", value: (row) => percent(row.retransmitted, 2) },
  { title: "timeouts", hint: "retransmission timeouts", value: (row) => whole(row.timeouts) },
  { title: "RTT", hint: "smoothed round-trip time, mean over flows", value: (row) => si(row.rttS, "s") },
  {
    title: "queueing",
    hint: "round-trip time beyond the smallest one, mean over flows",
    value: (row) => si(row.queueingS, "s"),
  },
  {
    title: "Jain",
    hint: "Jain's index of the rates of flows that are open at the end; 1 is an even split",
    value: (row) => (Number.isFinite(row.jain) ? row.jain.toFixed(3) : "–"),
  },
];

/** The table of all variants. Columns without any value are left out. */
export function numbersTable(results: readonly RunResults[]): TemplateResult {
  const rows = results.flatMap((one) => one.summary.map((summary) => ({ label: one.label, summary })));
  const columns = COLUMNS.filter(({ value }) => rows.some(({ summary }) => value(summary) !== "–"));
  const hasLabels = results.length > 1;
  // A scheme that all rows share says nothing, and the table is wide.
  const hasSchemes = !hasLabels || new Set(rows.map(({ summary }) => summary.scheme)).size > 1;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Results in numbers">
    <table>
      <thead>
        <tr>
          ${hasLabels ? html`<th scope="col">variant</th>` : nothing}
          ${hasSchemes ? html`<th scope="col">scheme</th>` : nothing}
          ${columns.map(({ title, hint }) => html`<th scope="col" class="number"><abbr title=${hint}>${title}</abbr></th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ({ label, summary }) => html`<tr>
            ${hasLabels ? html`<th scope="row">${label}</th>` : nothing}
            ${hasSchemes ? (hasLabels ? html`<td>${summary.scheme}</td>` : html`<th scope="row">${summary.scheme}</th>`) : nothing}
            ${columns.map(({ value }) => html`<td class="number">${value(summary)}</td>`)}
          </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

/** The differences of variants from the first one, in words. */
export function words(results: readonly RunResults[]): unknown {
  if (results.length < 2) return nothing;
  const all = compare(results);
  const first = all.length > 2 ? FIRST_OF_MANY : FIRST_SENTENCES;
  return html`<div class="words">
    ${all.map(
      ({ sentences, scheme }) => html`<div class="difference">
        <p>
          ${scheme ? html`<span class="scheme">${scheme}</span> ` : nothing}${joined(sentences.slice(0, first))}
        </p>
        ${
          sentences.length > first
            ? html`<details>
              <summary>${sentences.length - first} more</summary>
              <p>${joined(sentences.slice(first))}</p>
            </details>`
            : nothing
        }
      </div>`,
    )}
    <p class="note">${NO_INTERVAL}</p>
  </div>`;
}

/** Sentences as text, in which a number and its percent sign stay on one line. */
function joined(sentences: readonly string[]): string {
  return sentences.join(" ").replaceAll(" %", "\u00a0%");
}
