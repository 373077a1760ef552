"""Log lines as JSON, one a line, with the call they are about and without secrets."""

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

call_id: ContextVar[str] = ContextVar("call_id", default="")
request_id: ContextVar[str] = ContextVar("request_id", default="")

_SECRETS = re.compile(  # after "bearer", in an address before its host and after its path, by name
    r"""(?ix) (bearer\s+)[^\s"',;]+ | (://[^\s:/@]*:)[^\s@]+(?=@) | (://[^\s?"']+\?)[^\s"']+
    | \b((?:api[_-]?)?key=|token=)[^\s&"']+"""
)
_EXTRA = ("method", "path", "status", "ms", "client", "actor", "decision", "revision", "codes")


class JsonLines(logging.Formatter):
    """A record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "part": record.name.removeprefix("ideal_dispatch."),
            "text": without_secrets(record.getMessage()),
        }
        for name, variable in (("call_id", call_id), ("request_id", request_id)):
            if value := getattr(record, name, "") or variable.get():
                line[name] = value
        extra = {name: getattr(record, name, None) for name in _EXTRA}
        line |= {name: value for name, value in extra.items() if value is not None}
        if record.exc_info:
            line["trace"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False, default=str)


def without_secrets(text: str) -> str:
    """The text without bearer tokens, keys, and what addresses have besides host and path."""
    return _SECRETS.sub(lambda found: f"{found[found.lastindex or 0]}[hidden]", text)


def configure(level: str) -> None:
    """Write all log lines to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    logging.getLogger("httpx").setLevel(logging.WARNING)
