/* oxlint-disable unicorn/require-post-message-target-origin -- workers, ports and channels, no windows */
// The chain that a bus needs at least, with nothing of a bus in it:
// page, worker, BroadcastChannel, owner's worker, server, owner's worker, BroadcastChannel, page.
const UP = "bench/bare/up";
const DOWN = "bench/bare/down";

self.onmessage = ({ data: start }) => {
  if (start.role === "sender") {
    const up = new BroadcastChannel(UP);
    self.onmessage = ({ data }) => up.postMessage(data);
    self.postMessage("started");
    return;
  }
  const down = new BroadcastChannel(DOWN);
  const up = new BroadcastChannel(UP);
  const socket = new WebSocket(start.url);
  up.onmessage = ({ data }) => socket.send(data);
  socket.onmessage = ({ data }) => down.postMessage(data);
  socket.onopen = () => self.postMessage("started");
};
