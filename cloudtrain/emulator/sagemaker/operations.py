"""What a call to AWS is named, read from its HTTP request: for the fault file, which names calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

_FORM = "application/x-www-form-urlencoded"
_BUCKET: Mapping[str, str] = {
    "GET": "ListObjects", "PUT": "CreateBucket", "HEAD": "HeadBucket", "DELETE": "DeleteBucket",
}  # fmt: skip
_OBJECT: Mapping[str, str] = {
    "GET": "GetObject", "PUT": "PutObject", "HEAD": "HeadObject", "DELETE": "DeleteObject",
}  # fmt: skip
_BY_QUESTION: Mapping[tuple[str, str], str] = {
    ("GET", "list-type"): "ListObjectsV2",
    ("GET", "location"): "GetBucketLocation",
    ("GET", "uploads"): "ListMultipartUploads",
    ("GET", "uploadId"): "ListParts",
    ("POST", "delete"): "DeleteObjects",
    ("POST", "uploads"): "CreateMultipartUpload",
    ("POST", "uploadId"): "CompleteMultipartUpload",
    ("PUT", "uploadId"): "UploadPart",
    ("DELETE", "uploadId"): "AbortMultipartUpload",
}
"""What a parameter of the address makes of a request to S3."""
OF_S3 = frozenset({*_BUCKET.values(), *_OBJECT.values(), *_BY_QUESTION.values(), "ListBuckets", "CopyObject"})
"""All that requests to S3 are named here."""


def operation_of(environ: Mapping[str, Any]) -> str:
    """``CreateTrainingJob``, ``GetLogEvents``, ``GetCallerIdentity``, ``PutObject``; "" for what is none of these."""
    if target := environ.get("HTTP_X_AMZ_TARGET", ""):
        return str(target).rpartition(".")[2]
    if environ.get("CONTENT_TYPE", "").startswith(_FORM):
        return _action(environ)
    return _of_s3(environ) if service_of(environ) == "s3" else ""


def service_of(environ: Mapping[str, Any]) -> str:
    """``sagemaker``, ``s3``, ``logs``: what the request is signed for."""
    found = re.search(r"Credential=[^,\s]*/([a-z0-9-]+)/aws4_request", environ.get("HTTP_AUTHORIZATION", ""))
    return found[1] if found else ""


def _action(environ: Mapping[str, Any]) -> str:
    """Of the services with the old protocol, such as STS. ``web.py`` begins the body anew."""
    stream = environ["wsgi.input"]
    found = parse_qs(str(stream.read(int(environ.get("CONTENT_LENGTH") or 0)), "latin-1"))
    stream.seek(0)
    return found.get("Action", [""])[0]


def _of_s3(environ: Mapping[str, Any]) -> str:
    method, asked = environ["REQUEST_METHOD"], parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    for (of, parameter), operation in _BY_QUESTION.items():
        if of == method and parameter in asked:
            return operation
    bucket, _, key = environ.get("PATH_INFO", "").lstrip("/").partition("/")
    if not bucket:
        return "ListBuckets" if method == "GET" else ""
    if method == "PUT" and key and "HTTP_X_AMZ_COPY_SOURCE" in environ:
        return "CopyObject"
    return (_OBJECT if key else _BUCKET).get(method, "")
