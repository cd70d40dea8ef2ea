/* Blame on its way back: a circle a letter, from now at the right to nineteen letters ago at the left, as large
   as the share of the gradient that arrives. A side a row. */
(function () {
  "use strict";

  const { kinds, element, shape, text, picture, calm, badge } = window.machines;
  const WIDTH = 800, ROW = 112, RADIUS = 18, EDGE = 24, PACE = 70;

  kinds.blame = function (place, arrays) {
    if (arrays === null || arrays.length === 0) return null;
    const { svg, say } = picture(WIDTH, arrays.length * ROW, "");
    let timer = null;
    place.replaceChildren(svg, element("p", { class: "sentence" }, "Each disc: the blame that arrives. ", badge(place.dataset.badge || "RECORDED")));

    function draw(reached) {
      svg.replaceChildren(...arrays.flatMap(function ({ name, family, shares }, n) {
        const y = n * ROW + 78, gap = (WIDTH - 2 * EDGE) / (shares.length - 1), at = (k) => WIDTH - EDGE - gap * k;
        return [text(0, n * ROW + 34, name, { class: "name", "text-anchor": "start", "font-size": 28 }),
          ...shares.flatMap((share, k) => [shape("circle", { class: "ring", cx: at(k), cy: y, r: RADIUS }),
            ...(k <= reached ? [shape("circle", { class: "blame " + family, cx: at(k), cy: y, r: RADIUS * Math.min(1, Math.sqrt(share)) })] : [])])];
      }));
    }

    say(arrays.map(({ name, shares }) => name + ": of the last letter's blame " + shares[shares.length - 1].toPrecision(1) +
      " arrives " + (shares.length - 1) + " letters back").join(". ") + ".");
    return {
      step: function () {
        clearInterval(timer);
        const last = arrays[0].shares.length - 1;
        let reached = calm() || !place.offsetParent ? last : 0;
        draw(reached);
        if (reached < last) timer = setInterval(() => { reached += 1; draw(reached); if (reached >= last) clearInterval(timer); }, PACE);
      },
    };
  };
})();
