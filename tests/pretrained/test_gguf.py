"""GGUF files: what each way of storing numbers means, computed value by value, and files that are not whole."""

import struct

import numpy as np
import pytest
import torch
from gguf_files import BF16, F16, F32, Q4_0, Q4_1, Q8_0, write_gguf

from insnet.pretrained.gguf import GgufFile

ROWS, COLUMNS = 3, 64
BYTES = {F32: 128, F16: 64, BF16: 64, Q4_0: 18, Q4_1: 20, Q8_0: 34}  # of 32 values
ENCODINGS = {"F32": F32, "F16": F16, "BF16": BF16, "Q4_0": Q4_0, "Q4_1": Q4_1, "Q8_0": Q8_0}


def half(pair):
    (number,) = struct.unpack("<e", pair)
    return number


def slowly(block, encoding):
    """32 values of a block."""
    if encoding == F32:
        return list(struct.unpack("<32f", block))
    if encoding == F16:
        return list(struct.unpack("<32e", block))
    if encoding == BF16:
        return [struct.unpack("<f", b"\0\0" + block[i : i + 2])[0] for i in range(0, 64, 2)]
    scale = half(block[:2])
    if encoding == Q8_0:
        return [scale * number for number in struct.unpack("<32b", block[2:])]
    packed = block[4:] if encoding == Q4_1 else block[2:]
    numbers = [byte % 16 for byte in packed] + [byte // 16 for byte in packed]
    if encoding == Q4_0:
        return [scale * (number - 8) for number in numbers]
    return [scale * number + half(block[2:4]) for number in numbers]


def random_block(encoding, rng):
    numbers = rng.standard_normal(32)
    if encoding in (F32, F16):
        return numbers.astype("<f4" if encoding == F32 else "<f2").tobytes()
    if encoding == BF16:
        return (numbers.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    head = numbers[:2].astype("<f2").tobytes()[: 4 if encoding == Q4_1 else 2]
    return head + rng.bytes(BYTES[encoding] - len(head))


def random_content(encoding, blocks=ROWS * COLUMNS // 32):
    rng = np.random.default_rng(encoding)
    return [random_block(encoding, rng) for _ in range(blocks)]


def written(path, encoding, content, *, facts=None, **options):
    tensors = [
        ("first", F32, (5,), struct.pack("<5f", *range(5))),
        ("table", encoding, (ROWS, COLUMNS), b"".join(content)),
    ]
    return write_gguf(path, facts or {"a": 1}, tensors, **options)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("version", [2, 3])
def test_a_tensor_equals_its_values_read_one_by_one(tmp_path, name, version):
    content = random_content(ENCODINGS[name])
    file = GgufFile.open(written(tmp_path / "a.gguf", ENCODINGS[name], content, version=version))
    expected = torch.tensor([value for block in content for value in slowly(block, ENCODINGS[name])])
    found = file.tensor("table")
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected.view(ROWS, COLUMNS), rtol=1e-6, atol=1e-7)
    assert file.tensor("first").tolist() == [0, 1, 2, 3, 4]
    found.zero_()
    assert file.tensor("table").abs().sum() > 0, "a tensor has memory of its own"


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_tensor_equals_that_of_the_gguf_package(tmp_path, name):
    gguf = pytest.importorskip("gguf")
    path = written(tmp_path / "a.gguf", ENCODINGS[name], random_content(ENCODINGS[name]))
    (theirs,) = [tensor for tensor in gguf.GGUFReader(path).tensors if tensor.name == "table"]
    expected = gguf.quants.dequantize(theirs.data, theirs.tensor_type)
    assert np.array_equal(GgufFile.open(path).tensor("table").numpy(), expected.reshape(ROWS, COLUMNS))


def test_facts_are_read_as_they_were_written(tmp_path):
    facts = {"general.name": "größe", "n": 7, "x": 0.5, "yes": True, "list": [3, 4, 5], "names": ["a", "", "ü"]}
    file = GgufFile.open(write_gguf(tmp_path / "a.gguf", facts, [("t", F32, (1,), bytes(4))]))
    assert file.facts == facts
    assert file.names == {"t"}


def test_tensors_start_where_the_files_own_alignment_says(tmp_path):
    path = written(tmp_path / "a.gguf", F16, random_content(F16), facts={"general.alignment": 32, "b": "x" * 9})
    expected = [value for block in random_content(F16) for value in slowly(block, F16)]
    assert GgufFile.open(path).tensor("table").flatten().tolist() == expected


def test_another_way_of_storing_is_named(tmp_path):
    path = write_gguf(tmp_path / "a.gguf", {"a": 1}, [("t", 12, (256,), bytes(144))])
    with pytest.raises(ValueError, match=r"stores t as Q4_K; this version reads F32, F16, Q4_0, Q4_1, Q8_0, BF16"):
        GgufFile.open(path).tensor("t")
    path = write_gguf(tmp_path / "b.gguf", {"a": 1}, [("t", 77, (256,), bytes(144))])
    with pytest.raises(ValueError, match="as type 77"):
        GgufFile.open(path).tensor("t")


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    path = written(tmp_path / "a.gguf", Q8_0, random_content(Q8_0), facts={"names": ["a", "b"], "n": [1, 2], "s": "x"})
    whole = path.read_bytes()
    for size in range(len(whole) - 20):  # behind the last tensor there are 20 bytes of nothing
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"a\.gguf is (truncated|no GGUF file|empty)"):
            GgufFile.open(path).tensor("table")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\3\4" + bytes(60), "is no GGUF file: it does not begin with GGUF"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(60), "is GGUF version 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + b"\xff" * 80, "truncated or no GGUF file"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"a" + struct.pack("<I", 99) + bytes(9), "truncated or no GGUF"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        GgufFile.open(path)
