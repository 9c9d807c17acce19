// Draws the month that visitors see.

import { openingHours } from "./clock.js";

const NAMES = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];

function daysOf(year, month) {
  const count = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const days = [];
  for (let date = 1; date <= count; date += 1) {
    const two = (number) => String(number).padStart(2, "0");
    days.push(`${year}-${two(month)}-${two(date)}`);
  }
  return days;
}

/** How many half hours of a day are free; a visitor sees the day as full when it is none. */
export function freeOn(store, day) {
  const hours = openingHours(day);
  if (!hours) return 0;
  const all = (hours.last - hours.first) * 2;
  const booked = store.all().filter((booking) => booking.day === day).length;
  return all - booked;
}

function cell(store, day) {
  const free = freeOn(store, day);
  const number = Number(day.slice(8));
  if (!openingHours(day)) return `<td class="closed">${number}</td>`;
  if (free === 0) return `<td class="full">${number}</td>`;
  return `<td class="free" title="${free} free"><a href="?day=${day}">${number}</a></td>`;
}

/** The page of one month, weeks as rows. */
export function month(store, now) {
  const year = now.getFullYear();
  const number = now.getMonth() + 1;
  const days = daysOf(year, number);
  const before = (new Date(`${days[0]}T12:00:00Z`).getUTCDay() + 6) % 7;
  const cells = [...Array(before).fill("<td></td>"), ...days.map((day) => cell(store, day))];
  const rows = [];
  for (let at = 0; at < cells.length; at += 7) {
    rows.push(`<tr>${cells.slice(at, at + 7).join("")}</tr>`);
  }
  const head = NAMES.map((name) => `<th>${name}</th>`).join("");
  return `<table><tr>${head}</tr>${rows.join("")}</table>`;
}

/** The first day from today on that has a free half hour, for the line above the table. */
export function nextFree(store, today, horizon = 60) {
  const start = new Date(`${today}T12:00:00Z`);
  for (let ahead = 0; ahead < horizon; ahead += 1) {
    const day = new Date(start.getTime() + ahead * 86_400_000).toISOString().slice(0, 10);
    if (freeOn(store, day) > 0) return day;
  }
  return null;
}
