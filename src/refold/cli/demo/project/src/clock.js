// Opening hours, and what time it is in the workshop.

const ZONE = "Europe/Dublin";

const HOURS = {
  2: { first: 15, last: 20 }, // Tuesday
  4: { first: 15, last: 20 }, // Thursday
  6: { first: 9, last: 17 }, // Saturday
};

const CLOSED = new Set([
  "2026-01-01", // New Year
  "2026-03-17", // Saint Patrick
  "2026-04-04", // the big clean-up
  "2026-06-27", // we ride to the sea
  "2026-08-01", // holidays
  "2026-08-04",
  "2026-08-06",
  "2026-08-08",
  "2026-12-24",
  "2026-12-26",
  "2026-12-29",
  "2026-12-31",
]);

/** The weekday of a day, 0 is Sunday. Noon is the same day everywhere that we care about. */
export function weekday(day) {
  return new Date(`${day}T12:00:00Z`).getUTCDay();
}

/** From when to when we are open on a day; null when we are not. */
export function openingHours(day) {
  if (CLOSED.has(day)) return null;
  return HOURS[weekday(day)] ?? null;
}

/** Whether a half hour lies within the opening hours. */
export function isOpen(day, time) {
  const hours = openingHours(day);
  if (!hours) return false;
  const hour = Number(time.slice(0, 2));
  return hours.first <= hour && hour < hours.last;
}

/** The day it is now in the workshop, whatever the laptop believes. */
export function today(now = new Date()) {
  const parts = new Intl.DateTimeFormat("en-CA", {
    timeZone: ZONE,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
  }).format(now);
  return parts;
}

/** The evening before a day, when reminders go out: seven o'clock in the workshop's zone. */
export function reminderTime(day) {
  const noon = new Date(`${day}T12:00:00Z`).getTime() - 86_400_000;
  const shown = new Intl.DateTimeFormat("en-GB", { timeZone: ZONE, hour: "2-digit" });
  const offset = Number(shown.format(new Date(noon))) - 12;
  return new Date(noon + (7 - offset) * 3_600_000);
}
