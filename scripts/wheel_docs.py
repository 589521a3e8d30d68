"""Build hook: put the project's own documents into the wheel, where the library engine looks.

An installed searchloop can then answer questions about itself with no network. In a clone the same
documents are read where they lie, so an editable install gets no copy that would grow stale.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "searchloop/search_backend/builtin_docs"


class WheelDocs(BuildHookInterface[Any]):
    """Found by hatchling through pyproject.toml."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the build; `version` is 'standard' or 'editable'."""
        if version != "standard":
            return
        root, include = Path(self.root), build_data["force_include"]
        # A zip of the tree, or a file system without links, has text files instead of the links.
        texts = [path for path in (root / "searchloop").iterdir() if path.is_file()]
        texts = [path for path in texts if (root / path.name).is_dir()]
        include.update({str(root / path.name): f"searchloop/{path.name}" for path in texts})
        self.build_config.target_config["exclude"] = [f"/searchloop/{path.name}" for path in texts]
        for path in [root / "README.md", root / "CHANGELOG.md", *sorted(root.glob("docs/**/*.md"))]:
            include[str(path)] = f"{INSIDE}/{path.relative_to(root).as_posix()}"
