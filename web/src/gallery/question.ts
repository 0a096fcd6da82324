/** A question of the gallery: a scenario, and the variants of it that are compared. */

import type { Json, Path } from "../engine/index.ts";

/** A value that a variant sets, at a place in the scenario. */
export interface Setting {
  path: Path;
  value: Json;
}

/** A variant of a question's scenario. */
export interface QuestionVariant {
  label: string;
  /** The values that differ from the scenario. */
  set: readonly Setting[];
}

/** The part of the results that a question shows first. */
export type View = "time" | "completion" | "packets";

export interface Question {
  /** A short name for addresses and tests, in lower case. */
  id: string;
  /** The question, as the gallery shows it. */
  title: string;
  /** The topic, in a few words. */
  topic: string;
  /** What happens and where to look, in two to four sentences. */
  text: string;
  /** What to try next, in one sentence. */
  next: string;
  toml: string;
  variants: readonly QuestionVariant[];
  view: View;
}

/** Makes a setting from a dotted path, in which numbers are the elements of lists. */
export function setting(path: string, value: Json): Setting {
  return { path: path.split(".").map((part) => (/^\d+$/.test(part) ? Number(part) : part)), value };
}

/** Makes a variant from settings by dotted paths. */
export function variant(label: string, set: Record<string, Json> = {}): QuestionVariant {
  return { label, set: Object.entries(set).map(([path, value]) => setting(path, value)) };
}
