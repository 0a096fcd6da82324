/** Every question of the gallery runs in the browser, and gives the digests of native runs. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "puppeteer-core";
import { QUESTIONS } from "../src/gallery/index.ts";
import { ask, digests, finished, launch, reasonToSkip, screenshot, type Visit, visit } from "./browser.ts";

const skip = reasonToSkip();
/** `tests/native-digests.mjs` writes them with a native build. */
const KNOWN = JSON.parse(readFileSync(join(process.cwd(), "tests/digests.json"), "utf8")) as Record<string, string[]>;

let browser: Browser;
let opened: Visit;

before(async () => {
  if (skip) return;
  browser = await launch();
  opened = await visit(browser);
});

after(async () => {
  if (!skip) await browser.close();
});

test("the gallery has a dozen questions, each with known digests", () => {
  assert.ok(QUESTIONS.length >= 12);
  assert.deepEqual(Object.keys(KNOWN).sort(), QUESTIONS.map(({ id }) => id).sort());
});

for (const { id } of QUESTIONS) {
  test(`${id} gives the digests of native runs`, { skip }, async () => {
    const { page } = opened;
    await ask(page, id);
    await finished(page);
    assert.deepEqual(await digests(page), KNOWN[id]);
    await screenshot(page, `question-${id}`);
  });
}

test("the page makes no request and has no error in the console", { skip }, () => {
  assert.deepEqual(opened.requests, []);
  assert.deepEqual(opened.errors, []);
});
