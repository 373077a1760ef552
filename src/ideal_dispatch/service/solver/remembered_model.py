"""A model that remembers: the context of a call is that of all others of its hour and weather."""

from collections import OrderedDict
from functools import cached_property

import numpy.typing as npt

from ideal_dispatch.context import Context
from ideal_dispatch.forecast import Forecast, Model
from ideal_dispatch.network import Path, RoadNetwork

# Calls share a context until the hour or the weather changes: of 500 one after the other, one
# forecast was made. With 50,000 edges and 32 dimensions each takes 13 MB.
_MOST = 4
_Key = tuple[str, bytes, tuple[str, ...]]


class RememberedModel(Model):
    """Forecasts as the model's own, of which the newest are kept."""

    @cached_property
    def _kept(self) -> OrderedDict[_Key, Forecast]:
        return OrderedDict()

    def forecast(
        self, context: Context | npt.ArrayLike, network: RoadNetwork, path: Path | None = None
    ) -> Forecast:
        """As :meth:`Model.forecast`; kept where the radius does not depend on the path."""
        if self.radius_rule.uses_trip or not isinstance(context, Context):
            return super().forecast(context, network, path)
        row = self.encoding.encode([context])
        key = network.checksum, row.tobytes(), self.seen.other_sources(context.weather)
        found = self._kept.get(key)
        if found is None:
            found = super().forecast(context, network)
            found.embeddings.flags.writeable = False  # many calls share it
            self._kept[key] = found
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found
