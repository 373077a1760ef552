"""A recording of traffic, replayed as if it happened now."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np

from ideal_dispatch.context.weather import utc_now
from ideal_dispatch.dispatch import Incident, Situation
from ideal_dispatch.network import RoadNetwork
from ideal_dispatch.service.solver.case import Case
from ideal_dispatch.service.solver.live_traffic import PREPARE_S, ForecastTraffic
from ideal_dispatch.traffic.recorded import RecordedWorld
from ideal_dispatch.traffic.recording import RecordedTraffic

_LEAST_S, _MARGIN_S = 3600.0, 600.0  # a replayed moment has an hour of past and a while to come
_AHEAD_S = 2 * PREPARE_S
_REPLAYED = ("recorded_traffic", "traffic is a recording of other days, replayed as if it were now")
_UNREADABLE = "the file cannot be read, the log says why"  # strangers see it: no path in here


class RecordedLive:
    """A recording replayed against the wall clock, as if it happened now.

    The same time of day is looked for on one of its days, another one each day;
    where none has it, all its hours take turns, and every answer says that it is
    a recording. With ``hours``, pairs of local hours from and to, it is a show:
    only these take turns, whatever the clock says, and nothing is said.
    """

    def __init__(
        self,
        network: RoadNetwork,
        load: Callable[[], RecordedTraffic],
        otherwise: ForecastTraffic,
        hours: Sequence[tuple[int, int]] = (),
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.network, self._load, self._otherwise = network, load, otherwise
        self._hours, self._now = tuple(hours), now
        self.world: RecordedWorld | None = None
        self.status = "starting"

    def prepare(self) -> None:
        """Load it, and have the estimates of this moment and the next at hand."""
        if self.world is None:
            try:
                self.world = RecordedWorld(self._load())
            except Exception:
                self.status = _UNREADABLE
                raise
            self.status = "ready"
        for ahead_s in (0.0, _AHEAD_S):
            self.world.quote(0, 0, self.moment(self._now() + timedelta(seconds=ahead_s)))

    def close(self) -> None:
        """Nothing is open."""

    def moment(self, now: datetime) -> datetime:
        """The recorded moment that stands for ``now``."""
        windows = self._windows
        assert self.world is not None
        calendar = self.world.recording.calendar
        if not self._hours:
            local = calendar.local(now)
            days = self.world.recording.days
            for turn in range(len(days)):
                for number in days[(local.toordinal() + turn) % len(days)]:
                    first, last = windows[number]
                    at = calendar.local(first).replace(
                        hour=local.hour, minute=local.minute, second=local.second
                    )
                    if first <= at < last:
                        return at
        ends_s = np.cumsum([(last - first).total_seconds() for first, last in windows])
        turn_s = now.timestamp() % float(ends_s[-1])
        which = int(np.searchsorted(ends_s, turn_s, "right"))
        return windows[which][1] - timedelta(seconds=float(ends_s[which]) - turn_s)

    @cached_property
    def _windows(self) -> list[tuple[datetime, datetime]]:
        """When calls may come: with some past before, and some time to drive after."""
        assert self.world is not None
        recording = self.world.recording
        windows = []
        for stretch in recording.stretches:
            whole_s = float(stretch.bins * recording.bin_s)
            first = stretch.start + timedelta(seconds=min(_LEAST_S, whole_s / 2))
            last_s = max(whole_s - _MARGIN_S, 0.75 * whole_s)
            windows.append((first, stretch.start + timedelta(seconds=last_s)))
        if not self._hours:
            return windows
        busy = []
        for first, last in windows:
            midnight = recording.calendar.local(first).replace(hour=0, minute=0, second=0)
            for begin, end in self._hours:
                since = max(first, midnight + timedelta(hours=begin))
                until = min(last, midnight + timedelta(hours=end))
                if since < until:
                    busy.append((since, until))
        return busy or windows

    def look(self, case: Case, wait_s: float) -> Situation:
        """What the recorded world's router says, by its own clock and weather."""
        if self.world is None:
            why = "still being read" if self.status == "starting" else self.status
            words = f"recorded traffic: {why}; the forecast is used"
            situation = self._otherwise.look(case, wait_s)
            return replace(situation, reasons=(("traffic_unavailable", words),))
        at = self.moment(case.incident.at)
        incident = Incident(case.incident.name, case.incident.node, at)
        known = any(value.known for value in case.weather)
        recorded = self.world.recording.context(at)
        context = self._otherwise.calendar.context(at, case.weather) if known else recorded
        situation = case.observed(self.world, self.network, incident, context)
        return replace(situation, reasons=() if self._hours else (_REPLAYED,))
