// What the server says has changed, put in place by its id; what has the focus keeps it.
(() => {
"use strict";
const link = document.getElementById("link");
const version = document.querySelector("[data-version]").dataset.version;
const source = new EventSource(`events${location.search}&since=${version}`);

function put(id, html) {
  const old = document.getElementById(id);
  if (!old) return;
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  old.outerHTML = html;
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

source.onopen = () => { link.textContent = "Live"; };
source.onmessage = ({ data }) => { for (const [id, html] of Object.entries(JSON.parse(data))) put(id, html); };
source.onerror = () => {
  const ended = source.readyState === EventSource.CLOSED;
  link.textContent = ended ? "The server has ended: start isoloss serve again" : "Connection lost, trying again";
};
})();
