"""Options of the command line that are made from the fields of `RunConfig` and `Runtime`.

A verb takes them as one parameter, a mapping of the options that were given. Help text, type, choices, default and
heading all come from the field: a new field is an option of every verb without a further line.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from longshift.errors import UsageError
from longshift.io import parse_value
from longshift.training import RunConfig, Runtime

Fields = Mapping[str, FieldInfo]
NESTED = "__"  # between a table and its key in the name of a parameter; "." in the name of its option
SHORT = {"setting": ("-s",), "target": ("-t",)}


def run_fields(only: Iterable[str] = (), without: Iterable[str] = (), **other_help: str) -> Fields:
    """Fields of `RunConfig`, some with another help text for a verb that treats them in its own way."""
    return _chosen(RunConfig.model_fields, only, without, other_help)


def runtime_fields(only: Iterable[str] = (), **other_help: str) -> Fields:
    """Fields of `Runtime`."""
    return _chosen(Runtime.__pydantic_fields__, only, (), other_help)  # type: ignore[attr-defined]


def with_options(**groups: Fields) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: replace each named parameter of a verb by options made from fields.

    The verb gets the mapping of those that were given, so that "not given" and "given at its default" are told apart.
    """

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(verb)
        def call(**values: Any) -> None:
            for name, fields in groups.items():
                given: dict[str, Any] = {}
                for key in _flat(fields):
                    if (value := values.pop(key)) is not None:
                        table, nested, own = key.partition(NESTED)
                        if nested:
                            given.setdefault(table, {})[own] = value
                        else:
                            given[key] = parse_assignments(value) if key == "hparams" else value
                values[name] = given
            verb(**values)

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(verb, eval_str=True).parameters.values():
            if parameter.name in groups:
                parameters += [_parameter(name, field) for name, field in _flat(groups[parameter.name]).items()]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


def parse_assignments(items: Iterable[str]) -> dict[str, Any]:
    """Hyper-parameters from `alpha=0.3` and the like; values are read as TOML, and as plain text where that fails."""
    result: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set: expected NAME=VALUE, got {item!r}")
        result[name.strip()] = parse_value(text)
    return result


def _chosen(fields: Fields, only: Iterable[str], without: Iterable[str], other_help: Mapping[str, str]) -> Fields:
    names = [name for name in (only or fields) if name not in {*without}]
    found = {name: fields[name] for name in names}
    for name, text in other_help.items():
        # A verb that treats a field in its own way does not have the field's default either.
        found[name] = FieldInfo.merge_field_infos(found[name], description=text, default=None)
    return found


def _flat(fields: Fields) -> Fields:
    """The fields, with those of a nested table (style) in its place as "style__mix"."""
    found: dict[str, FieldInfo] = {}
    for name, field in fields.items():
        kind, _ = _plain_type(field.annotation)
        if issubclass(kind, BaseModel):
            for own, inner in kind.model_fields.items():
                panel: dict[str, Any] = {"panel": _panel(field)}
                extra = {"json_schema_extra": {**panel, **(inner.json_schema_extra or {})}}  # type: ignore[dict-item]
                found[f"{name}{NESTED}{own}"] = FieldInfo.merge_field_infos(inner, default=None, **extra)
        else:
            found[name] = field
    return found


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind, choices = _plain_type(field.annotation)
    flag, short = "--" + name.replace(NESTED, ".").replace("_", "-"), SHORT.get(name, ())
    # The default is part of the text, since the option itself has none: the verb must see what was given.
    options: dict[str, Any] = {
        "help": f"{field.description}{_default(field.default)}",
        "rich_help_panel": _panel(field),
    }
    if name == "hparams":
        flag, kind, options["metavar"] = "--set", list[str], "NAME=VALUE"
    elif kind is bool:
        flag = f"{flag}/--no-{flag[2:]}"
    elif choices := choices or _options(field):
        options["metavar"] = "|".join(choices)
    annotation = Annotated[kind | None, typer.Option(flag, *short, **options)]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _plain_type(annotation: Any) -> tuple[type, tuple[str, ...]]:
    """The type that the command line reads, and the words to choose from."""
    if get_origin(annotation) in (Union, types.UnionType):
        (annotation,) = [part for part in get_args(annotation) if part is not type(None)]
    if get_origin(annotation) is Literal:
        return str, get_args(annotation)
    return (str, ()) if get_origin(annotation) else (annotation, ())


def _options(field: FieldInfo) -> tuple[str, ...]:
    """The words that a hyper-parameter accepts."""
    extra = field.json_schema_extra
    return extra["hp"].options if isinstance(extra, dict) and "hp" in extra else ()  # type: ignore[union-attr]


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return " Default: on." if value else ""
    return f" Default: {value}." if isinstance(value, (str, int, float)) and value != "" else ""


def _panel(field: FieldInfo) -> str | None:
    extra = field.json_schema_extra
    return str(extra["panel"]) if isinstance(extra, dict) and "panel" in extra else None
