"""What comes with a question beside its words, and is stored with the turn: `Instructions`.

That is system text, options and a form of the answer. Options have one name for all providers:
`temperature` (0 to 2), `top_p` (0 to 1), `seed` (a whole number), `max_tokens` (of one answer, 1 or
more), `stop` (one to four texts that end it) and `effort` (how long the model thinks, in its own
words). The form is a JSON Schema, draft 2020-12 unless it names another, whose references stay
inside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple, Self

from searchloop.agent.errors import ConfigError
from searchloop.analysis.told import one_of

_LONGEST_SYSTEM, _LONGEST_SCHEMA, _STOPS, _LONGEST_WORD = 100_000, 100_000, 4, 40
_RANGES: Mapping[str, tuple[str, float, float]] = {
    "temperature": ("a number from 0 to 2", 0, 2),
    "top_p": ("a number from 0 to 1", 0, 1),
    "seed": ("a whole number", -(2**63), 2**63 - 1),
    "max_tokens": ("a whole number from 1", 1, 10**9),
    "stop": (f"a text, or a list of at most {_STOPS} texts", 0, 0),
    "effort": ("one of the model's own words, such as low or high", 0, 0),
}
OPTIONS = tuple(_RANGES)
_WHOLE = frozenset({"seed", "max_tokens"})


class Instructions(NamedTuple):
    """`system` joins the system text, `options` and `schema` are checked; see `of`."""

    system: str | None = None
    options: Mapping[str, Any] = {}
    schema: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls,
        system: str | None = None,
        options: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Self:
        """Checks what a user gave. Raises ConfigError that names what is wrong."""
        if len(system or "") > _LONGEST_SYSTEM:
            what = f"The system text has more than {_LONGEST_SYSTEM:,} characters."
            raise ConfigError("bad_system", what, "Shorten it.")
        given = {name: _option(name, value) for name, value in (options or {}).items()}
        return cls(system, given, None if schema is None else _schema(schema))


def option_from(text: str) -> tuple[str, Any]:
    """Reads `key=value`, as a user types it. Raises ConfigError."""
    name, mark, value = text.partition("=")
    if not mark:
        what = f"{text[:60]!r} is not an option."
        raise ConfigError("bad_option", what, "Write key=value, for example temperature=0.2.")
    if name == "stop":
        return name, _option(name, value)
    try:
        return name, _option(name, json.loads(value))
    except ValueError:
        return name, _option(name, value)


def _option(name: str, value: Any) -> Any:
    """Returns the value of an option, stops always as a list. Raises ConfigError."""
    if name not in _RANGES:
        what = f"There is no option {str(name)[:60]!r}."
        raise ConfigError("bad_option", what, one_of(name, OPTIONS))
    kind, least, most = _RANGES[name]
    if name == "effort":
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_WORD:
            return value
    elif name == "stop":
        texts = [value] if isinstance(value, str) else value
        listed = isinstance(texts, Sequence) and 0 < len(texts) <= _STOPS
        if listed and all(isinstance(text, str) and text for text in texts):
            return list(texts)
    elif type(value) in ((int,) if name in _WHOLE else (int, float)) and least <= value <= most:
        return value
    raise ConfigError("bad_option", f"{name} cannot be {str(value)[:60]!r}.", f"It is {kind}.")


def _schema(schema: Any) -> Mapping[str, Any]:
    """Returns a schema that a validator can work with. Raises ConfigError."""
    from jsonschema.exceptions import SchemaError  # slow to import, seldom needed
    from jsonschema.validators import validator_for

    problem = ""
    try:
        if not isinstance(schema, Mapping):
            problem = "it is not a JSON object"
        elif len(json.dumps(schema)) > _LONGEST_SCHEMA:
            problem = f"it has more than {_LONGEST_SCHEMA:,} characters"
        elif outside := _unresolved(schema):
            problem = f"its reference {outside[:200]!r} leads nowhere inside it"
        else:
            validator_for(schema).check_schema(schema, format_checker=None)
            problem = _unbounded(schema)
    except SchemaError as error:
        problem = f"at {error.json_path}, {error.message[:200]}"
    except (TypeError, ValueError, RecursionError) as error:
        problem = str(error)[:200]
    if problem:
        raise ConfigError("bad_schema", f"The schema is not valid: {problem}.", "Correct it.")
    return dict(schema)


def _unresolved(schema: Mapping[str, Any]) -> str | None:
    """Returns a reference that does not lead to a place in the schema, or None."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    resolver = Registry[Any]().resolver_with_root(DRAFT202012.create_resource(schema))
    for reference in _texts(schema, "$ref", "$dynamicRef"):
        try:
            if not reference.startswith("#"):
                return reference
            resolver.lookup(reference)
        except Unresolvable:
            return reference
    return None


def _texts(value: Any, *keys: str) -> Iterator[str]:
    """Yields the texts that stand under these keys anywhere in a schema."""
    if isinstance(value, Mapping):
        yield from (v for k, v in value.items() if k in keys and isinstance(v, str))
    inner = value.values() if isinstance(value, Mapping) else value
    for each in inner if isinstance(value, Mapping | list) else ():
        yield from _texts(each, *keys)


def _unbounded(schema: Mapping[str, Any]) -> str:
    """Says which pattern of a schema could take forever; "" for none."""
    if '"patternProperties":' in json.dumps(schema):
        return "patternProperties cannot be checked; name the properties"
    for pattern in _texts(schema, "pattern"):
        try:
            _matcher(pattern)
        except Exception as error:  # of the other language: no class of it is public
            why = str(error).strip().rpartition("\n")[2].strip()
            return f"its pattern {pattern[:100]!r} cannot be matched in linear time ({why[:200]})"
    return ""


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> Callable[[str], bool]:
    """Returns what tells if a text has a match, in linear time: a pattern may come from anybody.

    Syntax: https://docs.rs/regex, without look-around and back-references.
    """
    from pydantic import ConfigDict, StringConstraints, TypeAdapter

    form = Annotated[str, StringConstraints(pattern=pattern)]
    linear = ConfigDict(regex_engine="rust-regex")
    return TypeAdapter(form, config=linear).validator.isinstance_python


def _fits_pattern(checker: Any, pattern: str, value: Any, _schema: Any) -> Iterator[Exception]:
    from jsonschema.exceptions import ValidationError

    if checker.is_type(value, "string") and not _matcher(pattern)(value):
        yield ValidationError(f"{value[:200]!r} does not match {pattern[:200]!r}")


def misfit(text: str, schema: Mapping[str, Any]) -> str | None:
    """Says in half a sentence why a text is not JSON that fits the schema; None if it is."""
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"it is not JSON ({error})"
    kind = extend(validator_for(schema), {"pattern": _fits_pattern})
    checker = kind(schema, registry=Registry())
    try:
        errors = sorted(
            checker.iter_errors(value), key=lambda error: (error.json_path, str(error.validator))
        )
    except RecursionError:
        return "the schema refers to itself without end"
    if not errors:
        return None
    more = f", and {len(errors) - 1} more" if errors[1:] else ""
    return f"at {errors[0].json_path}, {errors[0].message[:300]}{more}"


def bare_json(text: str) -> str:
    """Removes blanks and the code fence that a model puts around its JSON."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") + 1 : -3].strip()
    return text


PLAIN = Instructions()
