/** The code of a worker: it holds one instance of the engine, and answers the messages of `client.ts`. */

import { Core } from "./core.ts";
import type { CallName, FromWorker, ToWorker } from "./protocol.ts";

/** The part of a worker's global object that is used here. */
interface Scope {
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}

const scope = globalThis as unknown as Scope;
let core: Core | null = null;

scope.onmessage = ({ data }) => {
  try {
    handle(data);
  } catch (error) {
    const id = data.type === "load" ? null : data.id;
    scope.postMessage({ type: "error", id, message: core?.explain(error) ?? String(error) });
  }
};

function handle(message: ToWorker): void {
  if (message.type === "load") {
    core = new Core(message.module);
    scope.postMessage({ type: "ready" });
    return;
  }
  if (core === null) throw new Error("the engine has not been loaded");
  const { id } = message;
  if (message.type === "call") {
    const result = core.call(message.name as CallName, message.arguments);
    scope.postMessage({ type: "result", id, result });
    return;
  }
  const outcome = core.run(message.toml, message.options, (progress) => {
    scope.postMessage({ type: "progress", id, progress });
  });
  const buffers = outcome.type === "done" ? core.buffers : [];
  scope.postMessage({ type: "outcome", id, outcome }, buffers);
}
