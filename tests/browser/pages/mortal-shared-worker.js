// The library's SharedWorker, which a test can end without a word.
import "./motet/shared-worker.js";

new BroadcastChannel("mortal").onmessage = () => self.close();
