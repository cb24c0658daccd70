"""Makes the site's pages of what is not a page in docs/: the studies, notebooks, the changelog and its like.

Pages link to files of the repository, as one reads them there. On the site such a link leads to the page made of that
file, or to a copy of it.
"""

from __future__ import annotations

import json
import posixpath
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
FOLDED = ("CHANGELOG.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "bench/README.md")
"""Files outside docs/ and studies/ that are pages."""
START = "README.md"
"""The repository's start, whose place on the site is docs/index.md."""
LINK = re.compile(r"(!?\[(?:[^\]\[]|\[[^\]]*\])*\]\()([^)\s]+)(\))")
FENCE = re.compile(r"(?ms)^(```|~~~).*?^\1[ ]*$")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages and whatever they link to."""
    for source in (*sorted(ROOT.glob("studies/**/*.md")), *(ROOT / name for name in FOLDED)):
        files.append(File.generated(config, source.relative_to(ROOT).as_posix(), abs_src_path=str(source)))
    for file in [each for each in files if each.src_uri.endswith(".ipynb")]:
        for path, content in notebook(json.loads(Path(str(file.abs_src_path)).read_text("utf-8")), file.src_uri):
            files.append(File.generated(config, path, content=content))
    for page in list(files.documentation_pages()):
        for link in links(page.content_string):
            uri = site_uri(target_of(link, repository_path(page.src_uri)))
            if uri is not None and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / uri)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links between files of the repository into links between places of the site."""
    del config, files
    here = repository_path(page.file.src_uri)

    def moved(found: re.Match[str]) -> str:
        link = found[2]
        if "," in link:  # a formula such as E[x](s,a)
            return found[0].replace("](", "]\\(")
        if not is_relative(link):
            return found[0]
        uri = site_uri(target_of(link, here))
        if uri is None:  # a folder: it has no page; what is not there at all stays a link, which the build refuses
            return found[1][1:-2] if (ROOT / target_of(link, here)).is_dir() else found[0]
        _, hash_sign, anchor = link.partition("#")
        path = posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".")
        return f"{found[1]}{path}{hash_sign}{anchor})"

    return outside_fences(markdown, lambda text: LINK.sub(moved, text))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keeps the studies' tables of numbers out of the search, whose results they would fill."""
    del config, files
    return html.replace("<table>", "<table data-search-exclude>") if page.file.src_uri.startswith("studies/") else html


def outside_fences(markdown: str, change: Any) -> str:
    """The text with a function applied to all that is not a block of code."""
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def is_relative(link: str) -> bool:
    """Whether a link leads to another file here."""
    return not re.match(r"[a-z]+:|#|/", link)


def links(markdown: str) -> list[str]:
    """The relative links of a page."""
    return [
        found[2] for found in LINK.finditer(FENCE.sub("", markdown)) if is_relative(found[2]) and "," not in found[2]
    ]


def repository_path(uri: str) -> str:
    """Where the source of a page lies in the repository."""
    return uri if uri.startswith("studies/") or uri in FOLDED else DOCS + uri


def target_of(link: str, page: str) -> str:
    """The path in the repository that a link on a page leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), link.partition("#")[0]))


def site_uri(path: str) -> str | None:
    """Where a file of the repository lies on the site; None for what is no file and has no page."""
    if path == START:
        return "index.md"
    for page in (f"{path}/README.md", f"{path}/index.md"):
        path = page if (ROOT / page).is_file() else path
    if path.startswith(DOCS) and path.endswith(".ipynb"):
        return path.removeprefix(DOCS).removesuffix(".ipynb") + ".md"
    return path.removeprefix(DOCS) if (ROOT / path).is_file() else None


def notebook(content: dict[str, Any], uri: str) -> list[tuple[str, str | bytes]]:
    """A notebook as a page and its pictures, (path, content) each."""
    stem = uri.removesuffix(".ipynb")
    name = posixpath.basename(stem)
    text, pictures = [], []
    for cell in content["cells"]:
        source = "".join(cell["source"])
        text.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            shown = output.get("data", {})
            if "image/png" in shown:
                path = f"{stem}-{len(pictures) + 1}.png"
                pictures.append((path, b64decode("".join(shown["image/png"]))))
                text.append(f"![{cell['metadata'].get('alt', '')}]({posixpath.basename(path)})")
            elif said := "".join(output.get("text", shown.get("text/plain", ""))).rstrip():
                text.append(f"```{{.text .output}}\n{said}\n```")
    text.append(f'<a href="{name}.ipynb" download>This page as a notebook</a>')
    page = "\n\n".join(text) + "\n"
    return [(f"{stem}.md", page), *pictures]
