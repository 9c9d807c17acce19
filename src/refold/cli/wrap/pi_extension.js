// Loaded into pi by `refold wrap pi`, for this process only: pi takes addresses of models and tools
// from files or from extensions.

const RECALL = process.env.REFOLD_RECALL;

async function recall(method, params) {
  const response = await fetch(RECALL, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error.message);
  return answer.result;
}

export default async function (pi) {
  const gateway = process.env.REFOLD_GATEWAY;
  if (!gateway) return;
  pi.registerProvider("anthropic", { baseUrl: gateway });
  pi.registerProvider("openai", { baseUrl: `${gateway}/v1` });
  // The gateway compacts; what the user asks for is still done.
  pi.on("session_before_compact", (event) =>
    event.reason === "manual" ? undefined : { cancel: true },
  );
  if (!RECALL) return;
  const { tools } = await recall("tools/list", {});
  for (const tool of tools) {
    pi.registerTool({
      name: tool.name,
      label: tool.name,
      description: tool.description,
      parameters: tool.inputSchema,
      execute: async (call, given) => {
        const params = { name: tool.name, arguments: given, _meta: { call } };
        const { content } = await recall("tools/call", params);
        return { content, details: {} };
      },
    });
  }
}
