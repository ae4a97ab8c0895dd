import inspect
import pkgutil
import re
import shutil
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup

import cdfsg
import cdfsg.solvers.cdfsg
from cdfsg import checksums
from cdfsg.files import NOTEBOOKS, RECORDS
from cdfsg.paper.report import pages, site
from cdfsg.paper.results import conclusions, verdicts
from cdfsg.paper.results.reported import table_name
from cdfsg.paper.select import ROW
from cdfsg.theory import statements

ADDED = "pages/added"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The whole report, with a page more than the repository has: ``{path: parsed page}``."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "DOCS", shutil.copytree(site.DOCS, folder / "docs"))
        (folder / "docs" / f"{ADDED}.md").write_text("# An added page\n\n$$E = m c^2$$\n", encoding="utf-8")
        front = site.build(folder / "report")
    found = sorted(front.parent.rglob("*.html"))
    return {path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in found}


@pytest.fixture(scope="module")
def judged():
    return verdicts.read()


@pytest.fixture
def page(built):
    """Return a function that gives a page by its name, without suffix."""
    return lambda name: next(soup for path, soup in built.items() if path.as_posix().endswith(f"/report/{name}.html"))


def root_of(built):
    return next(path.parent for path in built if path.name == "claims.html")


def loaded_by(soup):
    """Addresses that a browser fetches by itself when it shows a page."""
    for tag in soup.select("script[src], img[src], iframe[src], source[src], object[data], link[href]"):
        yield tag.get("src") or tag.get("href") or tag.get("data")


def test_no_page_loads_anything_from_the_network(built):
    outside = {(path.name, address) for path, soup in built.items() for address in loaded_by(soup)
               if urlsplit(address).netloc}  # fmt: skip
    assert not outside
    for style in root_of(built).rglob("*.css"):
        assert not re.search(r"(url\(|@import)[\s\"']*(https?:)?//", style.read_text(encoding="utf-8")), style


def test_every_link_inside_the_site_leads_to_a_file_and_a_place_in_it(built):
    places = {path: {tag["id"] for tag in soup.select("[id]")} for path, soup in built.items()}
    broken = []
    for path, soup in built.items():
        addresses = [*(a["href"] for a in soup.select("a[href]")), *loaded_by(soup)]
        for parts in map(urlsplit, addresses):
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment) if target in built else ""
            if not target.is_file() or (place and place not in places[target]):
                broken.append((path.name, parts.geturl()))
    assert not broken


def test_formulas_are_drawn_by_a_file_of_the_site(built, page):
    soup = page("notebooks/00_start")
    assert r"\min_X" in soup.select_one(".math").text
    (script,) = [tag["src"] for tag in soup.select("script[src]") if "mathjax" in tag["src"]]
    text = (root_of(built) / "notebooks" / urlsplit(script).path).read_text(encoding="utf-8")
    assert re.search(r'VERSION="3\.\d+\.\d+"|version:"3\.\d+\.\d+"', text, re.IGNORECASE)


def test_the_page_of_a_table_has_each_number_beside_ours_and_cells_with_the_verdict_that_lead_to_the_runs(page, judged):
    for table, name in pages.tables_of(judged)["page"].items():
        part, soup = judged[judged["table"] == table], page(name)
        rows = [[cell.text for cell in row.select("td")] for row in soup.select("details.every table.numbers tbody tr")]
        shown = [(row[4], row[5], row[10]) for row in rows]
        wanted = [(pages.number(r.reported), pages.number(r.reproduced, 4), pages.WORDS[r.verdict])
                  for r in part.itertuples()]  # fmt: skip
        assert shown == wanted and soup.h1.text.startswith(f"{table_name(table)}: ")
        texts = {}
        for link in soup.select("table.cells td a"):
            texts.setdefault(link["href"][1:], []).append(link.text)
        for place, rows in part[part["verdict"] != "n/a"].groupby(ROW):
            runs = soup.find(id=pages.anchor("runs", *place))
            heads = [head.text for head in runs.select("th")]
            table_of_runs = np.array([[cell.text for cell in run.select("td")] for run in runs.select("tbody tr")])
            assert len(texts[runs["id"]]) == len(rows)
            for row in rows.itertuples():
                said = [pages.WORDS[row.verdict]]
                if np.isfinite(row.reported):
                    said.append(f"paper {pages.number(row.reported)}")
                if np.isfinite(row.reproduced):
                    said.append("{} ± {}".format(*pages.with_interval(row)))
                    values = table_of_runs[:, heads.index(pages.HEADINGS[row.quantity])].astype(float)
                    assert len(values) == row.runs and values.mean() == pytest.approx(row.reproduced, rel=1e-3)
                assert any(all(words in text for words in said) for text in texts[runs["id"]]), said
            assert runs.find_next("a")["href"] == "#specification" and soup.find(id="specification")


def test_from_the_digits_in_a_cell_a_reader_comes_to_the_verdict_and_sees_the_interval(judged):
    compared = judged[judged["verdict"].isin(["match", "better", "worse", "higher", "lower"])]
    for row in compared.itertuples():
        ours, half = map(float, pages.with_interval(row))
        assert (abs(ours - row.reported) <= row.tolerance + 1e-9) == (row.verdict == "match") and half > 0, row
        assert [ours, half] == pytest.approx([row.reproduced, (row.high - row.low) / 2], abs=0.00501)


def test_the_page_on_verdicts_counts_every_independent_number(page, judged):
    (table,) = [table for table in page("pages/verdicts").select("article table") if table.th.text == "table"]
    rows = [[cell.text for cell in row.select("td")] for row in table.select("tbody tr")]
    parts = list(verdicts.counted(judged).groupby(["table", "solver"], sort=False))
    for (name, solver, *counts), ((label, of), part) in zip(rows, parts, strict=True):
        assert name.startswith(table_name(label)) and solver == of
        words = [int((part["verdict"] == word).sum()) for word in verdicts.VERDICTS]
        assert [int(count or 0) for count in counts] == [len(part), *words]


def test_the_report_and_every_open_question_with_its_answers_are_pages(page):
    assert page("report").h1.text.startswith("[Re] Stochastic optimization")
    asked, text = conclusions.questions(), page("questions").text
    assert all(conclusions.CHOICES[name] in text for name in asked["choice"])
    assert sum("(ours)" in row.text for row in page("questions").select("article tr")) == asked["choice"].nunique()


def test_the_page_on_the_theory_has_every_statement_with_its_sign_and_every_erratum_with_its_reason(page):
    soup, rows = page("pages/theory"), statements.recorded().values()
    cells = [row.select("td") for row in soup.select("article table.numbers tbody tr")]
    told = [verdict.text.removesuffix(" in all tests").split(" ", 1) for verdict, _, _ in cells]
    assert all(sign == site.SIGNS[verdict][0] for sign, verdict in told)
    rest = [(said.b.text, said.p.text, next(known.strings)) for _, said, known in cells]
    shown = [(verdict, *words) for (_, verdict), words in zip(told, rest, strict=True)]
    assert sorted(shown) == sorted((row["verdict"], row["place"], row["says"], row["known_by"]) for row in rows)
    assert all(str(entry.proof or entry.counterexample) in soup.text for entry in statements.errata())
    # It shows at first what does not hold as printed.
    first = [row for row in soup.select("article table.numbers tbody tr") if not row.find_parent("details")]
    wanted = [row["says"] for row in rows if row["source"] == "printed" and row["verdict"] != "holds"]
    assert [row.p.text for row in first] == wanted != []
    places = {entry.place for entry in statements.errata()} & {row["place"] for row in rows}
    assert {row.b.text for row in soup.select("table.statements tr:has(a)")} == places
    typos = [entry.place for entry in statements.errata() if entry.severity == "typo"]
    heads = [head.text for head in soup.select("h3")]
    assert typos and not any(place in head for place in typos for head in heads)


def test_the_front_page_counts_the_verdicts_of_every_table(page, judged):
    counted = verdicts.counted(judged)
    for table, name in pages.tables_of(judged)["page"].items():
        bars = [a.parent.find_next_sibling("div") for a in page("index").select(f'.bars a[href="{name}.html"]')]
        totals = {}
        for segment in (segment for bar in bars for segment in bar.select("span")):
            (word,) = (name[2:] for name in segment["class"] if name.startswith("v-"))
            totals[word] = totals.get(word, 0) + int(segment.text.split()[0])
        assert totals == counted.loc[counted["table"] == table, "verdict"].value_counts().to_dict()


def test_the_page_on_claims_counts_every_claim_and_names_where_it_does_not_hold(page):
    asserted, shown = pd.read_csv(RECORDS / "claims.csv", keep_default_na=False), page("claims")
    for row in asserted.itertuples():
        section = shown.find(id=pages.anchor("claim", row.claim)).find_parent("section")
        assert row.says in section.text and f"ours: {row.holds} of {row.of}" in section.text
        assert all(place.partition(", ")[2] in section.text for place in row.where_not.split("; "))


def test_every_notebook_is_a_page_that_the_list_of_notebooks_names(page):
    names = [path.relative_to(NOTEBOOKS.parent).with_suffix("") for path in sorted(NOTEBOOKS.rglob("[!.]*.ipynb"))]
    links = {a["href"] for a in page("notebooks").select("article a[href]")}
    assert {f"{name.as_posix()}.html" for name in names} <= links
    titles = [page(name.as_posix()).h1.text for name in names]
    assert len(titles) == len(set(titles))


def test_every_public_function_and_class_is_described_on_the_reference_page_of_its_module(page):
    front = page("reference")
    for found in pkgutil.iter_modules(cdfsg.__path__, "cdfsg."):
        link = front.select(f'article a[href^="reference/{found.name}.html"]')
        assert bool(link) == (found.name.removeprefix("cdfsg.") not in site.LEFT_OUT), found.name
        inside = pkgutil.iter_modules(import_module(found.name).__path__, f"{found.name}.") if found.ispkg else ()
        for module in [import_module(name) for name in (found.name, *(module.name for module in inside)) if link]:
            soup = page(f"reference/{found.name}")
            assert module.__doc__.split("\n")[0].split("`")[0] in soup.text
            for thing in vars(module).values():
                described = inspect.isfunction(thing) or inspect.isclass(thing)
                if described and thing.__module__ == module.__name__ and thing.__name__[0] != "_" and thing.__doc__:
                    assert soup.find(id=f"{module.__name__}.{thing.__name__}"), thing
    names = [link.text for link in front.select("article td:first-child a")]
    wanted = [f"cdfsg.{name}" for name in ("estimator", "problems", "solvers", "theory")]
    assert names[0] == wanted[0] and [name for name in names if name in wanted] == wanted


def test_every_line_of_both_algorithms_has_its_code_and_leads_to_the_whole_source(page):
    soup = page("pages/algorithms")
    sections = [section for section in soup.select("section section") if section.h2.text.startswith("Algorithm ")]
    assert [len(section.select(".algorithm-line")) for section in sections] == [6, 9]
    source = Path(cdfsg.solvers.cdfsg.__file__).read_text(encoding="utf-8")
    for line in soup.select(".algorithm-line"):
        assert line.select(".code pre") and all(link["href"] for link in line.select(".code a")), line.text
    marks = {mark.text.rpartition(" ")[2] for mark in soup.select(".said small")}
    assert marks == set(re.findall(r"\(eq:update\w+\)", source))
    code = page("_modules/cdfsg/solvers/cdfsg").text
    assert all(text in code for text in ("state.C - C_old", "self.eta2 * V", "X -= state.alpha * D"))
    assert "B *= self.eta1" in sections[1].text
    # A mark shows the lines that have it, and a function whose docstring has it.
    (step, line, call), (track, _, body) = pages.code_of("(eq:updatey)")
    assert step.endswith("CDFSG.step") and call.startswith("track(state") and track.endswith("cdfsg.track")
    assert body == "state.Y = state.Y - state.b * (state.Y - C_old) + (state.C - C_old)"
    assert source.splitlines()[line - 1].strip() == call
    assert pages.code_of("(eq:nowhere)") == []


def test_cost_and_speed_begin_with_their_conclusion_and_hide_their_code(page):
    for name in ("50_cost", "51_speed"):
        soup = page(f"notebooks/{name}")
        assert soup.h2.text.startswith("Conclusion")
        assert not [cell for cell in soup.select(".cell_input") if not cell.find_parent("details")]


def test_the_estimators_guide_shows_every_row_of_the_battery(page):
    table = page("pages/estimator").find("summary", string=re.compile("kinds of data")).find_parent("details").table
    assert len(table.select("tbody tr")) == len(checksums.read_csv(RECORDS / "battery.csv"))


def test_the_front_page_has_a_description_an_icon_and_a_picture_and_leads_to_the_paper_and_an_added_page(built, page):
    soup, root = page("index"), root_of(built)
    assert soup.select_one(".sidebar-tree").find("a", href=f"{ADDED}.html").text == "An added page"
    assert len(soup.find("meta", attrs={"name": "description"})["content"]) > 50
    assert (root / soup.find("meta", property="og:image")["content"]).read_bytes().startswith(b"\x89PNG")
    assert (root / urlsplit(soup.find("link", rel="icon")["href"]).path).is_file() and soup.find("a", href=pages.PAPER)


def test_no_page_for_readers_names_a_table_by_the_label_of_the_papers_source(built):
    labels = re.compile(r"\bta:(pcctime|fval|data|computation)")
    texts = {path: soup.article.find_all(string=labels) for path, soup in built.items()}
    typed = ("pages/verdicts", "_modules", "reference", "notebooks", "records")  # code, and files as they are
    named = {path.name for path, found in texts.items()
             if found and not any(part in path.as_posix() for part in typed)}  # fmt: skip
    assert not named


def test_every_picture_says_what_is_seen(built):
    silent = {path.name for path, soup in built.items() for image in soup.select("article img")
              if len(image.get("alt", "")) < 20 or image["alt"].endswith((".png", ".svg"))}  # fmt: skip
    assert not silent


def test_every_figure_is_shown_with_its_caption_and_its_numbers_and_small_on_the_contact_sheet(page):
    figures = page("figures").select("figure")
    assert all(figure.figcaption.text.strip()[:40] in figure.img["alt"] for figure in figures)
    names = [Path(figure.img["src"]).stem for figure in figures]
    assert sorted(names) == sorted(pages.figure_names()) and names[:2] == ["identity-line", "claims"]
    assert all(figure.select_one("figcaption a[href$='.csv']") for figure in figures)
    shown = {a["href"]: a.img["src"].rpartition("/")[2] for a in page("contact").select(".contact a")}
    assert shown == {f"figures.html#figure-{name}": f"{name}.svg" for name in pages.figure_names()}


def test_no_caption_is_without_a_figure_and_a_figure_without_a_caption_is_refused_by_name():
    captions = pages.load_captions()
    assert {pages.caption_of(name, {key: key for key in captions}) for name in pages.figure_names()} == set(captions)
    with pytest.raises(ValueError, match=r"'mnist-new' has no caption; add one to .*captions\.toml"):
        pages.caption_of("mnist-new", {"ew": "no whole word", "curves": "another"})
    assert pages.caption_of("a-beta-ends", {"ends": "short", "beta-ends": "long"}) == "long"


def test_wide_tables_scroll_in_a_box_of_their_own(built):
    loose = [path.name for path, soup in built.items() for table in soup.select("article table:not(.three)")
             if not table.find_parent(class_=["wide", "table-wrapper"])]  # fmt: skip
    assert not loose


def test_a_short_file_of_records_is_shown_and_a_heavy_one_only_named(tmp_path):
    frame = pd.DataFrame({"solver": ["CDFSG", "Landing"], "fea": [0.123456, 2.0]})
    for name, times in {"20_short": 1, "long": 50, "heavy": 20_000}.items():
        checksums.write(tmp_path / f"{name}.csv", pd.concat([frame] * times).to_csv(index=False))
    text = pages.render("site/records.md", files=pages.files(tmp_path))
    assert "[long.csv](records/long.csv) | 100 |" in text and "| `heavy.csv` | 40000 |" in text
    assert text.count("<table") == 1 and "## 20_short" in text and "0.1235" in text


def test_a_warning_fails_the_build_with_its_place_and_leaves_the_last_report_alone(tmp_path, monkeypatch):
    def write_sources(source):
        source.mkdir()
        (source / "conf.py").write_text("extensions = ['myst_nb']", encoding="utf-8")
        (source / "index.md").write_text("# Title\n\n[a page](missing.md)\n", encoding="utf-8")

    monkeypatch.setattr(site, "write_sources", write_sources)
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("the last one", encoding="utf-8")
    with pytest.raises(ValueError, match=r"(?s)was not built; Sphinx says:.*index\.md:3.*missing\.md"):
        site.build(tmp_path / "report")
    assert (tmp_path / "report" / "index.html").read_text(encoding="utf-8") == "the last one"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_without_records_there_is_no_report_but_a_word_on_how_to_make_them(tmp_path, monkeypatch):
    monkeypatch.setattr(verdicts, "RECORDS", tmp_path)
    with pytest.raises(FileNotFoundError, match="verdicts.csv is missing; make it with: python -m cdfsg verdict"):
        site.build(tmp_path / "report")
