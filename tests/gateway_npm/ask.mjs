// Asks as a program with the official client does: each line of standard input is a request, each
// line of standard output what came of it. Nothing of the client is changed but its base URL.

import OpenAI from "openai";
import { createInterface } from "node:readline";

async function told({ baseURL, api, body }) {
  const client = new OpenAI({ baseURL, apiKey: "none" });
  const asked = api === "chat" ? client.chat.completions : client.responses;
  try {
    const { data, response } = await asked.create(body).withResponse();
    const answer = body.stream ? await all(data) : data;
    return { status: response.status, answer, headers: Object.fromEntries(response.headers) };
  } catch (refused) {
    if (!(refused instanceof OpenAI.APIError)) throw refused;
    const { status, headers, error } = refused;
    return { status, answer: { error }, headers: Object.fromEntries(headers) };
  }
}

async function all(events) {
  const came = [];
  for await (const one of events) came.push(one);
  return came;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await told(JSON.parse(line))));
}
