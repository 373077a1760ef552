"""From a call to an advice: no HTTP in here, and nothing that raises."""

import logging
import time
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.answer import Answer, Reason
from ideal_dispatch.dispatch.decision import Policy, decided
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import IdealError, OffNetworkError, UnreachableError
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver.api_answer import RouteFields, api_answer, no_advice
from ideal_dispatch.service.solver.assets import Assets
from ideal_dispatch.service.solver.case import Case, CaseReader, NoAdviceError
from ideal_dispatch.service.solver.closures import Roads, look_at_closed
from ideal_dispatch.service.solver.messages import Call, KnownUnits, KnownWeather

log = logging.getLogger(__name__)

_SHARE = 0.5  # of the time that is left, for the router, and then for the search of the gap
_LEAST_SEARCH_S = 0.01


class Adviser:
    """Advice for one city. May be asked from many threads."""

    def __init__(self, assets: Assets, settings: ServiceSettings) -> None:
        self.assets, self.settings = assets, settings
        self.reader = CaseReader(assets, settings)
        self._routes = RouteFields(assets.network)
        self.roads = Roads(assets.network)

    def advise(
        self, call: Call, units: KnownUnits, weather: KnownWeather, due: float
    ) -> dict[str, Any]:
        """The advice; ``due`` is a moment of :func:`time.monotonic`.

        Whatever goes wrong becomes a ``no_advice`` that says so.
        """
        reasons: list[Reason] = []
        try:
            case = self.reader.read(call, units, weather, reasons)
            case = self._on_open_roads(case, call, reasons)
            wait_s = min(self.settings.traffic.wait_s, _SHARE * (due - time.monotonic()))
            situation = self.assets.traffic.look(case, max(wait_s, 0.0))
            reasons.extend(situation.reasons)
            policy = self._policy(call, due)
            # each call has draws of its own, the same whenever it is asked
            rng = np.random.default_rng([*call.call_id.encode()])
            decision = decided(policy, situation, rng)
            reasons.extend(self.reader.silence(case, decision))
            answer = Answer.of(decision, getattr(policy, "threshold", None), reasons)
            return api_answer(call, case, answer, self._routes, self.assets.traffic)
        except NoAdviceError as error:
            why = error.code, str(error)
        except OffNetworkError as error:
            why = "off_map", str(error)
        except UnreachableError as error:
            why = "unreachable", str(error)
        except IdealError as error:
            log.warning("call %s: %s", call.call_id, error, exc_info=error.__cause__)
            why = "not_decided", str(error)
        except (Exception, SystemExit) as error:  # a surprise must not reach the caller as silence
            log.exception("call %s: unexpected", call.call_id)
            words = f"a fault of this program ({type(error).__name__}); it was logged"
            why = "internal_error", words
        return no_advice(call, [why, *reasons])

    def _on_open_roads(self, case: Case, call: Call, reasons: list[Reason]) -> Case:
        """The case on the roads that closures leave, with what they mean for it."""
        if not call.closures:
            return case
        network = self.roads.open(call.closures)
        remarks, refusal = look_at_closed(case, network, call.closures)
        reasons.extend(remarks)
        if refusal:
            raise NoAdviceError("unreachable", refusal)
        return replace(case, network=network)

    def _policy(self, call: Call, due: float) -> Policy:
        """The policy with the threshold of the call, and no more time than there is."""
        policy: Any = self.assets.policy
        known = [field.name for field in fields(policy)] if is_dataclass(policy) else []
        changes: dict[str, Any] = {}
        if "time_limit_s" in known:
            left_s = max(_SHARE * (due - time.monotonic()), _LEAST_SEARCH_S)
            own_s = policy.time_limit_s
            changes["time_limit_s"] = left_s if own_s is None else min(own_s, left_s)
        if call.threshold_s is not None:
            if "threshold" not in known:
                raise IdealError(f"policy {policy.name} takes no threshold from a call")
            changes["threshold"] = ConstantThreshold(call.threshold_s)
        changed: Policy = replace(policy, **changes) if changes else policy
        return changed
