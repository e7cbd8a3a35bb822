// Zooms the pictures of a capture in time. Without it each stands whole, and on paper it always does: a part is
// drawn beside the whole picture, from its points, and the style sheet shows one of them.
(() => {
  "use strict";
  const MOST = 64; // Times: beyond it a pixel's width of the whole picture is all there is to see.
  const SVG = "http://www.w3.org/2000/svg";
  const LETTER = 7; // Pixels that a digit takes at the most.
  const TIMES = ["ns", "µs", "ms", "s", "min", "h"];

  const make = (tag, attributes, text) => {
    const part = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
    if (text) part.textContent = text;
    return part;
  };

  // Round steps of an axis with what they say, and as many digits as they need.
  const ticks = (from, to, wanted) => {
    const rough = (to - from) / wanted;
    const decade = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((times) => times * decade >= rough) * decade;
    const digits = Math.max(0, -Math.floor(Math.log10(step * 1.001)));
    const first = Math.ceil(from / step), count = Math.floor(to / step) - first + 1;
    return Array.from({ length: count }, (_, at) => (first + at) * step)
      .map((value) => [value, value.toFixed(digits)]);
  };

  // The points of a path as page.js reads them: whether it begins a stroke, and where it is.
  const pointsOf = (path) => {
    let [x, y] = [0, 0];
    return [...path.getAttribute("d").matchAll(/([Mmlhv])(-?[\d.]+)(?: ?(-?[\d.]+))?/g)].map(([, sign, one, two]) => {
      const [dx, dy] = sign === "v" ? [0, one] : [one, two || 0];
      [x, y] = [x + +dx, y + +dy];
      return [sign === "M" || sign === "m", x, y];
    });
  };

  const pathOf = (points) => {
    let last;
    return points.map(([begins, x, y]) => {
      const here = [Math.round(x * 10), Math.round(y * 10)];
      const [dx, dy] = last ? [here[0] - last[0], here[1] - last[1]] : here;
      const sign = last ? (begins ? "m" : "l") : "M";
      last = here;
      return `${sign}${dx / 10} ${dy / 10}`;
    }).join("");
  };

  // The least and the greatest height of what is drawn between two pixels: of points there, and where lines enter.
  const heights = (curves, left, right) => {
    const shown = curves.flatMap((points) => points.flatMap(([begins, x, y], at) => {
      const inside = x >= left && x <= right ? [y] : [];
      if (begins || !at) return inside;
      const [, x0, y0] = points[at - 1];
      const enters = [left, right].filter((edge) => x0 < edge && edge < x);
      return [...inside, ...enters.map((edge) => y0 + (edge - x0) / (x - x0) * (y - y0))];
    }));
    return shown.length ? [Math.min(...shown), Math.max(...shown)] : null;
  };

  // Draws the part of a drawing between two shares of its time.
  const part = (svg, [a, b], id) => {
    const copy = svg.cloneNode(true);
    copy.classList.add("close");
    const [[p, q, from, to, , unit], [bottom, top, low, high, log, yUnit]] = JSON.parse(svg.dataset.axes);
    const [left, , right] = svg.querySelector(".axis").getAttribute("d").match(/-?[\d.]+/g).map(Number);
    const [pa, pb] = [a, b].map((share) => p + share * (q - p));
    const paths = [...copy.querySelectorAll("g.curve:not([display]) .v")];
    const all = paths.map(pointsOf);
    // Heights follow what is shown; from the ground where that is near.
    let [y0, y1] = [bottom, top];
    const shown = log ? null : heights(all, pa, pb);
    if (shown) {
      const room = 0.06 * (shown[1] - shown[0] || bottom - top);
      y1 = shown[0] - room;
      y0 = bottom - shown[1] < 0.4 * (bottom - shown[0]) ? bottom : Math.min(bottom, shown[1] + room);
    }
    const x = (pixel) => p + (pixel - pa) / (pb - pa) * (q - p);
    const y = (pixel) => bottom - (y0 - pixel) / (y0 - y1) * (bottom - top);
    const clip = make("clipPath", { id });
    clip.append(make("rect", { x: left, y: top - 4, width: right - left, height: bottom - top + 8 }));
    copy.prepend(clip);
    paths.forEach((path, at) => path.setAttribute("d", pathOf(all[at].map(([begins, px, py]) => [begins, x(px), y(py)]))));
    for (const group of copy.querySelectorAll("g.curve")) group.setAttribute("clip-path", `url(#${id})`);
    // The axes anew, in the units of their titles.
    const value = (pixel) => low + (bottom - pixel) / (bottom - top) * (high - low);
    const [t0, t1] = [from + a * (to - from), from + b * (to - from)];
    const [v0, v1] = log ? [low, high] : [value(y0), value(y1)];
    copy.dataset.axes = JSON.stringify([[p, q, t0, t1, 0, unit], [bottom, top, v0, v1, log, yUnit]]);
    const labels = [...copy.querySelectorAll("text.middle:not(.title)")];
    const baseline = labels.length ? labels[0].getAttribute("y") : bottom + 18;
    labels.forEach((label) => label.remove());
    let axis = `M${left} ${bottom}H${right}`;
    for (const [time, text] of ticks(t0, t1, right - left > 400 ? 6 : 4)) {
      const at = p + (time - t0) / (t1 - t0) * (q - p);
      axis += `M${at.toFixed(1)} ${bottom}v5`;
      copy.append(make("text", { class: "middle", x: at.toFixed(1), y: baseline }, text));
    }
    copy.querySelector(".axis").setAttribute("d", axis);
    if (!log) {
      copy.querySelectorAll("text.end").forEach((label) => label.remove());
      let grid = "";
      for (const [height, text] of ticks(v0, v1, 5)) {
        const at = bottom - (height - v0) / (v1 - v0) * (bottom - top);
        grid += `M${left} ${at.toFixed(1)}H${right}`;
        const label = { class: "end", x: left - 4, y: (at + 4).toFixed(1) };
        if (text.length * LETTER > left - 4) Object.assign(label, { textLength: left - 4, lengthAdjust: "spacingAndGlyphs" });
        copy.append(make("text", label, text));
      }
      copy.querySelector(".grid").setAttribute("d", grid);
    }
    return [copy, `${ticks(t0, t1, 50).at(0)[1]} to ${ticks(t0, t1, 50).at(-1)[1]} ${unit}`];
  };

  const figure = (box, number) => {
    const whole = [...box.querySelectorAll("svg.chart")];
    let range = [0, 1];
    const bar = document.createElement("p");
    bar.className = "zoom";
    const told = document.createElement("span");
    told.setAttribute("role", "status");
    const draw = () => {
      box.querySelectorAll(".close").forEach((svg) => svg.remove());
      const isPart = range[1] - range[0] < 1;
      box.classList.toggle("zoomed", isPart);
      told.textContent = "";
      if (isPart) whole.forEach((svg, at) => {
        const [copy, words] = part(svg, range, `zoom-${number}-${at}`);
        box.append(copy);
        told.textContent = words;
      });
    };
    const to = (middle, width) => {
      width = Math.min(1, Math.max(1 / MOST, width));
      const from = Math.min(1 - width, Math.max(0, middle - width / 2));
      range = [from, from + width];
      draw();
    };
    const width = () => range[1] - range[0];
    const middle = () => (range[0] + range[1]) / 2;
    const by = (times) => to(middle(), width() / times);
    const move = (share) => to(middle() + share * width(), width());
    const buttons = [["+", "Zoom in", () => by(2)], ["−", "Zoom out", () => by(1 / 2)]];
    for (const [sign, name, act] of buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = sign;
      button.title = `${name} (keys: +, −, 0 for the whole, Shift with arrows to move; or drag)`;
      button.setAttribute("aria-label", name);
      button.addEventListener("click", act);
      bar.append(button);
    }
    bar.append(told);
    box.before(bar);
    const keys = { "+": () => by(2), "=": () => by(2), "-": () => by(1 / 2), "0": () => to(0.5, 1) };
    const moves = { ArrowLeft: -0.25, ArrowRight: 0.25 };
    box.addEventListener("keydown", (event) => {
      const act = event.shiftKey && moves[event.key] ? () => move(moves[event.key]) : keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      act();
    }, true);
    // Where in the time a pointer is, and how wide the time is in its pixels.
    const place = (event) => {
      const frame = box.getBoundingClientRect();
      return (event.clientX - frame.left) / frame.width;
    };
    let held = null;
    box.addEventListener("pointerdown", (event) => {
      held = width() < 1 && event.isPrimary ? { at: place(event), middle: middle() } : null;
    });
    box.addEventListener("pointermove", (event) => {
      if (held && event.buttons) to(held.middle - (place(event) - held.at) * width(), width());
    });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) box.addEventListener(end, () => { held = null; });
    box.addEventListener("dblclick", (event) => to(range[0] + place(event) * width(), width() / 2));
    // A curve that is hidden or shown again is that in the part, too.
    box.closest("figure").addEventListener("click", (event) => {
      if (event.target.closest(".legend") && width() < 1) draw();
    });
  };

  [...document.querySelectorAll(".plot")].filter((box) => {
    const svg = box.querySelector("svg.chart");
    const axis = svg && JSON.parse(svg.dataset.axes)[0];
    return axis && !axis[4] && TIMES.includes(axis[5]) && axis[3] > axis[2];
  }).forEach(figure);
})();
