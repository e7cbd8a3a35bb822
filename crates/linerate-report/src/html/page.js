// Draws the charts in the colours of the theme, and redraws them for the other theme and for
// paper. Keeps no state outside the page.
(() => {
  "use strict";
  const root = document.documentElement;
  const PAPER_WIDTH = 650; // CSS pixels: A4 and Letter less their margins.
  const charts = [...document.querySelectorAll(".plot")].map((box) => ({
    box,
    source: JSON.parse(document.getElementById(box.dataset.source).textContent),
    hidden: new Set(),
  }));

  // Replaces `var(--name)` by the property's value, everywhere in a chart.
  const resolve = (value, style) => {
    if (typeof value === "string") {
      return value.startsWith("var(--") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (value === null) return NaN; // Plotly takes null for zero in error bars.
    if (Array.isArray(value)) return value.map((item) => resolve(item, style));
    if (typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolve(v, style)]));
    }
    return value;
  };

  const draw = (paper) => {
    const style = getComputedStyle(root);
    const touch = matchMedia("(pointer: coarse)").matches;
    for (const { box, source, hidden } of charts) {
      const { data, layout, config } = resolve(source, style);
      data.forEach((trace, at) => { trace.visible = !hidden.has(at); });
      if (paper) Object.assign(layout, { autosize: false, width: PAPER_WIDTH, height: 300 });
      if (touch) layout.dragmode = false; // A finger on a chart scrolls the page.
      Plotly.react(box, data, layout, config);
    }
  };

  const legends = () => {
    for (const chart of charts) {
      const items = chart.box.closest("figure").querySelectorAll(".legend li");
      if (items.length < 2) continue;
      items.forEach((item, at) => {
        const button = document.createElement("button");
        button.type = "button";
        button.title = "Show or hide this curve";
        button.setAttribute("aria-pressed", "true");
        button.append(...item.childNodes);
        item.append(button);
        button.addEventListener("click", () => {
          const hide = !chart.hidden.delete(at);
          if (hide) chart.hidden.add(at);
          button.setAttribute("aria-pressed", String(!hide));
          Plotly.restyle(chart.box, { visible: !hide }, [at]);
        });
      });
    }
  };

  const themes = () => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const button = document.getElementById("theme");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
    const label = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      label();
      draw(false);
    });
    dark.addEventListener("change", () => { label(); draw(false); });
    label();
    button.hidden = false;
  };

  const paper = () => {
    let theme, opened = [];
    addEventListener("beforeprint", () => {
      theme = root.dataset.theme;
      root.dataset.theme = "light";
      opened = [...document.querySelectorAll("details:not([open])")];
      opened.forEach((details) => { details.open = true; });
      draw(true);
    });
    addEventListener("afterprint", () => {
      if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
      opened.forEach((details) => { details.open = false; });
      draw(false);
    });
  };

  // A link to a trial opens the list that holds it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target && target.closest("details");
    if (details && !details.open) {
      details.open = true;
      target.scrollIntoView({ block: "center" });
    }
  };

  const contents = () => {
    const links = [...document.querySelectorAll("#contents a")];
    const heads = links.map((link) => document.getElementById(link.hash.slice(1)));
    const mark = () => {
      let at = -1;
      heads.forEach((head, index) => {
        if (head && head.getBoundingClientRect().top < innerHeight / 3) at = index;
      });
      links.forEach((link, index) => {
        if (index === at) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    };
    addEventListener("scroll", mark, { passive: true });
    mark();
  };

  draw(false);
  legends();
  themes();
  paper();
  contents();
  addEventListener("hashchange", reveal);
  reveal();
})();
