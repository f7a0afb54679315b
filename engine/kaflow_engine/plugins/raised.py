"""What plugins raise, as errors of ours: what may heal, and what someone must act on."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from kaflow_engine.errors import KaflowError, SinkAway, SinkUnfit, SourceAway, SourceUnfit
from kaflow_engine.plugins.transforms import TransformAway, TransformUnfit


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of one kind of plugins."""

    away: type[KaflowError]
    """It may heal."""
    unfit: type[KaflowError]
    """Someone must act."""


OF_SINKS = Errors(SinkAway, SinkUnfit)
OF_SOURCES = Errors(SourceAway, SourceUnfit)
OF_TRANSFORMS = Errors(TransformAway, TransformUnfit)


@contextmanager
def plugin_errors(errors: Errors, called: str, what: str = "failed") -> Generator[None]:
    """Translate what a plugin raises in the block.

    Args:
        errors: Those of its kind.
        called: The plugin, or what it is a part of, as errors name it.
        what: It could not do, such as "cannot be opened".

    Raises:
        KaflowError: The plugin has raised it; or one of `errors`: a connection broke or it took too
            long, which may heal, or it raised something else.
    """
    try:
        yield
    except KaflowError:
        raise
    except (ConnectionError, TimeoutError) as error:
        raise errors.away(f"{called} {what}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise errors.unfit(
            f"{called} {what}: {type(error).__name__}: {error}",
            hint="correct the plugin, or the 'options' that it gets",
        ) from error
