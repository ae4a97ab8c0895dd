"""The report in a browser: nothing fails, nothing is wider than the page, and axe finds nothing serious."""

import os
import re
import shutil
from itertools import chain

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from cdfsg.eigenproblems import SampledGEVP
from cdfsg.paper.report import site
from cdfsg.penalty import Penalty
from cdfsg.problems import Quadratic
from cdfsg.solvers.cdfsg import CDFSG
from cdfsg.theory.first_order import sharp_beta_of_quadratics
from cdfsg.theory.instances import Instance
from cdfsg.theory.stationary import pencil, quadratic_points

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
MAIN = (
    "index.html", "tables/4-mnist-identity.html", "pages/theory.html", "pages/algorithms.html", "figures.html",
    "notebooks/51_speed.html", "reference/cdfsg.solvers.html", "search.html?q=landing",
)  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Folder of the built report."""
    if not BROWSER:
        if os.environ.get("CDFSG_BROWSER") == "required":
            pytest.fail("no browser was found: install Debian's package chromium")
        pytest.skip("there is no browser; the tests use Debian's package chromium")
    return site.build(tmp_path_factory.mktemp("site") / "report").parent


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=BROWSER, args=QUIET)


@pytest.fixture
def open_page(report, browser):
    """Return a function that opens a page of the report; messages of errors are in its list `errors`."""
    contexts = []

    def open_(name, width=1280, theme="light", scripts=True):
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": theme, "java_script_enabled": scripts}
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.errors = []
        page.on("console", lambda message: page.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.goto(f"file://{report}/{name}")
        return page

    yield open_
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")])
def test_the_main_pages_show_no_error_fit_their_window_and_hinder_nobody(open_page, width, theme):
    for name in MAIN:
        page = open_page(name, width, theme)
        page.evaluate("window.MathJax ? MathJax.startup.promise : 0")
        for box in ("html", ".content"):  # on a phone the theme lets the latter scroll
            assert page.locator(box).evaluate("(box) => box.scrollWidth - box.clientWidth") <= 0, (name, box)
        assert page.errors == [], name
        if (width, theme) in ((390, "light"), (1280, "dark")):
            assert grave_faults(page, "body" if name == "index.html" else "article") == [], name
        page.context.close()


def grave_faults(page, part):
    """What axe finds serious or critical."""
    # Rows that are like those above them, and formulas, take most of the time and say nothing more.
    page.evaluate("document.querySelectorAll('tr:nth-child(n+9), mjx-container').forEach((node) => node.remove())")
    found = Axe().run(page, context=part, options={"resultTypes": ["violations"], "preload": False})
    grave = [v for v in found.response["violations"] if v["impact"] in ("serious", "critical")]
    return [(v["id"], v["nodes"][0]["html"]) for v in grave]


def test_a_search_finds_pages(open_page):
    page = open_page("search.html?q=landing")
    page.wait_for_selector("#search-results li a")
    assert page.errors == []


def test_a_cell_of_a_table_opens_its_runs_by_the_keyboard(open_page):
    page = open_page("tables/4-mnist-identity.html", width=390)
    page.locator("table.cells td a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("location.hash.startsWith('#runs-')")
    place = page.url.partition("#")[2]
    assert page.locator(f"#{place}").is_visible() and page.locator(f"#{place} tbody tr").count() == 10


class Smallest(SampledGEVP):
    """The generalised eigenvalue problem with the sign of the living figure, ``f(x) = x'Ax / 2``."""

    def raw_gradient(self, P):
        return -super().raw_gradient(P)


def drawn(A, M, angle, noise):
    """A minibatch of two rows (a, b) whose means of aa' and bb' are A and M_theta, shape (1, 2, 4)."""
    reflection = np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), -np.cos(angle)]])
    eigenvalues, vectors = np.linalg.eigh(np.eye(2) + noise * reflection)
    b = np.linalg.cholesky(M) @ vectors * np.sqrt(np.maximum(eigenvalues, 0))
    return np.sqrt(2) * np.hstack([np.linalg.cholesky(A).T, b.T])[None]


def test_the_living_figure_has_the_penalty_function_and_the_stationary_points_of_python(open_page):
    page = open_page("pages/theory.html")
    A, M, sharp = (np.array(page.evaluate(f"stiefel.{name}")) for name in ("A", "M", "SHARP"))
    eigenvalues, _ = pencil(Instance(Penalty(Quadratic(A), M, 1.0), 1, "quadratic"))
    assert sharp == pytest.approx(sharp_beta_of_quadratics(eigenvalues))
    assert round(eigenvalues[0] / eigenvalues[1], 2) == 0.37  # where zero turns a minimiser, in the words beside it
    for factor in (0.1, 0.5, 1.5):
        h, beta = Penalty(Quadratic(A), M, factor * sharp), float(factor * sharp)
        for x in ([0.3, -0.7], [1.5, 1.1], [-2.0, 0.2]):
            X = np.array(x)[:, None]
            assert page.evaluate("([x, beta]) => stiefel.h(x, beta)", [x, beta]) == pytest.approx(h.value(X))
            assert page.evaluate("([x, beta]) => stiefel.gradient(x, beta)", [x, beta]) == pytest.approx(
                h.gradient(X).ravel()
            )
        found = page.evaluate("(beta) => stiefel.points(beta)", beta)
        known = chain.from_iterable(quadratic_points(Instance(h, 1, "quadratic"), [index]) for index in (0, 1))
        wanted = {}
        for point in known:
            word = "minimiser" if point.least_curvature > 0 else "saddle"
            for sign in (1, -1):
                place = tuple(np.round(sign * point.X.ravel(), 6) + 0.0)
                wanted[place] = f"{'feasible' if point.is_feasible else 'infeasible'} {word}"
        assert {tuple(np.round(point["x"], 6) + 0.0): point["kind"] for point in found} == wanted


@pytest.mark.parametrize(
    ("alpha", "b", "noise", "factor"),
    [(0.05, 0.5, 0.4, 1.0), (0.02, 1.0, 1.0, 0.3), (0.03, 0.2, 0, 1.8), (0.05, 2.0, 0.4, 1.0)],
)
def test_the_path_of_the_living_figure_is_that_of_the_solver(open_page, alpha, b, noise, factor):
    page = open_page("pages/theory.html")
    A, M, sharp = (np.array(page.evaluate(f"stiefel.{name}")) for name in ("A", "M", "SHARP"))
    beta, start = float(factor * sharp), [-0.3, -0.2]
    angles = page.evaluate("stiefel.angles(7, 101)")
    setting = {"x": start, "beta": beta, "alpha": alpha, "b": b, "noise": noise}
    path = page.evaluate("([setting, angles]) => stiefel.path(setting, angles)", [setting, angles])
    solver, problem = CDFSG(beta=beta), Smallest(2)
    settings = {"s1": np.full((1, 1, 1), alpha / b), "s2": np.full((1, 1, 1), alpha)}
    first, *rest = (drawn(A, M, angle, noise) for angle in angles)
    state = solver.start(problem, np.array(start)[None, :, None], settings, first)
    xs = [start]
    for samples in rest:
        solver.step(problem, state, samples)
        xs.append(state.X.ravel().copy())
    assert path["diverged"] == 0 and np.ptp(xs, axis=0).max() > 0.1
    np.testing.assert_allclose(path["xs"], xs, rtol=1e-7, atol=1e-9)
    assert path["Y"] == pytest.approx(state.Y.item())


def test_the_runs_of_the_living_figure_end_where_the_words_beside_it_say(open_page):
    page = open_page("pages/theory.html")
    M = np.array(page.evaluate("stiefel.M"))

    def shares(**changed):
        """Of 200 runs the shares that diverge, that end at zero, and that end off the ellipse."""
        ends = page.evaluate(
            """(changed) => Array.from({ length: 200 }, (_, seed) => {
                const first = { x: [-0.3, -0.2], beta: stiefel.SHARP, alpha: 0.05, b: 0.5, noise: 0.4 };
                const { xs, diverged } = stiefel.path({ ...first, ...changed }, stiefel.angles(seed + 1));
                return diverged ? [NaN, NaN] : xs[xs.length - 1];
            })""",
            changed,
        )
        C = np.array([np.array(x) @ M @ np.array(x) for x in ends])
        return np.isnan(C).mean(), (C < 0.05).mean(), 1 - (abs(C - 1) < 0.3).mean()

    diverged, _, off = shares()
    assert diverged == 0 and off == pytest.approx(0.1, abs=0.05)
    assert shares(alpha=0.2)[0] == 1
    assert shares(b=1)[2] == pytest.approx(0.5, abs=0.05) and shares(b=1.5)[0] == pytest.approx(1 / 3, abs=0.05)
    assert shares(b=2)[1] > 0.8 and shares(b=2.1)[0] == 1 and shares(b=3, noise=0) == (0, 0, 0)


def test_the_living_figure_answers_its_sliders_and_without_scripts_a_still_picture_stands_there(open_page):
    page = open_page("pages/theory.html")
    status = page.locator(".living [role=status]")
    assert re.search(r"After 300 steps: x'Mx = \d", status.text_content())
    before = page.locator(".living .run").get_attribute("d"), page.locator(".living .points path").count()
    for name, value in (("alpha", "0.1"), ("beta", "0.25")):
        page.locator(f".living input[name={name}]").fill(value)
    after = page.locator(".living .run").get_attribute("d"), page.locator(".living .points path").count()
    assert before[0] != after[0] and before[1] < after[1]
    assert page.locator(".living .points .infeasible-minimiser").count() == 1
    still = open_page("pages/theory.html", scripts=False)
    assert still.locator(".living img").is_visible() and still.locator(".living svg").count() == 0
