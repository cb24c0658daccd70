#!/usr/bin/env bash
# What sapp's experiments need beside JAX, for a GPU machine without network: one archive of unpacked wheels.
#   bench/pack.sh site.tar.xz 3.12            # then there: tar -xf site.tar.xz -C site; PYTHONPATH=sapp:site python -m sapp
#   bench/pack.sh peer.tar.xz 3.12 peer       # d3rlpy, for bench/performance.py --part peers
# The Python version is that machine's. jax, numpy, scipy (and torch for the peer) must be there already.
set -euo pipefail
archive=$(realpath -m "$1") version=$2 what=${3:-sapp}
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/wheels" "$folder/site"

fetch() {
    "$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version "$version" -d "$folder/wheels" "$@"
}
if [ "$what" = peer ]; then
    fetch d3rlpy==2.8.1 gymnasium==1.0.0 farama-notifications cloudpickle h5py click colorama dataclasses-json \
        marshmallow typing-inspect mypy-extensions structlog tqdm typing-extensions scikit-learn joblib threadpoolctl packaging gym-notices
    # gym has no wheel
    "$python" -m pip install --quiet --no-deps --target "$folder/site" gym==0.26.2
else
    fetch -c "$here/constraints.txt" equinox optax jaxtyping wadler-lindig absl-py typing-extensions mujoco mujoco-core glfw \
        gymnasium farama-notifications cloudpickle ale-py safetensors rich markdown-it-py mdurl pygments typer annotated-doc shellingham \
        pydantic pydantic-core annotated-types typing-inspection h5py filelock jinja2 markupsafe
    fetch click chex toolz etils
    touch "$folder/site/imageio.py"  # gymnasium's renderer imports it; nothing here renders
fi
for wheel in "$folder"/wheels/*.whl; do "$python" -m zipfile -e "$wheel" "$folder/site"; done
rm -rf "$folder"/site/mujoco/{studio,doc} "$folder"/site/*/tests
tar -cJf "$archive" -C "$folder/site" .
du -h "$archive"
