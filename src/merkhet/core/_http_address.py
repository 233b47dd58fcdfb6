"""Targets of HTTP requests: addresses, redirects and proxies."""

from __future__ import annotations

import string
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote, urljoin, urlsplit

from merkhet.core.credentials import basic_authorization
from merkhet.core.http_response import Response
from merkhet.core.redaction import display_address, register_address, register_headers

_REDIRECTS = (301, 302, 303, 307, 308)
_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Origin:
    """A server: scheme, host and port."""

    scheme: str
    host: str
    port: int

    @property
    def netloc(self) -> str:
        """Host and port in the notation of an address, such as ``example.org:443``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Target:
    """Target of a request: a server, and a path with its query parameters."""

    origin: Origin
    path: str
    netloc: str
    """Host and port as the user wrote them in the address."""

    @property
    def url(self) -> str:
        """The address, without user and password."""
        return f"{self.origin.scheme}://{self.netloc}{self.path}"


@dataclass(frozen=True)
class Request:
    """An HTTP request to a target."""

    method: str
    target: Target
    body: bytes | None
    headers: Mapping[str, str]
    credentials: Mapping[str, str] = field(repr=False)
    """Headers that hold a key."""


@dataclass(frozen=True)
class Proxy:
    """A proxy server that forwards requests."""

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Credentials of the proxy; empty if the proxy needs none."""


def parse_target(address: str) -> Target:
    """Parse an http or https address without user and password; raise ValueError for any other address."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("the address must begin with http:// or https:// and name a host")
    if parts.username is not None:
        raise ValueError("the address must not contain a user or password")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    path = _quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    return Target(Origin(parts.scheme, parts.hostname, port), path, parts.netloc)


def redirect(request: Request, response: Response) -> Request | None:
    """Return the request to send after a redirect, addressed to the new location.

    Credentials are dropped if the host changes, or if the redirect leads from https to http.

    Returns:
        None if the response is not a redirect, or if the new location is malformed, contains a user name or has
        another scheme than http or https.
    """
    location = response.headers.get("location")
    if response.status not in _REDIRECTS or not location:
        return None
    old = request.target
    try:
        # Headers are decoded as Latin-1.
        new = parse_target(urljoin(old.url, _quote(location, "iso-8859-1")))
    except ValueError:
        return None
    if new.netloc != old.netloc or (old.origin.scheme, new.origin.scheme) == ("https", "http"):
        request = replace(request, credentials={})
    if response.status == 303:
        headers = {name: value for name, value in request.headers.items() if name != "Content-Type"}
        request = replace(request, method="GET", body=None, headers=headers)
    return replace(request, target=new)


def describe_location(request: Request, response: Response) -> str:
    """Return the address that a redirect leads to, without password and query; empty if it is no redirect."""
    location = response.headers.get("location")
    if response.status not in _REDIRECTS or not location:
        return ""
    try:
        # Not percent-encoded: secrets are recognized in the text as it was sent.
        return display_address(urljoin(request.target.url, " ".join(location.split())))
    except ValueError:
        return "a malformed address"


def find_proxy(origin: Origin) -> Proxy | None:
    """Return the proxy that environment variables set for a server, if any."""
    address = urllib.request.getproxies().get(origin.scheme)
    if not address or origin.host in _LOCAL_HOSTS or urllib.request.proxy_bypass(origin.netloc):
        return None
    address = address if "://" in address else f"http://{address}"
    register_address(address)
    parts = urlsplit(address)
    if not parts.hostname:
        return None
    headers = {}
    if parts.username is not None:
        headers["Proxy-Authorization"] = basic_authorization(unquote(parts.username), unquote(parts.password or ""))
        register_headers(headers)
    return Proxy(parts.hostname, parts.port or 8080, headers)


def _quote(text: str, encoding: str = "utf-8") -> str:
    """Percent-encode blanks, control characters and non-ASCII letters."""
    return quote(text, safe=string.punctuation, encoding=encoding)
