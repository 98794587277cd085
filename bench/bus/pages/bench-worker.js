// The package's worker, watched. Both are static imports: a message that comes while a module waits is lost.
import "./watch-worker.js";
import "./motet/worker.js";
