"""Invented street names."""

import numpy as np

_ROOTS = (
    "Alder", "Amber", "Anchor", "Apricot", "Barnacle", "Basalt", "Bellflower", "Birdsong",
    "Bluestone", "Bosun", "Brass", "Bridle", "Buoy", "Camphor", "Candle", "Capstan", "Caravel",
    "Chandler", "Cinnabar", "Cistern", "Clove", "Cobalt", "Compass", "Copper", "Coral",
    "Cormorant", "Cotton", "Cutter", "Damson", "Dovetail", "Driftwood", "Ember", "Fathom",
    "Fern", "Fiddler", "Flint", "Foundry", "Galleon", "Garnet", "Ginger", "Granary", "Gull",
    "Halyard", "Heron", "Hollow", "Indigo", "Ironmonger", "Ivory", "Jasmine", "Juniper",
    "Kestrel", "Kingfisher", "Lantern", "Larch", "Ledger", "Lighter", "Linnet", "Lodestar",
    "Lotus", "Lychee", "Mackerel", "Magnolia", "Mainsail", "Mariner", "Millstone", "Mint",
    "Moorhen", "Mulberry", "Needle", "Nettle", "Nutmeg", "Oarsman", "Orchid", "Osprey", "Oyster",
    "Pearl", "Pelican", "Pepper", "Petrel", "Pilot", "Plover", "Pomelo", "Quarry", "Quill",
    "Rigger", "Ropewalk", "Rosewood", "Saffron", "Sampan", "Sandpiper", "Sextant", "Shale",
    "Signal", "Silver", "Skylark", "Slate", "Spindle", "Starling", "Sycamore", "Tamarind",
    "Teasel", "Tern", "Thistle", "Tiller", "Topsail", "Verger", "Walnut", "Weaver", "Wharf",
    "Whistle", "Willow", "Windlass", "Wren", "Yarrow",
)  # fmt: skip

_SUFFIXES = {
    "primary": ("Road", "Avenue"),
    "secondary": ("Road", "Avenue"),
    "tertiary": ("Street", "Road"),
    "unclassified": ("Street", "Row"),
    "residential": ("Street", "Lane", "Row"),
    "living_street": ("Market", "Walk"),
    "hill": ("Terrace", "Path", "Rise"),
    "close": ("Close", "Court", "Mews"),
}


class StreetNames:
    """Names that have not been given yet, in an order drawn from ``rng``."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._roots = list(_ROOTS)
        self._rng.shuffle(self._roots)
        self._taken: set[str] = set()

    def take(self, kind: str) -> str:
        """A new name for a street of this class, or of kind "hill" or "close"."""
        suffixes = _SUFFIXES[kind]
        start = int(self._rng.integers(len(suffixes)))
        for turn in range(len(suffixes)):
            suffix = suffixes[(start + turn) % len(suffixes)]
            for index, root in enumerate(self._roots):
                name = f"{root} {suffix}"
                if name not in self._taken:
                    self._taken.add(name)
                    # A root goes to the back, so that neighbours seldom share one.
                    self._roots.append(self._roots.pop(index))
                    return name
        raise LookupError(f"no street name of kind {kind!r} is left")
