// The official OpenAI client for TypeScript, with the gateway's address and nothing else changed.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "http://127.0.0.1:8790/v1", apiKey: "any" });
const messages: OpenAI.ChatCompletionMessageParam[] = [
  { role: "user", content: "My parcel is late." },
];
for (const prompt of ["Where is it now?", "When will it arrive?"]) {
  const answer = await client.chat.completions.create({ model: "any", messages });
  const text = answer.choices[0].message.content ?? "";
  console.log(text);
  messages.push({ role: "assistant", content: text }, { role: "user", content: prompt });
}
