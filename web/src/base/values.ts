/** Access to values inside a scenario's tables. */

import type { Json, JsonObject, Path } from "../engine/index.ts";

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at a path; `undefined` if there is none. */
export function at(scenario: JsonObject | null, path: Path): Json | undefined {
  let value: Json | undefined = scenario ?? undefined;
  for (const part of path) {
    if (Array.isArray(value)) value = value[Number(part)];
    else if (isObject(value) && Object.hasOwn(value, part)) value = value[part];
    else return undefined;
  }
  return value;
}

/** Returns true if two values are equal in all their parts. */
export function isEqual(one: Json | undefined, other: Json | undefined): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

/** A path as a scenario's message names it, such as `workload.0.size`. */
export function dotted(path: Path): string {
  return path.join(".");
}

/** The tables of a key that may hold one table or a list of them. */
export function tables(value: Json | undefined): JsonObject[] {
  if (Array.isArray(value)) return value.filter(isObject);
  return isObject(value) ? [value] : [];
}

/** The paths of all values that differ between two scenarios, except in `title` and `source`. */
export function differences(one: Json | undefined, other: Json | undefined, path: Path = []): Path[] {
  if (isEqual(one, other)) return [];
  if (isObject(one) && isObject(other)) {
    const keys = [...new Set([...Object.keys(one), ...Object.keys(other)])];
    return keys
      .filter((key) => path.length > 0 || (key !== "title" && key !== "source"))
      .flatMap((key) => differences(one[key], other[key], [...path, key]));
  }
  if (Array.isArray(one) && Array.isArray(other) && one.length === other.length && one.some(isObject)) {
    return one.flatMap((value, index) => differences(value, other[index], [...path, index]));
  }
  return [path];
}

/** A value as a scenario writes it, in one line. */
export function written(value: Json | undefined): string {
  if (value === undefined) return "default";
  if (Array.isArray(value)) return `[${value.map(written).join(", ")}]`;
  if (isObject(value))
    return `{ ${Object.entries(value)
      .map(([key, one]) => `${key} = ${written(one)}`)
      .join(", ")} }`;
  return typeof value === "string" ? value : JSON.stringify(value);
}
