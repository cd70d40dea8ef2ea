/* The LSTM cell: letters under a belt, a valve (forget) before each, a tap from below (input) and one to above
   (output). Ink that a letter wrote pales as it travels: with gates that stand still, i · f^t is left after t
   letters; with a trained model's gates, what its arrays say. */
(function () {
  "use strict";

  const { kinds, element, shape, text, percent, badge, picture, slider, choice, player, narrow } = window.machines;
  const WIDTH = 1200, HEIGHT = 300, BELT = 130, HALF = 20, LETTERS = 250, EDGE = 92, STEP = 40;
  const LONGEST = 30, PACE = 420;
  const words = (count) => (count === 1 ? "1 letter" : count.toFixed(count < 10 ? 1 : 0) + " letters");

  /** Places of n letters along the belt. */
  function places(n) {
    const gap = n > 1 ? Math.min(150, (WIDTH - 2 * EDGE) / (n - 1)) : 0;
    const begin = (WIDTH - gap * (n - 1)) / 2;
    return { gap, at: (t) => begin + gap * t };
  }

  function disc(x, left, gap) {
    const r = Math.max(2, Math.min(30, 0.42 * gap) * Math.sqrt(left));
    return shape("circle", { class: "ink", cx: x, cy: BELT, r, opacity: 0.12 + 0.88 * left });
  }

  function suitcase(x) {
    return shape("g", { class: "suitcase", transform: "translate(" + x + " " + BELT + ")" },
      shape("path", { d: "M-14 -34v-12h28v12", fill: "none", "stroke-width": 7 }),
      shape("rect", { x: -36, y: -34, width: 72, height: 62, rx: 9 }));
  }

  /** Belt, letters, gates up to letter ``reached`` and the ink of the first. ``left[t]``: its share at t. */
  function belt(labels, gates, left, reached) {
    const { gap, at } = places(labels.length), longest = Math.max(...labels.map((label) => label.length));
    const size = Math.max(20, Math.min(38, 0.62 * gap, 1.5 * gap / longest));
    const parts = [shape("rect", { class: "belt", x: 12, y: BELT - HALF, width: WIDTH - 24, height: 2 * HALF, rx: HALF })];
    labels.forEach(function (label, t) {
      const x = at(t), { input, forget, output } = gates(t), here = t === reached;
      if (t > 0) {
        const open = HALF * forget, plate = { class: "valve", x: x - gap / 2 - 5, width: 10, rx: 3 };
        parts.push(shape("rect", { ...plate, y: BELT - 40, height: Math.max(0, 40 - open) }),
          shape("rect", { ...plate, y: BELT + open, height: Math.max(0, 40 - open) }));
      }
      const tap = (y, end, gate) => shape("path", {
        class: "tap" + (here ? " here" : ""), d: "M" + x + " " + y + "V" + end, "stroke-width": 1 + 9 * gate,
      });
      parts.push(tap(LETTERS - size, BELT + HALF + 4, input), tap(BELT - HALF - 4, 72, output));
      if (t <= reached) parts.push(disc(x, left(t), gap));
      const long = 0.6 * size * label.length > gap ? { textLength: 0.9 * gap, lengthAdjust: "spacingAndGlyphs" } : {};
      parts.push(text(x, LETTERS + 10, label, { class: "letter" + (t === 0 ? " first" : ""), "font-size": size, ...long }));
    });
    // The taps have their names where the belt stands.
    const name = (x, y, words, attributes) => parts.push(text(x, y, words, { class: "gate", "font-size": 22, ...attributes }));
    if (reached > 0) name(at(reached) - gap / 2 + 6, BELT - 50, "forget", { "text-anchor": "end" });
    name(at(reached) + 12, 94, "output", { "text-anchor": "start" });
    name(at(reached) + 12, BELT + 62, "input", { "text-anchor": "start" });
    parts.push(text(at(reached), 52, percent(left(reached)), { class: "share", "font-size": 34 }));
    return parts;
  }

  kinds.cell = function (place, arrays) {
    const plain = place.dataset.plain !== undefined;
    if (plain && arrays === null) return null;
    const { svg, say } = picture(WIDTH, plain ? 290 : HEIGHT, "");
    if (plain) {
      const kept = element("p", { class: "sentence" }, arrays.carried.sentence + " ", badge(place.dataset.badge || "RECORDED"));
      place.replaceChildren(svg, kept);
      return { step: () => carried(svg, say, arrays) };
    }
    const steps = Number(place.dataset.steps || 6);
    let reached = 0, opened = false;
    const forget = slider("Forget", 0, 1, 0.01, 0.5, draw);
    const input = slider("Input", 0, 1, 0.01, 1, draw);
    const output = slider("Output", 0, 1, 0.01, 1, draw);
    const word = element("input", { type: "text", maxlength: LONGEST, value: place.dataset.word || "shifting", "aria-label": "Your word" });
    const layers = arrays ? arrays.gates.map((_, n) => "trained, layer " + (n + 1)) : [];
    const mode = choice("Gates:", ["yours", ...layers], 0, restart);
    const { play, stop } = player(place, PACE, (ended) => reach(ended ? labels().length - 1 : 0), function () {
      reach(reached + 1);
      return reached >= labels().length - 1;
    });
    const sentence = element("p", { class: "sentence" });
    const formula = element("p", { class: "behind" });
    word.addEventListener("input", restart);
    place.replaceChildren(svg, sentence, element("div", { class: "knobs" }, forget.row, input.row, output.row),
      element("div", { class: "knobs" }, element("label", {}, "Your word ", word), play, layers.length ? mode.row : ""), formula);

    const trained = () => mode.at() > 0;
    const labels = () => (trained() ? arrays.tokens : Array.from(word.value.trim() || "?"));

    function reach(letter) {
      reached = letter;
      draw();
    }
    function restart() {
      stop();
      reach(labels().length - 1);
    }
    function draw() {
      const letters = labels(), t = Math.min(reached, letters.length - 1);
      const own = { input: input.value(), forget: forget.value(), output: output.value() };
      const gates = trained() ? arrays.gates[mode.at() - 1] : null;
      const gate = (at) => (gates ? { input: gates.input[at], forget: gates.forget[at], output: gates.output[at] } : own);
      const left = (at) => (gates ? arrays.ink[mode.at() - 1][0][at] : own.input * own.forget ** at);
      svg.replaceChildren(...belt(letters, gate, left, t));
      const end = "“" + letters[0] + "”: " + percent(left(letters.length - 1)) + " left at the end.";
      const half = own.forget >= 1 ? "Nothing fades." : own.forget <= 0 ? "All is gone at the next letter."
        : "Half is gone after " + words(Math.log(0.5) / Math.log(own.forget)) + ".";
      sentence.replaceChildren(trained() ? end : half, " ", badge(trained() ? place.dataset.badge || "RECORDED" : "EXACT"));
      [forget, input, output].forEach((one) => { one.row.classList.toggle("idle", trained()); });
      say("A belt of memory over " + letters.length + " letters, " + letters.join(" ") + ". At “" + letters[t] + "” " +
        percent(left(t)) + " of the ink of “" + letters[0] + "” is left.");
      formula.textContent = "Forget " + gate(t).forget + ", input " + gate(t).input + ", output " + gate(t).output +
        " at “" + letters[t] + "”: c = f · c + i · g, h = o · tanh(c). Left of the first letter: i · f to the power of " + t + ".";
    }

    return {
      step: function (n) {
        stop();
        const last = labels().length - 1, beyond = place.dataset.then !== undefined && n > steps && n !== Infinity;
        // One step more opens the forget tap; a step back closes it again.
        if (beyond !== opened && !trained()) forget.set(beyond ? place.dataset.then : 0.5);
        opened = beyond;
        reach(Math.max(0, n >= steps ? last : Math.round(n * last / steps)));
      },
    };
  };

  /** Everything at once: what is left of each token's ink at the end, in the layer that keeps most, and the suitcase
      that holds it. */
  function carried(svg, say, arrays) {
    const { tokens } = arrays, last = tokens.length - 1;
    const left = arrays.ink[arrays.carried.layer - 1].slice(0, last).map((ink, s) => ink[last - s]);
    svg.setAttribute("viewBox", narrow.matches ? "0 0 360 " + (STEP * tokens.length + 4) : "0 70 " + WIDTH + " 150");
    svg.replaceChildren(...(narrow.matches ? upright : level)(tokens, left));
    say("A belt with a suitcase at its end, of LSTM layer " + arrays.carried.layer + ". Of the ink of each word this much is left: " +
      left.map((share, s) => tokens[s] + " " + percent(share)).join(", ") + ".");
  }

  function level(tokens, left) {
    const { gap, at } = places(tokens.length);
    return [shape("rect", { class: "belt", x: 12, y: BELT - HALF, width: WIDTH - 24, height: 2 * HALF, rx: HALF }),
      ...left.map((share, s) => disc(at(s), share, gap)), suitcase(at(tokens.length - 1)),
      ...tokens.map((token, t) => text(at(t), BELT + 72, token, { class: "letter", "font-size": 26 }))];
  }

  /** The same from top to bottom, for a narrow screen. */
  function upright(tokens, left) {
    const y = (t) => 22 + STEP * t, held = suitcase(0);
    held.setAttribute("transform", "translate(240 " + y(tokens.length - 1) + ") scale(0.45)");
    return [shape("rect", { class: "belt", x: 222, y: 4, width: 36, height: STEP * tokens.length - 4, rx: 18 }),
      ...left.map((share, s) => shape("circle", { class: "ink", cx: 240, cy: y(s), r: 16 * Math.sqrt(share), opacity: 0.12 + 0.88 * share })), held,
      ...tokens.map((token, t) => text(200, y(t) + 6, token, { class: "letter", "font-size": 18, "text-anchor": "end" }))];
  }
})();
