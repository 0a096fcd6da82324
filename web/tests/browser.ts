/** The built page in headless Chromium, for tests. */

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer, { type Browser, type Page } from "puppeteer-core";

/** Tests run in the folder `web`. */
const ROOT = process.cwd();
export const PAGE = join(ROOT, "dist/index.html");
export const SCREENSHOTS = join(ROOT, "build/screenshots");
const CHROMIUM = [process.env["CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/**
 * How many times slower the page runs than this machine allows: Chromium throttles the processor by this factor, and
 * frames come as late as on a busy machine. A test that reads the page before it is drawn then fails each time.
 */
const SLOWDOWN = Math.max(1, Number(process.env["SPARELANE_WEB_SLOWDOWN"]) || 1);
/** The additional delay of a frame per unit of slowdown beyond 1, milliseconds. */
const LATE_FRAME_MS = 50;
/** The time after which a test that waits has failed, milliseconds: twenty times that of the slowest wait. */
export const HANG_MS = 120_000 * SLOWDOWN;
/** The time between two attempts of `eventually`, milliseconds. */
const RETRY_MS = 50;

/** The reason for skipping the tests of the page; `false` if they can run. */
export function reasonToSkip(): string | false {
  if (!existsSync(PAGE)) return "the page is not built (make web)";
  return findChromium() ? false : "Chromium is missing (apt install chromium)";
}

function findChromium(): string | undefined {
  return CHROMIUM.find((path): path is string => path !== undefined && existsSync(path));
}

export interface Options {
  width?: number;
  height?: number;
  isDark?: boolean;
  fragment?: string;
  /** The file to open in place of the built page. */
  file?: string;
  /** Runs in the page before its own code. */
  before?: () => unknown;
  hasScripts?: boolean;
}

/** A page, with everything that it must not do. */
export interface Visit {
  page: Page;
  /** Messages of errors in the console, and errors of scripts. */
  errors: string[];
  /** Requests beyond the page itself. */
  requests: string[];
}

export async function launch(): Promise<Browser> {
  const executablePath = findChromium();
  if (!executablePath) throw new Error("Chromium is missing");
  // Continuous integration runs as root, and there Chromium has no sandbox.
  return puppeteer.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu"],
    protocolTimeout: HANG_MS,
  });
}

/** Opens the page from its file, as a reader without a server does. */
export async function visit(browser: Browser, options: Options = {}): Promise<Visit> {
  const { width = 1280, height = 900, isDark = false, fragment = "", file = PAGE } = options;
  const page = await browser.newPage();
  page.setDefaultTimeout(HANG_MS);
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: isDark ? "dark" : "light" }]);
  const errors: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    const address = request.url();
    const isOwn = request.isNavigationRequest() && address.startsWith("file:");
    if (!isOwn && !/^(blob|data):/.test(address)) requests.push(address);
  });
  if (SLOWDOWN > 1) await slowDown(page);
  if (options.before) await page.evaluateOnNewDocument(options.before);
  if (options.hasScripts === false) await page.setJavaScriptEnabled(false);
  // Only the page in front draws frames.
  await page.bringToFront();
  await page.goto(`${pathToFileURL(file)}${fragment}`);
  return { page, errors, requests };
}

async function slowDown(page: Page): Promise<void> {
  await page.emulateCPUThrottling(SLOWDOWN);
  await page.evaluateOnNewDocument(
    (delay) => {
      const inTime = globalThis.requestAnimationFrame;
      globalThis.requestAnimationFrame = (callback) => setTimeout(() => inTime(callback), delay) as unknown as number;
    },
    LATE_FRAME_MS * (SLOWDOWN - 1),
  );
}

/**
 * Repeats a check until it passes. After `HANG_MS` it fails with the last error of the check.
 *
 * The page draws in the next frame after an input, so each test that reads the page after an input needs this, or
 * `waitForFunction`.
 */
export async function eventually<Value>(check: () => Promise<Value>): Promise<Value> {
  const end = performance.now() + HANG_MS;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

/** Waits until all runs are over, and their results are shown. */
export async function finished(page: Page): Promise<void> {
  await page.waitForFunction(() => {
    const status = document.querySelector(".status")?.textContent ?? "";
    return status.includes("packet-hops");
  });
}

/** The digests of all variants, in their order. */
export async function digests(page: Page): Promise<string[]> {
  return page.$$eval("[data-digest]", (elements) =>
    elements.map((element) => element.getAttribute("data-digest") ?? ""),
  );
}

/** Clicks on an element by its selector, even if it is beyond the window. The page draws the effect a frame later. */
export async function press(page: Page, selector: string): Promise<void> {
  await page.waitForSelector(selector);
  await page.$eval(selector, (element) => (element as HTMLElement).click());
}

/** Asks a question of the gallery, and waits until it replaces the one before. */
export async function ask(page: Page, id: string): Promise<void> {
  await press(page, '[data-action="gallery"]');
  await press(page, `[data-question="${id}"]`);
  await page.waitForSelector(`.banner[data-shown="${id}"]`);
}

/** The text of the editor, which is in a shadow tree. Waits until the editor is shown. */
export async function editorText(page: Page): Promise<string> {
  await page.waitForSelector(".editor");
  return page.$eval(".editor", (element) => {
    const lines = element.shadowRoot?.querySelectorAll(".cm-line") ?? [];
    return Array.from(lines, (line) => line.textContent ?? "").join("\n");
  });
}

export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}
