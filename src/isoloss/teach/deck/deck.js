/* The deck: keys, focus, panels and their jobs. reveal.js keeps the slides' state, address and history. */
(function () {
  "use strict";

  const root = document.documentElement;
  const live = root.hasAttribute("data-live");
  const title = document.title;
  const slides = Array.from(document.querySelectorAll(".slides > section"));
  root.classList.add("js");

  const one = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => Array.from(inside.querySelectorAll(selector));

  // --- words for screen readers: the newest, at most one in five seconds ---------------------------------

  const QUIET = 5000;
  const region = one("#live");
  let waiting = "", timer = null, spokenAt = -QUIET;

  function announce(text) {
    waiting = text;
    if (timer !== null) return;
    timer = setTimeout(function () {
      region.textContent = waiting;
      spokenAt = performance.now();
      timer = null;
    }, Math.max(0, spokenAt + QUIET - performance.now()));
  }

  // --- slides --------------------------------------------------------------------------------------------

  const deck = new Reveal(one(".reveal"), {
    disableLayout: true, center: false, transition: "none", backgroundTransition: "none",
    hash: true, history: true, hashOneBasedIndex: true,
    keyboard: false, overview: false, touch: false, controls: false, progress: true, pause: false,
    jumpToSlide: false, help: false, autoAnimate: false, postMessage: false, postMessageEvents: false,
    focusBodyOnPageVisibilityChange: false, view: null, scrollActivationWidth: null,
  });

  function shown() {
    const number = deck.getIndices().h;
    slides.forEach(function (slide, i) {
      slide.hidden = i !== number;
      slide.inert = i !== number;
      slide.removeAttribute("tabindex");
    });
    const heading = one("h2", slides[number]);
    const label = slides[number].dataset.label, counter = number < thirteen ? label + " / " + thirteen : label;
    one(".counter").textContent = counter;
    document.title = heading.textContent + " · " + counter + " · " + title;
    root.classList.remove("behind-shown");
    one("[data-do=behind]").setAttribute("aria-pressed", "false");
    stand(slides[number], reached.get(slides[number]) || 0);
    all(".contents a").forEach((link, i) => link.toggleAttribute("aria-current", i === number));
    window.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }

  const current = () => slides[deck.getIndices().h];
  const thirteen = slides.filter((slide) => !slide.dataset.label.startsWith("A")).length;

  // --- steps: a question, a guess, a picture, a verdict, a doubt, one key press each -----------------------

  const { reached, lastStep } = window.stage;

  function stand(slide, step, aloud) {
    const fresh = window.stage.stand(slide, step);
    const to = slides.indexOf(slide) + 1;
    if (slide === current()) window.presenter.show(slide, to === thirteen ? undefined : slides[to], step, lastStep(slide));
    if (aloud && fresh.length) announce(fresh.map((part) => part.innerText).join(" ").trim());
  }

  function turn(by) {
    const slide = current(), step = (reached.get(slide) || 0) + by;
    if (step >= 0 && step <= lastStep(slide)) return stand(slide, step, true);
    const to = slides.indexOf(slide) + by;
    if (by > 0 && to === thirteen) return;  // the appendix is reached by the overview
    if (to < 0 || to >= slides.length) return;
    stand(slides[to], by > 0 ? 0 : lastStep(slides[to]));
    deck.slide(to);
  }

  function away(number) {
    stand(slides[number], 0);
    deck.slide(number);
  }

  const actions = {
    next: () => turn(1),
    previous: () => turn(-1),
    first: () => away(0),
    last: () => away(thirteen - 1),
    overview: () => { one("#overview").showModal(); one("#overview [aria-current]").focus(); },
    help: () => one("#help").showModal(),
    goto: () => { one("#goto input").value = ""; one("#goto").showModal(); },
    notes: function () {
      const on = root.classList.toggle("with-notes");
      one("[data-do=notes]").setAttribute("aria-pressed", String(on));
    },
    behind: function () {
      const on = root.classList.toggle("behind-shown");
      one("[data-do=behind]").setAttribute("aria-pressed", String(on));
      stand(current(), reached.get(current()) || 0);
      all(".numbers", current()).forEach((part) => { part.open = on; });
      current()[on ? "setAttribute" : "removeAttribute"]("tabindex", 0);  // what scrolls can be reached by keys
      current().scrollTo(0, 0);
    },
    theme: function () {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    },
    run: () => panels.run(),
    cancel: () => panels.cancel(),
    seed: () => panels.seed(),
    stop: () => panels.stop(),
    "run-all": () => panels.runAll(),
    export: () => panels.exportResults(),
    save: () => panels.saveFile(),
    blank: () => root.classList.toggle("blank"),
    presenter: function () {
      if (!window.presenter.open(actions, live)) return announce("The browser did not open a second window.");
      stand(current(), reached.get(current()) || 0);
    },
    pick: (number) => panels.pickHand(number),
    close: function () {
      if (root.classList.contains("with-notes")) actions.notes();
      else if (root.classList.contains("behind-shown")) actions.behind();
    },
  };

  // --- keys and touch ------------------------------------------------------------------------------------

  const KEYS = {
    ArrowRight: "next", PageDown: "next", " ": "next", ArrowLeft: "previous", PageUp: "previous",
    Home: "first", End: "last", Escape: "close", "?": "help", ".": "blank",
  };
  const LETTERS = {
    g: "goto", o: "overview", p: "notes", w: "presenter", b: "blank", t: "behind", d: "theme", ...(live && { r: "run", x: "cancel", e: "stop", s: "seed" }),
  };
  const letters = one("#letters");

  const remembered = (value) => window.tally.storage(function () {
    if (value !== undefined) localStorage.setItem("isoloss-letters", value);
    return localStorage.getItem("isoloss-letters");
  });

  const scrolls = (place) => place !== null && place.scrollWidth > place.clientWidth;

  document.addEventListener("keydown", function (event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    const place = event.target instanceof Element ? event.target : document.body;
    const dialog = one("dialog[open]"), clicker = event.key.startsWith("Page");
    if (dialog && !clicker) return;
    if (dialog) dialog.close();
    const field = place.closest("input, select, textarea, [contenteditable]");
    if (field && event.key === "Escape") return field.blur();
    // A clicker sends PageUp and PageDown: they turn the page wherever the focus is. Nothing is typed into a slider.
    if (field && !clicker && (field.type !== "range" || /^(Arrow|Home|End)/.test(event.key))) return;
    if (event.key === " " && place.closest("button, a, summary, [role=button]")) return;
    if (letters.checked && /^[1-3]$/.test(event.key)) return actions.pick(Number(event.key));
    if (event.key.startsWith("Arrow") && scrolls(place.closest(".scroll"))) return;
    const back = event.key === " " && event.shiftKey;
    const name = back ? "previous" : KEYS[event.key] || (letters.checked ? LETTERS[event.key] : undefined);
    if (name === undefined) return;
    event.preventDefault();
    actions[name]();
  });

  let touch = null;
  document.addEventListener("touchstart", function (event) {
    const busy = event.touches.length > 1 || event.target.closest("input, dialog") !== null;
    touch = busy || scrolls(event.target.closest(".scroll")) ? null : event.touches[0];
  }, { passive: true });
  document.addEventListener("touchend", function (event) {
    if (touch === null) return;
    const x = event.changedTouches[0].clientX - touch.clientX;
    const y = event.changedTouches[0].clientY - touch.clientY;
    touch = null;
    if (Math.abs(x) > 60 && Math.abs(x) > 2 * Math.abs(y)) actions[x < 0 ? "next" : "previous"]();
  }, { passive: true });

  document.addEventListener("click", function (event) {
    const button = event.target.closest("[data-do]");
    if (button) actions[button.dataset.do]();
    const link = event.target.closest(".contents a");
    if (link) {
      event.preventDefault();
      one("#overview").close();
      away(Number(link.dataset.slide) - 1);
    }
    const vote = event.target.closest("[data-vote], [data-count]");
    if (vote) panels.voted(vote);
    const guess = event.target.closest("[data-guess]");
    if (guess) window.tally.guess(guess);
    if (event.target.closest(".cancel")) panels.cancelOf(event.target.closest(".panel"));
    if (event.target.closest(".stop")) panels.stopOf(event.target.closest(".panel"));
  });

  // --- paper: the stage again, with everything that its steps bring ----------------------------------------

  const before = new Map();
  window.addEventListener("beforeprint", function () {
    window.stage.print(true);
    slides.forEach(function (slide) {
      before.set(slide, reached.get(slide) || 0);
      slide.hidden = false;
      stand(slide, lastStep(slide));
    });
  });
  window.addEventListener("afterprint", function () {
    window.stage.print(false);
    slides.forEach(function (slide, i) {
      slide.hidden = i !== deck.getIndices().h;
      stand(slide, before.get(slide));
    });
  });

  // --- begin ---------------------------------------------------------------------------------------------

  one("#overview").append(one(".contents"));
  letters.checked = remembered() !== "off";
  letters.addEventListener("change", () => remembered(letters.checked ? "on" : "off"));
  one("#goto form").addEventListener("submit", () => away(Number(one("#goto input").value) - 1));
  const behind = () => { if (!root.classList.contains("behind-shown")) actions.behind(); };
  let panels = null;

  deck.on("slidechanged", shown);
  deck.initialize().then(function () {
    // Mends: an application role stops line reading; its status element reads whole slides aloud.
    one(".reveal").removeAttribute("role");
    all(".aria-status").forEach((part) => {
      part.removeAttribute("aria-live");
      part.setAttribute("aria-hidden", "true");
    });
    panels = window.panels({ one, all, live, title, announce, current, stand, behind });
    shown();
    root.classList.add("ready");
  });
})();
