"""All that decides, loaded once in a worker: advice, the city, and traffic prepared for calls."""

import logging
import threading
import time

from ideal_dispatch.errors import IdealError
from ideal_dispatch.service.clock import moment
from ideal_dispatch.service.deciding.adviser import Adviser
from ideal_dispatch.service.deciding.assets import Assets, load_assets
from ideal_dispatch.service.deciding.city import CityView
from ideal_dispatch.service.deciding.live_traffic import PREPARE_S
from ideal_dispatch.service.deciding.reassessing import Reassesser
from ideal_dispatch.service.messages import (
    AssignedPrimary,
    Call,
    IncidentLocation,
    KnownWeather,
    Picture,
)
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

_PATIENCE_S = 60.0  # of a rehearsal, where nothing is compiled yet


class Engine:
    """Advice on one city and what else is asked of it; its parts may be asked from many threads.

    It is ``ready`` once what a call needs is loaded and compiled.
    """

    def __init__(self, settings: ServiceSettings, assets: Assets) -> None:
        self.assets = assets
        self.adviser = Adviser(assets, settings)
        self.city = CityView(assets, settings)
        self.reassesser = Reassesser(assets, settings)
        self.ready = False
        self._problem = ""
        self._closing = threading.Event()

    @classmethod
    def load(cls, settings: ServiceSettings) -> "Engine":
        """What the settings name, or one line on what is wrong with them."""
        return cls(settings, load_assets(settings))

    @property
    def traffic_status(self) -> str:
        """Says "ready", "starting", or why the traffic cannot be used."""
        return self.assets.traffic.status

    def start(self) -> None:
        """Warm up in the background, and prepare the traffic every few seconds until closed."""
        threading.Thread(target=self._run, name="traffic", daemon=True).start()

    def _run(self) -> None:
        from ideal_dispatch.gap.warm_up import warm_up

        self.warm_up()
        self.prepare()
        try:
            warm_up()  # kernels that only some calls need
        except Exception:
            log.exception("kernels cannot be compiled")
        while not self._closing.wait(PREPARE_S):
            self.prepare()

    def warm_up(self) -> None:
        """Load and compile what a call needs, by advice on a call from one depot to the next.

        One that fails is logged: a worker that cannot rehearse still says what is wrong.
        """
        network, (one, two, *_) = self.assets.network, self.assets.depots
        now = round(time.time() * 1e6)
        place = IncidentLocation(float(network.lon[two.node]), float(network.lat[two.node]))
        units = tuple(Unit(f"{d.name} #1", d.name, "at_station", now, now, now) for d in (one, two))
        call = Call("rehearsal", moment(now), place, AssignedPrimary(one.name, units[0].id))
        due = time.monotonic() + _PATIENCE_S
        made = self.adviser.advise(call, Picture(now, units), KnownWeather(), due)
        if made.decision == "no_advice":
            log.error("the rehearsal gives no advice: %s", made.fields["headline"])
        self.ready = True

    def prepare(self) -> None:
        """Prepare the traffic for what comes; a problem that stays is logged once."""
        problem, before = "", self.traffic_status
        try:
            self.assets.traffic.prepare()
            if self.traffic_status != before:
                self.warm_up()  # with what advice by this traffic needs
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if problem != self._problem:
                foreseen = isinstance(error, IdealError | OSError)
                log.error("traffic: %s", error, exc_info=None if foreseen else error)
        self._problem = problem

    def close(self) -> None:
        """Give up connections."""
        self._closing.set()
        self.assets.traffic.close()
