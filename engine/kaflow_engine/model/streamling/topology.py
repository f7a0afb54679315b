"""A file as a graph: its nodes, what each of them reads, and what is wrong with names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from kaflow_engine.errors import Location, ModelError, SqlError, UnknownName
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, Scalar, brief, find
from kaflow_engine.model.streamling.node_specs import NodeSpec, ReadingSpec
from kaflow_engine.model.streamling.specs import DynamicTable, SqlTransform, Topology
from kaflow_engine.model.streamling.sql.text import SqlText

CHECK = "dynamic_table_check"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A source, a transform or a sink."""

    name: str
    section: str
    spec: NodeSpec
    tree: Entries
    """The whole file."""

    def place(self, *path: str | int) -> Location:
        """Return where a key of it stands; of an absent one, the node."""
        return place(self.tree, (self.section, self.name, *path))

    @cached_property
    def sql(self) -> SqlText | None:
        """Its query; None: it has none."""
        match self.spec:
            case SqlTransform(sql=text):
                return SqlText(text)
            case DynamicTable(sql=str(text)):
                return SqlText(text)
            case _:
                return None

    @property
    def sql_at(self) -> Location:
        """Where the first line of its query stands."""
        node = find(self.tree, (self.section, self.name, "sql"))
        return node.at if isinstance(node, Scalar) else self.place("sql")

    def sql_place(self, offset: int) -> Location:
        """Return where a character of its query stands."""
        lines = self.sql.text.count("\n", 0, offset) if self.sql is not None else 0
        return replace(self.sql_at, line=(self.sql_at.line or 1) + lines)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Nodes that it names behind `from` or FROM."""
        if self.sql is not None:
            return tuple(dict.fromkeys(each.name for each in self.sql.sources))
        return (self.spec.from_,) if isinstance(self.spec, ReadingSpec) else ()

    @cached_property
    def asks(self) -> tuple[tuple[str, int], ...]:
        """Dynamic tables that its query asks, and where."""
        words = self.sql.words if self.sql is not None else ()
        return tuple(
            (words[number + 2].text, words[number + 2].start)
            for number, word in enumerate(words[:-2])
            if word.text.lower() == CHECK and words[number + 2].kind == "STRING"
        )


@dataclass(frozen=True, kw_only=True)
class Graph:
    """All nodes of a file."""

    nodes: Mapping[str, Node]
    """Sources and transforms, each behind what it reads as far as there is an order."""
    sinks: tuple[Node, ...]
    mistakes: tuple[ModelError, ...]

    def readers(self, name: str) -> Iterator[Node]:
        """Yield what reads or asks a node."""
        for node in (*self.nodes.values(), *self.sinks):
            if name in node.reads or name in (asked for asked, _ in node.asks):
                yield node

    def above(self, node: Node) -> Iterator[Node]:
        """Yield all whose rows reach a node."""
        seen: set[str] = set()
        waiting = [*node.reads]
        while waiting:
            name = waiting.pop()
            if name in self.nodes and name not in seen:
                seen.add(name)
                yield self.nodes[name]
                waiting += self.nodes[name].reads

    def below(self, name: str) -> Iterator[Node]:
        """Yield all that the rows of a node reach."""
        seen: set[tuple[str, str]] = set()
        waiting = [*self.readers(name)]
        while waiting:
            node = waiting.pop()
            if (node.section, node.name) in seen:
                continue
            seen.add((node.section, node.name))
            yield node
            if node.section != "sinks":
                waiting += self.readers(node.name)


def graph_of(topology: Topology, tree: Entries) -> Graph:
    """Return the graph of a file.

    Args:
        topology: What the file says.
        tree: The file.
    """
    named = [
        Node(name=name, section=section, spec=spec, tree=tree)
        for section, specs in (("sources", topology.sources), ("transforms", topology.transforms))
        for name, spec in specs.items()
    ]
    sinks = tuple(
        Node(name=name, section="sinks", spec=spec, tree=tree)
        for name, spec in topology.sinks.items()
    )
    nodes: dict[str, Node] = {}
    mistakes: list[ModelError] = []
    for node in named:
        if node.name in nodes:
            first = nodes[node.name].place()
            mistakes.append(
                ModelError(
                    f"'{brief(node.name)}' is a source and a transform, the other one at {first}",
                    node.place(),
                    "rename one of them: SQL names both behind FROM",
                )
            )
        nodes[node.name] = node
    for node in (*named, *sinks):
        mistakes += _unknown_inputs(node, nodes, sinks)
    ordered, around = _in_order(nodes)
    mistakes += around if len(nodes) == len(named) else ()
    graph = Graph(nodes=ordered, sinks=sinks, mistakes=())
    mistakes += [] if mistakes else _without_ends(graph, tree)
    return replace(graph, mistakes=tuple(mistakes))


def _unknown_inputs(
    node: Node, nodes: Mapping[str, Node], sinks: tuple[Node, ...]
) -> Iterator[ModelError]:
    tables = {name for name, each in nodes.items() if isinstance(each.spec, DynamicTable)}
    readable = [name for name in nodes if name not in tables]
    where = {name: node.place("from") for name in node.reads}
    if node.sql is not None:
        where = {each.name: node.sql_place(each.start) for each in reversed(node.sql.sources)}
        if not node.sql.selects:
            yield SqlError(
                f"the query of '{brief(node.name)}' is no SELECT",
                node.sql_at,
                "write SELECT … FROM <source or transform>",
            )
        elif not node.reads:
            yield SqlError(
                f"the query of '{brief(node.name)}' reads no source",
                node.sql_at,
                "name a source or a transform behind FROM",
            )
    for name in node.reads:
        if name in readable:
            continue
        if name in tables:
            yield ModelError(
                f"'{brief(name)}' is a dynamic table, and no rows come from it",
                where[name],
                f"ask it in a query: WHERE {CHECK}('{name}', <column>)",
            )
        elif any(sink.name == name for sink in sinks):
            yield ModelError(
                f"'{brief(name)}' is a sink, and no rows come from it",
                where[name],
                "name the source or transform that the sink reads",
            )
        else:
            yield UnknownName("source or transform", brief(name), readable, where[name])
    for name, offset in node.asks:
        if name not in tables:
            yield UnknownName("dynamic table", brief(name), tables, node.sql_place(offset))


def _in_order(nodes: Mapping[str, Node]) -> tuple[dict[str, Node], list[ModelError]]:
    """Put each node behind what it reads; what is left reads itself by some way."""
    ordered: dict[str, Node] = {}
    left = dict(nodes)
    while left:
        ready = [
            name
            for name, node in left.items()
            if not any(each in left for each in (*node.reads, *(asked for asked, _ in node.asks)))
        ]
        if not ready:
            break
        for name in ready:
            ordered[name] = left.pop(name)
    around = [node for node in left.values() if any(each is node for each in _behind(node, left))]
    ways = {node.name: [brief(name) for name in left if name != node.name] for node in around}
    mistakes: list[ModelError] = [
        ModelError(
            f"'{brief(node.name)}' reads its own rows"
            + (f", by way of {', '.join(ways[node.name])}" if ways[node.name] else ""),
            node.place(),
            "transforms cannot form a circle: let one of them read a source",
        )
        for node in around[:1]
    ]
    return {**ordered, **left}, mistakes


def _behind(node: Node, left: Mapping[str, Node]) -> Iterator[Node]:
    seen: set[str] = set()
    waiting = [*node.reads, *(asked for asked, _ in node.asks)]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in left:
            continue
        seen.add(name)
        yield left[name]
        waiting += [*left[name].reads, *(asked for asked, _ in left[name].asks)]


def _without_ends(graph: Graph, tree: Entries) -> Iterator[ModelError]:
    for section in ("sources", "sinks"):
        found = tree.get(section)
        if isinstance(found, Entries) and not found.entries:
            yield ModelError(f"'{section}' is empty", place(tree, (section,)), "add one")
    for node in graph.nodes.values():
        if isinstance(node.spec, DynamicTable) or any(True for _ in graph.readers(node.name)):
            continue
        hint = f"add a sink with from: {node.name}, or remove it"
        yield ModelError(f"nothing reads '{brief(node.name)}'", node.place(), hint)
