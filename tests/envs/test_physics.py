import math

import mujoco
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs.locomotion import asset_path
from sapp.envs.physics import load_model, restore

ASSETS = ["half_cheetah", "hopper", "walker2d", "ant", "swimmer", "humanoid", "pusher", "reacher", "inverted_pendulum"]


def spec_of(body: str, compiler: str = "") -> mujoco.MjSpec:
    return mujoco.MjSpec.from_string(f"<mujoco>{compiler}<worldbody>{body}</worldbody></mujoco>")


def tensor(model: mujoco.MjModel, body: int) -> np.ndarray:
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, model.body_iquat[body])
    axes = flat.reshape(3, 3)
    return axes @ np.diag(model.body_inertia[body]) @ axes.T


@pytest.mark.parametrize("name", ASSETS)
@pytest.mark.filterwarnings("ignore:.*settotalmass.*")
def test_a_capsule_weighs_as_the_cylinder_that_mujoco_itself_compiles(name):
    spec = mujoco.MjSpec.from_file(str(asset_path(f"{name}.xml")))
    compiled = spec.compile()
    for geom, described in enumerate(spec.geoms):
        if described.type == mujoco.mjtGeom.mjGEOM_CAPSULE:
            radius, half = compiled.geom_size[geom, :2]
            described.fromto = np.full(6, np.nan)
            described.type = mujoco.mjtGeom.mjGEOM_CYLINDER
            described.size = [radius, half + radius / 2, 0]
            described.pos, described.quat = compiled.geom_pos[geom], compiled.geom_quat[geom]
    expected, restored = spec.compile(), load_model(asset_path(f"{name}.xml"))
    np.testing.assert_allclose(restored.body_mass, expected.body_mass, rtol=1e-12)
    np.testing.assert_allclose(restored.body_ipos, expected.body_ipos, atol=1e-12)
    for body in range(1, expected.nbody):
        np.testing.assert_allclose(tensor(restored, body), tensor(expected, body), rtol=1e-9, atol=1e-12)
    # what follows from masses was recomputed too
    np.testing.assert_allclose(restored.dof_invweight0, expected.dof_invweight0, rtol=1e-6)
    np.testing.assert_allclose(restored.body_invweight0, expected.body_invweight0, rtol=1e-6, atol=1e-12)


def test_hopper_by_hand():
    model = load_model(asset_path("hopper.xml"))
    height = 2 * 0.2 + 0.05
    mass = 1000 * math.pi * 0.05**2 * height
    assert model.body("torso").mass[0] == pytest.approx(mass)
    across, axial = mass * (3 * 0.05**2 + height**2) / 12, mass * 0.05**2 / 2
    np.testing.assert_allclose(np.sort(model.body("torso").inertia), [axial, across, across])
    assert (model.geom_margin == 0.0005).all()
    assert (load_model(asset_path("hopper.xml"), "v4").geom_margin == 0.001).all()


def test_total_mass_is_kept_where_the_model_sets_it():
    assert load_model(asset_path("half_cheetah.xml")).body_mass.sum() == pytest.approx(14)
    body = "<body><joint type='hinge'/><geom type='capsule' size='.1 .5'/></body>"
    with pytest.warns(UserWarning, match="settotalmass"):
        mujoco.MjSpec.from_string("<mujoco><compiler settotalmass='3'/></mujoco>").compile()
    assert restore(spec_of(body, "<compiler settotalmass='3'/>")).body_mass.sum() == pytest.approx(3)


def test_geoms_of_given_mass_keep_it_and_explicit_inertials_stay():
    given = restore(spec_of("<body><joint/><geom type='capsule' size='.1 .5' mass='2'/></body>"))
    assert given.body_mass[1] == 2
    assert given.body_inertia[1].min() == pytest.approx(2 * 0.1**2 / 2)
    inertial = "<inertial pos='0 0 0' mass='7' diaginertia='1 2 2.5'/>"
    explicit = restore(spec_of(f"<body><joint/>{inertial}<geom type='capsule' size='.1 .5'/></body>"))
    assert explicit.body_mass[1] == 7
    np.testing.assert_allclose(np.sort(explicit.body_inertia[1]), [1, 2, 2.5])


@pytest.mark.parametrize(
    ("body", "compiler", "named"),
    [
        ("<body><joint/><geom name='hull' type='mesh' mesh='m'/></body>", "mesh", "hull"),
        ("<body name='shell'><joint/><geom type='sphere' size='.1' shellinertia='true'/></body>", "", "shell"),
        ("<body name='low'><joint/><geom type='sphere' size='.01'/></body>", "<compiler boundmass='5'/>", "low"),
        ("<geom type='plane' size='1 1 1' gap='.1'/><body><joint/><geom size='.1' margin='.2'/></body>", "", "gap"),
    ],
)
def test_what_the_rule_does_not_know_is_refused_by_name(body, compiler, named):
    if compiler == "mesh":
        compiler = "<asset><mesh name='m' vertex='0 0 0 1 0 0 0 1 0 0 0 1'/></asset>"
    with pytest.raises(SappError, match=named) as refusal:
        restore(spec_of(body, compiler))
    assert "physics='v4'" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def balls(*margins: float) -> str:
    return "".join(
        f"<body pos='{i} 0 0'><freejoint/><geom name='g{i}' size='.1' margin='{margin}'/></body>"
        for i, margin in enumerate(margins)
    )


def test_contact_margins_are_the_larger_of_two():
    np.testing.assert_allclose(restore(spec_of(balls(0.2, 0.2, 0.2))).geom_margin, 0.1)
    three = restore(spec_of(balls(0.1, 0.2, 0.3))).geom_margin
    np.testing.assert_allclose(three, [0.1, 0.1, 0.2])
    with pytest.raises(SappError, match="margins"):
        restore(spec_of(balls(0.0, 0.0, 0.1, 0.1)))


def test_margins_stay_where_mujoco_takes_the_larger_by_itself(monkeypatch):
    monkeypatch.setattr("sapp.envs.physics._margins_add_up", lambda: False)
    assert (load_model(asset_path("hopper.xml")).geom_margin == 0.001).all()


def test_margins_of_geoms_that_cannot_touch_do_not_count():
    ghost = "<body><freejoint/><geom size='.1' margin='.7' contype='0' conaffinity='0'/></body>"
    margins = restore(spec_of(balls(0.2, 0.2) + ghost)).geom_margin
    np.testing.assert_allclose(margins, [0.1, 0.1, 0.7])


def test_bad_requests(tmp_path):
    with pytest.raises(SappError, match="no such"):
        load_model(tmp_path / "absent.xml")
    with pytest.raises(SappError, match="v4"):
        load_model(asset_path("hopper.xml"), "v5")
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><body></mujoco>")
    with pytest.raises(SappError, match=r"broken\.xml"):
        load_model(broken)
