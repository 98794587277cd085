import type { TestContext } from "node:test";
import type { PublishOptions } from "motet";
import { BusFixture, type BusTabOptions, type FixtureOptions, type Settled } from "./bus-fixture.ts";
import type { Accepted } from "./checker.ts";
import { until, type Tab } from "./driver/index.ts";
import { startRelay, type Relay, type RelayOptions } from "./relay.ts";

declare global {
  /** Outcomes of publications that a page has started and not awaited. */
  var outcomes: Promise<Settled<unknown>[]>;
}

const ACCEPTED_WITHIN_MS = 10_000;

/** A bus whose pages reach the server through a relay; the test's own publisher goes there directly. */
export interface RelayedBus {
  readonly bus: BusFixture;
  readonly relay: Relay;
  open(options?: BusTabOptions): Promise<Tab>;
  /** One tab after another, each in a process of its own. */
  openMany(count: number, options?: BusTabOptions): Promise<Tab[]>;
}

export async function relayedBus(t: TestContext, options: FixtureOptions & RelayOptions = {}): Promise<RelayedBus> {
  const bus = await BusFixture.start(t, options);
  const relay = await startRelay(bus.server.websocketUrl, options);
  t.after(() => relay.close());
  const through = (given: BusTabOptions = {}): BusTabOptions => ({
    ...given,
    connect: { transport: { kind: "centrifuge", url: relay.url }, ...given.connect },
  });
  return {
    bus,
    relay,
    open: (given) => bus.open(through(given)),
    openMany: (count, given) => bus.openMany(count, through(given)),
  };
}

/** Publishes `{ seq }` from a page and tells how it ended. */
export function publishFrom(tab: Tab, topic: string, seq: number, options: PublishOptions = {}): Promise<Settled<unknown>> {
  return tab.evaluate(
    (name: string, number: number, given: PublishOptions) => B.settle(B.bus.publish(name, { seq: number }, given)),
    topic,
    seq,
    options,
  );
}

/** Starts publications `{ seq }` in one task of a page, without waiting for any. */
export function startPublishing(tab: Tab, topic: string, seqs: readonly number[]): Promise<void> {
  return tab.evaluate((name: string, numbers: readonly number[]) => {
    globalThis.outcomes = Promise.all(numbers.map((seq) => B.settle(B.bus.publish(name, { seq }))));
  }, topic, seqs);
}

/** How the publications of {@link startPublishing} ended. */
export async function outcomesOf(tab: Tab): Promise<(string | null)[]> {
  return (await tab.evaluate(() => globalThis.outcomes)).map(outcome);
}

/** 1 to `count`. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

/** `"ok"`, or the code with which it was rejected. */
export function outcome(settled: Settled<unknown>): string | null {
  return settled.ok ? "ok" : settled.error.code;
}

/** Waits until the server itself has written down this publication. */
export async function accepted(bus: BusFixture, seq: number): Promise<void> {
  await until(`the server accepted ${seq}`, ACCEPTED_WITHIN_MS, () => bus.server.publications().some((one) => one.seq === seq));
}

/** The sequence numbers that the server accepted of a topic, in its order, up to now. */
export async function acceptedOf(bus: BusFixture, topic: string): Promise<number[]> {
  await bus.publisher.connected();
  // The log is written in the order of acceptance: once it holds the marker, it holds all that came before.
  await bus.publisher.publish("marker");
  const log: Accepted[] = await bus.server.publicationsUpTo(bus.publisher.acknowledged);
  return log.filter(({ channel }) => channel === topic).map(({ seq }) => seq);
}

/** An attempt to publish that reached the relay. */
export interface Attempt {
  readonly seq: number;
  readonly connection: number;
  readonly key: string | undefined;
}

/** The attempts to publish to a topic, in the order in which they reached the relay. */
export function attempts(relay: Relay, topic: string): Attempt[] {
  return relay.commands
    .filter(({ kind, channel }) => kind === "publish" && channel === topic)
    .map(({ connection, key, data }) => ({ seq: (data as { seq: number }).seq, connection, key }));
}
