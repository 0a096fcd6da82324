// Interactive figures: the pointer and the arrow keys select points, and buttons of the legend hide and show lines.
"use strict";
for (const figure of document.querySelectorAll("figure")) {
  const plot = figure.querySelector(".plot");
  if (!plot) continue;
  const drawing = plot.querySelector("svg");
  const tip = plot.querySelector(".tip");
  const here = drawing.querySelector(".here");
  const lines = JSON.parse(figure.querySelector("script").textContent);
  const groups = drawing.querySelectorAll(".line");
  const hidden = new Set();
  const box = drawing.viewBox.baseVal;
  let line = 0;
  let point = -1;

  function hide() {
    tip.hidden = true;
    here.setAttribute("visibility", "hidden");
  }

  function show(whichLine, whichPoint) {
    line = whichLine;
    point = whichPoint;
    const [x, y] = lines[line].at[point];
    here.setAttribute("cx", x);
    here.setAttribute("cy", y);
    here.setAttribute("visibility", "visible");
    tip.textContent = lines[line].label + " — " + lines[line].texts[point];
    tip.hidden = false;
    const width = drawing.getBoundingClientRect().width;
    const size = width / box.width;
    const left = Math.min(Math.max(0, x * size + 12), width - tip.offsetWidth);
    const above = y * size - tip.offsetHeight - 12;
    tip.style.left = left + "px";
    tip.style.top = (above < 0 ? y * size + 14 : above) + "px";
  }

  function nearest(x, y) {
    let best = null;
    lines.forEach((one, number) => {
      if (hidden.has(number)) return;
      one.at.forEach(([px, py], place) => {
        const far = (px - x) ** 2 + (py - y) ** 2;
        if (py !== null && (best === null || far < best.far)) best = { far, number, place };
      });
    });
    return best;
  }

  plot.addEventListener("pointermove", (event) => {
    const frame = drawing.getBoundingClientRect();
    const size = box.width / frame.width;
    const found = nearest((event.clientX - frame.left) * size, (event.clientY - frame.top) * size);
    if (found && found.far < 40 ** 2) show(found.number, found.place);
    else hide();
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);

  plot.addEventListener("keydown", (event) => {
    const shown = lines.map((_, number) => number).filter((number) => !hidden.has(number) && lines[number].at.length);
    if (!shown.length) return;
    if (event.key === "Escape") return hide();
    const across = { ArrowRight: 1, ArrowLeft: -1 };
    const down = { ArrowDown: 1, ArrowUp: -1 };
    const isHorizontal = figure.classList.contains("horizontal");
    const [steps, turns] = isHorizontal ? [down, across] : [across, down];
    if (!(event.key in steps) && !(event.key in turns)) return;
    event.preventDefault();
    if (hidden.has(line) || point < 0) {
      line = shown[0];
      point = -1;
    }
    if (event.key in turns) {
      const place = (shown.indexOf(line) + turns[event.key] + shown.length) % shown.length;
      line = shown[place];
      point = Math.min(Math.max(point, 0), lines[line].at.length - 1);
    } else {
      const count = lines[line].at.length;
      point = point < 0 ? 0 : Math.min(Math.max(point + steps[event.key], 0), count - 1);
    }
    show(line, point);
  });

  for (const key of figure.querySelectorAll(".key")) {
    key.addEventListener("click", () => {
      const number = Number(key.dataset.line);
      const isShown = hidden.has(number);
      if (isShown) hidden.delete(number);
      else hidden.add(number);
      key.setAttribute("aria-pressed", String(isShown));
      for (const group of groups) {
        if (Number(group.dataset.line) === number) group.toggleAttribute("hidden", !isShown);
      }
      hide();
    });
  }
}
