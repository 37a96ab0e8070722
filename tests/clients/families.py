"""Families of models that call tools, as random models with the templates of published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from llmd.builtin.parsers import deepseek, dsml, gemma, glm, harmony, hermes, kimi, nemotron
from tests.golden.models.compressed import deepseek_v4
from tests.golden.models.gemma4 import gemma4
from tests.golden.models.granite import granite
from tests.golden.models.hybrids import qwen3_5
from tests.golden.models.indexers import deepseek_v32
from tests.golden.models.kimi import kimi_linear
from tests.golden.models.latents import deepseek_v3, glm4_moe_lite
from tests.golden.models.mixtures import glm4_moe, gpt_oss, qwen3_moe
from tests.golden.models.state_spaces import granite_hybrid, nemotron_h, nemotron_h_moe
from tests.golden.samples import TEMPLATES, named
from tests.serving.model import SPECIALS, write_model

THINK = ("<think>", "</think>")
TAGS = (hermes.BEGIN, hermes.END)
DEEPSEEK = ("<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", *THINK)
GLM = ("[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|observation|>", *THINK, *glm.MARKS)
GRANITE = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", *TAGS)
KIMI = (
    *("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>"),
    *(kimi.SECTIONS[0], kimi.CALL, kimi.ARGUMENTS, kimi.CALL_END, kimi.SECTION_ENDS[0]),
)
HERMES_CALL = '<tool_call>\n{"name": "weather", "arguments": {"'
QWEN_CALL = "<tool_call>\n<function=weather>\n<parameter=days>\n"
IN_TAGS = "<tool_response>\nsunny\n</tool_response>"


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
    reasons: bool = True
    """Whether it reasons before it answers."""
    switches: Mapping[str, Any] = {}
    """Variables of the template that switch reasoning on."""
    opens: str = ""
    """The token that begins reasoning, where a random model does not choose it by itself."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Its special tokens."""
        return (*SPECIALS, *self.specials)

    def id_of(self, special: str) -> int:
        """The id of a special token."""
        return 256 + self.vocabulary.index(special)

    def write(self, models: Path) -> None:
        """Write the model below ``models``."""
        write_model(
            models / self.name,
            context_len=4096,
            family=self.make,
            extra_specials=self.specials,
            template=named(self.template).read_text(encoding="utf-8"),
            eos_id=self.id_of(self.end),
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
        specials=(*THINK, *KIMI),
        end="<|im_end|>",
        call=f"{kimi.CALL}functions.weather:0{kimi.ARGUMENTS}{{",
        result="<|im_system|>weather<|im_middle|>## Return of functions.weather:0\nsunny",
    ),
    Family(
        name="glm-4.7",
        make=glm4_moe_lite,
        template=TEMPLATES / "GLM-4.7-Flash.jinja",
        specials=GLM,
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
        name="deepseek-v4",
        make=deepseek_v4,
        template=TEMPLATES / "deepseek-ai-DeepSeek-V4.jinja",
        specials=(*DEEPSEEK, "｜DSML｜"),
        end="<｜end▁of▁sentence｜>",
        call=f'{dsml.CALL}weather{dsml.NAME_END}\n{dsml.PARAMETER}days{dsml.KEY_END}false">',
        result="<tool_result>sunny</tool_result>",
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
        specials=(*THINK, *TAGS),
        end="<|im_end|>",
        call=QWEN_CALL,
        result=IN_TAGS,
    ),
    Family(
        name="qwen3-coder",
        make=qwen3_moe,
        template=TEMPLATES / "Qwen3-Coder.jinja",
        specials=TAGS,
        end="<|im_end|>",
        call=QWEN_CALL,
        result=IN_TAGS,
        reasons=False,
    ),
    Family(
        name="nemotron-3",
        make=nemotron_h_moe,
        template=TEMPLATES / "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja",
        specials=(*THINK, *TAGS),
        end="<|im_end|>",
        call=QWEN_CALL,
        result=IN_TAGS,
    ),
    Family(
        name="nemotron-nano-2",
        make=nemotron_h,
        template=TEMPLATES / "NVIDIA-Nemotron-Nano-v2.jinja",
        specials=("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", *THINK, nemotron.BEGIN, nemotron.END),
        end="<SPECIAL_12>",
        call='<TOOLCALL>[{"name": "weather", "arguments": {"',
        result="<TOOL_RESPONSE>[sunny]</TOOL_RESPONSE>",
    ),
    Family(
        name="granite-4.0",
        make=granite_hybrid,
        template=TEMPLATES / "ibm-granite-granite-4.0.jinja",
        specials=GRANITE,
        end="<|end_of_text|>",
        call=HERMES_CALL,
        result=IN_TAGS,
        reasons=False,
    ),
    Family(
        name="granite-4.1",
        make=granite,
        template=TEMPLATES / "ibm-granite-granite-4.1.jinja",
        specials=GRANITE,
        end="<|end_of_text|>",
        call=HERMES_CALL,
        result=IN_TAGS,
        reasons=False,
    ),
    Family(
        name="glm-4.6",
        make=glm4_moe,
        template=TEMPLATES / "GLM-4.6.jinja",
        specials=GLM,
        end="<|user|>",
        call="<tool_call>weather\n<arg_key>",
        result=f"<|observation|>\n{IN_TAGS}",
        opens="<think>",
    ),
    Family(
        name="kimi-k2",
        make=deepseek_v3,
        template=TEMPLATES / "moonshotai-Kimi-K2.jinja",
        specials=KIMI,
        end="<|im_end|>",
        call=f"{kimi.CALL}functions.weather:0{kimi.ARGUMENTS}{{",
        # The published template writes a backslash here.
        result="<|im_system|>tool<|im_middle|>## Return of functions.weather:0\\nsunny",
        reasons=False,
    ),
)
