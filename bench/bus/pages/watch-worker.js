// Watches the worker that loads it: posts, memory, and when its sockets got each message.
import { counts, quietPost, wasmPages } from "./instrument.js";
import { answerClock, now } from "./clock.js";

const name = new URL(self.location.href).searchParams.get("name");
const arrivals = {};

const OriginalSocket = self.WebSocket;
self.WebSocket = class extends OriginalSocket {
  constructor(...given) {
    super(...given);
    // The first listener of all: it runs before the node's own.
    this.addEventListener("message", ({ data }) => {
      const atMs = now();
      for (const [, seq] of String(data).matchAll(/"seq":(\d+)/g)) arrivals[seq] ??= atMs;
    });
  }
};

const answers = { posts: () => counts.posts, wasmPages, arrivals: () => arrivals };
answerClock(`worker:${name}`);
const channel = new BroadcastChannel(`bench/worker/${name}`);
channel.addEventListener("message", ({ data }) => {
  if (data.ask !== undefined) quietPost.call(channel, { answer: data.ask, value: answers[data.ask]() });
});
