"""Liquid as templates may use it: few tags, bounded filters, counted work, and no variable that is missing.

What differs from the library's own: names come from what the merge is given (no `now`, no `today`), an absent or null
variable raises unless it is tested or given a default, files cannot be included, a range can only be looped over, and
every merge has a number of steps that it cannot exceed. A template is checked for all of this when it is parsed, which
is when it is published and again when a stored one is first used.

Reads and writes nothing. Values are bounded in `filters`, what a template needs is found in `variables`.
"""

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import ClassVar, Final, TextIO

from liquid import Environment, FalsyStrictUndefined, RenderContext
from liquid.ast import BlockNode, Node
from liquid.builtin.expressions import LoopExpression
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.tags.for_tag import ForNode, ForTag
from liquid.exceptions import LiquidError, OutputStreamLimitError
from liquid.expression import Expression
from liquid.span import Span
from liquid.template import BoundTemplate
from liquid.token import TOKEN_CONTENT, TOKEN_ILLEGAL, TOKEN_OUTPUT, Token
from liquid.undefined import UNDEFINED
from liquid.utils import ReadOnlyChainMap

from clarion.adapters.renderers import limit
from clarion.adapters.renderers.filters import bounded_filters, known_filters
from clarion.adapters.renderers.formats import Writing, writing_of
from clarion.adapters.renderers.given import Given
from clarion.adapters.renderers.limit import Budget, TooMuch, measure
from clarion.adapters.renderers.variables import LIQUID
from clarion.errors import BrokenInvariant, InvalidInput
from clarion.ports.renderer import TemplateMistake

TAGS: Final = frozenset(
    {"if", "unless", "case", "for", "break", "continue", "assign", "capture", "cycle", "echo", "comment", "#"}
)

ROUND_STEPS: Final = 20
"""Steps charged for each round of a loop, besides those for its body."""

TEXT_SHARE: Final = 16
"""Characters of text in a loop's body that are written for one step: they are copied and nothing else."""

READ_SHARE: Final = 4
"""Characters of a text that are read for one step."""

UNDEFINED_STEPS: Final = 40
"""Steps charged for a missing variable: the library makes an object to stand for it."""

NEAR_MAX: Final = 40
"""Characters of a template that an error quotes."""

LIBRARY_UNEXPECTED: Final = re.compile(r"unexpected tag '(\w+)'")
LIBRARY_MISSES: Final = re.compile(r"expected tag (\w+)")
_BLANKS: Final = re.compile(rf"\s{{{limit.BLANKS_MAX + 1}}}")
_OPENING: Final = re.compile(r"\{([{%])-?\s*(\w*)")


class Scope(ReadOnlyChainMap):
    """Where names are looked up: those of loops first, then the template's own, then what is given."""

    def __init__(self, *maps: Mapping[str, object]) -> None:
        """Have these; the library adds those of loops at the front."""
        super().__init__(*maps)
        self.maps = self._maps


class BoundedContext(RenderContext):
    """The variables of one merge, and what it has used up."""

    __slots__ = ("_kept", "_local_sizes", "_maps", "budget", "writing")

    def __init__(
        self,
        template: BoundTemplate,
        *,
        globals: Mapping[str, object] | None = None,  # noqa: A002  (the library's name)
        disabled_tags: list[str] | None = None,
        copy_depth: int = 0,
        parent_context: RenderContext | None = None,
        loop_iteration_carry: int = 1,
        local_namespace_size_carry: int = 0,
    ) -> None:
        """Start with the data, and without the library's `now` and `today`."""
        super().__init__(
            template,
            globals=globals,
            disabled_tags=disabled_tags,
            copy_depth=copy_depth,
            parent_context=parent_context,
            loop_iteration_carry=loop_iteration_carry,
            local_namespace_size_carry=local_namespace_size_carry,
        )
        scope = Scope(self.locals, self.globals, self.counters)
        self.scope, self._maps = scope, scope.maps
        self._local_sizes: dict[str, int] = {}
        self._kept = 0
        self.budget = Budget()
        self.writing = writing_of("", "")

    def spend(self, steps: int) -> None:
        """Count steps, and stop with TooMuch where there are none left."""
        self.budget.spend(steps)

    def get(self, path: list[object], *, token: Token | None, default: object = UNDEFINED) -> object:
        """Find a variable. A null counts as absent, as it does in the hash of a message's data."""
        found = self._found(path)
        kind = type(found)
        if kind is str and len(found) < limit.VALUE_MAX:  # type: ignore[arg-type]  # here and below: nearly always
            self.budget.spend(1 + (1 + len(found)) // READ_SHARE)  # type: ignore[arg-type]
            return found
        if (kind is int or kind is float) and -limit.NUMBER_MAX <= found <= limit.NUMBER_MAX:  # type: ignore[operator]
            self.budget.spend(1)
            return found
        if found is None:
            found = super().get(path, token=token, default=default)
        if found is None and default is UNDEFINED:
            found = self.env.undefined(str(path[0]), token=token)
        if not isinstance(found, (str, int, float, list, dict)) and isinstance(found, FalsyStrictUndefined):
            found.msg = _dotted(path)  # so that an error can name the variable
            if isinstance(self.globals, Given):
                found.msg = self.globals.absent.get(found.msg, found.msg)
            self.spend(UNDEFINED_STEPS)
        # It may be compared or searched, element by element and however deep; of a text many characters at a time.
        self.spend(1 + measure(found) // READ_SHARE if type(found) is str else measure(found))
        return found

    def _found(self, path: list[object]) -> object:
        """Find what is plainly there: fields of tables, by their names; None leaves all else to the library's rules."""
        root = path[0]
        if type(root) is not str:
            return None
        found: object = None
        for names in self._maps:
            if root in names:
                found = names[root]
                break
        for name in path[1:]:
            if type(name) is not str or not isinstance(found, dict):
                return None
            found = found.get(name)
        return found

    def assign(self, key: str, val: object) -> None:
        """Keep a value under a name. Only the change in size is counted, so that the rest is not measured again."""
        size = measure(val)
        self.spend(size // 8)
        self._kept += size - self._local_sizes.get(key, 0)
        self._local_sizes[key] = size
        if self._kept > limit.LOCALS_MAX:
            raise TooMuch("the template keeps too much", token=None)
        self.locals[key] = val


class BoundedTemplate(BoundTemplate):
    """A parsed template that merges within limits."""

    context_class: type[RenderContext] = BoundedContext


def merge(template: BoundTemplate, names: Mapping[str, object], *, writing: Writing, budget: Budget) -> str:
    """Merge what is given into a template, for what is left of a budget."""
    context, buffer = BoundedContext(template, globals=names), StringIO(newline=None)
    context.budget = budget
    context.writing = writing
    template.render_with_context(context, buffer)
    text = buffer.getvalue()
    # Asked at the end, because steps bound what can be written until then: for one at most TEXT_SHARE characters.
    if len(text) > limit.OUTPUT_BYTES_MAX or (not text.isascii() and len(text.encode()) > limit.OUTPUT_BYTES_MAX):
        raise OutputStreamLimitError("output stream limit reached", token=None)
    return text


class CountedBlock(BlockNode):
    """A loop's body. Every round is charged by the length of its Liquid, which bounds the work that it can do."""

    __slots__ = ("_steps",)

    def __init__(self, block: BlockNode, *, steps: int) -> None:
        """Take the place of a block."""
        super().__init__(block.token, block.nodes)
        self._steps = steps

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        """Charge for the round, then render it."""
        if not isinstance(context, BoundedContext):
            raise BrokenInvariant("a template was rendered without limits")
        context.spend(self._steps)
        return super().render_to_output(context, buffer)


class CountedForNode(ForNode):
    """A loop whose rounds are charged for."""

    def __init__(self, token: Token, expression: LoopExpression, block: BlockNode, default: BlockNode | None = None):
        """Measure the body in the source, where it ends at the tag that closes the block."""
        body = token.source[token.start_index : block.token.start_index]
        of_liquid = sum(map(len, LIQUID.findall(body)))
        steps = ROUND_STEPS + of_liquid + (len(body) - of_liquid) // TEXT_SHARE
        super().__init__(token, expression, CountedBlock(block, steps=steps), default)

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        """Refuse a long range before the library makes a list of it, which it does for `reversed`."""
        if isinstance(self.expression.iterable, RangeLiteral):
            numbers = self.expression.iterable.evaluate(context)
            if numbers.stop - numbers.start > limit.LOOP_MAX:
                raise TooMuch("a range is too long", token=self.token)
        return super().render_to_output(context, buffer)


class CountedForTag(ForTag):
    """The `for` tag, making counted loops."""

    node_class: type[ForNode] = CountedForNode


class Language(Environment):
    """The library's environment, cut down."""

    block_nesting_limit = limit.NESTING_MAX
    context_depth_limit = limit.NESTING_MAX
    loop_iteration_limit: ClassVar[int | None] = limit.LOOP_MAX
    local_namespace_limit: ClassVar[int | None] = limit.LOCALS_MAX
    output_stream_limit: ClassVar[int | None] = limit.OUTPUT_BYTES_MAX
    template_class: type[BoundTemplate] = BoundedTemplate

    def setup_tags_and_filters(self, *, extra: bool = False) -> None:
        """Keep the allowed tags and filters only."""
        super().setup_tags_and_filters(extra=extra)
        self.add_tag(CountedForTag)
        kept = TAGS | {TOKEN_CONTENT, TOKEN_OUTPUT, TOKEN_ILLEGAL}
        self.tags = {name: tag for name, tag in self.tags.items() if name in kept}
        self.filters = bounded_filters(self.filters)


TEXT: Final = Language(undefined=FalsyStrictUndefined)
HTML: Final = Language(undefined=FalsyStrictUndefined, autoescape=True)


def parse(language: Language, source: str, *, file: str, bytes_max: int = limit.TEMPLATE_BYTES_MAX) -> BoundTemplate:
    """Parse and check a template, or raise InvalidInput that names file and line."""
    size = len(source.encode())
    if size > bytes_max:
        raise InvalidInput(
            f"the template has {size} bytes",
            field=file,
            hint=f"bring it down to {bytes_max}; images belong on a server",
        )
    _check_delimiters(source, file=file)
    try:
        template = language.from_string(source)
    except LiquidError as error:
        position = _position(error, source)
        raise _wrong(file, source, position, _why(str(error.message), source[position:])) from error
    for node in template.nodes:
        _check_ranges(template, node, source=source, file=file)
    _check_filters(language, template.analyze(include_partials=False).filters, source=source, file=file)
    return template


def line_of(source: str, position: int) -> int:
    """Return the number of the line that a position in a text is on."""
    return source.count("\n", 0, max(position, 0)) + 1


def _check_delimiters(source: str, *, file: str) -> None:
    """Refuse what is opened and not closed, in one pass: the library's patterns would go over the rest each time."""
    position = 0
    while opening := _OPENING.search(source, position):
        end = source.find("}}" if opening[1] == "{" else "%}", opening.start() + 2)
        if end < 0:
            raise _wrong(file, source, opening.start(), f"'{{{opening[1]}' is not closed")
        if end - opening.start() > limit.EXPRESSION_CHARS_MAX:
            raise _wrong(
                file, source, opening.start(), f"an expression is over {limit.EXPRESSION_CHARS_MAX} characters"
            )
        if _BLANKS.search(source, opening.start(), end):
            raise _wrong(file, source, opening.start(), f"it has over {limit.BLANKS_MAX} blanks in a row")
        if opening[1] == "%" and opening[2] in ("raw", "doc"):
            raise _wrong(file, source, opening.start(), f"the tag '{opening[2]}' is not available")
        position = end + 2


def _check_ranges(template: BoundTemplate, node: Node, *, source: str, file: str) -> None:
    """Refuse a range anywhere but in a loop, which bounds it: elsewhere it becomes a list of any length."""
    for expression in node.expressions():
        inner = expression.children() if isinstance(expression, LoopExpression) else [expression]
        for one in inner:
            allowed = isinstance(expression, LoopExpression) and one is expression.iterable
            if not (allowed and isinstance(one, RangeLiteral)) and any(
                isinstance(part, RangeLiteral) for part in _within(one)
            ):
                raise _wrong(file, source, node.token.start_index, "a range can only be looped over")
    for child in node.children(RenderContext(template), include_partials=False):
        _check_ranges(template, child, source=source, file=file)


def _within(expression: Expression) -> Iterator[Expression]:
    """Give an expression and all expressions in it."""
    yield expression
    for child in expression.children():
        yield from _within(child)


def _check_filters(language: Language, used: Mapping[str, list[Span]], *, source: str, file: str) -> None:
    """Refuse a filter that there is not, which the library would only notice while it merges."""
    for name, spans in used.items():
        if name not in language.filters:
            known = ", ".join(known_filters())
            raise _wrong(file, source, spans[0].index, f"there is no filter {name!r}; there are {known}")


def _position(error: LiquidError, source: str) -> int:
    """Return where in its source an error of the library lies; one at the end has no position."""
    if error.token is None:
        return 0
    return error.token.start_index if error.token.start_index >= 0 else len(source.rstrip())


def _why(said: str, rest: str) -> str:
    """Say why a template cannot be parsed; the library's own words are those of its grammar (`found rparen`)."""
    if tag := LIBRARY_UNEXPECTED.match(said):
        return f"the tag '{tag[1]}' is not available, or stands where it cannot"
    if tag := LIBRARY_MISSES.match(said):
        return f"'{{% {tag[1]} %}}' is missing"
    near = rest.strip().partition("\n")[0][:NEAR_MAX]
    return f"this cannot be read as Liquid, near {near!r}" if near else "this cannot be read as Liquid"


def _dotted(path: list[object]) -> str:
    """Write a path as templates do."""
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path).removeprefix(".")


def _wrong(file: str, source: str, position: int, what: str) -> TemplateMistake:
    """Make the error for a template that cannot be used."""
    return TemplateMistake(what, field=file, line=line_of(source, position), position=position)
