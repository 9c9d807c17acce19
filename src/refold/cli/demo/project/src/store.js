// Keeps everything in one file, and reads it at the start.

import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { slotKey } from "./keys.js";

const COLUMNS = ["order", "day", "time", "name", "email", "bicycle", "note"];

function parsed(line) {
  const cells = line.split(",");
  return Object.fromEntries(COLUMNS.map((column, at) => [column, cells[at] ?? ""]));
}

function written(booking) {
  return COLUMNS.map((column) => String(booking[column] ?? "").replaceAll(",", ";")).join(",");
}

/** Opens the file of bookings; what was booked this year is in memory from then on. */
export function open(path) {
  const slots = new Map();
  const lines = readFileSync(path, "utf8").split("\n").slice(1).filter(Boolean);
  for (const booking of lines.map(parsed)) {
    slots.set(slotKey(booking.day, booking.time), booking);
  }

  function saveAll() {
    const rows = [...slots.values()].sort((a, b) => a.day.localeCompare(b.day));
    writeFileSync(path, [COLUMNS.join(","), ...rows.map(written)].join("\n") + "\n");
  }

  return {
    has: (key) => slots.has(key),
    all: () => [...slots.values()],
    countOf: (email) => [...slots.values()].filter((one) => one.email === email).length,
    byOrder: (order) => [...slots.values()].find((one) => one.order === order),
    put(key, booking) {
      slots.set(key, booking);
      appendFileSync(path, written(booking) + "\n");
    },
    remove(key) {
      slots.delete(key);
      saveAll();
    },
  };
}
