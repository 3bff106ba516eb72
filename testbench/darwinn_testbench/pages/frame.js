"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = (name) => document.getElementById(name);

// Light or dark: as the system has it until a reader says otherwise.
const kept = { read() { try { return localStorage.getItem("theme"); } catch { return null; } },
  write(theme) { try { localStorage.setItem("theme", theme); } catch { /* not kept */ } } };
const root = document.documentElement;
if (kept.read()) root.dataset.theme = kept.read();
byId("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  kept.write(root.dataset.theme = dark ? "light" : "dark");
});

// Tables: a click on a heading sorts, a second one the other way round.
const number = (cell) => {
  const text = cell.dataset.by ?? cell.textContent.replaceAll(",", "");
  return /^[-+]?[\d.]/.test(text) ? parseFloat(text) : NaN;
};
function sort(heading) {
  const column = heading.cellIndex, body = heading.closest("table").tBodies[0];
  const up = heading.getAttribute("aria-sort") === "descending" || (!heading.ariaSort && !heading.classList.contains("right"));
  const rows = [...body.rows].map((row) => ({ row, text: row.cells[column].textContent, value: number(row.cells[column]) }));
  const numeric = rows.every((each) => !each.text || !Number.isNaN(each.value));
  const order = (a, b) => numeric ? a.value - b.value : a.text.localeCompare(b.text, "en", { numeric: true });
  // Empty cells stand at the end, whichever way.
  rows.sort((a, b) => !a.text - !b.text || (a.text && (up ? 1 : -1) * order(a, b)) || 0);
  all("th", heading.parentNode).forEach((each) => each.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  body.append(...rows.map((each) => each.row));
}
all("th button").forEach((button) => button.addEventListener("click", () => sort(button.parentNode)));

// Search: rows that do not hold the words are left out, boxes of graphs are faded. Enter goes from
// box to box of those that are left.
let visited = -1;
byId("search").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const part of all("tbody tr, .box")) {
    const text = part.textContent.toLowerCase();
    part.classList.toggle("missed", !words.every((word) => text.includes(word)));
  }
  visited = -1;
});
byId("search").addEventListener("keydown", (event) => {
  const boxes = all(".box:not(.missed)");
  if (event.key !== "Enter" || !event.target.value || !boxes.length) return;
  visited = (visited + (event.shiftKey ? boxes.length - 1 : 1)) % boxes.length;
  const box = boxes[visited];
  box.closest("section").scrollIntoView();
  if (chosen !== box.dataset.key) choose(box.dataset.key);
});

// Graphs: buttons, or the wheel with Ctrl, zoom; a drag moves what is seen.
function zoomed(frame) {
  const svg = frame.querySelector("svg"), { width, height } = svg.viewBox.baseVal;
  let scale = 1;
  // The point at x, y of the frame stays where it is.
  const zoom = (to, x = frame.clientWidth / 2, y = frame.clientHeight / 2) => {
    const least = Math.min(1, fit()), before = scale;
    scale = Math.min(4, Math.max(least, to));
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
    frame.dataset.scale = scale.toFixed(3);
    frame.scrollLeft = (frame.scrollLeft + x) * scale / before - x;
    frame.scrollTop = (frame.scrollTop + y) * scale / before - y;
  };
  const fit = () => Math.min(frame.clientWidth / width, frame.clientHeight / height);
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const place = frame.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY / 400), event.clientX - place.left, event.clientY - place.top);
  }, { passive: false });
  let drag = null;
  frame.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && !event.target.closest(".box")) drag = [event.clientX + frame.scrollLeft, event.clientY + frame.scrollTop];
  });
  addEventListener("pointermove", (event) => { if (drag) frame.scrollTo(drag[0] - event.clientX, drag[1] - event.clientY); });
  addEventListener("pointerup", () => { drag = null; });
  const tools = document.createElement("div");
  tools.className = "zoom";
  tools.append(
    button("−", () => zoom(scale / 1.5), "smaller"),
    button("+", () => zoom(scale * 1.5), "larger"),
    button("1:1", () => zoom(1), "as it is drawn"),
    button("whole", () => { zoom(fit()); frame.scrollTo(0, 0); }, "the whole network"),
    button("tall", () => frame.classList.toggle("tall"), "as high as the window, and back"),
  );
  frame.before(tools);
}

// Charts, and the time that those of them share which have one.
const views = [];
const window_ = { from: 0, to: page.duration || 1 };
const column = (values) => values.of ? values.at.map((place) => values.of[place]) : values;
function rowsOf(columns) {
  const names = Object.keys(columns), lists = names.map((name) => column(columns[name]));
  return (lists[0] ?? []).map((_, row) => Object.fromEntries(names.map((name, at) => [name, lists[at][row]])));
}
function tip(handler, event, item, value) {
  const box = byId("tip");
  box.hidden = value == null || value === "";
  if (box.hidden) return;
  box.textContent = typeof value === "object"
    ? Object.entries(value).map(([name, text]) => (name ? `${name}: ${text}` : text)).join("\n") : value;
  box.style.left = `${Math.max(0, Math.min(event.clientX + 12, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${Math.min(event.clientY + 12, innerHeight - box.offsetHeight - 8)}px`;
}
function draw(holder) {
  const chart = page.charts[holder.dataset.chart];
  const view = new vega.View(vega.parse(chart.spec), { renderer: "svg", hover: true, tooltip: tip });
  view.data("rows", rowsOf(chart.columns));
  view.initialize(holder);
  if (chart.time) view.signal("t0", window_.from).signal("t1", window_.to);
  view.addEventListener("click", (event, item) => { const key = item?.datum?.key; if (key) choose(key); });
  views.push({ view, time: chart.time });
  return view.runAsync();
}
function showTime(from, to) {
  const least = page.duration / 1e5;
  const middle = (from + to) / 2, half = Math.max(to - from, least) / 2;
  window_.from = Math.max(0, middle - half);
  window_.to = Math.min(page.duration, middle + half);
  for (const { view, time } of views) if (time) view.signal("t0", window_.from).signal("t1", window_.to).runAsync();
}
const moves = {
  "whole": () => showTime(0, page.duration),
  "−": () => { const wide = window_.to - window_.from; showTime(window_.from - wide / 2, window_.to + wide / 2); },
  "+": () => { const wide = window_.to - window_.from; showTime(window_.from + wide / 4, window_.to - wide / 4); },
  "◂": () => { const step = Math.min((window_.to - window_.from) / 2, window_.from); showTime(window_.from - step, window_.to - step); },
  "▸": () => { const step = Math.min((window_.to - window_.from) / 2, page.duration - window_.to); showTime(window_.from + step, window_.to + step); },
};
const titles = { "−": "less near", "+": "nearer", "◂": "earlier", "▸": "later" };
for (const holder of all(".times")) {
  for (const [name, move] of Object.entries(moves)) holder.append(button(name, move, titles[name]));
}
function button(text, action, title = "") {
  const made = document.createElement("button");
  made.type = "button"; made.textContent = text; made.title = title;
  made.addEventListener("click", action);
  return made;
}

// Whatever is about the same thing is marked together.
let chosen = "";
function choose(key) {
  chosen = key === chosen ? "" : key;
  all(".chosen").forEach((each) => each.classList.remove("chosen"));
  const same = chosen ? all(`[data-key="${CSS.escape(chosen)}"]`) : [];
  same.forEach((each) => each.classList.add("chosen"));
  const span = page.spans[chosen] ?? [0, 0];
  for (const { view, time } of views) {
    view.signal("chosen", chosen);
    if (time) view.signal("from", span[0]).signal("to", span[1]);
    view.runAsync();
  }
  for (const box of same.filter((each) => each.matches(".box"))) showInside(box);
  describe(same);
  // The address leads back to it. Without a choice it is the page's own.
  try { history.replaceState(null, "", chosen ? `#at=${encodeURIComponent(chosen)}` : location.pathname + location.search); } catch { /* not kept */ }
}
function followLink() {
  const [, key] = /^#at=(.*)$/.exec(location.hash) ?? [];
  if (key === undefined || chosen === decodeURIComponent(key)) return;
  choose(decodeURIComponent(key));
  const part = document.querySelector(".chosen:not(tr)") ?? document.querySelector(".chosen");
  (part?.closest("section") ?? root).scrollIntoView();
}
addEventListener("hashchange", followLink);
function showInside(box) {
  const frame = box.closest(".graph"), at = box.getBoundingClientRect(), outer = frame.getBoundingClientRect();
  frame.scrollTop += at.top - outer.top - (outer.height - at.height) / 2;
  frame.scrollLeft += at.left - outer.left - (outer.width - at.width) / 2;
}
function describe(same) {
  const bar = byId("chosen"), box = same.find((each) => each.matches(".box"));
  bar.hidden = !chosen;
  const name = document.createElement("strong");
  name.textContent = box ? all("text", box).map((each) => each.textContent).join("  ") : chosen;
  bar.replaceChildren(name);
  const span = page.spans[chosen];
  if (span && views.some((each) => each.time)) {
    const spare = (span[1] - span[0]) * 0.1;
    bar.append(button("show its time", () => {
      showTime(span[0] - spare, span[1] + spare);
      document.querySelector(".times")?.closest("section").scrollIntoView();
    }));
  }
  const row = same.find((each) => each.matches("tr"));
  if (row) bar.append(button("its row", () => row.scrollIntoView({ block: "center" })));
  if (box) bar.append(button("in the network", () => box.closest("section").scrollIntoView()));
  bar.append(button("clear", () => choose(chosen)));
}
for (const part of all("[data-key]")) {
  part.addEventListener("click", () => { if (!String(getSelection())) choose(part.dataset.key); });
  part.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(part.dataset.key); });
}
// A wide graph begins at its first box, not at its left edge.
all(".graph").forEach(zoomed);
for (const graph of all(".graph")) if (graph.querySelector(".box")) showInside(graph.querySelector(".box"));
Promise.all(all(".chart").map(draw)).then(() => { followLink(); root.dataset.ready = "yes"; });
