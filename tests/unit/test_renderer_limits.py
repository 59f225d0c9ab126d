"""What a hostile template or hostile data can do: nothing (X-14, X-15, X-17).

The bombs go off in a process of their own under limits of the kernel, so that one which is not caught ends that process
and not the test run: 60 seconds of processor time (they take some 3) and 256 MB above what the imports take, for all
of them together.
"""

import json
import resource
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.filters import known_filters
from clarion.adapters.renderers.formats import writing_of
from clarion.adapters.renderers.language import HTML, parse
from clarion.adapters.renderers.language import merge as merge_template
from clarion.adapters.renderers.limit import STEPS_MAX, VALUE_MAX, Budget, TooMuch, measure
from clarion.adapters.renderers.merging import MERGE_ERRORS
from clarion.domain.content import SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import Merge

CPU_SECONDS = 60
MEMORY_BYTES = 256 * 1024 * 1024

DATA: dict[str, object] = {
    "s": "x" * 1000,
    "e": "",
    "d": {"a": 1},
    "l": [str(number) for number in range(5000)],
    "words": " a" * 20_000,
    "lines": "\n" * 20_000,
    "pairs": "ab" * 2000,
    "same": "a" * 2499,  # with this length and half of it, the search goes back most
    "nearly": "a" * 1248 + "ba",
    "deep": {"k": [[number] for number in range(200)]},
    "deeper": {"k": [[number] for number in range(200)]},
    "decimals": [number / 10 for number in range(1000)],
}

IN_A_LOOP = "{% for i in (1..10000) %}BODY{% endfor %}"

BOMBS = {
    # The ones of the spike, most of which pass the library's own limits.
    "a long range": "{% for i in (1..100000000) %}{% endfor %}",
    "loops in loops": "{% for i in (1..1000) %}{% for j in (1..1000) %}x{% endfor %}{% endfor %}",
    "doubling by assign": "{% assign a='xx' %}{% for i in (1..40) %}{% assign a = a | append: a %}{% endfor %}",
    "doubling by prepend": "{% assign a='xx' %}{% for i in (1..40) %}{% assign a = a | prepend: a %}{% endfor %}",
    "replace of replace": "{{ s | replace:'x',s | replace:'x',s | replace:'x',s | size }}",
    "replace of nothing": "{{ s | replace:'',s | replace:'',s | replace:'',s | size }}",
    "replace of long texts": "{{ words | replace: 'a', words | size }}",
    "join by a long text": "{{ words | split: ' ' | join: words | size }}",
    "split and join": "{{ s | split:'' | join: s | split:'' | join: s | size }}",
    "capture": "{% capture c %}{% for i in (1..9000) %}{{ s }}{% endfor %}{% endcapture %}{{ c | size }}",
    "a wide date": "{{ '2026-01-01' | date: '%999999999d' | size }}",
    "a range as a list": "{% assign r = (1..50000000) %}{{ r | join: ',' | size }}",
    "a range reversed by a filter": "{{ (1..50000000) | reverse | first }}",
    # And what else came to mind.
    "a range reversed by its loop": "{% for i in (1..100000000) reversed %}{% endfor %}",
    "a range beyond all integers": f"{{% for i in (1..{'9' * 400}) %}}{{% endfor %}}",
    "a search in a range": "{% if (1..9999999999) contains 'a' %}x{% endif %}",
    "doubling by concat": "{% assign a = l %}{% for i in (1..40) %}{% assign a = a | concat: a %}{% endfor %}x",
    "doubling digits": "{% assign a = 99999 %}{% for i in (1..40) %}{% assign a = a | times: a %}{% endfor %}{{ a }}",
    "a number beyond all amounts": "{{ 9223372036854775807 | times: 9 }}",
    "loops after loops": "{% for i in (1..10000) %}{% endfor %}" * 1500,
    "a body of empty variables": IN_A_LOOP.replace("BODY", "{{ e }}" * 8000),
    "a body of empty texts": IN_A_LOOP.replace("BODY", "{{''}}" * 9000),
    "a body of conditions": IN_A_LOOP.replace("BODY", "{%if e%}{%endif%}" * 3500),
    "a body of cases": IN_A_LOOP.replace("BODY", "{% case e %}" + "{% when 'a','b','c' %}" * 2500 + "{% endcase %}"),
    "a body of assigns": IN_A_LOOP.replace("BODY", "".join(f"{{%assign a{number}=1%}}" for number in range(3000))),
    "a body of filters": IN_A_LOOP.replace("BODY", "{{s|upcase|slice:0}}" * 2500),
    "a body of searches": IN_A_LOOP.replace("BODY", "{%if l contains e%}{%endif%}" * 2000),
    "a search in a long text": IN_A_LOOP.replace("BODY", "{%if pairs contains 'abb'%}{%endif%}") + "x",
    "a short search that goes back": IN_A_LOOP.replace("BODY", "{%if same contains nearly%}{%endif%}") + "x",
    "comparing what lies deep": IN_A_LOOP.replace("BODY", "{%if deep == deeper%}{%endif%}") + "x",
    "blanks that are compared": IN_A_LOOP.replace("BODY", "{%if lines == blank%}{%endif%}") + "x",
    "a body of missing variables": IN_A_LOOP.replace("BODY", "{{no|default:e}}" * 2000),
    "a body of sums": IN_A_LOOP.replace("BODY", "{{decimals|sum}}" * 2000),
    "a body of sorts": IN_A_LOOP.replace("BODY", "{{l|sort|size}}" * 2000),
    "a body of splits": IN_A_LOOP.replace("BODY", "{{words|split:' '|size}}" * 1500),
    "a body of cycles": IN_A_LOOP.replace("BODY", "{% cycle " + ",".join(["s"] * 300) + " %}"),
    "longer by escaping": "{{ lines | newline_to_br | size }}",
    "an unclosed expression": "{{" + " " * 60_000,
    "many unclosed expressions": "{{ " * 20_000,
    "many unclosed blocks": "{% raw %}" * 7000,
    "many unclosed comments": "{% comment %}" * 4000,
    "blanks in expressions": ("{{" + " " * 990 + "}}") * 64,
    "blocks in blocks": "{% if e %}" * 2000 + "{% endif %}" * 2000,
    "brackets in brackets": "{{ " + "a[" * 400 + "b" + "]" * 400 + " }}",
    "a file by include": "{% include 'x' %}",
    "a file by render": "{% render 'x' %}",
}

PLAIN = writing_of("en", "UTC")


def merge(template: str) -> str:
    """Compile and merge a text message, or say who refused it."""
    definition = Definition(key="bomb", title="Bomb", channels=(Channel.SMS,))
    renderer = open_renderer()
    try:
        bundle = renderer.compile(definition, {"sms.liquid": template})
        renderer.missing(bundle, DATA)
        return repr(renderer.merge(bundle, Channel.SMS, Merge(DATA)))
    except (InvalidInput, RenderFailed) as error:
        return type(error).__name__


def main() -> None:
    """Set all bombs off, under limits, and print what became of them."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    room = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    print(json.dumps({name: merge(template) for name, template in BOMBS.items()}))  # noqa: T201  (to the test)


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"a bomb went off (status {done.returncode}): {done.stderr[-2000:]}"
    return {str(name): str(result) for name, result in json.loads(done.stdout).items()}


def test_it_is_the_bombs_that_are_refused_and_not_their_data() -> None:
    assert merge("{{ s }}{{ l | size }}{{ words | size }}{{ lines | size }}") == repr(
        SmsContent(text="x" * 1000 + "5000" + "40000" + "20000")
    )


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(results: dict[str, str], name: str) -> None:
    assert results[name] in ("NotCompiled", "RenderFailed", "BrokenMerge")


def test_deep_mjml_is_refused_before_the_compiler_sees_it() -> None:
    """At this depth the compiler overflows its stack and takes the process with it."""
    files = {"email.subject.liquid": "a", "email.text.liquid": "a"}
    files["email.mjml.liquid"] = "<mjml><mj-body><mj-section><mj-column><mj-text>" + "<b>" * 2000
    with pytest.raises(InvalidInput, match="nested more than 50 deep"):
        open_renderer().compile(Definition(key="a", title="A", channels=(Channel.EMAIL,)), files)


def test_ordinary_work_needs_less_than_half_of_the_steps() -> None:
    """A table of two hundred rows with filters in each, and a text of a page."""
    rows: list[object] = [{"name": f"Item {number}", "price": number, "at": "2026-03-05"} for number in range(200)]
    template = "{% for i in rows %}<tr><td>{{ i.name | upcase | truncate: 30 }}</td><td>{{ i.price | times: 2 }}</td>"
    template += "<td>{{ i.at | date: '%-d %B' }}</td></tr>{% endfor %}{{ text | newline_to_br }}"
    budget = Budget()
    out = merge_template(
        parse(HTML, template, file="a"), {"rows": rows, "text": "word " * 600}, writing=PLAIN, budget=budget
    )
    assert out.count("<tr>") == 200
    assert budget.spent < STEPS_MAX / 2


def test_the_style_of_a_table_costs_next_to_nothing() -> None:
    """The text of a loop's body is only copied; mails write long styles into every cell."""
    rows: list[object] = [{"name": "a"}] * 500
    cell = f"<td style='{'padding:0;' * 50}'>{{{{ i.name }}}}</td>"
    budget = Budget()
    merge_template(
        parse(HTML, f"{{% for i in rows %}}{cell}{{% endfor %}}", file="a"),
        {"rows": rows},
        writing=PLAIN,
        budget=budget,
    )
    assert budget.spent < STEPS_MAX / 2


HEAVY = "{% for i in (1..9) %}{% if s contains 'b' %}{% endif %}{% endfor %}x"
"""With a text of 24,000 characters more than half of the steps of a merge, with 1,200 of those of a look."""


def test_the_parts_of_a_channel_share_their_steps() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.PUSH, Channel.SMS))
    renderer = open_renderer()
    bundle = renderer.compile(definition, {"push.liquid": f"{HEAVY}\n{HEAVY}", "sms.liquid": HEAVY})
    data = {"s": "a" * 24_000}
    assert renderer.merge(bundle, Channel.SMS, Merge(data)) == SmsContent(text="x")
    with pytest.raises(RenderFailed, match="push body: the template does too much work"):
        renderer.merge(bundle, Channel.PUSH, Merge(data))


def test_looking_for_missing_variables_is_one_piece_of_work_for_all_channels() -> None:
    """What lies behind the steps is found by the merge itself, whose steps are its own."""
    renderer, data = open_renderer(), {"s": "a" * 1200}
    late = f"{HEAVY}{{% if s %}}{{{{ gone }}}}{{% endif %}}"
    alone = renderer.compile(Definition(key="a", title="A", channels=(Channel.CHAT,)), {"chat.liquid": late})
    assert renderer.missing(alone, data) == ("gone",)
    both = Definition(key="b", title="B", channels=(Channel.SMS, Channel.CHAT))
    bundle = renderer.compile(both, {"sms.liquid": HEAVY, "chat.liquid": late})
    assert renderer.missing(bundle, data) == ()
    with pytest.raises(RenderFailed, match="there is no gone"):
        renderer.merge(bundle, Channel.CHAT, Merge(data))


@pytest.mark.parametrize(
    "value, size",
    [
        ("", 1),
        ("abc", 4),
        (7, 1),
        (None, 1),
        ([], 1),
        (["a", "b"], 7),
        ({"a": "bc"}, 7),
        ([[["a"]]], 8),
        (range(9), 10),
    ],
)
def test_a_value_is_measured_through_and_through(value: object, size: int) -> None:
    assert measure(value) == size


@pytest.mark.parametrize(
    "value",
    ["x" * VALUE_MAX, ["x" * 1000] * 131, {"a": ["y" * 70_000, "z" * 70_000]}, range(VALUE_MAX), 2**64, float("inf")],
)
def test_a_value_beyond_the_limit_is_refused(value: object) -> None:
    with pytest.raises(TooMuch):
        measure(value)


def test_a_list_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(TooMuch):
        measure(loop)


# Data is text, whatever it says.

EVIL = "<img src=x onerror=alert(1)>\"'&</script>"


@pytest.mark.parametrize("name", known_filters())
def test_no_filter_lets_markup_of_the_data_through(name: str) -> None:
    tried = 0
    values = ("x", "l", "'lit<b>'", "1")
    for left, arguments in product(values, ("", ": x", ": x, x", ": 'l', x", ": 3, x", ": l", ": 2", ": 'EUR'")):
        template = f"{{{{ {left} | {name}{arguments} }}}}"
        try:
            out = parse(HTML, template, file="a").render(x=EVIL, l=[EVIL, EVIL])
        except MERGE_ERRORS:
            out = ""  # wrong arguments are tried on purpose
        tried += bool(out)
        assert "<img" not in out, template
        assert "</script>" not in out, template
    assert tried, f"{name} was never applied"


@pytest.mark.parametrize(
    "position",
    ["{{ x }}", '<a href="{{ x }}">', "<a title='{{ x }}'>", "{% capture c %}{{ x }}{% endcapture %}{{ c }}"],
)
def test_markup_in_data_is_escaped_wherever_it_stands(position: str) -> None:
    out = parse(HTML, position, file="a").render(x=EVIL)
    assert "&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;&lt;/script&gt;" in out
    assert "<img" not in out


def test_text_parts_are_not_escaped() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,))
    bundle = open_renderer().compile(definition, {"sms.liquid": "{{ x }}"})
    assert EVIL in repr(open_renderer().merge(bundle, Channel.SMS, Merge({"x": EVIL}))).replace("\\'", "'")


@pytest.mark.parametrize(
    "path", ["o.__class__", "o.real", "o.__init__.__globals__", "o['__class__']", "d.items", "d.keys"]
)
def test_attributes_of_python_objects_are_out_of_reach(path: str) -> None:
    tree = parse(HTML, f"{{{{ {path} | default: 'nothing' }}}}", file="a")
    assert tree.render(o=7, d={"a": 1}) == "nothing"


if __name__ == "__main__":
    main()


@pytest.mark.parametrize("sign", ["x", "é"])
def test_what_is_written_has_a_limit_in_bytes_though_there_are_steps_left(sign: str) -> None:
    body = sign * (10_000 // len(sign.encode()))
    renderer = open_renderer()
    bundle = renderer.compile(
        Definition(key="a", title="A", channels=(Channel.SMS,)),
        {"sms.liquid": f"{{% for i in (1..n) %}}{body}{{% endfor %}}"},
    )
    content = renderer.merge(bundle, Channel.SMS, Merge({"n": 50}))
    assert isinstance(content, SmsContent)
    assert len(content.text.encode()) == 500_000
    with pytest.raises(RenderFailed, match="it becomes longer than 524288 bytes"):
        renderer.merge(bundle, Channel.SMS, Merge({"n": 60}))


@pytest.mark.parametrize("number", [2**63 + 1, -(2**63) - 1, 1e300, float("inf"), float("nan")])
@pytest.mark.parametrize("where", ["data", "entity", "recipient"])
def test_a_number_that_is_too_large_is_refused_wherever_it_stands(number: float, where: str) -> None:
    renderer = open_renderer()
    definition = Definition(key="a", title="A", channels=(Channel.SMS,))
    bundle = renderer.compile(definition, {"sms.liquid": "{{ a | default: 1 }}{{ entity.b }}{{ recipient.c }}"})
    given: dict[str, dict[str, object]] = {"data": {}, "entity": {"b": 1}, "recipient": {"c": 1}}
    given[where] = {**given[where], "list": [{"deep": number}]}
    with pytest.raises(RenderFailed, match="a number is too large"):
        renderer.merge(bundle, Channel.SMS, Merge(**given))  # type: ignore[arg-type]  # no locale among them
    if where != "recipient":
        with pytest.raises(InvalidInput, match="a number is too large"):
            renderer.check(bundle, given["data"], entity=given["entity"])
