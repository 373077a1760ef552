"""From a call to an advice: no HTTP and no database in here, and nothing that raises."""

import logging
import time
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from ideal_dispatch.dispatch.answer import Answer, EdgeLines, Reason
from ideal_dispatch.dispatch.decision import Decision, Policy, decided
from ideal_dispatch.dispatch.threshold import ConstantThreshold
from ideal_dispatch.errors import IdealError, OffNetworkError, UnreachableError
from ideal_dispatch.service.deciding.assets import Assets
from ideal_dispatch.service.deciding.case import CallAsRead, CallReader, oldest_s
from ideal_dispatch.service.deciding.starts import NoAdviceError, find_unit, seen_fields
from ideal_dispatch.service.messages import Advice, Call, Closed, KnownWeather, Picture
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

_SHARE = 0.5  # of the time that is left, for the router, and then for the search of the gap
_LEAST_SEARCH_S = 0.01
_AGES = ("traffic_s", "weather_s", "units_s")


class Adviser:
    """Advice for one city; may be asked from many threads."""

    def __init__(self, assets: Assets, settings: ServiceSettings) -> None:
        self.assets, self.settings = assets, settings
        self._reader = CallReader(assets, settings)
        self._lines = EdgeLines(assets.network)

    def advise(self, call: Call, picture: Picture, weather: KnownWeather, due: float) -> Advice:
        """The advice; ``due`` is a moment of :func:`time.monotonic`.

        Whatever goes wrong becomes a ``no_advice`` that says so.
        """
        reasons: list[Reason] = []
        try:
            read = self._reader.read(call, picture, weather, reasons)
            wait_s = min(self.settings.traffic.wait_s, _SHARE * (due - time.monotonic()))
            situation = self.assets.traffic.look(read, max(wait_s, 0.0))
            reasons.extend(situation.reasons)
            policy = self._policy(call, due)
            # each call has its own draws, the same whenever it is asked
            rng = np.random.default_rng([*call.call_id.encode("utf-8", "surrogatepass")])
            decision = decided(policy, situation, rng)
            return self._advice(call, picture, read, decision, policy, reasons)
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
        first = None if call.primary is None else find_unit(picture.units, call.primary.unit)
        return no_advice(call, [why, *reasons], picture.closures, first)

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

    def _advice(
        self,
        call: Call,
        picture: Picture,
        read: CallAsRead,
        decision: Decision,
        policy: Policy,
        reasons: list[Reason],
    ) -> Advice:
        """The answer that a decision gives, and the units that it uses."""
        starts, now = read.starts, picture.now
        assert starts is not None
        chosen, leaves = call.primary is None, decision.primary.station
        first = next(iter(starts.units[leaves]), None) if chosen else starts.first
        second = None
        if decision.second is not None:
            leaving = chosen and decision.same_depot  # the primary is among the units there
            second = next(iter(starts.units[decision.second.station][leaving:]), None)
        reasons += self._reader.silence(read, [first, second], now)
        for unit in (first if chosen else None, second):
            if unit is not None and unit.call_id not in (None, call.call_id):
                doing = unit.status.replace("_", " ")
                words = f"{unit.id} is reported {doing} for call {unit.call_id}; it counts as free"
                reasons.append(("other_call", words))
        answer = Answer.of(
            decision, getattr(policy, "threshold", None), reasons, self.assets.responses,
            asked_threshold=call.threshold_s is not None,
        )  # fmt: skip
        if answer.advice != "send_second":
            second = None

        made, units = answer.to_dict(self._lines), {unit.id: unit for unit in picture.units}
        for row in (made["primary"], made["second"], *made["considered"]):
            unit = None if row is None else units.get(row["unit"])
            if unit is not None:
                row["kind"] = unit.kind or row["kind"]
                if row["start"]["on_road"]:
                    row["start"] = seen_fields(unit, now)
        place, context = call.location, decision.about.context
        made["location"] |= {
            "lon": place.lon, "lat": place.lat, "snapped_m": round(read.snapped_m, 1),
        }  # fmt: skip
        # by the situation's own clock, which may be a recording's
        weather_s = oldest_s(context.weather, context.at)
        weather_s = weather_s if read.weather_s is None else read.weather_s
        ages = zip(_AGES, (decision.about.traffic_age_s, weather_s, read.units_s), strict=True)
        made["made_with"] = {
            "policy": policy.name,
            "ages": {name: None if age is None else round(age, 1) for name, age in ages},
            "closures": [one.id for one in picture.closures],
        }
        ids = [None if unit is None else unit.id for unit in (first, second)]
        ours = [chosen or starts.assumed, True]  # what the CAD sends, it sends
        needs = tuple(id_ for id_, our in zip(ids, ours, strict=True) if our and id_ is not None)
        return Advice(made, ids[0], chosen, ids[1], needs)


def no_advice(
    call: Call,
    reasons: Sequence[Reason],
    closures: Sequence[Closed] = (),
    first: Unit | None = None,
) -> Advice:
    """No advice, and why: the first reason is the cause; ``first`` is the CAD's primary."""
    made = Answer.none(reasons[0], reasons[1:]).to_dict()
    made["location"] |= {"lon": call.location.lon, "lat": call.location.lat}
    made["made_with"] = {
        "policy": "", "ages": dict.fromkeys(_AGES), "closures": [one.id for one in closures],
    }  # fmt: skip
    return Advice(made, None if first is None else first.id)
