/** The scale of a slider for a quantity: logarithmic, with round values. */

import { type Quantity, RATE, SIZE, TIME, type Units, inBase, parseQuantity, withUnit } from "../base/quantity.ts";
import type { KeyType } from "../engine/index.ts";

/** The round values of a decade. */
const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8] as const;

/** A slider: positions are whole numbers from 0 to `most`. */
export interface Scale {
  most: number;
  /** The position next to the value of a text; `null` if the text has no place on this scale. */
  positionOf(text: unknown): number | null;
  /** The text at a position. */
  textAt(position: number): string;
}

/** The scale for a key, or `null` if its values have none. `text` is its present value, whose unit stays. */
export function scaleFor(type: KeyType, name: string, text: unknown): Scale | null {
  if (type === "rate") return units(RATE, 1e5, 1e11);
  if (type === "time") {
    if (name.includes("delay")) return units(TIME, 1e-6, 0.5);
    return name === "duration" ? units(TIME, 1e-3, 600) : units(TIME, 1e-6, 100);
  }
  if (type !== "size" && type !== "limit" && type !== "volume") return null;
  const unit = parseQuantity(text)?.unit;
  if (unit === "bdp") return inUnit("bdp", 0.05, 20);
  if (unit === "packets" || unit === "packet") return inUnit("packets", 1, 10_000);
  return units(SIZE, name === "mss" ? 100 : 1e3, 1e9);
}

function units(family: Units, from: number, to: number): Scale {
  const values = steps(from, to);
  return {
    most: values.length - 1,
    positionOf: (text) => nearest(values, inBase(text, family)),
    textAt: (position) => withUnit(values[position] ?? from, family),
  };
}

function inUnit(unit: string, from: number, to: number): Scale {
  const values = [...new Set(steps(from, to).map((value) => (unit === "packets" ? Math.round(value) : value)))];
  const isUnit = ({ unit: own }: Quantity): boolean => own === unit || `${own}s` === unit;
  return {
    most: values.length - 1,
    positionOf: (text) => {
      const parsed = parseQuantity(text);
      return parsed && isUnit(parsed) ? nearest(values, parsed.value) : null;
    },
    textAt: (position) => `${values[position] ?? from}${unit}`,
  };
}

/** Round values from one value to another. */
function steps(from: number, to: number): number[] {
  const all: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power += 1) {
    for (const part of ROUND) {
      const value = Number((part * 10 ** power).toPrecision(3));
      if (value >= from * 0.999 && value <= to * 1.001) all.push(value);
    }
  }
  return all;
}

/** The position of the value that is nearest in ratio. */
function nearest(values: readonly number[], value: number | null): number | null {
  if (value === null || !(value > 0)) return null;
  let best = 0;
  values.forEach((one, position) => {
    if (Math.abs(Math.log(one / value)) < Math.abs(Math.log(values[best]! / value))) best = position;
  });
  return best;
}
