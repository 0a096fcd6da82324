/** The keys of a scenario's tables, from the engine's catalogue. */

import type { Catalogue, CatalogueEntry, CatalogueKey, Json, JsonObject, KeyType } from "../engine/index.ts";
import { isObject } from "../base/values.ts";

/** The keys that a form shows even if a scenario does not set them. All others are behind a button. */
const COMMON: Record<string, readonly string[]> = {
  "[topology]": [
    "pairs",
    "bottleneck_rate",
    "bottleneck_delay",
    "access_rate",
    "access_delay",
    "hosts",
    "rate",
    "delay",
  ],
  "[queue]": ["limit", "target", "mark_at"],
  "[[workload]]": ["scheme", "size", "start", "flows", "load", "flows_per_second"],
  "[[link]]": ["rate", "delay", "loss"],
  "[[cross_traffic]]": ["from", "to", "rate", "burst", "start", "stop"],
  "[[change]]": ["at", "rate", "delay", "loss", "down"],
  "[transport]": ["min_rto", "ecn", "delayed_ack"],
};

/** The table of a scenario that a form shows, with its keys. */
export interface Table {
  /** The key that selects further keys, with the names that it allows. */
  chooser: { key: string; names: string[]; chosen: string | null } | null;
  /** A line on the chosen kind. */
  summary: string;
  /** The keys that are shown. */
  shown: CatalogueKey[];
  /** The other keys. */
  more: CatalogueKey[];
}

export class Keys {
  readonly #entries: readonly CatalogueEntry[];

  constructor(catalogue: Catalogue) {
    this.#entries = catalogue.entries;
  }

  /** The names of a kind, such as all controllers. */
  names(kind: string): string[] {
    return this.#entries.filter((entry) => entry.kind === kind).map(({ name }) => name);
  }

  entry(kind: string, name: string): CatalogueEntry | undefined {
    return this.#entries.find((entry) => entry.kind === kind && entry.name === name);
  }

  /** The keys of a table. `name` is its name in the catalogue, such as `[queue]`. */
  table(name: string, values: JsonObject): Table {
    const entry = this.entry("table", name);
    if (!entry) return { chooser: null, summary: "", shown: [], more: [] };
    const { chooser } = entry;
    const chosen = chooser ? this.#chosen(entry, values) : undefined;
    const keys = [...entry.keys.filter((key) => key.name !== chooser?.key), ...(chosen?.keys ?? [])];
    const common = COMMON[name] ?? [];
    const isShown = (key: CatalogueKey): boolean =>
      Object.hasOwn(values, key.name) || key.isRequired || common.includes(key.name);
    const order = (key: CatalogueKey): number => {
      const place = common.indexOf(key.name);
      return place < 0 ? common.length : place;
    };
    return {
      chooser: chooser ? { key: chooser.key, names: this.names(chooser.kind), chosen: chosen?.name ?? null } : null,
      summary: chosen?.summary ?? entry.summary,
      shown: keys.filter(isShown).sort((one, other) => order(one) - order(other)),
      more: keys.filter((key) => !isShown(key)),
    };
  }

  /** The keys of a table if it had another kind. */
  keysOfKind(name: string, kind: string): CatalogueKey[] {
    const entry = this.entry("table", name);
    const form = entry?.chooser ? this.entry(entry.chooser.kind, kind) : undefined;
    return [...(entry?.keys ?? []), ...(form?.keys ?? [])];
  }

  #chosen(entry: CatalogueEntry, values: JsonObject): CatalogueEntry | undefined {
    const { chooser } = entry;
    if (!chooser) return undefined;
    const given = values[chooser.key];
    const fallback = entry.keys.find(({ name }) => name === chooser.key)?.default.replaceAll('"', "");
    const name = typeof given === "string" ? given : fallback;
    return name === undefined ? undefined : this.entry(chooser.kind, name);
  }
}

/** The choices of a key; empty if it has no list of them. */
export function choicesOf(key: CatalogueKey): string[] {
  const { enum: choices } = key.schema;
  return Array.isArray(choices) ? choices.filter((one): one is string => typeof one === "string") : [];
}

/** A value for a required key without a default. */
export function exampleOf(type: KeyType, name: string): Json | undefined {
  const examples: Partial<Record<KeyType, Json>> = {
    rate: "100Mbps",
    time: "10ms",
    size: "30kB",
    limit: "1bdp",
    share: 0.3,
    whole: name === "hosts" || name.startsWith("hosts_") ? 4 : 2,
    number: 1,
    flag: true,
    controller: "cubic",
  };
  if (name === "sizes") return { kind: "fixed", size: "30kB" };
  return examples[type];
}

/** The default of a key as text, without its quotes; empty if it has none. */
export function defaultText(key: CatalogueKey): string {
  if (key.isRequired || key.default.startsWith("(")) return "";
  return key.default.replace(/^"(.*)"$/, "$1");
}

/** Returns true if the values of a key are numbers as they stand. */
export function isNumeric(type: KeyType): boolean {
  return type === "whole" || type === "number" || type === "share";
}

export function asTable(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
