/** The left part of the page: variants, and the active one as a form or as text. */

import { html, nothing, type TemplateResult } from "lit-html";
import type { CatalogueKey } from "../engine/index.ts";
import { dotted, written, at } from "../base/values.ts";
import { form } from "../form/form.ts";
import type { Keys } from "../form/keys.ts";
import { MOST_LABEL, MOST_VARIANTS } from "../state/share.ts";
import { mistakesOf, type Session } from "../state/session.ts";
import { tabs } from "./tabs.ts";

export type Side = "form" | "text";

/** The number of differences that are shown below a variant. */
const MOST_DIFFERENCES = 3;

export interface SettingsState {
  session: Session;
  keys: Keys;
  side: Side;
  editor: HTMLElement;
  /** The key that has the focus or the pointer. */
  explained: CatalogueKey | null;
  choose(side: Side): void;
  explain(key: CatalogueKey | null): void;
  goTo(line: number): void;
}

export function settings(state: SettingsState): TemplateResult {
  const { session, side } = state;
  const variant = session.current;
  const differing = session.differing;
  return html`
    ${variants(session)}
    ${
      session.variants.length > 1
        ? html`<label class="for-all">
          <input type="checkbox" .checked=${session.isForAll} @change=${(event: Event) => session.setForAll((event.target as HTMLInputElement).checked)} />
          Change all variants, except keys in which they differ
        </label>`
        : nothing
    }
    ${tabs(
      "Scenario as",
      "scenario",
      [
        { id: "form", title: "Settings" },
        { id: "text", title: "TOML" },
      ],
      side,
      state.choose,
    )}
    ${mistakes(state)} ${warnings(session)}
    <div id="scenario" class="scenario" role="tabpanel" aria-labelledby=${`scenario-tab-${side}`} data-side=${side}>
      ${
        side === "text"
          ? state.editor
          : variant.scenario
            ? form({
                keys: state.keys,
                variant: variant.key,
                scenario: variant.scenario,
                network: variant.network,
                mistakes: mistakesOf(variant),
                differing: new Set(differing.map(dotted)),
                edit: (edits) => void session.edit(edits),
                explain: state.explain,
              })
            : html`<p class="note">The text is no valid TOML. Correct it there first.</p>`
      }
    </div>
    ${side === "form" ? help(state.explained) : nothing}
  `;
}

function variants(session: Session): TemplateResult {
  return html`<div class="variants">
    <ul>
      ${session.variants.map((variant, index) => {
        const isActive = index === session.active;
        return html`<li class=${isActive ? "active" : ""}>
          ${
            isActive
              ? html`<input
                class="name"
                aria-label="Name of the variant"
                maxlength=${MOST_LABEL}
                .value=${variant.label}
                @change=${(event: Event) => session.rename(index, (event.target as HTMLInputElement).value)}
              />`
              : html`<button type="button" class="name" @click=${() => session.select(index)}>${variant.label}</button>`
          }
          ${
            session.variants.length > 1
              ? html`<button type="button" class="remove" aria-label=${`Remove the variant ${variant.label}`} title="Remove" @click=${() => session.remove(index)}>×</button>`
              : nothing
          }
          ${index > 0 ? differencesOf(session, index) : session.variants.length > 1 ? html`<span class="difference">baseline</span>` : nothing}
        </li>`;
      })}
    </ul>
    ${
      session.variants.length < MOST_VARIANTS
        ? html`<button type="button" class="add" @click=${() => session.add()}>Add a variant</button>`
        : nothing
    }
  </div>`;
}

/** The values in which a variant differs from the first one. */
function differencesOf(session: Session, index: number): TemplateResult {
  const { scenario } = session.variants[index]!;
  const first = session.variants[0]!.scenario;
  const paths = session.differing.filter((path) => written(at(scenario, path)) !== written(at(first, path)));
  const shown = paths.slice(0, MOST_DIFFERENCES).map((path) => `${dotted(path)} = ${written(at(scenario, path))}`);
  const rest = paths.length - shown.length;
  const text = paths.length === 0 ? "same as the first one" : shown.join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  return html`<span class="difference">${text}</span>`;
}

function mistakes({ session, goTo }: SettingsState): unknown {
  const all = mistakesOf(session.current);
  if (all.length === 0) return nothing;
  return html`<ul class="mistakes" role="alert">
    ${all.map(
      ({ line, key, message }) => html`<li>
        ${
          line === null
            ? nothing
            : html`<button type="button" class="quiet" @click=${() => goTo(line)}>Line ${line}</button> `
        }
        ${key ? html`<code>${key}</code>: ` : nothing}${message}
      </li>`,
    )}
  </ul>`;
}

/** Warnings on keys without effect, and on settings that contradict each other. */
function warnings(session: Session): unknown {
  const { parsed } = session.current;
  const all = parsed?.ok ? parsed.warnings : [];
  if (all.length === 0) return nothing;
  return html`<details class="warnings">
    <summary>${all.length === 1 ? "1 warning" : `${all.length} warnings`}</summary>
    <ul>
      ${all.map((warning) => html`<li>${warning}</li>`)}
    </ul>
  </details>`;
}

function help(key: CatalogueKey | null): TemplateResult {
  if (!key) return html`<p class="help">Point at a setting to see its meaning and its allowed values.</p>`;
  const fallback = key.isRequired ? "required" : `default: ${key.default}`;
  return html`<p class="help">
    <code>${key.name}</code>: ${key.meaning}. Allowed: ${key.allowed}; ${fallback}.${key.source ? html` Source: ${key.source}.` : nothing}
  </p>`;
}
