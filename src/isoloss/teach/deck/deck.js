/* The deck: keys, focus, panels and their jobs. reveal.js keeps the slides' state, address and history. */
(function () {
  "use strict";

  const root = document.documentElement;
  const live = root.hasAttribute("data-live");
  const title = document.title;
  const slides = Array.from(document.querySelectorAll(".slides > section"));
  const results = new Map();
  root.classList.add("js");

  const one = (selector, inside = document) => inside.querySelector(selector);
  const all = (selector, inside = document) => Array.from(inside.querySelectorAll(selector));

  // --- words for screen readers: the newest, at most one in five seconds ---------------------------------

  const QUIET = 5000;
  const region = one("#live");
  let waiting = "", timer = null, said = -QUIET;

  function announce(text) {
    waiting = text;
    if (timer !== null) return;
    timer = setTimeout(function () {
      region.textContent = waiting;
      said = performance.now();
      timer = null;
    }, Math.max(0, said + QUIET - performance.now()));
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
    });
    const heading = one("h2", slides[number]);
    const label = slides[number].dataset.label, counter = number < thirteen ? label + " / " + thirteen : label;
    one(".counter").textContent = counter;
    document.title = heading.textContent + " · " + counter + " · " + title;
    root.classList.remove("behind-shown");
    slides.forEach((slide) => slide.removeAttribute("tabindex"));
    one("[data-do=behind]").setAttribute("aria-pressed", "false");
    stand(slides[number], reached.get(slides[number]) || 0);
    all(".contents a").forEach((link, i) => link.toggleAttribute("aria-current", i === number));
    window.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }

  const current = () => slides[deck.getIndices().h];
  const thirteen = slides.filter((slide) => !slide.dataset.label.startsWith("A")).length;

  // --- steps: a question, a guess, a picture, a verdict, a doubt, one key press each -----------------------

  const { reached, timetable, lastStep } = window.stage;

  function stand(slide, step, aloud) {
    const fresh = window.stage.stand(slide, step);
    if (slide === current()) window.presenter.show(slide, slides[slides.indexOf(slide) + 1], step, lastStep(slide));
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
    overview: function () {
      one("#overview").showModal();
      one("#overview [aria-current]").focus();
    },
    help: () => one("#help").showModal(),
    goto: function () {
      one("#goto input").value = "";
      one("#goto").showModal();
    },
    notes: function () {
      const on = root.classList.toggle("with-notes");
      one("[data-do=notes]").setAttribute("aria-pressed", String(on));
    },
    behind: function () {
      const on = root.classList.toggle("behind-shown");
      one("[data-do=behind]").setAttribute("aria-pressed", String(on));
      stand(current(), reached.get(current()) || 0);
      all(".numbers", current()).forEach((part) => { part.open = on; });
      current().toggleAttribute("tabindex", on);  // what scrolls can be reached by keys
      if (on) current().tabIndex = 0;
      current().scrollTo(0, 0);
    },
    theme: function () {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    },
    run: () => chosen().forEach(run),
    cancel: () => chosen().forEach(cancel),
    seed: () => chosen().forEach((panel) => { if (nextSeeds(panel)) run(panel); }),
    "run-all": () => post("run-all", {}).catch((error) => announce(error.message)),
    export: exportResults,
    save: saveFile,
    blank: () => root.classList.toggle("blank"),
    presenter: function () {
      if (!window.presenter.open(actions, live)) return announce("The browser did not open a second window.");
      stand(current(), reached.get(current()) || 0);
    },
    pick: (number) => pickHand(number),
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
    g: "goto", o: "overview", p: "notes", w: "presenter", b: "blank", t: "behind", d: "theme", ...(live && { r: "run", x: "cancel", s: "seed" }),
  };
  const letters = one("#letters");

  function remembered(value) {
    // Storage may be closed to a file: then the choice lasts as long as the page.
    try {
      if (value !== undefined) localStorage.setItem("isoloss-letters", value);
      return localStorage.getItem("isoloss-letters");
    } catch {
      return null;
    }
  }

  const scrolls = (place) => place !== null && place.scrollWidth > place.clientWidth;

  document.addEventListener("keydown", function (event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    const place = event.target instanceof Element ? event.target : document.body;
    const dialog = one("dialog[open]"), clicker = event.key.startsWith("Page");
    if (dialog && !clicker) return;
    if (dialog) dialog.close();
    const field = place.closest("input, select, textarea, [contenteditable]");
    if (field && event.key === "Escape") return field.blur();
    // A clicker sends PageUp and PageDown: they turn the page wherever the focus is.
    if (field && !clicker) return;
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
    if (vote) voted(vote);
    const guess = event.target.closest("[data-guess]");
    if (guess) window.tally.guess(guess);
    if (event.target.closest(".cancel")) cancel(event.target.closest(".panel"));
  });

  // --- panels --------------------------------------------------------------------------------------------

  const token = new URLSearchParams(location.search).get("token") || "";

  async function post(path, body) {
    const answer = await fetch(path, {
      method: "POST", body: JSON.stringify(body),
      headers: { "Content-Type": "application/json", "X-Isoloss-Token": token },
    });
    if (answer.ok) return;
    const said = await answer.json().catch(() => ({}));
    throw new Error(said.error || "The server refused, with status " + answer.status + ".");
  }

  const panels = () => all(".panel[data-panel]");
  const named = (name) => panels().filter((panel) => panel.dataset.panel === name);

  /** The panel that has the focus, else those that the slide shows. */
  function chosen() {
    const focused = document.activeElement && document.activeElement.closest(".panel");
    return focused ? [focused] : all(".panel:not(.early, .over)", current());
  }

  function value(input) {
    const kind = input.dataset.kind;
    if (kind === "boolean") return input.checked;
    const text = input.value.trim();
    if (kind === "string") return input.value;
    if (kind === "strings") return text.split(",").map((part) => part.trim());
    if (text === "") return null;
    return kind.endsWith("s") ? text.split(/[,\s]+/).map(Number) : Number(text);
  }

  function settings(form) {
    const fields = Array.from(form.elements).filter((input) => input.dataset.kind);
    return Object.fromEntries(fields.map((input) => [input.name, value(input)]));
  }

  function run(panel) {
    const form = one("form", panel);
    if (form === null || one(".run", panel).disabled) return;
    problem(panel, "");
    if (!form.checkValidity()) {
      if (!root.classList.contains("behind-shown")) actions.behind();
      form.reportValidity();
      return;
    }
    const seed = panel.dataset.fresh === undefined ? null : one("[name=seed]", panel);
    if (seed && seed.value === (panel.dataset.drawn || seed.defaultValue)) {  // not one that somebody chose
      seed.value = Math.floor(Math.random() * 2 ** 31);
      panel.dataset.drawn = seed.value;
    }
    post("run", { panel: panel.dataset.panel, settings: settings(form) })
      .catch((error) => problem(panel, error.message));
  }

  function cancel(panel) {
    if (one(".cancel:not([disabled])", panel) === null) return;
    post("cancel", { panel: panel.dataset.panel }).catch((error) => problem(panel, error.message));
  }

  function nextSeeds(panel) {
    const first = one("input[name=first_seed], input[name=seed]", panel);
    if (first === null) return false;
    const step = one("input[name=seeds]", panel);
    const next = Number(first.value) + (step ? Number(step.value) : 1);
    first.value = first.max && next > Number(first.max) ? first.min || 0 : next;
    return true;
  }

  function problem(panel, text) {
    const place = one(".problem", panel);
    place.textContent = text;
    place.hidden = text === "";
  }

  /** What the server says of a panel: its state, and its newest output if that has changed. */
  function heard(message) {
    const busy = message.state === "queued" || message.state === "running";
    const failed = message.state === "failed";
    named(message.panel).forEach(function (panel) {
      panel.dataset.state = message.state;
      if (message.state === "queued") {
        delete panel.dataset.voted;
        window.tally.again();
      }
      const held = document.activeElement;
      one(".run", panel).disabled = busy;
      one(".cancel", panel).disabled = !busy;
      if (held && held.disabled) one(busy ? ".cancel" : ".run", panel).focus();
      one("progress", panel).value = message.done;
      one(".state", panel).textContent = failed ? "failed" : stateText(message);
      problem(panel, failed ? "This measurement failed: " + message.text : "");
      const ended = message.state === "cancelled" || failed;
      if (message.html) output(panel, message.html);
      else if (ended && one(".so-far", panel)) output(panel, recorded.get(panel));
    });
    if (message.result) {
      results.set(message.panel, message.result);
      quote(message.panel, message.result);
    }
    announceState(message);
    window.presenter.state(current());
  }

  function stateText(message) {
    if (message.state === "queued") return "waiting for its turn";
    if (message.state !== "running") return message.text;
    return Math.round(100 * message.done) + "% done: " + message.text;
  }

  function announceState(message) {
    const first = one("h2", current());
    const here = named(message.panel).some((panel) => current().contains(panel));
    if (!here || first === null) return;
    const name = message.panel.replace(/[-_]/g, " ");
    if (message.state === "done" && message.result) announce(name + ": " + message.result.sentences[0].text);
    else announce(name + ": " + (message.state === "failed" ? "failed. " + message.text : stateText(message)));
  }

  function output(panel, html) {
    const place = one(".output", panel), slide = panel.closest("section");
    const open = all("details[open]", place).map((part) => part.className);
    setAside(panel, place);
    place.innerHTML = html;
    all("details", place).filter((part) => open.includes(part.className)).forEach((part) => { part.open = true; });
    prepare(place);
    window.machines.mount(place);
    const shown = one("[data-arrays]", place);
    if (shown) all("[data-arrays]:not([data-machine=blame])").forEach((part) => window.machines.feed(part, shown.dataset.arrays));
    stand(slide, Math.min(Math.max(reached.get(slide) || 0, slide === current() ? Number(panel.dataset.at) : 0), lastStep(slide)));
    const voted = panel.dataset.voted, votes = all("[data-vote]", place);
    if (voted && votes.length) reveal(votes.find((button) => button.dataset.vote === voted), panel);
    window.tally.tell(place);
    window.tally.type(place);
  }

  /** What was recorded stays below the first live output, folded; a tasting would give itself away. */
  function setAside(panel, place) {
    const recording = one(".recording", place), before = one(".before", panel);
    if (!recording || !before || one("[data-vote]", recording)) return;
    all(".away", recording).forEach((part) => part.classList.remove("away"));
    before.append(recording);
    before.hidden = false;
  }

  /** Sentences quoted on other slides, such as the last one. */
  function quote(name, result) {
    all("[data-verdict]").filter((place) => place.dataset.verdict === name).forEach(function (place) {
      const found = result.sentences.find((sentence) => sentence.key === place.dataset.key);
      if (found === undefined) return;
      place.classList.remove("unmeasured");
      place.dataset.ahead = found.ahead;
      const said = one(".said", place);
      if (said) said.textContent = found.text;
      const badge = found.exact ? "EXACT" : found.recorded ? "RECORDED" : "LIVE";
      one(".badge", place).textContent = badge;
      one(".badge", place).className = "badge " + badge.toLowerCase();
      const basis = result.basis, seeds = basis.seeds === null ? "" : " · " + basis.seeds + " seeds";
      if (said) one(".basis", place).textContent = "n = " + basis.n + " " + basis.units + seeds + " · " + basis.interval;
    });
  }

  /** Hide what a vote will reveal; say how old a recording is. */
  function prepare(place) {
    if (one("[data-vote]", place)) all("[data-reveal]", place).forEach((part) => { part.hidden = true; });
    all("time[datetime]", place).forEach(function (time) {
      const days = Math.floor((Date.now() - Date.parse(time.dateTime)) / 86400000);
      if (days > 0) time.textContent += " (" + days + (days === 1 ? " day" : " days") + " ago)";
    });
  }

  function voted(button) {
    const place = button.closest(".panel") || button.closest("section"), pressed = button.dataset.vote;
    const winner = window.tally.vote(button.closest(".vote") || place, place, pressed);
    if (winner === null) return announce("No hands yet: enter how many.");
    place.dataset.voted = pressed || "counted";
    reveal(button, place);
    const slide = place.closest("section"), told = timetable(slide).find(([part]) => part.matches("[data-part=headline]"));
    if (told) stand(slide, Math.max(reached.get(slide) || 0, Math.min(told[1], lastStep(slide))));
    announce(pressed ? "Your vote: " + button.textContent.trim() + ". The answer is shown." : "Counted. The answer is shown.");
  }

  function reveal(button, place) {
    all("[data-vote], [data-count], .vote input", place).forEach(function (part) {
      if (part.dataset.vote) part.setAttribute("aria-pressed", String(part === button));
      part.disabled = true;  // a vote is cast once
    });
    all("[data-reveal]", place).forEach((part) => { part.hidden = false; });
  }

  /** The keys 1 to 3: the vote that is open on the slide, else the guess. */
  function pickHand(number) {
    const seen = (part) => !part.disabled && part.checkVisibility({ visibilityProperty: true });
    const [votes, guesses] = ["[data-vote]", "[data-guess]"].map((kind) => all(kind, current()).filter(seen));
    const button = (votes.length ? votes : guesses)[number - 1];
    if (button) button.click();
  }

  function download(name, blob) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /** The deck as one file, with what was measured here over what was recorded. */
  async function saveFile() {
    announce("Drawing the file. It takes some seconds.");
    const button = one("[data-do=save]");
    button.disabled = true;
    const answer = await fetch("file?token=" + encodeURIComponent(token)).catch(() => ({ ok: false }));
    button.disabled = false;
    if (!answer.ok) return announce("The server could not write the file.");
    download("the-great-shift.html", await answer.blob());
  }

  function exportResults() {
    if (results.size === 0) return announce("Nothing was measured live yet.");
    const made = { title: title, made: new Date().toISOString(), results: Array.from(results.values()) };
    download("results.json", new Blob([JSON.stringify(made, null, 1)], { type: "application/json" }));
  }

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

  function listen() {
    const stream = new EventSource("events?token=" + encodeURIComponent(token));
    const link = one(".link");
    const tell = function (state, mark) {
      link.textContent = mark;
      link.setAttribute("aria-label", state);
      link.title = state;
    };
    stream.onopen = () => tell("connected", "●");
    stream.onmessage = (event) => heard(JSON.parse(event.data));
    stream.onerror = function () {
      tell("the deck's server does not answer; what was measured stays", "○");
      announce("The deck's server does not answer.");
    };
  }

  one("#overview").append(one(".contents"));
  letters.checked = remembered() !== "off";
  letters.addEventListener("change", () => remembered(letters.checked ? "on" : "off"));
  one("#goto form").addEventListener("submit", () => away(Number(one("#goto input").value) - 1));
  all(".panel form").forEach((form) => form.addEventListener("submit", function (event) {
    event.preventDefault();
    run(form.closest(".panel"));
  }));
  prepare(document);
  window.machines.mount(document);
  const recorded = new WeakMap(panels().map((panel) => [panel, one(".output", panel).innerHTML]));

  deck.on("slidechanged", shown);
  deck.initialize().then(function () {
    // Mends: an application role stops line reading; its status element reads whole slides aloud.
    one(".reveal").removeAttribute("role");
    all(".aria-status").forEach((part) => {
      part.removeAttribute("aria-live");
      part.setAttribute("aria-hidden", "true");
    });
    shown();
    root.classList.add("ready");
    if (live) listen();
  });
})();
