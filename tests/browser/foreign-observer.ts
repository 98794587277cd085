import type { TestContext } from "node:test";
import { Centrifuge } from "centrifuge";
import { WebSocket } from "ws";
import { nowMs, until, within } from "./driver/index.ts";
import { OPEN_CONFIG } from "./server.ts";

/** Somebody who came to a channel at the server, or left it. */
export interface Passage {
  readonly kind: "join" | "leave";
  readonly atMs: number;
}

/**
 * Asks the server who is subscribed, with the npm client `centrifuge`, which knows nothing of Motet. The server
 * must have {@link OBSERVABLE_CONFIG}.
 */
export interface ForeignObserver {
  /** Server subscriptions of a channel, the observer's own not counted. */
  subscriptions(channel: string): Promise<number>;
  /** Begins to note who comes and goes; resolves once the server has begun to tell. */
  watch(channel: string): Promise<readonly Passage[]>;
}

/** Anybody may do everything, histories are kept, and the server tells who is subscribed. */
export const OBSERVABLE_CONFIG = `${OPEN_CONFIG}presence = true
join_leave = true
`;

const ANSWER_WITHIN_MS = 10_000;

/** An observer that goes with the test. */
export async function observe(t: TestContext, websocketUrl: string): Promise<ForeignObserver> {
  const client = new Centrifuge(websocketUrl, { websocket: WebSocket, timeout: ANSWER_WITHIN_MS });
  let ownId = "";
  client.on("connected", ({ client: id }) => (ownId = id));
  client.connect();
  t.after(async () => {
    client.disconnect();
    await until("the observer disconnects", ANSWER_WITHIN_MS, () => client.state === "disconnected");
  });
  await within(ANSWER_WITHIN_MS, "the observer connects", client.ready(ANSWER_WITHIN_MS));
  const watched = new Set<string>();
  return {
    subscriptions: async (channel) => {
      const { numClients } = await client.presenceStats(channel);
      return numClients - (watched.has(channel) ? 1 : 0);
    },
    watch: async (channel) => {
      const passages: Passage[] = [];
      const subscription = client.newSubscription(channel, { joinLeave: true });
      const note = (kind: Passage["kind"], id: string): void => {
        if (id !== ownId) passages.push({ kind, atMs: nowMs() });
      };
      subscription.on("join", ({ info }) => note("join", info.client));
      subscription.on("leave", ({ info }) => note("leave", info.client));
      subscription.subscribe();
      await within(ANSWER_WITHIN_MS, `the observer watches ${channel}`, subscription.ready(ANSWER_WITHIN_MS));
      watched.add(channel);
      return passages;
    },
  };
}
