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
/** The time after which a test that waits has failed, milliseconds. */
export const HANG_MS = 60_000;

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
  return puppeteer.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"], protocolTimeout: HANG_MS });
}

/** Opens the page from its file, as a reader without a server does. */
export async function visit(browser: Browser, options: Options = {}): Promise<Visit> {
  const { width = 1280, height = 900, isDark = false, fragment = "" } = options;
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
  await page.goto(`${pathToFileURL(PAGE)}${fragment}`);
  return { page, errors, requests };
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

/** Clicks on an element by its selector, even if it is beyond the window. */
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

/** The text of the editor, which is in a shadow tree. */
export async function editorText(page: Page): Promise<string> {
  return page.$eval(".editor", (element) => {
    const lines = element.shadowRoot?.querySelectorAll(".cm-line") ?? [];
    return Array.from(lines, (line) => line.textContent ?? "").join("\n");
  });
}

export async function screenshot(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true });
}
