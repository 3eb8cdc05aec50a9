// Puts the parts together; every choice on the page ends in `refresh`.
function refresh() {
  drawRanges();
  const wanted = sessions.filter(isWanted), found = wanted.filter(isWithin);
  drawActivity();
  drawTimeline(found);
  drawList(found, wanted.length - found.length);
  const beyond = wanted.length - found.length;
  byId("found").textContent = `${numbers.format(found.length)} of ${data.left_out.sessions ? "the newest " : ""}${numbers.format(sessions.length)} shown${beyond ? `, ${numbers.format(beyond)} more at other times` : ""}`;
}

function startTheme() {
  const root = document.documentElement;
  let kept = "auto";
  try { kept = localStorage.getItem("memd-report-theme") ?? "auto"; } catch { /* a browser that keeps nothing for files */ }
  const set = (theme) => { if (theme === "light" || theme === "dark") root.dataset.theme = theme; else delete root.dataset.theme; };
  for (const input of document.querySelectorAll("input[name=theme]")) {
    input.checked = input.value === kept;
    input.addEventListener("change", () => {
      set(input.value);
      try { localStorage.setItem("memd-report-theme", input.value); } catch { /* as above */ }
    });
  }
  set(kept);
}

startTheme();
document.querySelector("main").hidden = false;
drawTop();
startActivity();
startTimeline();
startSessions();
refresh();
drawRuns();
drawHandoffs();
drawMemory();
drawFoot();

let drawnWidth = document.body.clientWidth;
new ResizeObserver(() => {
  if (document.body.clientWidth === drawnWidth) return;
  drawnWidth = document.body.clientWidth;
  requestAnimationFrame(() => { drawActivity(); drawTimeline(list.rows); });
}).observe(document.body);
