"""A provider that keeps what it answers by id, as real ones do, and refuses ids it does not have.

It answers `Answer N.` and keeps what its model saw of each request. What it keeps is its own: a
gateway that stops, or forgets, changes nothing here.
"""

from refold.testing.upstream import Refusal, Reply


def text_in(item):
    """What a message says, in any of the formats."""
    content = item.get("content", "")
    blocks = content if isinstance(content, list) else [{"text": content}]
    return "".join(block.get("text", "") for block in blocks)


def not_found(name):
    message = f"Previous response with id '{name}' not found."
    error = {"type": "invalid_request_error", "code": "previous_response_not_found"}
    return Refusal(400, {"error": {**error, "param": "previous_response_id", "message": message}})


class KeepingProvider:
    """Its model's answers; what it keeps goes by the ids of the answers, and of conversations."""

    def __init__(self, *, max_chars=None, conversations=()):
        self.kept, self.conversations = {}, {name: [] for name in conversations}
        self.saw = []
        """For each answer, what the model saw: the texts, in order."""
        self.max_chars = max_chars
        self.asked = []
        """The bodies that were answered."""

    def __call__(self, got):
        body = got.body
        thread = body.get("thread") or {}
        before = body.get("previous_response_id") or thread.get("previous_message_id")
        conversation = body.get("conversation")
        conversation = conversation["id"] if isinstance(conversation, dict) else conversation
        if before is not None and before not in self.kept:
            if "thread" in body:
                error = {"type": "invalid_request_error", "message": "previous_message_not_found"}
                return Refusal(400, {"type": "error", "error": error})
            return not_found(before)
        if conversation is not None and conversation not in self.conversations:
            return Refusal(404, {"error": {"message": f"No conversation {conversation}."}})
        items = [*self.kept.get(before, ()), *self.conversations.get(conversation, ())]
        sent = body["messages" if "messages" in body else "input"]
        items += [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
        texts = [text_in(item) for item in items]
        if self.max_chars is not None and sum(map(len, texts)) > self.max_chars:
            message = (
                f"This model's maximum context length is {self.max_chars // 4} tokens. However, "
                f"your messages resulted in {sum(map(len, texts)) // 4} tokens."
            )
            error = {"message": message, "code": "context_length_exceeded"}
            return Refusal(400, {"error": {**error, "type": "invalid_request_error"}})
        self.saw.append(texts)
        self.asked.append(body)
        number = len(self.saw)
        text = f"Answer {number}."
        kept = [*items, {"role": "assistant", "content": text}]
        if conversation is not None:
            self.conversations[conversation] = kept
        if "messages" in body:
            self.kept |= {f"msg_{number:08d}": kept} if thread else {}
        elif body.get("store") is not False:
            self.kept[f"resp_{number:08d}"] = kept
        return Reply(text, number=number)


def compacted(name, *texts):
    """A compaction of the responses API: an item that nobody can read."""
    kept = [{"type": "message", "role": "user", "content": text} for text in texts]
    item = {"type": "compaction", "id": f"cmp_{name}", "encrypted_content": f"sealed{name}"}
    return [*kept, item]
