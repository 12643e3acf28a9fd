// Values under a cursor, and zoom: by mouse, by finger, by keyboard. A page is complete without it.
// A page has its numbers in #figures, by the names of its figures: [{name, kind, points: [[x, y], …]}, …].
(function () {
  "use strict";
  var numbers = document.getElementById("figures");
  if (!numbers) { return; }
  var data = JSON.parse(numbers.textContent);

  function trimmed(v, decimals) {
    return String(Number(v.toFixed(decimals)));
  }
  function nsLabel(v) {
    var a = Math.abs(v);
    if (a < 1e3) { return trimmed(v, 0) + " ns"; }
    if (a < 1e6) { return trimmed(v / 1e3, 2) + " µs"; }
    if (a < 1e9) { return trimmed(v / 1e6, 2) + " ms"; }
    return trimmed(v / 1e9, 2) + " s";
  }
  function label(unit, v) {
    if (unit === "ns") { return nsLabel(v); }
    if (unit === "utc") {
      var when = new Date(v * 1000).toISOString();
      return v % 86400 === 0 ? when.slice(0, 10) : when.slice(0, 16).replace("T", " ");
    }
    if (unit === "s") {
      if (v < 120) { return trimmed(v, 2) + " s"; }
      if (v < 7200) { return trimmed(v / 60, 1) + " min"; }
      return trimmed(v / 3600, 2) + " h";
    }
    if (unit === "share") {
      if (v <= 0) { return "none"; }
      return v >= 0.000999 ? trimmed(v * 100, 3) + " %" : "1 in " + Math.round(1 / v).toLocaleString("en");
    }
    return v >= 100 ? Math.round(v).toLocaleString("en") : trimmed(v, 2);
  }
  function scale(words) {
    var w = words.split(" ");
    return { log: w[0] === "log", lo: Number(w[1]), hi: Number(w[2]), unit: w[3] };
  }
  function at(s, v) {
    return s.log ? Math.log(Math.max(v, s.lo) / s.lo) / Math.log(s.hi / s.lo) : (v - s.lo) / (s.hi - s.lo);
  }
  function value(s, share) {
    return s.log ? s.lo * Math.pow(s.hi / s.lo, share) : s.lo + (s.hi - s.lo) * share;
  }
  // Places on a calendar: steps of a clock, days, weeks from Monday on, months.
  function dates(lo, hi, room) {
    var DAY = 86400, MONDAY = 4 * DAY, out = [], raw = (hi - lo) / room, t;
    var step = [60, 300, 900, 1800, 3600, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY].find(function (n) { return n >= raw; });
    if (step) {
      var base = step >= 7 * DAY ? MONDAY : 0;
      for (t = base + Math.ceil((lo - base) / step) * step; t <= hi; t += step) { out.push(t); }
      return out;
    }
    var months = [1, 2, 3, 6, 12].find(function (n) { return n * 30.5 * DAY >= raw; }) || 12 * Math.ceil(raw / 366 / DAY);
    var at = new Date(lo * 1000), month = at.getUTCFullYear() * 12 + at.getUTCMonth();
    for (month = Math.ceil(month / months) * months; ; month += months) {
      t = Date.UTC(Math.floor(month / 12), month % 12, 1) / 1000;
      if (t > hi) { return out; }
      if (t >= lo) { out.push(t); }
    }
  }
  // Ticks of what is seen after zooming: 1-2-5, finer as the view narrows.
  function ticks(s, from, to, width) {
    var out = [], lo = value(s, from), hi = value(s, to);
    if (s.unit === "utc") { return dates(lo, hi, Math.max(2, Math.floor(width / 110))); }
    if (!s.log || hi / lo < 8) {
      var raw = (hi - lo) / 7, power = Math.pow(10, Math.floor(Math.log10(raw)));
      var step = [1, 2, 5, 10].find(function (n) { return n * power >= raw; }) * power;
      for (var v = Math.ceil(lo / step) * step; v <= hi; v += step) { out.push(v); }
      return out;
    }
    var digits = hi / lo < 3e3 ? [1, 2, 5] : [1];
    for (var e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e += 1) {
      digits.forEach(function (d) {
        var t = d * Math.pow(10, e);
        if (t >= lo && t <= hi) { out.push(t); }
      });
    }
    return out;
  }
  function reading(series, x) {
    var p = series.points, i;
    if (series.kind === "bins") {
      if (p.length === 0 || x < p[0][0] || x >= series.end) { return 0; }
      for (i = p.length - 1; i > 0 && p[i][0] > x; i -= 1) { /* found below */ }
      return p[i][1];
    }
    if (series.kind === "survival") {
      for (i = 0; i < p.length; i += 1) { if (p[i][0] > x) { return p[i][1]; } }
      return 0;
    }
    var best = null, distance = Infinity;
    p.forEach(function (q) {
      var d = Math.abs(q[0] - x);
      if (d < distance) { distance = d; best = q[1]; }
    });
    // Nothing is known between two records that are far from each other.
    return distance > (series.reach || Infinity) ? null : best;
  }

  document.querySelectorAll("figure[data-figure]").forEach(function (figure) {
    // Without axes there is nothing to read or to zoom: the picture tells by itself.
    if (!figure.querySelector("svg.tb[data-area]")) return;
    var series = data[figure.dataset.figure] || [];
    var readout = figure.querySelector(".readout");
    readout.textContent = (window.matchMedia("(hover: hover)").matches
      ? "Point at the chart for values; drag across it to zoom, double-click to go back."
      : "Tap the chart for values.") + " Keys: arrows, + and −, Escape.";
    var views = Array.from(figure.querySelectorAll("svg.tb")).map(function (svg) { return attach(svg, series, readout); });
    var bar = document.createElement("p");
    bar.className = "zoom";
    [["+", "Zoom in", 0.5], ["−", "Zoom out", 2], ["All", "Show all", 0]].forEach(function (b) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = b[0];
      button.title = b[1];
      button.setAttribute("aria-label", b[1]);
      button.addEventListener("click", function () { views.forEach(function (zoom) { zoom(b[2]); }); });
      bar.appendChild(button);
    });
    readout.before(bar);
  });

  // The zoom of a picture: by a factor around its cursor, or all of it (0).
  function attach(svg, series, readout) {
    var area = svg.dataset.area.split(" ").map(Number);
    var x = scale(svg.dataset.x), y = scale(svg.dataset.y);
    var inner = svg.querySelector("svg.area");
    var view = [0, 1], from = null, cursor = 0.5;
    function element(name, cls) {
      var e = document.createElementNS(svg.namespaceURI, name);
      e.setAttribute("class", cls);
      svg.appendChild(e);
      return e;
    }
    var cross = element("path", "cross"), band = element("rect", "band");
    svg.setAttribute("tabindex", "0");
    function place(ev) {
      var box = svg.getBoundingClientRect();
      var ux = (ev.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
      return Math.min(1, Math.max(0, (ux - area[0]) / area[2]));
    }
    function show() {
      inner.setAttribute("viewBox", [view[0] * area[2], 0, (view[1] - view[0]) * area[2], area[3]].join(" "));
      var gx = svg.querySelector(".gx"), tx = svg.querySelector(".tx");
      gx.textContent = "";
      tx.textContent = "";
      ticks(x, view[0], view[1], area[2]).forEach(function (v) {
        var px = area[0] + (at(x, v) - view[0]) / (view[1] - view[0]) * area[2];
        var line = document.createElementNS(svg.namespaceURI, "path");
        line.setAttribute("d", "M" + px + " " + area[1] + "v" + area[3]);
        gx.appendChild(line);
        var text = document.createElementNS(svg.namespaceURI, "text");
        text.setAttribute("x", px);
        text.setAttribute("y", area[1] + area[3] + 15);
        text.setAttribute("text-anchor", "middle");
        text.textContent = label(x.unit, v);
        tx.appendChild(text);
      });
      svg.querySelectorAll(".rules text[data-x]").forEach(function (t) {
        var share = (at(x, Number(t.dataset.x)) - view[0]) / (view[1] - view[0]);
        t.style.display = share >= 0 && share <= 1 ? "" : "none";
        t.setAttribute("x", share * area[2] + Number(t.dataset.dx));
      });
    }
    // Shows [a, b] of all, moved into it where it reaches beyond.
    function look(a, b) {
      var width = Math.min(1, Math.max(1e-4, b - a));
      a = Math.min(1 - width, Math.max(0, a));
      view = [a, a + width];
      show();
    }
    function zoom(factor) {
      if (factor === 0) { look(0, 1); return; }
      var width = view[1] - view[0], middle = view[0] + cursor * width;
      look(middle - cursor * width * factor, middle + (1 - cursor) * width * factor);
    }
    function read(share) {
      cursor = share;
      var px = area[0] + share * area[2];
      cross.setAttribute("d", "M" + px + " " + area[1] + "v" + area[3]);
      var v = value(x, view[0] + share * (view[1] - view[0]));
      readout.textContent = "";
      var head = document.createElement("b");
      head.textContent = (y.unit === "share" && x.unit === "ns" ? "later than " : "at ") + label(x.unit, x.unit === "utc" ? Math.round(v / 60) * 60 : v) + ":  ";
      readout.appendChild(head);
      series.slice(0, 16).forEach(function (s) {
        var r = reading(s, v), span = document.createElement("span");
        span.textContent = s.name + " " + (r === null ? "no record" : label(y.unit, r));
        readout.appendChild(span);
        readout.appendChild(document.createTextNode(" "));
      });
    }
    // The cursor by keys; at an edge the view moves under it.
    function step(by) {
      var to = cursor + by, width = view[1] - view[0];
      if (to < 0 || to > 1) { look(view[0] + by * width, view[1] + by * width); }
      read(Math.min(1, Math.max(0, to)));
    }
    svg.addEventListener("keydown", function (ev) {
      if (ev.ctrlKey || ev.altKey || ev.metaKey) { return; }
      var by = ev.shiftKey ? 0.1 : 0.02;
      var keys = {
        ArrowLeft: function () { step(-by); },
        ArrowRight: function () { step(by); },
        Home: function () { read(0); },
        End: function () { read(1); },
        "+": function () { zoom(0.5); read(cursor); },
        "=": function () { zoom(0.5); read(cursor); },
        "-": function () { zoom(2); read(cursor); },
        "0": function () { zoom(0); read(cursor); },
        Escape: function () { zoom(0); read(cursor); }
      };
      if (!Object.prototype.hasOwnProperty.call(keys, ev.key)) { return; }
      readout.setAttribute("aria-live", "polite");
      keys[ev.key]();
      ev.preventDefault();
    });
    svg.addEventListener("blur", function () {
      readout.setAttribute("aria-live", "off");
      cross.setAttribute("d", "");
    });
    svg.addEventListener("pointermove", function (ev) {
      var share = place(ev);
      if (from !== null) {
        var a = area[0] + Math.min(from, share) * area[2];
        band.setAttribute("x", a);
        band.setAttribute("y", area[1]);
        band.setAttribute("width", Math.abs(share - from) * area[2]);
        band.setAttribute("height", area[3]);
      }
      read(share);
    });
    svg.addEventListener("pointerleave", function () { cross.setAttribute("d", ""); });
    svg.addEventListener("pointerdown", function (ev) {
      read(place(ev));
      if (ev.pointerType !== "mouse" || ev.button !== 0) { return; }
      from = place(ev);
      ev.preventDefault();
    });
    window.addEventListener("pointerup", function (ev) {
      if (from === null) { return; }
      var to = place(ev), a = Math.min(from, to), b = Math.max(from, to), span = view[1] - view[0];
      from = null;
      band.setAttribute("width", 0);
      if (b - a > 0.02 && span * (b - a) > 1e-4) { look(view[0] + a * span, view[0] + b * span); }
    });
    svg.addEventListener("dblclick", function () { zoom(0); });
    return zoom;
  }
}());
