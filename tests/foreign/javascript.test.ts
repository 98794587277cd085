import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Centrifuge as JsonCentrifuge, type Options, type PublicationContext, type Subscription } from "centrifuge";
import { Centrifuge as ProtobufCentrifuge } from "centrifuge/build/protobuf";
import { WebSocket } from "ws";
import { Server, token } from "./server.ts";

// Both builds have the same interface; their types differ only in who declares them.
type Client = JsonCentrifuge;

let server: Server;
before(async () => {
  server = await Server.start();
});
after(async () => {
  await server[Symbol.asyncDispose]();
});

const encodings = {
  JSON: {
    create: (options: Partial<Options>): Client => new JsonCentrifuge(server.websocketUrl, { websocket: WebSocket, ...options }),
    pack: (value: unknown): unknown => value,
    unpack: (data: unknown): unknown => data,
  },
  Protobuf: {
    create: (options: Partial<Options>): Client => new ProtobufCentrifuge(server.websocketUrl, { websocket: WebSocket, ...options }) as unknown as Client,
    pack: (value: unknown): unknown => new TextEncoder().encode(JSON.stringify(value)),
    unpack: (data: unknown): unknown => JSON.parse(new TextDecoder().decode(data as Uint8Array)),
  },
};

function event<T>(source: Client | Subscription, name: string): Promise<T> {
  return new Promise((resolve) => {
    (source as unknown as { once(name: string, handler: (context: T) => void): void }).once(name, resolve);
  });
}

/** Collects publications; `take(n)` waits for the next n. */
function publications(subscription: Subscription) {
  const arrived: PublicationContext[] = [];
  let wake: (() => void) | undefined;
  subscription.on("publication", (context) => {
    arrived.push(context);
    wake?.();
  });
  return {
    async take(count: number): Promise<PublicationContext[]> {
      while (arrived.length < count) await new Promise<void>((resolve) => { wake = resolve; });
      return arrived.splice(0, count);
    },
    get waiting(): number {
      return arrived.length;
    },
  };
}

async function until(condition: () => Promise<boolean>, withinMs: number): Promise<void> {
  const end = performance.now() + withinMs;
  while (!(await condition())) {
    assert.ok(performance.now() < end, "the condition did not come true in time");
  }
}

for (const [name, encoding] of Object.entries(encodings)) {
  describe(`npm centrifuge 5.8.0 over ${name}`, () => {
    test("connects, subscribes, publishes, hears its own publication with its info", async () => {
      const client = encoding.create({});
      const connected = event<{ client: string; transport: string }>(client, "connected");
      const subscription = client.newSubscription(`echo-${name}`);
      const heard = publications(subscription);
      subscription.subscribe();
      client.connect();
      const context = await connected;
      assert.equal(context.client.length, 36);
      await subscription.ready(5_000);
      await subscription.publish(encoding.pack({ text: "hello <&> \u2028 \ud83c\udfb5", n: 1.5 }));
      const [publication] = await heard.take(1);
      assert.deepEqual(encoding.unpack(publication?.data), { text: "hello <&> \u2028 \ud83c\udfb5", n: 1.5 });
      assert.equal(publication?.offset, 1);
      assert.equal(publication?.info?.client, context.client);
      client.disconnect();
    });

    test("presence counts exactly and is 0 within two seconds after the disconnect", async () => {
      const channel = `presence-${name}`;
      const count = async () => Number((await server.api("presence_stats", { channel }))["num_clients"]);
      for (let round = 0; round < 10; round += 1) {
        const client = encoding.create({});
        const subscription = client.newSubscription(channel);
        subscription.subscribe();
        client.connect();
        await subscription.ready(5_000);
        const stats = await subscription.presenceStats();
        assert.deepEqual({ ...stats }, { numClients: 1, numUsers: 1 });
        assert.equal(Object.keys((await subscription.presence()).clients).length, 1);
        client.disconnect();
        await until(async () => (await count()) === 0, 2_000);
      }
    });

    test("unsubscribes and subscribes ten times without an error", async () => {
      const client = encoding.create({});
      const errors: unknown[] = [];
      client.on("error", (context) => errors.push(context));
      client.connect();
      const subscription = client.newSubscription(`churn-${name}`);
      subscription.on("error", (context) => errors.push(context));
      for (let round = 0; round < 10; round += 1) {
        subscription.subscribe();
        await subscription.ready(5_000);
        subscription.unsubscribe();
      }
      subscription.subscribe();
      await subscription.ready(5_000);
      assert.deepEqual(errors, []);
      client.disconnect();
    });

    test("an unsubscribe right behind the connect leaves nobody in the channel", async () => {
      const channel = `race-${name}`;
      const client = encoding.create({});
      const subscription = client.newSubscription(channel);
      subscription.subscribe();
      client.connect();
      subscription.unsubscribe();
      await client.ready(5_000);
      await until(async () => Number((await server.api("presence_stats", { channel }))["num_clients"]) === 0, 2_000);
      client.disconnect();
    });

    test("reads history and gets error 108 for an rpc", async () => {
      const client = encoding.create({});
      const subscription = client.newSubscription(`history-${name}`);
      subscription.subscribe();
      client.connect();
      await subscription.ready(5_000);
      for (const n of [1, 2, 3]) await subscription.publish(encoding.pack({ n }));
      const page = await subscription.history({ limit: 2, reverse: true });
      assert.deepEqual(page.publications.map((one) => Number(one.offset)), [3, 2]);
      const after = await subscription.history({ limit: 10, since: { offset: 1, epoch: page.epoch } });
      assert.deepEqual(after.publications.map((one) => encoding.unpack(one.data)), [{ n: 2 }, { n: 3 }]);
      await assert.rejects(client.rpc("anything", encoding.pack({})), (error: { code: number }) => error.code === 108);
      client.disconnect();
    });

    test("recovers what it missed while it was disconnected", async () => {
      const channel = `recovery-${name}`;
      const client = encoding.create({});
      const subscription = client.newSubscription(channel);
      const heard = publications(subscription);
      subscription.subscribe();
      client.connect();
      await subscription.ready(5_000);
      await server.api("publish", { channel, data: { n: 1 } });
      await heard.take(1);
      client.disconnect();
      for (const n of [2, 3, 4]) await server.api("publish", { channel, data: { n } });
      const subscribed = event<{ wasRecovering: boolean; recovered: boolean }>(subscription, "subscribed");
      client.connect();
      const context = await subscribed;
      assert.ok(context.wasRecovering && context.recovered);
      const missed = await heard.take(3);
      assert.deepEqual(missed.map((one) => encoding.unpack(one.data)), [{ n: 2 }, { n: 3 }, { n: 4 }]);
      client.disconnect();
    });

    test("a gap larger than the history is told as not recovered", async () => {
      const channel = `smallhistory:gap-${name}`;
      const client = encoding.create({});
      const subscription = client.newSubscription(channel);
      const heard = publications(subscription);
      subscription.subscribe();
      client.connect();
      await subscription.ready(5_000);
      await server.api("publish", { channel, data: { n: 0 } });
      await heard.take(1);
      client.disconnect();
      for (const n of [1, 2, 3, 4]) await server.api("publish", { channel, data: { n } });
      const subscribed = event<{ wasRecovering: boolean; recovered: boolean }>(subscription, "subscribed");
      client.connect();
      const context = await subscribed;
      assert.ok(context.wasRecovering && !context.recovered);
      assert.equal(heard.waiting, 0);
      client.disconnect();
    });

    test("a backlog of several megabytes is recovered, a longer one is told as not recovered and read page by page", async () => {
      const channel = `long-${name}`;
      const client = encoding.create({});
      const subscription = client.newSubscription(channel);
      const heard = publications(subscription);
      const text = "x".repeat(500_000);
      subscription.subscribe();
      client.connect();
      await subscription.ready(5_000);
      client.disconnect();
      for (const n of [1, 2, 3, 4, 5, 6]) await server.api("publish", { channel, data: { n, text } });
      const subscribed = event<{ wasRecovering: boolean; recovered: boolean }>(subscription, "subscribed");
      client.connect();
      assert.ok((await subscribed).recovered);
      const missed = await heard.take(6);
      assert.deepEqual(missed.map((one) => encoding.unpack(one.data)), [1, 2, 3, 4, 5, 6].map((n) => ({ n, text })));
      client.disconnect();
      for (let n = 7; n <= 20; n += 1) await server.api("publish", { channel, data: { n, text } });
      const again = event<{ wasRecovering: boolean; recovered: boolean }>(subscription, "subscribed");
      client.connect();
      const context = await again;
      assert.ok(context.wasRecovering && !context.recovered);
      const read = [6];
      for (let last = 6, top = 20; last < top; ) {
        const page = await subscription.history({ limit: 100, since: { offset: last, epoch: "" } });
        top = page.offset;
        read.push(...page.publications.map((one) => one.offset ?? 0));
        last = read.at(-1) ?? top;
      }
      assert.deepEqual(read, Array.from({ length: 15 }, (_, index) => index + 6));
      client.disconnect();
    });

    test("connection and subscription tokens open what they name, and forged ones nothing", async () => {
      const client = encoding.create({ token: token({ sub: "42", info: { name: "Ann" } }) });
      const subscription = client.newSubscription("private:a", {
        getToken: async (context) => token({ sub: "42", channel: context.channel }),
      });
      subscription.subscribe();
      client.connect();
      await subscription.ready(5_000);
      const presence = (await server.api("presence", { channel: "private:a" }))["presence"];
      assert.deepEqual(Object.values(presence as object).map((one) => [one.user, one.conn_info]), [["42", { name: "Ann" }]]);
      const refused = client.newSubscription("private:b");
      const unsubscribed = event<{ code: number }>(refused, "unsubscribed");
      refused.subscribe();
      assert.equal((await unsubscribed).code, 103);
      client.disconnect();

      const forged = encoding.create({ token: `${token({ sub: "42" })}x` });
      const disconnected = event<{ code: number }>(forged, "disconnected");
      forged.connect();
      assert.equal((await disconnected).code, 3500);
    });

    test("an expiring token is refreshed by the client", async () => {
      let asked = 0;
      let askedAgain: (() => void) | undefined;
      const refreshed = new Promise<void>((resolve) => {
        askedAgain = resolve;
      });
      const client = encoding.create({
        getToken: async () => {
          asked += 1;
          if (asked === 2) askedAgain?.();
          return token({ sub: "42", exp: Math.floor(Date.now() / 1_000) + 5 });
        },
      });
      client.connect();
      await refreshed;
      assert.equal(client.state, "connected");
      client.disconnect();
    });

    test("server-side subscriptions come with the token and by the API", async () => {
      const user = `side-${name}`;
      const client = encoding.create({ token: token({ sub: user, channels: ["news"] }) });
      const channels: string[] = [];
      client.on("subscribed", (context) => channels.push(context.channel));
      client.connect();
      await client.ready(5_000);
      const published = event<{ channel: string; data: unknown }>(client, "publication");
      await server.api("publish", { channel: "news", data: { n: 1 } });
      const publication = await published;
      assert.deepEqual([publication.channel, encoding.unpack(publication.data)], ["news", { n: 1 }]);
      const subscribed = event<{ channel: string }>(client, "subscribed");
      await server.api("subscribe", { user, channel: "alerts" });
      assert.equal((await subscribed).channel, "alerts");
      const disconnected = event<{ code: number }>(client, "disconnected");
      await server.api("disconnect", { user });
      assert.equal((await disconnected).code, 3503);
      assert.deepEqual(channels, ["news", "alerts"]);
    });
  });
}

test("a JSON and a Protobuf client hear each other", async () => {
  const [json, protobuf] = [encodings.JSON.create({}), encodings.Protobuf.create({})];
  const heard = [json, protobuf].map((client) => {
    const subscription = client.newSubscription("mixed");
    const arrived = publications(subscription);
    subscription.subscribe();
    client.connect();
    return { subscription, arrived };
  });
  await Promise.all(heard.map(({ subscription }) => subscription.ready(5_000)));
  await heard[0]?.subscription.publish({ from: "json" });
  await heard[1]?.subscription.publish(encodings.Protobuf.pack({ from: "protobuf" }));
  const expected = [{ from: "json" }, { from: "protobuf" }];
  const byJson = (await heard[0]?.arrived.take(2))?.map((one) => one.data);
  const byProtobuf = (await heard[1]?.arrived.take(2))?.map((one) => encodings.Protobuf.unpack(one.data));
  assert.deepEqual([byJson, byProtobuf], [expected, expected]);
  json.disconnect();
  protobuf.disconnect();
});

test("a payload that is not JSON ends a JSON client's subscription to its channel and no other", async () => {
  const [json, protobuf] = [encodings.JSON.create({}), encodings.Protobuf.create({})];
  const [binary, text] = [json.newSubscription("binary"), json.newSubscription("text")];
  const raw = protobuf.newSubscription("binary");
  const [heardText, heardRaw] = [publications(text), publications(raw)];
  for (const subscription of [binary, text, raw]) subscription.subscribe();
  json.connect();
  protobuf.connect();
  await Promise.all([binary, text, raw].map((subscription) => subscription.ready(5_000)));
  const ended = event<{ code: number; reason: string }>(binary, "unsubscribed");
  await raw.publish(new Uint8Array([255, 254, 253]));
  const context = await ended;
  assert.equal(context.code, 2000);
  assert.match(context.reason, /Protobuf/);
  const [bytes] = await heardRaw.take(1);
  assert.deepEqual([...new Uint8Array(bytes?.data as Uint8Array)], [255, 254, 253]);
  await server.api("publish", { channel: "text", data: { still: "here" } });
  assert.deepEqual((await heardText.take(1))[0]?.data, { still: "here" });
  await assert.rejects(binary.history({ limit: 10 }), "an ended subscription reads no history");
  json.disconnect();
  protobuf.disconnect();
});

test("a stopping server closes with 3001 and its clients go on trying", async () => {
  const own = await Server.start();
  const client = new JsonCentrifuge(own.websocketUrl, { websocket: WebSocket });
  client.connect();
  await client.ready(5_000);
  const connecting = event<{ code: number }>(client, "connecting");
  await own[Symbol.asyncDispose]();
  assert.equal((await connecting).code, 3001);
  client.disconnect();
});
