/* The stage: what a slide shows at which step. Elements have data-at and data-gone; a panel has data-at and parts
   (guess, example, key, show, headline, beware); a machine has data-steps from its data-from on. */
(function () {
  "use strict";

  const root = document.documentElement;
  const all = (selector, inside) => Array.from(inside.querySelectorAll(selector));
  const staged = window.matchMedia("(min-width: 48.01rem) and (min-aspect-ratio: 1/1)");
  const reached = new WeakMap();
  const FOREVER = Infinity;
  let printing = false;

  /** Everything at once: in one column, or with what stands behind. Paper has the stage, whatever the screen. */
  const flat = () => !printing && (!staged.matches || root.classList.contains("behind-shown"));

  /** [part, first step, first step without it]: what a slide shows when. */
  function timetable(slide) {
    const own = all("[data-at], [data-gone]", slide).filter((part) => !part.matches(".panel")).map((part) =>
      [part, Number(part.dataset.at || 0), Number(part.dataset.gone || FOREVER)]);
    const plan = own.concat(...all(".panel", slide).map(function (panel) {
      const at = Number(panel.dataset.at), shows = all(".output [data-part=show]", panel), verdictAt = at + Math.max(1, shows.length);
      const rows = shows.map((part, i) => [part, at + i, i < shows.length - 1 ? at + i + 1 : FOREVER]);
      const shownBefore = all("[data-part=example] [data-at]", panel).length;
      all("[data-part=guess]", panel).forEach((part) => rows.push([part, Math.max(0, at - 1 - shownBefore), verdictAt]));
      all("[data-part=example]", panel).forEach((part) => rows.push([part, 0, at]));
      // The answers to an example have the picture's names already; a drawing has names of its own, and needs the room.
      const drawn = all("[data-part=example] [data-machine]", panel).length;
      all("[data-part=key]", panel).forEach((part) => rows.push([part, drawn ? at : Math.max(0, at - 1), FOREVER]));
      all(".output [data-part=headline]", panel).forEach((part) => rows.push([part, verdictAt, FOREVER]));
      all("[data-part=headline][data-reveal]:not([hidden]) > p + p", panel).forEach((part) => rows.push([part, verdictAt + 1, FOREVER]));  // not of what was voted on
      all("[data-part=room]", panel).forEach((part) => rows.push([part, verdictAt, FOREVER]));
      const open = all("[data-part=headline][hidden]", panel).length;  // until a vote the doubt has the verdict's step
      all("[data-part=beware]", panel).forEach((part) => rows.push([part, open ? verdictAt : verdictAt + 1, FOREVER]));
      if (panel.dataset.since || panel.dataset.until)
        rows.push([panel, Number(panel.dataset.since || 0), Number(panel.dataset.until || FOREVER)]);
      return rows;
    }));
    // The lead asks what the verdict answers, the tally is read by then: both make room for the first doubt, but not on paper.
    const doubts = plan.filter(([part]) => part.matches("[data-part=beware]")).map(([, first]) => first);
    if (doubts.length && !printing) all(".lead, .tally", slide).forEach((part) => plan.push([part, 0, Math.min(...doubts)]));
    return plan;
  }

  function lastStep(slide) {
    if (flat()) return 0;
    const machines = all("[data-steps]", slide).map((part) => Number(part.dataset.from || 0) + Number(part.dataset.steps));
    const until = timetable(slide).map(([, first, gone]) => Math.max(first, gone === FOREVER ? 0 : gone));
    return Math.max(0, ...machines, ...until);
  }

  /** Show a slide as it is at its step; what is not there yet keeps its room, so that nothing jumps. What is new. */
  function stand(slide, step, whole = flat()) {
    reached.set(slide, step);
    const fresh = [];
    timetable(slide).forEach(function ([part, first, gone]) {
      const there = whole || (step >= first && step < gone);
      if (there && part.classList.contains("away") && step > 0) fresh.push(part);
      part.classList.toggle("away", !there);
      part.classList.toggle("over", !whole && step >= gone);
      part.classList.toggle("early", !whole && step < first);
    });
    // One column has no steps: a machine is drawn to its end.
    const column = !printing && !staged.matches;
    all("[data-machine]", slide).forEach((part) => window.machines.step(part, column && whole ? FOREVER : step - Number(part.dataset.from || 0)));
    return fresh;
  }

  function print(on) {
    printing = on;
  }

  staged.addEventListener("change", function () {
    if (!printing) all(".slides > section", document).forEach((slide) => stand(slide, 0));
  });

  window.stage = { reached, timetable, lastStep, stand, print };
})();
