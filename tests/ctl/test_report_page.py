"""The page of `memctl report`, as a browser shows it: whole, by itself, and whatever the data says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memctl import report_html
from memd.service import report_view
from support_chromium import Chromium, Page, needs_chromium
from support_report import FACTS, HOME, Weeks, weeks
from support_workstreams import Clock, Lines, handoff, workstream

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<!--<script>window.pwned=1//",
    "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>",
    '"><a href="javascript:window.pwned=1">x</a>',
    "' onfocus='window.pwned=1' autofocus='",
    "{{script}} ${window.pwned=1} {{data}}",
    "]]></script><style>*{display:none}</style>",
    "line\u2028separator\u2029here &lt;b&gt; &amp;amp;",
)


def documented(lines: Lines, end: float, **facts: Any) -> str:
    found = report_view.document(
        lines.reader.history(),
        since="",
        now_ms=int(end * 1000),
        home=HOME.encode(),
        version="0.0",
        facts={**FACTS, **facts},
    )
    return msgspec.json.encode(found).decode()


def written(path: Path, document: str) -> Path:
    path.write_bytes(report_html.page(document))
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    needs_chromium()
    made = Chromium(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("ledger")
    end = time.time() - 600
    weeks(root, end=end, home=HOME, sessions=90)
    with Lines(root) as lines:
        return documented(lines, end)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, document: str) -> Path:
    return written(tmp_path_factory.mktemp("page") / "réport 1.html", document)


@pytest.fixture
def page(chromium: Chromium, report: Path) -> Iterator[Page]:
    made = Page(chromium, report)
    yield made
    assert made.complaints() == []
    assert made.requests() == []
    made.close()


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    with Lines(tmp_path / "ledger", Clock()) as made:
        yield made


def all_time(page: Page) -> None:
    page.run("[...document.querySelectorAll('#range button')].find(it => it.textContent === 'All').click()")


def found(page: Page) -> int:
    return int(page.run("document.querySelector('#found').textContent").split()[0].replace(",", ""))


# -------------------------------------------------------------------------------- without a browser


def test_what_the_data_says_cannot_end_its_element() -> None:
    text = "".join(HOSTILE)
    embedded = report_html.embedded(json.dumps(text, ensure_ascii=False))
    assert not set(embedded) & set("<>&\u2028\u2029")
    assert json.loads(embedded) == text


def test_a_page_begins_with_its_mark_and_names_nothing_outside_itself(document: str) -> None:
    made = report_html.page(document)
    assert made.startswith(report_html.MARK)
    shell = (
        made.decode().replace(report_html.embedded(document), "").replace("http://www.w3.org/2000/svg", "")
    )
    for word in (
        "http:",
        "https:",
        "//cdn",
        "url(",
        "@import",
        "innerHTML",
        "insertAdjacentHTML",
        "eval(",
        "fetch(",
    ):
        assert word not in shell, word


def test_every_part_of_the_page_is_in_the_package() -> None:
    folder = Path(report_html.__file__).parent / "report_page"
    assert {path.name for path in folder.iterdir()} == {"page.html", "style.css", *report_html.SCRIPTS}


# ----------------------------------------------------------------------------------- with a browser


def test_all_that_the_document_tells_is_on_the_page(page: Page, document: str) -> None:
    data = json.loads(document)
    all_time(page)
    assert found(page) == len(data["sessions"]) == 90
    page.run("document.querySelectorAll('#list-more button, #runs-more button').forEach(it => it.click())")
    page.run(
        "[...document.querySelectorAll('.buttons button')].filter(it => /all/.test(it.textContent))"
        ".forEach(it => it.click())"
    )
    assert page.run("document.querySelectorAll('#list details').length") == 90
    assert page.run("document.querySelectorAll('#runs-list > li').length") == len(data["runs"])
    assert page.run("document.querySelectorAll('#handoffs-list > li').length") == len(data["handoffs"])
    assert page.run("document.querySelectorAll('#timeline .session').length") == 90
    text = page.run("document.body.innerText")
    for words in (
        "Umlaute im Dateinamen: Import schlägt fehl",
        "~/src/größenrechner",
        "login page",
        "1 of 2",
        "a plain file is in the way",
        "Move it away.",
        "left alone",
        "3 topics",
        "1 now",
        "1 open",
    ):
        assert words in text, words


def test_the_search_narrows_list_and_timeline_and_says_how_many(page: Page, document: str) -> None:
    all_time(page)
    page.press("/")
    assert page.run("document.activeElement.id") == "query"
    page.type("SCHLAGT umlaute")  # in any order and case, with or without marks
    want = sum("Umlaute" in row["title"] for row in json.loads(document)["sessions"])
    assert found(page) == want > 0
    assert page.run("document.querySelectorAll('#list .title').length") == want
    assert page.run("document.querySelectorAll('#timeline .session').length") == want
    page.press("Escape")
    assert found(page) == 90
    page.type("nothing says this")
    assert found(page) == 0
    assert "No session here matches" in page.run("document.querySelector('#list').textContent")


def test_ids_directories_agents_and_workstreams_are_searched_too(page: Page, document: str) -> None:
    all_time(page)
    row = json.loads(document)["sessions"][40]
    for words in (row["id"], row["cwd"] + " " + row["id"][:8], f"{row['harness']} {row['id']}"):
        page.run(
            f"(() => {{ const box = document.querySelector('#query'); box.value = {json.dumps(words)};"
            " box.dispatchEvent(new Event('input')); })()"
        )
        assert found(page) == 1, words


def test_an_agent_can_be_taken_out_and_brought_back(page: Page, document: str) -> None:
    all_time(page)
    mine = sum(row["harness"] == "claude" for row in json.loads(document)["sessions"])
    page.click("#chips button")
    assert page.run("document.querySelector('#chips button').getAttribute('aria-pressed')") == "false"
    assert found(page) == 90 - mine
    page.click("#chips button")
    assert found(page) == 90


def test_the_keyboard_reaches_everything_in_order(page: Page) -> None:
    stops = []
    for _ in range(24):
        page.press("Tab")
        stops.append(
            page.run(
                "(it => it.id || it.name || it.className || it.textContent.trim())(document.activeElement)"
            )
        )
    assert stops[0] == "skip"
    order = [stops.index(one) for one in ("theme", "activity-chart", "query", "timeline")]
    assert order == sorted(order)
    assert stops[-1] == "row"  # the sessions come after few stops, however many bars there are


def test_the_timeline_is_one_stop_and_opens_the_session_it_is_on(page: Page) -> None:
    page.run("document.querySelector('#timeline').focus()")
    page.press("ArrowLeft")
    first = page.run("document.querySelector('#timeline').getAttribute('aria-activedescendant')")
    page.press("ArrowDown")
    page.press("ArrowLeft")
    id = page.run("document.querySelector('#timeline').getAttribute('aria-activedescendant')")
    assert first and id and first != id
    label = page.run(f"document.querySelector('#{id}').getAttribute('aria-label')")
    assert page.run(f"document.querySelector('#{id}').getAttribute('aria-selected')") == "true"
    page.press("Enter")
    title = page.run("document.activeElement.querySelector('.title').textContent")
    assert label.startswith(title)
    assert page.run("document.activeElement.parentElement.open")
    page.press("ArrowDown")
    assert page.run("document.activeElement.matches('#list summary')")
    page.press("Escape")
    assert page.run("document.activeElement.id") == "timeline"


def test_a_day_of_the_chart_shows_its_sessions(page: Page) -> None:
    page.run("document.querySelector('#activity-chart').focus()")
    page.press("End")
    said = page.run("document.querySelector('#activity-chart').getAttribute('aria-valuetext')")
    assert said.startswith("Today: ")
    page.press("Enter")
    heads = page.run("[...document.querySelectorAll('#list h3')].map(it => it.textContent)")
    assert set(heads) <= {"Today"}
    page.press("Escape")
    assert found(page) == 90


def test_a_press_on_a_bar_opens_its_session(page: Page) -> None:
    all_time(page)
    page.click("#timeline .session")
    assert page.run("document.querySelectorAll('#list details[open] dl').length") == 1
    assert "memctl export" in page.run("document.querySelector('#list details[open]').innerText")


def test_everything_to_press_or_to_type_in_has_a_name(page: Page) -> None:
    tree = page.call("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "radio", "searchbox", "slider", "listbox", "option", "region", "DisclosureTriangle")
    asked = [node for node in tree if node.get("role", {}).get("value") in roles]
    assert len(asked) > 40
    unnamed = [node for node in asked if not node.get("name", {}).get("value", "").strip()]
    assert unnamed == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_can_be_read(chromium: Chromium, report: Path, scheme: str) -> None:
    page = Page(chromium, report, scheme=scheme)
    shades = page.run("""(() => {
      const probe = document.createElement('i'); document.body.append(probe);
      const light = (name) => {
        probe.style.color = `var(--${name})`;
        const [r, g, b] = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3)
          .map((part) => part / 255)
          .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const names = ['ground', 'sheet', 'wash', 'ink', 'quiet', 'accent', 'good', 'wary', 'bad'];
      for (let i = 0; i < 12; i++) names.push(`c${i}`);
      return Object.fromEntries(names.map((name) => [name, light(name)]));
    })()""")

    def contrast(one: str, other: str) -> float:
        low, high = sorted((shades[one], shades[other]))
        return float((high + 0.05) / (low + 0.05))

    assert (shades["ground"] < 0.1) == (scheme == "dark")
    for ground in ("ground", "sheet", "wash"):
        for ink in ("ink", "quiet", "accent", "good", "wary", "bad"):
            assert contrast(ink, ground) >= 4.5, (ink, ground)
    for number in range(12):
        assert contrast(f"c{number}", "sheet") >= 3, number
    page.close()


def test_the_switch_overrules_the_system_and_is_remembered(chromium: Chromium, report: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page = Page(chromium, report, scheme="light")
    light = page.run(ground)
    page.run("document.querySelector('input[name=theme]:checked').focus()")
    page.press("ArrowRight", 2)
    assert page.run("document.querySelector('input[name=theme]:checked').value") == "dark"
    assert page.run(ground) != light
    page.close()
    again = Page(chromium, report, scheme="light")
    assert again.run(ground) != light
    again.run("document.querySelector('input[value=auto]').click()")
    assert again.run(ground) == light
    again.close()


def test_a_phone_scrolls_in_one_direction_only(chromium: Chromium, lines: Lines, tmp_path: Path) -> None:
    end = float(int(time.time()))
    made = Weeks(lines, end=end, home=HOME)
    made.fill(sessions=20)
    made.say("f" * 300, "W" * 290, begin=end - 900, cwd="/" + "very-long-name-without-a-blank" * 30)
    made.work()
    page = Page(chromium, written(tmp_path / "r.html", documented(lines, end)), width=390, height=844)
    page.run("document.querySelectorAll('details').forEach(it => { it.open = true; })")
    assert page.run("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [390, 390]
    wide = page.run(
        "[...document.querySelectorAll('body *')].filter(it => it.getBoundingClientRect().right > 391"
        " && !it.matches('bdi') && !it.closest('.table, .unseen, svg')).map(it => it.outerHTML.slice(0, 90))"
    )
    assert wide == []
    small = page.run(
        "[...document.querySelectorAll('button, input, summary')].filter(it => it.checkVisibility())"
        ".filter(it => it.getBoundingClientRect().height < 20).map(it => it.outerHTML.slice(0, 90))"
    )
    assert small == []
    assert page.complaints() == []
    page.close()


def test_hostile_texts_stay_texts(chromium: Chromium, lines: Lines, tmp_path: Path) -> None:
    end = float(int(time.time()))
    made = Weeks(lines, end=end, home=HOME)
    for number, text in enumerate(HOSTILE):
        made.say(f"s{number} {text}", text, begin=end - 900 - number, cwd=f"/tmp/{text}", version=text)
        lines.work(
            lambda work, number=number, text=text: work.put_workstream(workstream(f"w{number}", name=text))
        )
        lines.link(f"s{number} {text}", workstream=f"w{number}", is_current=False)
    odd = handoff(
        "h1",
        summary="".join(HOSTILE),
        steps=HOSTILE,
        created_ms=int(end * 1000) - 5000,
        cwd=HOSTILE[0].encode(),
    )
    lines.work(lambda work: work.put_handoff(odd))
    page = Page(
        chromium,
        written(
            tmp_path / "r.html",
            documented(lines, end, health={"state": "attention", "line": HOSTILE[2]}),
        ),
    )
    page.run("document.querySelectorAll('details').forEach(it => { it.open = true; })")
    page.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")
    assert page.run("typeof window.pwned") == "undefined"
    shown = page.run("[...document.querySelectorAll('#list .title')].map(it => it.textContent)")
    assert sorted(shown) == sorted(" ".join(text.split()) for text in HOSTILE)
    assert (
        page.run(
            "document.querySelectorAll('img, a[href^=javascript], body style, main script, [onfocus]').length"
        )
        == 0
    )
    assert HOSTILE[2] in page.run("document.querySelector('#health').textContent")
    assert page.complaints() == []
    assert page.requests() == []
    page.close()


def test_controls_and_signs_that_turn_the_order_are_not_shown(
    chromium: Chromium, lines: Lines, tmp_path: Path
) -> None:
    end = float(int(time.time()))
    Weeks(lines, end=end, home=HOME).say(
        "s1", "a\u202egnp.exe\x1b]0;evil\x07 b\x00c\ttab\nline", begin=end - 900
    )
    page = Page(chromium, written(tmp_path / "r.html", documented(lines, end)))
    assert page.run("document.querySelector('#list .title').textContent") == "agnp.exe]0;evil bc tab line"
    page.close()


def test_the_policy_lets_nothing_in_that_was_not_there(page: Page) -> None:
    blocked = page.run("""new Promise((done) => {
      const seen = new Set();
      document.addEventListener('securitypolicyviolation', (event) => {
        seen.add(event.effectiveDirective);
        if (seen.size === 3) done([...seen].sort());
      });
      const image = new Image(); image.src = 'http://127.0.0.1:9/x.png'; document.body.append(image);
      const script = document.createElement('script'); script.textContent = 'window.pwned = 1';
      document.body.append(script);
      fetch('http://127.0.0.1:9/').catch(() => {});
    })""")
    assert blocked == ["connect-src", "img-src", "script-src-elem"]
    assert page.run("typeof window.pwned") == "undefined"
    page.chromium.events.clear()  # what this test did on purpose


def test_an_empty_ledger_makes_a_page_that_says_what_to_do(
    chromium: Chromium, lines: Lines, tmp_path: Path
) -> None:
    memory = {"agents": [], "topics": {**FACTS["memory"]["topics"], "topics": 0, "store": ""}}
    page = Page(chromium, written(tmp_path / "r.html", documented(lines, time.time(), memory=memory)))
    text = page.run("document.body.innerText")
    for words in (
        "No sessions in the ledger yet",
        "memctl run",
        "memctl handoff create",
        "memctl enroll PATH",
    ):
        assert words in text
    assert page.complaints() == []
    page.close()


def test_sessions_without_a_time_are_listed_and_trouble_no_axis(
    chromium: Chromium, lines: Lines, tmp_path: Path
) -> None:
    end = float(int(time.time()))
    made = Weeks(lines, end=end, home=HOME)
    made.say("old", "from the year 1970", begin=3600.0)
    made.say("late", "from a clock that is wrong", begin=end + 900 * 86_400)
    made.say("now", "from today", begin=end - 900)
    page = Page(chromium, written(tmp_path / "r.html", documented(lines, end)))
    assert found(page) == 3
    assert "Without a time" in page.run("document.querySelector('#list').textContent")
    assert page.run("document.querySelectorAll('#timeline .session').length") == 2  # one as taken in
    assert page.complaints() == []
    page.close()


def test_what_is_left_out_is_said(chromium: Chromium, tmp_path: Path, document: str) -> None:
    data = json.loads(document)
    data["left_out"] = {"sessions": 10_500, "runs": 1, "handoffs": 0}
    page = Page(chromium, written(tmp_path / "r.html", json.dumps(data)))
    assert "10,500 older sessions, 1 older run." in page.run("document.querySelector('#foot').textContent")
    page.close()


def test_printed_it_is_light_and_without_things_to_press(page: Page) -> None:
    page.call(
        "Emulation.setEmulatedMedia",
        media="print",
        features=[{"name": "prefers-color-scheme", "value": "dark"}],
    )
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("document.querySelector('#query').checkVisibility()") is False
    pdf = page.call("Page.printToPDF")["data"]
    assert len(pdf) > 20_000


def test_two_thousand_sessions_are_drawn_within_seconds(
    chromium: Chromium, tmp_path: Path, document: str
) -> None:
    data = json.loads(document)
    rows = data["sessions"]
    data["sessions"] = [
        {
            **rows[n % len(rows)],
            "id": f"{n:08x}",
            "title": f"session {n} " + "word " * 20,
            "cwd": f"/home/dev/p{n % 300}",
        }
        for n in range(2000)
    ]
    page = Page(chromium, written(tmp_path / "r.html", json.dumps(data)))
    all_time(page)
    assert found(page) == 2000
    took = page.run(
        "(() => { const box = document.querySelector('#query'), from = performance.now();"
        " box.value = 'session 1'; box.dispatchEvent(new Event('input'));"
        " return performance.now() - from; })()"
    )
    assert took < 2000  # milliseconds, for one letter typed
    page.close()
