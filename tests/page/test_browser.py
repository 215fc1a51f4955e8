"""A page of all parts in headless Chromium: it plays, stops, obeys keys, prints, and asks nobody anything."""

import pytest

import page_cases
from wideflow.page import parts
from wideflow.page.document import Section, document, fragment

FRAMES = 11


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files: a page of all parts with three clouds (one diverges), and a fragment twice on one page."""
    folder = tmp_path_factory.mktemp("page")
    clouds = [page_cases.cloud(frames=FRAMES), page_cases.diverged(frames=FRAMES)]
    clouds += [page_cases.cloud("slower", frames=3, seed=2)]
    sections = page_cases.sections(clouds)
    (folder / "whole.html").write_text(document("All parts", sections, lead="Lead.", footer="End."), "utf-8")
    twice = "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>two</title>" + fragment(sections) * 2
    (folder / "twice.html").write_text(twice, "utf-8")
    return folder


@pytest.fixture
def tab(browser_page, made):
    return browser_page.open(made / "whole.html")


def quiet(tab):
    return not tab.trouble and not tab.outside()


def frame(tab, index=0):
    return int(tab.page.locator(".wf-slider").nth(index).input_value())


def test_it_plays_and_pauses(tab):
    button, time = tab.page.locator(".wf-play"), tab.page.locator(".wf-time")
    assert tab.page.locator(".wf-stills").is_hidden()
    assert (time.inner_text(), button.get_attribute("aria-label")) == ("t = 0", "Play")
    tab.page.wait_for_timeout(600)
    assert time.inner_text() == "t = 0"  # never by itself
    before = tab.ink()
    button.click()
    tab.until("document.querySelector('.wf-slider').value >= 2")
    assert button.get_attribute("aria-label") == "Pause"
    button.click()
    stopped = frame(tab)
    assert time.inner_text() == f"t = {stopped}"  # a frame for each unit of time
    after = tab.drawn().ink()
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, True, stopped >= 3]
    tab.page.wait_for_timeout(600)  # more than twice as long as a frame lasts
    assert frame(tab) == stopped
    assert quiet(tab), tab.trouble


def test_at_the_end_it_stops_and_begins_anew(tab):
    slider, button = tab.page.locator(".wf-slider"), tab.page.locator(".wf-play")
    slider.fill(str(FRAMES - 2))
    button.click()
    tab.until("document.querySelector('.wf-play').getAttribute('aria-label') === 'Play'")
    assert frame(tab) == FRAMES - 1
    button.click()
    tab.until(f"document.querySelector('.wf-slider').value < {FRAMES - 2}")
    assert quiet(tab), tab.trouble


def test_it_obeys_keys_and_the_slider(tab):
    slider, time, keys = tab.page.locator(".wf-slider"), tab.page.locator(".wf-time"), tab.page.keyboard
    slider.focus()
    for key, place in [("ArrowRight", 1), ("ArrowUp", 2), ("ArrowLeft", 1), ("End", 10), ("Home", 0)]:
        keys.press(key)
        assert (frame(tab), time.inner_text()) == (place, f"t = {place}"), key
    keys.press("ArrowLeft")
    assert frame(tab) == 0
    start = tab.drawn().ink()
    slider.fill("7")
    assert time.inner_text() == slider.get_attribute("aria-valuetext") == "t = 7"
    seventh = tab.drawn().ink()
    assert all(a != b for a, b in zip(start, seventh, strict=True))
    slider.fill("0")
    assert tab.drawn().ink() == start
    tab.page.locator(".wf-play").focus()
    keys.press("ArrowRight")
    assert frame(tab) == 1
    for where in (".wf-play", ".wf-slider"):
        tab.page.locator(where).focus()
        for name in ("Pause", "Play"):
            keys.press(" ")
            assert tab.page.locator(".wf-play").get_attribute("aria-label") == name
    assert quiet(tab), tab.trouble


def test_the_canvas_is_sharp_and_follows_its_box(tab):
    size = "c => [c.width, c.height, c.clientWidth, c.clientHeight]"
    sizes = f"Array.from(document.querySelectorAll('canvas'), {size})"
    for width in (1280, 700):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.drawn()
        for w, h, shown_w, shown_h in tab.drawn().page.evaluate(sizes):
            assert (w, h) == (2 * shown_w, 2 * shown_h)  # two pixels to the point, as the tab was opened
    assert quiet(tab), tab.trouble


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", ["whole.html", "twice.html"])
def test_nothing_sticks_out(browser_page, made, width, name):
    tab = browser_page.open(made / name, width)
    assert tab.overflow() == 0
    for summary in tab.page.locator("summary").all():
        summary.click()
    assert tab.drawn().overflow() == 0
    assert quiet(tab), tab.trouble


def test_on_paper_stills_stand_for_the_player_and_folds_are_open(tab):
    # The breadth of the text on A4: 210 mm less the margins of 15 mm, at 96 pixels to 25.4 mm.
    tab.page.set_viewport_size({"width": 680, "height": 1000})
    tab.page.emulate_media(media="print")
    assert tab.page.locator(".wf-live").is_hidden()
    assert tab.page.locator(".wf-stills").is_visible()
    assert tab.page.locator(".wf-frame").count() == 6
    assert tab.page.get_by_text("Hidden words.").is_visible()
    assert tab.overflow() == 0
    tab.page.emulate_media(media="null")
    sheet = tab.page.pdf(prefer_css_page_size=True)
    assert sheet.startswith(b"%PDF")
    # All of it, and the screen is as before.
    assert len(sheet) > 20_000
    assert tab.drawn().page.locator(".wf-live").is_visible()
    assert tab.page.get_by_text("Hidden words.").is_hidden()
    assert quiet(tab), tab.trouble


def test_the_same_fragment_twice_is_two_players(browser_page, made):
    tab = browser_page.open(made / "twice.html")
    players = tab.page.locator(".wf-player[data-ready]")
    assert players.count() == 2
    assert len(set(tab.ink())) == 3  # three panels, and the same three
    for index in (0, 1):
        before = tab.ink()
        players.nth(index).locator(".wf-play").click()
        tab.until(f"document.querySelectorAll('.wf-slider')[{index}].value >= 1")
        players.nth(index).locator(".wf-play").click()
        changed = [a != b for a, b in zip(before, tab.drawn().ink(), strict=True)]
        assert changed[3 * index]
        assert not any(changed[3 * (1 - index) :][:3])
    assert quiet(tab), tab.trouble


def test_the_script_of_a_later_fragment_leaves_a_player_where_it_is(tab):
    tab.page.locator(".wf-slider").fill("4")
    tab.page.evaluate(
        """() => {
          const old = Array.from(document.scripts).find((s) => s.text.includes("startAll"));
          const again = document.createElement("script");
          again.text = old.text;
          document.body.append(again);
        }"""
    )
    assert (frame(tab), tab.page.locator(".wf-time").inner_text()) == (4, "t = 4")
    assert quiet(tab), tab.trouble


def test_without_a_script_the_stills_are_seen(browser, made):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((made / "whole.html").as_uri())
    assert page.locator(".wf-live").is_hidden()
    assert page.locator(".wf-stills").is_visible()
    context.close()


def test_calm_readers_get_calm_steps(browser, made):
    from browsing import Watched

    context = browser.new_context(reduced_motion="reduce")
    tab = Watched(context.new_page()).open(made / "whole.html")
    tab.page.locator(".wf-play").click()
    tab.page.wait_for_timeout(350)  # a step would have been made at 250 ms, and is made at 500 ms
    assert frame(tab) == 0
    tab.until("document.querySelector('.wf-slider').value >= 1")
    context.close()


def test_all_text_can_be_read(tab):
    """Contrast of at least 4.5 to 1 for every text, by the formula of WCAG 2."""
    dull = tab.page.evaluate(
        """() => {
          const parse = (c) => c.match(/[\\d.]+/g).map(Number);
          const light = (c) => parse(c).slice(0, 3).map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
            .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
          const ground = (e) => {
            for (; e; e = e.parentElement) {
              const c = parse(getComputedStyle(e).backgroundColor);
              if (c.length === 3 || c[3] > 0) return getComputedStyle(e).backgroundColor;
            }
            return "rgb(255, 255, 255)";
          };
          const found = [];
          for (const e of document.querySelectorAll(".wf-page *")) {
            const own = Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.textContent.trim());
            if (!own || e.closest("script, style")) continue;
            const style = getComputedStyle(e);
            const a = light(e.namespaceURI.endsWith("svg") ? style.fill : style.color), b = light(ground(e));
            const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < 4.5) found.push([e.className, ratio]);
          }
          return found;
        }"""
    )
    assert dull == []


def test_a_player_in_a_fold_fits_when_it_is_opened(browser_page, tmp_path):
    """Also where the window changed while it was closed."""
    inner = page_cases.played([page_cases.cloud()])
    path = tmp_path / "fold.html"
    path.write_text(document("a", [Section("b", parts.fold("More", inner))]), "utf-8")
    tab = browser_page.open(path)
    assert not tab.page.locator("canvas").is_visible()
    tab.page.set_viewport_size({"width": 420, "height": 900})
    tab.drawn().page.locator("summary").click()
    tab.until("(c => c.clientWidth < 420 && c.width === 2 * c.clientWidth)(document.querySelector('canvas'))")
    assert tab.page.locator("canvas").is_visible()
    start = tab.drawn().ink()
    tab.page.locator(".wf-slider").fill("5")
    assert tab.drawn().ink() != start
    assert quiet(tab), tab.trouble
