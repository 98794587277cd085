/** Async iteration over a topic, without a browser: who gets which message, and how it ends. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MotetError, Topic, type Handler, type IterateOptions, type MessageMeta, type Subscription } from "motet";

const META: MessageMeta = { topic: "t", offset: 1, position: { epoch: "e", offset: 1 }, replayed: false, size: 1 };

/** A topic whose messages a test sends. */
function topic(): { topic: Topic<number>; send(payload: number): void; fail(error: MotetError): void; subscriptions: number } {
  let handler: Handler<number> | undefined;
  let over: ((error: MotetError) => void) | undefined;
  const found = {
    subscriptions: 0,
    topic: new Topic<number>("t", {
      subscribe: (given, _options, ended) => {
        [handler, over] = [given, ended];
        found.subscriptions += 1;
        const end = (): void => {
          found.subscriptions -= 1;
          ended(new MotetError("ABORTED"));
        };
        return end as unknown as Subscription;
      },
      publish: () => Promise.resolve(),
    }),
    send: (payload: number) => handler?.(payload, META),
    fail: (error: MotetError) => over?.(error),
  };
  return found;
}

const payloads = async (results: readonly Promise<IteratorResult<{ payload: number }, undefined>>[]): Promise<unknown[]> =>
  (await Promise.all(results)).map(({ done, value }) => (done === true ? "done" : value.payload));

describe("async iteration", () => {
  test("serves calls of next() that wait at the same time in their order", async () => {
    const { topic: one, send } = topic();
    const loop = one.messages();
    const asked = [loop.next(), loop.next(), loop.next()];
    send(1);
    // Asked between a message and the turn of those who waited for it.
    asked.push(loop.next());
    for (const payload of [2, 3, 4]) send(payload);
    assert.deepEqual(await payloads(asked), [1, 2, 3, 4]);
  });

  test("ends every call that waits when it is returned, and drops what has not been asked for", async () => {
    const found = topic();
    const loop = found.topic.messages();
    const asked = [loop.next(), loop.next()];
    assert.deepEqual(await loop.return?.(), { done: true, value: undefined });
    assert.deepEqual(await payloads([...asked, loop.next()]), ["done", "done", "done"]);
    assert.equal(found.subscriptions, 0);
    const other = found.topic.messages();
    found.send(1);
    await other.return?.();
    assert.deepEqual(await payloads([other.next()]), ["done"]);
  });

  test("hands out what came before a refusal, tells the refusal once, and is over", async () => {
    const found = topic();
    const loop = found.topic.messages();
    found.send(1);
    found.fail(new MotetError("SUBSCRIBE_REJECTED"));
    assert.deepEqual(await payloads([loop.next()]), [1]);
    const [first, second] = [loop.next(), loop.next()];
    await assert.rejects(first, { code: "SUBSCRIBE_REJECTED" });
    assert.deepEqual(await payloads([second]), ["done"]);
    assert.equal(found.subscriptions, 0);
  });

  test("counts what a slow loop leaves out, and refuses a limit that is none", async () => {
    const { topic: one, send } = topic();
    const loop = one.messages({ limit: 2 });
    for (const payload of [1, 2, 3, 4, 5]) send(payload);
    const [first, second] = [await loop.next(), await loop.next()];
    assert.deepEqual([first.value?.payload, first.value?.skipped], [4, 3]);
    assert.deepEqual([second.value?.payload, second.value?.skipped], [5, 0]);
    for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, "9"]) {
      assert.throws(() => one.messages({ limit } as IterateOptions), { code: "CONFIG_INVALID" }, String(limit));
    }
  });
});
