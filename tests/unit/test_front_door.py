"""The front door: what ``import ideal_dispatch`` offers, and what it does not import."""

import inspect
import subprocess
import sys
from datetime import datetime

import numpy as np
import pytest

import ideal_dispatch as ideal

AT = datetime.fromisoformat("2025-01-24T08:16:00+08:00")


def test_every_name_is_there_and_in_the_contents() -> None:
    contents = inspect.getdoc(ideal) or ""
    for name in dir(ideal):
        assert name == "__version__" or name in contents, f"{name} is not in the contents"
        assert getattr(ideal, name) is not None


def _python(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_importing_it_imports_nothing_large() -> None:
    _python(
        "import sys, ideal_dispatch; dir(ideal_dispatch)\n"
        "large = {'numpy', 'scipy', 'numba', 'torch', 'pandas', 'matplotlib', 'networkx'}\n"
        "assert not large & set(sys.modules), large & set(sys.modules)\n"
    )


def test_help_reads_without_the_extras() -> None:
    _python(
        "import pydoc, sys; sys.modules['torch'] = sys.modules['pandas'] = None\n"
        "import ideal_dispatch as ideal\n"
        "text = pydoc.plain(pydoc.render_doc(ideal))\n"
        "assert 'Contents, by task:' in text and 'class City' in text\n"
        "assert 'load_model' not in dir(ideal) and 'fit' in ideal.__all__\n"
    )


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="'ideal_dispatch' has no attribute 'advise'"):
        ideal.advise  # noqa: B018


def test_the_first_decision() -> None:
    city = ideal.harbour_city()
    situation = city.call(node=700, at=AT)
    decision = ideal.decide(situation, model=city.model, responses=city.responses)
    assert isinstance(decision, ideal.Decision)
    assert decision.gap is not None
    assert isinstance(decision.worth, ideal.Worth)
    assert isinstance(situation.incident, ideal.Incident)
    assert city.depots[decision.primary.station].name in decision.reason
    assert "Optimistic gap" in str(decision.explain())
    again = ideal.decide(city.call(node=700, at=AT), model=city.model, responses=city.responses)
    assert again.score_s == decision.score_s
    ways = decision.to_frame()
    assert ways["gain_s"].max() == decision.worth.gain_s == decision.score_s
    assert ways["second"].sum() == 1
    assert set(ways["depot"]) <= {depot.name for depot in city.depots}


def test_frames_of_networks_and_trips() -> None:
    pandas = pytest.importorskip("pandas", reason="the records extra is not installed")
    network = ideal.RoadNetwork.from_arrays(
        [0, 1], [1, 0], [50.0, 60.0], lon=[7.0, 7.001], lat=[43.0, 43.0], name=["Mill Lane", ""]
    )
    roads = network.to_frame()
    assert isinstance(roads, pandas.DataFrame)
    assert roads["length_m"].tolist() == [50.0, 60.0]
    assert roads["name"].tolist() == ["Mill Lane", ""]
    trips = ideal.Trips.of([ideal.Trip(0, 1, ideal.Context(at=AT), 42.0)])
    frame = trips.to_frame()
    assert frame.loc[0, ["origin", "destination", "observed_s"]].tolist() == [0, 1, 42.0]
    assert frame.loc[0, "hour"] == 8.0
    assert np.isnan(frame.loc[0, "temperature_c"])


def test_frames_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    network = ideal.RoadNetwork.from_arrays([0], [1], [50.0])
    with pytest.raises(ImportError, match=r"pip install .ideal-dispatch\[records\]"):
        network.to_frame()
