// Copying what is to be pasted elsewhere. The page is complete without it.
(function () {
  "use strict";
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
