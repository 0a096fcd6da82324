/**
 * Compares the speed of the engine in the browser with that of a native run, in packet-hops per second on one core.
 *
 *     make bench-web                                        # builds both, and runs this
 *     node speed.mjs [SCENARIO DURATION]                    # in the folder web, after both are built
 *     node --cpu-prof speed.mjs --node rc3-internet2 2s     # a profile of V8; run build-engine.sh --names first
 *
 * Each repetition runs the native program and then the same scenario in Chromium, or in Node with `--node`, so that other
 * load on the machine affects both. The results are the median and the range of the ratios. The first run in the browser
 * is shown on its own: V8 has not optimised the code yet. CARGO_TARGET_DIR is the folder of the native program.
 */

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import esbuild from "esbuild";
import puppeteer from "puppeteer-core";

const REPETITIONS = 5;
/** Scenario, duration, and the ratio that is the goal. */
const CASES = [
  ["rc3-internet2", "2s", 1 / 2],
  ["dumbbell-cubic", "200s", 1 / 3],
];
const CHROMIUM = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const NATIVE = resolve(process.env.CARGO_TARGET_DIR ?? "../target", "release/examples/run");
const ENGINE = "build/engine";

const given = process.argv.slice(2).filter((argument) => argument !== "--node");
const cases = given.length > 0 ? [[given[0], given[1] ?? "2s", null]] : CASES;
for (const file of [NATIVE, join(ENGINE, "engine_bg.wasm")]) {
  if (!existsSync(file)) {
    console.error(`web/speed.mjs: ${file} is missing: run make bench-web`);
    process.exit(1);
  }
}

const chromium = CHROMIUM.find((path) => path && existsSync(path));
const inNode = process.argv.includes("--node") || !chromium;
const { run, close, name } = inNode ? await node() : await browser(chromium);
for (const [scenario, duration, goal] of cases) {
  const file = join("../scenarios", `${scenario}.toml`);
  const first = await run(readFileSync(file, "utf8"), duration);
  const pairs = [];
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    const there = native(file, duration);
    pairs.push([there, await run(readFileSync(file, "utf8"), duration)]);
  }
  const [there, here, ratios] = [pairs.map(([one]) => one), pairs.map(([, one]) => one), pairs.map(([a, b]) => b / a)];
  console.log(`${scenario}, ${duration} simulated, in ${name}:`);
  console.log(`  native   ${shown(there, 1)} M packet-hops/s`);
  console.log(`  browser  ${shown(here, 1)} M packet-hops/s; first run ${first.toFixed(1)}`);
  console.log(`  ratio    ${shown(ratios, 2)}${goal === null ? "" : `; goal ${goal.toFixed(2)}`}`);
}
await close();

/** The median of values, and their range. */
function shown(values, digits) {
  const sorted = [...values].sort((one, other) => one - other);
  const [least, median, most] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)].map((one) => one.toFixed(digits));
  return `${median} (${least} to ${most})`;
}

/** Million packet-hops per second of a native run on one thread. */
function native(file, duration) {
  const { stderr, status } = spawnSync(NATIVE, [file, `duration=${JSON.stringify(duration)}`, "threads=1"], { encoding: "utf8" });
  const speed = /([\d.]+) M packet-hops\/s/.exec(stderr)?.[1];
  if (status !== 0 || !speed) throw new Error(`${NATIVE} ${file}: ${stderr}`);
  return Number(speed);
}

/**
 * Million packet-hops per second of a run. It runs in the browser, so it uses nothing of this file but its arguments.
 */
function measure(engine, text, duration) {
  const { toml } = JSON.parse(engine.setKey(text, ["duration"], JSON.stringify(duration)));
  // No series and no packets, as in a native run.
  const session = new engine.Session(toml, 0, new Uint32Array(), new Uint32Array(), 0, 0, 0, undefined);
  const began = performance.now();
  // V8 replaces code by optimised code when a function is called again, so the run has many calls, as in the page.
  while (!session.advance(50_000));
  const seconds = (performance.now() - began) / 1000;
  const hops = session.packetHops();
  session.free();
  return hops / seconds / 1e6;
}

async function node() {
  const engine = await import(resolve(ENGINE, "engine.js"));
  engine.initSync({ module: readFileSync(join(ENGINE, "engine_bg.wasm")) });
  const name = `Node ${process.version}`;
  return { name, run: async (text, duration) => measure(engine, text, duration), close: async () => {} };
}

async function browser(executablePath) {
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(ENGINE, "engine.js")],
    bundle: true,
    define: { "import.meta.url": '""' },
    format: "iife",
    globalName: "engine",
    write: false,
  });
  const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"], protocolTimeout: 600_000 });
  const page = await browser.newPage();
  await page.evaluate(`${outputFiles[0].text}; globalThis.engine = engine; globalThis.measure = ${measure};`);
  await page.evaluate((base64) => {
    globalThis.engine.initSync({ module: Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0)) });
  }, readFileSync(join(ENGINE, "engine_bg.wasm")).toString("base64"));
  return {
    name: await browser.version(),
    run: (text, duration) =>
      page.evaluate((text, duration) => globalThis.measure(globalThis.engine, text, duration), text, duration),
    close: () => browser.close(),
  };
}
