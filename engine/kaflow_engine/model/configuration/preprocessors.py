"""Preprocessors: plugins that rewrite the text of pipeline files before these are parsed."""

from collections.abc import Callable
from dataclasses import replace

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import Rewrite, raise_all
from kaflow_engine.plugins.options import wrong_options
from kaflow_engine.plugins.preprocessors import GivenText, preprocessor_plugin


def rewriter(config: Config) -> Rewrite | None:
    """Return what lets the preprocessors of a configuration rewrite the text of a file, one after
    the other; None: there are none.

    Raises:
        ModelError: A preprocessor is not installed, or the configuration gives it wrong settings.
    """
    if not config.preprocessors:
        return None
    steps = [(name, _step(config, name)) for name in config.preprocessors]

    def rewrite(text: str, at: Location) -> tuple[str, Location]:
        changed: list[str] = []
        for name, step in steps:
            before, text = text, step(text, at)
            changed += [name] if text != before else []
            at = replace(at, rewritten_by=", ".join(changed))
        return text, at

    return rewrite


def _step(config: Config, name: str) -> Callable[[str, Location], str]:
    try:
        plugin = preprocessor_plugin(name)
    except ModelError as error:
        error.at = Location(config.origin("preprocessors"))
        raise
    said = config.plugins[name].settings if name in config.plugins else {}
    origin = ("plugins", name, "settings")
    places = {key: Location(config.origin(*origin, key)) for key in said}
    # no settings at all: it is the list that asks for a plugin that needs some
    places[""] = Location(config.origin(*origin) if said else config.origin("preprocessors"))
    raise_all(wrong_options(name, plugin.options, said, places))
    options = plugin.options.model_validate(said)

    def step(text: str, at: Location) -> str:
        try:
            made = plugin.rewrite(GivenText(text=text, file=at.file, options=options))
        except ModelError as error:
            error.at = error.at or at
            raise
        except Exception as error:
            raise ModelError(
                f"preprocessor '{name}' fails: {type(error).__name__}: {error}",
                at,
                "correct the file, or the plugin",
            ) from error
        return _text(name, made, at)

    return step


def _text(name: str, made: object, at: Location) -> str:
    if not isinstance(made, str):
        raise ModelError(
            f"preprocessor '{name}' gives a {type(made).__name__}, and no text",
            at,
            "correct the plugin",
        )
    return made
