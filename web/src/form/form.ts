/** The form of a scenario: its tables and keys from the catalogue, with a control for each kind of value. */

import { html, nothing, type TemplateResult } from "lit-html";
import { keyed } from "lit-html/directives/keyed.js";
import type { CatalogueKey, Json, JsonObject, Mistake, Network, Path } from "../engine/index.ts";
import { at, dotted, isObject, tables, written } from "../base/values.ts";
import type { Edit } from "../state/session.ts";
import { type Keys, asTable, choicesOf, defaultText, exampleOf, isNumeric } from "./keys.ts";
import {
  cableOf,
  type Choice,
  cables,
  directions,
  editsOfCable,
  hosts,
  newCable,
  newChange,
  newCrossTraffic,
} from "./places.ts";
import { scaleFor } from "./slider.ts";

export interface FormState {
  keys: Keys;
  /** Distinguishes variants, so that a control of one is not reused for another. */
  variant: number;
  scenario: JsonObject;
  /** The network of the last text without mistakes. */
  network: Network | null;
  mistakes: readonly Mistake[];
  /** The dotted paths in which variants differ. */
  differing: ReadonlySet<string>;
  edit(edits: readonly Edit[]): void;
  /** Shows help on a key; `null` removes it. */
  explain(key: CatalogueKey | null): void;
}

/** The whole form. */
export function form(state: FormState): TemplateResult {
  const { scenario, network } = state;
  const schemes = Object.keys(asTable(scenario.scheme));
  return html`${keyed(
    state.variant,
    html`
      ${section("Run", "run", plain(state, ["duration", "seed"]))}
      ${section("Network", "topology", table(state, "[topology]", ["topology"]))}
      ${list(state, "Cable", "[[link]]", "link")}
      ${network ? adder(state, "Set one cable", appended(scenario, "link", newCable(network))) : nothing}
      ${section("Queue", "queue", table(state, "[queue]", ["queue"]))}
      ${schemes.map((name) =>
        section(`Scheme ${name}`, `scheme-${name}`, [
          table(state, "[scheme.NAME]", ["scheme", name]),
          schemes.length > 1 ? remover(state, `Remove the scheme ${name}`, ["scheme", name]) : nothing,
        ]),
      )}
      ${adder(state, "Add a scheme", newScheme(schemes))} ${list(state, "Traffic", "[[workload]]", "workload")}
      ${adder(state, "Add flows", appended(scenario, "workload", { kind: "bulk", scheme: schemes.at(-1) ?? "cubic" }))}
      ${list(state, "Cross traffic", "[[cross_traffic]]", "cross_traffic")}
      ${network ? adder(state, "Add cross traffic", appended(scenario, "cross_traffic", newCrossTraffic(network))) : nothing}
      ${list(state, "Change", "[[change]]", "change")}
      ${network ? adder(state, "Add a change during the run", appended(scenario, "change", newChange(network, scenario))) : nothing}
      ${section("TCP", "transport", table(state, "[transport]", ["transport"]), !isObject(scenario.transport))}
    `,
  )}`;
}

/** Lists of more tables than this are closed at first. */
const MOST_OPEN = 2;
/** The tables whose settings are those of a cable. */
const OF_CABLES = ["[[link]]", "[[change]]"];

/** Controllers that a new scheme takes, the first one that has no scheme yet. */
const NEW_CONTROLLERS = ["cubic", "bbr", "newreno", "vegas", "dctcp", "bbr3", "ledbat", "westwood"];

function newScheme(schemes: readonly string[]): Edit {
  const name = NEW_CONTROLLERS.find((one) => !schemes.includes(one)) ?? `scheme${schemes.length + 1}`;
  const controller = NEW_CONTROLLERS.includes(name) ? name : "cubic";
  return { path: ["scheme", name], value: { controller } };
}

/** One more table of a list. The list may be missing, or a single table. */
function appended(scenario: JsonObject, key: string, added: JsonObject): Edit {
  const value = scenario[key];
  const all = tables(value);
  // A list that has elements gets one more, so that comments between the others stay.
  return Array.isArray(value) && all.length > 0
    ? { path: [key, all.length], value: added }
    : { path: [key], value: [...all, added] };
}

function adder(state: FormState, label: string, edit: Edit): TemplateResult {
  return html`<button type="button" class="quiet adder" data-add=${String(edit.path[0])} @click=${() => state.edit([edit])}>${label}</button>`;
}

function remover(state: FormState, label: string, path: Path): TemplateResult {
  const remove = (): void => state.edit([{ path, value: undefined }]);
  return html`<button type="button" class="quiet adder" @click=${remove}>${label}</button>`;
}

function section(title: string, id: string, content: unknown, isClosed = false): TemplateResult {
  return html`<details class="section" ?open=${!isClosed} data-section=${id}>
    <summary>${title}</summary>
    <div class="fields">${content}</div>
  </details>`;
}

/** Keys at the top of a scenario. */
function plain(state: FormState, names: readonly string[]): unknown {
  const entry = state.keys.entry("table", "(top level)");
  return names.map((name) => {
    const key = entry?.keys.find((one) => one.name === name);
    return key ? control(state, key, [name]) : nothing;
  });
}

/** One section for each table of a list, or for the only table. */
function list(state: FormState, title: string, name: string, key: string): unknown {
  const value = state.scenario[key];
  const all = tables(value);
  return all.map((_, index) => {
    const path = Array.isArray(value) ? [key, index] : [key];
    const heading = all.length > 1 ? `${title} ${index + 1}` : title;
    const isOptional = all.length > 1 || key !== "workload";
    return section(
      heading,
      `${key}-${index}`,
      [table(state, name, path), isOptional ? remover(state, `Remove ${heading.toLowerCase()}`, path) : nothing],
      all.length > MOST_OPEN,
    );
  });
}

function table(state: FormState, name: string, path: Path): unknown {
  const values = asTable(at(state.scenario, path));
  const { chooser, summary, ...keys } = state.keys.table(name, values);
  const isOfCable = OF_CABLES.includes(name) && state.network !== null;
  // One control has the values of both keys that name cables.
  const isOwn = (key: CatalogueKey): boolean => !isOfCable || !["between", "select"].includes(key.name);
  const [shown, more] = [keys.shown.filter(isOwn), keys.more.filter(isOwn)];
  return html`
    ${isOfCable ? cable(state, path, values) : nothing}
    ${chooser ? kinds(state, name, path, values, chooser) : nothing}
    ${chooser ? html`<p class="summary">${summary}</p>` : nothing}
    ${shown.map((key) => control(state, key, [...path, key.name]))}
    ${
      more.length > 0
        ? html`<details class="more">
          <summary>${more.length === 1 ? "1 more setting" : `${more.length} more settings`}</summary>
          <div class="fields">${more.map((key) => control(state, key, [...path, key.name]))}</div>
        </details>`
        : nothing
    }
  `;
}

/** The cable that a table is about, or a group of cables. */
function cable(state: FormState, path: Path, values: JsonObject): unknown {
  if (!state.network) return nothing;
  const all = cables(state.network);
  const chosen = cableOf(values);
  const isKnown = all.some(({ value }) => value === chosen);
  const id = idOf(state, [...path, "between"]);
  return html`<div class="field" data-path=${dotted([...path, "between"])}>
    <label for=${id}>cable${differs(state, [...path, "between"])}${differs(state, [...path, "select"])}</label>
    <select id=${id} @change=${(event: Event) => state.edit(editsOfCable(path, values, inputValue(event)))}>
      ${isKnown ? nothing : html`<option value=${chosen} selected>${chosen || "none"}</option>`}
      ${options(all, chosen)}
    </select>
    ${error(state, [...path, "between"])} ${error(state, [...path, "select"])}
  </div>`;
}

function options(all: readonly Choice[], chosen: string): unknown {
  return all.map(({ value, label }) => html`<option value=${value} ?selected=${value === chosen}>${label}</option>`);
}

/** The key that selects the kind of a table. */
function kinds(
  state: FormState,
  name: string,
  path: Path,
  values: JsonObject,
  { key, names, chosen }: { key: string; names: string[]; chosen: string | null },
): TemplateResult {
  const id = idOf(state, [...path, key]);
  return html`<div class="field" data-path=${dotted([...path, key])}>
    <label for=${id}>${words(key)}${differs(state, [...path, key])}</label>
    <select id=${id} @change=${(event: Event) => state.edit(changeOfKind(state, name, path, values, key, inputValue(event)))}>
      ${names.map((one) => html`<option value=${one} ?selected=${one === chosen}>${one}</option>`)}
    </select>
    ${error(state, [...path, key])}
  </div>`;
}

/** The edits that change the kind of a table: keys that the new kind does not have are removed. */
function changeOfKind(
  state: FormState,
  name: string,
  path: Path,
  values: JsonObject,
  chooser: string,
  kind: string,
): Edit[] {
  const keys = state.keys.keysOfKind(name, kind);
  const isKnown = (one: string): boolean => one === chooser || keys.some((key) => key.name === one);
  const removed = Object.keys(values).filter((one) => !isKnown(one));
  const added = keys.filter((key) => key.isRequired && key.name !== chooser && !Object.hasOwn(values, key.name));
  const edits: Edit[] = [
    ...removed.map((one) => ({ path: [...path, one], value: undefined })),
    { path: [...path, chooser], value: kind },
    ...added.map((key) => ({ path: [...path, key.name], value: exampleOf(key.type, key.name) })),
  ];
  // Nodes have other names in another network, so flows go from the first half of its hosts to the second.
  if (name !== "[topology]") return edits;
  const { workload } = state.scenario;
  const all = tables(workload);
  const named = all.flatMap((one, index) =>
    Array.isArray(one.pairs)
      ? [{ path: Array.isArray(workload) ? ["workload", index, "pairs"] : ["workload", "pairs"], value: undefined }]
      : [],
  );
  return [...edits, ...named];
}

function control(state: FormState, key: CatalogueKey, path: Path): unknown {
  const value = at(state.scenario, path);
  const nested = isObject(value) ? state.keys.entry("table", key.name) : undefined;
  if (nested) {
    return html`<fieldset class="nested">
      <legend>${words(key.name)}</legend>
      <div class="fields">${table(state, key.name, path)}</div>
    </fieldset>`;
  }
  const id = idOf(state, path);
  return html`<div
    class="field"
    data-path=${dotted(path)}
    @focusin=${() => state.explain(key)}
    @pointerenter=${() => state.explain(key)}
  >
    <label for=${id}>${words(key.name)}${differs(state, path)}</label>
    ${input(state, key, path, id, value)} ${error(state, path)}
  </div>`;
}

function input(state: FormState, key: CatalogueKey, path: Path, id: string, value: Json | undefined): TemplateResult {
  const set = (next: Json | undefined): void => state.edit([{ path, value: next }]);
  const choices = key.type === "controller" ? state.keys.names("controller") : choicesOf(key);
  if (key.type === "flag") {
    const isOn = value === undefined ? defaultText(key) === "true" : value === true;
    return html`<input
      id=${id}
      type="checkbox"
      .checked=${isOn}
      @change=${(event: Event) => set((event.target as HTMLInputElement).checked)}
    />`;
  }
  if (key.name === "scheme" && path[0] === "workload") choices.push(...Object.keys(asTable(state.scenario.scheme)));
  if (key.name === "from" || key.name.endsWith("_from"))
    choices.push(...directions(asTable(at(state.scenario, path.slice(0, -1)))));
  if (path[0] === "cross_traffic" && (key.name === "from" || key.name === "to")) {
    const all = hosts(state.network);
    const [host, ...others] = Array.isArray(value) ? value : [];
    if (others.length === 0 && typeof host === "string" && all.includes(host)) {
      return html`<select id=${id} @change=${(event: Event) => set([inputValue(event)])}>
        ${options(
          all.map((one) => ({ value: one, label: one })),
          host,
        )}
      </select>`;
    }
  }
  if (choices.length > 0 && (value === undefined || (typeof value === "string" && choices.includes(value)))) {
    const fallback = defaultText(key);
    return html`<select id=${id} @change=${(event: Event) => set(inputValue(event) || undefined)}>
      ${key.isRequired ? nothing : html`<option value="" ?selected=${value === undefined}>default${fallback ? ` (${fallback})` : ""}</option>`}
      ${choices.map((one) => html`<option value=${one} ?selected=${one === value}>${one}</option>`)}
    </select>`;
  }
  const scale = scaleFor(key.type, key.name, value ?? defaultText(key));
  const position = scale?.positionOf(value ?? defaultText(key)) ?? null;
  return html`<div class=${scale ? "quantity" : "single"}>
    ${
      scale
        ? html`<input
          type="range"
          class=${position === null ? "unset" : ""}
          min="0"
          max=${scale.most}
          step="1"
          .value=${String(position ?? 0)}
          aria-label=${`${words(key.name)}, slider`}
          aria-valuetext=${written(value)}
          @input=${(event: Event) => set(scale.textAt(Number(inputValue(event))))}
        />`
        : nothing
    }
    <input
      id=${id}
      type="text"
      inputmode=${isNumeric(key.type) ? "decimal" : "text"}
      spellcheck="false"
      autocomplete="off"
      .value=${value === undefined ? "" : typeof value === "string" ? value : shownText(value)}
      placeholder=${defaultText(key) || "default"}
      @change=${(event: Event) => set(parsed(inputValue(event), isNumeric(key.type) || typeof value !== "string"))}
    />
  </div>`;
}

/** Reads the text of a control: lists and, where the key may have them, numbers as such, anything else as text. */
function parsed(text: string, mayBeNumber: boolean): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  if (/^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$/.test(trimmed) && mayBeNumber) return Number(trimmed);
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  if (/^[[{]/.test(trimmed)) {
    try {
      return JSON.parse(trimmed) as Json;
    } catch {
      // The scenario's own check reports the mistake, with its line.
      return trimmed;
    }
  }
  return trimmed;
}

/** A list or a number as a control shows it. */
function shownText(value: Json): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function error(state: FormState, path: Path): unknown {
  const mistake = state.mistakes.find(({ key }) => key !== "" && key === dotted(path));
  return mistake ? html`<p class="mistake" role="alert">${mistake.message}</p>` : nothing;
}

function differs(state: FormState, path: Path): unknown {
  return state.differing.has(dotted(path)) ? html` <span class="differs">differs</span>` : nothing;
}

function idOf(state: FormState, path: Path): string {
  return `field-${state.variant}-${path.join("-")}`;
}

function words(key: string): string {
  return key.replaceAll("_", " ");
}

function inputValue(event: Event): string {
  return (event.target as HTMLInputElement | HTMLSelectElement).value;
}
