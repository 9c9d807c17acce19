// Keys, and where a page stands. Everything else is HTML: without this file the pages work too.
(() => {
  "use strict";
  const typing = (target) => target.closest("input, select, textarea, [contenteditable]");
  const things = () => [...document.querySelectorAll(".list .row, .items > [data-item]")];

  function move(by) {
    const all = things();
    const at = all.findIndex((each) => each === document.activeElement || each.contains(document.activeElement));
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))];
    if (!next) return;
    const target = next.matches("details") ? next.querySelector("summary") : next;
    target.focus();
    target.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) return event.target.blur();
    if (typing(event.target)) return;
    const search = document.getElementById("q");
    if (event.key === "/" && search) search.focus();
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "Enter" && event.target.matches("[data-item]")) {
      const link = event.target.querySelector("summary, .more button, a");
      if (link) link.click();
    } else return;
    event.preventDefault();
  });

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
  // A session opens at its end, where it goes on.
  window.addEventListener("load", () => {
    const end = document.getElementById("end");
    if (end && !location.hash && document.querySelector("#items[hx-sse\\:connect]")) {
      end.scrollIntoView({ block: "end" });
    }
  });
})();
