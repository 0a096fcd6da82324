/** The files that the page offers: scenarios, tables and figures. */

import { html, type TemplateResult } from "lit-html";
import { PRINT_THEME } from "../base/colours.ts";
import { flowsCsv, seriesCsv, summaryCsv } from "../export/csv.ts";
import { fileName, save, toPng } from "../export/files.ts";
import type { Figure } from "../plot/figure.ts";
import { toSvg } from "../plot/svg.ts";
import { completionTimes } from "../results/completion.ts";
import { overTime } from "../results/over-time.ts";
import { sequencePanel } from "../packets/sequence.ts";
import type { Session } from "../state/session.ts";

/** The figure that the page shows. */
export function shownFigure(session: Session): Figure | null {
  const results = session.finished.map((one) => one.results!);
  if (results.length === 0) return null;
  if (session.view === "completion") return completionTimes(results);
  if (session.view === "time") return overTime(results);
  const panels = results.flatMap((one) =>
    one.packets ? [sequencePanel(one.packets, one.packets.flow[0] ?? 0, PRINT_THEME, one.label)] : [],
  );
  return panels.length > 0 ? { title: "Packets", rows: [panels] } : null;
}

export function downloads(session: Session, fail: (message: string) => void): TemplateResult {
  const results = session.finished.map((one) => one.results!);
  const name = fileName(session.question?.id ?? session.variants[0]?.label ?? "scenario");
  const figure = shownFigure(session);
  const title = figure ? { ...figure, title: session.question?.title ?? figure.title } : null;
  const png = async (): Promise<void> => {
    if (!title) return;
    try {
      save(`${name}.png`, await toPng(toSvg(title, PRINT_THEME)));
    } catch (cause) {
      fail(`The figure could not be written as PNG: ${cause instanceof Error ? cause.message : String(cause)}`);
    }
  };
  const hasResults = results.length > 0;
  return html`<div class="downloads">
    <h3>Scenarios</h3>
    <p>The files run unchanged with <code>sparelane run</code>, and have the same digest.</p>
    <ul>
      ${session.variants.map(
        ({ label, toml }) => html`<li>
          <button type="button" @click=${() => save(`${name}-${fileName(label)}.toml`, toml)}>${label} (TOML)</button>
        </li>`,
      )}
    </ul>
    <h3>Results</h3>
    <ul>
      <li><button type="button" ?disabled=${!hasResults} @click=${() => save(`${name}-summary.csv`, summaryCsv(results), "text/csv")}>Summary (CSV)</button></li>
      <li><button type="button" ?disabled=${!hasResults} @click=${() => save(`${name}-flows.csv`, flowsCsv(results), "text/csv")}>Flows (CSV)</button></li>
      <li><button type="button" ?disabled=${!hasResults} @click=${() => save(`${name}-series.csv`, seriesCsv(results), "text/csv")}>Time series (CSV)</button></li>
    </ul>
    <h3>Figure</h3>
    <ul>
      <li><button type="button" ?disabled=${!title} @click=${() => title && save(`${name}.svg`, toSvg(title, PRINT_THEME), "image/svg+xml")}>Figure (SVG)</button></li>
      <li><button type="button" ?disabled=${!title} @click=${png}>Figure (PNG)</button></li>
    </ul>
  </div>`;
}
