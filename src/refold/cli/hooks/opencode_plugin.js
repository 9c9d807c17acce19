// Refold's plugin for opencode. `refold hooks uninstall opencode` removes it.
//
// Before opencode compacts a session, it adds to the summary's instructions what was said, quoted by
// code; a model still writes the summary. After a turn, Refold's log gets the new messages. Where
// Refold fails or is gone, nothing happens.

import { spawn } from "node:child_process"

const COMMAND = ["COMMAND"]
// The MCP server with which the model searches the log; empty unless the user agreed to it.
const RECALL = []
const PATIENCE = 50_000

const run = (call, wait) =>
  new Promise((resolve) => {
    try {
      const [program, ...words] = COMMAND
      const child = spawn(program, words, { stdio: ["pipe", wait ? "pipe" : "ignore", "ignore"] })
      const timer = setTimeout(() => child.kill(), PATIENCE)
      let output = ""
      const end = () => {
        clearTimeout(timer)
        resolve(output)
      }
      child.on("error", end)
      child.on("close", end)
      child.stdin.on("error", () => {})
      child.stdout?.setEncoding("utf8").on("data", (text) => (output += text))
      child.stdin.end(JSON.stringify(call))
    } catch {
      resolve("")
    }
  })

export const Refold = async ({ directory }) => ({
  config: async (config) => {
    // Under `refold wrap` there is another one.
    if (RECALL.length === 0 || process.env.REFOLD_WRAPPED) return
    const server = { type: "local", command: RECALL, enabled: true, timeout: PATIENCE }
    config.mcp = { ...config.mcp, refold_recall: server }
  },
  "experimental.session.compacting": async (input, output) => {
    const call = { hook_event_name: "compacting", session_id: input.sessionID, cwd: directory }
    try {
      const answer = JSON.parse(await run(call, true))
      output.context.push(answer.hookSpecificOutput.additionalContext)
    } catch {
      // There is nothing to add.
    }
  },
  event: async ({ event }) => {
    if (event.type !== "session.idle") return
    const session = event.properties.sessionID
    void run({ hook_event_name: "Stop", session_id: session, cwd: directory }, false)
  },
})
