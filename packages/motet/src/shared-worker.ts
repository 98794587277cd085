/** Entry of the SharedWorker: one node for all pages that connect. */
import { endOnPanic, refusal, startNode } from "./node-host.js";
import type { NodeStart, NodeStarted } from "./node-message.js";
import type { ClusterNode } from "./wasm/node/motet_web.js";

const scope = self as unknown as { addEventListener: typeof self.addEventListener; close(): void };

let running: Promise<ClusterNode> | undefined;

/** The first page's options start the node; others have the same, because they are in the worker's name. */
function node(start: NodeStart): Promise<ClusterNode> {
  running ??= startNode(start).then((started) => {
    endOnPanic(scope, () => scope.close());
    return started;
  });
  // A failed start is tried anew by the next page.
  running.catch(() => (running = undefined));
  return running;
}

scope.addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  if (port === undefined) return;
  const say = (message: NodeStarted): void => port.postMessage(message);
  port.onmessage = ({ data }: MessageEvent<NodeStart>) => {
    void node(data).then(
      (started) => {
        started.attach(port);
        say({ started: true });
      },
      (cause: unknown) => say(refusal(cause)),
    );
  };
});
