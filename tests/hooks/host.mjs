// A harness in small: loads one plug-in, plays the steps it is given, says what came back.
//
//   node host.mjs PLUGIN KIND STEPS        KIND: pi, omp, opencode, opencode2
//
// A step is {do, event?, session?, busy?, ...}; `busy`: the harness computes so many milliseconds; `do: "hold"` waits for the end of stdin. Each prints one JSON line, and
// a last one says what was written to the terminal. The process is left to end by itself: a plug-in that keeps
// it alive shows in its life.

const [plugin, kind, script] = process.argv.slice(2);
const steps = JSON.parse(script);
const loaded = await import(plugin);
const said = [];
for (const stream of [process.stdout, process.stderr]) {
  const write = stream.write.bind(stream);
  stream.write = (text, ...rest) => (String(text).startsWith("@") ? write(text, ...rest) : said.push(String(text)));
}
process.on("unhandledRejection", (reason) => said.push(`unhandled ${reason}`));
process.on("uncaughtException", (reason) => said.push(`uncaught ${reason}`));

/** Keeps the loop from turning. */
function block(ms) {
  for (const end = performance.now() + ms; performance.now() < end; );
}

const tell = (value) => process.stdout.write("@" + JSON.stringify(value) + "\n");

function context(step) {
  return {
    cwd: step.cwd ?? process.cwd(),
    mode: step.mode ?? "print",
    sessionManager: {
      getSessionId: () => step.session,
      getSessionFile: () => (step.file === null ? undefined : step.file ?? `/sessions/${step.session}.jsonl`),
      getEntries: () => {
        if (step.entries === "broken") throw new Error("broken");
        return step.entries ?? [];
      },
    },
  };
}

async function extension() {
  const handlers = new Map();
  const api = { on: (name, handler) => void handlers.set(name, [...(handlers.get(name) ?? []), handler]) };
  loaded.default(kind === "omp" ? Object.assign(api, { pi: {}, zod: {}, arktype: {} }) : api);
  return async (step) => {
    const results = [];
    for (const handler of handlers.get(step.do) ?? []) {
      results.push(await handler({ type: step.do, ...step.event }, context(step)));
    }
    return { handlers: results.length, results };
  };
}

async function firstGeneration() {
  const client = {
    session: {
      get: async ({ path }) => {
        if (path.id === "ses_lost") throw new Error("no such session");
        if (path.id === "ses_slow") return new Promise(() => {});
        return { data: { id: path.id, parentID: path.id.startsWith("ses_child") ? "ses_parent" : undefined } };
      },
    },
  };
  const hooks = await loaded.default.server({ client, directory: process.cwd() });
  return async (step) => {
    if (step.do === "chat.message") {
      const parts = step.parts ?? [{ id: "prt_0123456789abcdefghijklmnop", type: "text", text: "typed" }];
      await hooks["chat.message"]({ sessionID: step.session }, { message: { id: "msg_1" }, parts });
      return { parts };
    }
    if (step.do === "dispose") return { results: [await hooks.dispose()] };
    return { results: [await hooks.event({ event: { type: step.do, properties: step.event } })] };
  };
}

async function secondGeneration() {
  const hooks = new Map();
  const waiting = [];
  const events = {
    [Symbol.asyncIterator]: () => events,
    next: () => new Promise((resolve) => waiting.push(resolve)),
    return: async () => ({ done: true }),
  };
  const cleanup = await loaded.default.setup({
    location: { directory: process.cwd() },
    session: {
      get: async ({ sessionID }) => ({ parentID: sessionID.startsWith("ses_child") ? "ses_parent" : undefined }),
      hook: async (name, handler) => void hooks.set(name, handler),
    },
    event: { subscribe: () => events },
  });
  return async (step) => {
    if (step.do === "cleanup") return { results: [await cleanup()] };
    if (hooks.has(step.do)) {
      const request = { sessionID: step.session, system: [], ...step.event };
      await hooks.get(step.do)(request);
      return { system: request.system };
    }
    waiting.shift()?.({ done: false, value: { type: step.do, data: { sessionID: step.session } } });
    await new Promise((resolve) => setImmediate(resolve));
    return {};
  };
}

const open = { pi: extension, omp: extension, opencode: firstGeneration, opencode2: secondGeneration };
const play = await open[kind]();
for (const step of steps) {
  if (step.do === "hold") {
    await new Promise((resolve) => process.stdin.on("end", resolve).resume());
    continue;
  }
  const began = performance.now();
  if (step.busy) setImmediate(() => block(step.busy));
  const result = await play(step);
  tell({ ...result, ms: performance.now() - began });
}
tell({ said });
