"""Publish a policy with its card on a model hub."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import override

from sapp.core.errors import SappError, one_line
from sapp.core.extras import require
from sapp.core.files import write_text
from sapp.export.card import is_card
from sapp.export.policy import export_policy
from sapp.hooks.keep_best import best_folder
from sapp.runs.folders import CONFIG, HUB
from sapp.runs.hooks import Hook
from sapp.runs.plan import Plan
from sapp.runs.run import Run
from sapp.runs.single_member import write_member

_FRONT = """---
library_name: sapp
tags: [reinforcement-learning, offline-reinforcement-learning, onnx]
---
"""


class HubPush(Hook):
    """At the end of training makes ``RUN/hub`` and uploads it to a Hugging Face repository (needs the ``hub`` extra).

    The folder holds the policy as ``policy.onnx``, its card as ``README.md`` and ``policy.json``, and in ``run`` what
    ``sapp.Run`` opens. Where the data lie is not in it. The folder is complete before anything is sent, so what could
    not be uploaded can be later: ``hf upload REPO RUN/hub``. Who is logged in is huggingface_hub's own business.
    """

    def __init__(
        self, repo: str, *, member: int | str | None = None, best: bool = False, private: bool = True,
        upload: bool = True, endpoint: str | None = None,
    ) -> None:  # fmt: skip
        """Refuse at once where what it needs is not installed.

        Args:
            repo: such as "somebody/pendulum-cql".
            member: which policy, by name or number, where the run has several.
            best: what ``KeepBest`` kept rather than the last; name that hook, too.
            private: make the repository private, if it is not there yet.
            upload: False makes the folder only.
            endpoint: another hub than huggingface.co.
        """
        if repo.count("/") != 1 or not all(repo.split("/")):
            raise SappError(f"hub: {repo!r} is no repository; name it as in somebody/pendulum-cql")
        self._hub = require("huggingface_hub", "publishing on a model hub") if upload else None
        require("onnxruntime", "publishing a policy")
        require("onnx", "publishing a policy")
        self._repo, self._member, self._best = repo, member, best
        self._private, self._endpoint = private, endpoint

    @override
    def check(self, plan: Plan) -> None:
        if self._member is None and len(plan.members) > 1:
            names = ", ".join(map(str, plan.ids))
            raise SappError(f"HubPush: the run has {len(plan.members)} policies; name one as its member: {names}")

    @override
    def on_end(self, run: Run) -> None:
        folder = self.prepare(run)
        if self._hub is None:
            return
        try:
            hub = self._hub.HfApi(endpoint=self._endpoint)
            hub.create_repo(self._repo, private=self._private, exist_ok=True)
            hub.upload_folder(repo_id=self._repo, folder_path=str(folder), commit_message=f"Step {run.step}")
        except Exception as error:
            raise SappError(
                f"{self._repo} was not uploaded ({one_line(error)[:120]}); all is in {folder}: "
                f"hf upload {self._repo} {folder}"
            ) from None

    def prepare(self, run: Run) -> Path:
        """Make the folder to upload."""
        folder = run.path / HUB
        index = run.member_index(self._member or 0)
        source, number = run, index
        if self._best and (best_folder(run, index) / CONFIG).is_file():
            source, number = Run(best_folder(run, index)), 0
        step, learners = source.restore()
        write_member(source, number, step, learners, folder / "run")
        export_policy(folder / "run", folder / "policy.onnx", force=True)
        card = folder / "policy.md"
        text = card.read_text(encoding="utf-8")
        assert is_card(text.encode())
        write_text(folder / "README.md", _FRONT + text)
        card.unlink()
        return folder
