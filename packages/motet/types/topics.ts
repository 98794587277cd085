/** Compiled, never run: what the types of the package allow and forbid. */
import { connect, MotetError, type Bus, type Gap, type Message, type Position } from "../src/index.js";

interface Price {
  readonly symbol: string;
  readonly price: number;
}

interface Topics {
  "price.feed": Price;
  "chat.room": { readonly text: string };
  "camera.frame": Uint8Array;
}

declare const options: Parameters<typeof connect>[0];

export async function typed(): Promise<void> {
  const bus: Bus<Topics> = await connect<Topics>(options);

  bus.subscribe("price.feed", (price, meta) => {
    const symbol: string = price.symbol;
    const offset: number = meta.offset;
    void [symbol, offset];
    // @ts-expect-error a price has no text
    void price.text;
  });
  // @ts-expect-error no such topic
  bus.subscribe("price.fed", () => undefined);

  await bus.publish("chat.room", { text: "hello" }, { messageId: "1", timestamp: new Date() });
  // @ts-expect-error a room wants text
  await bus.publish("chat.room", { price: 1 });
  await bus.publish("camera.frame", new Uint8Array(8), { transfer: true });

  const outcomes = await bus.publishBatch([
    { topic: "chat.room", payload: { text: "a" } },
    { topic: "price.feed", payload: { symbol: "A", price: 1 }, options: { deadlineMs: 100 } },
  ]);
  for (const outcome of outcomes) if (!outcome.ok) void outcome.error.code;
  // @ts-expect-error topic and payload do not belong together
  await bus.publishBatch([{ topic: "chat.room", payload: { symbol: "A", price: 1 } }]);

  for await (const message of bus.topic("price.feed")) {
    const typedMessage: Message<Price> = message;
    void [typedMessage.payload.price, message.skipped];
    break;
  }
}

export async function untyped(): Promise<void> {
  const bus = await connect(options);
  const subscription = bus.subscribe("anything", (payload) => {
    // @ts-expect-error a payload without a declared type must be checked first
    void payload.text;
  }, { replay: 20, onGap: (gap: Gap) => void gap.reason, signal: new AbortController().signal });
  const position: Position = await subscription.ready;
  void position.epoch;
  subscription();

  const stop: () => void = bus.status.subscribe((status) => {
    if (status.state === "failed") void status.error?.nextStep;
    // @ts-expect-error no such state
    if (status.state === "broken") void 0;
  });
  stop();
  bus.onError(({ source, error }) => void [source, error.code === "CLOSED"]);
  const nodes: readonly { readonly nodeId: string }[] = bus.snapshot().nodes;
  void nodes;
  await bus[Symbol.asyncDispose]();
}

export function errors(thrown: unknown): string {
  if (!(thrown instanceof MotetError)) return "other";
  // @ts-expect-error codes are a closed set
  if (thrown.code === "NO_SUCH_CODE") return "never";
  return thrown.code;
}

// @ts-expect-error a transport is needed
void connect({ cluster: "prices" });
// @ts-expect-error no such host
void connect({ ...options, host: "service-worker" });
