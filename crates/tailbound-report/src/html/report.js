// Hover readout and zoom. The page is complete without it.
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("figures").textContent);

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
  // Ticks of what is seen after zooming: 1-2-5, finer as the view narrows.
  function ticks(s, from, to) {
    var out = [], lo = value(s, from), hi = value(s, to);
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
    return best;
  }

  document.querySelectorAll("figure[data-figure]").forEach(function (figure) {
    // Without axes there is nothing to read or to zoom: the picture tells by itself.
    if (!figure.querySelector("svg.tb[data-area]")) return;
    var series = data[figure.dataset.figure] || [];
    var readout = figure.querySelector(".readout");
    readout.textContent = window.matchMedia("(hover: hover)").matches
      ? "Point at the chart for values; drag across it to zoom, double-click to go back."
      : "Tap the chart for values.";
    figure.querySelectorAll("svg.tb").forEach(function (svg) { attach(svg, series, readout); });
  });

  function attach(svg, series, readout) {
    var area = svg.dataset.area.split(" ").map(Number);
    var x = scale(svg.dataset.x), y = scale(svg.dataset.y);
    var inner = svg.querySelector("svg.area");
    var view = [0, 1], from = null;
    function element(name, cls) {
      var e = document.createElementNS(svg.namespaceURI, name);
      e.setAttribute("class", cls);
      svg.appendChild(e);
      return e;
    }
    var cross = element("path", "cross"), band = element("rect", "band");
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
      ticks(x, view[0], view[1]).forEach(function (v) {
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
    svg.addEventListener("pointermove", function (ev) {
      var share = place(ev);
      var px = area[0] + share * area[2];
      cross.setAttribute("d", "M" + px + " " + area[1] + "v" + area[3]);
      if (from !== null) {
        var a = area[0] + Math.min(from, share) * area[2];
        band.setAttribute("x", a);
        band.setAttribute("y", area[1]);
        band.setAttribute("width", Math.abs(share - from) * area[2]);
        band.setAttribute("height", area[3]);
      }
      var v = value(x, view[0] + share * (view[1] - view[0]));
      readout.textContent = "";
      var head = document.createElement("b");
      head.textContent = (y.unit === "share" && x.unit === "ns" ? "later than " : "at ") + label(x.unit, v) + ":  ";
      readout.appendChild(head);
      series.slice(0, 16).forEach(function (s) {
        var r = reading(s, v), span = document.createElement("span");
        span.textContent = s.name + " " + (r === null ? "no record" : label(y.unit, r));
        readout.appendChild(span);
        readout.appendChild(document.createTextNode(" "));
      });
    });
    svg.addEventListener("pointerleave", function () { cross.setAttribute("d", ""); });
    svg.addEventListener("pointerdown", function (ev) {
      if (ev.pointerType !== "mouse" || ev.button !== 0) { return; }
      from = place(ev);
      ev.preventDefault();
    });
    window.addEventListener("pointerup", function (ev) {
      if (from === null) { return; }
      var to = place(ev), a = Math.min(from, to), b = Math.max(from, to), span = view[1] - view[0];
      from = null;
      band.setAttribute("width", 0);
      if (b - a > 0.02 && span * (b - a) > 1e-4) {
        view = [view[0] + a * span, view[0] + b * span];
        show();
      }
    });
    svg.addEventListener("dblclick", function () { view = [0, 1]; show(); });
  }

  document.querySelectorAll("button[data-copy]").forEach(function (button) {
    var source = document.getElementById(button.dataset.copy);
    button.hidden = false;
    button.addEventListener("click", function () {
      var range = document.createRange();
      range.selectNodeContents(source);
      var selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      // Works for files opened from disk, where the clipboard interface may be refused.
      var done = document.execCommand("copy");
      button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
    });
  });
}());
