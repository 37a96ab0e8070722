"""Makes a small tokenizer of each kind and what transformers encodes with it.

    python -m tests.golden.tokenizers.generate            recompute and compare with the committed files
    python -m tests.golden.tokenizers.generate --write    write them

Runs in an environment of its own, whose versions are in requirements.txt. Training is deterministic; the
corpus below is all it sees.
"""

from __future__ import annotations

import base64
import io
import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import sentencepiece
import transformers
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers.convert_slow_tokenizer import TikTokenConverter

from tests.golden.tokenizers.tekken import Tekken, write_tekken

PLACE = Path(__file__).parent
CORPUS = [
    "The daemon reads a model, opens its devices and answers; nothing else starts before it.",
    "Who wrote the answer? They're sure it's the model's own, and we'll see that they've tested it.",
    "def rms_norm(x, weight, eps=1e-6):\n    return x / (x * x).mean() ** 0.5 * weight\n",
    "Zahlen: 0 1 2 3 10 42 128 1999 2024 65536. Größe, Straße, Übermut, naïve café, señor, el niño.",
    "Привет, мир. Модель отвечает. こんにちは世界。モデルが答えます。你好,世界。模型回答问题。",
    "Blocks, block tables and the prefix cache: prefill, decode, step, batch, sequence, sampler, logits.",
]
TEXTS = [
    "", " ", "Hello world", " leading and trailing  ", "The daemon's answer: 42, 1999 and 65536.",
    "line one\n\nline two\r\n\ttabbed    four", "naïve café — Größe Ⅷ ﬁ", "e\u0301 versus é", "Привет, мир", "你好,世界。こんにちは",
    "👩‍👩‍👧‍👦 family, 🇩🇪 flag, 👍🏽 skin", "\u200b\u200d zero width \ufeff", "\x00\x01\x07\x1b control \x7f", "a" * 70,
    "          ten spaces", "▁ is the mark itself", "<s> and </s> and <unk>", "<|im_start|>user\nhi<|im_end|>\n", "x<|im_end|>y",
    " <turn> z", "<think>\nno\n</think>", "[PAD] \U000f0000 private", "if x:\n    return {'k': [1, 2]}  # ok",
]  # fmt: skip
CHATML = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_level_json(place: Path) -> Any:
    """Llama 3's kind: tokenizer.json, byte-level BPE, a post-processor that writes BOS."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    pattern = Regex(r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|[^\r\n\p{L}\p{N}]?\p{L}+|\s+(?!\S)|\s+")
    split = pre_tokenizers.Split(pattern, behavior="isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, 360)
    tokenizer.add_special_tokens(["<|begin|>", *CHATML])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    bos = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.TemplateProcessing(
        "<|begin|> $A", special_tokens=[("<|begin|>", bos)]
    )
    names = {"bos_token": "<|begin|>", "eos_token": "<|im_end|>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(place)
    return transformers.AutoTokenizer.from_pretrained(place)


def metaspace_json(place: Path) -> Any:
    """Llama 2's kind: tokenizer.json converted from SentencePiece, byte fallback, a space at the start."""
    (place / "tokenizer.model").write_bytes(train_sentencepiece("bpe", 400))
    fast = transformers.LlamaTokenizerFast(
        str(place / "tokenizer.model"), legacy=False, add_prefix_space=True
    )
    fast.add_special_tokens(
        {"additional_special_tokens": [AddedToken("<|im_end|>", rstrip=True, normalized=False)]}
    )
    fast.save_pretrained(place)
    (place / "tokenizer.model").unlink()
    return fast


def prepended_json(place: Path) -> Any:
    """The older conversion of Llama 2: a normalizer that puts a space before each piece of text."""
    (place / "tokenizer.model").write_bytes(train_sentencepiece("bpe", 400))
    fast = transformers.LlamaTokenizerFast(str(place / "tokenizer.model"), legacy=True, add_prefix_space=True)
    fast.save_pretrained(place)
    (place / "tokenizer.model").unlink()
    return fast


def vocab_merges_gpt2(place: Path) -> Any:
    """GPT-2's kind, by the slow tokenizer."""
    save_vocab_and_merges(place)
    slow = transformers.GPT2Tokenizer(str(place / "vocab.json"), str(place / "merges.txt"))
    slow.add_special_tokens({"additional_special_tokens": CHATML[1:]})
    slow.save_pretrained(place)
    return slow


def vocab_merges_qwen2(place: Path) -> Any:
    """Qwen2's kind, by the slow tokenizer: NFC, single digits, tokens that are added and not special."""
    save_vocab_and_merges(place)
    slow = transformers.Qwen2Tokenizer(str(place / "vocab.json"), str(place / "merges.txt"))
    slow.add_special_tokens({"additional_special_tokens": CHATML[1:]})
    slow.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    slow.save_pretrained(place)
    return slow


def sentencepiece_llama(place: Path) -> Any:
    """SentencePiece with a space at the very start only, and an added token that swallows whitespace."""
    (place / "tokenizer.model").write_bytes(train_sentencepiece("bpe", 400))
    slow = transformers.LlamaTokenizer(str(place / "tokenizer.model"), legacy=False)
    slow.add_special_tokens(
        {"additional_special_tokens": [AddedToken("<|im_end|>", rstrip=True, normalized=False)]}
    )
    slow.save_pretrained(place)
    return slow


def sentencepiece_legacy(place: Path) -> Any:
    """SentencePiece with a space at the start of every piece of text, without any configuration."""
    (place / "tokenizer.model").write_bytes(train_sentencepiece("bpe", 400))
    return transformers.LlamaTokenizer(str(place / "tokenizer.model"), legacy=True)


def sentencepiece_gemma(place: Path) -> Any:
    """Gemma's kind: no space at the start, special tokens that are user-defined symbols."""
    model = train_sentencepiece(
        "unigram", 400, user_defined_symbols=["<turn>", "\n\n"], add_dummy_prefix=False
    )
    (place / "tokenizer.model").write_bytes(model)
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<unk>"}
    slow = transformers.GemmaTokenizer(str(place / "tokenizer.model"), **names)
    slow.add_special_tokens({"additional_special_tokens": ["<turn>"]})
    slow.save_pretrained(place)
    return slow


def tiktoken_llama3(place: Path) -> Any:
    """Llama 3 as published: lines of base64 and rank, no configuration."""
    lines = [base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(train_ranks(360))]
    (place / "tokenizer.model").write_bytes(b"\n".join(lines) + b"\n")
    specials = ["<|begin_of_text|>", "<|end_of_text|>"]
    converted = TikTokenConverter(
        str(place / "tokenizer.model"), additional_special_tokens=specials
    ).converted()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=converted, bos_token=specials[0], eos_token=specials[1]
    )


def tekken_mistral(place: Path) -> Any:
    """Mistral's own, by mistral-common: ranks as tiktoken's, special tokens before them."""
    write_tekken(place / "tekken.json", train_ranks(360))
    return Tekken(place / "tekken.json")


def encoder_bert(place: Path) -> Any:
    """BERT's kind: WordPiece in lower case, [CLS] and [SEP], and a type for each of two texts."""
    (place / "vocab.txt").write_text("\n".join(word_pieces()) + "\n")
    fast = transformers.BertTokenizerFast(str(place / "vocab.txt"), do_lower_case=True)
    fast.save_pretrained(place)
    (place / "vocab.txt").unlink()
    return fast


def encoder_vocab(place: Path) -> Any:
    """BERT as it was published first: a list of pieces, here with case and accents."""
    (place / "vocab.txt").write_text("\n".join(word_pieces(lower=False)) + "\n")
    transformers.BertTokenizer(str(place / "vocab.txt"), do_lower_case=False).save_pretrained(place)
    return transformers.AutoTokenizer.from_pretrained(place)  # what is found is converted


def encoder_xlm_roberta(place: Path) -> Any:
    """XLM-RoBERTa's kind: a unigram model of SentencePiece, normalised,
    two separators between texts of one type.
    """
    rules = place / "rules.tsv"
    rules.write_text("FB01\t66 69\n2167\t56 49 49 49\n3000\t20\n")  # three of NFKC's, which are many
    model = train_sentencepiece(
        "unigram",
        140,
        byte_fallback=False,
        remove_extra_whitespaces=True,
        normalization_rule_tsv=str(rules),
    )
    (place / "sentencepiece.bpe.model").write_bytes(model)
    fast = transformers.XLMRobertaTokenizerFast(str(place / "sentencepiece.bpe.model"))
    fast.save_pretrained(place)
    return fast


KINDS = [
    byte_level_json, metaspace_json, prepended_json, vocab_merges_gpt2, vocab_merges_qwen2, sentencepiece_llama, sentencepiece_legacy,
    sentencepiece_gemma, tiktoken_llama3, tekken_mistral,
]  # fmt: skip


ENCODERS = [encoder_bert, encoder_vocab, encoder_xlm_roberta]


def byte_alphabet() -> list[str]:
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) if byte in visible else chr(0x100 + hidden.index(byte)) for byte in range(256)]


def train(tokenizer: Tokenizer, vocab_size: int) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 4, trainer)


def train_ranks(num_tokens: int) -> list[bytes]:
    """Tokens in the order of their ranks, single bytes first."""
    ranks = [bytes([byte]) for byte in range(256)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False)
    train(tokenizer, num_tokens)
    alphabet = {sign: byte for byte, sign in enumerate(byte_alphabet())}
    for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        token = bytes(alphabet[sign] for sign in piece)
        ranks += [token] if token not in ranks else []
    return ranks


def save_vocab_and_merges(place: Path) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False)
    train(tokenizer, 360)
    tokenizer.add_special_tokens([CHATML[0]])
    tokenizer.model.save(str(place))
    vocab = json.loads((place / "vocab.json").read_text())
    (place / "vocab.json").write_text(json.dumps({**vocab, CHATML[0]: len(vocab)}, ensure_ascii=False))


def train_sentencepiece(model_type: str, vocab_size: int, **options: Any) -> bytes:
    model = io.BytesIO()
    lossless: dict[str, Any] = {
        "byte_fallback": True,
        "remove_extra_whitespaces": False,
        "normalization_rule_name": "identity",
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in CORPUS * 4 for line in text.split("\n")]),
        model_writer=model, model_type=model_type, vocab_size=vocab_size, character_coverage=0.98,
        num_threads=1, minloglevel=2, **(lossless | options),
    )  # fmt: skip
    return model.getvalue()


def word_pieces(*, lower: bool = True) -> list[str]:
    """The words that the corpus has twice, and all of its characters, as words and as parts of words."""
    normalizer, split = normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer()
    words = [word for text in CORPUS for word, _ in split.pre_tokenize_str(normalizer.normalize_str(text))]
    chars = sorted({char for word in words for char in word})
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    often = sorted({word for word in words if words.count(word) > 1} - set(chars))
    return [*specials, *chars, *(f"##{char}" for char in chars), *often]


def expected_pairs(tokenizer: Any) -> list[dict[str, Any]]:
    """Ids and types of each text, of texts in pairs, and of pairs that are cut to several lengths."""
    pairs = list(itertools.pairwise(TEXTS))
    asked = [
        *((text, None, None) for text in TEXTS),
        *((first, second, None) for first, second in pairs),
        *((first, second, length) for first, second in pairs[::4] for length in (8, 13, 24)),
    ]
    cases = []
    for first, second, max_len in asked:
        cut = {} if max_len is None else {"max_length": max_len, "truncation": True}
        found = tokenizer(first, second, return_token_type_ids=True, **cut)
        ids, types = found["input_ids"], found["token_type_ids"]
        cases.append({"first": first, "second": second, "max_len": max_len, "ids": ids, "types": types})
    return cases


def expectations(tokenizer: Any) -> list[dict[str, Any]]:
    cases = [(text, tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS]
    return [{"text": text, "ids": ids, "decoded": tokenizer.decode(ids, **PLAIN)} for text, ids in cases]


PLAIN = {
    "skip_special_tokens": False,
    "clean_up_tokenization_spaces": False,
    "spaces_between_special_tokens": False,
}
KEPT = {
    "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "merges.txt", "vocab.txt", "tekken.json",
}  # fmt: skip


def build(place: Path) -> dict[str, bytes]:
    """The files of every kind, by their paths below this folder."""
    files: dict[str, bytes] = {}
    for kind in [*KINDS, *ENCODERS]:
        folder = place / kind.__name__
        folder.mkdir()
        name, ask = ("pairs", expected_pairs) if kind in ENCODERS else ("expected", expectations)
        cases = ask(kind(folder))
        files |= {
            f"{kind.__name__}/{path.name}": path.read_bytes()
            for path in folder.iterdir()
            if path.name in KEPT
        }
        expected = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
        files[f"{kind.__name__}/{name}.json"] = f"[\n{expected}\n]\n".encode()
    return files


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        files = build(Path(place))
    if "--write" in sys.argv:
        for name, content in files.items():
            (PLACE / name).parent.mkdir(exist_ok=True)
            (PLACE / name).write_bytes(content)
        return 0
    different = [name for name, content in files.items() if (PLACE / name).read_bytes() != content]
    print(f"tokenizers: {len(files)} files, {len(different)} differ {different or ''}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
