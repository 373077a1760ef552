"""Where the Hong Kong Observatory's stations and Hong Kong's districts are.

Longitude and latitude rounded to 0.01° (about 1 km), which is enough to tell
which station is nearest. WeatherStations with an anemometer follow the point layer of
the Observatory's wind table, as found in public copies of it; the others, which
only measure temperature, are placed by hand and may be off by a unit or two.
Districts stand where most people live. A station that is not listed here is
used after all that are; so are Tate's Cairn and Ngong Ping, left out because
the wind on a mountain is not the wind in the streets below.
"""

from collections.abc import Mapping
from types import MappingProxyType

STATIONS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "Central Pier": (114.16, 22.29),
        "Chek Lap Kok": (113.92, 22.31),
        "Cheung Chau": (114.03, 22.20),
        "Cheung Chau Beach": (114.03, 22.21),
        "Green Island": (114.11, 22.29),
        "HK Observatory": (114.17, 22.30),
        "Happy Valley": (114.18, 22.27),
        "Hong Kong Observatory": (114.17, 22.30),
        "Hong Kong Park": (114.16, 22.28),
        "Hong Kong Sea School": (114.21, 22.22),
        "Kai Tak": (114.21, 22.31),
        "Kai Tak Runway Park": (114.22, 22.30),
        "King's Park": (114.17, 22.31),
        "Kowloon City": (114.18, 22.33),
        "Kwun Tong": (114.22, 22.32),
        "Lamma Island": (114.11, 22.23),
        "Lau Fau Shan": (113.98, 22.47),
        "North Point": (114.20, 22.29),
        "Peng Chau": (114.04, 22.29),
        "Sai Kung": (114.27, 22.38),
        "Sha Chau": (113.89, 22.35),
        "Sha Tin": (114.21, 22.40),
        "Sham Shui Po": (114.14, 22.34),
        "Shau Kei Wan": (114.24, 22.28),
        "Shek Kong": (114.08, 22.44),
        "Stanley": (114.22, 22.21),
        "Star Ferry": (114.17, 22.29),
        "Ta Kwu Ling": (114.16, 22.53),
        "Tai Mei Tuk": (114.24, 22.48),
        "Tai Po": (114.18, 22.45),
        "Tai Po Kau": (114.18, 22.44),
        "Tap Mun": (114.36, 22.47),
        "Tseung Kwan O": (114.26, 22.32),
        "Tsing Yi": (114.11, 22.34),
        "Tsuen Wan Ho Koon": (114.11, 22.38),
        "Tsuen Wan Shing Mun Valley": (114.13, 22.38),
        "Tuen Mun": (113.96, 22.39),
        "Waglan Island": (114.30, 22.18),
        "Wetland Park": (114.01, 22.47),
        "Wong Chuk Hang": (114.17, 22.25),
        "Wong Tai Sin": (114.21, 22.34),
        "Yuen Long Park": (114.02, 22.44),
    }
)

DISTRICTS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "Central & Western District": (114.15, 22.28),
        "Eastern District": (114.22, 22.28),
        "Islands District": (113.94, 22.28),
        "Kowloon City": (114.19, 22.32),
        "Kwai Tsing": (114.12, 22.35),
        "Kwun Tong": (114.22, 22.31),
        "North District": (114.13, 22.49),
        "Sai Kung": (114.27, 22.34),
        "Sha Tin": (114.19, 22.38),
        "Sham Shui Po": (114.16, 22.33),
        "Southern District": (114.17, 22.25),
        "Tai Po": (114.17, 22.45),
        "Tsuen Wan": (114.11, 22.37),
        "Tuen Mun": (113.97, 22.39),
        "Wan Chai": (114.18, 22.28),
        "Wong Tai Sin": (114.20, 22.34),
        "Yau Tsim Mong": (114.17, 22.31),
        "Yuen Long": (114.03, 22.44),
    }
)
