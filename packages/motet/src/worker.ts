/** Entry of the dedicated worker: one node for the page that made it. */
import { endOnPanic, refusal, startNode } from "./node-host.js";
import type { NodeStart, NodeStarted } from "./node-message.js";

const scope = self as unknown as {
  addEventListener: typeof self.addEventListener;
  postMessage(message: NodeStarted): void;
  close(): void;
};

scope.addEventListener(
  "message",
  (event) => {
    const { data, ports } = event as MessageEvent<NodeStart>;
    void (async () => {
      try {
        const node = await startNode(data);
        endOnPanic(scope, () => scope.close());
        if (ports[0] !== undefined) node.attach(ports[0]);
        scope.postMessage({ started: true });
      } catch (cause) {
        scope.postMessage(refusal(cause));
      }
    })();
  },
  { once: true },
);
