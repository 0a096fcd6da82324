/** Quantities, sliders, differences, and figures as files. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { PRINT_THEME } from "../src/base/colours.ts";
import { inBase, RATE, si, TIME, withUnit } from "../src/base/quantity.ts";
import { differences, dotted } from "../src/base/values.ts";
import { flowsCsv } from "../src/export/csv.ts";
import type { RunResults } from "../src/engine/index.ts";
import { scaleFor } from "../src/form/slider.ts";
import { type Panel, rangeOf, ticks } from "../src/plot/figure.ts";
import { toSvg } from "../src/plot/svg.ts";

test("quantities are read with their units, and nothing else is", () => {
  assert.equal(inBase("1.5Mbps", RATE), 1.5e6);
  assert.equal(inBase("40 ms", TIME), 0.04);
  for (const text of ["fast", "10", "10mbps", 10, undefined, "-1s"]) assert.equal(inBase(text, RATE), null);
});

test("quantities are written in the unit that fits", () => {
  assert.equal(withUnit(1e8, RATE), "100Mbps");
  assert.equal(withUnit(2.5e-5, TIME), "25us");
  assert.equal(si(0.0123, "s"), "12.3 ms");
  assert.equal(si(NaN, "s"), "–");
});

test("each position of a slider stands for a value that has this position", () => {
  for (const [type, name, text] of [
    ["rate", "bottleneck_rate", "100Mbps"],
    ["time", "bottleneck_delay", "18ms"],
    ["limit", "limit", "1bdp"],
    ["limit", "limit", "100packets"],
    ["size", "mss", "1460B"],
  ] as const) {
    const scale = scaleFor(type, name, text);
    assert.ok(scale);
    for (let position = 0; position <= scale.most; position += 1) {
      assert.equal(scale.positionOf(scale.textAt(position)), position, `${name} at ${position}`);
    }
  }
});

test("a slider shows the nearest position of a value between two", () => {
  const scale = scaleFor("rate", "rate", "97Mbps");
  assert.equal(scale?.textAt(scale.positionOf("97Mbps") ?? 0), "100Mbps");
});

test("differences between scenarios are named by their paths", () => {
  const one = { title: "a", queue: { limit: "1bdp" }, workload: [{ scheme: "x" }, { scheme: "y" }] };
  const other = { title: "b", queue: { limit: "2bdp", kind: "codel" }, workload: [{ scheme: "x" }, { scheme: "z" }] };
  assert.deepEqual(differences(one, other).map(dotted), ["queue.limit", "queue.kind", "workload.1.scheme"]);
});

test("ticks are round and within their range", () => {
  assert.deepEqual(ticks(0, 100, 5, "linear"), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(ticks(1, 1000, 5, "log"), [1, 10, 100, 1000]);
});

const PANEL: Panel = {
  title: '<script>alert("x")</script>',
  x: { label: "time", unit: "s", scale: "linear" },
  y: { label: "rate", unit: "b/s", scale: "linear" },
  lines: [{ label: "a & b", x: [0, 1, 2], y: [1e6, NaN, 3e6], colour: 0, form: "line" }],
  description: "",
};

test("a figure as SVG has its axes and data, and its texts are no markup", () => {
  const svg = toSvg({ title: "Figure", rows: [[PANEL]] }, PRINT_THEME);
  assert.ok(svg.includes("&lt;script&gt;") && !svg.includes("<script>"));
  assert.ok(svg.includes("rate (Mb/s)"));
  // The gap splits the line: both of its ends begin a new part.
  assert.equal(/<path d="([^"]+)"/.exec(svg)?.[1]?.match(/M/g)?.length, 2);
});

test("panels with other titles have axes of their own in files", () => {
  const other = { ...PANEL, title: "other", lines: [{ ...PANEL.lines[0]!, x: [0, 1000, 2000] }] };
  const svg = toSvg({ title: "Figure", rows: [[PANEL, other]] }, PRINT_THEME);
  assert.ok(svg.includes("time (s)") && svg.includes("time (ks)"));
});

test("a linear axis begins at zero, and a logarithmic one at its data", () => {
  assert.equal(rangeOf([PANEL], "y")[0], 0);
  assert.deepEqual(rangeOf([{ ...PANEL, y: { ...PANEL.y, scale: "log" } }], "y"), [1e6, 3e6]);
});

test("tables as CSV quote what spreadsheets would take for formulas", () => {
  const flows = {
    rows: 2,
    columns: {
      flow: { type: "number", values: Float64Array.of(0, 1) },
      scheme: { type: "text", codes: Uint32Array.of(0, 0xffffffff), dictionary: ["=1+1"] },
      finish_s: { type: "number", values: Float64Array.of(0.5, NaN) },
    },
  };
  const csv = flowsCsv([{ label: "a, b", flows } as unknown as RunResults]);
  assert.equal(csv, 'variant,flow,scheme,finish_s\n"a, b",0,\'=1+1,0.5\n"a, b",1,,\n');
});
