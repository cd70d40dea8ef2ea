/* The race without a clock: an LSTM's updates, each of which waits for the one before, against the looks of
   attention, which wait for nothing but hardware. Counted, not timed: T boxes in T rounds; T (T + 1) / 2 boxes,
   with k of them at once in a k-th of as many rounds, rounded up. */
(function () {
  "use strict";

  const { kinds, element, shape, text, picture, slider, choice, player, badge } = window.machines;
  const WIDTH = 800, HEIGHT = 380, LEFT = 10, TOP = 46, UNDER = 152, ROOM = 560, PACE = 420, TICKS = 32;
  const AT_ONCE = [1, 2, Infinity];
  const many = (n, one, more) => n + " " + (n === 1 ? one : more);

  kinds.race = function (place) {
    const { svg, say } = picture(WIDTH, HEIGHT, "");
    const words = slider("Words", 4, 16, 1, 8, () => { stop(); draw(Infinity); });
    const once = choice("Boxes at once:", ["1", "2", "all"], 2, () => run());
    const { play, run, stop } = player(place, PACE, (ended) => draw(ended ? Infinity : 0), function () {
      const { rounds } = counts(), last = Math.max(words.value(), rounds);
      draw(drawn + Math.ceil(last / TICKS));
      return drawn >= last;
    });
    const sentence = element("p", { class: "sentence" });
    let drawn = 0, before = null;
    place.replaceChildren(svg, sentence, element("div", { class: "knobs" }, words.row, once.row, play));

    /** Attention's boxes, how many are filled in a round, and in how many rounds all are. */
    function counts() {
      const boxes = words.value() * (words.value() + 1) / 2, each = Math.min(boxes, AT_ONCE[once.at()]);
      return { boxes, each, rounds: Math.ceil(boxes / each) };
    }

    function box(x, y, wide, high, round, now, family) {
      const done = round <= now;
      return shape("rect", { class: "lap " + (done ? family : ""), x, y, width: wide, height: high, rx: 4 });
    }

    /** The line of a side: its name, and what it has done so far. */
    const counted = (y, name, family, boxes, rounds) =>
      [text(LEFT, y, name, { class: "name", "text-anchor": "start", "font-size": 28 }),
        text(WIDTH, y, many(boxes, "box", "boxes") + ", " + many(rounds, "round", "rounds"), { class: "count " + family, "text-anchor": "end", "font-size": 28 })];

    /** What is done after so many rounds: a row of boxes, one a round, and a triangle, as many at once as there may be. */
    function draw(now) {
      drawn = now;
      const T = words.value(), { boxes, each, rounds } = counts(), wide = Math.min(ROOM / T, 66), high = (HEIGHT - UNDER - 18) / T;
      const row = Array.from({ length: T }, (_, t) => box(LEFT + wide * t, TOP, 0.88 * wide, 52, t + 1, now, "lstm"));
      const triangle = Array.from({ length: T }, (_, t) => Array.from({ length: t + 1 }, (_, s) =>
        box(LEFT + wide * s, UNDER + 18 + high * t, 0.88 * wide, 0.82 * high, Math.ceil((t * (t + 1) / 2 + s + 1) / each), now, "transformer"))).flat();
      const laps = Math.min(now, T), done = Math.min(now, rounds), looks = Math.min(each * done, boxes);
      svg.replaceChildren(...counted(30, "LSTM: each waits for the last", "lstm", laps, laps), ...row,
        ...counted(UNDER, "Attention: " + (rounds > 1 ? each : "all") + " at once", "transformer", looks, done), ...triangle);
      const ended = now >= Math.max(T, rounds);
      sentence.replaceChildren(ended ? "More boxes, " + (rounds < T ? "fewer" : "more") + " rounds. " : "", ...(ended ? [badge("EXACT")] : ["\u00a0"]));
      say(now === 0 ? "Empty boxes: a row of " + T + " for the LSTM, a triangle of " + boxes + " for attention."
        : "For " + T + " words the LSTM fills " + laps + " of " + T + " boxes in as many rounds, one after another. Attention fills " +
          looks + " boxes, " + (rounds > 1 ? each + " at once, in " + many(done, "round", "rounds") : "all in the first round") + ".");
    }

    return {
      step: function (n) {
        if (n === before) return;  // a live run draws the slide again and again
        before = n;
        stop();
        if (n === 1) run();
        else draw(n < 1 ? 0 : Infinity);
      },
    };
  };
})();
