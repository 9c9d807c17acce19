// The short keys under which half hours are kept.

const HALF_HOURS = ["00", "30"];

function partsOf(day) {
  const [year, month, date] = day.split("-").map(Number);
  return { year, month, date };
}

/**
 * The key of a half hour: digits only, so that the file of bookings sorts well.
 *
 *   slotKey("2026-03-05", "10:30") -> "202635-1030"
 */
export function slotKey(day, time) {
  const { year, month, date } = partsOf(day);
  const [hour, minute] = time.split(":");
  if (!HALF_HOURS.includes(minute)) throw new Error(`not a half hour: ${time}`);
  return `${year}${month}${date}-${hour}${minute}`;
}

/** The keys of a whole day, from opening to closing. */
export function keysOf(day, first, last) {
  const keys = [];
  for (let hour = first; hour < last; hour += 1) {
    for (const minute of HALF_HOURS) {
      keys.push(slotKey(day, `${String(hour).padStart(2, "0")}:${minute}`));
    }
  }
  return keys;
}

/** The key under which a reminder waits: one for each order. */
export function reminderKey(order) {
  return `reminder-${order}`;
}

/** The key of a deposit that the bank holds for us. */
export function depositKey(order, day) {
  return `deposit-${order}-${day}`;
}
