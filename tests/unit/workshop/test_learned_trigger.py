"""A trigger: the same forest wherever it is grown, and nothing executed from its file."""

import math
from pathlib import Path

import numpy as np
import pytest

from ideal_dispatch import RoadNetwork
from ideal_dispatch.arrays import FloatArray
from ideal_dispatch.dispatch import Policy, Situation
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import InputError
from tests.contracts.policy import PolicyContract
from tests.unit.dispatch.worlds import situation
from workshop.learned_trigger import LearnedTrigger, Trigger, fit_trigger
from workshop.policies import ROUTER_FEATURES, router_features


def _calls(n: int = 300, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Differences near the second feature, which is sometimes unknown."""
    rng = np.random.default_rng(seed)
    features = rng.normal(0.0, 60.0, (n, 3))
    differences = features[:, 1] + rng.normal(0.0, 10.0, n)
    features[:: n // 20, 2] = np.nan
    return features, differences


def test_it_predicts_what_is_saved() -> None:
    trigger = fit_trigger(*_calls(), seed=1, names=("a", "b", "c"))
    features, differences = _calls(seed=7)
    predicted, saved = trigger.predict(features), np.maximum(differences, 0.0)
    assert (predicted >= 0).all()
    assert np.abs(predicted - saved).mean() < 0.4 * np.abs(saved - saved.mean()).mean()
    assert repr(trigger) == "Trigger(300 calls, 3 features)"


def test_loaded_it_says_the_same(tmp_path: Path) -> None:
    features, differences = _calls()
    trigger = fit_trigger(features, differences, seed=1, names=("a", "b", "c"))
    trigger.save(tmp_path / "a.trigger")
    again = Trigger.load(tmp_path / "a.trigger")
    assert again.names == ("a", "b", "c")
    np.testing.assert_array_equal(again.predict(features), trigger.predict(features))
    again.save(tmp_path / "b.trigger")
    assert (tmp_path / "a.trigger").read_bytes() == (tmp_path / "b.trigger").read_bytes()
    other = fit_trigger(features, differences, seed=2)
    assert not np.array_equal(other.predict(features), trigger.predict(features))


@pytest.fixture
def three(grid: RoadNetwork) -> Situation:
    return situation(grid, 65, (2, 2, 2))


class Slope:
    """A regressor that was fitted by hand: the lead of the second quote."""

    def predict(self, rows: FloatArray, /) -> FloatArray:
        lead: FloatArray = -np.asarray(rows)[:, 2]
        return lead


class TestLearnedTrigger(PolicyContract):
    @pytest.fixture
    def policy(self) -> Policy:
        return LearnedTrigger(Slope())


class Fitted:
    """A regressor that keeps what it was asked."""

    def __init__(self, answer: float) -> None:
        self.answer = answer

    def predict(self, rows: FloatArray, /) -> FloatArray:
        self.rows = np.array(rows)
        return np.full(len(rows), self.answer)


def test_a_learned_trigger_is_asked_about_the_routers_features(three: Situation) -> None:
    estimator = Fitted(12.5)
    decided = LearnedTrigger(estimator, ConstantThreshold(10.0)).decide(
        three, np.random.default_rng(0)
    )
    assert decided.score_s == 12.5
    assert decided.send_second
    first = three.fastest
    quotes = three.quote(first), three.quote(three.others(first)[0])
    expected = router_features(three, *quotes)
    np.testing.assert_allclose(estimator.rows, [expected])
    assert len(expected) == len(ROUTER_FEATURES)
    with pytest.raises(InputError, match="policy learned-trigger: its trigger predicts nan"):
        LearnedTrigger(Fitted(math.nan)).decide(three, np.random.default_rng(0))


def test_a_trigger_of_scikit_learn(three: Situation) -> None:
    forest = pytest.importorskip("sklearn.ensemble").RandomForestRegressor(3, random_state=0)
    forest.fit(np.arange(48.0).reshape(4, 12), [1.0, 2.0, 3.0, 4.0])
    decided = LearnedTrigger(forest).decide(three, np.random.default_rng(0))
    assert 1.0 <= decided.score_s <= 4.0
