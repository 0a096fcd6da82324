/** What the page says if something fails: a panic of the engine, a browser without WebAssembly, storage or scripts. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Page } from "puppeteer-core";
import { digests, editorText, finished, launch, PAGE, press, reasonToSkip, screenshot, visit } from "./browser.ts";

const skip = reasonToSkip();
/** A copy of the page whose engine panics on request. */
const PANICKING = join(process.cwd(), "build/tests/panicking.html");
let browser: Browser;

/**
 * Code that runs in the worker before its own. It makes runs, or the parsing of texts, panic whose text has the comment
 * "panic: run" or "panic: parse". The panic is a real one: the allocator checks the size of the memory that it gets back.
 */
const FAULT = `
  let text = "";
  addEventListener("message", ({ data }) => {
    text = data.toml ?? data.arguments?.[0] ?? "";
  });
  const Real = WebAssembly.Instance;
  WebAssembly.Instance = function (module, imports) {
    const { exports } = new Real(module, imports);
    const panicking = (name, comment) => (...given) => {
      if (text.includes(comment)) exports.__wbindgen_free(exports.__wbindgen_malloc(8, 1), 1_000_000, 1);
      return exports[name](...given);
    };
    const session_advance = panicking("session_advance", "panic: run");
    return { exports: { ...exports, session_advance, parse: panicking("parse", "panic: parse") } };
  };
`;

before(async () => {
  if (skip) return;
  browser = await launch();
  const block = '<script type="text/plain" id="engine-worker">';
  const html = readFileSync(PAGE, "utf8");
  assert.ok(html.includes(block));
  mkdirSync(dirname(PANICKING), { recursive: true });
  writeFileSync(
    PANICKING,
    html.replace(block, () => block + FAULT),
  );
});

after(async () => {
  if (!skip) await browser.close();
});

/** Types a line above the text of the scenario. */
async function typeAbove(page: Page, line: string): Promise<void> {
  await press(page, "#scenario-tab-text");
  await page.waitForSelector(".editor");
  await page.evaluate(() =>
    document.querySelector(".editor")?.shadowRoot?.querySelector<HTMLElement>(".cm-content")?.focus(),
  );
  await page.keyboard.down("Control");
  await page.keyboard.press("Home");
  await page.keyboard.up("Control");
  await page.keyboard.type(`${line}\n`);
}

/** Waits for an element with a text. */
async function shows(page: Page, selector: string, text: string): Promise<void> {
  await page.waitForFunction(
    (selector, text) => document.querySelector(selector)?.textContent?.includes(text),
    {},
    selector,
    text,
  );
}

test("a panic in a run is shown in words, and the next run works", { skip }, async () => {
  const { page } = await visit(browser, { file: PANICKING });
  await finished(page);
  const wanted = await digests(page);
  await typeAbove(page, "# panic: run");
  await shows(page, ".problem", "The simulator failed, which is a defect of it");
  await shows(page, ".problem", "assertion failed");
  await screenshot(page, "panic-run");
  for (let key = 0; key < "# panic: run\n".length; key += 1) await page.keyboard.press("Backspace");
  await page.waitForFunction(() => document.querySelector(".problem") === null);
  await press(page, '[data-action="run"]');
  await finished(page);
  assert.deepEqual(await digests(page), wanted);
  await page.close();
});

test("a panic while a text is read is shown in words, and later texts are read", { skip }, async () => {
  const { page } = await visit(browser, { file: PANICKING });
  await finished(page);
  const wanted = await digests(page);
  await typeAbove(page, "# panic: parse");
  await shows(page, ".mistakes", "The simulator failed, which is a defect of it");
  await screenshot(page, "panic-parse");
  for (let key = 0; key < "# panic: parse\n".length; key += 1) await page.keyboard.press("Backspace");
  await page.waitForFunction(() => document.querySelector(".mistakes") === null);
  assert.doesNotMatch(await editorText(page), /panic/);
  await finished(page);
  assert.deepEqual(await digests(page), wanted);
  await page.close();
});

test("a browser without WebAssembly gets a sentence", { skip }, async () => {
  const { page } = await visit(browser, { before: () => Reflect.deleteProperty(globalThis, "WebAssembly") });
  await shows(page, "#page", "This browser has no WebAssembly, or it is switched off.");
  await screenshot(page, "no-webassembly");
  await page.close();
});

test("a browser that cannot decompress the engine gets a sentence", { skip }, async () => {
  const { page } = await visit(browser, { before: () => Reflect.deleteProperty(globalThis, "DecompressionStream") });
  await shows(page, "#page", "This browser is too old");
  await page.close();
});

test("without storage, the page works and the theme can be chosen", { skip }, async () => {
  const { page, errors } = await visit(browser, {
    before: () =>
      Object.defineProperty(globalThis, "localStorage", {
        get: () => {
          throw new DOMException("The operation is insecure.", "SecurityError");
        },
      }),
  });
  await finished(page);
  for (const theme of ["light", "dark"]) {
    await press(page, '[data-action="theme"]');
    await page.waitForFunction((theme) => document.documentElement.dataset["theme"] === theme, {}, theme);
  }
  assert.deepEqual(errors, []);
  await page.close();
});

test("without scripts, the page says that it needs them", { skip }, async () => {
  const { page } = await visit(browser, { hasScripts: false });
  const text = await page.$eval("#page", (element) => element.textContent?.trim());
  assert.equal(text, "This page is a simulator and needs JavaScript, which is switched off.");
  await screenshot(page, "no-scripts");
  await page.close();
});
