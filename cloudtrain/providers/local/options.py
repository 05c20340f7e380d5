"""What the command line or a caller of ``ct.run`` may decide beside the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from cloudtrain.errors import SpecError

Isolation = Literal["auto", "netns", "none"]
Engine = Literal["auto", "fork", "agents"]
Device = Literal["auto", "cpu", "gpu"]
Cloud = Literal["sagemaker", "vertex", "azureml"]

_LONGEST_SECONDS = 30 * 86400.0


@dataclass(frozen=True, kw_only=True)
class LocalOptions:
    """Options of a local run; None leaves a choice to the job."""

    nodes: int | None = None
    processes: int | None = None
    """Processes per node."""
    args: tuple[str, ...] = ()
    """Put behind the job's own arguments."""
    data: Mapping[str, Path] = field(default_factory=dict)
    """Channel -> folder here, instead of the job's."""
    isolation: Isolation = "auto"
    engine: Engine = "auto"
    device: Device = "auto"
    grace: float = 30.0
    """Seconds between SIGTERM and SIGKILL."""
    start_timeout: float = 600.0
    """Seconds for all nodes to connect and all workers to join."""
    resume: str | None = None
    """An earlier run, ``latest`` for the newest, whose checkpoints this one continues from."""
    as_: Cloud | None = None
    """The cloud whose request and in-container contract the run goes through; None: local mode's own."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for run.json; without ``resume``, which is about another run."""
        data = {name: str(path.absolute()) for name, path in self.data.items()}
        return {**asdict(self), "args": list(self.args), "data": data, "resume": None}

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> LocalOptions:
        """The opposite of ``as_dict``. Raises SpecError for what that has not made."""
        known = {name: kept[name] for name in cls.__dataclass_fields__ if name in kept}
        try:
            known["args"] = tuple(known.get("args") or ())
            known["data"] = {name: Path(path) for name, path in (known.get("data") or {}).items()}
            return cls(**known)
        except (TypeError, AttributeError) as error:
            raise SpecError(f"the options of the run cannot be read: {error}") from error

    def __post_init__(self) -> None:
        """Raise SpecError for what the command line would have refused."""
        choices = {"isolation": Isolation, "engine": Engine, "device": Device}
        for name, allowed in choices.items():
            if getattr(self, name) not in get_args(allowed):
                raise SpecError(f"{name} must be one of {', '.join(get_args(allowed))}, not {getattr(self, name)!r}")
        if self.as_ is not None and self.as_ not in get_args(Cloud):
            raise SpecError(f"as_ must be one of {', '.join(get_args(Cloud))}, not {self.as_!r}")
        for name in ("nodes", "processes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise SpecError(f"{name} must be at least 1, not {value}")
        for name in ("grace", "start_timeout"):
            least = 0.1 if name == "start_timeout" else 0.0
            if not least <= getattr(self, name) <= _LONGEST_SECONDS:
                raise SpecError(
                    f"{name} must be {least:g} to {_LONGEST_SECONDS:.0f} seconds, not {getattr(self, name)}"
                )
