/** The publishing half of the show, a process of its own so that nothing the show does delays a publication. */
import { connectPublisher } from "@motet/browser-tests/foreign-publisher";
import { earthquakes, prices } from "./series.ts";

export type FeedOrder = "play" | "pause" | "end";
export interface FeedAnswer {
  readonly state: "ready" | "playing" | "paused";
  /** The highest sequence number of each channel that the server acknowledged. */
  readonly acknowledged: readonly (readonly [channel: string, seq: number])[];
}

const [websocketUrl] = process.argv.slice(2);
if (websocketUrl === undefined || process.send === undefined) {
  throw new Error("feed-process is started by the show, with the server's address");
}
const publisher = await connectPublisher(websocketUrl);
const say = (state: FeedAnswer["state"]): void => {
  process.send?.({ state, acknowledged: [...publisher.acknowledged] } satisfies FeedAnswer);
};
const feeds = { quakes: earthquakes(), prices: prices() };

async function obey(order: FeedOrder): Promise<void> {
  switch (order) {
    case "play":
      publisher.pace("quakes", feeds.quakes);
      publisher.pace("prices", feeds.prices);
      say("playing");
      return;
    case "pause":
      await publisher.pause();
      say("paused");
      return;
    case "end":
      await publisher.close();
      process.disconnect();
  }
}

process.on("message", (order: FeedOrder) => void obey(order));
// Without the show there is nobody left to publish for.
process.on("disconnect", () => process.exit());
say("ready");
