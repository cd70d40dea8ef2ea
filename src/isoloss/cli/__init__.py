"""The command line: one function a verb, no logic.

Exit codes: 0 done, 1 failed or stopped, 2 wrong usage or input, 3 refused.
"""

import atexit
import gc
import os
import sys
from io import TextIOWrapper
from typing import NoReturn

from isoloss.studies.stop import StopSignal

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # our matrices are small: more threads are slower

with StopSignal() as early:  # imports take a moment, in which a Ctrl-C would print a traceback
    gc.set_threshold(200_000)  # from 700: imports make many objects and no garbage
    from isoloss.cli import studies, plot, laws, plans, logs, teaching, bench, data, corpus  # isort: skip (order of the help)
    from isoloss.cli.app import app, plain, run
    from isoloss.errors import IsolossError

__all__ = ["app", "bench", "corpus", "data", "laws", "logs", "main", "plans", "plot", "studies", "teaching"]

INTERRUPTED = 130
"""What the command-line library exits with after Ctrl-C."""

atexit.register(gc.freeze)  # else Python looks for cycles in all that was imported, to free what ends anyway


def main() -> None:
    """Entry point: errors of ours become one message and their exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal that has not every sign gets "?" for it
            stream.reconfigure(errors="replace")
    try:
        try:
            if early.asked:
                sys.exit(INTERRUPTED)
            run(sys.argv[1:])
        finally:
            sys.stdout.flush()  # here, where a reader who has gone is no error
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # the command-line library makes it exit code 1
            _leave_quietly()
        if end.code != INTERRUPTED:
            raise
        print("isoloss: stopped. Run the same command again: a study goes on where it was.", file=sys.stderr)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print(
            "isoloss: training needs PyTorch\n"
            "  To mend it: pip install torch, or in a clone pip install '.[train]'",
            file=sys.stderr,
        )
        sys.exit(2)
    except IsolossError as error:
        print(plain(f"isoloss: {error}"), file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _leave_quietly()
    except OSError as error:  # disk full, no permission: the system's own words and the place
        where = f"{error.filename}: " if error.filename else ""
        print(f"isoloss: {where}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)


def _leave_quietly() -> NoReturn:
    """The reader of stdout has gone, as `| head` does: what is left to flush goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(0)
