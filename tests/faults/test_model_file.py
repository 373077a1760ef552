"""A model that cannot be used keeps the service from starting, with one line that says why."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.service.deciding.assets import load_assets
from tests.service_town import Town, application, codes, local, with_radius
from tests.unit.dispatch.worlds import random_model


def weights(folder: Path) -> Path:
    return next(folder.glob("*.safetensors"))


def cut(name: str, share: float) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        file = next(folder.glob(name))
        file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])

    return spoil


def manifest(old: str, new: str) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        file = folder / "manifest.json"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return spoil


class Trap:
    """Its pickle makes a file where it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("sprung"),))  # type: ignore[return-value]


def pickled(folder: Path) -> None:
    weights(folder).write_bytes(pickle.dumps(Trap()))


def not_finite(folder: Path) -> None:
    tensors = load_file(weights(folder))
    tensors["cross.out.weight"] = np.full_like(tensors["cross.out.weight"], np.nan)
    save_file(tensors, weights(folder))


def outside(folder: Path) -> None:
    name = weights(folder).name
    manifest(name, f"../model/{name}")(folder)
    weights(folder).unlink()


@pytest.mark.parametrize(
    "spoil",
    [
        *(cut("*.safetensors", share) for share in (0.0, 0.1, 0.5, 0.99)),
        cut("manifest.json", 0.3), manifest('"constant": 0.05', '"constant": -1.0'),
        pickled, not_finite, outside,
    ],
)  # fmt: skip
def test_a_damaged_model(
    town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = town.folder / "spoilt"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(town.folder / "model", folder)
    spoil(folder)
    with pytest.raises(IdealError) as caught:
        load_assets(town.settings("spoilt.toml", model={"folder": "spoilt"}))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "sprung").exists()


def test_model_of_another_network_says_so_with_every_advice(town: Town) -> None:
    old = town.network
    other = RoadNetwork.from_arrays(old.tail, old.head, old.length_m * 2, old.lon, old.lat)
    random_model(other).save(town.folder / "other-model")
    settings = town.settings("other.toml", model={"folder": "other-model"})
    with local(application(settings)) as client:
        client.report()
        made = client.advice(town.call())
        assert made["decision"] != "no_advice"
        assert "other_network" in codes(made)


@pytest.mark.parametrize("radius", [0.0, 1e-12, 5.0, 500.0])
def test_radius_zero_or_huge(town: Town, radius: float) -> None:
    with_radius(random_model(town.network), radius).save(town.folder / "radius-model")
    settings = town.settings("radius.toml", model={"folder": "radius-model"})
    with local(application(settings)) as client:
        client.report()
        made = client.advice(town.call(f"r{radius}"))
        assert made["decision"] != "no_advice"
        if radius == 0.0:
            assert made["why"]["gap"]["status"] == "exact"


@pytest.mark.parametrize(
    ("tables", "file"),
    [
        ({"model": {"responses": "bad-file"}}, "bad-file"),
        ({"traffic": {"file": "bad-file"}}, "bad-file"),
        ({"traffic": {"file": "no-file"}}, "no-file"),
    ],
)
def test_other_files_that_cannot_be_read(
    town: Town, tables: dict[str, dict[str, str]], file: str
) -> None:
    (town.folder / "bad-file").write_text('{"kind": "ideal-dispatch')
    with pytest.raises((FileFormatError, InputError), match=file):
        load_assets(town.settings("files.toml", **tables))
