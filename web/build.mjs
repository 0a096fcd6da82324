/**
 * Builds the page, or runs the tests.
 *
 *     node build.mjs                # dist/index.html: the whole page in one file
 *     node build.mjs tests          # all files in src and tests whose names end in .test.ts
 *     node build.mjs tests engine   # those with this part in their path
 *
 * The page is one file, so that it works without a server. It contains the styles, the script, the code of the worker as
 * text, and the engine as WebAssembly, compressed and in Base64 (`src/engine/load.ts` has the reason). Its
 * Content-Security-Policy lists the hashes of its only script and style, and forbids all requests.
 *
 * `index.html` must contain these comments, each of which is replaced:
 *
 * - `<!-- build:csp -->`, first in the head: the policy
 * - `<!-- build:style -->`, in the head: the styles that the script imports
 * - `<!-- build:script -->`, at the end of the body: the data and the script
 *
 * `make web` runs this after `build-engine.sh`, which compiles the engine to `build/engine`.
 */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { constants, gzipSync } from "node:zlib";
import esbuild from "esbuild";
import { licences } from "./licences.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const ENGINE = join(HERE, "build/engine");
const TESTS = join(HERE, "build/tests");
/** The largest page that is allowed, compressed by gzip, bytes. */
const MOST_BYTES = 1_500_000;
/** Browsers since 2023 have what the page needs. */
const TARGET = ["chrome109", "firefox113", "safari16.4"];

/** Makes the ready-made scenarios importable as `virtual:scenarios`. */
const SCENARIOS = {
  name: "scenarios",
  setup(build) {
    build.onResolve({ filter: /^virtual:scenarios$/ }, ({ path }) => ({ path, namespace: "scenarios" }));
    build.onLoad({ filter: /.*/, namespace: "scenarios" }, () => {
      const folder = join(HERE, "../python/sparelane/scenario/shipped");
      const files = readdirSync(folder).filter((file) => file.endsWith(".toml")).sort();
      const shipped = files.map((file) => {
        const toml = readFileSync(join(folder, file), "utf8");
        const comment = /^(# ?.*\n)+/.exec(toml)?.[0] ?? "";
        return { name: file.slice(0, -5), summary: comment.replace(/^# ?/gm, "").replace(/\s+/g, " ").trim(), toml };
      });
      return { contents: `export const SHIPPED = ${JSON.stringify(shipped)};`, loader: "js" };
    });
  },
};

const COMMON = {
  absWorkingDir: HERE,
  bundle: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  minify: true,
  plugins: [SCENARIOS],
  target: TARGET,
  write: false,
};

if (process.argv[2] === "tests") await runTests(process.argv[3]);
else await buildPage();

async function buildPage() {
  const wasm = join(ENGINE, "engine_bg.wasm");
  if (!existsSync(wasm)) fail("the engine is missing: run web/build-engine.sh first, or make web");
  // The generated code mentions the address of its module, but the worker never loads from it.
  const define = { "import.meta.url": '""' };
  const worker = await esbuild.build({ ...COMMON, define, entryPoints: ["src/engine/worker.ts"], format: "iife", outdir: "dist" });
  const page = await esbuild.build({ ...COMMON, entryPoints: ["src/main.ts"], format: "esm", outdir: "dist" });
  const text = (result, end) => result.outputFiles.find(({ path }) => path.endsWith(end))?.text ?? "";
  const [script, style] = [text(page, ".js"), text(page, ".css")];
  const engine = gzipSync(readFileSync(wasm), { level: constants.Z_BEST_COMPRESSION });
  const policy = [
    "default-src 'none'",
    `script-src '${hash(script)}' 'wasm-unsafe-eval'`,
    `style-src '${hash(style)}'`,
    "worker-src blob:",
    "img-src data: blob:",
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  const parts = {
    csp: `<meta http-equiv="Content-Security-Policy" content="${policy}">`,
    style: `<style>${style}</style>`,
    script: [
      block("engine-worker", "text/plain", text(worker, ".js")),
      block("engine-wasm", "text/plain", engine.toString("base64")),
      block("licences", "text/plain", licences([worker.metafile, page.metafile], HERE)),
      `<script type="module">${script}</script>`,
    ].join("\n"),
  };
  // A function as replacement, since the code may contain the patterns of `replace`.
  const html = Object.entries(parts).reduce((all, [name, part]) => {
    const place = `<!-- build:${name} -->`;
    if (!all.includes(place)) fail(`index.html has no ${place}`);
    return all.replace(place, () => part);
  }, readFileSync(join(HERE, "index.html"), "utf8"));
  mkdirSync(join(HERE, "dist"), { recursive: true });
  writeFileSync(join(HERE, "dist/index.html"), html);
  writeFileSync(join(HERE, "dist/licences.txt"), licences([worker.metafile, page.metafile], HERE));
  const bytes = gzipSync(html, { level: constants.Z_BEST_COMPRESSION }).length;
  const kB = (count) => `${Math.round(count / 1000)} kB`;
  console.log(
    `web/dist/index.html: ${kB(Buffer.byteLength(html))}, ${kB(bytes)} compressed, of which the engine ${kB(engine.length)}`,
  );
  if (bytes > MOST_BYTES) fail(`the page has ${bytes} bytes compressed; allowed: ${MOST_BYTES}`);
}

/** Bundles the tests whose path contains `part`, and runs them. */
async function runTests(part = "") {
  rmSync(TESTS, { recursive: true, force: true });
  const sources = ["src", "tests"].filter((folder) => existsSync(join(HERE, folder))).flatMap((folder) =>
    readdirSync(join(HERE, folder), { recursive: true }).map((file) => join(folder, String(file))),
  );
  const tests = sources.filter((file) => /\.test\.ts$/.test(file) && file.includes(part));
  if (tests.length === 0) fail(`there is no test with "${part}" in its path`);
  await esbuild.build({
    ...COMMON,
    // Workers that tests start are files of their own.
    entryPoints: [...tests, ...sources.filter((file) => /\.worker\.ts$/.test(file))],
    format: "esm",
    minify: false,
    outbase: HERE,
    outdir: TESTS,
    outExtension: { ".js": ".mjs" },
    // Libraries stay in node_modules, and are imported from there.
    packages: "external",
    platform: "node",
    target: "node18",
    write: true,
  });
  const files = tests.map((file) => join(TESTS, file.replace(/\.ts$/, ".mjs")));
  const { status } = spawnSync(process.execPath, ["--test", ...files], { cwd: HERE, stdio: "inherit" });
  process.exit(status ?? 1);
}

/** A block of data, which browsers do not run. */
function block(id, type, text) {
  if (text === "") fail(`the block "${id}" is empty`);
  // These would end the block, or make the HTML parser treat later scripts as a part of it.
  if (/<\/script|<!--/i.test(text)) fail(`the block "${id}" contains markup`);
  return `<script type="${type}" id="${id}">${text}</script>`;
}

function hash(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

function fail(message) {
  console.error(`web/build.mjs: ${message}`);
  process.exit(1);
}
