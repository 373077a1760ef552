"""All that decides, loaded once in a worker: advice, and what is shown of the city."""

import logging
import threading
import time

from ideal_dispatch.service.deciding.adviser import Adviser
from ideal_dispatch.service.deciding.assets import Assets, load_assets
from ideal_dispatch.service.deciding.city import CityView
from ideal_dispatch.service.messages import KnownWeather, Picture
from ideal_dispatch.service.requests import Location, Primary, RecommendationRequest
from ideal_dispatch.service.settings import ServiceSettings
from ideal_dispatch.service.units import Unit

log = logging.getLogger(__name__)

_PATIENCE_S = 60.0  # of a rehearsal, where nothing is compiled yet


class Engine:
    """Advice on one city and what else is asked of it; its parts may be asked from many threads.

    It is ``ready`` once what a call needs is loaded and compiled.
    """

    def __init__(self, assets: Assets) -> None:
        self.assets, self.adviser, self.city = assets, Adviser(assets), CityView(assets)
        self.ready = False

    @classmethod
    def load(cls, settings: ServiceSettings) -> "Engine":
        """What the settings name, or one line on what is wrong with them."""
        return cls(load_assets(settings))

    def start(self) -> None:
        """Warm up in the background."""
        threading.Thread(target=self.warm_up, name="warm-up", daemon=True).start()

    def warm_up(self) -> None:
        """Load and compile what a call needs, by advice on a call from one depot to the next.

        One that fails is logged: a worker that cannot rehearse still says what is wrong.
        """
        from ideal_dispatch.gap.warm_up import warm_up

        network, (one, two, *_) = self.assets.network, self.assets.depots
        now = round(time.time() * 1e6)
        units = tuple(Unit(f"{d.name} #1", d.name, "at_station", now, now, now) for d in (one, two))
        call = RecommendationRequest(
            call_id="rehearsal",
            location=Location(lon=float(network.lon[two.node]), lat=float(network.lat[two.node])),
            primary=Primary(depot=one.name),
        )
        due = time.monotonic() + _PATIENCE_S
        made = self.adviser.advise(call, Picture(now, units), KnownWeather(), due)
        if made.decision == "no_advice":
            log.error("the rehearsal gives no advice: %s", made.fields["headline"])
        self.ready = True
        try:
            warm_up()  # kernels that only some calls need
        except Exception:
            log.exception("kernels cannot be compiled")

    def close(self) -> None:
        """Give up connections."""
        self.assets.traffic.close()
