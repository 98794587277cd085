/** Entry of the dedicated worker: one node for the page that made it. */
import { endOnPanic, refusal, startNode } from "./node-host.js";
import type { NodeStart, NodeStarted } from "./node-message.js";

const scope = self as unknown as { addEventListener: typeof self.addEventListener; close(): void };
const say = (self.postMessage as (message: NodeStarted) => void).bind(self);

scope.addEventListener(
  "message",
  (event) => {
    const { data, ports } = event as MessageEvent<NodeStart>;
    void (async () => {
      try {
        const node = await startNode(data);
        endOnPanic(scope, () => scope.close());
        if (ports[0] !== undefined) node.attach(ports[0]);
        say({ started: true });
      } catch (cause) {
        say(refusal(cause));
      }
    })();
  },
  { once: true },
);
