"""What of the settings says whom a call to Vertex AI is for, and where cloudtrain keeps its files."""

from __future__ import annotations

ACCOUNT = ("project", "region")
"""The settings that ``Request.account`` holds."""
STORE = "gs://{bucket}/{prefix}"
"""The folder under which cloudtrain keeps all."""
