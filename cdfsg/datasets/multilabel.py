"""Readers of the two text formats in which multi-label data are published: LIBSVM's and Mulan's ARFF."""

import bz2
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

_NUMERIC = ("numeric", "real", "integer")
_WORD = 64  # characters per value that a line may have: a float32 with its index has 20 at most

_Number = TypeVar("_Number", int, float)


def read_svm(
    path: Path, n_features: int, n_labels: int, most_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read a LIBSVM multi-label file, packed with bzip2 if its name ends in ``.bz2``.

    A line is ``3,17 1:0.25 5:1`` : the labels that apply, from 0, then the values that are not zero,
    their indices from 1 and ascending. A line without labels begins with its first value.

    Parameters
    ----------
    path : Path
    n_features, n_labels : int
        What the file is known to have; larger indices are errors.
    most_rows : int, optional
        How many rows it is known not to exceed. A file packed to 1 kB can have millions.

    Returns
    -------
    features : ndarray of float32, shape (N, n_features)
    labels : ndarray of uint8, shape (N, n_labels)
        Zeros and ones.

    Raises
    ------
    ValueError
        If a line is malformed, far too long or no plain text, there are too many, or the file cannot be unpacked;
        the message names file and line.
    """
    features: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for number, line in _lines(path, n_features + n_labels):
        _require_room(path, number, len(features), most_rows)
        try:
            feature_row, label_row = _svm_row(line, n_features, n_labels)
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: {error}: expected 'label,label index:value index:value ...' with labels "
                f"in 0..{n_labels - 1} and ascending indices in 1..{n_features}"
            ) from None
        features.append(feature_row)
        labels.append(label_row)
    return _stacked(path, features, labels)


def read_arff(
    path: Path, n_features: int, n_labels: int, most_rows: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read an ARFF file whose numeric attributes are features and whose {0,1} attributes are labels.

    Rows may be dense (``0.25,0,1``) or sparse (``{0 0.25, 2 1}``).

    Parameters
    ----------
    path : Path
    n_features, n_labels : int
        How many numeric and how many {0,1} attributes the file is known to have.
    most_rows : int, optional
        How many rows it is known not to exceed.

    Returns
    -------
    features, labels
        As of `read_svm`; both in the order of the file.

    Raises
    ------
    ValueError
        If the header does not declare these attributes, a row does not fit it, or there are too many;
        the message names file and line.
    """
    lines = ((number, line.strip()) for number, line in _lines(path, n_features + n_labels))
    content = ((number, line) for number, line in lines if line and not line.startswith("%"))
    is_label = _arff_header(path, content)
    declared = int((~is_label).sum()), int(is_label.sum())
    if declared != (n_features, n_labels):
        raise ValueError(
            f"{path}: declares {declared[0]} numeric and {declared[1]} {{0,1}} attributes: "
            f"expected {n_features} and {n_labels}"
        )
    rows: list[np.ndarray] = []
    for number, line in content:
        _require_room(path, number, len(rows), most_rows)
        try:
            rows.append(_arff_row(line, is_label))
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}: {error}: expected {len(is_label)} numbers separated by commas, or pairs "
                f"'{{position value, ...}}' with positions in 0..{len(is_label) - 1}; 0 or 1 for each label"
            ) from None
    table = np.array(rows).reshape(-1, len(is_label))
    return _stacked(path, list(table[:, ~is_label]), list(table[:, is_label].astype(np.uint8)))


def _require_room(path: Path, number: int, rows: int, most_rows: int | None) -> None:
    if rows == most_rows:
        raise ValueError(f"{path}, line {number}: row {rows + 1}: expected {most_rows} at most; is it another file?")


def _lines(path: Path, values: int) -> Iterator[tuple[int, str]]:
    """Numbered lines, of `values` values at most; never more than a line is in memory."""
    number, longest = 0, _WORD * (values + 16)
    unpack = bz2.open if path.suffix == ".bz2" else open
    try:
        with unpack(path, "rt", encoding="ascii") as stream:
            while line := stream.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise ValueError(
                        f"{path}, line {number}: more than {longest} characters: expected {values} values at most; "
                        "get it anew"
                    )
                if not line.rstrip("\n").replace("\t", " ").isprintable():
                    raise ValueError(f"{path}, line {number}: a control character: expected plain text; get it anew")
                yield number, line
    # A file that is cut off gives EOFError, one that is no archive OSError.
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}, after line {number}: cannot be read any further: {error}: expected a complete text file"
            + (" packed with bzip2" if path.suffix == ".bz2" else "")
            + "; get it anew"
        ) from error


def _svm_row(line: str, n_features: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    fields = line.split()
    names = fields.pop(0) if fields and ":" not in fields[0] else ""
    positions = _indices(names.split(",") if names else [], n_labels, first=0, kind="label")
    pairs = [field.split(":") for field in fields]
    wrong = next((field for field, pair in zip(fields, pairs, strict=True) if len(pair) != 2), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is not index:value")
    columns = _indices([index for index, _ in pairs], n_features, first=1, kind="index")
    if (np.diff(columns) <= 0).any():
        raise ValueError("the indices do not ascend")
    features, labels = np.zeros(n_features, np.float32), np.zeros(n_labels, np.uint8)
    features[columns] = _numbers([value for _, value in pairs])
    labels[positions] = 1
    return features, labels


def _indices(words: list[str], count: int, first: int, kind: str) -> np.ndarray:
    """Positions from 0 of numbers that count from `first`."""
    try:
        numbers = [_plain(int, word) for word in words]
    except ValueError:
        raise ValueError(f"{kind} {_culprit(words, int)!r} is not a whole number") from None
    # Before they become an array, as a number may have any length.
    outside = next((word for word, n in zip(words, numbers, strict=True) if not first <= n < first + count), None)
    if outside is not None:
        raise ValueError(f"{kind} {outside} is out of range")
    return np.array(numbers, dtype=np.int64) - first


def _numbers(words: list[str]) -> np.ndarray:
    try:
        exact = np.array([_plain(float, word) for word in words], dtype=np.float64)
    except ValueError:
        raise ValueError(f"value {_culprit(words, float)!r} is not a number") from None
    fits = np.abs(exact) <= np.finfo(np.float32).max  # false for NaN, too
    if not fits.all():
        raise ValueError(f"value {words[int(fits.argmin())]!r} is not a finite float32")
    return exact.astype(np.float32)


def _plain(convert: Callable[[str], _Number], word: str) -> _Number:
    """A number as files have it, and not as Python's source may have it."""
    if "_" in word:
        raise ValueError(word)
    return convert(word)


def _culprit(words: list[str], convert: Callable[[str], float]) -> str:
    """The word that cannot be converted; looked for only when one is known to be there."""
    for word in words:
        try:
            _plain(convert, word)
        except ValueError:
            return word
    return ""


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
            if kind not in (*_NUMERIC, "{0,1}"):
                raise ValueError(f"{path}, line {number}: attribute of type {kind!r}: expected numeric or {{0,1}}")
            is_label.append(kind == "{0,1}")
        elif keyword != "@relation":
            raise ValueError(
                f"{path}, line {number}: {line[:40]!r}: expected @relation, @attribute or @data; is it an ARFF file?"
            )
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


def _stacked(path: Path, features: list[np.ndarray], labels: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    if not features:
        raise ValueError(f"{path}: has no rows: expected one per sample; get it anew")
    return np.array(features), np.array(labels)
