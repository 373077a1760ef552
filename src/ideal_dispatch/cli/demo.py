"""``ideal demo``: the whole story on the embedded city, in two minutes and without a network."""

from pathlib import Path

from ideal_dispatch.ranges import Whole


def demo(output: Path = Path("out/demo"), seed: Whole = 7) -> None:
    """The whole story in two minutes: records, training, replay, one call, a report, the fleet.

    On the embedded city, a made-up one, without the internet: an agency's
    records become trips, a model learns from them, every policy is tried on
    days it has not seen, and one call is decided and explained. At last the
    whole fleet shows what second ambulances cost the other calls. Learning needs
    ideal-dispatch[train]; without, the model that comes with the city
    is used.

    Examples:
      ideal demo
      ideal demo -o out/another --seed 3
    """
    from ideal_dispatch.cli.story import Scale, tell

    tell(output, seed, Scale())
