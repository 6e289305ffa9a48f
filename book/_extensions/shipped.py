"""What a reader installs: the wheel, and a copy of the repository as an archive, made with the pages and offered there.

``{shipped}`` shows how one of the two is had, and then the commands of its lines: for ``wheel`` the file, whose name
stands where a line has ``WHEEL``; for ``copy`` a clone from ``DPFOREST_REPOSITORY``, or the archive where that variable
is not set.
"""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from editions import EDITION
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from publishing import address, cited
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "_downloads"


def names() -> tuple[str, str]:
    """Of the wheel, and of the archive without its ending."""
    version = cited()["version"]
    return f"dpforest-{version}-py3-none-any.whl", f"dpforest-{version}"


class Shipped(SphinxDirective):
    """A sentence that leads to the file, if one is needed, and the commands as a console shows them."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        wheel, archive = names()
        commands = [line.replace("WHEEL", wheel) for line in self.content]
        repository = self.config.copied_from
        if self.arguments[0] == "wheel":
            file = wheel
        elif self.arguments[0] != "copy":
            raise self.error(f"what is shipped is a wheel or a copy, not {self.arguments[0]!r}")
        elif repository:
            file, commands = "", [f"git clone {repository} dpforest", "cd dpforest", *commands]
        else:
            file, commands = f"{archive}.tar.gz", [f"tar xf {archive}.tar.gz", f"cd {archive}", *commands]
        text = "\n".join(f"$ {command}" for command in commands)
        shown = nodes.literal_block(text, text, language="console")
        if not file:
            return [shown]
        uri = relative_uri(self.env.app.builder.get_target_uri(self.env.docname), f"{FOLDER}/{file}")
        before, after = (
            ("下载 ", "，然后在它所在的文件夹中执行：")
            if self.env.docname.startswith(EDITION)
            else ("Download ", ", and in the folder where it is:")
        )
        link = nodes.reference("", "", nodes.literal(file, file), refuri=uri, internal=True)
        return [nodes.paragraph("", "", nodes.Text(before), link, nodes.Text(after)), shown]


def _configure(app: Sphinx, config: Config) -> None:
    config.copied_from = address("DPFOREST_REPOSITORY")  # type: ignore[attr-defined]


def ship(folder: Path, repository: str = "") -> list[Path]:
    """Make the files that pages lead to: one source gives the same bytes, and no network is needed."""
    builders = [WheelBuilder] if repository else [WheelBuilder, SdistBuilder]
    made = [each(str(ROOT)).build(directory=str(folder), versions=["standard"]) for each in builders]
    return [Path(file) for files in made for file in files]


def _finish(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        ship(Path(app.outdir, FOLDER), app.config.copied_from)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx; another address of the repository makes the pages be read again."""
    app.add_config_value("copied_from", "", "env")
    app.add_directive("shipped", Shipped)
    app.connect("config-inited", _configure)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
