/* The stage: what a slide shows at which step. Elements have data-at and data-gone; a panel has data-at and parts
   (guess, example, show, headline, beware); a machine has data-steps from its data-from on. */
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
    return own.concat(...all(".panel", slide).map(function (panel) {
      const at = Number(panel.dataset.at), shows = all(".output [data-part=show]", panel), told = at + Math.max(1, shows.length);
      const rows = shows.map((part, i) => [part, at + i, i < shows.length - 1 ? at + i + 1 : FOREVER]);
      const shownBefore = all("[data-part=example] [data-at]", panel).length;
      all("[data-part=guess]", panel).forEach((part) => rows.push([part, Math.max(0, at - 1 - shownBefore), told]));
      all("[data-part=example]", panel).forEach((part) => rows.push([part, 0, at]));
      all(".output [data-part=headline]", panel).forEach((part) => rows.push([part, told, FOREVER]));
      all("[data-part=room]", panel).forEach((part) => rows.push([part, told, FOREVER]));
      all("[data-part=beware]", panel).forEach((part) => rows.push([part, told + 1, FOREVER]));
      if (panel.dataset.since || panel.dataset.until)
        rows.push([panel, Number(panel.dataset.since || 0), Number(panel.dataset.until || FOREVER)]);
      return rows;
    }));
  }

  function lastStep(slide) {
    if (flat()) return 0;
    const machines = all("[data-steps]", slide).map((part) => Number(part.dataset.from || 0) + Number(part.dataset.steps));
    const until = timetable(slide).map(([, first, gone]) => Math.max(first, gone === FOREVER ? 0 : gone));
    return Math.max(0, ...machines, ...until);
  }

  /** Show a slide as it is at its step; what is not there yet keeps its room, so that nothing jumps. What is new. */
  function stand(slide, step) {
    reached.set(slide, step);
    const whole = flat();
    const fresh = [];
    timetable(slide).forEach(function ([part, first, gone]) {
      const there = whole || (step >= first && step < gone);
      if (there && part.classList.contains("away") && step > 0) fresh.push(part);
      part.classList.toggle("away", !there);
      part.classList.toggle("over", !whole && step >= gone);
      part.classList.toggle("early", !whole && step < first);
    });
    all("[data-machine]", slide).forEach((part) => window.machines.step(part, whole ? FOREVER : step - Number(part.dataset.from || 0)));
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
