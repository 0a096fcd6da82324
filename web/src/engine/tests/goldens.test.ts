/** Runs have the digests of `tests/goldens.json`, which native runs have: all of those whose scenarios need no files. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Edited, Json, ShippedScenario } from "../protocol.ts";
import { ROOT, core, results } from "./start.ts";

interface Golden {
  scenario: string;
  set: Record<string, Json>;
  digest: string;
}

const engine = core();
const goldens = JSON.parse(readFileSync(join(ROOT, "tests/goldens.json"), "utf8")) as Golden[];
const shipped = new Map((engine.call("scenarios", []) as ShippedScenario[]).map(({ name, toml }) => [name, toml]));

function withSettings(toml: string, settings: Record<string, Json>): string {
  return Object.entries(settings).reduce((text, [key, value]) => {
    const edited = engine.call("setKey", [text, key.split("."), value]) as Edited;
    assert.ok(edited.ok, `${key}: ${JSON.stringify(edited)}`);
    return edited.toml;
  }, toml);
}

const runnable = goldens.filter(({ scenario }) => shipped.has(scenario));

test("most goldens need no files", () => {
  const others = new Set(goldens.filter(({ scenario }) => !shipped.has(scenario)).map(({ scenario }) => scenario));
  assert.ok(runnable.length > 40 && runnable.length > 0.7 * goldens.length, `${runnable.length}; not ${[...others]}`);
});

for (const { scenario, set, digest } of runnable) {
  test(`${scenario} ${JSON.stringify(set)}`, () => {
    const found = results(engine, withSettings(shipped.get(scenario)!, set), { series: null });
    assert.equal(found.digest, digest);
  });
}
