/* Blame on its way back: a circle a letter, from now at the right to nineteen letters ago at the left, as large
   as the share of the gradient that arrives. A side a row. Before its first step the circles are empty, since the
   room is still guessing. */
(function () {
  "use strict";

  const { kinds, element, shape, text, picture, player, badge } = window.machines;
  const WIDTH = 800, ROW = 112, RADIUS = 18, EDGE = 24, PACE = 70;

  kinds.blame = function (place, arrays) {
    if (arrays === null || arrays.length === 0) return null;
    const { svg, say } = picture(WIDTH, arrays.length * ROW, "");
    const last = arrays[0].shares.length - 1;
    let drawn = 0, before = null;
    const { run, stop } = player(place, PACE, (ended) => draw(ended || !place.offsetParent ? last : 0), function () {
      draw(drawn + 1);
      return drawn >= last;
    });
    place.replaceChildren(svg, element("p", { class: "sentence" },
      element("span", { "data-at": 1 }, "Each disc: the blame that arrives. ", badge(place.dataset.badge || "RECORDED"))));

    function draw(reached) {
      drawn = reached;
      svg.replaceChildren(...arrays.flatMap(function ({ name, family, shares }, n) {
        const y = n * ROW + 78, gap = (WIDTH - 2 * EDGE) / (shares.length - 1), at = (k) => WIDTH - EDGE - gap * k;
        return [text(0, n * ROW + 34, name, { class: "name", "text-anchor": "start", "font-size": 28 }),
          ...shares.flatMap((share, k) => [shape("circle", { class: "ring", cx: at(k), cy: y, r: RADIUS }),
            ...(k <= reached ? [shape("circle", { class: "blame " + family, cx: at(k), cy: y, r: RADIUS * Math.min(1, Math.sqrt(share)) })] : [])])];
      }));
    }

    const told = arrays.map(({ name, shares }) => name + ": of the last letter's blame " + shares[shares.length - 1].toPrecision(1) +
      " arrives " + (shares.length - 1) + " letters back").join(". ") + ".";
    return {
      step: function (n) {
        if (n === before) return;  // a live run draws the slide again and again
        before = n;
        say(n < 1 ? "Empty circles, a letter each: " + arrays.map(({ name }) => name).join(", ") + "." : told);
        if (n >= 1) return run();
        stop();
        draw(-1);
      },
    };
  };
})();
