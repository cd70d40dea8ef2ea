"""Train the showdown's checkpoints and pack them: about eleven CPU-minutes.

    python benchmarks/showdown.py DIR

DIR holds the studies, whose finished runs are not trained again. Writes ``teach/showdown/checkpoints``.
"""

import sys
from pathlib import Path

from isoloss.corpus import library
from isoloss.studies.launch import launch
from isoloss.teach.showdown import packing

SHOWDOWN = Path(packing.__file__).parent


def main(folder: str) -> None:
    places = [trained(scale, Path(folder) / scale) for scale in ("packaged", "rates")]
    tokenizer = library.tokenize(library.STARTER, library.VOCABULARY).tokenizer_path
    for path in packing.pack(*places, tokenizer, SHOWDOWN / "checkpoints"):
        print(f"{path.stat().st_size:>9,} bytes  {path.name}")


def trained(scale: str, out: Path) -> Path:
    outcome = launch(str(SHOWDOWN / "showdown.toml"), scale=scale, out=out, workers=1, keep_weights=True)
    if outcome.failed or outcome.diverged or outcome.stopped:
        raise SystemExit(f"not every run finished: {outcome.failed or outcome.diverged or 'stopped'}")
    return out


if __name__ == "__main__":
    main(*sys.argv[1:])
