// Figures at the top; runs, handoffs and memory links below the sessions.
const TONES = { healthy: "good", attention: "wary", degraded: "bad" };
const dot = () => el("span", { class: "dot", "aria-hidden": "true" });

function drawTop() {
  const since = data.since ? `since ${fullTime.format(moment(data.since) || Date.parse(data.since))}` : "everything in the ledger";
  byId("made").textContent = `${fullTime.format(madeAt)} · ${since}`;
  document.title = `memd report, ${fullTime.format(madeAt)}`;
  byId("health").append(el("span", { class: TONES[data.health.state] ?? "bad" }, dot()), el("span", {}, el("b", { text: clean(data.health.state) }), ": ", coded(data.health.line)));
  const totals = data.totals, active = data.runs.filter((run) => run.state === "active").length;
  const open = data.handoffs.filter((row) => row.state === "open").length, logins = data.memory.agents.flatMap((agent) => agent.logins);
  const linked = logins.filter((login) => isLinked(login)).length, directories = new Set(sessions.map((row) => row.cwd)).size;
  const figures = [
    ["Sessions", numbers.format(totals.sessions), totals.side_sessions ? `and ${numbers.format(totals.side_sessions)} beside them` : ""],
    ["Directories", numbers.format(directories), data.left_out.sessions ? "of the newest sessions" : ""],
    ["Events", numbers.format(totals.events), data.ledger.bytes ? `${bytes(data.ledger.bytes)} on the disk` : ""],
    ["Runs", numbers.format(totals.runs), active ? `${active} now` : ""],
    ["Handoffs", numbers.format(totals.handoffs), open ? `${open} open` : ""],
    ["Memory links", logins.length ? `${linked} of ${logins.length}` : "none", count(data.memory.topics.topics, "topic")],
  ];
  byId("figures").append(...figures.map(([name, value, more]) => el("div", {}, el("dt", { text: name }), el("dd", {}, value, el("small", { text: more || "\u00a0" })))));
}

// ----------------------------------------------------------------------------------------------- runs

const STATES = { active: ["now", "good"], finished: ["finished", ""], expired: ["lost", "wary"] };

function runItem(run) {
  const from = moment(run.began_at), to = run.ended_at ? moment(run.ended_at) : madeAt;
  const [word, tone] = STATES[run.state] ?? [clean(run.state), ""], row = named.get(run.workstream_id);
  const isOdd = run.exit_code !== null && run.exit_code !== 0;
  const under = [isolated(place(run.cwd)), " · ", clean(run.harness)];
  if (row) under.push(" · ", isolated(`${clean(row.workspace)}/${clean(row.project)}`));
  if (run.machine) under.push(" · on ", isolated(clean(run.machine)));
  return el("li", { class: "row" }, el("span", { class: `swatch wide ${colour(run.harness)}`, "aria-hidden": "true" }),
    el("bdi", { class: "title", text: clean(row?.name ?? "a workstream that is gone") }),
    el("span", { class: "when", text: from ? `${dayName(from)} ${clock.format(from)} · ${lasting(to - from)}` : "" }),
    el("span", { class: "under" }, under),
    el("span", { class: `count ${tone}`, text: isOdd ? `${word}, exit status ${run.exit_code}` : word }));
}

function drawRuns() {
  const rows = [...data.runs].sort((a, b) => (b.state === "active") - (a.state === "active"));
  byId("runs-note").textContent = rows.length ? count(data.totals.runs, "launch", "launches") + " by memctl run" : "";
  if (!rows.length) byId("runs-list").after(el("p", { class: "empty" }, "None yet. ", el("code", { text: "memctl run" }), " starts an agent in a workstream of its checkout."));
  pager(byId("runs-more"), "runs", 8, (limit) => { byId("runs-list").replaceChildren(...rows.slice(0, limit).map(runItem)); return rows.length; }).again();
}

// ------------------------------------------------------------------------------------------- handoffs

const HANDED = { open: "wary", accepted: "good" };

function handoffItem(row) {
  const at = moment(row.created_at), lists = [["Questions", row.questions], ["Steps", row.steps], ["Files", row.files]].filter(([, items]) => items.length);
  const whom = row.for_harness ? clean(row.for_harness) : row.for_workstream_id ? workstream(row.for_workstream_id) || "one workstream" : "whoever comes next";
  const words = clean(row.summary, true).trim(), first = clean(words), isLong = first.length > 150 || words.includes("\n") || lists.length > 0;
  const under = [`from ${clean(row.from_harness ?? "") || "a person"} to ${whom}`];
  if (row.taken_by_harness) under.push(`, taken by ${clean(row.taken_by_harness)}`);
  under.push(" · ", isolated(place(row.cwd)));
  const parts = [el("span", { class: "swatch", "aria-hidden": "true", hidden: true }), el("span", { class: `swatch wide ${row.from_harness ? colour(row.from_harness) : ""}`, "aria-hidden": "true" }),
    el("bdi", { class: "title", text: first || "without words" }), el("span", { class: "when", text: at ? `${dayName(at)} ${clock.format(at)}` : "" }),
    el("span", { class: "under" }, under), el("span", { class: `count ${HANDED[row.state] ?? ""}`, text: clean(row.state) })].slice(1);
  if (!isLong) return el("li", { class: "row" }, parts);
  return el("li", {}, el("details", {}, el("summary", { class: "row" }, parts),
    el("div", { class: "words" }, el("bdi", { text: words }),
      lists.map(([name, items]) => [el("h3", { text: name }), el("ul", {}, items.map((item) => el("li", {}, isolated(clean(item)))))]))));
}

function drawHandoffs() {
  const rows = [...data.handoffs].sort((a, b) => (b.state === "open") - (a.state === "open"));
  byId("handoffs-note").textContent = rows.length ? "notes from one session to the next" : "";
  if (!rows.length) byId("handoffs-list").after(el("p", { class: "empty" }, "None. ", el("code", { text: "memctl handoff create" }), " leaves a note for the next session."));
  pager(byId("handoffs-more"), "handoffs", 8, (limit) => { byId("handoffs-list").replaceChildren(...rows.slice(0, limit).map(handoffItem)); return rows.length; }).again();
}

// --------------------------------------------------------------------------------------------- memory

const isLinked = (login) => login.outcome === "linked" || login.outcome === "migrated";
const OUTCOMES = { linked: "linked", migrated: "linked", skipped: "left alone", failed: "failed", returned: "a folder of its own" };

function loginItem(login) {
  const tone = login.outcome === "failed" ? "bad" : !isLinked(login) || login.left_behind.length ? "wary" : "good";
  const healed = moment(login.healed_at), notes = [];
  const note = (words, remedy) => notes.push(el("p", { class: "under wrap" }, coded(words), remedy ? [words ? " → " : "", el("b", {}, coded(remedy))] : null));
  if (login.reason || login.remedy) note(login.reason, login.remedy);
  for (const left of login.left_behind) note(`left behind: ${place(left.path)}: ${left.reason}`, left.remedy);
  return el("li", { class: "row" }, el("span", { class: `swatch wide`, hidden: true }), el("span", { class: tone }, dot()),
    el("div", {}, el("bdi", { class: "title wrap", text: place(login.config_home) }), el("p", { class: "under wrap" }, isolated(place(login.path))), notes),
    el("div", { class: "count" }, el("span", { class: tone, text: OUTCOMES[login.outcome] ?? clean(login.outcome) }), el("br"), healed ? `healed ${ago(healed)}` : ""));
}

function drawMemory() {
  const { agents, topics } = data.memory, holder = byId("memory-list");
  byId("memory-note").textContent = agents.length ? count(agents.length, "agent") : "";
  for (const agent of agents) {
    holder.append(el("div", { class: "agent" }, el("p", {}, el("b", {}, isolated(place(agent.home))), el("span", { class: "quiet" }, " keeps its memory in ", isolated(place(agent.owned)))),
      agent.logins.length ? el("ul", { class: "rows" }, agent.logins.map(loginItem)) : el("p", { class: "empty", text: "No login found yet." })));
  }
  if (!agents.length) holder.append(el("p", { class: "empty" }, "No agent has one memory in all its logins yet. ", el("code", { text: "memctl enroll PATH" }), " gives it one."));
  if (!topics.store) return;
  const words = [`${count(topics.topics, "topic")} ${topics.is_shared ? "that agents share " : ""}in `, isolated(place(topics.store))];
  if (topics.unlisted) words.push(`, ${count(topics.unlisted, "of them is", "of them are")} not in its index`);
  holder.append(el("p", { class: "quiet wrap" }, words));
  for (const trouble of [topics.config_error, topics.trouble]) if (trouble) holder.append(el("p", { class: "bad wrap" }, coded(trouble)));
}

// --------------------------------------------------------------------------------------------- footer

function drawFoot() {
  const left = data.left_out, away = [["session", left.sessions], ["run", left.runs], ["handoff", left.handoffs]].filter(([, number]) => number > 0);
  const foot = byId("foot");
  if (away.length) foot.append(el("p", { text: `Left out of this page, as it holds only the newest: ${away.map(([noun, number]) => count(number, `older ${noun}`)).join(", ")}. memctl sessions lists every session.` }));
  if (data.ledger.left_sources) foot.append(el("p", { text: `${count(data.ledger.left_sources, "file")} had not been read into the ledger yet.` }));
  foot.append(
    el("p", { text: `Days begin and end by the clock of the machine that made this (UTC${data.utc_offset}); times are those of this browser.` }),
    el("p", { text: `Made by ${clean(data.made_by)} with memctl report. This file holds titles, directories and notes of your sessions, loads nothing and sends nothing.` }),
  );
}
