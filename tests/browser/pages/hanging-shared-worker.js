import "./motet/shared-worker.js";

new BroadcastChannel("mortal").onmessage = ({ data }) => {
  const until = data === "hang" ? Infinity : 0;
  while (performance.now() < until);
};
