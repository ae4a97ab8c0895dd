import bz2

import numpy as np
import pytest

from cdfsg.datasets import mediamill_files
from cdfsg.datasets.mediamill_files import read_text

SVM = "3,0 1:0.5 4:-2e-1\n1:1 2:0.25\n2 \n"
ARFF = """% a comment
@relation 'toy: -C 2'

@attribute a numeric
@attribute 'b c' REAL
@attribute d numeric
@attribute e numeric
@ATTRIBUTE v {0,1}
@attribute w { 0, 1 }
@attribute 'x y'{0,1}
@attribute y {0,1}
@attribute z {0,1}
@data
0.5,0,0,-0.2,1,0,0,1,0

% another
1,0.25,0,0,0,0,0,0,0
0,0,0,0,0,0,1,0,0
"""
SPARSE = ARFF.partition("0.5,")[0] + """{0 0.5, 3 -0.2, 4 1,7 1}

% another
{0 1, 1 0.25}
{ 6 1 }
"""
DATA = np.float32([[0.5, 0, 0, -0.2, 1, 0, 0, 1, 0], [1, 0.25, *[0] * 7], [*[0] * 6, 1, 0, 0]])


@pytest.fixture
def small(monkeypatch):
    """Four features and five labels."""
    for name, value in {"FEATURES": 4, "LABELS": 5, "ROWS": 3}.items():
        monkeypatch.setattr(mediamill_files, name, value)


@pytest.mark.parametrize(
    "name, content",
    [("x.svm", SVM.encode()), ("x.svm.bz2", bz2.compress(SVM.encode())), ("x.arff", ARFF.encode()),
     ("x.arff", SPARSE.encode())],
)
def test_a_text_file_gives_the_features_and_then_the_labels(small, name, content):
    found = read_text(name, content)
    np.testing.assert_array_equal(found, DATA)
    assert found.dtype == np.float32


def test_arff_attributes_may_come_in_any_order(small):
    lines = [*["@attribute y {0,1}"] * 5, *["@attribute a numeric"] * 4, "@data", "1,0,0,1,0,0.5,0,0,-0.2"]
    np.testing.assert_array_equal(read_text("x.arff", "\n".join(lines).encode()), DATA[:1])


ROWS = {
    "x.svm": ["5 1:1", "-1 1:1", "0.5 1:1", "nan 1:1", "cat 1:1", "1 0:1", "1 5:1", "1 2:1 1:1", "1 2:x", "1 2:nan",
              "1 2:1e39", "1 2:1:1", "9223372036854775808 1:1", "1 9223372036854775808:1"],
    "x.arff": ["0.5,1,0", "0.5,x,0,0,1,0,0,0,0", "0.5,inf,0,0,1,0,0,0,0", "1e39,0,0,0,1,0,0,0,0", "0,0,0,0,2,0,0,0,0",
               "{0 1}"],
    "sparse.arff": ["{0 1, 9 1}", "{-1 1}", "{0 1, 1}", "{0 1", "{0.5 1}", "{1 1, 0 1}", "0,0,0,0,1,0,0,0,0"],
}  # fmt: skip


@pytest.mark.parametrize("name, row", [(name, row) for name in ROWS for row in ROWS[name]])
def test_a_malformed_row_is_refused_with_the_name_of_the_file(small, name, row):
    valid = {"x.svm": SVM, "x.arff": ARFF, "sparse.arff": SPARSE}[name].splitlines()[:-1]
    assert len(read_text(name, "\n".join(valid).encode())) == 2
    with pytest.raises(ValueError, match=rf"^{name}: .*expected a file of LIBSVM's .*get it anew"):
        read_text(name, "\n".join([*valid, row]).encode())


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.svm.bz2", b"\xff\xfe\x00"),
        ("x.svm.bz2", bz2.compress(SVM.encode() * 1000)[:-20]),
        ("x.svm", b"\xff\xfe\x00"),
        ("x.arff", b"\xff\xfe\x00"),
        ("x.arff", ARFF.split("@data")[0].encode()),
        ("x.svm", b"1 1:1\n" * 100),
        *(("x.arff", ARFF.replace(*change, 1).encode())
          for change in (("a numeric", "a string"), ("a numeric", "a {0,1,2}"), ("a numeric", "a {0,1}"),
                         ("@data", "@date"))),
    ],
)  # fmt: skip
def test_a_file_that_is_no_such_table_is_refused_by_its_name(small, name, content):
    with pytest.raises(ValueError, match=rf"^{name}: .*get it anew"):
        read_text(name, content)
