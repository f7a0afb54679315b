"""The process of a preview that someone else shows: a request on stdin, lines of JSON on stdout."""

import json
import os
import pickle
import sys
import traceback
from threading import Event, Thread

from kaflow_engine.errors import KaflowError
from kaflow_engine.masking import masked, remember_environment, remember_settings
from kaflow_engine.preview.preview import preview


def main() -> None:
    """Show what is asked for, until stdin ends."""
    try:
        spec, config, asked = pickle.load(sys.stdin.buffer)
    except (EOFError, pickle.UnpicklingError):
        return  # who asked has ended
    remember_environment(os.environ)
    remember_settings(config.model_dump(by_alias=True))
    stop = Event()
    Thread(target=_wait, args=(stop,), daemon=True).start()
    try:
        for each in preview(spec, config, asked, stop):
            _say(each.line())
    except KaflowError as error:
        _say(json.dumps({"error": str(error)}, ensure_ascii=False))
    except BrokenPipeError:
        pass  # who asked has ended
    except Exception:
        sys.stderr.write(masked("", traceback.format_exc()))  # libraries show what they were given
        sys.exit(1)


def _wait(stop: Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):  # no lock of Python's is held where the process ends
        pass
    stop.set()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
