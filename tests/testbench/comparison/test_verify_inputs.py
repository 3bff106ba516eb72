"""Input tensors: any form of file arrives in the port's dtype and shape, or is refused by name."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from darwinn_testbench.chip.inputs import TensorPort, input_sets, random_inputs, read_inputs
from darwinn_testbench.errors import InputError
from PIL import Image

IMAGE = TensorPort("image", (1, 4, 6, 3), np.dtype(np.uint8), 0.5, 128)
STATE = TensorPort("state", (1, 20), np.dtype(np.int8), 0.25, -3)


def test_random_inputs_repeat_with_their_seed() -> None:
    first, second = (random_inputs([IMAGE, STATE], 7, 2) for _ in range(2))
    other = random_inputs([IMAGE, STATE], 8, 2)
    for a, b, c in zip(first, second, other, strict=True):
        np.testing.assert_array_equal(a["image"], b["image"])
        assert (a["image"] != c["image"]).any()
    assert (first[0]["image"] != first[1]["image"]).any()
    assert first[0]["state"].dtype == np.int8
    assert first[0]["state"].shape == (1, 20)


def test_any_number_of_random_sets_takes_the_memory_of_one() -> None:
    sets = random_inputs([IMAGE], 7, 1_000_000_000)
    assert len(sets) == 1_000_000_000
    third = list(itertools.islice(sets, 3))[2]
    np.testing.assert_array_equal(third["image"], sets[2]["image"])
    assert len(random_inputs([IMAGE], 7, 5)[1:4]) == 3
    with pytest.raises(IndexError):
        random_inputs([IMAGE], 7, 2)[2]


def test_data_in_another_order_of_dimensions_is_refused(tmp_path: Path) -> None:
    for shape in ((3, 4, 6), (1, 6, 4, 3)):
        np.save(tmp_path / "image.npy", np.zeros(shape, np.uint8))
        with pytest.raises(InputError, match="in another order"):
            read_inputs([tmp_path / "image.npy"], [IMAGE])


def test_an_array_of_holes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "image.npy"
    np.lib.format.open_memmap(path, "w+", np.uint8, (1 << 31,)).flush()
    with pytest.raises(InputError, match="holds 2147483648 bytes"):
        read_inputs([path], [IMAGE])


def test_npy_takes_the_ports_in_order(tmp_path: Path) -> None:
    image = np.arange(72, dtype=np.uint8).reshape(4, 6, 3)
    state = np.arange(20, dtype=np.int8)
    np.save(tmp_path / "a.npy", image)
    np.save(tmp_path / "b.npy", state)
    (inputs,) = read_inputs([tmp_path / "a.npy", tmp_path / "b.npy"], [IMAGE, STATE])
    np.testing.assert_array_equal(inputs["image"], image[None])
    np.testing.assert_array_equal(inputs["state"], state[None])


def test_npz_goes_by_name_and_leading_dimension_is_several_sets(tmp_path: Path) -> None:
    states = np.arange(60, dtype=np.int8).reshape(3, 20)
    images = np.zeros((3, 1, 4, 6, 3), np.uint8)
    np.savez(tmp_path / "all.npz", state=states, image=images)
    sets = read_inputs([tmp_path / "all.npz"], [IMAGE, STATE])
    assert len(sets) == 3
    np.testing.assert_array_equal(sets[2]["state"], states[2:])


def test_named_specifications_may_come_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "state.bin").write_bytes(bytes(range(20)))
    (tmp_path / "image.bin").write_bytes(bytes(72))
    (inputs,) = read_inputs(
        [f"state={tmp_path / 'state.bin'}", f"image={tmp_path / 'image.bin'}"], [IMAGE, STATE]
    )
    np.testing.assert_array_equal(inputs["state"], np.arange(20, dtype=np.int8)[None])


def test_image_is_scaled_and_converted(tmp_path: Path) -> None:
    Image.new("RGB", (60, 40), (10, 20, 30)).save(tmp_path / "picture.png")
    (inputs,) = read_inputs([tmp_path / "picture.png"], [IMAGE])
    np.testing.assert_array_equal(inputs["image"], np.broadcast_to([10, 20, 30], (1, 4, 6, 3)))
    signed = TensorPort("grey", (1, 4, 4, 1), np.dtype(np.int8))
    Image.new("L", (4, 4), 130).save(tmp_path / "grey.png")
    (inputs,) = read_inputs([tmp_path / "grey.png"], [signed])
    assert (inputs["grey"] == 2).all()


def test_float_data_is_quantised_and_saturates() -> None:
    values = np.zeros(20, np.float32)
    values[:3] = [1.0, -1000.0, 1000.0]
    (inputs,) = input_sets({"state": values}, [STATE])
    assert inputs["state"][0, :4].tolist() == [1, -128, 127, -3]


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros(21, np.int8), "shape 21"),
        (np.zeros((0, 20), np.int8), "shape 0x20"),
        (np.full(20, 200, np.int64), "do not fit int8"),
        (np.full(20, np.nan), "NaN"),
        (np.zeros(20, complex), "cannot be used"),
    ],
)
def test_data_that_does_not_fit_is_refused(array: np.ndarray, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        input_sets({"state": array}, [STATE])


def test_missing_and_unknown_inputs_are_named() -> None:
    with pytest.raises(InputError, match="no data for image"):
        input_sets({"state": np.zeros(20, np.int8)}, [IMAGE, STATE])
    with pytest.raises(InputError, match="no input other"):
        input_sets({"state": np.zeros(20, np.int8), "other": np.zeros(1)}, [STATE])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.npy", b"\x93NUMPY\x01\x00"),
        ("broken.npz", b"PK\x03\x04rest"),
        ("empty.npy", b""),
        ("header.npy", b"\x93NUMPY\x01\x00\x28\x23" + b"(" * 9000),
        ("broken.png", b"\x89PNG\r\n\x1a\n"),
        ("short.raw", b"123"),
        ("empty.raw", b""),
    ],
)
def test_unreadable_files_are_input_errors(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        read_inputs([tmp_path / name], [IMAGE])


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"objects\.npy"):
        read_inputs([tmp_path / "objects.npy"], [STATE])
