"""OpenAI's client with another base URL. This machine needs no key, but the client requires one."""

import os

import openai

base_url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8642/v1")
with openai.OpenAI(base_url=base_url, api_key="none") as client:
    stream = client.chat.completions.create(
        model="guide",
        messages=[{"role": "user", "content": "How do I list my models?"}],
        max_tokens=60,
        stream=True,
    )
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()
