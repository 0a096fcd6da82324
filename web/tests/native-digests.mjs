/**
 * Writes the digests of all questions of the gallery, from native runs.
 *
 *     node tests/native-digests.mjs > tests/digests.json     # in the folder web
 *
 * It needs cargo. The test of the gallery compares the digests of the browser with them.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import esbuild from "esbuild";

const { outputFiles } = await esbuild.build({
  entryPoints: ["src/gallery/index.ts"],
  bundle: true,
  format: "esm",
  write: false,
});
const source = outputFiles[0].text;
const { QUESTIONS } = await import(`data:text/javascript;base64,${Buffer.from(source).toString("base64")}`);

const command = ["run", "--release", "--quiet", "-p", "sparelane-scenario", "--example", "run", "--"];
const folder = mkdtempSync(join(tmpdir(), "questions-"));
try {
  // Compiles first, so that its messages are not between those of the runs.
  execFileSync("cargo", ["build", ...command.slice(1, -1)], { stdio: "inherit" });
  const all = QUESTIONS.map(({ id, toml, variants }) => {
    const file = join(folder, `${id}.toml`);
    writeFileSync(file, toml);
    return [id, variants.map(({ set }) => digest(file, set))];
  });
  console.log(JSON.stringify(Object.fromEntries(all), null, 2));
} finally {
  rmSync(folder, { recursive: true });
}

function digest(file, set) {
  const overrides = set.map(({ path, value }) => `${path.join(".")}=${written(value)}`);
  const { stderr, status } = spawnSync("cargo", [...command, file, ...overrides], { encoding: "utf8" });
  const found = /^digest ([0-9a-f]+)$/m.exec(stderr)?.[1];
  if (status !== 0 || !found) throw new Error(`${file} ${overrides.join(" ")}: ${stderr}`);
  return found;
}

/** A value as TOML. */
function written(value) {
  if (typeof value !== "object") return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([key, one]) => `${key} = ${written(one)}`)
    .join(", ")} }`;
}
