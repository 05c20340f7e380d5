"""What a request needs in S3 before it is sent: see ``providers/uploading.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cloudtrain.providers.port import Progress, Uploaded
from cloudtrain.providers.sagemaker.s3 import content, stored
from cloudtrain.providers.sagemaker.sending import Sender
from cloudtrain.providers.uploading import missing

if TYPE_CHECKING:
    from cloudtrain.bundle import Bundle
    from cloudtrain.providers.base import Request
    from cloudtrain.providers.sagemaker.session import Services


def upload(services: Services, request: Request, bundle: Bundle | None, progress: Progress) -> Uploaded:
    """See ``Client.upload``."""
    with missing(request, bundle, _Lying(services)) as found:
        done, total = found.present, found.present + found.size
        progress(done, total)

        def tell(size: int) -> None:
            nonlocal done
            done += size
            progress(done, total)

        sender = Sender(services.s3, services.region, tell)
        try:
            sender.send(found.first)
            sender.send(found.last)
        finally:
            sender.close()
        return Uploaded(sender.sent, total - sender.sent)


class _Lying:
    def __init__(self, services: Services) -> None:
        self._s3, self._region = services.s3, services.region

    def sizes(self, folder: str) -> Mapping[str, int]:
        return {found.path: found.size for found in stored(self._s3, folder, self._region)}

    def content(self, uri: str, most: int) -> bytes | None:
        return content(self._s3, uri, most, self._region)
