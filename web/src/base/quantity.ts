/** Quantities with units, as scenarios write them and as figures print them. */

/** A family of units, each with its value in the base unit. */
export interface Units {
  /** The units of controls, from small to large. */
  steps: readonly (readonly [unit: string, size: number])[];
}

export const TIME: Units = {
  steps: [
    ["ns", 1e-9],
    ["us", 1e-6],
    ["ms", 1e-3],
    ["s", 1],
  ],
};
export const RATE: Units = {
  steps: [
    ["bps", 1],
    ["kbps", 1e3],
    ["Mbps", 1e6],
    ["Gbps", 1e9],
  ],
};
export const SIZE: Units = {
  steps: [
    ["B", 1],
    ["kB", 1e3],
    ["MB", 1e6],
    ["GB", 1e9],
  ],
};

/** A value with its unit, as a scenario writes it. */
export interface Quantity {
  value: number;
  unit: string;
}

/** Splits a text such as "1.5 Mbps" or "2bdp" into its number and unit; `null` if it has another form. */
export function parseQuantity(text: unknown): Quantity | null {
  if (typeof text !== "string") return null;
  const match = /^\s*([0-9]*\.?[0-9]+(?:[eE][-+]?\d+)?)\s*([A-Za-zµ/]+)\s*$/.exec(text);
  return match ? { value: Number(match[1]), unit: match[2]! } : null;
}

/** The value of a quantity in the base unit of its family; `null` if the family does not have the unit. */
export function inBase(text: unknown, units: Units): number | null {
  const parsed = parseQuantity(text);
  const size = parsed && units.steps.find(([unit]) => unit === parsed.unit.replace("µs", "us"))?.[1];
  return parsed && size ? parsed.value * size : null;
}

/** Writes a value of the base unit in the largest unit that leaves at least 1 before it, with `digits` digits. */
export function withUnit(base: number, units: Units, digits = 3): string {
  const { steps } = units;
  const [unit, size] = [...steps].reverse().find(([, size]) => base >= size * 0.9999) ?? steps[0]!;
  return `${Number((base / size).toPrecision(digits))}${unit}`;
}

const PREFIXES: readonly (readonly [string, number])[] = [
  ["T", 1e12],
  ["G", 1e9],
  ["M", 1e6],
  ["k", 1e3],
  ["", 1],
  ["m", 1e-3],
  ["µ", 1e-6],
  ["n", 1e-9],
];

/** Writes a number with an SI prefix, as in "1.5 Mb/s"; "–" if it is not a number. */
export function si(value: number, unit: string, digits = 3): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return unit ? `0 ${unit}` : "0";
  const size = Math.abs(value);
  const [prefix, factor] = PREFIXES.find(([, factor]) => size >= factor * 0.9995) ?? PREFIXES.at(-1)!;
  const number = Number((value / factor).toPrecision(digits));
  return `${number} ${prefix}${unit}`.trim();
}

/** The prefix, and its factor, that suits an axis up to `largest`. */
export function axisPrefix(largest: number): readonly [string, number] {
  if (!(largest > 0) || !Number.isFinite(largest)) return ["", 1];
  return PREFIXES.find(([, factor]) => largest >= factor) ?? PREFIXES.at(-1)!;
}

/** Writes a number with thousands separators. */
export function whole(value: number): string {
  return Number.isFinite(value) ? Math.round(value).toLocaleString("en-US") : "–";
}

/** Writes a share as a percentage. */
export function percent(share: number, digits = 1): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(digits)} %` : "–";
}
