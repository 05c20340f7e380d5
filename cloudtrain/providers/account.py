"""What a call needs beside a request: the account, taken from the settings as requests do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cloudtrain import plugins
from cloudtrain.errors import MissingError
from cloudtrain.providers import registry
from cloudtrain.settings import Settings, settings_for


def account_of(provider: str, folder: Path, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The account for a project in ``folder``. Raises MissingError for a setting that nobody gave."""
    settings = settings_for(provider, folder, given=given)
    names: tuple[str, ...] = registry.declared_by(provider, "account", "ACCOUNT")
    with plugins.guarded(provider, "account.ACCOUNT"):
        account = {name: settings[name] for name in names}
    require(settings, names)
    return account


def require(settings: Settings, names: tuple[str, ...] | None = None) -> None:
    """Raise MissingError if one of these settings, or any that is needed, was not given by anybody."""
    missing = [name for name in settings.missing if names is None or name in names]
    if missing:
        provider = settings.provider
        listed = ", ".join(f"{provider}.{name}" for name in missing)
        variable = f"CLOUDTRAIN_{provider}_{missing[0]}".upper()
        raise MissingError(
            f"not set: {listed}",
            hint=f"put it into cloudtrain.toml, section [{provider}], or give --set {missing[0]}=..., or {variable}",
        )
