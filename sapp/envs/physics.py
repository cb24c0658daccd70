"""D4RL v2's physics on today's MuJoCo.

D4RL v2 was recorded with mujoco-py, that is MuJoCo 2.1.0 or older. Since then two things changed:

* **Capsule inertia.** The old compiler took a capsule of radius r and half-length h for a cylinder of radius r and
  height 2h + r, for volume (hence mass) and for inertia. Today's compiler is exact.
* **Contact margins.** The margin of a contact was the larger of the two geoms' margins; today it is their sum. Which of
  the two the installed version does is found out by trial.

`restore` undoes both on any model, by rule and not by name. It first recomputes the model's masses and inertias with
today's formulas and compares them with what today's compiler made of the same model. Where they differ the model uses
something that the rule does not know (meshes, say), and is refused instead of being altered wrongly.
"""

from __future__ import annotations

import math
import warnings
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.core.extras import require

if TYPE_CHECKING:
    import mujoco

Vector = npt.NDArray[np.float64]


def load_model(path: str | Path, physics: str = "d4rl") -> mujoco.MjModel:
    """Compiles a MuJoCo XML file, with D4RL v2's physics ("d4rl") or as it is ("v4")."""
    mujoco = require("mujoco", "a MuJoCo model")

    if not Path(path).is_file():
        raise SappError(f"{path}: no such MuJoCo model; give the path of an XML file")
    if physics not in ("d4rl", "v4"):
        raise SappError(f"physics {physics!r} is unknown: use 'd4rl' (as D4RL v2 was recorded) or 'v4' (as it is)")
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        return restore(spec) if physics == "d4rl" else _compile(spec)
    except ValueError as error:
        raise SappError(f"{path}: MuJoCo cannot compile it ({_one_line(error)}); fix the file") from error


def restore(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compiles a model description with the capsule inertias and the contact margins of MuJoCo 2.1.0 and older.

    Raises:
        SappError: the model has something for which the rule is not known to hold; the message names it.
    """
    import mujoco

    model = _compile(spec)
    _check_supported(spec, model)
    _check_rule(spec, model)
    for body in range(1, model.nbody):
        inertia = _body_inertia(spec, model, body, exact=False)
        if inertia is not None:
            _write(model, body, *inertia)
    if spec.compiler.settotalmass > 0:
        scale = spec.compiler.settotalmass / model.body_mass.sum()
        model.body_mass *= scale
        model.body_inertia *= scale
    model.geom_margin[:] = _margins(model)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _compile(spec: Any) -> mujoco.MjModel:
    with warnings.catch_warnings():
        # Gymnasium's HalfCheetah uses `settotalmass`, which MuJoCo has begun to call deprecated
        warnings.filterwarnings("ignore", message=".*deprecated.*")
        return spec.compile()


def _write(
    model: mujoco.MjModel, body: int, mass: float, inertia: Vector, position: Vector, quaternion: Vector
) -> None:
    """Writes a body's inertia, and drops MuJoCo's notes on frames that coincide where they no longer do."""
    moved = np.abs(position - model.body_ipos[body]).max() > 1e-12
    turned = not np.array_equal(quaternion, model.body_iquat[body])
    model.body_mass[body], model.body_inertia[body] = mass, inertia
    if not moved and not turned:
        return
    if model.body_simple[body]:
        raise SappError(
            f"D4RL physics cannot be restored: body {model.body(body).name or body} has a diagonal inertia only in "
            "today's MuJoCo; use physics='v4'"
        )
    model.body_ipos[body], model.body_iquat[body] = position, quaternion
    model.body_sameframe[body] = 0
    model.geom_sameframe[model.geom_bodyid == body] = 0
    model.site_sameframe[model.site_bodyid == body] = 0


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _name(model: mujoco.MjModel, geom: int) -> str:
    return model.geom(geom).name or f"number {geom}"


def _geoms_with_mass(spec: Any, model: mujoco.MjModel, body: int) -> list[int]:
    """The geoms that give a body its inertia: those in the compiler's group range, planes aside."""
    import mujoco

    low, high = spec.compiler.inertiagrouprange
    return [
        geom
        for geom in range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body])
        if low <= model.geom_group[geom] <= high and model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_PLANE
    ]


def _infers_inertia(spec: Any, body: int) -> bool:
    """Whether the compiler takes a body's inertia from its geoms, rather than from an <inertial> element."""
    import mujoco

    mode = spec.compiler.inertiafromgeom
    if mode == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO:
        return not spec.bodies[body].explicitinertial
    return bool(mode == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)


def _check_supported(spec: Any, model: mujoco.MjModel) -> None:
    import mujoco

    kinds = mujoco.mjtGeom
    known = {kinds.mjGEOM_PLANE, kinds.mjGEOM_SPHERE, kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER, kinds.mjGEOM_BOX}
    known.add(kinds.mjGEOM_ELLIPSOID)
    for geom in range(model.ngeom):
        if model.geom_type[geom] not in {int(kind) for kind in known}:
            kind = kinds(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()
            raise SappError(
                f"D4RL physics cannot be restored: geom {_name(model, geom)} is a {kind}, whose old inertia is not "
                "known; use physics='v4'"
            )


def _geom_inertia(spec: Any, model: mujoco.MjModel, geom: int, exact: bool) -> tuple[float, Vector]:
    """Mass and diagonal inertia of a geom in its own frame; a capsule's exact, or as the old compiler had it."""
    import mujoco

    kinds = mujoco.mjtGeom
    kind, size = kinds(model.geom_type[geom]), model.geom_size[geom]
    if kind == kinds.mjGEOM_CAPSULE and exact:
        r, length = size[0], 2 * size[1]
        cylinder, ball = math.pi * r**2 * length, 4 / 3 * math.pi * r**3
        volume = cylinder + ball
        axial = (cylinder * r**2 / 2 + ball * 2 / 5 * r**2) / volume
        across = (
            cylinder * (3 * r**2 + length**2) / 12 + ball * (2 / 5 * r**2 + 3 / 8 * length * r + length**2 / 4)
        ) / volume
        unit = np.array([across, across, axial])
    elif kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER):
        r = size[0]
        length = 2 * size[1] + (r if kind == kinds.mjGEOM_CAPSULE else 0.0)
        volume = math.pi * r**2 * length
        across = (3 * r**2 + length**2) / 12
        unit = np.array([across, across, r**2 / 2])
    elif kind == kinds.mjGEOM_BOX:
        volume = 8 * float(np.prod(size))
        unit = (np.sum(size**2) - size**2) / 3
    else:
        semi_axes = size if kind == kinds.mjGEOM_ELLIPSOID else np.full(3, size[0])
        volume = 4 / 3 * math.pi * float(np.prod(semi_axes))
        unit = (np.sum(semi_axes**2) - semi_axes**2) / 5
    described = spec.geoms[geom]
    mass = described.density * volume if math.isnan(described.mass) else described.mass
    return float(mass), mass * unit


def _rotation(quaternion: Vector) -> Vector:
    import mujoco

    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, quaternion)
    return flat.reshape(3, 3)


def _body_inertia(
    spec: Any, model: mujoco.MjModel, body: int, exact: bool
) -> tuple[float, Vector, Vector, Vector] | None:
    """Mass, principal inertia, centre of mass and principal axes of a body from its geoms; None to leave it alone."""
    import mujoco

    geoms = _geoms_with_mass(spec, model, body)
    if not geoms or not _infers_inertia(spec, body):
        return None
    parts = [_geom_inertia(spec, model, geom, exact) for geom in geoms]
    mass = sum(part[0] for part in parts)
    if mass <= 0:
        return None
    centre = sum(part[0] * model.geom_pos[geom] for part, geom in zip(parts, geoms, strict=True)) / mass
    total = np.zeros((3, 3))
    for (geom_mass, diagonal), geom in zip(parts, geoms, strict=True):
        rotation = _rotation(model.geom_quat[geom])
        offset = model.geom_pos[geom] - centre
        total += rotation @ np.diag(diagonal) @ rotation.T
        total += geom_mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    compiled = _rotation(model.body_iquat[body])
    aligned = compiled.T @ total @ compiled
    if np.abs(aligned - np.diag(np.diag(aligned))).max() <= 1e-9 * np.trace(total):
        # keeping the compiled axes where they still are principal keeps MuJoCo's shortcuts for aligned frames valid
        return mass, np.diag(aligned).copy(), centre, model.body_iquat[body].copy()
    values, axes = np.linalg.eigh(total)
    values, axes = values[::-1].copy(), axes[:, ::-1].copy()  # MuJoCo lists the largest first
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, axes.ravel())
    return mass, values, centre, quaternion


def _check_rule(spec: Any, model: mujoco.MjModel) -> None:
    """Refuses a model whose masses and inertias our formulas, in their exact form, do not reproduce."""
    found = {body: _body_inertia(spec, model, body, exact=True) for body in range(1, model.nbody)}
    mass, inertia = model.body_mass.copy(), model.body_inertia.copy()
    for body, value in found.items():
        if value is not None:
            mass[body], inertia[body] = value[0], value[1]
    if spec.compiler.settotalmass > 0:
        scale = spec.compiler.settotalmass / mass.sum()
        mass, inertia = mass * scale, inertia * scale
    for body, value in found.items():
        same = np.isclose(mass[body], model.body_mass[body], rtol=1e-6, atol=0) and np.allclose(
            np.sort(inertia[body]), np.sort(model.body_inertia[body]), rtol=1e-6, atol=1e-12
        )
        if not same or (value is not None and not np.allclose(value[2], model.body_ipos[body], atol=1e-9)):
            raise SappError(
                f"D4RL physics cannot be restored: the inertia of body {model.body(body).name or body} is not the sum "
                "of its solid geoms (a mass or inertia bound, or a shell?); use physics='v4'"
            )


def _pairs(model: mujoco.MjModel) -> Vector:
    """The geom pairs [P, 2] that MuJoCo may test for contact by itself (explicit <pair>s have margins of their own)."""
    first, second = np.triu_indices(model.ngeom, 1)
    match = (model.geom_contype[first] & model.geom_conaffinity[second]) != 0
    match |= (model.geom_contype[second] & model.geom_conaffinity[first]) != 0
    body_1, body_2 = model.geom_bodyid[first], model.geom_bodyid[second]
    weld_1, weld_2 = model.body_weldid[body_1], model.body_weldid[body_2]
    match &= weld_1 != weld_2
    parent_1 = model.body_weldid[model.body_parentid[weld_1]]
    parent_2 = model.body_weldid[model.body_parentid[weld_2]]
    related = ((parent_1 == weld_2) | (parent_2 == weld_1)) & (weld_1 != 0) & (weld_2 != 0)
    match &= ~related
    excluded = {int(signature) for signature in model.exclude_signature}
    low, high = np.minimum(body_1, body_2), np.maximum(body_1, body_2)
    match &= ~np.isin((low.astype(np.int64) << 16) + high, list(excluded))
    return np.stack([first[match], second[match]], -1)


@cache
def _margins_add_up() -> bool:
    """Whether this version of MuJoCo adds two geoms' margins: tried on two balls 0.15 apart with margins of 0.1."""
    import mujoco

    ball = "<body pos='{} 0 0'><freejoint/><geom size='.1' margin='.1'/></body>"
    xml = f"<mujoco><worldbody>{ball.format(0)}{ball.format(0.35)}</worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return bool(data.ncon > 0)


def _margins(model: mujoco.MjModel) -> Vector:
    """Geom margins whose pairwise sums are the pairwise maxima of the model's margins.

    Where all geoms that can touch share one margin this halves it. In general it is a linear system over the pairs that
    can touch; not every system has a solution.
    """
    margin = model.geom_margin.copy()
    pairs = _pairs(model)
    if not len(pairs) or not margin[pairs].any() or not _margins_add_up():
        return margin
    if model.geom_gap[pairs].any():
        raise SappError("D4RL physics cannot be restored: a geom that can touch another has a gap; use physics='v4'")
    touching = np.unique(pairs)
    if np.ptp(margin[touching]) == 0:
        margin[touching] /= 2
        return margin
    wanted = margin[pairs].max(-1)
    system = np.zeros((len(pairs), model.ngeom))
    rows = np.arange(len(pairs))
    system[rows, pairs[:, 0]] = 1
    system[rows, pairs[:, 1]] = 1
    # the solution nearest to the margins as they are
    restored = margin + np.linalg.lstsq(system, wanted - system @ margin, rcond=None)[0]
    off = np.abs(system @ restored - wanted) > 1e-9 * wanted.max()
    off |= (restored[pairs] < -1e-12).any(-1)
    if off.any():
        one, other = pairs[np.argmax(off)]
        raise SappError(
            "D4RL physics cannot be restored: no geom margins give the old contact margins (see geoms "
            f"{_name(model, one)} and {_name(model, other)}); use physics='v4'"
        )
    return np.maximum(restored, 0.0)
