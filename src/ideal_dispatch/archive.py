"""Files of a kind and a version: zips of NumPy arrays with a JSON manifest, and plain JSON.

Networks, trips and recorded traffic are such archives, distinguished by the
manifest's ``format``. Same contents, same bytes: members have fixed times and
a fixed order. Nothing in them is ever executed: no pickle.
"""

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.files import atomic_write, check_source, write_file

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of files: how their header names it, the newest version, and the words of messages.

    ``what`` is in the file, ``advice`` says how to make one. Versions before
    ``oldest`` cannot be read any more. ``key`` is where a header has the ``format``.
    """

    format: str
    version: int
    what: str
    advice: str
    oldest: int = 1
    key: ClassVar[str] = "format"

    @contextmanager
    def complaints(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Turn any failure with the file into one line that names it."""
        where = os.fspath(path)
        try:
            yield
        except PermissionError:
            raise InputError(f"{where}: cannot be read; check its permissions") from None
        except IdealError as error:
            raise FileFormatError(f"{where}: {error}") from None
        except Exception as error:  # zipfile, zlib, NumPy, torch and JSON raise a dozen kinds
            missing = f" {error}" if isinstance(error, KeyError) else ""
            why = f"{type(error).__name__}{missing}"
            raise FileFormatError(
                f"{where}: truncated or damaged {self.what} ({why}); {self.advice}"
            ) from None

    def checked(self, header: Any) -> dict[str, Any]:
        """The header, if it is of this kind and of a version that can be read."""
        named = header if isinstance(header, dict) else {}
        if named.get(self.key, named.get("format")) != self.format:
            raise FileFormatError(f"not a {self.what}; {self.advice}")
        version = named.get("version", self.oldest)
        if version > self.version:
            raise FileFormatError(
                f"written in format {version}, this version reads up to {self.version}; "
                "upgrade ideal-dispatch"
            )
        if version < self.oldest:
            raise FileFormatError(
                f"written in format {version}, this version needs {self.oldest}; {self.advice}"
            )
        return named


@dataclass(frozen=True, slots=True)
class ArchiveKind(FileKind):
    """Zips of arrays. ``tight`` packs with LZMA: a tenth smaller, several times slower to read."""

    tight: bool = False

    def write(
        self,
        path: str | os.PathLike[str],
        manifest: Mapping[str, Any],
        arrays: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        """Write one file, or leave what was there untouched."""
        whole = {**manifest, "format": self.format, "version": self.version}
        text = json.dumps(whole, ensure_ascii=False, sort_keys=True)
        content = text.encode("utf-8", "surrogatepass")  # as json.loads decodes
        members = {"manifest": np.frombuffer(content, np.uint8), **arrays}
        packing = zipfile.ZIP_LZMA if self.tight else zipfile.ZIP_DEFLATED
        with atomic_write(path) as file, zipfile.ZipFile(file, "w", packing) as archive:
            for name, values in members.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(values), allow_pickle=False)

    @contextmanager
    def reading(
        self, path: str | os.PathLike[str]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """The manifest and the arrays; every complaint about them is one line."""
        check_source(path)
        with self.complaints(path), open(path, "rb") as file:
            start = file.read(len(_ZIP))
            if start != _ZIP:
                what = f"not a {self.what}" if start else "the file is empty"
                raise FileFormatError(f"{what}; {self.advice}")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                header = archive["manifest"].tobytes() if "manifest" in archive.files else b"null"
                manifest = self.checked(json.loads(header))
                arrays = {name: archive[name] for name in archive.files if name != "manifest"}
            yield manifest, arrays

    def read(self, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The manifest and the arrays, or one line that says why the file cannot be read."""
        with self.reading(path) as contents:
            return contents


@dataclass(frozen=True, slots=True)
class JsonKind(FileKind):
    """Small JSON files."""

    key: ClassVar[str] = "kind"

    def write(self, path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
        """Write one file, or leave what was there untouched."""
        whole = {"kind": self.format, "version": self.version, **content}
        write_file(path, json.dumps(whole, indent=2, allow_nan=False) + "\n")

    @contextmanager
    def reading(self, path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
        """The content; every complaint about it is one line."""
        check_source(path)
        with self.complaints(path), open(path, encoding="utf-8") as file:
            yield self.checked(json.load(file))
