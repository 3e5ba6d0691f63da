// Loads the content of the page again when groups have changed. Updates wait while text
// is selected, or a form is used or filled in: nothing changes under the reader's hands.
"use strict";

const LIVE = "updates as groups change";
const OLD = "the dashboard does not respond; what you see is old";
const status = document.getElementById("updates");
let shown = Number(document.getElementById("content").dataset.version);
let latest = shown;
let loading = false;

function isBusy() {
  const active = document.activeElement;
  return Boolean(String(document.getSelection())) ||
    Boolean(active && active.closest("form, details[open]")) ||
    [...document.querySelectorAll("main input")].some((each) =>
      each.value !== each.defaultValue || each.checked !== each.defaultChecked);
}

async function update() {
  if (loading || latest <= shown || document.hidden) return;
  if (isBusy()) {
    status.textContent = "updates wait for your selection or form";
    return;
  }
  loading = true;
  try {
    const response = await fetch(location.href, {credentials: "same-origin"});
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const content = page.getElementById("content");
    if (!content || isBusy()) return;
    const old = document.getElementById("content");
    const path = focusedLink(old);
    old.replaceWith(content);
    document.querySelector("footer").replaceWith(page.querySelector("footer"));
    shown = Number(content.dataset.version);
    if (path) content.querySelector(`a[href="${CSS.escape(path)}"]`)?.focus();
    status.textContent = LIVE;
  } catch {
    status.textContent = OLD;
  } finally {
    loading = false;
  }
}

function focusedLink(within) {
  const active = document.activeElement;
  return active && within.contains(active) ? active.getAttribute("href") : null;
}

function listen() {
  if (!document.body.dataset.events) return;
  status.textContent = LIVE;
  const events = new EventSource(document.body.dataset.events);
  events.onmessage = (event) => { latest = Number(event.data); update(); };
  events.onerror = () => { status.textContent = OLD; };
}

document.addEventListener("selectionchange", () => setTimeout(update, 200));
document.addEventListener("focusout", () => setTimeout(update, 200));
document.addEventListener("change", () => setTimeout(update, 200));
document.addEventListener("visibilitychange", update);
listen();
