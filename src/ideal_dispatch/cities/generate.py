"""Rewrite the embedded city: ``python -m ideal_dispatch.cities.generate``."""

from ideal_dispatch.cities import HARBOUR_STEM
from ideal_dispatch.cities.harbour import generate_harbour_city

if __name__ == "__main__":
    city = generate_harbour_city()
    city.save(HARBOUR_STEM)
    print(f"{city.name}: {city.network!r}, checksum {city.network.checksum}")
