// Sessions as bars on lanes, one lane per directory or agent, with managed runs and handoffs above them.
const RANGES = [["1", "24 h"], ["7", "7 d"], ["30", "30 d"], ["90", "90 d"], ["all", "All"]];
const line = { lanes: [], at: null, isLong: false };
const LANES = 12, BAR = 9, GAP = 2;

function setRange(kind, from, to) {
  chosen.range = kind;
  if (kind === "own") { chosen.from = from; chosen.to = to; }
  else { chosen.to = madeAt; chosen.from = kind === "all" ? begins : madeAt - Number(kind) * DAY; }
  line.at = null;
  refresh();
}

function shiftRange(sign) {
  const span = Math.max(chosen.to - chosen.from, HOUR);
  setRange("own", chosen.from + sign * span, chosen.to + sign * span);
}

function drawRanges() {
  const button = (text, label, pressed, click, more) => el("button", { type: "button", "aria-label": label, "aria-pressed": pressed, on: { click }, text, ...more });
  const held = document.activeElement?.parentElement === byId("range") ? document.activeElement.getAttribute("aria-label") : null;
  const isAll = chosen.range === "all";
  byId("range").replaceChildren(
    button("‹", "Earlier", null, () => shiftRange(-1), { disabled: isAll || chosen.from <= begins }),
    ...RANGES.map(([kind, text]) => button(text, kind === "all" ? "All the time" : `The last ${text}`, String(chosen.range === kind), () => setRange(kind))),
    button("›", "Later", null, () => shiftRange(1), { disabled: isAll || chosen.to >= madeAt }),
  );
  if (held) {
    const again = [...byId("range").children].find((child) => child.getAttribute("aria-label") === held);
    (again?.disabled ? byId("range").querySelector("[aria-pressed=true]") ?? byId("range").children[3] : again)?.focus();
  }
}

function lanesOf(found) {
  const lanes = new Map();
  const keyOf = (row) => (chosen.lanes === "cwd" ? place(row.cwd) || "(no directory)" : clean(row.harness ?? row.from_harness ?? ""));
  const lane = (row) => {
    const key = keyOf(row);
    if (!lanes.has(key)) lanes.set(key, { key, sessions: [], runs: [], handoffs: [], newest: 0 });
    return lanes.get(key);
  };
  for (const row of found) {
    if (!row.from) continue;
    const one = lane(row);
    one.sessions.push(row);
    one.newest = Math.max(one.newest, row.to);
  }
  if (!chosen.query) {
    for (const run of data.runs) {
      const from = moment(run.began_at), to = run.ended_at ? moment(run.ended_at) : madeAt;
      if (!from || chosen.hidden.has(run.harness) || to < chosen.from || from > chosen.to) continue;
      const one = lane(run);
      one.runs.push({ ...run, from, to });
      one.newest = Math.max(one.newest, to);
    }
    for (const row of data.handoffs) {
      const at = moment(row.created_at);
      if (!at || at < chosen.from || at > chosen.to || (chosen.lanes !== "cwd" && !row.from_harness)) continue;
      const one = lane(row);
      one.handoffs.push({ ...row, at });
      one.newest = Math.max(one.newest, at);
    }
  }
  const sorted = [...lanes.values()].sort((a, b) => b.newest - a.newest);
  for (const one of sorted) one.sessions.sort((a, b) => a.from - b.from || a.to - b.to);
  return sorted;
}

// Bars that overlap go below each other, up to `most` rows; what is beyond that overlaps in the last one.
function pack(rows, x, most) {
  const ends = [];
  return rows.map((row) => {
    const from = x(row.from), to = Math.max(x(row.to), from + 3);
    let at = ends.findIndex((end) => end + 1 <= from);
    if (at < 0) at = ends.length < most ? ends.length : ends.indexOf(Math.min(...ends));
    ends[at] = Math.max(ends[at] ?? 0, to);
    return { row, from, wide: to - from, at };
  });
}

function ticks(from, to, width) {
  const least = ((to - from) / Math.max(width, 1)) * 76;
  const hours = [1, 3, 6, 12].find((size) => size * HOUR >= least);
  const days = [1, 2, 7, 14].find((size) => size * DAY >= least);
  const found = [];
  let at = midnight(from);
  if (hours) {
    for (; at <= to; at += hours * HOUR) found.push([at, at === midnight(at) ? weekday.format(at) : clock.format(at)]);
  } else if (days) {
    if (days >= 7) at = midnight(at, -((new Date(at).getDay() + 6) % 7));
    for (; at <= to; at = midnight(at, days)) found.push([at, shortDay(at)]);
  } else {
    const months = [1, 3, 6, 12].find((size) => size * 30 * DAY >= least) ?? 24;
    const day = new Date(from);
    for (let month = day.getMonth() - (day.getMonth() % months); ; month += months) {
      at = new Date(day.getFullYear(), month, 1).getTime();
      if (at > to) break;
      found.push([at, monthYear.format(at)]);
    }
  }
  return found.filter(([time]) => time >= from);
}

function shortened(text, room) {
  const most = Math.max(Math.floor(room / 6.7), 6);
  return text.length <= most ? text : `…${text.slice(1 - most)}`;  // the end of a path tells most
}

function drawTimeline(found) {
  const holder = byId("timeline"), narrow = holder.clientWidth < 600;
  const width = Math.max(holder.clientWidth - (narrow ? 16 : 24), 200), left = narrow ? 0 : 190;
  const span = Math.max(chosen.to - chosen.from, HOUR), pad = span * 0.01;
  const x = (at) => left + ((Math.max(at, chosen.from) - chosen.from) / (span + pad)) * (width - left);
  const all = lanesOf(found), lanes = line.lanes = line.isLong ? all : all.slice(0, LANES);
  const svg = draw("svg", { role: "presentation" }), back = draw("g", {});
  svg.append(back);
  let y = 22;
  for (const lane of lanes) {
    const name = clean(lane.key), top = y;
    const label = draw("text", { class: "name", x: 0, y: narrow ? y + 12 : y + 11, text: shortened(name, narrow ? width : left - 12) }, draw("title", { text: name }));
    const group = draw("g", { role: "group", "aria-label": name }, label);
    if (narrow) y += 18;
    if (lane.runs.length || lane.handoffs.length) {
      for (const run of lane.runs) {
        group.append(draw("rect", { class: `run ${run.state === "active" ? "active" : ""}`, x: round(x(run.from)), y: y + 1,
          width: round(Math.max(x(Math.min(run.to, chosen.to)) - x(run.from), 2)), height: 3 }, draw("title", { text: runWords(run) })));
      }
      for (const row of lane.handoffs) {
        const at = round(x(row.at));
        group.append(draw("path", { class: `handoff ${row.state === "open" ? "open" : ""}`, d: `M${at} ${y - 2}l4.5 4.5l-4.5 4.5l-4.5 -4.5Z` },
          draw("title", { text: `handoff, ${clean(row.state)}, ${fullTime.format(row.at)}` })));
      }
      y += 8;
    }
    const bars = pack(lane.sessions, x, narrow ? 4 : 6);
    for (const { row, from, wide, at } of bars) {
      group.append(draw("rect", { id: `bar-${row.index}`, class: `session ${colour(row.harness)}`, role: "option", "aria-selected": "false", "aria-label": sessionWords(row),
        x: round(from), y: y + at * (BAR + GAP), width: round(Math.min(wide, width - from)), height: BAR, rx: 1.5, "data-session": row.index }));
    }
    const rows = bars.reduce((most, bar) => Math.max(most, bar.at + 1), 0);
    y = Math.max(y + rows * (BAR + GAP), narrow ? y : top + 16) + 8;
    group.append(draw("line", { class: "grid", x1: 0, x2: width, y1: y - 4.5, y2: y - 4.5 }));
    svg.append(group);
  }
  for (const [at, text] of ticks(chosen.from, chosen.to, width - left)) {
    const place = round(x(at));
    back.append(draw("line", { class: "grid", x1: place, x2: place, y1: 14, y2: y - 4 }));
    if (place + 42 <= width) back.append(draw("text", { x: place + 3, y: 10, text }));
  }
  if (chosen.to >= madeAt) back.append(draw("line", { class: "now", x1: round(x(madeAt)), x2: round(x(madeAt)), y1: 0, y2: y - 4 }));
  fill(svg, { height: y, viewBox: `0 0 ${width} ${y}` }, []);
  holder.replaceChildren(lanes.length ? svg : el("p", { class: "quiet", text: "No sessions in this time." }));
  byId("line-more").replaceChildren(...(all.length > LANES ? [el("button", { type: "button",
    text: line.isLong ? `Only the ${LANES} newest rows` : `All ${all.length} rows`, on: { click: () => { line.isLong = !line.isLong; refresh(); } } })] : []));
  markSession(null);
}

function sessionWords(row) {
  const lasted = row.to - row.from;
  return `${row.title || "no title"}, ${clean(row.harness)}, ${row.place}, ${dayName(row.from)} ${clock.format(row.from)}, ${lasting(lasted)}, ${count(row.events, "event")}`;
}
function runWords(run) {
  const name = workstream(run.workstream_id);
  return `run of ${clean(run.harness)}${name ? ` in ${name}` : ""}, ${run.state}, ${fullTime.format(run.from)}, ${lasting(run.to - run.from)}`;
}

function tellSession(row) {
  const holder = byId("line-now");
  if (!row) {
    holder.textContent = chosen.range === "all" ? `All the time: ${shortDay(chosen.from)} to ${shortDay(chosen.to)}`
      : `${fullTime.format(chosen.from)} to ${fullTime.format(Math.min(chosen.to, madeAt))}`;
    return;
  }
  holder.replaceChildren(el("b", {}, isolated(row.title || "no title")), "  ", clean(row.harness), " · ", isolated(row.place),
    ` · ${dayName(row.from)} ${clock.format(row.from)} · ${lasting(row.to - row.from)} · ${count(row.events, "event")}`);
}

function markSession(at) {
  const holder = byId("timeline");
  line.at = at;
  for (const bar of holder.querySelectorAll(".at")) { bar.classList.remove("at"); bar.setAttribute("aria-selected", "false"); }
  const row = at ? line.lanes[at.lane]?.sessions[at.index] : null;
  tellSession(row);
  if (!row) { holder.removeAttribute("aria-activedescendant"); return; }
  const bar = byId(`bar-${row.index}`);
  bar.classList.add("at");
  bar.setAttribute("aria-selected", "true");
  holder.setAttribute("aria-activedescendant", bar.id);
  bar.scrollIntoView({ block: "nearest" });
}

function moveOnTimeline(key) {
  const lanes = line.lanes.map((lane) => lane.sessions.length), filled = lanes.findIndex((length) => length > 0);
  if (filled < 0) return;
  if (!line.at) { markSession({ lane: filled, index: lanes[filled] - 1 }); return; }
  let { lane, index } = line.at;
  if (key === "ArrowLeft") index = Math.max(0, index - 1);
  else if (key === "ArrowRight") index = Math.min(lanes[lane] - 1, index + 1);
  else if (key === "Home") index = 0;
  else if (key === "End") index = lanes[lane] - 1;
  else {
    const step = key === "ArrowDown" ? 1 : -1, time = line.lanes[lane].sessions[index].from;
    let next = lane + step;
    while (next >= 0 && next < lanes.length && !lanes[next]) next += step;
    if (next < 0 || next >= lanes.length) return;
    lane = next;
    const rows = line.lanes[lane].sessions;
    index = rows.reduce((best, row, here) => (Math.abs(row.from - time) < Math.abs(rows[best].from - time) ? here : best), 0);
  }
  markSession({ lane, index });
}

function startTimeline() {
  const holder = byId("timeline");
  const hit = (event) => { const bar = event.target.closest?.("[data-session]"); return bar ? sessions[Number(bar.getAttribute("data-session"))] : null; };
  holder.addEventListener("pointerover", (event) => { const row = hit(event); if (row) tellSession(row); });
  holder.addEventListener("pointerleave", () => markSession(line.at));
  holder.addEventListener("click", (event) => { const row = hit(event); if (row) openSession(row.index); });
  holder.addEventListener("keydown", (event) => {
    if (["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) moveOnTimeline(event.key);
    else if (event.key === "Enter" && line.at) openSession(line.lanes[line.at.lane].sessions[line.at.index].index);
    else if (event.key === "Escape") markSession(null);
    else return;
    event.preventDefault();
  });
  for (const input of document.querySelectorAll("input[name=lanes]")) input.addEventListener("change", () => { chosen.lanes = input.value; line.isLong = false; refresh(); });
  const fits = RANGES.find(([kind]) => kind !== "all" && Number(kind) >= 7 && sessions.filter((row) => row.to >= madeAt - Number(kind) * DAY).length >= 25);
  const isYoung = fits && begins > madeAt - Number(fits[0]) * DAY;
  chosen.range = fits && !isYoung ? fits[0] : "all";
  chosen.to = madeAt;
  chosen.from = chosen.range === "all" ? begins : madeAt - Number(chosen.range) * DAY;
}
