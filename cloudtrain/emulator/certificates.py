"""A certificate for 127.0.0.1, and the file by which clients trust it beside all that they trust anyway."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from pathlib import Path

from cloudtrain.errors import MissingError

_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")
"""``requests``, OpenSSL's own and httpx, curl and ``requests`` again."""


def issue(bundle: Path) -> tuple[ssl.SSLContext, dict[str, str]]:
    """What a server loads, and the variables that name ``bundle``, which is written. Raises MissingError."""
    try:
        import trustme
    except ImportError as error:
        raise MissingError(
            f"the emulator needs trustme for an end behind TLS: {error}", hint="pip install 'cloudtrain[emulator]'"
        ) from error
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    bundle.write_bytes(b"\n".join([authority.cert_pem.bytes(), *_trusted_already()]))
    return context, dict.fromkeys(_VARIABLES, str(bundle))


def _trusted_already() -> Iterable[bytes]:
    """What the shell's variables name, else what ``requests`` has with it: other addresses are to go on working."""
    named = [Path(os.environ[name]) for name in _VARIABLES if os.environ.get(name)]
    found = [path.read_bytes() for path in dict.fromkeys(named) if path.is_file()]
    if not found:
        try:
            import certifi
        except ImportError:
            return []
        return [certifi.contents().encode()]
    return found
