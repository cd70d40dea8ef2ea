/* The presenter's window: notes, what comes next, clock, run buttons. The deck fills it and acts for it. */
(function () {
  "use strict";

  const STYLE = "body{font:1.25rem/1.4 system-ui,sans-serif;margin:1.5rem;color:#f1f3f5;background:#10141b}" +
    "h1{font-size:1.6rem;margin:0.5rem 0}button{font:inherit;padding:0.3rem 1rem;margin-right:0.5rem}" +
    "header{display:flex;gap:2rem;font-variant-numeric:tabular-nums}iframe{width:1280px;height:720px;border:3px solid #3a424c;float:right;" +
    "pointer-events:none;transform:scale(0.35);transform-origin:0 0;margin:0 -832px -456px 1rem}.next{clear:both;color:#aab2bb;border-top:1px solid #3a424c;padding-top:0.6rem}kbd{font:inherit}";
  const TURNS = ["ArrowRight", "ArrowLeft", "PageDown", "PageUp", " "];
  let other = null, began = 0, parts = {};

  const time = (milliseconds) => new Date(milliseconds).toISOString().slice(11, 19);
  const there = () => other !== null && !other.closed;

  function part(name, ...children) {
    const made = other.document.createElement(name);
    made.append(...children);
    return made;
  }

  function button(words, act) {
    const made = part("button", words);
    made.type = "button";
    made.addEventListener("click", act);
    return made;
  }

  /** Opens the window, or brings it to the front; false where the browser does not allow it. */
  function open(actions, live) {
    if (there()) return other.focus() || true;
    other = window.open("", "isoloss-presenter", "popup,width=900,height=680");
    if (other === null) return false;
    began = Date.now();
    const page = other.document;
    page.documentElement.lang = "en";
    page.title = "Presenter · " + document.title;
    page.head.replaceChildren(part("style", STYLE));
    parts = Object.fromEntries(["clock", "step", "state"].map((name) => [name, part("span")]));
    Object.assign(parts, { title: part("h1"), notes: part("main"), next: part("p"), preview: part("iframe") });
    parts.preview.title = "What comes next";
    parts.next.className = "next";
    const runs = live ? [button("Run", actions.run), button("Cancel", actions.cancel), parts.state] : [];
    page.body.replaceChildren(part("header", parts.clock, parts.step), parts.title, parts.preview, parts.notes, parts.next,
      part("p", button("Back", actions.previous), button("Next", actions.next), ...runs));
    other.addEventListener("keydown", function (event) {
      if (TURNS.includes(event.key) && event.target.localName !== "button") event.preventDefault();
      if (event.target.localName === "button" && event.key === " ") return;
      document.dispatchEvent(new KeyboardEvent("keydown", { key: event.key, bubbles: true, cancelable: true }));
    });
    const tick = other.setInterval(function () {
      if (!there()) return clearInterval(tick);
      parts.clock.textContent = new Date().toLocaleTimeString() + " · " + time(Date.now() - began);
    }, 500);
    return true;
  }

  /** What the deck shows now, and what its next slide is called. */
  function show(slide, next, step, last) {
    if (!there()) return;
    const words = (inside, selector) => (inside.querySelector(selector) || { textContent: "" }).textContent;
    parts.title.textContent = slide.dataset.label + " · " + words(slide, "h2");
    parts.step.textContent = "step " + step + " of " + last;
    const notes = slide.querySelector(".notes");
    parts.notes.innerHTML = notes ? notes.innerHTML : "";
    parts.next.textContent = next ? "Next: " + words(next, "h2") + " – " + words(next, ".lead") : "Next: the end";
    parts.preview.hidden = step === last && !next;
    if (!parts.preview.hidden) preview(step < last ? slide : next, step < last ? step + 1 : 0);
    state(slide);
  }

  /** What one more press brings: a copy of the slide at that step, on a stage of its own made small. */
  function preview(slide, step) {
    const page = parts.preview.contentDocument, copy = slide.cloneNode(true), stage = part("div", copy);
    page.documentElement.className = "js ready";
    page.documentElement.dataset.theme = document.documentElement.dataset.theme || "";
    page.head.replaceChildren(part("style", document.querySelector("style").textContent));
    Object.assign(copy, { className: "present", hidden: false, inert: true });
    stage.className = "slides";
    window.machines.mount(copy);
    window.stage.stand(copy, step, false);
    page.body.replaceChildren(stage);
  }

  function state(slide) {
    if (there()) parts.state.textContent = Array.from(slide.querySelectorAll(".state")).map((place) => place.textContent).join(" ");
  }

  window.presenter = { open, show, state };
})();
