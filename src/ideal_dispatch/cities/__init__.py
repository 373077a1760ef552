"""Cities that come with the package: no download is needed for the demo and the tests."""

from pathlib import Path

from ideal_dispatch.cities.city import City, Hospital

HARBOUR_STEM = Path(__file__).parent / "data" / "harbour"


def harbour_city() -> City:
    """The embedded harbour city, Port Almery: fictional, at the paper's scale."""
    return City.load(HARBOUR_STEM)


__all__ = ["City", "Hospital", "harbour_city"]
