"""The model card: what a model is, learned from, and good for, in words."""

from typing import TYPE_CHECKING

from ideal_dispatch.pages import template

if TYPE_CHECKING:
    from ideal_dispatch.forecast.model import Model


def model_card(model: "Model") -> str:
    """Markdown made of the manifest alone, by ``templates/card.md``."""
    details = model.details
    parts = {name: details.get(name, {}) for name in ("data", "radius", "shape")}
    return template("card.md").render(
        model=model,
        details=details,
        bounds=model.bounds,
        rule=model.radius_rule,
        count="{:,}".format,
        number=lambda value: "unknown" if value is None else f"{value:.2f}",
        **parts,
    )
