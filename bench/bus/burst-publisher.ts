import { WebSocket } from "ws";
import { within } from "@motet/browser-tests/driver";

/** Below the server's limit of 64 KiB for one message of a client. */
const COMMANDS_PER_FRAME = 200;
const PUBLISHED_WITHIN_MS = 60_000;

/**
 * Publishes as fast as the server takes it: the commands are composed before the first one is sent, and many go in
 * one WebSocket message. Sequence numbers start at 1. Resolves when all are acknowledged.
 */
export async function publishBurst(websocketUrl: string, topic: string, count: number, payloadBytes: number): Promise<void> {
  const frames = compose(topic, count, payloadBytes);
  const socket = new WebSocket(websocketUrl, { perMessageDeflate: false });
  try {
    await within(PUBLISHED_WITHIN_MS, `${count} publications are acknowledged`, run(socket, frames, count));
  } finally {
    socket.terminate();
  }
}

function run(socket: WebSocket, frames: readonly string[], count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let answered = 0;
    socket.on("open", () => socket.send('{"id":1,"connect":{}}'));
    socket.on("error", reject);
    socket.on("close", (code) => reject(new Error(`the server closed the burst's connection: ${code}`)));
    socket.on("message", (data) => {
      const text = String(data);
      if (text.includes('"error"')) return reject(new Error(`a publication was refused: ${text.slice(0, 200)}`));
      if (text.includes('"connect"')) for (const frame of frames) socket.send(frame);
      if (text.trim() === "{}") return socket.send("{}");
      answered += text.split("\n").filter((line) => line.includes('"publish"')).length;
      if (answered === count) resolve();
    });
  });
}

function compose(topic: string, count: number, payloadBytes: number): string[] {
  const commands = Array.from({ length: count }, (_, index) => {
    const seq = index + 1;
    const bare = JSON.stringify({ seq, text: "" }).length;
    const data = { seq, text: "x".repeat(Math.max(0, payloadBytes - bare)) };
    return JSON.stringify({ id: index + 2, publish: { channel: topic, data } });
  });
  const frames: string[] = [];
  for (let first = 0; first < count; first += COMMANDS_PER_FRAME) {
    frames.push(commands.slice(first, first + COMMANDS_PER_FRAME).join("\n"));
  }
  return frames;
}
