/* Attention as a soft dictionary, in a plane: weights = softmax(q·k / (√2 τ)), answer = Σ weight · value. The
   values are colours, so that a mixture can be seen. Drag the query's arrow, or turn it with its slider. On a narrow
   screen the answer stands below the arrows, not beside them. */
(function () {
  "use strict";

  const { kinds, element, shape, text, percent, badge, picture, slider, narrow } = window.machines;
  const WIDTH = 1200, HEIGHT = 400, X = 300, Y = 200, UNIT = 82, LENGTH = 2;
  const NARROW = { width: 620, height: 740, left: -520, down: 390 };
  const KEYS = [["river", 60, [38, 122, 201]], ["money", 165, [222, 160, 20]], ["loan", 215, [42, 150, 96]]];
  const point = (degrees, length) => [X + UNIT * length * Math.cos(degrees * Math.PI / 180), Y - UNIT * length * Math.sin(degrees * Math.PI / 180)];
  const rgb = (colour) => "rgb(" + colour.map(Math.round).join(" ") + ")";

  function arrow(degrees, colour, width, label) {
    const [x, y] = point(degrees, LENGTH - 0.12), [lx, ly] = point(degrees, LENGTH + 0.28);
    return [shape("path", { d: "M" + X + " " + Y + "L" + x + " " + y, stroke: colour, "stroke-width": width, "stroke-linecap": "round" }),
      shape("circle", { cx: x, cy: y, r: 1.4 * width, fill: colour }),
      text(lx, ly + 9, label, { "font-size": 30, "text-anchor": Math.cos(degrees * Math.PI / 180) < -0.2 ? "end" : "start", class: "name" })];
  }

  kinds.dictionary = function (place) {
    const { svg, say } = picture(WIDTH, HEIGHT, "");
    const angle = slider("Query “bank”, degrees", -180, 180, 1, 110, draw);
    const heat = slider("Temperature", 0.1, 4, 0.1, 1, draw);
    const sentence = element("p", { class: "sentence" }), numbers = element("p", { class: "behind" });
    place.replaceChildren(svg, sentence, element("div", { class: "knobs" }, angle.row, heat.row), numbers);

    function turn(event) {
      const box = svg.getBoundingClientRect();
      const x = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width - X, y = Y - (event.clientY - box.top) * svg.viewBox.baseVal.height / box.height;
      angle.set(Math.round(Math.atan2(y, x) * 180 / Math.PI));
      draw();
    }
    svg.addEventListener("pointerdown", function (event) {
      svg.setPointerCapture(event.pointerId);
      turn(event);
    });
    svg.addEventListener("pointermove", (event) => { if (event.buttons) turn(event); });

    function draw() {
      const scores = KEYS.map(([, at]) => LENGTH * LENGTH * Math.cos((at - angle.value()) * Math.PI / 180) / Math.SQRT2);
      const top = Math.max(...scores), raised = scores.map((score) => Math.exp((score - top) / heat.value()));
      const total = raised.reduce((a, b) => a + b), weights = raised.map((part) => part / total);
      const mixed = [0, 1, 2].map((c) => KEYS.reduce((sum, [, , colour], n) => sum + weights[n] * colour[c], 0));
      const bars = KEYS.flatMap(function ([name, , colour], n) {
        const y = 60 + 62 * n;
        return [text(690, y + 28, name, { class: "name", "font-size": 30, "text-anchor": "end" }),
          shape("rect", { x: 710, y, width: Math.max(2, 330 * weights[n]), height: 38, rx: 6, fill: rgb(colour) }),
          text(724 + 330 * weights[n], y + 28, percent(weights[n]), { class: "name", "font-size": 28, "text-anchor": "start" })];
      });
      svg.replaceChildren(shape("circle", { class: "plane", cx: X, cy: Y, r: UNIT * LENGTH }),
        ...KEYS.flatMap(([name, at, colour], n) => arrow(at, rgb(colour), 4 + 10 * weights[n], name)),
        ...arrow(angle.value(), "var(--ink)", 7, "bank?"),
        shape("g", narrow.matches ? { transform: "translate(" + NARROW.left + " " + NARROW.down + ")" } : {}, ...bars,
          text(690, 302, "answer", { class: "name", "font-size": 30, "text-anchor": "end" }),
          shape("rect", { x: 710, y: 262, width: 330, height: 60, rx: 10, fill: rgb(mixed) })));
      svg.setAttribute("viewBox", narrow.matches ? "0 0 " + NARROW.width + " " + NARROW.height : "0 0 " + WIDTH + " " + HEIGHT);
      const most = Math.max(...weights), [best] = KEYS[weights.indexOf(most)];
      sentence.replaceChildren("“" + best + "” gives " + percent(most) + " of the answer. ", badge("EXACT"));
      const shares = KEYS.map(([name], n) => name + " " + weights[n].toFixed(3)).join(", ");
      say("A query, bank, among three keys. Weights: " + shares + ". The answer mixes their colours.");
      numbers.textContent = "Scores q·k / √2: " + scores.map((score) => score.toFixed(2)).join(", ") + ". Weights, softmax at temperature " +
        heat.value() + ": " + shares + ", together 1. Toy arrows of length 2: the arithmetic is exact, the words are names.";
    }

    return { step: draw };
  };
})();
