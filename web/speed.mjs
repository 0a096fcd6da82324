/**
 * Measures the speed of the engine in V8: million packet-hops per second, the median of several runs.
 *
 *     node speed.mjs                                   # in the folder web, after build-engine.sh
 *     node --cpu-prof speed.mjs rc3-internet2 2s       # a profile; build with --names first
 */

import { readFileSync } from "node:fs";
import * as engine from "./build/engine/engine.js";

const RUNS = 5;
const [name, duration] = process.argv.slice(2);
const cases = name ? [[name, duration ?? "2s"]] : [["rc3-internet2", "2s"], ["dumbbell-cubic", "200s"]];

engine.initSync({ module: readFileSync(new URL("build/engine/engine_bg.wasm", import.meta.url)) });
for (const [scenario, duration] of cases) {
  const text = readFileSync(new URL(`../scenarios/${scenario}.toml`, import.meta.url), "utf8");
  const { toml } = JSON.parse(engine.setKey(text, ["duration"], JSON.stringify(duration)));
  const speeds = Array.from({ length: RUNS }, () => {
    // No series and no packets, as in a native run.
    const session = new engine.Session(toml, 0, new Uint32Array(), new Uint32Array(), 0, 0, 0, undefined);
    const began = process.cpuUsage();
    while (!session.advance(1_000_000));
    const { user, system } = process.cpuUsage(began);
    const hops = session.packetHops();
    session.free();
    return hops / (user + system);
  });
  speeds.sort((one, other) => one - other);
  const shown = speeds.map((speed) => speed.toFixed(1));
  console.log(`${scenario} ${duration}: ${shown[RUNS >> 1]} M packet-hops per second of processor time (${shown.join(" ")})`);
}
