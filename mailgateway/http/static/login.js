// The code of a login link stands in the fragment, which no server gets to see. It goes from there into the
// form, and out of the address; nothing is sent before the person presses the button.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  const code = location.hash.slice(1);
  if (!code) return;
  document.getElementById("code").value = code;
  document.getElementById("by-hand").hidden = true;
  document.getElementById("with-link").hidden = false;
  history.replaceState(null, "", location.pathname);
  document.querySelector("#login button").focus();
});
