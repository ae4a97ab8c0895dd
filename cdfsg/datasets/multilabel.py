"""Readers of the two text formats in which multi-label data are published: LIBSVM's and Mulan's ARFF.

scikit-learn reads LIBSVM's, too, but believes a file: it takes NaN, numbers as Python's source has them, rows and
lines of any number and length, and does not say which line is wrong.
"""

import bz2
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

_WORD = 64  # characters per value that a line may have: a float32 with its index has 20 at most
_Number = TypeVar("_Number", int, float)


def read_svm(
    path: Path, n_features: int, n_labels: int, most_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read a LIBSVM multi-label file, packed with bzip2 if its name ends in ``.bz2``.

    A line is ``3,17 1:0.25 5:1`` : the labels that apply, from 0, then the values that are not zero,
    their indices from 1 and ascending. A line without labels begins with its first value.

    The result is features, float32 of shape (N, n_features), and labels, zeros and ones of shape (N, n_labels).
    ValueError names the file and the line if that is malformed, or there are more than `most_rows` rows.
    """
    expected = (
        f"expected 'label,label index:value index:value ...' with labels in 0..{n_labels - 1} and ascending indices "
        f"in 1..{n_features}"
    )
    lines = _lines(path, n_features + n_labels)
    rows = _rows(path, lines, lambda line: _svm_row(line, n_features, n_labels), expected, most_rows)
    return rows[:, :n_features], rows[:, n_features:].astype(np.uint8)


def read_arff(
    path: Path, n_features: int, n_labels: int, most_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read an ARFF file whose numeric attributes are features and whose {0,1} attributes are labels, see `read_svm`.

    Rows may be dense (``0.25,0,1``) or sparse (``{0 0.25, 2 1}``).
    """
    lines = ((number, line.strip()) for number, line in _lines(path, n_features + n_labels))
    content = ((number, line) for number, line in lines if line and not line.startswith("%"))
    is_label = _arff_header(path, content)
    declared = int((~is_label).sum()), int(is_label.sum())
    if declared != (n_features, n_labels):
        found = f"declares {declared[0]} numeric and {declared[1]} {{0,1}} attributes"
        raise ValueError(f"{path}: {found}: expected {n_features} and {n_labels}")
    expected = (
        f"expected {len(is_label)} numbers separated by commas, or pairs '{{position value, ...}}' with positions in "
        f"0..{len(is_label) - 1}; 0 or 1 for each label"
    )
    rows = _rows(path, content, lambda line: _arff_row(line, is_label), expected, most_rows)
    features, labels = (np.compress(chosen, rows, axis=1) for chosen in (~is_label, is_label))
    return features, labels.astype(np.uint8)


def _rows(
    path: Path, lines: Iterator[tuple[int, str]], parse: Callable[[str], np.ndarray], expected: str,
    most_rows: int | None,
) -> np.ndarray:  # fmt: skip
    rows: list[np.ndarray] = []
    for number, line in lines:
        where = f"{path}, line {number}"
        if len(rows) == most_rows:
            raise ValueError(f"{where}: row {len(rows) + 1}: expected {most_rows} at most; is it another file?")
        try:
            rows.append(parse(line))
        except ValueError as error:
            raise ValueError(f"{where}: {error}: {expected}") from None
    if not rows:
        raise ValueError(f"{path}: has no rows: expected one per sample; get it anew")
    return np.array(rows)


def _lines(path: Path, values: int) -> Iterator[tuple[int, str]]:
    """Numbered lines, of `values` values at most; never more than a line is in memory."""
    number, longest = 0, _WORD * (values + 16)
    packed = path.suffix == ".bz2"
    try:
        with (bz2.open if packed else open)(path, "rt", encoding="ascii") as stream:
            while line := stream.readline(longest + 1):
                number += 1
                where = f"{path}, line {number}"
                if len(line) > longest:
                    found = f"more than {longest} characters: expected {values} values at most"
                    raise ValueError(f"{where}: {found}; get it anew")
                if not line.rstrip("\n").replace("\t", " ").isprintable():
                    raise ValueError(f"{where}: a control character: expected plain text; get it anew")
                yield number, line
    # A file that is cut off gives EOFError, one that is no archive OSError.
    except (OSError, EOFError, UnicodeDecodeError) as error:
        found = f"{path}, after line {number}: cannot be read any further: {error}"
        kind = "a complete text file" + " packed with bzip2" * packed
        raise ValueError(f"{found}: expected {kind}; get it anew") from error


def _svm_row(line: str, n_features: int, n_labels: int) -> np.ndarray:
    fields = line.split()
    names = fields.pop(0) if fields and ":" not in fields[0] else ""
    positions = _indices(names.split(",") if names else [], n_labels, first=0, kind="label")
    for field in fields:
        if field.count(":") != 1:
            raise ValueError(f"{field!r} is not index:value")
    pairs = [field.split(":") for field in fields]
    columns = _indices([index for index, _ in pairs], n_features, first=1, kind="index")
    if (np.diff(columns) <= 0).any():
        raise ValueError("the indices do not ascend")
    row = np.zeros(n_features + n_labels, np.float32)
    row[columns] = _numbers([value for _, value in pairs])
    row[n_features + positions] = 1
    return row


def _arff_header(path: Path, content: Iterator[tuple[int, str]]) -> np.ndarray:
    """Read up to ``@data``; whether each attribute is a label."""
    is_label: list[bool] = []
    for number, line in content:
        keyword = line.split(maxsplit=1)[0].lower()
        if keyword == "@data":
            return np.array(is_label, dtype=bool)
        if keyword == "@attribute":
            kind = line[line.index("{") :] if line.endswith("}") and "{" in line else line.split()[-1]
            kind = kind.replace(" ", "").lower()
            if kind not in ("numeric", "real", "integer", "{0,1}"):
                raise ValueError(f"{path}, line {number}: attribute of type {kind!r}: expected numeric or {{0,1}}")
            is_label.append(kind == "{0,1}")
        elif keyword != "@relation":
            expected = "expected @relation, @attribute or @data; is it an ARFF file?"
            raise ValueError(f"{path}, line {number}: {line[:40]!r}: {expected}")
    raise ValueError(f"{path}: ends before @data: expected a header and rows; get it anew")


def _arff_row(line: str, is_label: np.ndarray) -> np.ndarray:
    if line.startswith("{"):
        row = _sparse_row(line, len(is_label))
    else:
        words = line.split(",")
        if len(words) != len(is_label):
            raise ValueError(f"{len(words)} values")
        row = _numbers(words)
    wrong = is_label & (row != 0) & (row != 1)
    if wrong.any():
        raise ValueError(f"label {row[wrong][0]:g}")
    return row


def _sparse_row(line: str, size: int) -> np.ndarray:
    if not line.endswith("}"):
        raise ValueError("no closing brace")
    pairs = [pair.split() for pair in line[1:-1].split(",") if pair.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("not all entries are 'position value'")
    row = np.zeros(size, np.float32)
    positions = _indices([position for position, _ in pairs], size, first=0, kind="position")
    if len(np.unique(positions)) < len(positions):
        raise ValueError("a position is there twice")
    row[positions] = _numbers([value for _, value in pairs])
    return row


def _indices(words: list[str], count: int, first: int, kind: str) -> np.ndarray:
    """Positions from 0 of numbers that count from `first`."""
    numbers = [_number(int, word, kind, "a whole number") for word in words]
    for word, number in zip(words, numbers, strict=True):  # before they become an array: they may have any length
        if not first <= number < first + count:
            raise ValueError(f"{kind} {word} is out of range")
    return np.array(numbers, dtype=np.int64) - first


def _numbers(words: list[str]) -> np.ndarray:
    exact = np.array([_number(float, word, "value", "a number") for word in words], dtype=np.float64)
    fits = np.abs(exact) <= np.finfo(np.float32).max  # false for NaN, too
    if not fits.all():
        raise ValueError(f"value {words[int(fits.argmin())]!r} is not a finite float32")
    return exact.astype(np.float32)


def _number(convert: Callable[[str], _Number], word: str, kind: str, expected: str) -> _Number:
    try:
        if "_" in word:  # as in Python's source, and in no file
            raise ValueError
        return convert(word)
    except ValueError:
        raise ValueError(f"{kind} {word!r} is not {expected}") from None
