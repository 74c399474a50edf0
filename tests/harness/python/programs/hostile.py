"""hostile.py CASE: answers as it should but for one question, whose answer is that of the case in CASES.

CASES: name → (the question; its answer: bytes, or a function that answers by itself; what the message says).
No package is needed: this is a program that somebody wrote from the page alone.
"""

import json
import os
import signal
import struct
import sys

TEST_IMAGES = 200


def line(**fields):
    return json.dumps(fields).encode() + b"\n"


def predicted(labels, **fields):
    return line(**{"type": "predicted", "task": 0, "labels": labels, **fields})


def put(data):
    os.write(1, data)


def leave(status):
    return lambda question: sys.exit(status)


def kill_itself(question):
    os.kill(os.getpid(), signal.SIGKILL)


def hang(question):
    signal.pause()


def close_output(question):
    os.close(1)
    signal.pause()


def close_input(question):
    os.close(0)
    put(line(type="trained", task=0))
    signal.pause()


def endless_line(question):
    while True:
        put(b"[" * (1 << 20))


def cut(question):
    put(b'{"type": "trained", "ta')
    sys.exit(0)


def say_and_fail(question):
    print("a stack of lines\nand the last one \x1b[2Jclears", file=sys.stderr)
    sys.exit(5)


def file_of(data):
    def answer(question):
        with open("labels.npy", "wb") as file:
            file.write(data)
        put(line(type="predicted", task=0, file=os.path.abspath("labels.npy")))

    return answer


def fifo(question):
    os.mkfifo("labels.npy")
    put(line(type="predicted", task=0, file=os.path.abspath("labels.npy")))


def npy(kind, values, shape=None):
    shape = shape or len(values) // 8
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape},), }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values


LABELS = [0] * TEST_IMAGES
CASES = {
    "not_json": ("begin", b"hello\n", "found hello"),
    "empty_line": ("begin", b"\n", "object of JSON"),
    "array": ("begin", b"[1]\n", r"found \[1\]"),
    "number": ("begin", b"1\n", "found 1"),
    "no_type": ("begin", b"{}\n", "found {}"),
    "type_number": ("begin", b'{"type": 1}\n', '"type"'),
    "type_long": ("begin", line(type="x" * 100000), 'expected an answer of type "ready"'),
    "type_newlines": ("begin", line(type="a\nb\x1b[2Jc"), 'expected an answer of type "ready"'),
    "another_type": ("begin", line(type="trained", task=0), 'expected an answer of type "ready", found "trained"'),
    "nul": ("begin", b'{"type": "re\0ady"}\n', "NUL"),
    "escaped_nul": ("begin", b'{"type": "ready\\u0000"}\n', "JSON"),
    "not_utf8": ("begin", b'{"type": "ready", "name": "\xff\xfe"}\n', "JSON"),
    "deep": ("begin", b"[" * 100000 + b"\n", "JSON"),
    "deep_object": ("begin", b'{"type":' * 100000 + b"\n", "JSON"),
    "infinite": ("begin", b'{"type": "ready", "parameters": Infinity}\n', "JSON"),
    "endless_line": ("begin", endless_line, "a line of at most 64 MB"),
    "parameters_negative": ("begin", line(type="ready", parameters=-1), "whole number of parameters"),
    "parameters_float": ("begin", line(type="ready", parameters=1.5), "whole number of parameters"),
    "zero_shot_text": ("begin", line(type="ready", zero_shot="yes"), "zero_shot true or false"),
    "ready_twice": ("begin", line(type="ready") * 2, 'expected an answer of type "trained", found "ready"'),
    "control_characters": ("begin", b"\x1b[2J\r\x07\x08hello\n", "JSON"),
    "leaves": ("train", leave(3), "exit status 3"),
    "leaves_with_0": ("train", leave(0), "exit status 0"),
    "killed": ("train", kill_itself, "signal 9"),
    "cut": ("train", cut, "exit status 0"),
    "says_why": ("train", say_and_fail, "exit status 5.*and the last one"),
    "hangs": ("train", hang, "has not answered for 1 s"),
    "closes_output": ("train", close_output, "closed its standard output"),
    "closes_input": ("train", close_input, "closed its standard"),
    "error": ("train", line(type="error", message="no memory on the GPU"), "no memory on the GPU"),
    "error_without_message": ("train", line(type="error"), "without a message"),
    "error_of_number": ("train", line(type="error", message=7), "without a message"),
    "error_of_lines": ("train", line(type="error", message="one\ntwo\x1b[2J\nmtil: error: three"), "one"),
    "error_long": ("train", line(type="error", message="long " * 100000), "long long"),
    "predicted_early": ("train", predicted(LABELS), 'expected an answer of type "trained", found "predicted"'),
    "other_task_trained": ("train", line(type="trained", task=5), "task 0"),
    "progress_in_test": ("test", line(type="progress", step=1, loss=1), 'expected an answer of type "predicted"'),
    "too_few": ("test", predicted(LABELS[1:]), "expected 200 labels.*found 199"),
    "too_many": ("test", predicted(LABELS + [0]), "expected 200 labels.*found 201"),
    "none": ("test", line(type="predicted", task=0), "expected 200 labels"),
    "labels_text": ("test", predicted("0" * TEST_IMAGES), "expected 200 labels"),
    "label_text": ("test", predicted(["0"] * TEST_IMAGES), "whole number"),
    "label_float": ("test", predicted([0.0] * TEST_IMAGES), "whole number"),
    "label_null": ("test", predicted([None] * TEST_IMAGES), "whole number"),
    "label_true": ("test", predicted([True] * TEST_IMAGES), "whole number"),
    "label_negative": ("test", predicted([0] * (TEST_IMAGES - 1) + [-1]), "from 0 to 9, found -1"),
    "label_high": ("test", predicted([10] + LABELS[1:]), "from 0 to 9, found 10"),
    "label_65536": ("test", predicted([65536] + LABELS[1:]), "from 0 to 9, found 65536"),
    "label_1e30": ("test", predicted([1e30] + LABELS[1:]), "whole number"),
    "label_30_digits": ("test", predicted([10**30] + LABELS[1:]), "JSON"),
    "task_missing": ("test", line(type="predicted", labels=LABELS), "task 0"),
    "task_another": ("test", predicted(LABELS, task=1), "task 0"),
    "task_text": ("test", predicted(LABELS, task="0"), "task 0"),
    "file_missing": ("test", line(type="predicted", task=0, file="/nowhere/labels.npy"), "/nowhere/labels.npy"),
    "file_folder": ("test", line(type="predicted", task=0, file="/"), "/"),
    "file_endless": ("test", line(type="predicted", task=0, file="/dev/zero"), "/dev/zero"),
    "file_fifo": ("test", fifo, "labels.npy"),
    "file_no_npy": ("test", file_of(b"0,0,0"), "does not begin as one"),
    "file_cut": ("test", file_of(npy("<i8", bytes(8 * TEST_IMAGES))[:-1]), "cut"),
    "file_header_long": ("test", file_of(b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100)), "header"),
    "file_floats": ("test", file_of(npy("<f8", bytes(8 * TEST_IMAGES))), "another type"),
    "file_short": ("test", file_of(npy("<i8", bytes(8 * 7))), "expected 200 labels"),
    "file_shape": ("test", file_of(npy("<i8", bytes(8 * TEST_IMAGES), 1 << 61)), "shape"),
    "file_high": ("test", file_of(npy("<i8", b"\xff" * 8 * TEST_IMAGES)), "from 0 to 9, found -1"),
    "save_refused": ("save", line(type="error", message="disk full"), "disk full"),
    "save_another": ("save", line(type="stopped"), 'expected an answer of type "saved"'),
    "fails_at_end": ("end", leave(4), "exit status 4"),
}


def answer_all(at, hostile):
    answers = {"begin": line(type="ready"), "train": line(type="trained", task=0), "test": predicted(LABELS),
               "save": line(type="saved"), "end": b""}
    for received in sys.stdin:
        question = json.loads(received)["type"]
        answer = hostile if question == at else answers[question]
        if callable(answer):
            answer(received)
        else:
            put(answer)


if __name__ == "__main__":
    answer_all(*CASES[sys.argv[1]][:2])
