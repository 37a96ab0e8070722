"""Names that llama-server, vLLM and Ollama have for settings.

A flag with the same meaning is accepted. For any other, the answer names what llmd has instead.
"""

from __future__ import annotations

from msgspec import Struct


class OtherName(Struct, frozen=True):
    """Flags of other tools with one of ``setting``, ``argument`` and ``answer``."""

    flags: tuple[str, ...]
    setting: str = ""
    """The setting of llmd with the same meaning."""
    argument: str = ""
    """The command that takes the value as an argument."""
    answer: str = ""
    """What to use instead."""


OTHER_NAMES = (
    OtherName(("--ctx-size", "--max-model-len"), setting="max_ctx"),
    OtherName(("--parallel", "-np", "--max-num-seqs"), setting="slots"),
    OtherName(("-t",), setting="threads"),
    OtherName(("--ssl-cert-file", "--ssl-certfile"), setting="tls_cert"),
    OtherName(("--ssl-key-file", "--ssl-keyfile"), setting="tls_key"),
    OtherName(("--served-model-name",), setting="alias"),
    OtherName(
        ("--host", "--port"),
        answer="`addr` sets where the daemon listens (llmd serve --addr HOST:PORT), `host` where commands connect (--host HOST:PORT)",
    ),
    OtherName(("--model", "-m"), argument="llmd COMMAND MODEL"),
    OtherName(("--prompt", "-p"), argument='llmd run MODEL "PROMPT"'),
    OtherName(("--temperature",), answer="`--temp T` sets the temperature"),
    OtherName(("--n-predict", "--predict", "--num-predict"), answer="`--max-tokens N` limits the answer"),
    OtherName(
        ("--hf-repo", "-hf"), answer="`llmd pull ORG/NAME` downloads a model, `llmd serve ORG/NAME` serves it"
    ),
    OtherName(("--n-gpu-layers", "-ngl"), setting="gpu_layers"),
    OtherName(("--n-cpu-moe", "-ncmoe"), setting="cpu_experts"),
    OtherName(
        ("--cpu-moe", "-cmoe"), answer="`--cpu-experts N` keeps the experts of N layers in main memory"
    ),
    OtherName(
        ("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp", "--tensor-split", "-ts"),
        answer="`--split 0-15=NAME,16-31=NAME` of `llmd serve` splits the layers over several devices",
    ),
    OtherName(
        ("--threads-batch", "-tb"), answer="`--threads N` of `llmd serve` sets the threads of all steps"
    ),
    OtherName(
        ("--gpu-memory-utilization",),
        answer="`--max-memory SIZE` of `llmd serve` limits all models together, `--kv-memory SIZE` the KV cache",
    ),
    OtherName(
        ("--kv-cache-dtype", "--cache-type-k", "-ctk", "--cache-type-v", "-ctv"),
        answer="`--kv-dtype f16|bf16|int8|int4|f32` of `llmd serve` sets the format of the KV cache",
    ),
    OtherName(("--quantization",), answer="`--quant FORMAT` of `llmd serve` quantises weights while loading"),
    OtherName(
        ("--max-num-batched-tokens", "--ubatch-size", "-ub", "--batch-size", "-b"),
        answer="`--prefill-chunk N` of `llmd serve` limits the prompt tokens per step",
    ),
    OtherName(
        ("--api-key", "--api-key-file"),
        answer="`llmd keys add NAME` creates a key for the daemon, or adds yours with --key-file FILE; commands read theirs from LLMD_API_KEY",
    ),
    OtherName(
        ("--verbose",), answer="`llmd -v COMMAND` logs more, `--stats` of `llmd run` prints counts and rates"
    ),
    OtherName(("--keepalive",), answer="`llmd load MODEL --keep-alive DURATION` keeps a model loaded"),
    OtherName(("--modelfile",), answer="`/show modelfile` in `llmd chat MODEL` shows it"),
    OtherName(("--uds",), answer="`--addr unix:PATH` of `llmd serve` listens on a Unix socket"),
    OtherName(
        ("--allowed-origins",), answer="`--allow-origin ORIGIN` of `llmd serve` allows one more web origin"
    ),
    OtherName(
        ("--sleep-idle-seconds",), answer="`--keep-alive DURATION` of `llmd serve` unloads idle models"
    ),
    OtherName(
        ("--dtype",),
        answer="weights keep the type of their files; `--quant FORMAT` of `llmd serve` quantises them",
    ),
    OtherName(("--hf-file", "-hff"), answer="`llmd pull ORG/NAME:Q8_0` fetches the file of a quantisation"),
    OtherName(("--revision",), answer="`llmd pull ORG/NAME@REVISION` fetches one version"),
    OtherName(("--models-dir",), answer="`llmd config paths` shows the folder with the models"),
    OtherName(
        ("--chat-template", "--chat-template-file"),
        answer="a file `chat_template.jinja` next to the weights replaces the model's template",
    ),
    OtherName(
        ("--tool-call-parser", "--reasoning-parser", "--reasoning-format"),
        answer="the chat template selects the parser; `tool_parser` and `reasoning_parser` in config.toml select another",
    ),
    OtherName(
        (
            *("--jinja", "--flash-attn", "-fa", "--cont-batching", "-cb", "--metrics", "--embeddings"),
            *("--embedding", "--reranking", "--rerank", "--enable-prefix-caching"),
            *("--enable-chunked-prefill", "--enable-auto-tool-choice"),
        ),
        answer="leave it out: llmd does this without a flag",
    ),
    OtherName(
        ("--mmproj", "-mm"),
        answer="llmd reads only text, and runs the text part of multimodal models without this file",
    ),
    OtherName(
        ("--enable-lora", "--lora-modules"),
        answer="`--lora NAME=DIR` of `llmd serve` serves an adapter as model NAME",
    ),
    OtherName(
        ("--model-draft", "-md", "--speculative-config"), answer="llmd has no speculative decoding yet"
    ),
    OtherName(("--trust-remote-code",), answer="llmd never runs code that comes with a model"),
)
_BY_FLAG = {flag: name for name in OTHER_NAMES for flag in name.flags}


def flags_of(setting: str) -> tuple[str, ...]:
    """Return the flags of other tools with the same meaning as a setting."""
    return tuple(flag for flag, name in _BY_FLAG.items() if name.setting == setting)


def answer_to_flag(flag: str) -> str:
    """Return what llmd has instead of another tool's flag; empty if the flag is not known."""
    name = _BY_FLAG.get(flag)
    if name is None:
        return ""
    if name.argument:
        return f"it is an argument: {name.argument}"
    return name.answer or f"`--{name.setting.replace('_', '-')}` of `llmd serve` means the same"


def answer_to_setting(name: str) -> str:
    """Return what llmd has instead of a setting named after another tool's flag; empty if it is not known."""
    known = _BY_FLAG.get(f"--{name.lower().replace('_', '-')}")
    if known is None or known.argument:
        return ""
    return known.answer or f"llmd calls it {known.setting}"
