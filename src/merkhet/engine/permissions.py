"""Permissions that a study needs before foreign code is imported or a key is sent."""

from __future__ import annotations

import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from merkhet.core.consent import Permission, announce, announcement, require_consent
from merkhet.core.files import file_digest, path_exists
from merkhet.core.ids import digest
from merkhet.core.registry import Registry, code_digest, source_file
from merkhet.engine.study import Study
from merkhet.knowledge import SOURCES
from merkhet.knowledge.source_lookup import named_source
from merkhet.metrics import METRICS, registered_name
from merkhet.models import MODELS
from merkhet.models.model_lookup import add_chat_defaults, chat_settings, has_endpoint, is_registered_model
from merkhet.models.protocol import ASSOCIATION_PREFIX, RANDOM_PREFIX
from merkhet.probes import PROBES
from merkhet.training import LEARNERS

_CODE_PLACES = ("stdlib", "platstdlib", "purelib", "platlib")


@dataclass(frozen=True)
class Part:
    """A component that a study names, which may be foreign code."""

    key: str
    """Key of the study."""
    registry: Registry = field(compare=False)
    name: str
    """Registered name or reference."""

    def permission(self, home: Path, has_own_code: bool = True) -> Permission | None:
        """Return the permission that importing the component needs; None if it needs none.

        Args:
            home: Folder that paths are relative to.
            has_own_code: Whether code in ``home`` belongs to the study and needs no permission.

        Raises:
            InputError: The code does not exist, or belongs to Python's standard library.
        """
        reference = self.registry.foreign_reference(self.name)
        if reference is None:
            return None
        self.registry.check(self.name)
        content = code_digest(reference, home)
        if self.registry.is_plugin(self.name):
            return Permission(
                f"runs the installed plug-in {self.name} ({self.key}), which is the code {reference}",
                ("plug-in", self.key, self.name, reference, content),
            )
        source = reference.rpartition(":")[0]
        if not source.endswith(".py"):
            return Permission(f"imports {reference} ({self.key})", ("module", self.key, reference, content))
        file = source_file(source, home)
        if has_own_code and is_own_code(file, home):
            return None
        place = " from outside its folder" if has_own_code else ""
        return Permission(
            f"runs {file.resolve()}:{reference.rpartition(':')[2]} ({self.key}){place}",
            ("file", self.key, reference, content),
        )


def check_permissions(
    file: Path, study: Study, typed: Study, typed_keys: Iterable[str], suites: Registry, *, asks: bool, trust: bool
) -> None:
    """Check that the user has agreed to the foreign code that a study file names, and to the keys that it sends.

    What the user has typed, or passed in Python, needs no permission. Nothing is imported.

    Args:
        file: The study file.
        study: The study with the values that the user has typed.
        typed: The typed values alone.
        typed_keys: Keys of the typed values.
        asks: Whether models are asked; False if questions are only built.
        trust: Whether the user agrees to everything.

    Raises:
        ConsentError: The user has not agreed.
        InputError: The study names code that does not exist.
    """
    home = file.parent
    typed_parts = set(_named_parts(typed, home, suites, asks=asks))
    if "suite" not in typed_keys:
        typed_parts -= {Part("suite", suites, typed.suite)}
    parts = [part for part in _named_parts(study, home, suites, asks=asks) if part not in typed_parts]
    permissions = [permission for part in parts if (permission := part.permission(home)) is not None]
    if asks:
        permissions += _model_code(study, typed, home)
        keys = list(_sent_keys(study, typed))
        permissions += [key.permission() for key in keys if not key.is_usual]
        announce(list(dict.fromkeys(announcement(str(file), key.action) for key in keys if key.is_usual)))
    require_consent(permissions, str(file), file_digest(file), trust=trust)


def is_own_code(file: Path, home: Path) -> bool:
    """Return whether a code file belongs to the study in the folder ``home``: it is in this folder or below.

    Symbolic links are followed. Installed packages belong to no study. In a folder that holds more than a study, such
    as the user's home, only the files beside the study belong to it.
    """
    folder, file = home.resolve(), file.resolve()
    paths = sysconfig.get_paths()
    if any(file.is_relative_to(Path(paths[name]).resolve()) for name in _CODE_PLACES if name in paths):
        return False
    shared = [Path(tempfile.gettempdir()).resolve()]
    with suppress(RuntimeError):  # The user may have no home.
        shared.append(Path.home().resolve())
    if any(place.is_relative_to(folder) for place in shared):
        return file.parent == folder
    return file.is_relative_to(folder)


def _named_parts(study: Study, home: Path, suites: Registry, *, asks: bool) -> Iterator[Part]:
    """Yield the components that a study names; those that only asking needs if ``asks``."""
    yield Part("suite", suites, study.suite)
    for location in study.knowledge:
        source = named_source(location, home)
        if source is not None:
            yield Part("knowledge", SOURCES, source)
    if not asks:
        return
    for probe in study.probes:
        yield Part("probes", PROBES, probe.probe)
    for metric in study.metrics:
        yield Part("metrics", METRICS, registered_name(metric))
    if study.learning is not None:
        yield Part("learning", LEARNERS, study.learning.learner)
    for choice in study.models:
        name = choice.model
        while name.startswith((RANDOM_PREFIX, ASSOCIATION_PREFIX)):
            name = name.removeprefix(RANDOM_PREFIX).removeprefix(ASSOCIATION_PREFIX)
        if not has_endpoint(choice.spec()) and is_registered_model(name):
            yield Part("models", MODELS, name)


def _model_code(study: Study, typed: Study, home: Path) -> Iterator[Permission]:
    """Yield a permission for each model of the study file that may run the code in its own folder."""
    typed_models = {choice.model for choice in typed.models if choice.trust_remote_code}
    for choice in study.models:
        if not choice.trust_remote_code or choice.model in typed_models:
            continue
        folder = next((path for path in (home / choice.model, Path(choice.model)) if path_exists(path)), None)
        files = sorted([*folder.rglob("*.py"), *folder.glob("*.json")]) if folder is not None else []
        content = digest([[file.name, file_digest(file)] for file in files if file.is_file()])
        yield Permission(
            f"lets the model {choice.model} run the code that comes with it (trust_remote_code)",
            ("model code", choice.model, choice.revision or "", content),
        )


@dataclass(frozen=True)
class _SentKey:
    """An environment variable whose value is sent to a host."""

    variable: str
    origin: str
    """Scheme, host and port."""
    is_usual: bool
    """Whether merkhet itself, and not the study, pairs this variable with this host."""

    @property
    def action(self) -> str:
        scheme, _, host = self.origin.partition("://")
        return f"sends the environment variable {self.variable} to {host}" + (
            "" if scheme == "https" else " (unencrypted)"
        )

    def permission(self) -> Permission:
        return Permission(self.action, ("key", self.variable, self.origin))


def _sent_keys(study: Study, typed: Study) -> Iterator[_SentKey]:
    """Yield the keys that asking sends, unless the user has typed both the variable and the address."""
    typed_variables = {
        chat.get("key") for chat in (typed.chat, *(choice.chat or {} for choice in typed.models)) if chat.get("key")
    }
    typed_origins = {
        _origin(chat_settings(choice.spec()).endpoint) for choice in typed.models if has_endpoint(choice.spec())
    }
    for choice in study.models:
        spec = add_chat_defaults(choice.spec(), study.chat, study.seed)
        if not has_endpoint(spec):
            continue
        settings = chat_settings(spec)
        variable, origin = settings.key_variable, _origin(settings.endpoint)
        is_typed = origin in typed_origins and (settings.key is None or variable in typed_variables)
        if variable is not None and not is_typed:
            yield _SentKey(variable, origin, settings.has_usual_key)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.lower()}"
