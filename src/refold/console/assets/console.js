// Keys, and where a page stands. Everything else is HTML: without this file the pages work too.
(() => {
  "use strict";
  const typing = (target) => target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");
  // What j and k go through: rows, messages, matches, and whatever else of a page opens.
  const THINGS = ["[data-item]", ".region", "> details", ".hits > li > a", ".steps a", ".spans a", ".evidence a", "th > a", ".more > a", ".more > button"];
  const things = () => [...document.querySelectorAll(THINGS.map((each) => `main ${each}`))].filter(
    (each) => each.checkVisibility() && !each.parentElement.closest("article, details:not([open])"),
  );
  const help = document.getElementById("help");
  const show = () => (help.open ? help.close() : help.showModal());

  function move(by) {
    const all = things();
    const at = all.findLastIndex((each) => each.contains(document.activeElement)); // the innermost
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
    if (!next) return;
    const target = next.matches("details") ? next.querySelector("summary") : next;
    target.focus();
    target.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && !help.open) return document.activeElement.blur();
    if (typing(event.target)) return;
    const search = document.getElementById("q");
    const near = { p: "prev", n: "next" }[event.key];
    if (event.key === "?") show();
    else if (help.open) return;
    else if (event.key === "/" && search) search.focus();
    else if (event.key === "/") location.assign(`${document.querySelector("a.name").href}#q`);
    else if (near) document.querySelector(`a[rel=${near}]`)?.click();
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "x" && event.target.closest(".list tr")) event.target.closest("tr").querySelector(".pick input").click();
    else if (event.key === "Enter" && event.target.matches("[data-item]")) {
      const link = event.target.querySelector("summary, .more button, a");
      if (link) link.click();
    } else return;
    event.preventDefault();
  });

  for (const button of document.querySelectorAll("[data-help]")) {
    button.hidden = false;
    button.addEventListener("click", show);
  }
  if (location.hash === "#q") document.getElementById("q")?.focus();

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const told = button.parentElement.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(button.parentElement.nextElementSibling.textContent);
      told.textContent = "Copied.";
    } catch {
      told.textContent = "The browser does not allow it here: select the text below.";
    }
  });

  // What is put above leaves the page where it is: the browser's own way would keep the heading.
  const root = document.documentElement;
  let anchor = null;
  let top = 0;
  document.addEventListener("htmx:before:swap", (event) => {
    anchor = event.target.closest(".earlier") && document.querySelector(".items > [data-item]");
    if (!anchor) return;
    top = anchor.getBoundingClientRect().top;
    root.style.overflowAnchor = "none";
  });
  document.addEventListener("htmx:after:swap", () => {
    const held = anchor;
    anchor = null;
    let frames = held ? 6 : 0; // until what came has its real heights
    const hold = () => {
      window.scrollBy(0, held.getBoundingClientRect().top - top);
      if (frames--) requestAnimationFrame(hold);
      else root.style.overflowAnchor = "";
    };
    if (held) hold();
  });
  // A session opens at its end, where it goes on; what an address points to is open.
  window.addEventListener("load", () => {
    for (const each of document.querySelectorAll(".message:target .content > details")) each.open = true;
    const end = document.getElementById("end");
    if (end && !location.hash && document.querySelector("#items[hx-sse\\:connect]")) {
      end.scrollIntoView({ block: "end" });
    }
  });
})();
