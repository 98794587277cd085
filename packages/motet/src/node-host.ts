import { compile } from "./module.js";
import type { NodeStart, NodeStarted } from "./node-message.js";
import { Refusal } from "./refusal.js";
import { text } from "./thrown.js";
import { ClusterNode, heldLocks, initSync } from "./wasm/node/motet_web.js";

let ready: Promise<void> | undefined;

/** Loads the node's module, once in a context. */
export function load(start: NodeStart): Promise<void> {
  ready ??= (async () => {
    initSync({ module: start.module ?? (await compile(start.wasmUrl)) });
  })();
  // What could not be loaded may be there the next time.
  ready.catch(() => (ready = undefined));
  return ready;
}

/** Nodes of this context. A node that nothing refers to would be freed by the garbage collector while it works. */
const running = new Set<ClusterNode>();

/** Starts a node in this context; it lives until {@link endNode}, or as long as the context. */
export async function startNode(start: NodeStart): Promise<ClusterNode> {
  await load(start);
  const node = new ClusterNode(start.options);
  running.add(node);
  return node;
}

/** Ends a node whose context lives on. */
export function endNode(node: ClusterNode): void {
  running.delete(node);
  node.end();
  node.free();
}

/** The answer for a start that failed. */
export function refusal(cause: unknown): NodeStarted {
  const code = cause instanceof Refusal ? cause.code : "NODE_UNAVAILABLE";
  return { started: false, code, detail: text(cause) };
}

/** The part of a worker's global scope that is used here. */
export interface WorkerScope {
  addEventListener(type: string, listener: (event: Event) => void): void;
}

/**
 * Ends this worker when its module cannot go on: a panic or exhausted memory leaves it in no known state. Locks are
 * let go first, so that pages and nodes that wait for them learn of the death at once.
 */
export function endOnPanic(scope: WorkerScope, close: () => void): void {
  const end = (cause: unknown): void => {
    if (!(cause instanceof WebAssembly.RuntimeError)) return;
    console.error("motet: the node stopped", cause);
    for (const release of heldLocks() as Set<() => void>) release();
    close();
  };
  scope.addEventListener("error", (event) => end((event as ErrorEvent).error));
  scope.addEventListener("unhandledrejection", (event) => end((event as PromiseRejectionEvent).reason));
}
