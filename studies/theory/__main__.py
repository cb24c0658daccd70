"""What the paper's statements say, and what state-aware pessimism gains in small problems that are solved exactly.

python -m studies.theory audit      # every statement over nine families
python -m studies.theory chain      # the motivating example, every method at its best α
python -m studies.theory compare    # true losses on random problems, α tuned
python -m studies.theory.tables     # the tables of the committed rows, into docs/theory.md and this study's page
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sapp.core.errors import SappError
from sapp.theory.audit import audit
from sapp.theory.chain_tuned import Tuned, tuned_chain
from studies.theory.comparison import compare
from studies.theory.rows import write_audit, write_chain, write_comparison
from studies.theory.tables import ROWS

COMPARED = ("garnet", "sparse", "chain", "grid", "rare", "arms")
CASES = tuple(
    (total, arms, behaviour)
    for total in (20, 100)
    for arms in ("outwards", "uniform")
    for behaviour in ("knowing", "ignorant")
)


def tuned_case(total: int, arms: str, behaviour: str, count: int = 400) -> list[Tuned]:
    """Every method at its best α in one case of the chain."""
    return tuned_chain(count, total, follow=arms == "outwards", knowing=behaviour == "knowing")


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    (word,) = list(sys.argv[1:] if arguments is None else arguments) or [""]
    if word == "audit":
        write_audit(audit(), ROWS / "audit.csv", ROWS / "verdicts.csv")
    elif word == "chain":
        write_chain(ROWS / "chain.csv", {case: tuned_case(*case) for case in CASES})
    elif word == "compare":
        write_comparison(ROWS / "comparison.csv", [row for family in COMPARED for row in compare(family)])
    else:
        raise SappError(f"{word or 'nothing'} given: use audit, chain or compare")


if __name__ == "__main__":
    main()
