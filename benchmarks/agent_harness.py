"""The scripted agent with the harness's compaction, run by the harness's own Python.

    python -m benchmarks.agent_harness TURNS WINDOW SETTINGS

SETTINGS is a JSON object of what `SummarizingCompaction` is given beside its model. It prints what
was sent, as one JSON object.
"""
# Its packages are in its own environment only.
# pyright: reportMissingImports=false

import asyncio
import json
import sys
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai_harness.compaction import SummarizingCompaction

from benchmarks.agent_script import Script


async def main(turns: int, window: int, settings: dict[str, Any]) -> None:
    script = Script(turns)
    compaction = SummarizingCompaction(model=script.summarizer(), **settings)
    agent = script.agent(compaction, window=window)
    history: list[ModelMessage] = []
    for prompt in script.prompts:
        history = (await agent.run(prompt, message_history=history)).all_messages()
    print(script.sent.as_json())


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])))
