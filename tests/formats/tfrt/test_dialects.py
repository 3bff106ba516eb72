"""Names of types that upstream has changed: a file keeps those that it was written with."""

from __future__ import annotations

import numpy as np
import pytest
from darwinn_formats import tfrt
from darwinn_formats.errors import TextError
from darwinn_reference.tfrt import TfrtReference

TEXT = """
func.func @main(%x: !tfrt_tensor.tensor) -> (!tfrt_tensor.tensor, !tfrt_tensor.tensor) {
  %y = tfrt_dht.create_uninitialized_tensor.i32.1 [2 : i64]
  %c = tfrt.new.chain
  %d = tfrt_dht.fill_tensor_with_constant.i32 %y, %c 7 : i32
  tfrt.return %x, %y : !tfrt_tensor.tensor, !tfrt_tensor.tensor
}
"""
NAMES = ["!tfrt_tensor.tensor", "!t.tensor"]


@pytest.mark.parametrize(("name", "other"), [NAMES, NAMES[::-1]])
def test_a_file_keeps_the_names_of_its_time(name: str, other: str) -> None:
    text = TEXT.replace(NAMES[0], name)
    file = tfrt.from_text(text)
    data = tfrt.dump(file)
    assert name.encode() in data
    assert other.encode() not in data
    assert tfrt.load(data).functions == file.functions
    for exact in (False, True):
        printed = tfrt.to_text(file, exact=exact)
        assert name in printed
        assert other not in printed
        again = tfrt.dump(tfrt.from_text(printed, "-"))
        assert (again == data) or not exact
    assert not tfrt.diagnose(text)


@pytest.mark.parametrize("name", NAMES)
def test_tensors_of_either_name_are_arrays(name: str) -> None:
    file = tfrt.from_text(TEXT.replace(NAMES[0], name))
    given = np.arange(3, dtype=np.float32)
    outputs = TfrtReference(file).run([given])
    np.testing.assert_array_equal(outputs[0].data, given)
    np.testing.assert_array_equal(outputs[1].data, [7, 7])


@pytest.mark.parametrize("name", NAMES)
def test_errors_keep_their_columns(name: str) -> None:
    """Types get their present names behind the text, whose places are those of the file."""
    wrong = TEXT.replace(NAMES[0], name).replace("(%x: ", f"(%x: {name}, %x: ")
    with pytest.raises(TextError) as caught:
        tfrt.from_text(wrong)
    assert (caught.value.line, caught.value.column) == (2, wrong.split("\n")[1].index("{") + 1)
