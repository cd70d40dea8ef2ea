/* Hands in the room: guesses before a picture, votes before the names. A press is one hand; a show of hands is
   entered as numbers. Votes on one pair of texts are one round, since they are not independent. */
(function () {
  "use strict";

  const all = (selector, inside) => Array.from(inside.querySelectorAll(selector));
  const PACE = 30, Z = 1.96, KEPT = "isoloss-hands";
  const { rounds = [], guesses = {}, cast = {} } = storage(() => JSON.parse(sessionStorage.getItem(KEPT))) || {};
  const keep = () => storage(() => sessionStorage.setItem(KEPT, JSON.stringify({ rounds, guesses, cast })));
  const typed = new Map(), pairs = new WeakMap();

  /** Votes, on which pairs, guesses and choices outlive a reload; where storage is closed to a file, they last as long as the page. */
  function storage(act) {
    try {
      return act();
    } catch {
      return null;
    }
  }

  /** Wilson's 95% interval of a share. */
  function wilson(hits, n) {
    const p = hits / n, wide = 1 + Z * Z / n, middle = (p + Z * Z / (2 * n)) / wide;
    const reach = Z * Math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / wide;
    return [middle - reach, middle + reach].map((end) => Math.round(100 * end));
  }

  const hands = (group) => new Map(all("[data-hands]", group).map((field) => [field.dataset.hands, Number(field.value) || 0]));
  const total = (counts) => Array.from(counts.values()).reduce((a, b) => a + b, 0);

  /** What the rounds say: a round goes to the family that more hands prefer. */
  function verdict() {
    const won = (name) => rounds.filter((winner) => winner === name).length;
    const n = won("Transformer") + won("LSTM"), heading = rounds.length + (rounds.length === 1 ? " round: " : " rounds: ");
    const text = heading + "Transformer " + won("Transformer") + ", LSTM " + won("LSTM") + ", same " + won("same") + ".";
    if (n === 0) return text;
    const [low, high] = wilson(won("Transformer"), n), coin = low <= 50 && high >= 50;
    return text + " Transformer " + low + " to " + high + "% of n = " + n + (coin ? ": a coin would do as well." : ": no coin.");
  }

  function tell(place) {
    all(".tally", place).forEach((line) => { line.textContent = rounds.length ? verdict() : ""; });
  }

  /** A round: by the button that was pressed, or by the numbers. Its winner's name; null where nobody voted. */
  function vote(group, panel, pressed) {
    const counts = hands(group);
    if (pressed) counts.set(pressed, (counts.get(pressed) || 0) + 1);
    if (total(counts) === 0) return null;
    const [first, second] = ["A", "B"].map((label) => counts.get(label) || 0);
    const names = new Map(all(".identity", panel).map((name) => [name.closest("[data-side]").dataset.side, name.textContent]));
    const undecided = first === second || (counts.get("same") || 0) >= Math.max(first, second);
    const winner = undecided ? "same" : names.get(first > second ? "A" : "B") || "same";
    rounds.push(winner);
    cast[pairs.get(panel)] = pressed || "counted";
    keep();
    tell(panel);
    return winner;
  }

  /** The hand that was cast on a panel's pair of texts, read before they are typed; none where nobody has voted. */
  function recall(panel) {
    pairs.set(panel, all("[data-side]", panel).map((side) => side.textContent).join());
    return cast[pairs.get(panel)];
  }

  function guess(button) {
    const panel = button.closest(".panel"), group = button.closest(".guess");
    const field = all("[data-hands]", group).find((one) => one.dataset.hands === button.dataset.guess);
    if (field) field.value = Number(field.value) + 1;
    all("[data-guess]", group).forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
    counted(panel);
  }

  /** What the room guessed stands beside the verdict. */
  function counted(panel) {
    const counts = hands(panel.querySelector(".guess"));
    guesses[panel.dataset.panel] = Array.from(counts);
    keep();
    const words = Array.from(counts).filter(([, n]) => n > 0).map(([name, n]) => name + " " + n);
    panel.querySelector(".room").textContent = words.length ? "The room: " + words.join(", ") + "." : "";
  }

  /** Texts appear letter by letter, from where they stood. */
  function type(place) {
    if (window.machines.calm()) return;
    all(".written", place).forEach(function (part) {
      const side = part.closest("[data-side]").dataset.side, whole = part.textContent, page = part.closest(".texts");
      let shown = Math.min(typed.get(side) || 0, whole.length);
      part.textContent = whole.slice(0, shown);
      const timer = setInterval(function () {
        if (!part.isConnected || shown >= whole.length) return clearInterval(timer);
        shown += 1;
        typed.set(side, shown);
        part.textContent = whole.slice(0, shown);
        page.scrollTop = page.scrollHeight;
      }, PACE);
    });
  }

  document.addEventListener("input", function (event) {
    const group = event.target.closest(".guess");
    if (group) counted(group.closest(".panel"));
  });

  all(".panel:has(.guess)", document).forEach(function (panel) {
    const before = new Map(guesses[panel.dataset.panel]);
    all(".guess [data-hands]", panel).forEach((field) => { field.value = before.get(field.dataset.hands) || ""; });
    counted(panel);
  });

  window.tally = { vote, recall, guess, tell, type, storage, restart: () => typed.clear() };
})();
