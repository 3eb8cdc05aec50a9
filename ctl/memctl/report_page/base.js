// What every part of the page uses: the data, texts made harmless, elements, times. Nothing here parses HTML:
// whatever the data says becomes text.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const HOUR = 3600e3, DAY = 24 * HOUR;
const byId = (id) => document.getElementById(id);
const madeAt = Date.parse(data.made_at);

// Controls, and signs that change the order of text, are taken out; line breaks stay where `lines` says so.
function clean(text, lines) {
  const plain = String(text ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
  return lines ? plain : plain.replace(/\s+/g, " ").trim();
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, call] of Object.entries(value)) element.addEventListener(event, call);
    else if (name === "text") element.textContent = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}
const el = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
const draw = (tag, properties, ...children) => fill(document.createElementNS(SVG, tag), properties, children);
const isolated = (text) => el("bdi", { text });
// What stands between back quotes is a command.
const coded = (text) => el("bdi", {}, clean(text).split("`").map((part, index) => (index % 2 ? el("code", { text: part }) : part)));
const round = (number) => Math.round(number * 10) / 10;

// ------------------------------------------------------------------------------------ numbers and times

const numbers = new Intl.NumberFormat("en");
const count = (number, noun, nouns) => `${numbers.format(number)} ${number === 1 ? noun : nouns ?? `${noun}s`}`;
function bytes(size) {
  if (size < 1e3) return `${size} B`;
  if (size < 1e6) return `${Math.round(size / 1e3)} kB`;
  return size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(1)} GB`;
}

const format = (options) => new Intl.DateTimeFormat("en-GB", options);
const clock = format({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dayMonth = format({ day: "numeric", month: "short" });
const weekday = format({ weekday: "short", day: "numeric", month: "short" });
const fullDay = format({ weekday: "short", day: "numeric", month: "short", year: "numeric" });
const fullTime = format({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const monthYear = format({ month: "short", year: "numeric" });

const isThisYear = (at) => new Date(at).getFullYear() === new Date(madeAt).getFullYear();
const shortDay = (at) => (isThisYear(at) ? dayMonth : format({ day: "numeric", month: "short", year: "numeric" })).format(at);
function midnight(at, days = 0) {
  const day = new Date(at);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() + days).getTime();
}
function dayName(at) {
  const distance = Math.round((midnight(madeAt) - midnight(at)) / DAY);
  if (distance === 0) return "Today";
  if (distance === 1) return "Yesterday";
  return (isThisYear(at) ? weekday : fullDay).format(at);
}
function lasting(ms) {
  const minutes = Math.round(ms / 60e3);
  if (minutes < 1) return "under a minute";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(minutes / 60);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
function ago(at) {
  const minutes = Math.round((madeAt - at) / 60e3);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 48 * 60) return `${Math.round(minutes / 60)} h ago`;
  return `${Math.round(minutes / 1440)} days ago`;
}
// A time that can be: no agent ran before 1990, and none will have run tomorrow. Else 0.
function moment(text) {
  const at = Date.parse(text ?? "");
  return at >= Date.UTC(1990, 0, 1) && at <= madeAt + DAY ? at : 0;
}

// --------------------------------------------------------------------------------------------- the data

const home = data.home === "/" ? "" : data.home;
function place(path) {
  const text = clean(path);
  return home && (text === home || text.startsWith(`${home}/`)) ? `~${text.slice(home.length)}` : text;
}
const named = new Map(data.workstreams.map((row) => [row.workstream_id, row]));
const workstream = (id) => clean(named.get(id)?.name ?? "");

const harnesses = new Map();  // name: sessions
for (const [name, sessions] of Object.entries(data.totals.sessions_by_harness)) harnesses.set(name, sessions);
for (const day of data.days) for (const name of Object.keys(day.by_harness)) if (!harnesses.has(name)) harnesses.set(name, 0);
for (const run of data.runs) if (!harnesses.has(run.harness)) harnesses.set(run.harness, 0);
const order = [...harnesses.keys()];
const colour = (name) => `h${Math.max(order.indexOf(name), 0) % 12}`;

const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const sessions = data.sessions.map((row, index) => {
  const last = moment(row.last_activity), begun = moment(row.started);
  const streams = row.workstream_ids.map(workstream).filter(Boolean);
  const title = clean(row.title);
  return {
    ...row, index, title, streams,
    from: begun && last ? Math.min(begun, last) : begun || last,
    to: Math.max(begun, last),
    place: place(row.cwd) || "(no directory)",
    words: folded([title, clean(row.cwd), place(row.cwd), row.harness, row.id, ...streams].join("\n")),
  };
});

// ---------------------------------------------------------------------------- what is chosen on the page

const chosen = { query: "", hidden: new Set(), lanes: "cwd", from: 0, to: 0, range: "all" };
const begins = sessions.reduce((least, row) => (row.from ? Math.min(least, row.from) : least), madeAt);
const isWithin = (row) => chosen.range === "all" || (row.from > 0 && row.to >= chosen.from && row.from <= chosen.to);
function isWanted(row) {
  if (chosen.hidden.has(row.harness)) return false;
  return folded(chosen.query).split(/\s+/).every((word) => row.words.includes(word));
}
// Shows more of a long list each time; everything when printed or asked for.
function pager(holder, label, step, show) {
  let limit = step;
  const again = () => {
    const total = show(limit);
    holder.replaceChildren();
    if (total <= limit) return;
    holder.append(
      el("button", { type: "button", text: `Show ${Math.min(4 * step, total - limit)} more`, on: { click: () => { limit += 4 * step; again(); } } }),
      el("button", { type: "button", text: `Show all ${numbers.format(total)} ${label}`, on: { click: () => { limit = Infinity; again(); } } }),
    );
  };
  return { again, reset: () => { limit = step; again(); }, reach: (index) => { if (index >= limit) { limit = index + 1; again(); } } };
}
