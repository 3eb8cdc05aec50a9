// The list below the timeline: newest first, under the days of their last activity.
const list = { rows: [], open: new Set() };

function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function factsOf(row) {
  const facts = [
    ["Directory", isolated(clean(row.cwd) || "not known")],
    ["Session", el("code", { text: clean(row.id) })],
    ["Agent", `${clean(row.harness)}${row.harness_version ? ` ${clean(row.harness_version)}` : ""}`],
    ["Time", row.from ? `${fullTime.format(row.from)} to ${fullTime.format(row.to)}, ${lasting(row.to - row.from)}` : "not known"],
    ["Events", `${numbers.format(row.events)}${row.side_events ? `, ${numbers.format(row.side_events)} beside the main line` : ""}${row.losses ? `, ${numbers.format(row.losses)} left out of the import` : ""}`],
    row.side_sessions ? ["Beside it", count(row.side_sessions, "conversation of its own agents", "conversations of its own agents")] : null,
    row.streams.length ? ["Workstreams", isolated(row.streams.join(", "))] : null,
    row.forked_from ? ["Goes on from", el("code", { text: clean(row.forked_from) })] : null,
    ["Read it", el("code", { text: `memctl export --harness ${quoted(clean(row.harness))} --session ${quoted(clean(row.id))} --format markdown` })],
  ].filter(Boolean);
  return el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", { text: name }), el("dd", {}, value)]));
}

function sessionItem(row) {
  const where = [isolated(row.place), " · ", clean(row.harness)];
  if (row.streams.length) where.push(" · ", isolated(row.streams.join(", ")));
  const times = row.from ? `${midnight(row.from) === midnight(row.to) ? "" : `${shortDay(row.from)}, `}${clock.format(row.from)}–${clock.format(row.to)}` : "";
  const head = el("summary", { class: "row" },
    el("span", { class: `swatch wide ${colour(row.harness)}`, "aria-hidden": "true" }),
    el("bdi", { class: row.title ? "title" : "title none", text: row.title || "no title" }), el("span", { class: "when", text: times }),
    el("span", { class: "under" }, where), el("span", { class: "count", text: count(row.events, "event") }));
  const item = el("details", { id: `session-${row.index}`, on: { toggle: () => {
    if (item.open) list.open.add(row.index); else list.open.delete(row.index);
    if (item.open && item.children.length === 1) item.append(factsOf(row));
  } } }, head);
  if (list.open.has(row.index)) { item.append(factsOf(row)); item.open = true; }
  return el("li", {}, item);
}

const listPager = pager(byId("list-more"), "sessions", 50, (limit) => {
  const parts = [];
  let name = null, rows = null;
  for (const row of list.rows.slice(0, limit)) {
    const day = row.to ? dayName(row.to) : "Without a time";
    if (day !== name) {
      name = day;
      rows = el("ul", { class: "rows" });
      parts.push(el("h3", { text: day }), rows);
    }
    rows.append(sessionItem(row));
  }
  byId("list").replaceChildren(...parts);
  return list.rows.length;
});

function drawList(found, beyond) {
  list.rows = found;
  listPager.reset();
  if (found.length) return;
  const holder = el("p", { class: "empty" }, sessions.length ? "No session here matches." : "No sessions in the ledger yet.");
  if (beyond) holder.append(" ", el("button", { type: "button", text: `Look at all the time: ${beyond}`, on: { click: () => setRange("all") } }));
  byId("list").replaceChildren(holder);
}

function openSession(index) {
  const at = list.rows.findIndex((row) => row.index === index);
  if (at < 0) return;
  list.open.add(index);
  listPager.reach(at);
  const item = byId(`session-${index}`);
  item.open = true;
  item.scrollIntoView({ block: "center" });
  item.querySelector("summary").focus({ preventScroll: true });
}

function drawChips() {
  const chips = order.map((name) => {
    const button = el("button", { type: "button", class: colour(name), "aria-pressed": "true" },
      el("span", { class: "swatch", "aria-hidden": "true" }), clean(name), el("small", { text: numbers.format(harnesses.get(name)) }));
    button.addEventListener("click", () => {
      if (chosen.hidden.has(name)) chosen.hidden.delete(name); else chosen.hidden.add(name);
      button.setAttribute("aria-pressed", String(!chosen.hidden.has(name)));
      refresh();
    });
    return button;
  });
  byId("chips").replaceChildren(...chips);
}

function startSessions() {
  drawChips();
  const box = byId("query");
  byId("search").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("input", () => { chosen.query = box.value; refresh(); });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && box.value) { box.value = ""; chosen.query = ""; refresh(); event.preventDefault(); }
    if (event.key === "ArrowDown") { byId("list").querySelector("summary")?.focus(); event.preventDefault(); }
  });
  byId("list").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { byId("timeline").focus(); return; }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !event.target.matches("summary")) return;
    const rows = [...byId("list").querySelectorAll("summary")], next = rows.indexOf(event.target) + step;
    (next < 0 ? box : rows[next])?.focus();
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=search]")) return;
    box.focus();
    box.select();
    event.preventDefault();
  });
}
