"""The official OpenAI client, with the gateway's address and nothing else changed."""

from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

client = OpenAI(base_url="http://127.0.0.1:8790/v1", api_key="any")
messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "My parcel is late."}]
for prompt in ("Where is it now?", "When will it arrive?"):
    answer = client.chat.completions.with_raw_response.create(model="any", messages=messages)
    text = answer.parse().choices[0].message.content
    print(text)
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": prompt}]
print("session:", answer.headers["refold-session"])
