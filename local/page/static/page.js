// Live updates: whenever the server says that the books changed, the same page is fetched again
// and the parts marked data-live are exchanged. Without this script everything works by reloading.
"use strict";

(() => {
  const live = document.getElementById("live");
  const announcer = document.getElementById("announcer");
  let source = null;
  let busy = false;
  let again = false;
  let seen = null;

  const parts = (root) =>
    new Map([...root.querySelectorAll("[data-live]")].map((part) => [part.dataset.live, part]));

  function exchange(fresh) {
    const now = parts(document);
    let rows = 0;
    for (const [name, part] of parts(fresh)) {
      const old = now.get(name);
      if (!old || old.innerHTML === part.innerHTML) continue;
      if (old.contains(document.activeElement) && document.activeElement.matches("input, select"))
        continue; // never under somebody's fingers
      const focused = old.contains(document.activeElement) ? document.activeElement : null;
      const before = new Map(
        [...old.querySelectorAll("tr[id], article[id]")].map((row) => [row.id, row.innerHTML]),
      );
      const scrolled = [...old.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
      old.replaceChildren(...part.childNodes);
      old.querySelectorAll(".scroll").forEach((box, n) => (box.scrollLeft = scrolled[n] ?? 0));
      for (const row of old.querySelectorAll("tr[id], article[id]")) {
        if (before.get(row.id) !== row.innerHTML) {
          row.classList.add("fresh");
          rows += 1;
        }
      }
      if (focused?.id) document.getElementById(focused.id)?.focus({ preventScroll: true });
    }
    if (rows) announcer.textContent = rows === 1 ? "One line changed." : `${rows} lines changed.`;
  }

  // A wide drawing starts at its middle, where the happy path runs.
  function centre() {
    for (const box of document.querySelectorAll(".scroll:has(.machine)"))
      box.scrollLeft = (box.scrollWidth - box.clientWidth) / 2;
  }
  centre();

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
      }
    } catch {
      live.hidden = true; // the event source reconnects and refreshes
    } finally {
      busy = false;
      if (again) {
        again = false;
        refresh();
      }
    }
  }

  function listen() {
    if (source) return;
    source = new EventSource("/events");
    source.onopen = () => (live.hidden = false);
    source.onerror = () => (live.hidden = true);
    source.onmessage = (event) => {
      if (event.data !== seen) refresh();
      seen = event.data;
    };
  }

  function pause() {
    source?.close();
    source = null;
    live.hidden = true;
  }

  // A page that nobody sees asks nothing.
  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : listen()));
  window.addEventListener("pagehide", pause);
  window.addEventListener("pageshow", () => document.hidden || listen());
  if (!document.hidden) listen();

  // A button that keeps its page where it is.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    event.preventDefault();
    const button = event.submitter ?? form.querySelector("button");
    button.disabled = true;
    try {
      const answer = await fetch(form.action, {
        method: "POST",
        headers: { Accept: "application/json" },
        body: new URLSearchParams(new FormData(form)),
      });
      const said = await answer.json();
      announcer.textContent = answer.ok ? `${said.title}: under way.` : said.error;
      if (!answer.ok) complain(form, said.error);
    } catch {
      complain(form, "The page does not answer: is it still running?");
    } finally {
      button.disabled = false;
      refresh();
    }
  });

  function complain(form, text) {
    form.querySelector(".complaint")?.remove();
    const note = document.createElement("p");
    note.className = "complaint notice bad";
    note.setAttribute("role", "alert");
    note.textContent = text;
    form.append(note);
  }
})();
