// The explorer's controls, chart and table. All of them show the same rows: those that D and the filter leave.
(() => {
"use strict";
const { rows, columns, names, axes, tokens, chart } = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const state = { sort: "loss", down: false, view: null };
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
  state.view?.finalize();
  const made = await vegaEmbed("#chart", spec, { ast: true, actions: false, renderer: "svg", tooltip: { theme: "custom" } });
  state.view = made.view;
}

function fill() {
  const kept = shown().sort((a, b) => {
    const [x, y] = [a[state.sort], b[state.sort]];
    return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1);
  });
  at("count").textContent = `${kept.length} of ${rows.length} points`;
  at("table").tBodies[0].replaceChildren(...kept.map(line));
  for (const head of at("table").tHead.rows[0].cells) {
    head.ariaSort = head.dataset.column === state.sort ? (state.down ? "descending" : "ascending") : "none";
  }
}

function line(row) {
  const tr = document.createElement("tr");
  tr.tabIndex = 0;
  for (const column of columns) {
    const cell = tr.insertCell();
    cell.textContent = write(column, row[column]);
    if (typeof row[column] === "number") cell.className = "number";
  }
  const point = (id) => () => state.view?.signal("chosen", id).run();
  for (const kind of ["mouseenter", "focus"]) tr.addEventListener(kind, point(row.run_id));
  for (const kind of ["mouseleave", "blur"]) tr.addEventListener(kind, point(""));
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
  return draw();
}

heads();
for (const id of ["across", "log-x", "log-y", "most", "last", "filter"]) at(id).addEventListener("input", update);
at("whole").addEventListener("click", update);
document.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
window.ready = update();
})();
