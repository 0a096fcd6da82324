/** The state of the playground, with an engine whose scenarios are JSON. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, Json, JsonObject, Path, RunOutcome } from "../src/engine/index.ts";
import { Session } from "../src/state/session.ts";
import { MOST_VARIANTS } from "../src/state/share.ts";

/** An engine that parses JSON, and whose runs end when the test says so. */
class JsonEngine {
  readonly ends: ((outcome: RunOutcome) => void)[] = [];

  async parse(text: string): Promise<unknown> {
    return { ok: true, scenario: JSON.parse(text) as JsonObject, warnings: [] };
  }

  async setKey(text: string, path: Path, value: Json | undefined): Promise<unknown> {
    const scenario = JSON.parse(text) as Record<string, Json>;
    const [key] = path as [string];
    if (value === undefined) delete scenario[key];
    else scenario[key] = value;
    return { ok: true, toml: JSON.stringify(scenario) };
  }

  run(): { outcome: Promise<RunOutcome>; cancel(): void } {
    let end: (outcome: RunOutcome) => void = () => {};
    const outcome = new Promise<RunOutcome>((resolve) => {
      end = resolve;
    });
    this.ends.push(end);
    return { outcome, cancel: () => end({ type: "cancelled" }) };
  }
}

/** A session with these scenarios, whose first runs were cancelled, so that no edit starts another. */
async function sessionOf(...scenarios: JsonObject[]): Promise<{ session: Session; engine: JsonEngine }> {
  const engine = new JsonEngine();
  const session = new Session(engine as unknown as Engine);
  const variants = scenarios.map((scenario, index) => ({ label: `v${index}`, toml: JSON.stringify(scenario) }));
  const loaded = session.load({ variants, view: "time", question: null }, null);
  // Runs start once all texts are parsed.
  while (engine.ends.length < scenarios.length) await new Promise((resolve) => setTimeout(resolve));
  session.cancel();
  await loaded;
  return { session, engine };
}

function scenarios(session: Session): unknown[] {
  return session.variants.map(({ toml }) => JSON.parse(toml));
}

test("an edit applies to all variants, except keys in which they differ", async () => {
  const { session } = await sessionOf({ rate: 1, queue: "fifo" }, { rate: 1, queue: "codel" });
  await session.edit([
    { path: ["rate"], value: 5 },
    { path: ["queue"], value: "pie" },
  ]);
  assert.deepEqual(scenarios(session), [
    { rate: 5, queue: "pie" },
    { rate: 5, queue: "codel" },
  ]);
  assert.deepEqual(session.differing, [["queue"]]);
});

test("an edit applies to the active variant alone if the reader wants that", async () => {
  const { session } = await sessionOf({ rate: 1 }, { rate: 1 });
  session.select(1);
  session.setForAll(false);
  await session.edit([{ path: ["rate"], value: undefined }]);
  assert.deepEqual(scenarios(session), [{ rate: 1 }, {}]);
});

test("edits that follow each other at once are all kept", async () => {
  const { session } = await sessionOf({});
  await Promise.all([1, 2, 3].map((value) => session.edit([{ path: [`key${value}`], value }])));
  assert.deepEqual(scenarios(session), [{ key1: 1, key2: 2, key3: 3 }]);
});

test("variants can be added up to the limit, and removed down to one", async () => {
  const { session } = await sessionOf({ rate: 1 });
  for (let count = 0; count < 10; count += 1) session.add();
  assert.equal(session.variants.length, MOST_VARIANTS);
  assert.equal(session.active, MOST_VARIANTS - 1);
  for (let count = 0; count < 10; count += 1) session.remove(0);
  assert.equal(session.variants.length, 1);
  assert.equal(session.active, 0);
});

test("the outcome of a run that was replaced is dropped", async () => {
  const { session, engine } = await sessionOf({ rate: 1 });
  const first = session.run();
  const second = session.run();
  const [early, late] = engine.ends.slice(-2) as [(outcome: RunOutcome) => void, (outcome: RunOutcome) => void];
  early({ type: "failed", message: "early" });
  late({ type: "failed", message: "late" });
  await Promise.all([first, second]);
  assert.deepEqual(session.variants[0]?.run, { type: "stopped", message: "late", command: null });
});

test("a refused run shows the reason and the command", async () => {
  const { session, engine } = await sessionOf({ rate: 1 });
  const run = session.run();
  const refusal = { cause: "files", reason: "It needs a file.", command: "sparelane run scenario.toml" } as const;
  engine.ends.at(-1)?.({ type: "refused", refusal });
  await run;
  assert.deepEqual(session.variants[0]?.run, { type: "stopped", message: refusal.reason, command: refusal.command });
});
