import pytest

pytest.importorskip("torch", reason="the train extra is not installed")
