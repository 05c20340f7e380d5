"""S3, CloudWatch Logs, STS and what else of AWS is beside SageMaker: moto's server, in this process and in memory.

moto keeps its state in globals of its modules, by account. Every emulator has an account of its own, and takes nothing
but that with it when it closes, so several may be open in one process. The names of buckets, unique among all accounts
there as on AWS, are told apart by account here.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, cast

from cloudtrain.errors import MissingError

_HEADER = "HTTP_X_MOTO_ACCOUNT_ID"
"""moto's own (read in moto 5.2.5, core/responses.py): the account that a call is for."""
_accounts = itertools.count(111122223333)
_here = threading.local()
"""``account``: of the call that this thread is answering."""


class Services:
    """The services of one account, as a WSGI application."""

    def __init__(self) -> None:
        """Raises MissingError without moto."""
        self._app = _moto()
        self.account = str(next(_accounts))

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        environ[_HEADER] = self.account
        environ.pop("HTTP_TRANSFER_ENCODING", None)  # the body is whole already, and has a length
        _here.account = self.account
        try:
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer
        finally:
            _here.account = ""

    def close(self) -> None:
        """Forget all that the account has. What moto writes to temporary files (large objects) is removed."""
        from moto.core.base_backend import BackendDict
        from moto.s3.models import FakeKey, FakeMultipart, s3_backends

        kinds: tuple[Any, ...] = (FakeKey, FakeMultipart)
        for tracked in (kind.instances_tracked for kind in kinds):
            ours = [thing for thing in tracked if thing.account_id == self.account]
            tracked[:] = [thing for thing in tracked if thing.account_id != self.account]
            for thing in ours:
                thing.dispose()
        kept: Any = BackendDict
        for backends in list(kept._instances):
            backends.pop(self.account, None)
        cast("_BucketOwners", s3_backends.bucket_accounts).forget(self.account)


def _moto() -> Any:
    try:
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from moto.s3.models import s3_backends
    except ImportError as error:
        raise MissingError(
            f"the emulator of SageMaker needs moto, which cannot be loaded: {error}",
            hint="pip install 'cloudtrain[emulator]'",
        ) from error
    if not isinstance(s3_backends.bucket_accounts, _BucketOwners):
        s3_backends.bucket_accounts = cast("Any", _BucketOwners(s3_backends.bucket_accounts))
    return DomainDispatcherApplication(create_backend_app)


class _BucketOwners(MutableMapping[str, Any]):
    """Bucket -> what moto says of its owner, as the account sees it whose call this thread is answering."""

    def __init__(self, elsewhere: Mapping[str, Any]) -> None:
        """``elsewhere``: those of whoever else uses moto in this process."""
        self._owners: dict[tuple[str, str], Any] = {("", bucket): owner for bucket, owner in elsewhere.items()}

    def forget(self, account: str) -> None:
        """All buckets of an account."""
        self._owners = {key: owner for key, owner in self._owners.items() if key[0] != account}

    def __getitem__(self, bucket: str) -> Any:
        return self._owners[_account(), bucket]

    def __setitem__(self, bucket: str, owner: Any) -> None:
        self._owners[_account(), bucket] = owner

    def __delitem__(self, bucket: str) -> None:
        del self._owners[_account(), bucket]

    def __iter__(self) -> Iterator[str]:
        return iter([bucket for account, bucket in list(self._owners) if account == _account()])

    def __len__(self) -> int:
        return len(list(iter(self)))


def _account() -> str:
    return str(getattr(_here, "account", ""))
