/* Two things that are computed here, exactly, from what the reader sets: a memory cell and a soft dictionary.

   <div data-interactive="valves" data-word="shift">what to read without a script</div>
   <div data-interactive="dictionary" data-query="[1, 0.2]" data-entries='[["name", [1, 0], [3, 1]], …]'>…</div>
*/
(function () {
  "use strict";

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    Object.entries(attributes || {}).forEach(function ([key, value]) {
      made.setAttribute(key, value);
    });
    made.append(...children);
    return made;
  }

  const said = (value, digits = 2) => value.toFixed(digits).replace("-", "−").replace(/^−(0\.?0*)$/, "$1");
  const pair = (vector) => "(" + vector.map((value) => said(value)).join(", ") + ")";
  const badge = () => element("span", { class: "badge exact" }, "EXACT");

  let made = 0;

  /** A labelled slider; ``tell`` turns its value into words. Returns {row, value()}. */
  function slider(label, low, high, step, start, tell, changed) {
    const id = "slider-" + ++made;
    const input = element("input", { id: id, type: "range", min: low, max: high, step: step, value: start });
    const words = element("span", { class: "value" });
    const value = () => Number(input.value);
    const show = function () {
      words.textContent = tell(value());
      input.setAttribute("aria-valuetext", tell(value()));
    };
    input.addEventListener("input", function () {
      show();
      changed();
    });
    show();
    const row = element("div", { class: "slider" }, element("label", { for: id }, label), input, words);
    const set = function (to) {
      input.value = to;
      show();
    };
    return { row, value, set };
  }

  function button(text, act) {
    const made = element("button", { type: "button" }, text);
    made.addEventListener("click", act);
    return made;
  }

  /** A table with a caption; rows of text or nodes, the first of each a header. Returns {frame, fill}. */
  function table(caption, columns) {
    const body = element("tbody");
    const head = element("tr", {}, ...columns.map((name) => element("th", { scope: "col" }, name)));
    const whole = element("table", {}, element("caption", {}, caption), element("thead", {}, head), body);
    const frame = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, whole);
    const row = (cells) => element("tr", {}, ...cells.map((cell, i) =>
      i === 0 ? element("th", { scope: "row" }, cell) : element("td", {}, cell)));
    return { frame, fill: (rows) => body.replaceChildren(...rows.map(row)) };
  }

  function bar(share) {
    const inner = element("span", { class: "fill" });
    inner.style.width = 100 * share + "%";
    return element("span", { class: "share" }, element("span", { class: "track", "aria-hidden": "true" }, inner),
      said(100 * share, 1) + "%");
  }

  // --- c_t = f c_(t-1) + i g_t,  h_t = o tanh(c_t): the gates stand still, so that each can be seen -----------

  const sigmoid = (x) => 1 / (1 + Math.exp(-x));

  function halfLife(f) {
    if (f <= 0) return "Nothing is kept: the memory is gone at the next letter.";
    if (f >= 1) return "Nothing is lost: what was written stays.";
    const steps = Math.log(0.5) / Math.log(f);
    return "Half-life of a memory: ln ½ / ln f = " + said(steps, 1) + (steps === 1 ? " letter." : " letters.");
  }

  function valves(place) {
    const word = place.dataset.word || "shift";
    const letters = Array.from(word);
    const worth = (letter) => Math.max(-1, Math.min(1, (letter.toLowerCase().charCodeAt(0) - 109.5) / 12.5));
    let step = 1;
    const gate = (value) => said(value);
    const i = slider("Input gate i", 0, 1, 0.01, 1, gate, draw);
    const f = slider("Forget gate f", 0, 1, 0.01, 0.5, gate, draw);
    const o = slider("Output gate o", 0, 1, 0.01, 1, gate, draw);
    const found = table("The cell, letter by letter", ["Letter", "written g", "memory c", "shown h", "left of the first"]);
    const sentence = element("p", { class: "sentence" });
    const steps = element("div", { class: "buttons" },
      button("Next letter", () => to(step + 1)), button("From the start", () => to(1)),
      button("Forget bias 0 (f = 0.50)", () => open(0)), button("Forget bias 3 (f = 0.95)", () => open(3)));

    function to(next) {
      step = Math.min(Math.max(next, 1), letters.length);
      draw();
    }
    function open(bias) {
      f.set(sigmoid(bias).toFixed(2));
      draw();
    }
    function draw() {
      const rows = [];
      let memory = 0;
      letters.slice(0, step).forEach(function (letter, t) {
        const written = worth(letter);
        memory = f.value() * memory + i.value() * written;
        const left = i.value() * f.value() ** t;
        rows.push([letter, said(written), said(memory), said(o.value() * Math.tanh(memory)), bar(left)]);
      });
      found.fill(rows);
      sentence.replaceChildren(badge(), " " + halfLife(f.value()));
    }

    draw();
    return [element("div", { class: "knobs" }, i.row, f.row, o.row, steps, sentence), found.frame];
  }

  // --- weights = softmax(q·k / (√2 τ)), answer = Σ weight × value ---------------------------------------------

  const ENTRIES = [["key 1", [2, 0], [4, 1]], ["key 2", [0, 2], [0, 3]], ["key 3", [-2, 0], [-2, 2]]];

  function dictionary(place) {
    const entries = place.dataset.entries ? JSON.parse(place.dataset.entries) : ENTRIES;
    const query = place.dataset.query ? JSON.parse(place.dataset.query) : [1, 0];
    const q = query.map((start, at) =>
      slider("Query, number " + (at + 1), -2, 2, 0.1, start, (value) => said(value, 1), draw));
    const heat = slider("Temperature", 0.1, 4, 0.1, 1, (value) => said(value, 1), draw);
    const found = table("Query against every key: score = q·k / √2", ["Entry", "key", "score", "weight", "value"]);
    const sentence = element("p", { class: "sentence" });

    function draw() {
      const now = q.map((one) => one.value());
      const scores = entries.map(([, key]) => key.reduce((sum, part, at) => sum + part * now[at], 0) / Math.SQRT2);
      const top = Math.max(...scores);
      const raised = scores.map((score) => Math.exp((score - top) / heat.value()));
      const total = raised.reduce((a, b) => a + b, 0);
      const weights = raised.map((part) => part / total);
      const mixed = entries[0][2].map((_, at) => entries.reduce((sum, entry, n) => sum + weights[n] * entry[2][at], 0));
      found.fill(entries.map(([name, key, value], n) => [name, pair(key), said(scores[n]), bar(weights[n]), pair(value)]));
      const best = entries[weights.indexOf(Math.max(...weights))][0];
      sentence.replaceChildren(badge(), " The answer is a mixture, " + pair(mixed) + ": most of it from “" + best +
        "”. The weights add up to " + said(weights.reduce((a, b) => a + b, 0)) + ".");
    }

    draw();
    return [element("div", { class: "knobs" }, ...q.map((one) => one.row), heat.row, sentence), found.frame];
  }

  const KINDS = { valves, dictionary };
  document.querySelectorAll("[data-interactive]").forEach(function (place) {
    place.replaceChildren(...KINDS[place.dataset.interactive](place));
    place.classList.add("interactive");
  });
})();
