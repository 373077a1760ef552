"""A model that cannot be used keeps the service from starting, with one line that says why."""

import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from ideal_dispatch.service.solver.assets import load_assets
from safetensors.numpy import load_file, save_file

from ideal_dispatch import RoadNetwork
from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from tests.faults.service_faults import advised, codes, words
from tests.service_town import Town, application, local
from tests.unit.dispatch.worlds import random_model


@pytest.fixture
def copy(town: Town) -> Path:
    """A model directory to spoil."""
    folder = town.folder / "spoilt"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(town.folder / "model", folder)
    return folder


def refused(town: Town, why: str) -> None:
    settings = town.settings("spoilt.toml", model={"folder": "spoilt"})
    with pytest.raises(IdealError, match=why) as caught:
        load_assets(settings)
    assert "\n" not in str(caught.value)


def weights(folder: Path) -> Path:
    return next(folder.glob("*.safetensors"))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_model_file_truncated(town: Town, copy: Path, share: float) -> None:
    file = weights(copy)
    file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])
    refused(town, "truncated or damaged model|do not belong together")


def test_model_manifest_truncated(town: Town, copy: Path) -> None:
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text()[:200])
    refused(town, "truncated or damaged model")


def test_model_is_a_pickle(town: Town, copy: Path) -> None:
    """Nothing in it is run."""

    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (Path(copy / "sprung"),))  # type: ignore[return-value]

    weights(copy).write_bytes(pickle.dumps(Trap()))
    refused(town, "truncated or damaged model")
    assert not (copy / "sprung").exists()


def test_model_with_nan_weights(town: Town, copy: Path) -> None:
    tensors = load_file(weights(copy))
    name = "cross.out.weight"
    tensors[name] = np.full_like(tensors[name], np.nan)
    save_file(tensors, weights(copy))
    refused(town, re.escape(f"weight {name} is not finite: the model is unusable"))


def test_model_with_a_negative_radius(town: Town, copy: Path) -> None:
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"constant": 0.05', '"constant": -1.0'))
    refused(town, "radius constant -1.0: it must be finite and zero or more")


def test_model_names_weights_outside_its_folder(town: Town, copy: Path) -> None:
    manifest = copy / "manifest.json"
    name = weights(copy).name
    manifest.write_text(manifest.read_text().replace(name, f"../model/{name}"))
    weights(copy).unlink()
    refused(town, "is missing")


def test_model_of_another_network_says_so_with_every_advice(town: Town, grid: RoadNetwork) -> None:
    old = town.network
    other = RoadNetwork.from_arrays(old.tail, old.head, old.length_m * 2, old.lon, old.lat)
    random_model(other).save(town.folder / "other-model")
    settings = town.settings("other.toml", model={"folder": "other-model"})
    with local(application(settings)) as client:
        made = advised(client, town.call())
        assert made.decision != "no_advice"
        assert "other_network" in codes(made)


def test_gain_file_damaged(town: Town) -> None:
    (town.folder / "bad-gain.json").write_text('{"kind": "ideal-dispatch expected gain"')
    with pytest.raises(FileFormatError, match="bad-gain.json: truncated or damaged"):
        load_assets(town.settings("gain.toml", model={"gain": "bad-gain.json"}))


def test_traffic_file_damaged(town: Town, caplog: pytest.LogCaptureFixture) -> None:
    """The service starts, says what is wrong, and goes by the forecast."""
    (town.folder / "bad.traffic").write_bytes(b"PK\x03\x04 nothing")
    settings = town.settings("badtraffic.toml", traffic={"file": "bad.traffic"})
    with local(application(settings)) as client:
        made = advised(client, town.call())
        assert made.decision != "no_advice"
        assert "the file cannot be read" in words(made, "traffic_unavailable")
        health = client.get("/healthz")
        assert health.json()["status"] == "degraded"
        assert "the file cannot be read" in health.json()["parts"]["traffic"]
        assert "bad.traffic" not in health.text  # strangers read it
        for _ in range(3):
            client.solver._prepare()
    said = [record for record in caplog.records if record.message.startswith("traffic")]
    assert len(said) == 1
    assert "bad.traffic" in said[0].message
    assert said[0].exc_info is None


def test_traffic_file_missing(town: Town) -> None:
    with pytest.raises(InputError, match="none.traffic: no such file"):
        load_assets(town.settings("notraffic.toml", traffic={"file": "none.traffic"}))
