// Says what a chart shows under the pointer, hides curves, switches the theme. Everything is readable
// without it. Keeps no state outside the page.
(() => {
  "use strict";
  const root = document.documentElement;
  const NEAR = 48; // Pixels of the drawing within which a point is the one meant.
  const SVG = "http://www.w3.org/2000/svg";

  // Three digits, or as many as the picture can tell.
  const digits = (value) => Number(value.toPrecision(3)).toString();

  // The value at a pixel of an axis: [pixel, pixel, value, value, logarithmic, unit].
  const read = ([p, q, from, to, log, unit], pixel) => {
    const share = (pixel - p) / (q - p);
    const value = log ? from * (to / from) ** share : from + (to - from) * share;
    return `≈ ${digits(value)} ${unit}`.trim();
  };

  // The points of a drawing with what there is to say of each, from left to right.
  const pointsOf = (svg) => {
    const axes = JSON.parse(svg.dataset.axes);
    return [...svg.querySelectorAll("g.curve")].flatMap((group, at) => {
      if (group.hasAttribute("display")) return [];
      const first = svg.parentElement.querySelectorAll("svg.page g.curve")[at];
      const points = group.dataset.points || (first && first.dataset.points);
      const told = points && points.split("\n");
      const d = group.querySelector(".v").getAttribute("d");
      let [x, y] = [0, 0];
      // A command for each point: the first is absolute, all others go on from the one before.
      return [...d.matchAll(/([Mmlhv])(-?[\d.]+)(?: ?(-?[\d.]+))?/g)].map(([, sign, one, two], point) => {
        const [dx, dy] = sign === "v" ? [0, one] : [one, two || 0];
        [x, y] = [x + +dx, y + +dy];
        const [value, place, note] = told ? told[point].split("\t") : [read(axes[1], y), read(axes[0], x)];
        return { x, y, value, place, note, name: group.dataset.name };
      });
      // Of a part of a picture the rest is not shown.
    }).filter(({ x }) => !svg.classList.contains("close") || x >= axes[0][0] && x <= axes[0][1]).sort((a, b) => a.x - b.x || a.y - b.y);
  };

  // What a chart says of the point under the pointer, or that the arrow keys lead to.
  const charts = () => {
    const tip = document.createElement("div");
    tip.id = "tip";
    // What is inside a picture is not read out: the arrow keys tell it here.
    const told = document.createElement("p");
    told.className = "told";
    told.setAttribute("role", "status");
    document.body.append(told);
    const ring = document.createElementNS(SVG, "circle");
    ring.setAttribute("class", "ring");
    ring.setAttribute("r", "8");
    const hide = () => { tip.remove(); ring.remove(); };
    const line = (text, tag) => {
      const part = document.createElement(tag);
      part.textContent = text;
      return part;
    };
    const show = (box, svg, point) => {
      ring.setAttribute("cx", point.x);
      ring.setAttribute("cy", point.y);
      svg.append(ring);
      tip.replaceChildren(...[[point.value, "b"], [point.place, "span"], [point.name, "span"], [point.note, "span"]]
        .filter(([text]) => text).map(([text, tag]) => line(text, tag)));
      box.append(tip);
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      const room = box.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(room, point.x * scale + 12))}px`;
      const above = point.y * scale - tip.offsetHeight - 12;
      tip.style.top = `${above > 0 ? above : point.y * scale + 12}px`;
    };
    for (const box of document.querySelectorAll(".plot")) {
      const shown = () => [...box.querySelectorAll("svg.chart")].find((svg) => svg.getBoundingClientRect().width > 0);
      let at = -1;
      box.addEventListener("pointermove", (event) => {
        const svg = shown();
        const frame = svg.getBoundingClientRect();
        const scale = svg.viewBox.baseVal.width / frame.width;
        const [x, y] = [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
        let best, least = NEAR;
        pointsOf(svg).forEach((point) => {
          const far = Math.hypot(point.x - x, point.y - y);
          if (far < least) [best, least] = [point, far];
        });
        if (best) show(box, svg, best); else hide();
      });
      box.addEventListener("pointerleave", hide);
      box.addEventListener("blur", hide);
      box.tabIndex = 0;
      box.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!step) return;
        event.preventDefault();
        const svg = shown();
        const points = pointsOf(svg);
        if (!points.length) return;
        at = (at + step + (at < 0 && step < 0 ? 1 : 0) + points.length) % points.length;
        show(box, svg, points[at]);
        told.textContent = [...tip.children].map((part) => part.textContent).join(", ");
      });
    }
  };

  const legends = () => {
    for (const box of document.querySelectorAll(".plot")) {
      const items = box.closest("figure").querySelectorAll(".legend:not(.limiters) li");
      if (items.length < 2) continue;
      items.forEach((item, at) => {
        const button = document.createElement("button");
        button.type = "button";
        button.title = "Show or hide this curve";
        button.setAttribute("aria-pressed", "true");
        button.append(...item.childNodes);
        item.append(button);
        button.addEventListener("click", () => {
          const hide = button.getAttribute("aria-pressed") === "true";
          button.setAttribute("aria-pressed", String(!hide));
          for (const svg of box.querySelectorAll("svg.chart")) {
            const curve = svg.querySelectorAll("g.curve")[at];
            if (hide) curve.setAttribute("display", "none"); else curve.removeAttribute("display");
          }
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
    });
    dark.addEventListener("change", label);
    label();
    button.hidden = false;
  };

  // A link to what is behind a click opens it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    let shut = false;
    for (let at = target && target.closest("details"); at; at = at.parentElement.closest("details")) {
      shut ||= !at.open;
      at.open = true;
    }
    if (shut) target.scrollIntoView({ block: target.tagName === "DETAILS" ? "start" : "center" });
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

  charts();
  legends();
  themes();
  contents();
  addEventListener("hashchange", reveal);
  reveal();
})();
