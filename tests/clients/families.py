"""Families of models that call tools and reason, as random models with the templates of published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from llmd.builtin.parsers import deepseek, dsml, gemma, glm, harmony, kimi
from tests.golden.models.gemma4 import gemma4
from tests.golden.models.hybrids import qwen3_5
from tests.golden.models.indexers import deepseek_v32
from tests.golden.models.kimi import kimi_linear
from tests.golden.models.latents import deepseek_v3, glm4_moe_lite
from tests.golden.models.mixtures import gpt_oss
from tests.golden.samples import TEMPLATES, named
from tests.serving.model import SPECIALS, write_model

THINK = ("<think>", "</think>")
DEEPSEEK = ("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", *THINK)


class Family(Struct, frozen=True):
    """A model, and what the prompt contains once it has called ``weather`` and got the result ``sunny``."""

    name: str
    make: Callable[..., dict[str, Any]]
    """Makes a configuration of some fields."""
    template: Path
    specials: tuple[str, ...]
    end: str
    """The special token that ends an answer."""
    call: str
    """How the prompt writes the call up to its arguments."""
    result: str
    switches: Mapping[str, Any] = {}
    """Variables of the template that switch reasoning on."""

    def write(self, models: Path) -> None:
        """Write the model below ``models``."""
        specials = (*SPECIALS, *self.specials)
        write_model(
            models / self.name,
            context_len=4096,
            family=self.make,
            extra_specials=self.specials,
            template=named(self.template).read_text(encoding="utf-8"),
            eos_id=256 + specials.index(self.end),
        )


def _kimi(**fields: Any) -> dict[str, Any]:
    sizes = {"head_dim": 16, "num_heads": 4, "short_conv_kernel_size": 4}
    return kimi_linear([3], sizes, model_max_length=4096, **fields)


FAMILIES = (
    Family(
        name="gpt-oss",
        make=gpt_oss,
        template=TEMPLATES / "openai-gpt-oss-120b.jinja",
        specials=(harmony.START, harmony.CHANNEL, harmony.CONSTRAIN, harmony.MESSAGE, *harmony.ENDS),
        end=harmony.RETURN,
        call="to=functions.weather<|channel|>commentary json<|message|>{",
        result='functions.weather to=assistant<|channel|>commentary<|message|>"sunny"',
    ),
    Family(
        name="kimi",
        make=_kimi,
        template=Path(__file__).parents[1] / "golden/templates/kimi.jinja",
        specials=(
            *(*THINK, "<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>"),
            *(kimi.SECTIONS[0], kimi.CALL, kimi.ARGUMENTS, kimi.CALL_END, kimi.SECTION_ENDS[0]),
        ),
        end="<|im_end|>",
        call=f"{kimi.CALL}functions.weather:0{kimi.ARGUMENTS}{{",
        result="<|im_system|>weather<|im_middle|>## Return of functions.weather:0\nsunny",
    ),
    Family(
        name="glm-4.7",
        make=glm4_moe_lite,
        template=TEMPLATES / "GLM-4.7-Flash.jinja",
        specials=("[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|observation|>", *THINK, *glm.MARKS),
        end="<|user|>",
        call="<tool_call>weather<arg_key>",
        result="<|observation|><tool_response>sunny</tool_response>",
    ),
    Family(
        name="deepseek-v3.1",
        make=deepseek_v3,
        template=TEMPLATES / "deepseek-ai-DeepSeek-V3.1.jinja",
        specials=(*DEEPSEEK, *deepseek.MARKS),
        end="<｜end▁of▁sentence｜>",
        call="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{",
        result="<tool_response>\nsunny\n</tool_response>",
        switches={"thinking": True},
    ),
    Family(
        name="deepseek-v3.2",
        make=deepseek_v32,
        template=TEMPLATES / "deepseek-ai-DeepSeek-V3.2.jinja",
        specials=(*DEEPSEEK, "｜DSML｜"),
        end="<｜end▁of▁sentence｜>",
        call=f'{dsml.CALL}weather{dsml.NAME_END}\n{dsml.PARAMETER}days{dsml.KEY_END}false">',
        result="<result>sunny</result>",
        switches={"thinking": True},
    ),
    Family(
        name="gemma-4",
        make=gemma4,
        template=TEMPLATES / "google-gemma-4-31B-it.jinja",
        specials=(
            *("<bos>", "<|turn>", "<turn|>", "<|think|>", "<|channel>", "<channel|>"),
            *("<|tool>", "<tool|>", "<|tool_response>", "<tool_response|>"),
            *(gemma.GEMMA4.begin, gemma.GEMMA4.end, gemma.GEMMA4.quote),
        ),
        end="<turn|>",
        call="<|tool_call>call:weather{days:",
        result='<|tool_response>response:weather{value:<|"|>sunny<|"|>}<tool_response|>',
        switches={"enable_thinking": True},
    ),
    Family(
        name="qwen3.5",
        make=qwen3_5,
        template=TEMPLATES / "Qwen3.5-4B.jinja",
        specials=(*THINK, "<tool_call>", "</tool_call>"),
        end="<|im_end|>",
        call="<tool_call>\n<function=weather>\n<parameter=days>\n",
        result="<tool_response>\nsunny\n</tool_response>",
    ),
)
