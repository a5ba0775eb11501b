// What a page needs beside htmx: the words of the connection, news of questions put in place without a jump,
// and the times in the reader's own zone. Every page works without it.
(() => {
  "use strict";

  const byId = (id) => document.getElementById(id);
  const clock = (at) => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

  const say = (words) => {
    const news = byId("news");
    if (news) news.textContent = words;
  };

  // ---- the connection

  let since = new Date();

  const link = (state) => {
    const place = byId("link");
    if (!place) return;
    const words = { checking: "Checking…", live: "Live", offline: `Offline. As of ${clock(since)}` }[state];
    if (place.dataset.state === "live" && state === "offline") say(words);
    place.dataset.state = state;
    byId("link-words").textContent = words;
  };

  // ---- times

  const ago = (at) => {
    const seconds = (Date.now() - at) / 1000;
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
      if (Math.abs(seconds) >= size) {
        const count = `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
        return seconds > 0 ? `${count} ago` : `in ${count}`;
      }
    }
    return seconds >= 0 ? "just now" : "in a moment";
  };

  const times = (root) => {
    for (const each of root.querySelectorAll("time[datetime]")) {
      const at = new Date(each.dateTime);
      each.title = at.toLocaleString();
      each.textContent = ago(at);
    }
  };

  // ---- news of a question

  const fetched = async (url, id) => {
    const answer = await fetch(url, { headers: { Accept: "text/html" }, credentials: "same-origin" });
    if (answer.status === 401) {
      location.reload();
      return null;
    }
    if (!answer.ok) return null;
    since = new Date();
    return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(id);
  };

  // Puts the new in place of the old, when it says something else.
  const replace = (old, made) => {
    if (!made || !old.isConnected || old.dataset.version === made.dataset.version) return false;
    old.replaceWith(made);
    htmx.process(made);
    times(made);
    say(made.dataset.said);
    return true;
  };

  const card = async (id) => {
    const made = await fetched(`/inbox/questions/${id}`, "card");
    const old = byId("card");
    if (!made || !old || old.dataset.question !== id || byId("answer")?.ariaBusy === "true") return;
    if (old.dataset.version === made.dataset.version) return;
    const note = byId("note");
    const words = note ? note.value : "";
    const typing = note !== null && document.activeElement === note;
    const within = old.contains(document.activeElement);
    const picked = [...old.querySelectorAll("input[name=choice]:checked")].map((each) => each.value);
    const before = old.dataset.status;
    if (!replace(old, made)) return;
    const now = byId("note");
    if (now) {
      now.value = words;
      for (const each of made.querySelectorAll("input[name=choice]")) each.checked = picked.includes(each.value);
      if (typing) now.focus();
    } else if (words && before === "open") {
      byId("unsent-words").textContent = words;
      byId("unsent").hidden = false;
    }
    if (within && !(typing && now)) byId("asked").focus({ preventScroll: true });
  };

  const row = async (id) => {
    const queue = byId("queue");
    const made = await fetched(`/inbox/rows/${id}`, `row-${id}`);
    if (!queue || !made) return;
    const old = byId(`row-${id}`);
    if (old) {
      const within = old.contains(document.activeElement);
      if (replace(old, made) && within) made.querySelector("a").focus({ preventScroll: true });
      return;
    }
    if (made.classList.contains("over")) return;
    queue.append(made); // at the end: nothing moves under a thumb, and the next page has it in its place
    byId("nothing").hidden = true;
    times(made);
    say(`New. ${made.dataset.said}`);
  };

  // What a session does: its line alone, so that a form below it stays as it is.
  const state = async (id) => {
    const find = (root) => [...root.querySelectorAll("[data-session]")].find((each) => each.dataset.session === id);
    const old = find(document)?.querySelector(".who");
    if (!old) return;
    const main = await fetched("/inbox/sessions", "main");
    const made = main && find(main)?.querySelector(".who");
    if (made && old.textContent !== made.textContent) old.replaceWith(made);
  };

  const pending = new Map();

  // One look at a time for each question; what comes meanwhile leads to one more.
  const look = async (id) => {
    if (pending.has(id)) {
      pending.set(id, true);
      return;
    }
    do {
      pending.set(id, false);
      try {
        if (byId("card")?.dataset.question === id) await card(id);
        else if (byId("queue")) await row(id);
      } catch {
        link("offline");
      }
    } while (pending.get(id));
    pending.delete(id);
  };

  // Everything may have changed: look at all that is shown.
  const all = () => {
    const shown = byId("card") ? [byId("card")] : document.querySelectorAll("#queue > li");
    for (const each of [...shown].slice(0, 50)) look(each.dataset.question);
  };

  const listen = (place) => {
    let lost = false;
    place.addEventListener("htmx:sse:after:connection", (event) => {
      const well = (event.detail.connection?.status ?? 200) === 200;
      link(well ? "live" : "offline");
      if (well && lost) all();
      lost = !well;
    });
    place.addEventListener("htmx:sse:error", (event) => {
      if (event.detail?.status === 401) location.reload(); // logged out elsewhere: the login takes over
      lost = true;
      link("offline");
    });
    place.addEventListener("question", (event) => look(JSON.parse(event.detail.data).id));
    place.addEventListener("session", (event) => state(JSON.parse(event.detail.data).id).catch(() => link("offline")));
    place.addEventListener("resync", all);
  };

  // The extension comes back to a connection that was there; one that never came about is begun anew here.
  const connected = () => {
    const place = byId("link");
    if (!place || place._htmx?.sse) return;
    link("offline");
    const fresh = place.cloneNode(true);
    place.replaceWith(fresh);
    listen(fresh);
    htmx.process(fresh);
  };

  document.addEventListener("DOMContentLoaded", () => {
    times(document);
    setInterval(() => times(document), 30000);
    const place = byId("link");
    if (!place) return;
    link("checking");
    listen(place);
    setInterval(connected, 5000);
  });

  // ---- answering

  document.addEventListener("htmx:before:request", (event) => {
    const form = event.target.closest?.("#answer");
    if (!form) return;
    form.ariaBusy = "true";
    byId("unreached").hidden = true;
    for (const each of form.querySelectorAll("button")) each.disabled = true;
  });

  const again = () => {
    const form = byId("answer");
    if (!form) return;
    form.ariaBusy = "false";
    for (const each of form.querySelectorAll("button")) each.disabled = false;
  };

  // Nothing of use has come back: what was sent may or may not have arrived, and sending it again is safe.
  const unreached = (event) => {
    again();
    const place = byId("unreached");
    if (!event.target.closest?.("#answer") || !place) return;
    place.hidden = false;
    place.focus();
    say(place.textContent);
  };

  document.addEventListener("htmx:error", unreached);
  document.addEventListener("htmx:before:response", (event) => {
    const status = event.detail?.ctx?.response?.status ?? 200;
    if (!event.target.closest?.("#answer") || [200, 400, 409].includes(status)) return;
    event.preventDefault(); // what came is no card
    if (status === 401) location.reload();
    else unreached(event);
  });
  document.addEventListener("htmx:after:swap", () => {
    again();
    const place = byId("card");
    if (!place) return;
    times(place);
    say(byId("notice")?.textContent ?? place.dataset.said);
    (byId("notice") ?? byId("asked")).focus();
  });

  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // what is taken from memory may be long over
  });
})();
