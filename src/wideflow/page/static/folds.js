/* What is folded on screen is open on paper, also where the style alone does not reach it. */
(() => {
  "use strict";
  if (window.wideflowFolds) return;
  window.wideflowFolds = true;
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll(".wf-page details:not([open])"));
    for (const fold of opened) fold.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
    opened = [];
  });
})();
