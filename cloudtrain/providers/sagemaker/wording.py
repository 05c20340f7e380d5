"""Sentences that the schema and our own rules share, so that one flaw found by both is told once."""

from __future__ import annotations

from collections.abc import Sized


def too_much(value: Sized, most: int) -> str:
    """Too long a text, list or mapping."""
    return f"{len(value)} {_unit(value)}, at most {most}"


def too_little(value: Sized, least: int) -> str:
    """Too short a text, list or mapping."""
    return f"{len(value)} {_unit(value)}, at least {least}"


def long_key(key: str, most: int) -> str:
    """Too long a key of a mapping."""
    return f"the key has {len(key)} characters, at most {most}"


def _unit(value: Sized) -> str:
    return "characters" if isinstance(value, str) else "entries"
