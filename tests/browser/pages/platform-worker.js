const now = () => performance.timeOrigin + performance.now();
const note = (what, detail) => postMessage({ what, atMs: now(), ...detail });

const actions = {
  lock({ name, steal = false }) {
    navigator.locks
      .request(name, { steal }, () => {
        note("granted", { lock: name });
        return new Promise(() => {});
      })
      .catch((error) => note("lost", { lock: name, error: error.name }));
  },
  listen({ name }) {
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }) => note("channel", { data });
    note("listening", { name });
  },
  ticks({ intervalMs }) {
    let count = 0;
    setInterval(() => {
      count += 1;
      note("tick", { count });
    }, intervalMs);
  },
};

onmessage = ({ data }) => actions[data.action](data);
