"""Recorded answers of a routing service: what it said to which question, and when.

One file per question in a folder, named by a hash of the question. A question
is what was asked, of which endpoint, and the moment: keys and other headers do
not enter and are not written.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ideal_dispatch.errors import FileFormatError, InputError, TrafficError
from ideal_dispatch.files import write_file

_SENT_TIMES = ("departureTime", "date_time")  # say the moment asked in a way the clock decides


class MissingAnswerError(TrafficError):
    """A replay asks what was not recorded."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of an endpoint: ``body``, and of the answer only ``fields``, if any."""

    endpoint: str
    fields: str
    body: Mapping[str, Any]
    asked_at: datetime

    def as_json(self) -> dict[str, Any]:
        """All that tells one question from another."""
        return {
            "endpoint": self.endpoint,
            "fields": self.fields,
            "body": {k: v for k, v in self.body.items() if k not in _SENT_TIMES},
            "asked_at": self.asked_at.astimezone(UTC).isoformat(),
        }

    @property
    def key(self) -> str:
        """The name of its answer's file."""
        text = json.dumps(self.as_json(), sort_keys=True, allow_nan=False)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A status and the JSON that came with it, or how asking failed in the end."""

    status: int
    answer: Any
    failure: str = ""


class RecordedAnswers:
    """A folder of answers."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(f"{self.folder}: no such folder; create it first")

    def get(self, question: Question) -> StoredAnswer | None:
        """The answer recorded for this question, or None."""
        path = self._path(question)
        try:
            content = json.loads(path.read_bytes())
            asked = content["question"]
            answer = StoredAnswer(content["status"], content["answer"], content["failure"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FileFormatError(f"{path}: damaged recorded answer; delete it") from None
        if asked != question.as_json():
            raise FileFormatError(f"{path}: answers another question; delete it")
        return answer

    def keep(self, question: Question, answer: StoredAnswer) -> None:
        """Record an answer in place of an earlier one to the same question."""
        content = {"question": question.as_json(), "status": answer.status,
                   "answer": answer.answer, "failure": answer.failure}  # fmt: skip
        text = json.dumps(content, sort_keys=True, allow_nan=False, indent=1)
        write_file(self._path(question), text + "\n")

    def _path(self, question: Question) -> Path:
        return self.folder / f"{question.key}.json"
