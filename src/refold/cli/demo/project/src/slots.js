// Decides whether a half hour is free, and takes it.

import { slotKey } from "./keys.js";
import { isOpen } from "./clock.js";
import { letGo } from "./refunds.js";
import { log } from "./log.js";

const LONGEST_NOTE = 400;

/** What keeps a booking from being taken, or null. */
export function reasonAgainst(store, wanted) {
  if (!isOpen(wanted.day, wanted.time)) return "closed";
  if (store.has(slotKey(wanted.day, wanted.time))) return "taken";
  if ((wanted.note ?? "").length > LONGEST_NOTE) return "note too long";
  if (store.countOf(wanted.email) >= 3) return "three bookings already";
  return null;
}

/** Books a half hour, or says why not and lets go of the deposit. */
export async function book(store, wanted) {
  const reason = reasonAgainst(store, wanted);
  if (reason) {
    const refund = await letGo(wanted.deposit);
    log("warn", "slots refused", {
      order: wanted.order,
      day: wanted.day,
      time: wanted.time,
      reason,
      refund,
    });
    return { taken: true, reason, refund };
  }
  store.put(slotKey(wanted.day, wanted.time), wanted);
  log("info", "slots booked", { order: wanted.order, day: wanted.day, time: wanted.time });
  return { taken: false };
}

/** Gives a half hour back. Whoever cancels on the day itself keeps the deposit with us. */
export async function cancel(store, order, today) {
  const found = store.byOrder(order);
  if (!found) return { cancelled: false, reason: "no such order" };
  store.remove(slotKey(found.day, found.time));
  const late = found.day === today;
  const refund = late ? null : await letGo(found.deposit);
  log("info", "slots cancelled", { order, late, refund });
  return { cancelled: true, refund };
}

/** Moves a booking; both half hours are touched, or none is. */
export async function move(store, order, day, time) {
  const found = store.byOrder(order);
  if (!found) return { moved: false, reason: "no such order" };
  const next = { ...found, day, time };
  const reason = reasonAgainst(store, next);
  if (reason) return { moved: false, reason };
  store.remove(slotKey(found.day, found.time));
  store.put(slotKey(day, time), next);
  log("info", "slots moved", { order, day, time });
  return { moved: true };
}
