"""Values that questions carry and answers repeat: ports, names, numbers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from string import ascii_lowercase

FAMILIES = """
    llama mistral qwen3 qwen2 gemma gemma-3 phi-4 phi-3 granite olmo tinyllama smollm codellama guide
    model deepseek vicuna falcon mixtral starcoder yi zephyr nemotron hermes glm aya exaone apertus stablelm
""".split()
SIZES = """
    7b 0.6b 1b 3b 4b 8b 9b 12b 13b 14b 27b 32b 34b 70b 1.7b 135m 360m small mini medium large chat instruct base v2 it tiny
""".split()
# What unknown words are made of: plain syllables, and the pieces of words that look English.
SYLLABLES = """
    ba be bi bo bu da de di do du fa fe fi fo ga ge go ka ke ki ko ku la le li lo lu ma me mi mo mu na
    ne ni no nu pa pe pi po ra re ri ro ru sa se si so su ta te ti to tu va ve vi vo wa we wi xa xe ya
    yo za ze zo sha che tho bra kri plo ster win gor zen lor dan mel bert tron
""".split()
ONSETS = """
    b bl br c ch cl cr d dr f fl fr g gl gr h j k kn l m n p ph pl pr qu r s sc sh sk sl sm sn sp st str
    sw t th tr tw v w wh y z
""".split()
VOWELS = """
    a a e e i o o u ai au ay ea ee ie oa oi oo ou ow y
""".split()
CODAS = """
    b ck d ff g k l ld ll lt m mp n nd ng nk nt p r rd rk rm rn rt s sh sk ss st t tch th tt v w x z
""".split()
ENDINGS = """
    er or ing ed le ly y al ar en et ic ie in is it on ow us age ant ard ent est ful ine ion ish ism ist
    ity ive man ment ness ous son ton ure ville berg ov ski
""".split()
NAMES = """
    anna ben carla david emma felix greta hugo iris jonas karin leo maria nina oscar paula quentin rosa
    simon tina ulrich vera walter xenia yusuf zoe ahmed bob carol dave eve frank grace heidi ivan judy
    ken lara mike nora olga peter ruth sam tom ursula victor wendy alice john mary james linda susan
    robert laura kevin sarah daniel julia marco sofia luca elena pablo ines jan piet sven astrid
""".split()
EXIT_CODES = (
    ("0", "done"), ("1", "failed"), ("2", "wrong usage"), ("3", "model, plugin or device not found"), ("4", "refused"),
    ("5", "not enough memory or disk"), ("6", "daemon not reachable"), ("7", "timeout"), ("8", "check failed"),
    ("9", "conflict, in use or exists already"), ("130", "ended by Ctrl-C"),
)  # fmt: skip


def invented(random: Random) -> str:
    """A word that hardly any dictionary has, so that copying is learned and not the word."""
    kind = random.random()
    if kind < 0.4:
        return "".join(random.choice(SYLLABLES) for _ in range(random.randint(2, 3)))
    if kind < 0.9:
        return _englishlike(random)
    return "".join(random.choice(ascii_lowercase) for _ in range(random.randint(2, 7)))


def _englishlike(random: Random) -> str:
    parts = [
        random.choice(ONSETS)
        + random.choice(VOWELS)
        + (random.choice(CODAS) if random.random() < 0.6 else "")
        for _ in range(random.choice((1, 1, 2)))
    ]
    return "".join(parts) + (random.choice(ENDINGS) if random.random() < 0.5 else "")


def person(random: Random) -> str:
    """A first name, often an invented one."""
    return (random.choice(NAMES) if random.random() < 0.5 else invented(random)).capitalize()


def model(random: Random) -> str:
    """A model's name."""
    family = random.choice(FAMILIES) if random.random() < 0.6 else invented(random)
    if random.random() < 0.15:
        family = family.capitalize()
    if random.random() < 0.4:
        return family
    size = random.choice(SIZES)
    return f"{family}-{size.upper() if random.random() < 0.15 else size}"


def _port(random: Random) -> str:
    return str(
        random.choice((8080, 8000, 9000, 5000, 3000, 1234, 11434, 80))
        if random.random() < 0.3
        else random.randint(1024, 65535)
    )


def _context(random: Random) -> str:
    return str(
        random.choice((512, 1024, 2048, 4096, 8192, 16384, 32768, 65536))
        if random.random() < 0.5
        else random.randint(100, 99999)
    )


def _fraction(random: Random) -> str:
    return f"0.{random.randint(1, 99):02d}".rstrip("0")


SLOTS: dict[str, Callable[[Random], str]] = {
    "port": _port,
    "ctx": _context,
    "model": model,
    "alias": lambda random: random.choice((invented, model))(random),
    "slots": lambda random: str(random.randint(1, 128)),
    "device": lambda random: random.choice(
        (
            "cpu",
            "reference",
            random.choice(("cpu", "reference", "cuda:0", "cuda:1", "cuda:2", "vulkan:0", "vulkan:1")),
            random.choice(("cuda:0", "cuda:1", "vulkan:0", "cpu")),
            invented(random),
            invented(random) + random.choice("0123"),
        )
    ),
    "layers": lambda random: str(random.choice((10, 20, 24, 32, 35, 99, random.randint(1, 99)))),
    "count": lambda random: str(
        random.choice((10, 20, 50, 64, 100, 128, 256, 500, 512, 1000, random.randint(1, 9999)))
    ),
    "temp": lambda random: random.choice(
        (_fraction(random), _fraction(random), f"1.{random.randint(0, 9)}", "1", "2")
    ),
    "topk": lambda random: str(random.randint(1, 200)),
    "topp": _fraction,
    "minp": lambda random: f"0.{random.randint(1, 99):02d}",
    "seed": lambda random: str(
        random.choice((random.randint(0, 99), random.randint(100, 9999), random.randint(10000, 999999)))
    ),
    "number": lambda random: str(random.randint(1, 5000)),
    "year": lambda random: str(random.randint(900, 2030)),
    "rare": invented,
}
