/** The playground as a reader uses it: form, text, runs, animation, and addresses. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser, Page } from "puppeteer-core";
import {
  ask,
  digests,
  editorText,
  eventually,
  finished,
  launch,
  press,
  reasonToSkip,
  screenshot,
  type Visit,
  visit,
} from "./browser.ts";

const skip = reasonToSkip();
let browser: Browser;
const visits: Visit[] = [];

before(async () => {
  if (!skip) browser = await launch();
});

after(async () => {
  if (!skip) await browser.close();
});

async function open(options: Parameters<typeof visit>[1] = {}): Promise<Page> {
  const opened = await visit(browser, options);
  visits.push(opened);
  return opened.page;
}

/** Sets the value of a control as a reader does, with its events. */
async function enter(page: Page, selector: string, value: string, event: "input" | "change" = "change"): Promise<void> {
  await page.waitForSelector(selector);
  await page.$eval(
    selector,
    (element, value, event) => {
      (element as HTMLInputElement).value = value;
      element.dispatchEvent(new Event(event, { bubbles: true }));
    },
    value,
    event,
  );
}

async function show(page: Page, side: "form" | "text"): Promise<void> {
  await press(page, `#scenario-tab-${side}`);
  await page.waitForSelector(`.scenario[data-side="${side}"]`);
}

test("the page opens with a result, and prints its time", { skip }, async () => {
  const page = await open();
  await finished(page);
  const elapsed = await page.evaluate(() => performance.now());
  // Other programs may use the machine at the same time, so the time is no condition.
  console.log(`first result after ${Math.round(elapsed)} ms`);
  assert.ok((await page.$$(".chart canvas")).length >= 4);
  assert.equal((await digests(page)).length, 1);
});

test("the form and the text show the same state", { skip }, async () => {
  const page = await open();
  await finished(page);
  const [before] = await digests(page);
  await enter(page, '[data-path="topology.bottleneck_rate"] input[type="text"]', "50Mbps");
  await page.waitForFunction(
    (before) => document.querySelector("[data-digest]")?.getAttribute("data-digest") !== before,
    {},
    before,
  );
  await show(page, "text");
  assert.match(await editorText(page), /bottleneck_rate = "50Mbps"/);
  // Comments stay.
  assert.match(await editorText(page), /^# Two CUBIC flows/);
  await page.evaluate(() =>
    document.querySelector(".editor")?.shadowRoot?.querySelector<HTMLElement>(".cm-content")?.focus(),
  );
  await page.keyboard.down("Control");
  await page.keyboard.press("End");
  await page.keyboard.up("Control");
  await page.keyboard.type('\n[transport]\nmin_rto = "300ms"\n');
  await show(page, "form");
  await page.waitForFunction(
    () =>
      document.querySelector<HTMLInputElement>('[data-path="transport.min_rto"] input[type="text"]')?.value === "300ms",
  );
});

test("the form adds cross traffic, settings of a cable, and a change during the run", { skip }, async () => {
  const page = await open();
  await finished(page);
  const [before] = await digests(page);
  await press(page, '[data-add="cross_traffic"]');
  await page.waitForSelector('[data-path="cross_traffic.0.rate"]');
  await enter(page, '[data-path="cross_traffic.0.rate"] input[type="text"]', "30Mbps");
  await press(page, '[data-add="link"]');
  await enter(page, '[data-path="link.0.between"] select', "access");
  await enter(page, '[data-path="link.0.rate"] input[type="text"]', "2Gbps");
  await press(page, '[data-add="change"]');
  await enter(page, '[data-path="change.0.at"] input[type="text"]', "7s");
  await press(page, '[data-add="change"]');
  await page.waitForSelector('[data-path="change.1.between"]');
  await page.waitForFunction(
    (before) => document.querySelector("[data-digest]")?.getAttribute("data-digest") !== before,
    {},
    before,
  );
  await show(page, "text");
  await eventually(async () => {
    const text = await editorText(page);
    assert.match(
      text,
      /\[\[cross_traffic\]\]\nkind = "constant"\nfrom = \["left0"\]\nto = \["right1"\]\nrate = "30Mbps"/,
    );
    assert.match(text, /\[\[link\]\]\nrate = "2Gbps"\nselect = "access"/);
    assert.match(text, /\[\[change\]\]\nat = "7s"\nbetween = \["west", "east"\]\nrate = "50Mbps"/);
    assert.equal(text.match(/\[\[change\]\]/g)?.length, 2);
    // Comments stay.
    assert.match(text, /^# Two CUBIC flows/);
  });
  assert.equal(await page.$(".mistakes"), null);
  await show(page, "form");
  await screenshot(page, "form-with-changes");
});

test("a slider changes the scenario, and a run follows", { skip }, async () => {
  const page = await open();
  await finished(page);
  const [before] = await digests(page);
  await enter(page, '[data-path="queue.limit"] input[type="range"]', "3", "input");
  await page.waitForFunction(
    (before) => document.querySelector("[data-digest]")?.getAttribute("data-digest") !== before,
    {},
    before,
  );
  await eventually(async () => {
    const text = await page.$eval(
      '[data-path="queue.limit"] input[type="text"]',
      (element) => (element as HTMLInputElement).value,
    );
    assert.equal(text, "0.1bdp");
  });
});

test("a mistake is shown at its line and at its control, and can be corrected", { skip }, async () => {
  const page = await open();
  await finished(page);
  await enter(page, '[data-path="topology.bottleneck_rate"] input[type="text"]', "fast");
  await page.waitForSelector(".mistakes li");
  await eventually(async () => {
    const message = await page.$eval(".mistakes", (element) => element.textContent ?? "");
    assert.match(message, /Line 10/);
    assert.match(message, /bottleneck_rate/);
    assert.ok(await page.$('[data-path="topology.bottleneck_rate"] .mistake'));
  });
  await press(page, ".mistakes button");
  const marked = await page.waitForFunction(
    () => document.querySelector(".editor")?.shadowRoot?.querySelector(".cm-lintRange-error")?.textContent,
  );
  assert.match(String(await marked.jsonValue()), /fast/);
  assert.ok(await page.$eval('[data-action="run"]', (element) => (element as HTMLButtonElement).disabled));
  await show(page, "form");
  await enter(page, '[data-path="topology.bottleneck_rate"] input[type="text"]', "20Mbps");
  await page.waitForFunction(() => document.querySelector(".mistakes") === null);
  await finished(page);
});

test("several mistakes are shown at once, each at its control", { skip }, async () => {
  const page = await open();
  await finished(page);
  await enter(page, '[data-path="queue.limit"] input[type="text"]', "many");
  await enter(page, '[data-path="seed"] input[type="text"]', "first");
  await page.waitForFunction(() => document.querySelectorAll(".mistakes li").length === 2);
  for (const path of ["queue.limit", "seed"]) await page.waitForSelector(`[data-path="${path}"] .mistake`);
  await screenshot(page, "mistakes");
  await enter(page, '[data-path="queue.limit"] input[type="text"]', "1bdp");
  await enter(page, '[data-path="seed"] input[type="text"]', "1");
  await page.waitForFunction(() => document.querySelector(".mistakes") === null);
});

test("variants are compared in words, and a change of one is marked", { skip }, async () => {
  const page = await open();
  await finished(page);
  await press(page, ".variants .add");
  await page.waitForFunction(() => document.querySelectorAll(".variants li").length === 2);
  await enter(page, '[data-path="scheme.cubic.controller"] select', "bbr");
  await page.waitForFunction(() => document.querySelectorAll("[data-digest]").length === 2);
  await finished(page);
  const [first, second] = await digests(page);
  assert.notEqual(first, second);
  assert.match(await page.$eval(".words", (element) => element.textContent ?? ""), /(higher|lower|equal)/);
  assert.match(
    await page.$eval(".variants", (element) => element.textContent ?? ""),
    /scheme\.cubic\.controller = bbr/,
  );
});

test("a run can be cancelled at once", { skip }, async () => {
  const page = await open();
  await finished(page);
  await enter(page, '[data-path="duration"] input[type="text"]', "2000s");
  await page.waitForSelector('[data-action="cancel"]');
  await press(page, '[data-action="cancel"]');
  await page.waitForFunction(() => document.querySelector(".status")?.textContent?.includes("cancelled"));
  assert.ok(await page.$('[data-action="run"]'));
});

test("a scenario that the browser cannot run is refused with the command for a terminal", { skip }, async () => {
  const page = await open();
  await finished(page);
  await enter(page, '[data-path="duration"] input[type="text"]', "900000s");
  await page.waitForSelector(".problem");
  assert.match(await page.$eval(".problem", (element) => element.textContent ?? ""), /sparelane run/);
});

test("the animation draws packets that move", { skip }, async () => {
  const page = await open({ fragment: "#rc3-first-round-trip" });
  await finished(page);
  await page.waitForSelector("canvas.network");
  const picture = (): Promise<string> =>
    page.$eval("canvas.network", (canvas) => (canvas as HTMLCanvasElement).toDataURL());
  const first = await picture();
  await press(page, ".controls .primary");
  await page.waitForFunction(
    (first) => document.querySelector<HTMLCanvasElement>("canvas.network")?.toDataURL() !== first,
    {},
    first,
  );
  await press(page, ".controls .primary");
  const paused = await picture();
  // One event may move packets by less than a pixel.
  for (let step = 0; step < 30; step += 1) await press(page, ".controls .buttons button:nth-child(2)");
  await eventually(async () => assert.notEqual(await picture(), paused));
});

test("an address restores scenarios, results and view", { skip }, async () => {
  const page = await open({ fragment: "#rc3-first-round-trip" });
  await finished(page);
  const wanted = await digests(page);
  await press(page, '[data-action="share"]');
  const address = await page.waitForFunction(
    () => document.querySelector<HTMLTextAreaElement>("dialog textarea")?.value,
  );
  const fragment = new URL(String(await address.jsonValue())).hash;
  const restored = await open({ fragment });
  await finished(restored);
  assert.deepEqual(await digests(restored), wanted);
  assert.ok(await restored.$("canvas.network"));
});

test("a hostile address is refused with a message, and the page still works", { skip }, async () => {
  const page = await open({ fragment: "#1.<img src=x onerror=alert(1)>" });
  await page.waitForSelector(".message");
  assert.equal(await page.$("img"), null);
  await ask(page, "two-cubic");
  await finished(page);
});

test("markup in a shared label is shown as text", { skip }, async () => {
  const page = await open();
  await finished(page);
  await enter(page, ".variants input.name", "<img src=x onerror=alert(1)>");
  await press(page, '[data-action="share"]');
  const address = await page.waitForFunction(
    () => document.querySelector<HTMLTextAreaElement>("dialog textarea")?.value,
  );
  const restored = await open({ fragment: new URL(String(await address.jsonValue())).hash });
  await finished(restored);
  assert.equal(await restored.$("img"), null);
});

test("a dropped file is opened", { skip }, async () => {
  const page = await open();
  await finished(page);
  await page.evaluate(() => {
    const toml =
      'duration = "1s"\n[topology]\nkind = "dumbbell"\nbottleneck_rate = "5Mbps"\nbottleneck_delay = "5ms"\npairs = 1\n[scheme.a]\ncontroller = "vegas"\n[workload]\nkind = "bulk"\nscheme = "a"\n';
    const data = new DataTransfer();
    data.items.add(new File([toml], "mine.toml"));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
  });
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>(".variants input.name")?.value === "mine");
  await finished(page);
});

for (const id of ["rc3", "rapid", "rtcp"]) {
  test(`the page on ${id} answers to its parameters`, { skip }, async () => {
    const page = await open({ fragment: `#${id}` });
    await page.waitForSelector(".system .chart canvas");
    const verdict = (): Promise<string> => page.$eval(".verdict", (element) => element.textContent ?? "");
    const first = await verdict();
    assert.ok(first.length > 20);
    await enter(page, ".knobs input[type=range]", "6", "input");
    await page.waitForFunction((first) => document.querySelector(".verdict")?.textContent !== first, {}, first);
    await press(page, '[data-action="reset"]');
    await page.waitForFunction((first) => document.querySelector(".verdict")?.textContent === first, {}, first);
  });
}

test("the page lists its fragments, for links of the documentation", { skip }, async () => {
  const page = await open();
  await finished(page);
  const listed = await page.$eval('meta[name="fragments"]', (meta) => meta.getAttribute("content")?.split(" "));
  const linked = await page.$$eval('nav a[href^="#"]', (links) =>
    links.map((link) => link.getAttribute("href")?.slice(1)),
  );
  assert.deepEqual(listed, linked);
});

test("RC3's example ends in the fourth round trip, and TCP's in the sixth", { skip }, async () => {
  const page = await open({ fragment: "#rc3" });
  await page.waitForSelector(".system .chart canvas");
  const verdict = await page.$eval(".verdict", (element) => element.textContent ?? "");
  assert.match(verdict, /round trip 4 with RC3/);
  assert.match(verdict, /round trip 6 with TCP/);
});

test("no page made a request, and none had an error in the console", { skip }, () => {
  assert.ok(visits.length > 10);
  for (const { requests, errors } of visits) {
    assert.deepEqual(requests, []);
    assert.deepEqual(errors, []);
  }
});
