// Keeps parts of a page up to date: <div data-live="URL"> opens the event stream at
// URL, and each "fragment" event replaces what is inside. "done" ends the stream.
// The browser reconnects by itself when the connection is lost, and gives up when the
// server answers with an error: then the page waits until the server can serve it.

const retryAfter = 3000; // ms

function follow(target) {
  const source = new EventSource(target.dataset.live);
  source.addEventListener("fragment", (event) => swap(target, event.data));
  source.addEventListener("done", () => source.close());
  source.addEventListener("reload", () => {
    source.close();
    location.reload();
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) setTimeout(reloadWhenServed, retryAfter);
  });
  addEventListener("pagehide", () => source.close(), { once: true });
}

async function reloadWhenServed() {
  const answer = await fetch(location.href, { method: "HEAD" }).catch(() => null);
  if (answer && answer.status < 500) location.reload();
  else setTimeout(reloadWhenServed, retryAfter);
}

// swap replaces the content, and keeps open what the reader has opened and the
// focus where it was.
function swap(target, html) {
  const open = new Set([...target.querySelectorAll("details[open][id]")].map((d) => d.id));
  const focus = target.contains(document.activeElement) ? document.activeElement.id : "";
  const template = document.createElement("template");
  template.innerHTML = html;
  for (const details of template.content.querySelectorAll("details[id]")) {
    if (open.has(details.id)) details.open = true;
  }
  target.replaceChildren(template.content);
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

for (const target of document.querySelectorAll("[data-live]")) follow(target);
