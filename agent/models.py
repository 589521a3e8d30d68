"""What a provider says of its models: entries of the model picker, and what each of them can do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do, as data. `tools_with_native_search`: both in one request."""

    tools: bool = True
    native_search: bool = False
    tools_with_native_search: bool = False
    thinking: bool = False
    vision: bool = False
    context: int | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model in memory: bytes, how many of them on a GPU, its window, when it leaves (epoch)."""

    size: int = 0
    gpu: int = 0
    window: int | None = None
    until: float | None = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One entry of the model picker. `id` is `provider:model`; `missing` says what it needs.

    `calls` is how the calls of a model that runs here arrive: native, text, envelope, or
    search-first (the program searches for it). `disk` is bytes; `loaded` is None while it is not.
    """

    id: str
    title: str = ""
    capabilities: Capabilities = Capabilities()
    available: bool = True
    local: bool = False
    missing: str | None = None
    remedy: str | None = None
    calls: str | None = None
    disk: int | None = None
    loaded: Loaded | None = None
