/**
 * memd in OMP: tells memd of sessions, and puts before the model what memd has to tell.
 *
 * The text goes in as a custom message right after the prompt. OMP stores it, so the model has it in every later
 * request and after a resume, and it is delivered once.
 *
 * In a run no start is reported: the question for the context links the session, once its id is certain.
 * Nothing is reported of a session without a file, nor of a sub-agent, which runs in the same process with a
 * session of its own that begins with a `session_init` entry.
 *
 * Pi loads what lies in the same kind of folder with the same calls; this file then does nothing, as the one
 * for Pi does nothing in OMP.
 *
 * source  OMP 18.2.3, run 2026-11
 */

import fs from "node:fs";
import net from "node:net";
import os from "node:os";

const HARNESS = "omp";

// ------------------------------------------------------------------ asking memd
// The same in each of these files: a harness loads one file, so each is whole by itself.

const CONNECT_MS = 250; // a full backlog: try again this long
const REPORT_MS = 250;
const CONTEXT_MS = 2000;
const LIMIT_STEPS = 10;
const SILENT_MS = 1000; // longer than this no peer of memd is silent that could speak
const MAX_ANSWER_BYTES = 8 << 20;
const MAX_REMEMBERED = 1000; // sessions of one long-lived process
const MAX_TRIES = 2; // of one session to get its context from a memd that does not answer

function homeDir() {
  const home = process.env.HOME;
  return home && home.startsWith("/") ? home.replace(/\/+$/, "") || "/" : os.userInfo().homedir;
}

function stateDir() {
  if (process.platform === "darwin") return homeDir() + "/Library/Application Support/memd/state";
  const chosen = process.env.XDG_STATE_HOME;
  if (chosen && chosen.startsWith("/")) return chosen.replace(/\/+$/, "") + "/memd";
  return homeDir() + "/.local/state/memd";
}

/** Where memd listens when nobody says otherwise. */
function computedSocket() {
  const runtime = process.env.XDG_RUNTIME_DIR;
  if (runtime && runtime.startsWith("/")) {
    const path = runtime.replace(/\/+$/, "") + "/memd/memd.sock";
    if (Buffer.byteLength(path) <= (process.platform === "darwin" ? 103 : 107)) return path;
  }
  let hash = 0xcbf29ce484222325n; // FNV-1a, 64 bits
  for (const byte of Buffer.from(stateDir())) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return `/tmp/memd-${process.getuid()}-${hash.toString(16).padStart(16, "0")}/memd.sock`;
}

/** The address that the running memd wrote down; empty when there is none that can be believed. */
function publishedSocket() {
  let fd;
  try {
    fd = fs.openSync(stateDir() + "/address", fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
    if (fs.fstatSync(fd).uid !== process.getuid()) return "";
    const held = Buffer.alloc(4096);
    const path = held.subarray(0, fs.readSync(fd, held, 0, held.length, 0));
    const text = path.toString("utf8");
    const isPath = text.startsWith("/") && !text.includes("\0") && Buffer.from(text).equals(path);
    return isPath ? text : "";
  } catch {
    return "";
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

/** memd's socket, if it lies in a real folder that only this user can enter; else empty. */
function findSocket() {
  const path = process.env.MEMD_SOCKET || publishedSocket() || computedSocket();
  if (path.includes("/")) {
    const folder = fs.lstatSync(path.slice(0, path.lastIndexOf("/")) || "/");
    if (!folder.isDirectory() || folder.mode & 0o077 || folder.uid !== process.getuid()) return "";
  }
  return path;
}

/**
 * Send memd one event of this process and give its answer: a text, or undefined when there is none in time.
 * Never throws, says nothing, and keeps no process alive longer than `limitMs`
 * of a loop that turns.
 */
function ask(event, stdin, runId, limitMs) {
  return new Promise((resolve) => {
    let socket;
    let isOver = false;
    const finish = (answer) => {
      if (isOver) return;
      isOver = true;
      clearTimeout(limit);
      if (socket) socket.destroy();
      resolve(answer);
    };
    const isAwaited = event === "context" || event === "end"; // else nothing of it keeps the process alive
    const later = (work, ms) => {
      const timer = setTimeout(work, ms);
      if (!isAwaited) timer.unref();
      return timer;
    };
    // counted in steps: what came while the harness kept its own loop busy is heard before the time is over
    let stepsLeft = LIMIT_STEPS;
    let limit;
    const step = () => {
      if (stepsLeft === 0) return finish(undefined);
      stepsLeft -= 1;
      limit = later(step, limitMs / LIMIT_STEPS);
    };
    step();
    const startedAt = Date.now();
    const connect = (path, message) => {
      const parts = [];
      let held = 0;
      let head = 0; // bytes of the reply's first line
      let wanted = 0; // and of the whole reply, once that line is there
      let isAgain = false;
      const dialledAt = Date.now();
      // memd drops a peer that says nothing for two seconds: so long the harness did not let us speak
      const isDropped = () => !held && Date.now() - dialledAt > SILENT_MS;
      const again = () => {
        isAgain = true;
        later(() => isOver || connect(path, message), 10);
      };
      socket = net.createConnection({ path });
      if (!isAwaited) socket.unref();
      socket.on("connect", () => socket.write(message));
      socket.on("error", (reason) => {
        const isFull = reason.code === "EAGAIN" && Date.now() - startedAt < CONNECT_MS;
        if (isFull || isDropped()) again();
        else finish(undefined);
      });
      socket.on("close", () => isAgain || (isDropped() ? again() : finish(undefined)));
      socket.on("data", (bytes) => {
        parts.push(bytes);
        held += bytes.length;
        if (!wanted) {
          const start = Buffer.concat(parts);
          const line = start.indexOf(10);
          if (line < 0 && held <= 64) return;
          const words = /^memd1 t (\d{1,9})$/.exec(start.toString("latin1", 0, Math.max(line, 0)));
          if (!words || Number(words[1]) > MAX_ANSWER_BYTES) return finish(undefined);
          head = line + 1;
          wanted = head + Number(words[1]);
        }
        if (held < wanted) return;
        const body = Buffer.concat(parts).subarray(head, wanted);
        finish(body.subarray(0, 2).toString("latin1") === "0\n" ? body.subarray(2).toString("utf8") : undefined);
      });
    };
    try {
      const path = findSocket();
      if (!path) return finish(undefined);
      const fields = [HARNESS, event, stdin.cwd || process.cwd(), runId, String(process.pid)];
      if (fields.some((field) => field.includes("\0"))) return finish(undefined);
      const body = Buffer.from(fields.map((field) => field + "\0").join("") + JSON.stringify(stdin));
      connect(path, Buffer.concat([Buffer.from(`memd1 h ${body.length}\n`), body]));
    } catch {
      finish(undefined);
    }
  });
}

/** Whatever goes wrong inside, the harness sees nothing of it. */
function quietly(handler) {
  return async (...given) => {
    try {
      return await handler(...given);
    } catch {
      return undefined;
    }
  };
}

/** What this process has done for each session; it outlives a reload of this file. */
function memory(session) {
  const key = Symbol.for("memd.sessions." + HARNESS);
  const all = (globalThis[key] ??= new Map());
  let known = all.get(session);
  if (!known) {
    known = { isTold: false, tries: 0 };
    all.set(session, known);
    if (all.size > MAX_REMEMBERED) all.delete(all.keys().next().value);
  }
  return known;
}

/** What is to stand before the model of this session; asked for once, empty ever after. */
async function contextOf(session, stdin, runId) {
  const known = memory(session);
  if (known.isTold || known.tries >= MAX_TRIES) return "";
  known.isTold = true; // a second prompt while the answer is on its way asks nothing
  const askedAt = Date.now();
  const told = await ask("context", stdin, runId, CONTEXT_MS);
  if (told === undefined) {
    known.isTold = false;
    if (Date.now() - askedAt > CONTEXT_MS / 4) known.tries += 1; // away costs nothing, hung costs all of it
  }
  return told || "";
}

function report(event, stdin, runId) {
  return ask(event, stdin, runId, REPORT_MS);
}

// ------------------------------------------------------------------ the extension

/** OMP hands its extensions its own modules; Pi does not. */
function isOmp(api) {
  return Boolean(api.pi && api.zod);
}

/** What memd is told of the session at hand; undefined for a sub-agent's and for one that keeps no file. */
function factsOf(ctx, reason) {
  const file = ctx.sessionManager.getSessionFile();
  if (!file || isSubagent(ctx.sessionManager)) return undefined;
  return {
    session_id: ctx.sessionManager.getSessionId(),
    cwd: ctx.cwd,
    transcript_path: file,
    ...(reason ? { reason } : {}),
  };
}

function isSubagent(sessions) {
  const known = memory(sessions.getSessionId());
  known.isInner ??= sessions.getEntries().some((entry) => entry.type === "session_init");
  return known.isInner;
}

export default function memd(api) {
  if (!isOmp(api)) return;
  const runId = process.env.MEMD_RUN_ID || "";
  let reason = ""; // why the present session began

  const begin = quietly(async (event, ctx) => {
    const isNew = event.reason === "new" || event.reason === "fork" || event.type === "session_branch";
    reason = isNew ? "clear" : event.reason || "";
    const facts = factsOf(ctx, reason);
    // in a run the question for the context links the session
    if (facts && !runId) void report("start", facts, runId);
  });

  api.on("session_start", begin);
  api.on("session_switch", begin);
  api.on("session_branch", begin);
  api.on(
    "before_agent_start",
    quietly(async (event, ctx) => {
      const facts = factsOf(ctx, reason);
      if (!facts) return undefined;
      const content = await contextOf(facts.session_id, facts, runId);
      void report("prompt", factsOf(ctx), runId);
      if (!content) return undefined;
      return { message: { customType: "memd", content, display: false, attribution: "agent" } };
    }),
  );

  const active = (why) =>
    quietly(async (event, ctx) => {
      const facts = factsOf(ctx, why);
      if (facts) void report("activity", facts, runId);
    });

  api.on("turn_end", active());
  api.on("agent_end", active());
  api.on("session_compact", active("compact"));

  api.on(
    "session_shutdown",
    quietly(async (event, ctx) => {
      const facts = event.reason === "reload" ? undefined : factsOf(ctx, event.reason || "quit");
      if (facts) await report("end", facts, runId);
    }),
  );
}
