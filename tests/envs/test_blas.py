import numpy as np

from sapp.envs import blas


def test_the_number_of_threads_is_put_back():
    controls = blas._controls()
    before = controls[0]() if controls else None
    with blas.one_blas_thread():
        inside = controls[0]() if controls else 1
        product = np.ones((300, 300)) @ np.ones((300, 300))
    assert inside == 1
    assert (product == 300).all()
    assert before == (controls[0]() if controls else None)
