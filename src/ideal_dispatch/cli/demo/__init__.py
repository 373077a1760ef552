"""``ideal demo``: the whole story on the embedded city, in two minutes and without a network."""

from ideal_dispatch.cli.demo.command import EPILOG, demo

__all__ = ["EPILOG", "demo"]
