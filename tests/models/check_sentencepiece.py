"""SentencePiece models through models/tokenizer/sentencepiece.c and through the library: the same ids for thousands of texts.

    python tests/models/check_sentencepiece.py build/tests/tokenize_lines

The models are trained here with the settings of SigLIP's (T5's c4_en: unigram, nmt_nfkc) and SigLIP 2's (Gemma's: byte pairs, bytes for
what has no piece, no normalisation, pieces of the maker's). Exit 77, which ctest takes for skipped, where Python has no sentencepiece.
"""
import glob
import os
import random
import string
import subprocess
import sys
import tempfile

try:
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
CONTEXT, TEXTS = 64, 6000
UNIGRAM = dict(model_type="unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
PAIRS = dict(model_type="bpe", pad_id=0, eos_id=1, bos_id=2, unk_id=3, byte_fallback=True, normalization_rule_name="identity",
             add_dummy_prefix=False, remove_extra_whitespaces=False, split_digits=True,
             user_defined_symbols=["▁▁", "▁▁▁", "<table>", "\t\t", "ab", "abab"])
MODELS = {
    "SigLIP": UNIGRAM,
    "SigLIP 2": PAIRS,
    "unigram with the maker's pieces": dict(UNIGRAM, user_defined_symbols=["<x>", "<xy>", "the", "▁of", "eriment", "nguage"]),
    "unigram as it is": dict(UNIGRAM, normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False),
    "unigram in lower case": dict(UNIGRAM, normalization_rule_name="nmt_nfkc_cf"),
    "pairs without bytes": dict(PAIRS, byte_fallback=False, normalization_rule_name="nmt_nfkc", add_dummy_prefix=True),
}


def corpus():
    lines = []
    for path in sorted(glob.glob(os.path.join(HERE, "..", "..", "*.md")) + glob.glob(os.path.join(HERE, "..", "..", "*", "*.md"))):
        with open(path, encoding="utf-8") as file:
            lines += [line for line in file.read().splitlines() if line.strip()]
    return lines


def train(path, settings, pieces=1500):
    """pieces above what the corpus gives are added, never to be found in a text: for the vocabulary of a model."""
    model = path[: -len(".model")]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus()), model_prefix=model, vocab_size=1500,
                                             minloglevel=2, num_threads=2, **settings)
    proto = sentencepiece_model_pb2.ModelProto()
    with open(path, "rb") as file:
        proto.ParseFromString(file.read())
    for i in range(len(proto.pieces), pieces):
        proto.pieces.add(piece=f"never {i}", score=-1000.0)
    with open(path, "wb") as file:
        file.write(proto.SerializeToString())
    return sentencepiece.SentencePieceProcessor(model_file=path)


def canonical(text):
    """big_vision's canonicalize_text."""
    text = text.replace("_", " ").translate(str.maketrans("", "", string.punctuation)).lower()
    return " ".join(text.split())


def row_of(processor, text, unigram):
    """As a text tower of SigLIP or SigLIP 2 gets it."""
    ids = processor.encode(canonical(text) if unigram else " ".join(text.split()).lower())[: CONTEXT - 1] + [1]
    return ids + [1 if unigram else 0] * (CONTEXT - len(ids))


def texts(seed):
    """Slices of the corpus, characters of many scripts, spaces of many kinds, and what the maps rewrite."""
    draw = random.Random(seed)
    lines = corpus()
    odd = "ﬁﬀ①Ⅷ㍿ｱｲｳﾞＡＢＣ½²Ǻé\u00a0\u3000\u200b\u00adß中文字日本語한국어🙂👩‍🔬ğİıΣςأهلا\t▁ "
    for _ in range(TEXTS):
        kind = draw.randrange(5)
        line = draw.choice(lines)
        start = draw.randrange(len(line))
        text = line[start:start + draw.randrange(1, 120)]
        if kind == 1:
            text = "".join(draw.choice(odd + text) for _ in range(draw.randrange(60)))
        elif kind == 2:
            text = "".join(chr(draw.choice((draw.randrange(32, 127), draw.randrange(160, 0x3000), draw.randrange(0x10000, 0x1f700))))
                           for _ in range(draw.randrange(30)))
        elif kind == 3:
            text = " " * draw.randrange(4) + text.replace(" ", " " * draw.randrange(1, 4)) + " " * draw.randrange(3)
        elif kind == 4:
            text = "".join(draw.choice(["ab", "abab", "a", "<table>", "<x>", "<xy>", "the ", " of", "zz", "\t\t"]) for _ in range(draw.randrange(20)))
        yield text.replace("\n", " ").replace("\r", " ").replace("\0", " ")


def ids_of(program, model, what, lines):
    found = subprocess.run([program, model, what], input="".join(line + "\n" for line in lines).encode(), stdout=subprocess.PIPE,
                           check=True).stdout.decode()
    return [[int(word) for word in line.split()] for line in found.split("\n")[:-1]]


def compare(name, lines, found, expected):
    assert len(found) == len(lines), (name, len(found), len(lines))
    for line, a, b in zip(lines, found, expected):
        assert a == b, f"{name}: {line!r}: expected {b}, found {a}"


def main():
    program = os.path.abspath(sys.argv[1])
    lines = list(texts(1))
    plain = [line[:200] for line in corpus() if line.isascii() and not set(line) & set("&<")]  # what ftfy leaves alone
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, settings) in enumerate(MODELS.items()):
            path = os.path.join(folder, f"{number}.model")
            processor = train(path, settings)
            compare(name, lines, ids_of(program, path, "pieces", lines), processor.encode(lines))
            compare(f"{name}, rows", plain, ids_of(program, path, "row", plain),
                    [row_of(processor, line, settings["model_type"] == "unigram") for line in plain])
            print(f"{name}: the ids of {len(lines)} texts and the rows of {len(plain)} agree", flush=True)


if __name__ == "__main__":
    main()
