/** Starts the engine in tests, which run in Node. */

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { Engine, type Port } from "../client.ts";
import { Core } from "../core.ts";
import type { FromWorker, RunOptions, RunResults, ToWorker } from "../protocol.ts";

/** The folder of this file's bundle: `web/build/tests/src/engine/tests`. */
const HERE = dirname(fileURLToPath(import.meta.url));
/** The root of the project. */
export const ROOT = join(HERE, "../../../../../..");

export const module = new WebAssembly.Module(readFileSync(join(ROOT, "web/build/engine/engine_bg.wasm")));

/** The engine in this thread. */
export function core(): Core {
  return new Core(module);
}

/** The engine in worker threads, behind the client. */
export function engine(): Engine {
  return new Engine(module, () => {
    const worker = new Worker(join(HERE, "thread.worker.mjs"));
    const port: Port = {
      onmessage: null,
      onerror: null,
      postMessage: (message: ToWorker) => worker.postMessage(message),
      terminate: () => void worker.terminate(),
    };
    worker.on("message", (data: FromWorker) => port.onmessage?.({ data } as MessageEvent<FromWorker>));
    worker.on("error", (error) => port.onerror?.({ message: error.message } as ErrorEvent));
    return port;
  });
}

/** The results of a run that must succeed. */
export function results(core: Core, toml: string, options: RunOptions = {}): RunResults {
  const outcome = core.run(toml, options, () => {});
  if (outcome.type !== "done") throw new Error(JSON.stringify(outcome));
  return outcome.results;
}
