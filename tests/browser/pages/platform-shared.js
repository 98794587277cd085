const now = () => performance.timeOrigin + performance.now();

onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data.action === "ping") port.postMessage({ what: "pong", atMs: now() });
    if (data.action === "lock") {
      navigator.locks.request(data.name, () => {
        port.postMessage({ what: "granted", lock: data.name, atMs: now() });
        return new Promise(() => {});
      });
    }
  };
};
