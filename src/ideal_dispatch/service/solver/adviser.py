"""From a call to an advice: no HTTP in here, and nothing that raises."""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

import numpy as np

from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.dispatch import Incident
from ideal_dispatch.dispatch.answer import Answer
from ideal_dispatch.dispatch.ideal import Ideal
from ideal_dispatch.dispatch.log_fields import log_details
from ideal_dispatch.dispatch.reasons import Reason
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import IdealError, OffNetworkError, UnreachableError
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.solver import answer_parts
from ideal_dispatch.service.solver.answer import degraded, finite, no_advice
from ideal_dispatch.service.solver.answer_parts import Routes
from ideal_dispatch.service.solver.assets import Assets
from ideal_dispatch.service.solver.call import Call
from ideal_dispatch.service.solver.case import Case, CaseReader, NoAdviceError, oldest_s
from ideal_dispatch.service.solver.known import KnownUnits, KnownWeather
from ideal_dispatch.service.solver.live_traffic import Asked, Seen

log = logging.getLogger(__name__)

_SEARCH_SHARE = 0.5  # of the time that is left, for the search of the gap
_LEAST_SEARCH_S = 0.01


class Adviser:
    """Advice for one city. May be asked from many threads."""

    def __init__(
        self,
        assets: Assets,
        settings: ServiceSettings,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.assets, self.settings = assets, settings
        self.reader = CaseReader(assets, settings, clock)
        self._routes = Routes(assets.network)

    def advise(
        self,
        call: Call,
        units: KnownUnits,
        weather: KnownWeather,
        until: float,
    ) -> dict[str, Any]:
        """The advice; ``until`` is the moment of :func:`time.monotonic` at which it is due.

        Whatever goes wrong becomes a ``no_advice`` that says so.
        """
        reasons: list[Reason] = []
        try:
            return self._advised(call, units, weather, until, reasons)
        except NoAdviceError as error:
            reasons.insert(0, (error.code, str(error)))
        except OffNetworkError as error:
            reasons.insert(0, ("off_map", str(error)))
        except UnreachableError as error:
            reasons.insert(0, ("unreachable", str(error)))
        except IdealError as error:
            log.warning("call %s: %s", call.call_id, error)
            reasons.insert(0, ("not_decided", str(error)))
        except Exception as error:  # a surprise must not reach the caller as silence
            log.exception("call %s: unexpected", call.call_id)
            what = f"a fault of this program ({type(error).__name__}); it was logged"
            reasons.insert(0, ("internal_error", what))
        return no_advice(call, reasons)

    def _advised(
        self,
        call: Call,
        units: KnownUnits,
        weather: KnownWeather,
        until: float,
        reasons: list[Reason],
    ) -> dict[str, Any]:
        case, policy = self.reader.read(call, units, weather, reasons), self.assets.policy
        incident = Incident(call.call_id, case.node, case.at)
        wait_s = min(self.settings.traffic.wait_s, _SEARCH_SHARE * (until - time.monotonic()))
        asked = Asked(
            incident, self.assets.depots, case.units, case.weather, case.station, case.path,
            max(wait_s, 0.0), "alternative" in policy.seconds,
            max((case.at - call.received_at).total_seconds(), 0.0),
        )  # fmt: skip
        seen = self.assets.traffic.look(asked)
        reasons.extend(seen.reasons)
        return self._decided(call, case, until, reasons, seen)

    # --- what is decided --------------------------------------------------------

    def _decided(
        self,
        call: Call,
        case: Case,
        until: float,
        reasons: list[Reason],
        seen: Seen,
    ) -> dict[str, Any]:
        situation, context = seen.situation, seen.situation.context
        policy = self._policy(call, until)
        decision = policy.decide(situation, np.random.default_rng(0))
        first, second = decision.primary, decision.second
        answer = Answer.of(decision, policy.threshold, reasons)
        reasons[:] = answer.reasons
        if answer.refusal is not None:
            raise NoAdviceError(*answer.refusal)
        details = log_details(decision)
        expected_s = {
            "primary_s": finite(details.get("primary_s")),
            "second_s": finite(details.get("second_s")),
        }
        kind = answer.advice
        names = [situation.stations[one.station].depot.name for one in (first, second or first)]
        primary = call.primary
        place = call.location
        source = "configuration" if call.threshold_s is None else "request"
        return {
            "decision": kind,
            "headline": answer_parts.headline(kind, *names),
            "location": {
                "lon": place.lon, "lat": place.lat, "node": situation.incident.node,
                "snapped_m": round(case.snapped_m, 1),
            },
            "primary": {
                "depot": names[0],
                "unit": None if primary is None else primary.unit,
                "route": self._routes.route(first.path, expected_s["primary_s"]),
                "chosen_by": "router" if primary is None else "cad",
            },
            "second": None if second is None else answer_parts.second_part(
                situation, first, second, self._routes.route(second.path, expected_s["second_s"])
            ),
            "sooner_unit": None if decision.sooner is None else asdict(decision.sooner),
            "gain_s": finite(details.get("expected_gain_s")),
            "gain_survival": finite(details.get("expected_survival_gain")),
            "gap": answer_parts.gap_part(details),
            "threshold": answer_parts.threshold_part(decision, source, answer.threshold),
            "radius": finite(details.get("radius")),
            "nominal": expected_s,
            "explanation": answer_parts.explanation_part(decision, decision.explain()),
            "degraded": degraded(reasons),
            "data_ages": {
                "traffic_s": finite(seen.age_s),
                # by the situation's own clock, which may be a recording's
                "weather_s": oldest_s(context.weather, context.at)
                if case.weather_s is None else case.weather_s,
                "units_s": case.units_s,
            },
        }  # fmt: skip

    def _policy(self, call: Call, until: float) -> Ideal:
        policy = self.assets.policy
        left_s = max(_SEARCH_SHARE * (until - time.monotonic()), _LEAST_SEARCH_S)
        limit_s = left_s if policy.time_limit_s is None else min(policy.time_limit_s, left_s)
        threshold = policy.threshold
        if call.threshold_s is not None:
            threshold = ConstantThreshold(call.threshold_s)
        return replace(policy, threshold=threshold, time_limit_s=limit_s)
