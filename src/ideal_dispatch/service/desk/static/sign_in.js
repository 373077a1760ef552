// The way in: a token, which the service then keeps in a cookie that no script can read.

import { byId } from "./elements.js";
import { t } from "./language.js";
import { ask } from "./server.js";

/** Call `begin` each time somebody has signed in. */
export function startSignIn(begin) {
  byId("sign-in-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    byId("sign-in-error").textContent = "";
    try {
      await ask("v1/session", "POST", { token: byId("token").value.trim() });
    } catch (error) {
      tell(error, "sign_in.refused");
      return;
    }
    byId("token").value = "";
    byId("sign-in").hidden = true;
    begin();
  });
}

export function showSignIn() {
  byId("sign-in").hidden = false;
  byId("token").focus();
}

/** Does this browser have a session? Says why not where it is not for want of a token. */
export async function signedIn() {
  try {
    await ask("v1/session");
    return true;
  } catch (error) {
    tell(error, null);
    return false;
  }
}

function tell(error, refused) {
  const known = [401, 403, 422].includes(error.status);
  const words = known ? refused && t(refused) : t("sign_in.failed", { message: error.message });
  byId("sign-in-error").textContent = words ?? "";
}
