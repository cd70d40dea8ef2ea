/* What the drawings of the machines share: elements, controls, and a register of kinds.

   <div data-machine="cell" data-arrays="{…}">what to read without a script</div>

   A kind is a function (place, arrays) → {step(n)}: it fills the place and draws the n-th step. */
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const kinds = {}, drawn = new WeakMap();

  function fill(made, attributes, children) {
    Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
    made.append(...children);
    return made;
  }

  const element = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const shape = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
  const text = (x, y, words, attributes) => shape("text", { x, y, "text-anchor": "middle", ...attributes }, words);
  const percent = (share) => (share > 0 && share < 0.005 ? "<1" : Math.round(100 * share)) + "%";
  const badge = (name) => element("span", { class: "badge " + name.toLowerCase() }, name);

  /** A picture that is one image to a screen reader; ``say`` changes its name. */
  function picture(width, height, name) {
    const svg = shape("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": name });
    return { svg, say: (words) => svg.setAttribute("aria-label", words) };
  }

  let made = 0;

  /** A labelled slider. Returns {row, value(), set(to)}. */
  function slider(label, low, high, step, start, changed) {
    const id = "slider-" + ++made;
    const input = element("input", { id, type: "range", min: low, max: high, step, value: start });
    const words = element("output", { for: id });
    const show = function () {
      words.textContent = Number(input.value).toFixed(step < 0.1 ? 2 : step < 1 ? 1 : 0).replace("-", "−");
    };
    input.addEventListener("input", function () {
      show();
      changed();
    });
    show();
    const set = function (to) {
      input.value = to;
      show();
    };
    return { row: element("div", { class: "slider" }, element("label", { for: id }, label), input, words), value: () => Number(input.value), set };
  }

  function button(words, act) {
    const made = element("button", { type: "button" }, words);
    made.addEventListener("click", () => act(made));
    return made;
  }

  /** Buttons of which one is pressed. Returns {row, at(), pick(n)}; ``changed`` is called on a press. */
  function choice(name, options, start, changed) {
    let chosen = start;
    const buttons = options.map((words, n) => button(words, () => { pick(n); changed(); }));
    function pick(n) {
      chosen = n;
      buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(i === n)));
    }
    pick(start);
    return { row: element("span", { class: "choice", role: "group", "aria-label": name }, name + " ", ...buttons), at: () => chosen, pick };
  }

  const narrow = matchMedia("(max-width: 48rem)");  // words beside one another would not fit, or not be read
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  /** A drawing that plays. ``begin(ended)`` draws its first step, or its last where motion is not wanted; ``next()``
      draws one more and says whether it was the last. Returns {play, run(), stop()}: its button, and what that does. */
  function player(place, pace, begin, next) {
    let timer = null;
    const play = button("Play", () => (timer === null ? run() : stop()));
    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    }
    function run() {
      stop();
      begin(calm());
      if (calm()) return;
      play.textContent = "Stop";
      timer = setInterval(() => { if (!place.isConnected || next()) stop(); }, pace);
    }
    return { play, run, stop };
  }

  function mount(inside) {
    inside.querySelectorAll("[data-machine]").forEach(function (place) {
      if (!drawn.has(place)) draw(place, Infinity);
    });
  }

  function draw(place, at) {
    const arrays = place.dataset.arrays ? JSON.parse(place.dataset.arrays) : null;
    const machine = kinds[place.dataset.machine](place, arrays);
    if (machine === null) return;  // nothing was recorded: the words without a script stay
    place.classList.add("machine");
    frame(place);
    drawn.set(place, machine);
    machine.step(at);
  }

  /** On a phone a drawing scrolls sideways, by keys too, and its knobs stay where they are. It is named after its
      panel or slide: one slide may have the same drawing in a panel and beside it. */
  function frame(place) {
    const svg = place.querySelector("svg"), owner = place.closest("[aria-labelledby]").getAttribute("aria-labelledby");
    const name = "Drawing: " + place.dataset.machine + ", " + document.getElementById(owner).textContent;
    const box = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": name, "data-prevent-swipe": "" });
    svg.replaceWith(box);
    box.append(svg);
  }

  function step(place, n) {
    const machine = drawn.get(place);
    if (machine) machine.step(n);
  }

  /** Newly measured arrays: drawn again where they were not what is shown. */
  function feed(place, arrays) {
    if (place.dataset.arrays === arrays && place.dataset.badge === "LIVE") return;
    place.dataset.arrays = arrays;
    place.dataset.badge = "LIVE";
    draw(place, Infinity);
  }

  window.machines = { kinds, mount, step, feed, element, shape, text, percent, badge, picture, slider, choice, player, calm, narrow };
})();
