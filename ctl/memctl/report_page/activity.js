// Events per day in columns, and how the ledger grew below them. Columns are days, weeks or four weeks, as room allows.
const activity = { columns: [], at: -1 };
const dayAt = (name) => { const [year, month, day] = name.split("-").map(Number); return new Date(year, month - 1, day).getTime(); };

function columnsOf(width) {
  const days = data.days.map((day) => ({ ...day, at: dayAt(day.day) }));
  if (!days.length) return [];
  const first = days[0].at, last = Math.max(midnight(madeAt), days[days.length - 1].at);
  const length = Math.round((last - first) / DAY) + 1;
  const room = Math.max(1, Math.floor(width / 4));
  const size = [1, 7, 28].find((days) => length / days <= room) ?? Math.ceil(length / room);
  const found = [];
  for (let at = midnight(last, 1 - size * Math.ceil(length / size)); at <= last; at = midnight(at, size)) {
    found.push({ at, size, events: 0, bytes: 0, by: new Map(), total: 0 });
  }
  for (const day of days) {
    const column = found[Math.min(found.length - 1, Math.max(0, Math.floor(Math.round((day.at - found[0].at) / DAY) / size)))];
    column.bytes += day.bytes;
    for (const [name, events] of Object.entries(day.by_harness)) {
      if (chosen.hidden.has(name)) continue;
      column.events += events;
      column.by.set(name, (column.by.get(name) ?? 0) + events);
    }
  }
  let total = chosen.hidden.size ? 0 : data.totals.events_before;
  for (const column of found) column.total = total += column.events;
  return found;
}

function nice(number) {
  const step = 10 ** Math.floor(Math.log10(Math.max(number, 1)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((part) => part * step).find((top) => top >= number);
}
const short = (number) => (number >= 1e6 ? `${round(number / 1e6)} M` : number >= 1e5 ? `${Math.round(number / 1e3)} k` : number >= 1e4 ? `${round(number / 1e3)} k` : numbers.format(number));

function drawActivity() {
  const holder = byId("activity-chart");
  const width = Math.max(holder.clientWidth - 24, 200), high = 116, low = 40, gap = 22, left = 40;
  const columns = activity.columns = columnsOf(width - left);
  activity.at = Math.min(activity.at, columns.length - 1);
  byId("activity").hidden = !columns.length;
  if (!columns.length) return;
  const top = nice(Math.max(...columns.map((column) => column.events), 1));
  const step = (width - left) / columns.length, wide = Math.max(step - (step > 6 ? 2 : 1), 1);
  const y = (events) => high - (events / top) * (high - 8);
  const svg = draw("svg", { height: high + gap + low, viewBox: `0 0 ${width} ${high + gap + low}`, "aria-hidden": "true" });
  for (const part of [0, 0.5, 1]) {
    svg.append(draw("line", { class: part ? "grid" : "edge", x1: left, x2: width, y1: round(y(top * part)), y2: round(y(top * part)) }));
    if (part) svg.append(draw("text", { x: left - 6, y: round(y(top * part)) + 4, "text-anchor": "end", text: short(top * part) }));
  }
  if (chosen.range !== "all") {
    const at = (time) => left + ((time - columns[0].at) / (midnight(columns[columns.length - 1].at, columns[0].size) - columns[0].at)) * (width - left);
    const from = Math.max(at(chosen.from), left), to = Math.min(at(chosen.to), width);
    if (to > from) svg.append(draw("rect", { class: "within", x: round(from), y: 0, width: round(to - from), height: high }));
  }
  let named = -Infinity;
  columns.forEach((column, index) => {
    const x = left + index * step;
    let base = 0;
    for (const name of order) {
      const events = column.by.get(name);
      if (!events) continue;
      const height = Math.max(y(base) - y(base + events), 0.75);
      svg.append(draw("rect", { class: `session ${colour(name)}`, x: round(x), y: round(y(base) - height), width: round(wide), height: round(height) }));
      base += events;
    }
    if (x - named >= 64 && x + 40 <= width && (column.size > 1 || step > 40 || new Date(column.at).getDay() === 1)) {
      svg.append(draw("text", { x: round(x), y: high + 15, text: column.size > 7 ? monthYear.format(column.at) : dayMonth.format(column.at) }));
      named = x;
    }
  });
  const least = columns[0].total - columns[0].events, most = Math.max(columns[columns.length - 1].total, 1), foot = high + gap + low;
  const level = (total) => round(foot - 1 - (total / most) * (low - 4));
  const path = columns.map((column, index) => `L${round(left + (index + 1) * step)} ${level(column.total)}`).join("");
  svg.append(
    draw("path", { class: "growth", d: `M${left} ${foot}L${left} ${level(least)}${path}L${width} ${foot}Z` }),
    draw("text", { x: left - 6, y: foot - low + 12, "text-anchor": "end", text: short(most) }),
    draw("text", { x: left + 6, y: foot - low + 12, text: chosen.hidden.size ? "all events of these agents" : "all events in the ledger" }),
  );
  if (activity.at >= 0) svg.append(draw("rect", { class: "cursor", x: round(left + activity.at * step - 1), y: 0, width: round(wide + 2), height: high + 1 }));
  svg.addEventListener("pointermove", (event) => pointAt(event, svg, left, step, width));
  svg.addEventListener("pointerleave", () => tellColumn(activity.at));
  svg.addEventListener("click", (event) => {
    const index = pointAt(event, svg, left, step, width);
    if (index >= 0) { activity.at = index; chooseColumn(); }
  });
  holder.replaceChildren(svg);
  holder.setAttribute("aria-valuemin", 0);
  holder.setAttribute("aria-valuemax", columns.length - 1);
  tellColumn(activity.at);
}

function pointAt(event, svg, left, step, width) {
  const box = svg.getBoundingClientRect();
  const index = Math.floor((((event.clientX - box.left) / box.width) * width - left) / step);
  if (index < 0 || index >= activity.columns.length) return -1;
  tellColumn(index);
  return index;
}

function spoken(column) {
  const until = midnight(column.at, column.size - 1);
  const name = column.size === 1 ? dayName(column.at) : `${shortDay(column.at)} to ${shortDay(until)}`;
  const parts = [...column.by].sort((a, b) => b[1] - a[1]).map(([harness, events]) => `${clean(harness)} ${numbers.format(events)}`);
  return [name, `${count(column.events, "event")}${parts.length ? `: ${parts.join(", ")}` : ""}${column.bytes ? ` · ${bytes(column.bytes)} of text` : ""}`];
}

function tellColumn(index) {
  const column = activity.columns[index], line = byId("activity-now"), holder = byId("activity-chart");
  if (!column) {
    line.replaceChildren("A column says more when you point at it; choosing one shows its sessions below.");
    holder.setAttribute("aria-valuenow", activity.columns.length - 1);
    holder.setAttribute("aria-valuetext", "no day chosen; arrow keys move, Enter shows the sessions of a day");
    return;
  }
  const [name, words] = spoken(column);
  line.replaceChildren(el("b", { text: name }), `  ${words}`);
  holder.setAttribute("aria-valuenow", index);
  holder.setAttribute("aria-valuetext", `${name}: ${words}`);
}

function chooseColumn() {
  const column = activity.columns[activity.at];
  if (column) setRange("own", column.at, midnight(column.at, column.size) - 1);
}

function startActivity() {
  const totals = data.totals, notes = [`${count(totals.events, "event")} on ${count(data.days.length, "day")}`];
  if (totals.events_before) notes.push(`${numbers.format(totals.events_before)} before`);
  if (totals.events_undated) notes.push(`${numbers.format(totals.events_undated)} without a time`);
  byId("activity-note").textContent = notes.join(", ");
  byId("activity-chart").addEventListener("keydown", (event) => {
    const last = activity.columns.length - 1, at = activity.at < 0 ? last + 1 : activity.at;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowDown: at - 1, ArrowUp: at + 1, Home: 0, End: last, PageUp: at - 7, PageDown: at + 7 }[event.key];
    if (to !== undefined) { activity.at = Math.max(0, Math.min(last, to)); drawActivity(); }
    else if (event.key === "Enter" || event.key === " ") chooseColumn();
    else if (event.key === "Escape") { activity.at = -1; setRange("all"); }
    else return;
    event.preventDefault();
  });
  const head = el("tr", {}, ["Day", "Events", ...order, "Text"].map((text) => el("th", { scope: "col", text: clean(text) })));
  const body = [...data.days].reverse().map((day) => el("tr", {},
    el("th", { scope: "row", text: day.day }), el("td", { text: numbers.format(day.events) }),
    order.map((name) => el("td", { text: day.by_harness[name] ? numbers.format(day.by_harness[name]) : "" })), el("td", { text: bytes(day.bytes) })));
  byId("activity-table").append(el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}
