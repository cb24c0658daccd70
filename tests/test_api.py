"""What ``import sapp`` gives, and what it costs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import sapp


@pytest.mark.parametrize("name", sapp.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(sapp, name) is not None
    assert name in dir(sapp)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_like_it"):
        sapp.nothing_like_it  # noqa: B018


def test_import_is_cheap_and_brings_no_jax() -> None:
    code = "import sys, sapp; print(','.join(m for m in ('jax', 'equinox', 'numpy', 'mujoco') if m in sys.modules))"
    code += "; print(sum(m.split('.')[0] == 'sapp' for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    heavy, own = done.stdout.splitlines()
    assert heavy == ""
    assert int(own) < 10  # of its two hundred modules


def test_using_a_name_brings_its_module() -> None:
    code = "import sys, sapp; sapp.SappError; print('jax' in sys.modules); sapp.CQL; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.split() == ["False", "True"]
