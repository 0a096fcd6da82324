/**
 * Starts the engine from the page itself, so that it also works from a file without a server.
 *
 * The build places two blocks of data into the page: the code of the worker as text, and the engine as WebAssembly,
 * compressed by gzip and then in Base64. Browsers refuse to load either from `file://`, but the page may contain both.
 */

import { Engine, EngineError, type Port } from "./client.ts";

/** The identifiers of the blocks in the page. */
const WORKER = "engine-worker";
const ENGINE = "engine-wasm";

/**
 * Decodes and compiles the engine, and starts it.
 *
 * @throws EngineError if the browser lacks WebAssembly, workers or decompression, or the page is incomplete.
 */
export async function loadEngine(): Promise<Engine> {
  if (typeof WebAssembly !== "object" || typeof Worker !== "function") {
    throw new EngineError("This browser has no WebAssembly, or it is switched off. The simulator needs it.");
  }
  if (typeof DecompressionStream !== "function") {
    throw new EngineError("This browser is too old: it cannot decompress the simulator. Browsers since 2023 can.");
  }
  const code = block(WORKER);
  const bytes = await decompressed(block(ENGINE));
  let module: WebAssembly.Module;
  try {
    module = await WebAssembly.compile(bytes);
  } catch (error) {
    throw new EngineError(`This browser cannot compile the simulator: ${String(error)}`);
  }
  const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  return new Engine(module, () => new Worker(address) as unknown as Port);
}

/** Decodes and decompresses data. */
async function decompressed(base64: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  // A response reads a stream to its end. There is no request.
  return new Response(stream).arrayBuffer();
}

function block(id: string): string {
  const text = document.getElementById(id)?.textContent?.trim();
  if (!text) throw new EngineError(`This page is incomplete: it has no block "${id}". Build it with make web.`);
  return text;
}
