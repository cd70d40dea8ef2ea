/* The panels of the deck: what runs, what the server says of it, what is shown, hidden and taken home. */
(function () {
  "use strict";

  const { reached, timetable, lastStep } = window.stage;

  /** ``deck``: {one, all, live, title, announce, current, stand, behind}: what the stage's own script offers. */
  window.panels = function ({ one, all, live, title, announce, current, stand, behind }) {
    const results = new Map();

    const token = new URLSearchParams(location.search).get("token") || "";

    async function post(path, body) {
      const answer = await fetch(path, {
        method: "POST", body: JSON.stringify(body),
        headers: { "Content-Type": "application/json", "X-Isoloss-Token": token },
      });
      if (answer.ok) return;
      const refusal = await answer.json().catch(() => ({}));
      throw new Error(refusal.error || "The server refused, with status " + answer.status + ".");
    }

    const order = (what, panel, more) => post(what, { panel: panel.dataset.panel, ...more }).catch((error) => problem(panel, error.message));
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
        behind();
        form.reportValidity();
        return;
      }
      const seed = panel.dataset.fresh === undefined ? null : one("[name=seed]", panel);
      if (seed && seed.value === (panel.dataset.drawn || seed.defaultValue)) {  // not one that somebody chose
        seed.value = Math.floor(Math.random() * 2 ** 31);
        panel.dataset.drawn = seed.value;
      }
      order("run", panel, { settings: settings(form) });
    }

    function cancel(panel) {
      if (one(".cancel:not([disabled])", panel)) order("cancel", panel);
    }

    /** The class says stop: what was measured so far is the result. */
    function stop(panel) {
      if (panel.dataset.state === "running" && one(".stop", panel)) order("stop", panel);
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

    /** A panel's state, and its newest output if that has changed; a page opened after a run hears of it without a step. */
    function handle(message) {
      const busy = message.state === "queued" || message.state === "running";
      const failed = message.state === "failed";
      named(message.panel).forEach(function (panel) {
        const seen = busy || ["queued", "running"].includes(panel.dataset.state);
        panel.dataset.state = message.state;
        if (message.state === "queued") window.tally.restart();
        const held = document.activeElement;
        one(".run", panel).disabled = busy;
        one(".cancel", panel).disabled = !busy;
        // Not to Cancel: the next space would press it. The heading is where a slide's focus begins.
        if (held && held.disabled) (busy ? one("h2", current()) : one(".run", panel)).focus({ preventScroll: true });
        one("progress", panel).value = message.done;
        one(".state", panel).textContent = one(".state", panel).title = failed ? "failed" : stateText(message);
        problem(panel, failed ? "This measurement failed: " + message.text : "");
        const ended = message.state === "cancelled" || failed;
        if (message.html) output(panel, message.html, seen);
        else if (ended && one(".so-far", panel)) putBack(panel, seen);
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

    const announced = new Map();

    /** Not what a page that lost its line hears again: it would talk over what was said since, such as a vote. */
    function announceState(message) {
      const news = message.state + message.done;
      if (announced.get(message.panel) === news) return;
      announced.set(message.panel, news);
      const first = one("h2", current());
      const here = named(message.panel).some((panel) => current().contains(panel));
      if (!here || first === null) return;
      const name = message.panel.replace(/[-_]/g, " ");
      if (message.state === "done" && message.result) announce(name + ": " + message.result.sentences[0].text);
      else announce(name + ": " + (message.state === "failed" ? "failed. " + message.text : stateText(message)));
    }

    function output(panel, html, seen) {
      const place = one(".output", panel), slide = panel.closest("section");
      const open = all("details[open]", place).map((part) => part.className);
      setAside(panel, place);
      place.innerHTML = html;
      all("details", place).filter((part) => open.includes(part.className)).forEach((part) => { part.open = true; });
      prepare(place);
      window.machines.mount(place);
      const shown = one("[data-arrays]", place);
      if (shown) all("[data-of=" + shown.dataset.of + "]:not(.before *)").forEach((part) => window.machines.feed(part, shown.dataset.arrays));
      recall(panel);
      stand(slide, Math.min(Math.max(reached.get(slide) || 0, seen && slide === current() ? Number(panel.dataset.at) : 0), lastStep(slide)));
      window.tally.type(place);
    }

    /** A pair that was voted on stays so, after a reload too. */
    function recall(panel) {
      const hand = one("[data-vote]", panel) && window.tally.recall(panel);
      if (hand) reveal(one("[data-vote=" + hand + "]", panel), panel);
      window.tally.tell(panel);
    }

    /** What was recorded stays below the first live output, folded; a tasting would give itself away. */
    function setAside(panel, place) {
      const recording = one(".recording", place), before = one(".before", panel);
      if (!recording || !before || one("[data-vote]", recording)) return;
      all(".away", recording).forEach((part) => part.classList.remove("away"));
      before.append(recording);
      before.hidden = false;
    }

    /** After a first run without a result the recording stands where it stood, and nowhere else. */
    function putBack(panel, seen) {
      const before = one(".before", panel);
      if (before) {
        all(".recording", before).forEach((part) => part.remove());
        before.hidden = true;
      }
      output(panel, recorded.get(panel), seen);
    }

    /** Sentences quoted on other slides, such as the last one. */
    function quote(name, result) {
      all("[data-verdict]").filter((place) => place.dataset.verdict === name).forEach(function (place) {
        const match = result.sentences.find(({ key }) => key === place.dataset.key);
        if (match === undefined) return;
        place.classList.remove("unmeasured");
        place.dataset.ahead = match.ahead;
        all(".side span", place).forEach((bar) => { bar.textContent = match.lead; });
        const sentence = one(".said", place), aloud = one(".aloud", place);
        if (aloud) aloud.textContent = match.short;
        if (sentence) sentence.textContent = match.text;
        const badge = match.exact ? "EXACT" : match.recorded ? "RECORDED" : "LIVE";
        one(".badge", place).textContent = badge;
        one(".badge", place).className = "badge " + badge.toLowerCase();
        const basis = result.basis, seeds = basis.seeds === null ? "" : " · " + basis.seeds + " seeds";
        if (sentence) one(".basis", place).textContent = "n = " + basis.n + " " + basis.units + seeds + " · " + basis.interval;
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
      reveal(button, place);
      const slide = place.closest("section"), row = timetable(slide).find(([part]) => part.matches("[data-part=headline]"));
      if (row) stand(slide, Math.max(reached.get(slide) || 0, Math.min(row[1], lastStep(slide))));
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

    function listen() {
      const stream = new EventSource("events?token=" + encodeURIComponent(token));
      const link = one(".link");
      const tell = function (state, mark) {
        link.textContent = mark;
        link.setAttribute("aria-label", state);
        link.title = state;
      };
      stream.onopen = () => tell("connected", "●");
      stream.onmessage = (event) => handle(JSON.parse(event.data));
      stream.onerror = function () {
        tell("the deck's server does not answer; what was measured stays", "○");
        announce("The deck's server does not answer.");
      };
    }

    all(".panel form").forEach((form) => form.addEventListener("submit", function (event) {
      event.preventDefault();
      run(form.closest(".panel"));
    }));
    prepare(document);
    panels().forEach(recall);
    window.machines.mount(document);
    const recorded = new WeakMap(panels().map((panel) => [panel, one(".output", panel).innerHTML]));
    const runAll = () => post("run-all", {}).catch((error) => announce(error.message));
    const seed = () => chosen().forEach((panel) => { if (nextSeeds(panel)) run(panel); });
    if (live) listen();
    return { run: () => chosen().forEach(run), cancel: () => chosen().forEach(cancel), cancelOf: cancel, stop: () => chosen().forEach(stop), stopOf: stop, seed, runAll,
      exportResults, saveFile, pickHand, voted };
  };
})();
