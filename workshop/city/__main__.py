"""Rewrite the embedded city: ``python -m workshop.city``."""

import argparse

from ideal_dispatch.cities import HARBOUR_STEM
from workshop.city.harbour import generate_harbour_city

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    city = generate_harbour_city()
    city.save(HARBOUR_STEM)
    print(f"{city.name}: {city.network!r}, checksum {city.network.checksum}")
