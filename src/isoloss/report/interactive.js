// The explorer's controls, chart and table. All of them show the same rows: those that D and the filter leave.
(() => {
"use strict";
const { rows, columns, names, axes, tokens, chart } = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const legend = [...document.querySelectorAll(".legend button")];
const LISTED = 500, DRAWN_AS_SVG = 4000; // of more the table, or every mark an element, would be slow
const state = { sort: "loss", down: false, view: null, lines: new Map() };
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const write = (column, value) => {
  if (value === null) return "–";
  if (typeof value !== "number") return value;
  return ["loss", "low", "high"].includes(column) ? value.toFixed(4) : column === "seed" ? String(value) : short.format(value);
};

function shown() {
  const most = tokens[Number(at("most").value)];
  const words = at("filter").value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  return rows.filter((row) => {
    const text = `${row.family} ${row.curve} ${row.run_id} s${row.seed}`.toLowerCase();
    return (at("last").checked ? row.tokens === most : row.tokens <= most) && words.every((word) => text.includes(word));
  });
}

const scale = (box) => ({ nice: false, padding: 20, ...(at(box).checked ? { type: "log" } : { type: "linear", zero: false }) });

async function draw() {
  const spec = structuredClone(chart);
  for (const layer of spec.layer) {
    Object.assign(layer.encoding.x, { field: at("across").value, title: axes[at("across").value] });
    layer.encoding.x.scale = scale("log-x");
    layer.encoding.y.scale = scale("log-y");
  }
  spec.datasets = { rows: shown() };
  const renderer = spec.datasets.rows.length > DRAWN_AS_SVG ? "canvas" : "svg";
  state.view?.finalize();
  const { view } = await vegaEmbed("#chart", spec, { ast: true, actions: false, renderer, tooltip: { theme: "custom" } });
  view.addEventListener("mouseover", (_, mark) => point(mark?.datum));
  view.addEventListener("mouseout", () => point());
  view.addEventListener("click", (_, mark) => {
    const tr = lineOf(mark?.datum);
    if (!tr) return;
    tr.focus({ preventScroll: true }); // the page stays where it is: the pointer is on a mark
    at("table").parentElement.scrollTop = tr.offsetTop - at("table").tHead.offsetHeight;
  });
  state.view = view;
  fade();
}

// Marks of the chart point at rows of the table, rows and the legend at marks.
const key = (row) => `${row.run_id} ${row.tokens}`;

function lineOf(row) {
  if (!row?.run_id) return undefined;
  if (!state.lines.has(key(row))) at("table").tBodies[0].prepend(line(row));
  return state.lines.get(key(row));
}

function point(row) {
  document.querySelector("tr.pointed")?.classList.remove("pointed");
  lineOf(row)?.classList.add("pointed");
}

function fade() {
  state.view?.signal("left", legend.filter((one) => one.ariaPressed === "true").map((one) => one.value)).run();
}

function fill() {
  const kept = shown().sort((a, b) => {
    const [x, y] = [a[state.sort], b[state.sort]];
    return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1);
  });
  at("count").textContent = `${kept.length} of ${rows.length} points${kept.length > LISTED ? `, ${LISTED} listed` : ""}`;
  state.lines.clear();
  at("table").tBodies[0].replaceChildren(...kept.slice(0, LISTED).map(line));
  if (kept.length) lineOf(kept[0]).tabIndex = 0;
  for (const head of at("table").tHead.rows[0].cells) {
    head.ariaSort = head.dataset.column === state.sort ? (state.down ? "descending" : "ascending") : "none";
  }
}

function line(row) {
  const tr = document.createElement("tr");
  tr.tabIndex = -1;
  state.lines.set(key(row), tr);
  for (const column of columns) {
    const cell = tr.insertCell();
    cell.textContent = write(column, row[column]);
    if (typeof row[column] === "number") cell.className = "number";
  }
  const choose = (id) => () => state.view?.signal("chosen", id).run();
  for (const kind of ["mouseenter", "focus"]) tr.addEventListener(kind, choose(row.run_id));
  for (const kind of ["mouseleave", "blur"]) tr.addEventListener(kind, choose(""));
  return tr;
}

function heads() {
  for (const column of columns) {
    const head = document.createElement("th");
    const button = document.createElement("button");
    head.scope = "col";
    head.dataset.column = column;
    button.type = "button";
    button.textContent = names[column] ?? column;
    button.addEventListener("click", () => {
      state.down = state.sort === column && !state.down;
      state.sort = column;
      fill();
    });
    head.append(button);
    at("table").tHead.rows[0].append(head);
  }
}

function update() {
  at("most-now").textContent = short.format(tokens[Number(at("most").value)]);
  fill();
  window.ready = (window.ready ?? Promise.resolve()).then(draw); // one after another
}

heads();
for (const id of ["across", "log-x", "log-y", "most", "last", "filter"]) at(id).addEventListener("input", update);
at("whole").addEventListener("click", update);
for (const button of legend) {
  button.addEventListener("click", () => {
    button.ariaPressed = String(button.ariaPressed !== "true");
    fade();
  });
}
at("table").tBodies[0].addEventListener("keydown", (event) => {
  const next = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  if (!next) return;
  event.preventDefault();
  event.target[next]?.focus();
});
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
update();
})();
