"""Data sets from files: the same numbers from every format, every mistake with its file, row and column."""

import jax.numpy as jnp
import numpy as np
import pytest

from wideflow.problems.tables import read_dataset

X = np.array([[0.5, 1.0], [-1.5, 2.0], [2.25, -4.0], [0.0, 8.0]])
Y = np.array([1, 0, 2, 1])
MASS = np.array([1.0, 2.0, 0.5, 4.0])


def as_csv(path, columns):
    names = list(columns)
    rows = [",".join(names), *[",".join(str(columns[n][i]) for n in names) for i in range(len(Y))]]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def as_npz(path, columns):
    np.savez(path, **columns)


def as_parquet(path, columns):
    pyarrow = pytest.importorskip(
        "pyarrow", reason="Parquet files need pyarrow: pip install 'wideflow[parquet]'"
    )
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(columns), path)


WRITERS = {"csv": as_csv, "npz": as_npz, "parquet": as_parquet}


@pytest.fixture(params=WRITERS)
def table(request, tmp_path):
    """The same table in one of the formats."""
    path = tmp_path / f"rows.{request.param}"
    WRITERS[request.param](path, {"p": X[:, 0], "y": Y, "q": X[:, 1], "m": MASS})
    return path


def csv(tmp_path, text, name="rows.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_features_are_all_other_columns_in_their_order(table):
    data = read_dataset(table, weights="m")
    np.testing.assert_array_equal(data.x, X)
    np.testing.assert_array_equal(data.y, Y)
    np.testing.assert_allclose(data.weights, MASS / MASS.sum(), rtol=1e-15)  # one division of doubles
    assert data.x.dtype == jnp.float64


def test_whole_labels_stay_whole_and_others_do_not(table):
    assert jnp.issubdtype(read_dataset(table).y.dtype, jnp.integer)
    assert read_dataset(table, target="p").y.dtype == jnp.float64


def test_named_columns_in_the_order_of_their_names(table):
    data = read_dataset(table, ["q", "p"])
    np.testing.assert_array_equal(data.x, X[:, ::-1])
    assert data.equal


def test_several_targets_are_several_labels_a_row(table):
    data = read_dataset(table, ["q"], target=["y", "p"])
    np.testing.assert_array_equal(data.y, np.column_stack([Y, X[:, 0]]))
    assert data.y.dtype == jnp.float64


@pytest.mark.parametrize("weights", [None, "m"])
def test_standardised_features_have_mean_0_and_deviation_1(table, weights):
    """Under the weights, and each is a line of its old values: the correlation with them is 1."""
    data = read_dataset(table, ["p", "q"], weights=weights, standardise=True)
    x, mass = np.asarray(data.x), np.asarray(data.weights)
    np.testing.assert_allclose(mass @ x, 0, atol=1e-15)  # sums of four numbers of order 1
    np.testing.assert_allclose(mass @ x**2, 1, rtol=1e-14)
    for new, old in zip(x.T, X.T, strict=True):
        assert np.corrcoef(new, old)[0, 1] == pytest.approx(1, abs=1e-14)
    np.testing.assert_array_equal(data.y, Y)


def test_a_file_says_the_same_as_arrays(tmp_path):
    """In an NPZ file a matrix is its columns, and its name stands for all of them."""
    path = tmp_path / "rows.npz"
    np.savez(path, X=X, y=Y, z=np.column_stack([X, X**2]))
    np.testing.assert_array_equal(read_dataset(path, ["X"]).x, X)
    np.testing.assert_array_equal(read_dataset(path, ["X2", "X1"]).x, X[:, ::-1])
    np.testing.assert_array_equal(read_dataset(path, ["X1"], target="z").y, np.column_stack([X, X**2]))
    np.testing.assert_array_equal(read_dataset(path).x, np.column_stack([X, X, X**2]))


def test_a_column_that_is_not_used_may_hold_anything(tmp_path):
    path = csv(tmp_path, "name,p,y\nred,1,2\n,3,4\n")
    np.testing.assert_array_equal(read_dataset(path, ["p"]).x, [[1], [3]])
    with pytest.raises(ValueError, match=r"column 'name' holds text \('red'\).*`features`"):
        read_dataset(path, missing="mean")


def test_true_and_false_are_1_and_0(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, x=X[:, 0], y=Y > 0)
    y = read_dataset(path).y
    np.testing.assert_array_equal(y, [1, 0, 1, 1])
    assert jnp.issubdtype(y.dtype, jnp.integer)


def test_spaces_quotes_signs_and_the_mark_of_a_spreadsheet(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes('\ufeff p , y\r\n+1.5, -1\r\n\r\n"2e3", 1\r\n'.encode())
    data = read_dataset(path)
    np.testing.assert_array_equal(data.x, [[1.5], [2000.0]])
    np.testing.assert_array_equal(data.y, [-1, 1])


def test_whole_numbers_too_long_for_an_integer_are_still_numbers(tmp_path):
    """Such as the long identifiers of rows: no overflow, no change of sign."""
    data = read_dataset(csv(tmp_path, f"id,y\n{10**30},1\n{10**19},2\n"))
    np.testing.assert_allclose(data.x[:, 0], [1e30, 1e19], rtol=1e-15)


# What the file holds, what is asked of it, and words of the answer beside the file's name.
WRONG = {
    "text": ("p,y\n1,2\n3,4\nred,5\n", {}, ["row 4", "column 'p'", "'red' is not a number"]),
    "text below an empty line": ("p,y\n1,2\n\nred,5\n", {}, ["row 4", "column 'p'"]),
    "an empty cell": ("p,y\n1,2\n3,\n", {}, ["1 of 2 rows has a missing value", "row 3, column 'y'"]),
    "a short row": ("p,q,y\n1,2,3\n1,2\n", {}, ["row 3", "2 values for 3 columns"]),
    "a long row below an empty line": ("p,y\n\n1,2,3\n", {}, ["row 3", "3 values for 2 columns"]),
    "nothing": ("", {}, ["a first line with the names", "rows below it"]),
    "names alone": ("p,y\n", {}, ["rows below it"]),
    "a name twice": ("p,y,p\n1,2,3\n", {}, ["name each column once", "p, y, p"]),
    "a column without a name": ("p,,y\n1,2,3\n", {}, ["name each column once"]),
    "no such feature": ("speed,y\n1,2\n", {"features": ["spede"]}, ["'spede'", "Did you mean 'speed'?"]),
    "no such target": ("p,label\n1,2\n", {"target": "lable"}, ["'lable'", "Did you mean 'label'?"]),
    "no such weights": ("p,y,mass\n1,2,3\n", {"weights": "mess"}, ["'mess'", "Did you mean 'mass'?"]),
    "no feature left": ("y\n1\n", {}, ["no column beside y"]),
    "no target": ("p,y\n1,2\n", {"target": []}, ["target"]),
    "feature and target": ("p,y\n1,2\n", {"features": ["p", "y"]}, ["'y'", "both a feature and a target"]),
    "nan": ("p,q,y\n1,2,1\n1,nan,2\n", {}, ["row 3, column 'q'", "missing"]),
    "inf": ("p,y\n1,2\n1,inf\n", {}, ["row 3", "column 'y'", "inf"]),
    "nan, standardised": ("p,y\n1,1\nnan,2\n", {"standardise": True}, ["row 3, column 'p'", "missing"]),
    "weights nan": ("p,y,m\n1,1,1\n2,2,nan\n", {"weights": "m"}, ["row 3, column 'm'", "missing"]),
    "several": (
        "p,q,y\n1,2,1\n,2,2\nNA,,2\n3,?,\n",
        {},
        ["3 of 4 rows have missing values (2 in 'p', 2 in 'q', 1 in 'y'", 'missing = "drop"', '"mean"'],
    ),
    "nothing but missing": ("p,y\n,1\n,2\n", {"missing": "mean"}, ["column 'p'", "no value in any row"]),
    "no row is whole": ("p,y\n,1\n1,\n", {"missing": "drop"}, ["all of its 2 rows"]),
    "text in a feature": ("p,c,y\n1,red,1\n2,blue,2\n", {}, ["'c' holds text ('red', 'blue')", "`features`"]),
    "one text in the target": ("p,y\n1,1\n2,red\n", {}, ["row 3, column 'y'", "'red' is not a number"]),
    "names, standardised": ("p,y\n1,a\n2,b\n", {"standardise_target": True}, ["'y' holds names", "'a', 'b'"]),
    "names of two": ("p,y,z\n1,a,1\n2,b,2\n", {"target": ["y", "z"]}, ["'y' holds names", "several targets"]),
    "another word": ("p,y\n1,2\n", {"missing": "dorp"}, ["missing must be", "Did you mean 'drop'?"]),
    "constant": ("p,q,y\n1,3,1\n2,3,2\n", {"standardise": True}, ["column 'q'", "constant"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_told_with_its_place(tmp_path, name):
    text, asked, words = WRONG[name]
    path = csv(tmp_path, text)
    with pytest.raises(ValueError) as caught:
        read_dataset(path, **asked)
    for word in (*words, *([str(path)] if name != "another word" else [])):
        assert word in str(caught.value)


@pytest.fixture(params=WRITERS)
def holes(request, tmp_path):
    """A table with names for labels, a hole in each of three rows, in one of the formats."""
    path = tmp_path / f"holes.{request.param}"
    nan, none = float("nan"), None
    columns = {
        "p": np.array([1.0, nan, 3.0, 5.0, 9.0]),
        "q": np.array([0.0, 2.0, 4.0, nan, 6.0]),
        "y": np.array(["cat", "dog", "", "ant", "cat"]),
        "m": np.array([1.0, 1.0, 1.0, 1.0, 2.0]),
    }
    if request.param == "csv":
        rows = zip(*(map(str, column) for column in columns.values()), strict=True)
        text = "\n".join([",".join(columns), *map(",".join, rows)]).replace("nan", "")
        path.write_text(text, encoding="utf-8")
    else:
        if request.param == "parquet":
            columns["y"] = [text or none for text in columns["y"]]
        WRITERS[request.param](path, columns)
    return path


def test_names_are_classes_in_the_order_of_the_alphabet(holes):
    """Rows 1 and 5 are whole: cat, cat; all but the third have a label: cat, dog, ant, cat."""
    data = read_dataset(holes, ["p", "q"], missing="mean")
    assert data.classes == ("ant", "cat", "dog")
    np.testing.assert_array_equal(data.y, [1, 2, 0, 1])
    assert jnp.issubdtype(data.y.dtype, jnp.integer)
    assert read_dataset(holes, ["p", "q"], missing="drop").classes == ("cat",)


def test_rows_with_holes_are_refused_counted_and_left_out(holes):
    with pytest.raises(ValueError, match=r"3 of 5 rows have missing values"):
        read_dataset(holes, ["p", "q"])
    data = read_dataset(holes, ["p", "q"], missing="drop")
    np.testing.assert_array_equal(data.x, [[1, 0], [9, 6]])
    assert data.notes == ("3 of 5 rows with missing values were left out",)
    np.testing.assert_array_equal(read_dataset(holes, ["m"], target="q", missing="drop").y, [0, 2, 4, 6])


def test_holes_get_the_mean_of_their_column(holes):
    """p has 1, 5, 9 where there is a label, and q 0, 2, 6; weighted by 1, 1, 2 and 1, 1, 2."""
    data = read_dataset(holes, ["p", "q"], missing="mean")
    np.testing.assert_allclose(data.x, [[1, 0], [5, 2], [5, 8 / 3], [9, 6]], rtol=1e-15)
    assert data.notes[0].startswith("1 of 5 rows") and data.notes[1].startswith(
        "2 missing values were replaced"
    )
    weighted = read_dataset(holes, ["p", "q"], weights="m", missing="mean")
    np.testing.assert_allclose(weighted.x[1:3], [[24 / 4, 2], [5, 14 / 4]], rtol=1e-15)


def test_whole_numbers_with_nulls_stay_whole(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    columns = {
        "x": [1.5, None, 2.5],
        "y": pyarrow.array([3, 1, None]),
        "b": pyarrow.array([True, None, False]),
    }
    category = pyarrow.array(["u", "v", "u"]).dictionary_encode()
    parquet.write_table(pyarrow.table(columns | {"c": category}), path)
    assert jnp.issubdtype(read_dataset(path, ["x"], missing="drop").y.dtype, jnp.integer)
    np.testing.assert_array_equal(read_dataset(path, ["x"], target="b", missing="drop").y, [1, 0])
    assert read_dataset(path, ["x"], target="c", missing="drop").classes == ("u",)


def test_a_weight_below_0_is_told(tmp_path):
    path = csv(tmp_path, "p,y,m\n1,1,1\n2,2,-0.5\n")
    for standardise in (False, True):
        with pytest.raises(ValueError, match=r"weights.*>= 0.*least entry -0.5"):
            read_dataset(path, weights="m", standardise=standardise)


def test_a_missing_file_lists_its_neighbours(tmp_path):
    csv(tmp_path, "p,y\n1,2\n", "data.csv")
    with pytest.raises(ValueError, match=r"no file .*dta\.csv.*there is data\.csv"):
        read_dataset(tmp_path / "dta.csv")
    with pytest.raises(ValueError, match=r"no file .*nowhere"):
        read_dataset(tmp_path / "nowhere" / "data.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"folder\.csv must be a plain file, but is a folder"):
        read_dataset(tmp_path / "folder.csv")


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.csv.gz"])
def test_another_kind_of_file_is_refused_with_those_that_are_read(tmp_path, name):
    (tmp_path / name).write_bytes(b"p,y\n1,2\n")
    with pytest.raises(ValueError, match=r"\.csv, \.npz, \.parquet") as caught:
        read_dataset(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_bytes_that_are_no_table(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(b"PK\x03\x04\xff\xfe\x00 no table \x00\xff")
    with pytest.raises(ValueError, match=r"rows\.\w+ is not an? \w+ file"):
        read_dataset(path)


ARRAYS = {
    "objects": ({"x": np.array(["a", "b"]), "y": np.ones(2)}, ["'x'", "holds text ('a', 'b')"]),
    "a cube": ({"x": np.ones((2, 2, 2)), "y": np.ones(2)}, ["'x'", "(2, 2, 2)"]),
    "other lengths": ({"x": np.ones(3), "y": np.ones(2)}, ["same number of rows", "[2, 3]"]),
    "no rows": ({"x": np.ones((0, 2)), "y": np.ones(0)}, ["no rows"]),
    "no arrays": ({}, ["no rows"]),
    "two of a name": ({"x": np.ones((2, 2)), "x1": np.ones(2), "y": np.ones(2)}, ["'x1'", "two"]),
    "nan": ({"x": np.array([[1, 2], [3, np.nan]]), "y": np.ones(2)}, ["row 2, column 'x2'", "missing"]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_no_table(tmp_path, name):
    arrays, words = ARRAYS[name]
    path = tmp_path / "rows.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError) as caught:
        read_dataset(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_weights_are_one_column(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, x=X, y=Y, m=np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"weights.*one column.*m1, m2"):
        read_dataset(path, ["x"], weights="m")


def test_code_in_a_file_is_not_run(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, x=np.array([{"a": 1}, None], dtype=object), y=np.ones(2))
    with pytest.raises(ValueError, match=r"rows\.npz is not an NPZ file of plain arrays"):
        read_dataset(path)
