/* Clouds of points in time. Starts every player on the page that has not been started; may run many times. */
(() => {
  "use strict";

  const LEVELS = 65535, ABSENT = 255;
  const SHORTEST = 60, LONGEST = 250, WHOLE = 6000, CALM = 500; // milliseconds
  const INK = "#222", LINE = "#767676";

  function decoded(cloud) {
    const text = atob(cloud.data);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const size = bytes.length / 5;
    return {
      points: cloud.points,
      frame: cloud.frame,
      x: new Uint16Array(bytes.buffer, 0, size),
      y: new Uint16Array(bytes.buffer, 2 * size, size),
      colour: new Uint8Array(bytes.buffer, 4 * size, size),
    };
  }

  /* A canvas as broad as its box, sharp on every screen; drawing is in CSS pixels. */
  function fitted(canvas, tallest) {
    const width = canvas.clientWidth;
    const height = Math.min(tallest, Math.round(0.95 * width));
    const ratio = window.devicePixelRatio || 1;
    const size = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) {
      canvas.width = size[0];
      canvas.height = size[1];
      canvas.style.height = height + "px";
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px " + getComputedStyle(canvas).fontFamily;
    return { pen, width, height };
  }

  function axes(pen, ticks, box) {
    pen.strokeStyle = LINE;
    pen.fillStyle = INK;
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(box.left - 0.5, box.top);
    pen.lineTo(box.left - 0.5, box.bottom + 0.5);
    pen.lineTo(box.right, box.bottom + 0.5);
    const broadest = Math.max(...ticks[0].map((tick) => pen.measureText(tick[1]).width));
    const apart = ticks[0].length > 1 ? (ticks[0][1][0] - ticks[0][0][0]) * (box.right - box.left) : 1;
    const every = Math.max(1, Math.ceil((broadest + 8) / apart)); // numbers must not touch
    pen.textAlign = "center";
    pen.textBaseline = "top";
    ticks[0].forEach(([place, number], i) => {
      const at = Math.round(box.left + place * (box.right - box.left)) + 0.5;
      pen.moveTo(at, box.bottom + 0.5);
      pen.lineTo(at, box.bottom + 5);
      const centre = Math.min(at, box.right + 8 - pen.measureText(number).width / 2); // not cut at the edge
      if (i % every === 0) pen.fillText(number, centre, box.bottom + 7);
    });
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const [place, number] of ticks[1]) {
      const at = Math.round(box.bottom - place * (box.bottom - box.top)) + 0.5;
      pen.moveTo(box.left - 0.5, at);
      pen.lineTo(box.left - 5, at);
      pen.fillText(number, box.left - 8, at);
    }
    pen.stroke();
  }

  /* One dot that stands for many says so, beside it or, where there is no room, above it. */
  function together(pen, count, x, y, box) {
    const text = "all " + count + " points", half = pen.measureText(text).width / 2;
    const side = x + 8 + 2 * half < box.right ? 1 : x - 8 - 2 * half > box.left ? -1 : 0;
    const centre = side === 0 ? Math.min(Math.max(x, box.left + half), box.right - half) : x + side * (8 + half);
    pen.fillStyle = INK;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, centre, side === 0 ? y - 14 : y);
  }

  function points(pen, cloud, frame, colours, box) {
    const start = frame * cloud.points, end = start + cloud.points;
    const radius = cloud.points > 500 ? 1.8 : cloud.points > 100 ? 2.4 : 3.4;
    const across = (box.right - box.left) / LEVELS, up = (box.bottom - box.top) / LEVELS;
    let drawn = 0, apart = false, first = start;
    pen.globalAlpha = 0.8;
    for (let i = start; i < end; i++) {
      if (cloud.colour[i] === ABSENT) continue;
      pen.fillStyle = colours[cloud.colour[i]];
      pen.beginPath();
      pen.arc(box.left + cloud.x[i] * across, box.bottom - cloud.y[i] * up, radius, 0, 2 * Math.PI);
      pen.fill();
      if (drawn === 0) first = i;
      apart = apart || cloud.x[i] !== cloud.x[first] || cloud.y[i] !== cloud.y[first];
      drawn++;
    }
    pen.globalAlpha = 1;
    if (drawn > 1 && !apart) together(pen, drawn, box.left + cloud.x[first] * across, box.bottom - cloud.y[first] * up, box);
    if (drawn > 0) return;
    pen.fillStyle = INK;
    pen.textAlign = "center";
    pen.fillText("no finite point", (box.left + box.right) / 2, (box.top + box.bottom) / 2);
  }

  function panel(canvas, cloud, data, now) {
    if (canvas.clientWidth === 0) return; // not shown: on paper, or in a folded part
    const { pen, width, height } = fitted(canvas, data.height);
    const broadest = Math.max(0, ...data.ticks[1].map((tick) => pen.measureText(tick[1]).width));
    const box = { left: Math.ceil(broadest) + 10, right: width - 8, top: 8, bottom: height - 24 };
    axes(pen, data.ticks, box);
    points(pen, cloud, cloud.frame[now], data.colours, box);
  }

  function start(root) {
    const find = (name) => root.querySelector(name);
    const data = JSON.parse(find(".wf-data").textContent);
    const clouds = data.clouds.map(decoded);
    const canvases = Array.from(root.querySelectorAll("canvas"));
    const button = find(".wf-play"), slider = find(".wf-slider"), time = find(".wf-time");
    const last = data.labels.length - 1;
    const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    let now = 0, timer = null, asked = false;

    const draw = () => {
      asked = false;
      canvases.forEach((canvas, i) => panel(canvas, clouds[i], data, now));
    };
    const redraw = () => {
      if (!asked) requestAnimationFrame(draw);
      asked = true;
    };
    const show = (frame) => {
      now = Math.min(Math.max(frame, 0), last);
      slider.value = now;
      slider.setAttribute("aria-valuetext", data.labels[now]);
      time.textContent = data.labels[now];
      redraw();
    };
    const named = (playing) => {
      button.setAttribute("aria-label", playing ? "Pause" : "Play");
      button.toggleAttribute("data-playing", playing);
    };
    const pause = () => {
      window.clearTimeout(timer);
      timer = null;
      named(false);
    };
    const pace = () => (calm.matches ? CALM : Math.min(Math.max(WHOLE / (last + 1), SHORTEST), LONGEST));
    const step = () => {
      if (now >= last || !root.isConnected) return pause();
      show(now + 1);
      timer = window.setTimeout(step, pace());
    };
    const play = () => {
      if (now >= last) show(0);
      named(true);
      timer = window.setTimeout(step, pace());
    };
    const toggle = () => (timer === null ? play() : pause());
    const seek = (frame) => {
      pause();
      show(frame);
    };

    button.addEventListener("click", toggle);
    slider.addEventListener("input", () => seek(Number(slider.value)));
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const moves = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1 };
      Object.assign(moves, { Home: 0, End: last, PageDown: now - 5, PageUp: now + 5 });
      if (event.key in moves) seek(moves[event.key]);
      else if (event.key === " " && event.target !== button) toggle();
      else return;
      event.preventDefault();
      event.stopPropagation(); // a notebook has keys of its own
    });
    canvases.forEach((canvas) => canvas.addEventListener("click", () => slider.focus()));

    root.setAttribute("data-ready", "");
    find(".wf-live").hidden = false;
    new ResizeObserver(redraw).observe(find(".wf-panels"));
    window.addEventListener("resize", redraw); // the ratio of pixels may change alone
    show(0);
  }

  function startAll() {
    for (const root of document.querySelectorAll(".wf-player:not([data-ready])")) start(root);
  }

  startAll();
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startAll);
})();
