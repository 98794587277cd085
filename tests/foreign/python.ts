import { existsSync } from "node:fs";
import { resolve } from "node:path";

/** The Python that has the packages of requirements.txt. */
export function python(): string {
  const path = process.env.MOTET_PYTHON ?? resolve(import.meta.dirname, "../../target/python/bin/python");
  if (!existsSync(path)) {
    throw new Error(`${path} is missing: run python3 -m venv target/python and target/python/bin/pip install -r tests/foreign/requirements.txt`);
  }
  return path;
}
