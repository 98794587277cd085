import { connect } from "motet";

interface Topics {
  "chat.room": { text: string };
}

const url = new URLSearchParams(location.search).get("server") ?? "";
const list = document.querySelector("#messages");

const bus = await connect<Topics>({ cluster: "fresh", transport: { kind: "centrifuge", url } });
const subscription = bus.subscribe("chat.room", ({ text }) => {
  const item = document.createElement("li");
  item.textContent = text;
  list?.append(item);
});
await subscription.ready;

Object.assign(window, { say: (text: string) => bus.publish("chat.room", { text }) });
