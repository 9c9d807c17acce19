import { test } from "node:test";
import assert from "node:assert/strict";
import { slotKey } from "../src/keys.js";
import { book, cancel, reasonAgainst } from "../src/slots.js";

function emptyStore(...bookings) {
  const slots = new Map(bookings.map((one) => [slotKey(one.day, one.time), one]));
  return {
    has: (key) => slots.has(key),
    all: () => [...slots.values()],
    countOf: (email) => [...slots.values()].filter((one) => one.email === email).length,
    byOrder: (order) => [...slots.values()].find((one) => one.order === order),
    put: (key, one) => slots.set(key, one),
    remove: (key) => slots.delete(key),
  };
}

const PUNCTURE = {
  order: "SP-1001",
  day: "2026-03-05",
  time: "15:30",
  email: "a@example.org",
  note: "puncture",
};

test("a free half hour can be booked", async () => {
  const store = emptyStore();
  assert.deepEqual(await book(store, PUNCTURE), { taken: false });
  assert.equal(store.all().length, 1);
});

test("a half hour is taken once", () => {
  const store = emptyStore(PUNCTURE);
  assert.equal(reasonAgainst(store, { ...PUNCTURE, order: "SP-1002" }), "taken");
});

test("the next half hour is another one", () => {
  const store = emptyStore(PUNCTURE);
  assert.equal(reasonAgainst(store, { ...PUNCTURE, time: "16:00" }), null);
});

test("the next day is another one", () => {
  const store = emptyStore(PUNCTURE);
  assert.equal(reasonAgainst(store, { ...PUNCTURE, day: "2026-03-07", time: "10:00" }), null);
});

test("nobody is there on Mondays", () => {
  assert.equal(reasonAgainst(emptyStore(), { ...PUNCTURE, day: "2026-03-02" }), "closed");
});

test("a key has digits only", () => {
  assert.match(slotKey("2026-03-05", "10:30"), /^\d+-\d{4}$/);
});

test("a cancelled half hour is free again", async () => {
  const store = emptyStore({ ...PUNCTURE, deposit: null });
  await cancel(store, "SP-1001", "2026-03-05");
  assert.equal(reasonAgainst(store, PUNCTURE), null);
});
