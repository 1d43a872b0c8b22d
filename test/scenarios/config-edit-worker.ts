import { addAgentAt } from "../../src/daemon/local-agents.ts";

/** Adds one agent after another until it is killed: `config-edit-worker.ts HOME NAME`. Says each once it is there for good. */
const [, , home, name] = process.argv;
for (let count = 0; ; count++) {
  const id = `${name}-${count}`;
  await addAgentAt({ home }, { id, keys: {}, isDefault: false, bindings: [] });
  process.stdout.write(`${id}\n`);
}
