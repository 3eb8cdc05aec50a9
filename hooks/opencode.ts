/**
 * memd in OpenCode: tells memd of sessions, and puts before the model what memd has to tell.
 *
 * One file for both generations of plug-ins: `server` is called by the first, `setup` by the second. It needs
 * nothing but Node's own modules, so OpenCode has nothing to fetch for it.
 *
 * First generation. The text goes into the user's own message, as a part marked `synthetic`, ahead of what was
 * typed. OpenCode stores it with the message, so the model has it in every later request and after a resume,
 * and it is delivered once. (`experimental.chat.system.transform` would have to repeat it in every request, the
 * one for a title included, and a resumed session would have lost it.)
 *
 * Second generation. Nothing a plug-in adds is stored, so the text is held for the life of the process and added
 * to each request of the agent's loop. The plug-in runs in a service that several terminals share: its
 * environment says nothing about the run a session belongs to, so no run id is sent.
 *
 * source  OpenCode 1.18.33, run 2026-11; of the second generation its published plug-in types, read 2026-11
 */

import { randomBytes } from "node:crypto";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";

const HARNESS = "opencode";

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

// ------------------------------------------------------------------ the first generation

const PART_ID = /^prt_([0-9a-f]{12})/;

/** An id that sorts before all of these parts: OpenCode orders the parts of a message by their ids. */
function idBefore(parts) {
  const times = parts.map((part) => PART_ID.exec(String(part && part.id))).filter(Boolean);
  const first = times.length ? Math.min(...times.map((time) => parseInt(time[1], 16))) : Date.now() * 0x1000;
  const time = Math.max(0, (first - 1) % 2 ** 48);
  return "prt_" + time.toString(16).padStart(12, "0") + randomBytes(7).toString("hex");
}

async function server({ client, directory }) {
  const runId = process.env.MEMD_RUN_ID || "";
  const parents = new Map(); // session id -> the session that started it, or ""
  const open = new Set(); // sessions to be ended when OpenCode goes
  const later = new Set(); // sessions that were begun here after another

  const facts = (session, reason) => ({
    session_id: session,
    cwd: directory || process.cwd(),
    ...(parents.get(session) ? { is_inner: true } : {}),
    ...(reason ? { reason } : {}),
  });

  const beginning = (session) => (later.has(session) ? "clear" : "");

  const learn = (session, parent) => {
    parents.set(session, parent || "");
    if (parents.size > MAX_REMEMBERED) parents.delete(parents.keys().next().value);
  };

  /** Whether an agent, not a person, started the session. New ones announce it; a resumed one is asked for. */
  const isInner = async (session) => {
    if (!parents.has(session)) {
      const asked = Promise.resolve(client.session.get({ path: { id: session } })).catch(() => undefined);
      const found = await Promise.race([asked, pause(REPORT_MS)]);
      learn(session, found && found.data && found.data.parentID);
    }
    return parents.get(session) !== "";
  };

  return {
    event: quietly(async ({ event }) => {
      const about = event.properties || {};
      const session = about.sessionID || (about.info && about.info.id);
      if (typeof session !== "string") return;
      if (event.type === "session.created") {
        learn(session, about.info && about.info.parentID);
        if (parents.get(session)) return;
        if (open.size) later.add(session);
        // in a run the question for the context links the session
        if (!runId) void report("start", facts(session, beginning(session)), runId);
      } else if (event.type === "session.idle") {
        void report("activity", facts(session), runId);
      } else if (event.type === "session.compacted") {
        void report("activity", facts(session, "compact"), runId);
      } else if (event.type === "session.deleted") {
        open.delete(session);
        later.delete(session);
        void report("end", facts(session, "deleted"), runId);
      }
    }),

    "chat.message": quietly(async (input, output) => {
      const session = input.sessionID;
      if (await isInner(session)) return;
      open.add(session);
      const text = await contextOf(session, facts(session, beginning(session)), runId);
      void report("prompt", facts(session), runId);
      if (!text) return;
      output.parts.unshift({
        id: idBefore(output.parts),
        sessionID: session,
        messageID: output.message.id,
        type: "text",
        text,
        synthetic: true,
      });
    }),

    dispose: quietly(async () => {
      const ended = [...open].map((session) => report("end", facts(session, "quit"), runId));
      open.clear();
      await Promise.all(ended);
    }),
  };
}

// ------------------------------------------------------------------ the second generation

const MAX_HELD = 64; // texts

async function setup(ctx) {
  const directory = (ctx.location && ctx.location.directory) || process.cwd();
  const facts = (session, reason) => ({ session_id: session, cwd: directory, ...(reason ? { reason } : {}) });
  const held = new Map(); // session id -> the text its model is told in each request
  const inner = new Map();

  const isInner = async (session) => {
    if (!inner.has(session)) {
      const asked = Promise.resolve(ctx.session.get({ sessionID: session })).catch(() => undefined);
      const found = await Promise.race([asked, pause(REPORT_MS)]);
      inner.set(session, Boolean(found && (found.data || found).parentID));
      if (inner.size > MAX_REMEMBERED) inner.delete(inner.keys().next().value);
    }
    return inner.get(session);
  };

  await ctx.session.hook(
    "context",
    quietly(async (request) => {
      const session = request.sessionID;
      if (request.kind && request.kind !== "primary") return;
      if (await isInner(session)) return;
      const text = held.get(session) || (await contextOf(session, facts(session), ""));
      if (!text) return;
      held.set(session, text);
      if (held.size > MAX_HELD) held.delete(held.keys().next().value);
      request.system.push({ type: "text", text });
    }),
  );
  await ctx.session.hook(
    "prompt",
    quietly(async (prompt) => {
      if (!(await isInner(prompt.sessionID))) void report("prompt", facts(prompt.sessionID), "");
    }),
  );

  const events = ctx.event.subscribe()[Symbol.asyncIterator]();
  const listen = quietly(async () => {
    for (let next = await events.next(); !next.done; next = await events.next()) {
      const { type, data } = next.value;
      const session = data && data.sessionID;
      if (typeof session !== "string") continue;
      if (/^session\.execution\.(succeeded|failed|interrupted)$/.test(type)) void report("activity", facts(session), "");
      else if (type === "session.deleted") void report("end", facts(session, "deleted"), "");
    }
  });
  void listen();
  return quietly(async () => {
    if (events.return) await events.return();
  });
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export default { id: "memd", server, setup: quietly(setup) };
