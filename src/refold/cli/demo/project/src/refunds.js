// Lets go of a deposit. The bank gives a reference for it, which people need when they ask.

import { log } from "./log.js";

const BANK = "https://bank.invalid/holds";
const TRIES = 3;

/** Asks the bank to let go of a deposit; the reference that it gives. */
export async function letGo(deposit) {
  for (let attempt = 1; attempt <= TRIES; attempt += 1) {
    const answer = await fetch(`${BANK}/${deposit}`, { method: "DELETE" });
    if (answer.ok) return (await answer.json()).reference;
    log("warn", "refunds tried", { deposit, attempt, status: answer.status });
  }
  log("error", "refunds gave up", { deposit });
  return null;
}
