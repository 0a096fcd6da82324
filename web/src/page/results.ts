/** The right part of the page: the state of the run, the answer in words, and the views of the results. */

import { html, nothing, type TemplateResult } from "lit-html";
import { si } from "../base/quantity.ts";
import type { View } from "../gallery/index.ts";
import { numbersTable, words } from "../results/numbers.ts";
import type { Session, Variant } from "../state/session.ts";
import { tabs } from "./tabs.ts";

export interface ResultsState {
  session: Session;
  /** The element of the view: charts or animation. */
  view: HTMLElement;
  /** A text instead of the view, such as the reason for a missing one. */
  missing: string | null;
}

export function results({ session, view, missing }: ResultsState): TemplateResult {
  const finished = session.finished.map((one) => one.results!);
  const choices = [
    { id: "time" as View, title: "Over time" },
    { id: "completion" as View, title: "Completion times" },
    { id: "packets" as View, title: "Packets" },
  ];
  return html`
    ${runBar(session)} ${session.variants.map(problem)}
    ${
      finished.length > 0
        ? html`
          ${words(finished)}
          ${tabs("View of the results", "view", choices, session.view, (id) => void session.setView(id))}
          <div id="view" class="view" role="tabpanel" aria-labelledby=${`view-tab-${session.view}`}>
            ${missing ? html`<p class="note">${missing}</p>` : view}
          </div>
          <h2>In numbers</h2>
          ${numbersTable(finished)} ${details(session)}
        `
        : nothing
    }
  `;
}

function runBar(session: Session): TemplateResult {
  const shares = session.variants.map(({ run }) => (run.type === "running" ? (run.progress?.share ?? 0) : 1));
  const share = shares.reduce((sum, one) => sum + one, 0) / Math.max(1, shares.length);
  return html`<div class="run-bar">
    ${
      session.isRunning
        ? html`<button type="button" class="primary" data-action="cancel" @click=${() => session.cancel()}>Cancel</button>`
        : html`<button type="button" class="primary" data-action="run" ?disabled=${!session.isValid} @click=${() => void session.run()}>Run</button>`
    }
    <div class="status" role="status">${status(session)}</div>
    <button type="button" class="quiet to-settings" @click=${toSettings}>To the settings</button>
    ${session.isRunning ? html`<progress max="1" .value=${share} aria-label="Share of the runs that is done"></progress>` : nothing}
  </div>`;
}

/** On narrow screens, the settings are below the results. */
function toSettings(): void {
  document.querySelector(".settings")?.scrollIntoView();
}

function status(session: Session): string {
  // A reader of the screen hears changes of this text, so it has no numbers that change all the time.
  if (session.isRunning) return "The simulation is running.";
  if (!session.isValid) return "The scenario has mistakes. Results are those of the last run.";
  if (session.variants.some(({ run }) => run.type === "cancelled")) return "The run was cancelled.";
  const done = session.finished.map((one) => one.results!);
  if (done.length === 0) return "Not run yet.";
  if (session.isStale) return "The settings have changed since the last run.";
  const seconds = Math.max(...done.map(({ elapsedS }) => elapsedS));
  const hops = done.reduce((sum, { totals }) => sum + totals.packetHops, 0);
  return `${si(done[0]!.totals.endS, "s")} simulated in ${si(seconds, "s", 2)}: ${hops.toLocaleString("en-US")} packet-hops.`;
}

function problem(variant: Variant): unknown {
  const { run, label } = variant;
  if (run.type !== "stopped") return nothing;
  return html`<div class="problem" role="alert">
    <p><strong>${label}:</strong> ${run.message}</p>
    ${run.command ? html`<p>Save the scenario as <code>scenario.toml</code>, and run it in a terminal: <code>${run.command}</code></p>` : nothing}
  </div>`;
}

function details(session: Session): TemplateResult {
  return html`<details class="details">
    <summary>Digests and warnings</summary>
    <p>
      The digest covers all results of a run. <code>sparelane run</code> prints the same digest for the same scenario, seed
      and version.
    </p>
    <ul>
      ${session.finished.map(({ results }) => {
        const { label, digest, version, seed, warnings, packetHopsPerS } = results!;
        return html`<li>
          <strong>${label}</strong>, seed ${seed}, version ${version}, ${si(packetHopsPerS, "", 2)} packet-hops per second
          <code class="digest" data-digest=${digest}>${digest}</code>
          ${warnings.map((warning) => html`<p class="warning">${warning}</p>`)}
        </li>`;
      })}
    </ul>
  </details>`;
}
