/**
 * The engine as the page sees it: each method returns a promise.
 *
 * One worker answers short calls. Each run has a worker of its own, so that variants run side by side, and the page can
 * cancel a run at once by ending its worker. An idle worker of a run is kept for the next one.
 */

import type {
  CallName,
  Calls,
  Catalogue,
  Edited,
  Estimate,
  FromWorker,
  Json,
  JsonObject,
  Mistake,
  Parsed,
  Path,
  Progress,
  RunOptions,
  RunOutcome,
  ShippedScenario,
  ToWorker,
} from "./protocol.ts";

/** A worker as the client uses it: `Worker` of browsers has this form. */
export interface Port {
  postMessage(message: ToWorker): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<FromWorker>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

/** A run that has started. */
export interface Run {
  /** The outcome. The promise is never rejected. */
  outcome: Promise<RunOutcome>;
  /** Ends the run at once; its outcome is `cancelled`. Does nothing if the run is over. */
  cancel(): void;
}

/** An engine that could not be started, with a message for the user. */
export class EngineError extends Error {
  override name = "EngineError";
}

interface Pending {
  message: ToWorker;
  resolve(result: unknown): void;
  reject(error: EngineError): void;
}

/** The number of idle workers that are kept for runs. */
const KEPT_IDLE = 4;

export class Engine {
  readonly #module: WebAssembly.Module;
  readonly #open: () => Port;
  #caller: Port;
  #pending = new Map<number, Pending>();
  #idle: Port[] = [];
  #lastId = 0;

  /**
   * @param module the compiled engine
   * @param open starts a worker with the code of `worker.ts`
   */
  constructor(module: WebAssembly.Module, open: () => Port) {
    this.#module = module;
    this.#open = open;
    this.#caller = this.#openCaller();
  }

  /** Everything that a scenario can name, with keys, defaults and units. */
  catalogue(): Promise<Catalogue> {
    return this.#call("catalogue");
  }

  /** The JSON Schema of scenarios (draft 7). */
  schema(): Promise<JsonObject> {
    return this.#call("schema");
  }

  /** The ready-made scenarios that need no files. */
  scenarios(): Promise<ShippedScenario[]> {
    return this.#call("scenarios");
  }

  /** Checks a scenario and returns its tables, network and warnings, or its mistakes. */
  parse(toml: string): Promise<Parsed> {
    return this.#call("parse", toml);
  }

  /**
   * Sets one key in the text of a scenario and keeps comments, order and layout of the rest. `undefined` removes the
   * key. Missing tables are added. The new text is not checked: call `parse`.
   */
  setKey(toml: string, path: Path, value: Json | undefined): Promise<Edited> {
    return this.#call("setKey", toml, path, value);
  }

  /** Writes a scenario from its tables. */
  toToml(scenario: JsonObject): Promise<Edited> {
    return this.#call("toToml", scenario);
  }

  /** Estimates the effort of a run from a trial of about a tenth of a second. */
  estimate(toml: string): Promise<Estimate | { mistakes: Mistake[] }> {
    return this.#call("estimate", toml);
  }

  /** The version of sparelane. */
  version(): Promise<string> {
    return this.#call("version");
  }

  /** Starts a run. `onProgress` is called about twenty times a second. */
  run(toml: string, options: RunOptions = {}, onProgress?: (progress: Progress) => void): Run {
    const id = ++this.#lastId;
    const port = this.#idle.pop() ?? this.#openPort();
    let cancel = (): void => {};
    const outcome = new Promise<RunOutcome>((resolve) => {
      // Settling twice has no effect, so a late message of a cancelled run does no harm.
      const end = (outcome: RunOutcome, isReusable: boolean): void => {
        port.onmessage = null;
        port.onerror = null;
        if (isReusable && this.#idle.length < KEPT_IDLE) this.#idle.push(port);
        else port.terminate();
        cancel = () => {};
        resolve(outcome);
      };
      cancel = () => end({ type: "cancelled" }, false);
      port.onmessage = ({ data }) => {
        if (data.type === "progress") onProgress?.(data.progress);
        // After a failure, the state of the engine is unknown, so its worker is not used again.
        else if (data.type === "outcome") end(data.outcome, data.outcome.type !== "failed");
        else if (data.type === "error") end({ type: "failed", message: data.message }, false);
      };
      port.onerror = (event) => end({ type: "failed", message: event.message }, false);
      port.postMessage({ type: "run", id, toml, options });
    });
    return { outcome, cancel: () => cancel() };
  }

  /** Ends all workers. The engine cannot be used afterwards. */
  close(): void {
    this.#caller.terminate();
    this.#idle.forEach((port) => port.terminate());
    this.#idle = [];
    this.#fail("the engine was closed");
  }

  #call<Name extends CallName>(name: Name, ...given: Calls[Name]["arguments"]): Promise<Calls[Name]["result"]> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      const message: ToWorker = { type: "call", id, name, arguments: given };
      this.#pending.set(id, { message, resolve: resolve as (result: unknown) => void, reject });
      this.#caller.postMessage(message);
    });
  }

  #openPort(): Port {
    const port = this.#open();
    port.postMessage({ type: "load", module: this.#module });
    return port;
  }

  #openCaller(): Port {
    const port = this.#openPort();
    port.onmessage = ({ data }) => {
      if (data.type === "result") {
        this.#pending.get(data.id)?.resolve(data.result);
        this.#pending.delete(data.id);
      } else if (data.type === "error") {
        this.#restart(data.message, data.id);
      }
    };
    port.onerror = (event) => this.#restart(event.message, null);
    return port;
  }

  /**
   * Replaces the worker of calls, whose engine has failed in the call `id`. That call fails. The new worker gets the others
   * that wait. Without a call, the engine did not start, and all fail.
   */
  #restart(message: string, id: number | null): void {
    this.#caller.onmessage = null;
    this.#caller.onerror = null;
    this.#caller.terminate();
    this.#caller = this.#openCaller();
    if (id === null) return this.#fail(message);
    this.#pending.get(id)?.reject(new EngineError(message));
    this.#pending.delete(id);
    this.#pending.forEach((waiting) => this.#caller.postMessage(waiting.message));
  }

  #fail(message: string): void {
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    waiting.forEach(({ reject }) => reject(new EngineError(message)));
  }
}
