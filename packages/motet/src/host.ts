import { MotetError } from "./error.js";
import { compile } from "./module.js";
import type { NodeOptions, NodeStart, NodeStarted } from "./node-message.js";
import type { ConnectOptions, HostPreference } from "./options.js";
import { text } from "./thrown.js";
import type { HostInUse, HostKind } from "./status.js";

/** A node that runs, and how to end it. */
export interface RunningHost {
  readonly inUse: HostInUse;
  /** What was wrong with hosts that were preferred to it. */
  readonly passedOver: string | undefined;
  readonly port: MessagePort;
  /** Ends the page's own node; leaves a shared one. */
  stop(): void;
}

/** What a host is made from. */
export interface HostRequest {
  readonly options: ConnectOptions;
  /** The node's options but for what depends on the host. */
  readonly node: Omit<NodeOptions, "shared">;
  /** Called when the host fails after it has started. */
  readonly died: (error: MotetError) => void;
  /** Gives the start up, and ends what has been started. */
  readonly signal: AbortSignal;
}

const ORDERS: Readonly<Record<HostPreference, readonly HostKind[]>> = {
  dedicated: ["worker", "shared-worker", "page"],
  shared: ["shared-worker", "worker", "page"],
  auto: ["shared-worker", "worker", "page"],
  page: ["page"],
};

/** Below the core's own limit for a launch, so that a host that hangs leaves time for the next. */
const START_WITHIN_MS = 4_000;

/**
 * Starts the node in the first host of the wanted order that works. One that throws, cannot be loaded or does not
 * answer counts as absent.
 */
export async function startHost(request: HostRequest): Promise<RunningHost> {
  const wanted = request.options.host ?? "dedicated";
  const missing: string[] = [];
  let last: unknown;
  for (const kind of ORDERS[wanted]) {
    try {
      const { port, stop } = await START[kind](request);
      const passedOver = missing.length === 0 ? undefined : missing.join("; ");
      return { inUse: { kind, reason: passedOver ?? `wanted: ${wanted}` }, passedOver, port, stop };
    } catch (cause) {
      request.signal.throwIfAborted();
      last = cause;
      missing.push(`${kind}: ${text(cause)}`);
    }
  }
  if (last instanceof MotetError) throw last;
  throw new MotetError("HOST_UNAVAILABLE", { detail: missing.join("; "), cause: last });
}

interface Started {
  readonly port: MessagePort;
  readonly stop: () => void;
}

const START: Readonly<Record<HostKind, (request: HostRequest) => Promise<Started>>> = {
  worker: startWorker,
  "shared-worker": startSharedWorker,
  page: startInPage,
};

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** The node's module, compiled once in this page however often its node is started. */
export function nodeModule(options: ConnectOptions): Promise<WebAssembly.Module> {
  const url = nodeUrl(options);
  let module = compiled.get(url);
  if (module === undefined) {
    module = pageModule(url);
    compiled.set(url, module);
    module.catch(() => compiled.delete(url));
  }
  return module;
}

/** Compiles a module as a page does: what is wrong is said with the table's texts. */
export async function pageModule(url: string | URL): Promise<WebAssembly.Module> {
  try {
    return await compile(url);
  } catch (cause) {
    throw MotetError.of(cause);
  }
}

function nodeUrl(options: ConnectOptions): string {
  const given = options.wasmUrl?.node;
  if (given !== undefined) return new URL(given, location.href).href;
  return new URL("./wasm/node/motet_web_bg.wasm", import.meta.url).href;
}

async function startWorker({ options, node, died, signal }: HostRequest): Promise<Started> {
  const worker =
    options.workerUrl === undefined
      ? new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "motet" })
      : new Worker(options.workerUrl, { type: "module", name: "motet" });
  const { port1, port2 } = new MessageChannel();
  const end = (): void => worker.terminate();
  // At once, and not when the wait below notices: the page may be on its way into the cache.
  signal.addEventListener("abort", end);
  try {
    const start: NodeStart = {
      options: { ...node, shared: false },
      module: await nodeModule(options),
      wasmUrl: nodeUrl(options),
    };
    const started = answer(worker, worker, signal);
    worker.postMessage(start, [port2]);
    await started;
  } catch (cause) {
    end();
    throw cause;
  } finally {
    signal.removeEventListener("abort", end);
  }
  worker.onerror = (event) => died(new MotetError("NODE_UNAVAILABLE", { detail: event.message }));
  return { port: port1, stop: end };
}

async function startSharedWorker({ options, node, signal }: HostRequest): Promise<Started> {
  // Pages of another build or with other options get a worker of their own.
  const name = `motet/${node.build}/${node.fingerprint}`;
  const worker =
    options.sharedWorkerUrl === undefined
      ? new SharedWorker(new URL("./shared-worker.js", import.meta.url), { type: "module", name })
      : new SharedWorker(options.sharedWorkerUrl, { type: "module", name });
  const { port } = worker;
  try {
    const started = answer(port, worker, signal);
    port.start();
    // A compiled module cannot cross to a SharedWorker: it compiles its own.
    const start: NodeStart = { options: { ...node, shared: true }, wasmUrl: nodeUrl(options) };
    port.postMessage(start);
    await started;
  } catch (cause) {
    port.close();
    throw cause;
  }
  return { port, stop: () => undefined };
}

async function startInPage({ options, node, signal }: HostRequest): Promise<Started> {
  const { endNode, startNode } = await import("./node-host.js");
  const started = await startNode({
    options: { ...node, shared: false },
    module: await nodeModule(options),
    wasmUrl: nodeUrl(options),
  });
  if (signal.aborted) endNode(started);
  signal.throwIfAborted();
  const { port1, port2 } = new MessageChannel();
  started.attach(port2);
  return {
    port: port1,
    stop: () => endNode(started),
  };
}

/** Waits for a host's first message. */
function answer(from: Worker | MessagePort, worker: Worker | SharedWorker, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no answer")), START_WITHIN_MS);
    const settle = (then: () => void): void => {
      clearTimeout(timer);
      from.removeEventListener("message", heard as EventListener);
      worker.removeEventListener("error", failed);
      signal.removeEventListener("abort", givenUp);
      then();
    };
    const heard = ({ data }: MessageEvent<NodeStarted>): void => {
      const refused = data.started ? undefined : MotetError.refused(data.code, data.detail);
      settle(() => (refused === undefined ? resolve() : reject(refused)));
    };
    // A script that is blocked or missing says no more than this.
    const failed = (event: Event): void =>
      settle(() => reject(new Error((event as ErrorEvent).message || "the script cannot be loaded")));
    const givenUp = (): void => settle(() => reject(signal.reason));
    from.addEventListener("message", heard as EventListener);
    worker.addEventListener("error", failed);
    signal.addEventListener("abort", givenUp);
  });
}
