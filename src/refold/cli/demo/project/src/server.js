// Answers the booking page. Everything that can go wrong is answered in words, never in numbers.

import { createServer } from "node:http";
import { book } from "./slots.js";
import { month } from "./calendar.js";
import { open } from "./store.js";
import { log } from "./log.js";

const store = open("data/bookings.csv");

async function bodyOf(request) {
  let text = "";
  for await (const piece of request) text += piece;
  return JSON.parse(text);
}

const server = createServer(async (request, response) => {
  try {
    if (request.method === "POST" && request.url === "/book") {
      const wanted = await bodyOf(request);
      const answer = await book(store, wanted);
      response.writeHead(answer.taken ? 409 : 201, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
      return;
    }
    response.writeHead(200, { "content-type": "text/html" });
    response.end(month(store, new Date()));
  } catch (problem) {
    log("error", "server failed", { why: problem.message });
    response.writeHead(500);
    response.end("Something broke. Please ring the workshop.");
  }
});

server.listen(8087);
