"""Runs a model in this process: no daemon, no socket."""

import llmd

with llmd.Engine.load("guide", max_ctx=256) as engine:
    print(f"{engine.model_name} on {engine.device_name}: {engine.memory_bytes >> 20} MiB")

    # Print an answer while it is generated. A callback that returns False stops it.
    answer = engine.generate(
        "How do I list my models?",
        lambda text, _id, _logprob: print(text, end="", flush=True),
        max_tokens=60,
    )
    print(
        f"\n{answer.output_tokens} tokens, finish: {answer.finish}, {answer.tokens_per_s or 0:.0f} tokens/s"
    )

    # The same as a loop, with a conversation.
    conversation = [{"role": "user", "content": "What is 3 + 4?"}]
    for token in engine.stream(conversation, max_tokens=20, temperature=0):
        print(token.text, end="", flush=True)
    print()

    # Options have the names of request fields. Here the answer is one of two words.
    word = engine.generate(
        "Is llmd free software?", structured_outputs={"choice": ["yes", "no"]}, typical_p=0.9, seed=1
    )
    print(f"one of two: {word.text}")

    # The lower level: token ids and logits.
    ids = engine.tokenize("llmd devices")
    logits = engine.forward(ids)
    print(
        f"{len(ids)} tokens, logits {logits.shape}, next token {engine.detokenize([logits[-1].argmax()])!r}"
    )
    print(f"{engine.stats().output_tokens} tokens generated")
