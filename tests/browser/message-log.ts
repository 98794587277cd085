/** What handlers have written down, for tests that name every message. */
import type { BusFixture } from "./bus-fixture.ts";
import type { GapEntry, MessageEntry } from "./checker.ts";
import type { Tab } from "./driver/index.ts";

const RECEIVED_WITHIN_MS = 10_000;

export async function publishMany(bus: BusFixture, topic: string, count: number, payload: object = {}): Promise<void> {
  for (let index = 0; index < count; index += 1) await bus.publisher.publish(topic, payload);
}

/** Waits until a handler has the message with this number. */
export async function reached(tab: Tab, seq: number, key: string): Promise<void> {
  await tab.waitFor(`${key} has message ${seq}`, RECEIVED_WITHIN_MS, (last: number, handler: string) =>
    B.log.some((entry) => entry.kind === "message" && entry.seq === last && entry.handler === handler), seq, key);
}

/** All that a handler has, once it has the message with this number. */
export async function messagesUpTo(tab: Tab, seq: number, key: string): Promise<MessageEntry[]> {
  await reached(tab, seq, key);
  return tab.evaluate((handler: string) =>
    B.log.filter((entry): entry is MessageEntry => entry.kind === "message" && entry.handler === handler), key);
}

export const gaps = (tab: Tab): Promise<GapEntry[]> =>
  tab.evaluate(() => B.log.filter((entry): entry is GapEntry => entry.kind === "gap"));

export const seqs = (entries: readonly MessageEntry[]): number[] => entries.map(({ seq }) => seq);

export const replayed = (entries: readonly MessageEntry[]): number[] =>
  seqs(entries.filter((entry) => entry.replayed === true));

/** The whole numbers from one to another. */
export const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
