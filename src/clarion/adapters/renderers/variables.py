"""Which variables a template needs, read off its syntax tree.

A path is needed if every merge reads it: it stands outside of any condition and loop, and without a default. What is
read only sometimes cannot be told from the tree; `Needs.exact` says whether there is any of that, in which case only a
merge with the data at hand can tell what is missing.

Pure. The tree is the library's; `language` made it.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from liquid import RenderContext
from liquid.ast import ConditionalBlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import FilteredExpression, Path
from liquid.builtin.output import OutputNode
from liquid.builtin.tags.case_tag import CaseNode, MultiExpressionBlockNode
from liquid.builtin.tags.for_tag import ForNode
from liquid.builtin.tags.if_tag import IfNode
from liquid.builtin.tags.unless_tag import UnlessNode
from liquid.expression import Expression
from liquid.template import BoundTemplate

LIQUID: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
"""What is not text in a template."""

# Their expressions are tests, which an absent variable fails without an error.
_TESTS: Final = (IfNode, UnlessNode, CaseNode, ConditionalBlockNode, MultiExpressionBlockNode)

_OF_A_LIST: Final = frozenset({"size", "first", "last"})
"""Segments that Liquid computes; what stands before them is what the data must have."""


_HARMLESS: Final = frozenset({"capitalize", "default", "downcase", "escape", "strip", "upcase"})
"""Filters that fail for no value that JSON has."""


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """What every merge reads, as dotted paths, and whether that is all that any merge reads.

    A template is `plain` if a merge of it cannot fail once it has what it needs, unless the data is large: it has
    nothing but text and `outputs` variables with harmless filters. `has_text` says whether some of that text is visible
    in every merge. `names` are those of all variables that any merge may read. It `depends` on the recipient if it does
    more with one of the recipient's fields than write it.
    """

    paths: frozenset[str]
    names: frozenset[str]
    depends: bool
    exact: bool
    plain: bool
    outputs: int
    has_text: bool


def needs_of(template: BoundTemplate) -> Needs:
    """Read off a template's tree what its merges need."""
    reader = _Reader(RenderContext(template))
    for node in template.nodes:
        reader.read(node)
    outputs = [node for node in template.nodes if not isinstance(node, ContentNode)]
    return Needs(
        paths=frozenset(reader.paths),
        names=frozenset(template.analyze(include_partials=False).globals),
        depends=any(_depends(reader.context, node) for node in template.nodes),
        exact=reader.exact,
        plain=reader.exact and all(map(_is_plain, outputs)),
        outputs=len(outputs),
        has_text=any(isinstance(node, ContentNode) and not node.blank for node in template.nodes),
    )


def find(data: Mapping[str, object], path: str) -> object:
    """Return what data has at a path, or None; null is nothing."""
    found: object = data
    for name in path.split("."):
        if found is None or isinstance(found, Anything):
            break
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


class Anything(str):
    """A text that has every field: what is read of a recipient who is not known yet."""

    __slots__ = ()

    def __getitem__(self, key: object) -> "Anything":
        """Give the same again, whatever field is asked for."""
        return self


ANYTHING: Final = Anything("x")


def _is_plain(node: Node) -> bool:
    """Tell whether a node writes a variable and does nothing with it that could fail."""
    if not isinstance(node, OutputNode) or not isinstance(node.expression, FilteredExpression):
        return False
    return all(one.name in _HARMLESS for one in node.expression.filters or ())


def _depends(context: RenderContext, node: Node) -> bool:
    """Tell whether a node, or one below it, does more with a field of the recipient than write it."""
    if not _is_plain(node) and any(map(_reads_recipient, node.expressions())):
        return True
    return any(_depends(context, child) for child in node.children(context, include_partials=False))


def _reads_recipient(expression: Expression) -> bool:
    """Tell whether an expression reads the recipient anywhere."""
    if isinstance(expression, Path) and expression.path[0] == "recipient":
        return True
    return any(map(_reads_recipient, expression.children()))


class _Reader:
    """Walks a tree from the top, knowing the names that the template made itself."""

    def __init__(self, context: RenderContext) -> None:
        self.context = context
        self._made: set[str] = set()
        self.paths: set[str] = set()
        self.exact = True

    def read(self, node: Node) -> None:
        """Take in a node and those below it that are always rendered."""
        if isinstance(node, _TESTS):
            self.exact = False
            return
        for expression in node.expressions():
            self._read(expression)
        self._made.update(node.template_scope())
        if isinstance(node, ForNode):
            self.exact = False  # nothing in the body is read where the list is empty
            return
        for child in node.children(self.context, include_partials=False):
            self.read(child)

    def _read(self, expression: Expression) -> None:
        """Take in what an expression reads whatever comes of it."""
        inner = expression.children()
        if isinstance(expression, Path):
            self._need(expression)
        elif isinstance(expression, FilteredExpression) and expression.filters:
            first, later = expression.filters[0], expression.filters[1:]
            if first.name == "default":
                # A default that is a variable is read only where it is used.
                self.exact = self.exact and not any(isinstance(part, Path) for part in first.children())
                inner = [part for one in later for part in one.children()]
        for part in inner:
            self._read(part)

    def _need(self, path: Path) -> None:
        """Note a path up to where the data's own names end."""
        names: list[str] = []
        for segment in path.path:
            if not isinstance(segment, str) or "." in segment or (names and segment in _OF_A_LIST):
                self.exact = False  # elements, and names that another variable chooses, are only known with the data
                break
            names.append(segment)
        if names and names[0] not in self._made:
            self.paths.add(".".join(names))
