// Counts posts and finds WebAssembly memories, in a page or a worker. Loaded before the code it watches.
export const counts = { posts: 0 };
const memories = [];

const counted = (prototype) => {
  const { postMessage } = prototype;
  prototype.postMessage = function (...given) {
    counts.posts += 1;
    return postMessage.apply(this, given);
  };
  return postMessage;
};

/** Posts without being counted. */
export const quietPost = counted(BroadcastChannel.prototype);
counted(MessagePort.prototype);
if (typeof Worker === "function") counted(Worker.prototype);
if (typeof DedicatedWorkerGlobalScope === "function") counted(DedicatedWorkerGlobalScope.prototype);

const note = (instance) => {
  for (const exported of Object.values(instance.exports)) {
    if (exported instanceof WebAssembly.Memory) memories.push(exported);
  }
  return instance;
};
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (...given) => {
  const result = await instantiate(...given);
  note(result.instance ?? result);
  return result;
};
// A proxy, so that `instanceof` goes on working.
WebAssembly.Instance = new Proxy(WebAssembly.Instance, {
  construct: (target, given) => note(new target(...given)),
});

export const wasmPages = () => memories.reduce((sum, memory) => sum + memory.buffer.byteLength / 65_536, 0);
