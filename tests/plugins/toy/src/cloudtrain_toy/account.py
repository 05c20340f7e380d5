"""The settings: ``[toy]`` in cloudtrain.toml, CLOUDTRAIN_TOY_FOLDER, ``--set folder=...``."""

from __future__ import annotations

from cloudtrain.settings import Key

KEYS = {"folder": Key("absolute path of the folder that is the cloud", True, "/set-toy-folder", pattern=r"/[!-~]+")}
ACCOUNT = ("folder",)
STORE = "file://{folder}"
