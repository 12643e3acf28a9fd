// A page that shows what is so now renews itself; it says how old it is, and when the server does not answer.
(function () {
  "use strict";
  function mark() { return document.getElementById("as-of"); }
  if (!mark()) { return; }
  var every = Number(mark().dataset.every) * 1000, said = mark().textContent;

  // Where the focus is, so that it is there again.
  function where(main) {
    var e = document.activeElement;
    if (!e || !main.contains(e)) { return null; }
    return Array.from(main.querySelectorAll("a, button, summary, [tabindex]")).indexOf(e);
  }
  function busy(main) {
    var e = document.activeElement;
    if (e && main.contains(e) && /^(INPUT|SELECT|TEXTAREA)$/.test(e.tagName)) { return true; }
    return main.querySelector("input:checked") !== null || !window.getSelection().isCollapsed;
  }
  function put(html) {
    var fresh = new DOMParser().parseFromString(html, "text/html").getElementById("main");
    var main = document.getElementById("main");
    if (!fresh || !fresh.querySelector("#as-of")) { throw new Error("it is another page now"); }
    var focus = where(main);
    var open = Array.from(main.querySelectorAll("details")).map(function (d) { return d.open; });
    var across = Array.from(main.querySelectorAll(".scroll")).map(function (s) { return s.scrollLeft; });
    main.replaceChildren.apply(main, Array.from(fresh.childNodes));
    main.querySelectorAll("details").forEach(function (d, i) { d.open = Boolean(open[i]); });
    main.querySelectorAll(".scroll").forEach(function (s, i) { s.scrollLeft = across[i] || 0; });
    if (focus !== null && focus >= 0) {
      var all = main.querySelectorAll("a, button, summary, [tabindex]");
      if (all[focus]) { all[focus].focus({ preventScroll: true }); }
    }
    said = mark().textContent;
  }
  function look() {
    var main = document.getElementById("main");
    if (document.hidden || busy(main)) {
      if (!document.hidden) { mark().textContent = said + " Not renewed while something is chosen or marked."; }
      window.setTimeout(look, 1000);
      return;
    }
    window.fetch(window.location.href, { credentials: "same-origin", cache: "no-store", redirect: "error" }).then(function (answer) {
      if (!answer.ok) { throw new Error("it says " + answer.status); }
      return answer.text();
    }).then(function (html) {
      if (busy(main)) { return; }
      put(html);
    }).catch(function (why) {
      mark().className = "old";
      mark().textContent = said + " Not renewed since: the server does not answer as it should (" + why.message + ").";
    }).then(function () { window.setTimeout(look, every); });
  }
  window.setTimeout(look, every);
}());
