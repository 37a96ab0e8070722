"""Anthropic's client with another base URL. This machine needs no key, but the client requires one."""

import os

import anthropic

base_url = os.environ.get("ANTHROPIC_BASE_URL", "http://127.0.0.1:8642")
with (
    anthropic.Anthropic(base_url=base_url, api_key="none") as client,
    client.messages.stream(
        model="guide",
        messages=[{"role": "user", "content": "How do I list my models?"}],
        max_tokens=60,
    ) as stream,
):
    for text in stream.text_stream:
        print(text, end="", flush=True)
    print()
