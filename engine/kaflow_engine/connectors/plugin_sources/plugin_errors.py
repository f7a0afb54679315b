"""Errors of plugins as those of sources: what may heal, and what someone must act on."""

from collections.abc import Generator
from contextlib import contextmanager

from kaflow_engine.errors import KaflowError, SourceAway, SourceUnfit


@contextmanager
def plugin_errors(called: str, what: str = "failed") -> Generator[None]:
    """Translate what a plugin raises in the block.

    Args:
        called: The source, as errors name it.
        what: Which it could not do.

    Raises:
        KaflowError: The plugin has raised it.
        SourceAway: A connection broke, or it took too long: it may heal.
        SourceUnfit: It raised something else: someone must act.
    """
    try:
        yield
    except KaflowError:
        raise
    except (ConnectionError, TimeoutError) as error:
        raise SourceAway(f"{called}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise SourceUnfit(
            f"{called} {what}: {type(error).__name__}: {error}",
            hint="correct the plugin, or the 'options' that it gets",
        ) from error
