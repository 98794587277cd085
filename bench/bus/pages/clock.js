/* oxlint-disable unicorn/require-post-message-target-origin -- workers, ports and channels, no windows */
// Compares the clocks of two contexts: the answer with the shortest round trip is the truest one.
const ROUNDS = 200;
const CHANNEL = "bench/clock";

export const now = () => performance.timeOrigin + performance.now();

/** Answers others who ask for the clock of this context. */
export function answerClock(name) {
  const channel = new BroadcastChannel(CHANNEL);
  channel.addEventListener("message", ({ data }) => {
    if (data.ask === name) channel.postMessage({ answer: data.number, from: name, atMs: now() });
  });
}

/** What the clock of another context shows minus what this one shows. */
export async function clockAhead(name) {
  const channel = new BroadcastChannel(CHANNEL);
  let best = { tripMs: Infinity, aheadMs: 0 };
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const sentMs = now();
      const atMs = await new Promise((resolve) => {
        channel.onmessage = ({ data }) => {
          if (data.from === name && data.answer === round) resolve(data.atMs);
        };
        channel.postMessage({ ask: name, number: round });
      });
      const tripMs = now() - sentMs;
      if (tripMs < best.tripMs) best = { tripMs, aheadMs: atMs - (sentMs + tripMs / 2) };
    }
  } finally {
    channel.close();
  }
  return best.aheadMs;
}
