import pytest


@pytest.fixture
def gymnasium_mujoco(recordable):
    import gymnasium

    return gymnasium
