/* The attention web: tokens in a row, arcs from one of them back to those that it looks at, as wide as the
   weight. Backwards only. A row for trained weights, one for random weights of the same shape. Play reads on from
   the first token; with data-steps an arrow key goes on to the next of the last tokens. Beside random weights stand
   heads to pick and layers to blur. */
(function () {
  "use strict";

  const { kinds, element, shape, text, percent, badge, picture, choice, player, narrow } = window.machines;
  const WIDTH = 1200, EDGE = 60, PILL = 44, WIDEST = 30, PACE = 700;
  const NAMES = { trained: "trained weights", random: "random weights, same shape" };

  function arc(from, to, base, weight, room) {
    const high = Math.min(room, 26 + 0.36 * (from - to));
    const d = from === to ? "M" + (from - 12) + " " + base + "c-16 -44 40 -44 24 0"
      : "M" + from + " " + base + "C" + from + " " + (base - 1.33 * high) + " " + to + " " + (base - 1.33 * high) + " " + to + " " + base;
    return shape("path", { class: "arc", d, "stroke-width": Math.max(0.8, WIDEST * weight), opacity: 0.22 + 0.78 * weight });
  }

  /** One token's look on a narrow screen: tokens below one another, arcs at the left of them. */
  function column(tokens, own, looking, best) {
    const edge = 205, y = (t) => 22 + 40 * t;
    return [
      ...own.map((weight, s) => [weight, s]).sort((a, b) => a[0] - b[0]).map(function ([weight, s]) {
        const x = edge - 1.33 * Math.min(150, 26 + 0.45 * (y(looking) - y(s)));
        return shape("path", { class: "arc", "stroke-width": Math.max(0.8, 20 * weight), opacity: 0.22 + 0.78 * weight,
          d: "M" + edge + " " + y(looking) + "C" + x + " " + y(looking) + " " + x + " " + y(s) + " " + edge + " " + y(s) });
      }),
      ...tokens.map((token, t) => shape("g", { class: "pill" + (t === looking ? " looking" : t === best ? " best" : "") },
        shape("rect", { x: edge, y: y(t) - 17, width: 150, height: 34, rx: 8 }), text(edge + 75, y(t) + 6, token, { "font-size": 18 }))),
    ];
  }

  kinds.web = function (place, arrays) {
    if (arrays === null) return null;
    const plain = place.dataset.plain !== undefined, { tokens } = arrays, last = tokens.length - 1;
    const rows = (place.dataset.rows || "trained").split(" ").filter((name) => arrays.weights[name]);
    const tall = plain ? 158 : rows.length === 1 ? 290 : arrays.next ? 138 : 158;  // what is said below needs room
    const trained = arrays.weights.trained, heads = trained[0].length;
    const { svg, say } = picture(WIDTH, rows.length * tall + 10, "");
    if (!plain) svg.setAttribute("role", "group");
    const gap = last > 0 ? Math.min(150, (WIDTH - 2 * EDGE) / last) : 0, begin = (WIDTH - gap * last) / 2;
    const hue = (t) => (arrays.hues ? arrays.hues[t] : null), filled = (degrees) => "hsl(" + degrees + " 65% 52%)";
    const at = (t) => begin + gap * t, wide = Math.min(2 * EDGE - 4, 0.92 * (gap || WIDTH));
    const steps = Number(place.dataset.steps || 0), asks = arrays.next && rows.length > 1, picks = asks || !arrays.next;
    let looking = last;
    const layer = choice("Layer", trained.map((_, n) => String(n + 1)), arrays.begin.layer - 1, draw);
    const head = choice("Head", trained[0].map((_, n) => String(n + 1)), arrays.begin.head - 1, draw);
    const { play, stop } = player(place, PACE, (ended) => look(ended ? last : 0), function () {
      look(Math.min(last, looking + 1));
      return looking >= last;
    });
    const blurs = (arrays.next || [{ likeliest: [] }]).filter((row) => row.model !== "lstm");
    const blur = choice("Blur", blurs.map((row) => (row.flattened ? String(row.flattened) : "none")), 0, draw);
    const next = element("span", { class: "next" }), sentence = element("p", { class: "sentence" });

    function most(weights) {
      const best = weights.indexOf(Math.max(...weights));
      return tokens[best] + (best === weights.length - 1 ? " (itself)" : "") + ", " + percent(weights[best]);
    }

    function row(name, n) {
      const base = n * tall + tall - PILL, weights = arrays.weights[name][layer.at()][head.at()], own = weights[looking];
      const parts = own.map((weight, s) => [weight, s]).sort((a, b) => a[0] - b[0]).map(([weight, s]) => arc(at(looking), at(s), base, weight, tall - PILL - 40));
      const best = own.indexOf(Math.max(...own));
      if (!plain) parts.push(text(16, n * tall + 26, NAMES[name], { class: "name", "text-anchor": "start", "font-size": 26 }));
      tokens.forEach(function (token, t) {
        const state = t === looking ? " looking" : t === best ? " best" : t > looking ? " ahead" : "";
        const focus = plain || n > 0 ? {} : { tabindex: 0, role: "button", "aria-pressed": String(t === looking),
          "aria-label": token + ", token " + (t + 1) + ": looks most at " + most(weights[t]) };
        const pill = shape("g", { class: "pill" + state, ...focus },
          shape("rect", { x: at(t) - wide / 2, y: base, width: wide, height: PILL, rx: 10 }), ...written(token, t, base));
        ["pointerenter", "focus", "click"].forEach((name) => pill.addEventListener(name, () => { stop(); look(t); }));
        parts.push(pill);
      });
      return shape("g", { class: "row" }, ...parts);
    }

    /** A token in its pill: its letters, or a card's number with its colour. */
    function written(token, t, base) {
      const size = Math.max(19, Math.min(26, 1.5 * wide / Math.max(2, token.length)));
      const long = 0.6 * size * token.length > wide ? { textLength: 0.92 * wide, lengthAdjust: "spacingAndGlyphs" } : {};
      if (hue(t) === null) return [text(at(t), base + 31, token, { "font-size": size, ...long })];
      return [shape("circle", { class: "card", cx: at(t) - 18, cy: base + PILL / 2, r: 13, fill: filled(hue(t)) }),
        text(at(t) + 16, base + 31, token, { "font-size": size })];
    }

    /** The cards ask for a colour, so a colour answers, with its number. */
    const colour = (t) => (hue(t) === null ? [] : [element("span", { class: "dot", style: "background:" + filled(hue(t)) }), " "]);

    function look(t) {
      if (t === looking || plain) return;
      const held = document.activeElement && svg.contains(document.activeElement);
      looking = t;
      draw();
      if (held) svg.querySelectorAll("[tabindex]")[t].focus();
    }

    function draw() {
      const own = arrays.weights[rows[0]][layer.at()][head.at()][looking], upright = plain && narrow.matches;
      svg.setAttribute("viewBox", upright ? "0 0 360 " + (40 * tokens.length + 4) : "0 0 " + WIDTH + " " + (rows.length * tall + 10));
      svg.replaceChildren(...(upright ? column(tokens, own, looking, own.indexOf(Math.max(...own))) : rows.map(row)));
      say("Attention of layer " + (layer.at() + 1) + ", head " + (head.at() + 1) + ": “" + tokens[looking] + "” looks most at " + most(own) + ".");
      const best = own.indexOf(Math.max(...own)), words = blurs[blur.at()].sentence;
      const looks = ["“" + tokens[looking] + "” looks most at ", ...colour(best), most(own) + "."];
      sentence.replaceChildren(badge(place.dataset.badge || "RECORDED"), " ", ...(words ? [words] : looks));  // a long one is cut at its end
      const before = blurs[0].likeliest.map(([token]) => token);
      next.replaceChildren("Next:", ...blurs[blur.at()].likeliest.flatMap(([token, chance]) =>
        [" ", element("q", before.includes(token) ? {} : { class: "new" }, token), " " + percent(chance)]));
    }

    place.replaceChildren(svg);
    if (plain) {
      place.append(element("p", { class: "sentence" }, arrays.begin.sentence + " ", badge(place.dataset.badge || "RECORDED")));
    } else {
      const choices = picks ? [layer.row, heads > 1 ? head.row : ""] : [];
      place.append(element("div", { class: "knobs" }, ...choices, asks ? "" : play, sentence));
      if (asks) place.append(element("div", { class: "knobs" }, play, blur.row, next));
    }
    return {
      step: function (n) {
        stop();
        if (steps && n <= steps) looking = Math.max(0, last - steps + Math.max(0, n));
        draw();
      },
    };
  };
})();
