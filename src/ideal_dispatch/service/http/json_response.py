"""JSON answers, written quickly: an advice has hundreds of coordinates."""

from typing import Any

from pydantic_core import to_json
from starlette.responses import Response


class Json(Response):
    """Plain values as JSON, without blanks."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content)
