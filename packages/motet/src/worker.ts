/** Entry of the dedicated worker: one node for the page that made it. */
import { endOnPanic, load, refusal, startNode } from "./node-host.js";
import type { NodeStart, NodeStarted } from "./node-message.js";

const scope = self as unknown as { addEventListener: typeof self.addEventListener; close(): void };
const say = (self.postMessage as (message: NodeStarted) => void).bind(self);

scope.addEventListener(
  "message",
  (event) => {
    const { data, ports } = event as MessageEvent<NodeStart>;
    void (async () => {
      try {
        // Loading is one long task and asks for nothing; a worker that its page ends meanwhile is gone before the
        // next task, in which the node asks for its locks. What an ended worker had still asked for would cost the
        // page its place in the back/forward cache.
        await load(data);
        await new Promise((resolve) => setTimeout(resolve, 0));
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
