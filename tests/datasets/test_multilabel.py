import bz2

import numpy as np
import pytest

from cdfsg.datasets.multilabel import read_arff, read_svm

SVM = "3,0 1:0.5 4:-2e-1\n1:1 2:0.25\n2 \n"
ARFF = """% a comment
@relation 'toy: -C 2'

@attribute a numeric
@attribute 'b' REAL
@ATTRIBUTE y {0,1}
@attribute z { 0, 1 }
@data
0.5,-0.2,0,1

% another
{1 0.25, 2 1}
{}
"""


CUT = bz2.compress(SVM.encode() * 1000)[:-20]


def written(path, text):
    path.write_bytes(bz2.compress(text.encode()) if path.suffix == ".bz2" else text.encode())
    return path


@pytest.mark.parametrize("name", ["x.svm", "x.svm.bz2"])
def test_a_libsvm_file_gives_dense_features_and_labels_packed_or_not(tmp_path, name):
    features, labels = read_svm(written(tmp_path / name, SVM), 4, 5)
    np.testing.assert_array_equal(features, np.float32([[0.5, 0, 0, -0.2], [1, 0.25, 0, 0], [0, 0, 0, 0]]))
    np.testing.assert_array_equal(labels, [[1, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0]])
    assert features.dtype == np.float32 and labels.dtype == np.uint8


@pytest.mark.parametrize(
    "line, found",
    [
        ("5 1:1", "label 5 is out of range"),
        ("cat 1:1", "label 'cat' is not a whole number"),
        ("1 0:1", "index 0 is out of range"),
        ("1 2:1 1:1", "the indices do not ascend"),
        ("1 2:x", "value 'x' is not a number"),
        ("1 2:nan", "value 'nan' is not a finite float32"),
        ("1 2:1:1", "'2:1:1' is not index:value"),
        ("9223372036854775808 1:1", "label 9223372036854775808 is out of range"),
        ("1 9223372036854775808:1", "index 9223372036854775808 is out of range"),
        ("0_1 1:1", "label '0_1' is not a whole number"),
        ("1 2:1_0", "value '1_0' is not a number"),
    ],
)
def test_a_malformed_libsvm_line_is_named_with_what_was_expected(tmp_path, line, found):
    path = written(tmp_path / "x.svm", f"{SVM}{line}\n{SVM}")
    with pytest.raises(ValueError) as caught:
        read_svm(path, 4, 5)
    expected = "expected 'label,label index:value index:value ...' with labels in 0..4 and ascending indices in 1..4"
    assert str(caught.value) == f"{path}, line 4: {found}: {expected}"


@pytest.mark.parametrize(
    "read, name, content, found",
    [
        (read_svm, "x.svm", b"", "has no rows"),
        (read_arff, "x.arff", ARFF.split("0.5,")[0].encode(), "has no rows"),
        (read_arff, "x.arff", ARFF.split("@data")[0].encode(), "ends before @data"),
        (read_svm, "x.svm", b"\xff\xfe\x00", "after line 0: cannot be read any further"),
        (read_svm, "x.svm.bz2", b"\xff\xfe\x00", "after line 0: cannot be read any further"),
        (read_svm, "x.svm.bz2", CUT, r"after line \d+: .*a complete text file packed"),
        (read_svm, "x.svm", b"1" * 1601, "line 1: more than 1600 characters: expected 9 values at most"),
        *((read_svm, "x.svm", f"0 1:1\n0{sign} 1:1\n".encode(), "line 2: a control character: expected plain text")
          for sign in "\f\v\x00\x1c"),
    ],
)  # fmt: skip
def test_a_file_that_is_empty_cut_off_absurd_or_no_text_is_refused_by_name(tmp_path, read, name, content, found):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}.*{found}"):
        read(tmp_path / name, *((4, 5) if read is read_svm else (2, 2)))


def test_an_arff_file_gives_numeric_attributes_as_features_and_binary_ones_as_labels_in_any_order(tmp_path):
    features, labels = read_arff(written(tmp_path / "x.arff", ARFF), 2, 2)
    np.testing.assert_array_equal(features, np.float32([[0.5, -0.2], [0, 0.25], [0, 0]]))
    np.testing.assert_array_equal(labels, [[0, 1], [1, 0], [0, 0]])
    assert features.dtype == np.float32 and labels.dtype == np.uint8
    turned = "@relation r\n@attribute y {0,1}\n@attribute a numeric\n@data\n1,0.5\n"
    features, labels = read_arff(written(tmp_path / "y.arff", turned), 1, 1)
    assert features.tolist() == [[0.5]] and labels.tolist() == [[1]]


@pytest.mark.parametrize(
    "row, found",
    [
        ("0.5,1,0", "3 values"),
        ("0.5,x,0,1", "value 'x' is not a number"),
        ("0.5,inf,0,1", "value 'inf' is not a finite float32"),
        ("0.5,1,2,1", "label 2"),
        ("{0 1, 4 1}", "position 4 is out of range"),
        ("{0 1, 1}", "not all entries are 'position value'"),
        ("{0 1", "no closing brace"),
        ("{0 1, 0 2}", "a position is there twice"),
    ],
)
def test_a_malformed_arff_row_is_named_with_what_was_expected(tmp_path, row, found):
    path = written(tmp_path / "x.arff", ARFF + row + "\n")
    with pytest.raises(ValueError) as caught:
        read_arff(path, 2, 2)
    assert str(caught.value).startswith(f"{path}, line 14: {found}: expected 4 numbers separated by commas, or pairs")


@pytest.mark.parametrize(
    "old, new, found",
    [
        ("a numeric", "a string", "line 4: attribute of type 'string': expected numeric or {0,1}"),
        ("a numeric", "a {0,1,2}", "line 4: attribute of type '{0,1,2}': expected numeric or {0,1}"),
        ("@data", "@date", "line 8: '@date': expected @relation, @attribute or @data"),
        ("@relation", "relation", "line 2: \"relation 'toy: -C 2'\": expected @relation"),
        ("a numeric", "a {0,1}", "declares 1 numeric and 3 {0,1} attributes: expected 2 and 2"),
    ],
)
def test_a_header_that_does_not_declare_the_data_is_refused(tmp_path, old, new, found):
    with pytest.raises(ValueError) as caught:
        read_arff(written(tmp_path / "x.arff", ARFF.replace(old, new, 1)), 2, 2)
    assert found in str(caught.value) and str(tmp_path / "x.arff") in str(caught.value)


@pytest.mark.parametrize(
    "read, name, text, sizes", [(read_svm, "x.svm", SVM, (4, 5)), (read_arff, "x.arff", ARFF, (2, 2))]
)
def test_a_file_may_have_as_many_rows_as_are_known_and_not_one_more(tmp_path, read, name, text, sizes):
    path = written(tmp_path / name, text)
    assert len(read(path, *sizes, most_rows=3)[0]) == 3
    with pytest.raises(ValueError, match=r"line \d+: row 3: expected 2 at most"):
        read(path, *sizes, most_rows=2)
