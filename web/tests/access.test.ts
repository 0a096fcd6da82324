/** The page for all readers: rules of axe-core in both themes, keyboard, narrow screens. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import axe from "axe-core";
import type { Browser, Page } from "puppeteer-core";
import { eventually, finished, launch, press, reasonToSkip, screenshot, visit } from "./browser.ts";

const skip = reasonToSkip();
let browser: Browser;

before(async () => {
  if (!skip) browser = await launch();
});

after(async () => {
  if (!skip) await browser.close();
});

/** The violations on a page, each with its first element. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(): Promise<{
          violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
        }>;
      };
    };
    const { violations } = await axe.run();
    return violations.map(
      ({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary ?? ""}`,
    );
  });
}

/** What is opened before the checks, by name. */
const STATES: Record<string, { fragment: string; prepare(page: Page): Promise<void> }> = {
  settings: { fragment: "", prepare: finished },
  text: { fragment: "", prepare: opened("#scenario-tab-text", ".editor") },
  variants: { fragment: "#rc3-harm", prepare: finished },
  completion: { fragment: "#bufferbloat", prepare: finished },
  packets: { fragment: "#rc3-first-round-trip", prepare: finished },
  gallery: { fragment: "", prepare: opened('[data-action="gallery"]', "dialog[open] .gallery") },
  download: { fragment: "", prepare: opened('[data-action="download"]', "dialog[open] .downloads") },
  rc3: { fragment: "#rc3", prepare: drawn },
  rapid: { fragment: "#rapid", prepare: drawn },
  rtcp: { fragment: "#rtcp", prepare: drawn },
};

/** Waits for the first results, clicks on an element, and waits for what it shows. */
function opened(selector: string, shown: string): (page: Page) => Promise<void> {
  return async (page) => {
    await finished(page);
    await press(page, selector);
    await page.waitForSelector(shown);
  };
}

async function drawn(page: Page): Promise<void> {
  await page.waitForSelector(".system .chart canvas");
}

/** Changes the theme of the system, and waits until the page has drawn in it. */
async function choose(page: Page, theme: "light" | "dark"): Promise<void> {
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
  await page.waitForFunction((theme) => document.documentElement.dataset["theme"] === theme, {}, theme);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

// Each state is opened once for all three tests, since opening takes longer than the checks.
for (const [name, { fragment, prepare }] of Object.entries(STATES)) {
  test(`${name} is for all readers`, { skip }, async (context) => {
    const { page } = await visit(browser, { fragment });
    await prepare(page);
    for (const theme of ["light", "dark"] as const) {
      await context.test(`${name} has no violation, ${theme}`, async () => {
        await choose(page, theme);
        assert.deepEqual(await violations(page), []);
        await screenshot(page, `${name}-${theme}`);
      });
    }
    await context.test(`${name} fits a screen of 400 pixels`, async () => {
      await choose(page, "light");
      await page.setViewport({ width: 400, height: 800 });
      await eventually(async () => {
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= 400, `the page is ${width} pixels wide`);
      });
      await screenshot(page, `${name}-400`);
    });
    await page.close();
  });
}

test("the page opens in the theme of the system, and on a narrow screen", { skip }, async () => {
  const { page } = await visit(browser, { isDark: true, width: 400, height: 800 });
  await finished(page);
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  await eventually(async () => {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 400, `the page is ${width} pixels wide`);
  });
  await screenshot(page, "settings-dark-400");
  await page.close();
});

test("tabs move by arrow keys", { skip }, async () => {
  const { page } = await visit(browser);
  await finished(page);
  await page.focus("#view-tab-time");
  await page.keyboard.press("ArrowRight");
  await eventually(async () => {
    assert.equal(await page.$eval("#view-tab-completion", (tab) => tab.getAttribute("aria-selected")), "true");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "view-tab-completion");
  });
});

test("a chart has a cursor and a zoom by keyboard", { skip }, async () => {
  const { page } = await visit(browser);
  await finished(page);
  await page.focus(".chart");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector(".values")?.textContent?.includes("b/s"));
  const picture = (): Promise<string> =>
    page.$eval(".chart canvas", (canvas) => (canvas as HTMLCanvasElement).toDataURL());
  const whole = await picture();
  await page.keyboard.press("+");
  await page.waitForFunction(
    (whole) => document.querySelector<HTMLCanvasElement>(".chart canvas")?.toDataURL() !== whole,
    {},
    whole,
  );
  await page.keyboard.press("Escape");
  await page.waitForFunction(
    (whole) => document.querySelector<HTMLCanvasElement>(".chart canvas")?.toDataURL() === whole,
    {},
    whole,
  );
});

test("every control can be reached by the Tab key", { skip }, async () => {
  const { page } = await visit(browser);
  await finished(page);
  const all = await page.evaluate(() => {
    const isShown = (element: Element): boolean =>
      element.checkVisibility() && element.closest("details:not([open]) > :not(summary)") === null;
    const controls = Array.from(document.querySelectorAll("button, input, select, summary, a[href]"));
    return controls
      .filter(
        (one) =>
          isShown(one) &&
          !(one as HTMLButtonElement).disabled &&
          (one as HTMLElement).tabIndex < 0 &&
          one.getAttribute("role") !== "tab",
      )
      .map((one) => one.outerHTML);
  });
  assert.deepEqual(all, []);
});
