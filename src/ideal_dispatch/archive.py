"""Files of a kind and a version: zips of NumPy arrays with a JSON manifest, and plain JSON.

Networks, trips and recorded traffic are such files, told apart by the
manifest's ``format``. Same contents, same bytes: members have fixed times and
a fixed order. Nothing in them is ever executed: no pickle.
"""

import json
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from ideal_dispatch.errors import FileFormatError, IdealError, InputError
from ideal_dispatch.files import atomic_write, check_source

_ZIP = b"PK\x03\x04"

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class ArchiveKind:
    """What an archive holds: ``what`` in words, its newest ``version``, how to make one.

    Versions before ``oldest`` cannot be read any more. ``tight`` packs with
    LZMA: a tenth smaller and several times slower to read.
    """

    what: str
    version: int
    advice: str
    tight: bool = False
    oldest: int = 1

    @property
    def format(self) -> str:
        return f"ideal-dispatch {self.what}"

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

    def read(self, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The manifest and the arrays, or one line that says why there are none."""
        check_source(path)
        where = os.fspath(path)
        try:
            with open(where, "rb") as file:
                return self._parse(file)
        except PermissionError:
            raise InputError(f"{where}: cannot be read; check its permissions") from None
        except IdealError as error:
            raise FileFormatError(f"{where}: {error}") from None
        except Exception as error:  # zipfile, zlib, NumPy and JSON raise a dozen kinds
            raise self.damaged(where, error) from None

    def damaged(self, where: str | os.PathLike[str], error: Exception) -> FileFormatError:
        """The error for a file whose contents make no sense."""
        return FileFormatError(
            f"{os.fspath(where)}: truncated or damaged {self.what} file "
            f"({type(error).__name__}); {self.advice}"
        )

    def _parse(self, file: BinaryIO) -> tuple[dict[str, Any], dict[str, Any]]:
        start = file.read(len(_ZIP))
        if start != _ZIP:
            what = f"not a {self.what} file" if start else "the file is empty"
            raise FileFormatError(f"{what}; {self.advice}")
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            if "manifest" not in archive.files:
                raise FileFormatError(f"not a {self.what} file; {self.advice}")
            manifest = json.loads(archive["manifest"].tobytes())
            if not isinstance(manifest, dict) or manifest.get("format") != self.format:
                raise FileFormatError(f"not a {self.what} file; {self.advice}")
            if manifest["version"] > self.version:
                raise FileFormatError(
                    f"written in format {manifest['version']}, this version reads up to "
                    f"{self.version}; upgrade ideal-dispatch"
                )
            if manifest["version"] < self.oldest:
                raise FileFormatError(
                    f"written in format {manifest['version']}, this version needs "
                    f"{self.oldest}; make it again"
                )
            return manifest, {name: archive[name] for name in archive.files if name != "manifest"}


@dataclass(frozen=True, slots=True)
class JsonKind:
    """A small JSON file: its ``kind``, ``what`` it holds in words, and how to make one."""

    kind: str
    version: int
    what: str
    advice: str

    def write(self, path: str | os.PathLike[str], content: Mapping[str, Any]) -> None:
        """Write one file, or leave what was there untouched."""
        whole = {"kind": self.kind, "version": self.version, **content}
        with atomic_write(path) as file:
            file.write(json.dumps(whole, indent=2, allow_nan=False).encode() + b"\n")

    def read(self, path: str | os.PathLike[str], build: Callable[[dict[str, Any]], Made]) -> Made:
        """What ``build`` makes of the content, or one line that says why the file is not one."""
        check_source(path)
        where = os.fspath(path)
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            if not isinstance(content, dict) or content.get("kind") != self.kind:
                raise FileFormatError(f"no {self.what}; {self.advice}")
            if content["version"] != self.version:
                raise FileFormatError(
                    f"version {content['version']}, this program reads {self.version}"
                )
            return build(content)
        except FileFormatError as error:
            raise FileFormatError(f"{where}: {error}") from None
        except (InputError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise FileFormatError(
                f"{where}: damaged ({type(error).__name__}: {error}); {self.advice}"
            ) from None
