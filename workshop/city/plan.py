"""The whole plan of the harbour city: every street but the back lanes."""

import numpy as np

from ideal_dispatch.arrays import FloatArray
from workshop.city.expressway import expressway, slip_road, tunnel
from workshop.city.hills import piers, switchbacks, valley, winding
from workshop.city.names import StreetNames
from workshop.city.quarters import (
    EASTBOUND_ROAD,
    HARBOUR_ROAD,
    HILLFOOT_ROAD,
    WESTBOUND_ROAD,
    Quarter,
    exchange,
    gannet_bay,
    kelp_point,
    terraces,
)
from workshop.city.street import Street, smooth


def harbour_streets(names: StreetNames, rng: np.random.Generator) -> list[Street]:
    """Streets of a city between a bay and its hills.

    Signal Hill comes down to the water between the western grid and downtown:
    only the expressway, Harbour Road, a tunnel and one road over its shoulder
    join the two sides. A slow ridge road far inland joins the ends.
    """
    west, centre, east = kelp_point(names, rng), exchange(names, rng), gannet_bay(names, rng)
    west_side = terraces([(300, 880), (1420, 910), (1380, 1230), (380, 1200)], 4, 10, names, rng)
    mid = terraces([(2560, 930), (4740, 950), (4640, 1400), (2720, 1350)], 5, 16, names, rng)
    east_side = terraces([(6440, 960), (7040, 960), (7020, 1340), (6520, 1340)], 4, 6, names, rng)
    top = terraces([(3240, 2040), (4040, 2040), (3960, 2240), (3320, 2260)], 3, 6, names, rng)
    ring, rim = valley((5880, 1250), names, rng)
    quarters = [west, centre, east, west_side, mid, east_side, top]
    return [
        *(street for quarter in quarters for street in quarter.streets),
        *ring,
        *_corridors(west, centre, east),
        *_ramps(west, centre, east),
        *_climbs(west, west_side, (1, 6, 13, 19), names),
        *_climbs(centre, mid, (2, 8, 12, 17, 22, 28), names),
        *_climbs(east, east_side, (20, 24), names),
        *_valley_roads(east, rim, names),
        *_hill_roads(west_side, mid, east_side, top, rim, names, rng),
        *piers(west.crossings[0][[3, 8, 11, 16]], rng),
        *piers(centre.crossings[0][[2, 9, 12, 17, 19, 22, 30]], rng),
        *piers(east.crossings[0][[3, 10, 14, 19]], rng),
    ]


def _corridors(west: Quarter, centre: Quarter, east: Quarter) -> list[Street]:
    """Harbour Road past Signal Hill, and the avenues between downtown and the east."""
    a, b, c = west.crossings, centre.crossings, east.crossings
    past_hill = smooth([a[0, -1], (1900, 118), (2200, 125), b[0, 0]])
    return [
        Street(HARBOUR_ROAD.name, "primary", past_hill),
        Street(HARBOUR_ROAD.name, "primary", np.array([b[0, -1], c[0, 0]])),
        Street(EASTBOUND_ROAD.name, "primary", np.array([b[3, -1], c[3, 0]]), oneway=True),
        Street(WESTBOUND_ROAD.name, "primary", np.array([c[6, 0], b[6, -1]]), oneway=True),
        Street("Nullah Road", "secondary", smooth([b[9, -1], (4880, 730), c[9, 0]])),
        *tunnel((a[5, -1], a[6, -1]), (b[3, 0], b[6, 0])),
    ]


def _ramps(west: Quarter, centre: Quarter, east: Quarter) -> list[Street]:
    a, b, c = (quarter.crossings for quarter in (west, centre, east))
    return [
        *expressway(
            a[0, [0, 1]],
            c[0, [-2, -1]],
            from_west=[b[0, [6, 7]], b[0, [24, 25]], c[0, [7, 8]]],
            from_east=[a[0, [13, 14]], b[0, [14, 15]], b[0, [27, 28]]],
        ),
        # Traffic keeps to the left, so the corners worth cutting are left turns.
        slip_road(HARBOUR_ROAD.name, "primary_link", b[0, 17], b[0, 16], b[1, 16]),
        slip_road(HARBOUR_ROAD.name, "primary_link", c[1, 11], c[0, 11], c[0, 10]),
        slip_road(EASTBOUND_ROAD.name, "secondary_link", b[2, 8], b[3, 8], b[3, 9]),
        slip_road(WESTBOUND_ROAD.name, "secondary_link", b[6, 25], b[6, 24], b[7, 24]),
        slip_road(HILLFOOT_ROAD.name, "tertiary_link", b[10, 16], b[11, 16], b[11, 17]),
        slip_road(HILLFOOT_ROAD.name, "tertiary_link", c[10, 10], c[10, 11], c[9, 11]),
    ]


def _climbs(
    flat: Quarter, hillside: Quarter, columns: tuple[int, ...], names: StreetNames
) -> list[Street]:
    """Short roads from the back row of a grid to the nearest crossings of the terraces."""
    streets = []
    for column in columns:
        foot = flat.crossings[-1, column]
        first = hillside.crossings[0]
        top = first[np.argmin(np.hypot(*(first - foot).T))]
        streets.append(Street(names.take("hill"), "tertiary", np.array([foot, top])))
    return streets


def _valley_roads(east: Quarter, rim: FloatArray, names: StreetNames) -> list[Street]:
    back = east.crossings[-1]
    return [
        Street(names.take("secondary"), "secondary", smooth([back[3], rim[15]])),
        Street(names.take("tertiary"), "tertiary", smooth([back[9], rim[18]])),
        Street(names.take("secondary"), "secondary", smooth([back[15], rim[21]])),
    ]


def _hill_roads(
    west_side: Quarter,
    mid: Quarter,
    east_side: Quarter,
    top: Quarter,
    rim: FloatArray,
    names: StreetNames,
    rng: np.random.Generator,
) -> list[Street]:
    w, m, e, t = (quarter.crossings for quarter in (west_side, mid, east_side, top))
    shoulder = winding(
        [w[1, -1], (1590, 1010), (1790, 1090), (1990, 960), (2160, 1090),
         (2330, 990), (2480, 1110), m[1, 0]], rng)  # fmt: skip
    west_gap, east_gap = np.array([980.0, 1830.0]), np.array([5640.0, 2020.0])
    ridge_west = winding([west_gap, (1300, 2010), (1600, 1870), (1950, 2030), (2350, 1930),
                          (2750, 2110), (3000, 2010), t[1, 0]], rng, 45.0)  # fmt: skip
    ridge_east = winding([t[1, -1], (4300, 2080), (4600, 1950), (4950, 2080), (5250, 1950),
                          east_gap], rng, 45.0)  # fmt: skip
    return [
        Street("Shoulder Road", "secondary", smooth(shoulder)),
        Street("Lookout Path", "residential",
               smooth(switchbacks(shoulder[3], (2040, 570), 4, 190, rng))),
        Street("Reservoir Road", "tertiary",
               smooth(switchbacks(w[-1, 4], west_gap, 5, 330, rng))),
        Street("Ridge Road", "tertiary", smooth(ridge_west)),
        Street("Ridge Road", "tertiary", smooth(ridge_east)),
        Street("Summit Road", "tertiary",
               smooth(switchbacks(m[-1, 7], t[0, 2], 5, 300, rng))),
        Street("Valley Road", "tertiary", smooth(switchbacks(rim[7], east_gap, 4, 260, rng))),
        Street("Gap Road", "tertiary",
               smooth(winding([e[-1, 1], (6560, 1500), (6420, 1600), (6560, 1740), (6330, 1840),
                               (6120, 1790), (5900, 1930), east_gap], rng))),
        Street(names.take("hill"), "residential",
               smooth(winding([e[1, 0], (6420, 1150), rim[0]], rng, 12.0))),
        Street(names.take("hill"), "residential",
               smooth(winding([m[1, -1], (4790, 1180), (4960, 1130), (5200, 1220), rim[12]],
                              rng))),
    ]  # fmt: skip
