/** Frames made by hand, as a hostile page or a build of another day would make them. Shares no code with the product. */
import type { BusFixture } from "./bus-fixture.ts";
import { until, type Tab } from "./driver/index.ts";

/** What a frame is made of: no number is negative, and it is a bigint where it may be beyond 2^53. */
export type Item = number | bigint | string | boolean | null | readonly Item[];

export const PROTOCOL_MAJOR = 1;

/** Numbers of the frames used here, as `crates/motet-cluster/src/frame.rs` has them. */
export const FRAME = {
  hello: 0,
  claim: 1,
  members: 2,
  assign: 3,
  beat: 4,
  leaving: 5,
  report: 7,
  want: 8,
  confirm: 10,
  pulse: 11,
  released: 13,
  join: 14,
  joined: 15,
  data: 21,
  head: 22,
} as const;

/** A frame: its number and its fields. */
export function frame(number: number, ...fields: readonly Item[]): Item {
  return [number, fields];
}

/** The bytes of a packet. */
export function packet(from: bigint, frames: readonly Item[], major: number = PROTOCOL_MAJOR): number[] {
  return cbor([major, from, frames]);
}

/** The encoding of RFC 8949, definite lengths, of what {@link Item} can say. */
export function cbor(item: Item): number[] {
  if (item === null) return [0xf6];
  if (typeof item === "boolean") return [item ? 0xf5 : 0xf4];
  if (typeof item === "string") {
    const bytes = new TextEncoder().encode(item);
    return [...textOf(BigInt(bytes.length)), ...bytes];
  }
  if (typeof item === "object") return [...arrayOf(BigInt(item.length)), ...item.flatMap(cbor)];
  return head(0, BigInt(item));
}

/** Reads back what {@link cbor} writes; numbers as they fit. */
export function decode(bytes: readonly number[]): Item {
  let at = 0;
  const value = (first: number): bigint => {
    const small = first & 31;
    if (small < 24) return BigInt(small);
    const width = 1 << (small - 24);
    at += width;
    return bytes.slice(at - width, at).reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  };
  const item = (): Item => {
    const first = bytes[at] ?? fail();
    at += 1;
    if (first >= 0xf4 && first <= 0xf6) return first === 0xf6 ? null : first === 0xf5;
    const number = value(first);
    switch (first >> 5) {
      case 0:
        return number <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(number) : number;
      case 3:
        at += Number(number);
        return new TextDecoder().decode(Uint8Array.from(bytes.slice(at - Number(number), at)));
      case 4:
        return Array.from({ length: Number(number) }, item);
      default:
        return fail();
    }
  };
  const fail = (): never => {
    throw new Error(`no frame: byte ${at} of ${bytes.join()}`);
  };
  return item();
}

/** First bytes of an item: its kind, and its number or length. */
function head(kind: number, value: bigint): number[] {
  const first = kind << 5;
  if (value < 24n) return [first | Number(value)];
  const width = [1, 2, 4, 8].find((bytes) => value < 1n << BigInt(8 * bytes)) ?? 8;
  const bytes = Array.from({ length: width }, (_, index) => Number((value >> BigInt(8 * (width - 1 - index))) & 255n));
  return [first | (24 + Math.log2(width)), ...bytes];
}

/** The first bytes of an array of so many items. */
export const arrayOf = (length: bigint): number[] => head(4, length);

/** The first bytes of a text of so many bytes. */
export const textOf = (length: bigint): number[] => head(3, length);

/** An identity as it is shown, sixteen hexadecimal digits, as frames carry it. */
export const bits = (hex: string): bigint => BigInt(`0x${hex}`);

/** The authority of a topic's present owner, as frames carry it. */
export interface Authority {
  readonly owner: bigint;
  readonly fence: readonly Item[];
  readonly routeFence: readonly Item[];
}

/** Where a page of the cluster says a topic's authority lies. */
export async function authority(tab: Tab, topic: string): Promise<Authority> {
  const { epoch, owner, generation } = await until("the page knows the topic's owner", 10_000, () =>
    tab.evaluate((name: string) => {
      const { self, routes } = B.bus.snapshot();
      const route = routes.find((row) => row.topic === name && row.state === "subscribed");
      return route && { epoch: self.epoch, owner: route.owner, generation: route.generation };
    }, topic),
  );
  const [incarnation = "", number = ""] = epoch.split("/");
  const fence = [bits(incarnation), BigInt(number)];
  return { owner: bits(owner), fence, routeFence: [fence, generation] };
}

export interface HeardFrame {
  readonly number: Item;
  readonly fields: readonly Item[];
}

/** A page of the same origin that is no member of the cluster and posts on its channels. */
export class Outsider {
  readonly tab: Tab;
  readonly #prefix: string;
  readonly #heard = new Map<string, HeardFrame[]>();

  private constructor(tab: Tab, prefix: string) {
    this.tab = tab;
    this.#prefix = prefix;
  }

  /** Finds the cluster by the names of its locks. */
  static async open(bus: BusFixture): Promise<Outsider> {
    const tab = await bus.browser.open(bus.site.url("/away.html"));
    const prefix = await until("the cluster's locks show its name", 10_000, () =>
      tab.evaluate(async () => {
        const { held = [] } = await navigator.locks.query();
        const lock = held.find(({ name }) => name?.endsWith("/coordinator"));
        return lock?.name?.slice(0, -"/coordinator".length);
      }),
    );
    return new Outsider(tab, prefix);
  }

  get announce(): string {
    return `${this.#prefix}/announce`;
  }

  inbox(node: bigint): string {
    return `${this.#prefix}/inbox/${node.toString(16).padStart(16, "0")}`;
  }

  lock(node: bigint): string {
    return `${this.#prefix}/node/${node.toString(16).padStart(16, "0")}`;
  }

  /** The channel of a topic's messages: one of 16, by the FNV-1a hash of its name. */
  data(topic: string): string {
    const hash = [...new TextEncoder().encode(topic)].reduce(
      (value, byte) => ((value ^ BigInt(byte)) * 0x1_0000_0001_b3n) & 0xffff_ffff_ffff_ffffn,
      0xcbf2_9ce4_8422_2325n,
    );
    return `${this.#prefix}/data/${String.fromCharCode("a".charCodeAt(0) + Number(hash % 16n))}`;
  }

  /** Begins to note the packets on a channel. */
  listen(channel: string): Promise<void> {
    this.#heard.set(channel, []);
    return this.tab.evaluate((name: string) => {
      const fresh: number[][] = [];
      const listener = new BroadcastChannel(name);
      listener.onmessage = ({ data }: MessageEvent<unknown[]>) => fresh.push([...(data[0] as Uint8Array)]);
      Object.assign(globalThis, { [name]: { fresh, listener } });
    }, channel);
  }

  /** The frames heard so far on a channel. */
  async heard(channel: string): Promise<readonly HeardFrame[]> {
    const fresh = await this.tab.evaluate((name: string) =>
      (globalThis as unknown as Record<string, { fresh: number[][] }>)[name]?.fresh.splice(0) ?? [], channel);
    const all = this.#heard.get(channel) ?? [];
    for (const bytes of fresh) {
      const [, , frames] = decode(bytes) as readonly [Item, Item, readonly (readonly [Item, readonly Item[]])[]];
      all.push(...frames.map(([number, fields]) => ({ number, fields })));
    }
    return all;
  }

  /** Posts a packet, in order after those posted on the channel before. */
  post(channel: string, bytes: readonly number[], payloads: readonly unknown[] = []): Promise<void> {
    return this.tab.evaluate(
      (name: string, frames: readonly number[], values: readonly unknown[]) => {
        const known = globalThis as unknown as { channels?: Map<string, BroadcastChannel> };
        known.channels ??= new Map();
        const channel = known.channels.get(name) ?? new BroadcastChannel(name);
        known.channels.set(name, channel);
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel, no window
        channel.postMessage([Uint8Array.from(frames), ...values]);
      },
      channel,
      bytes,
      payloads,
    );
  }
}
