"""A section of the job: a frozen pydantic model that finds everything wrong at once and says it in our words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.functional_validators import ModelWrapValidatorHandler
from pydantic_core import InitErrorDetails
from typing_extensions import Self

from cloudtrain.spec.fields import absent, unknown_keys
from cloudtrain.spec.flaws import all_flaws, flaw, flaws_of, kind, problems_of, wrong
from cloudtrain.spec.problems import JobFileError

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _Checked
else:

    class _Checked(type(BaseModel)):
        """``Job(...)`` in Python raises the same error as a job file does."""

        def __call__(cls, *args, **values):
            try:
                return super().__call__(*args, **values)
            except ValidationError as error:
                raise JobFileError(problems_of(error)) from None


class Section(BaseModel, metaclass=_Checked):
    """Base of all sections. None stands for "not given", so an empty section in a file means its defaults."""

    # defer_build: only the job is built, when the first one is read, and its sections as parts of it.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def rules(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:  # noqa: ARG003
        """What several fields together get wrong. ``given`` is unchecked: its values may have any type."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _find_all(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(value, cls):
            return handler(value)
        if not isinstance(value, Mapping):
            raise wrong(f"must be a mapping with the keys {', '.join(cls.model_fields)}, not {kind(value)}")
        given = {key: item for key, item in value.items() if key in cls.model_fields and not absent(item)}
        found = [*unknown_keys(value, tuple(cls.model_fields)), *cls.rules(given)]
        try:
            made = handler(given)
        except ValidationError as error:
            raise all_flaws([*found, *cls._missing(given), *_without_missing(error)]) from None
        if found:
            raise all_flaws(found)
        return made

    @classmethod
    def _missing(cls, given: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
        for name, field in cls.model_fields.items():
            if field.is_required() and name not in given:
                yield flaw((name,), f"is missing: {_begun_small(field.description or '')}")


def _begun_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].removesuffix(".")


def as_mapping(value: object) -> Mapping[Any, Any]:
    """An unchecked section or mapping as a mapping; an empty one for anything else."""
    if isinstance(value, Section):
        return dict(value)
    return value if isinstance(value, Mapping) else {}


def _without_missing(error: ValidationError) -> list[InitErrorDetails]:
    """Findings of the fields that were given; deeper sections have reported their own missing ones as flaws."""
    missing = {found["loc"] for found in error.errors() if found["type"] == "missing"}
    return [found for found in flaws_of(error) if found["loc"] not in missing]
