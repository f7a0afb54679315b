"""Expressions, by precedence: OR, AND, NOT, comparisons, sums, products, signs."""

from sqlglot.tokenizer_core import TokenType

from kaflow_engine.model.lenses.grammar.cursor import Cursor
from kaflow_engine.model.lenses.grammar.syntax import (
    Between,
    Call,
    Case,
    Cast,
    Constant,
    Expression,
    Field,
    Infix,
    IsNull,
    Number,
    OneOf,
    Prefix,
    Star,
    Text,
    TypeName,
)

_COMPARISONS = {
    TokenType.EQ: "=",
    TokenType.NEQ: "<>",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}
_SUMS = {TokenType.PLUS: "+", TokenType.DASH: "-", TokenType.DPIPE: "||"}
_PRODUCTS = {TokenType.STAR: "*", TokenType.SLASH: "/", TokenType.MOD: "%"}


def expression(cursor: Cursor) -> Expression:
    """Take an expression."""
    left = _conjunction(cursor)
    while cursor.accept("OR"):
        left = Infix(offset=left.offset, operator="OR", left=left, right=_conjunction(cursor))
    return left


def field(cursor: Cursor) -> Field:
    """Take a name, or several with dots between them."""
    parts = [cursor.name("a field")]
    while cursor.is_kind(TokenType.DOT) and not cursor.is_kind(TokenType.STAR, ahead=1):
        cursor.take()
        parts.append(cursor.name("a field", behind_dot=True))
    return Field(offset=parts[0].offset, parts=tuple(parts))


def _conjunction(cursor: Cursor) -> Expression:
    left = _negation(cursor)
    while cursor.accept("AND"):
        left = Infix(offset=left.offset, operator="AND", left=left, right=_negation(cursor))
    return left


def _negation(cursor: Cursor) -> Expression:
    offset = cursor.offset
    if cursor.accept("NOT"):
        return Prefix(offset=offset, operator="NOT", value=_negation(cursor))
    return _comparison(cursor)


def _comparison(cursor: Cursor) -> Expression:
    left = _sum(cursor)
    while True:
        token = cursor.peek()
        if token is not None and token.token_type in _COMPARISONS:
            operator = _COMPARISONS[cursor.take().token_type]
            left = Infix(offset=left.offset, operator=operator, left=left, right=_sum(cursor))
        elif cursor.accept("IS"):
            negated = cursor.accept("NOT")
            cursor.expect("NULL")
            left = IsNull(offset=left.offset, value=left, negated=negated)
        elif any(cursor.is_word("NOT", word) for word in ("IN", "BETWEEN", "LIKE")):
            cursor.take()
            left = _special(cursor, left, negated=True)
        elif any(cursor.is_word(word) for word in ("IN", "BETWEEN", "LIKE")):
            left = _special(cursor, left, negated=False)
        else:
            return left


def _special(cursor: Cursor, left: Expression, *, negated: bool) -> Expression:
    if cursor.accept("BETWEEN"):
        least = _sum(cursor)
        cursor.expect("AND")
        return Between(
            offset=left.offset, value=left, least=least, greatest=_sum(cursor), negated=negated
        )
    if cursor.accept("LIKE"):
        operator = "NOT LIKE" if negated else "LIKE"
        return Infix(offset=left.offset, operator=operator, left=left, right=_sum(cursor))
    cursor.expect("IN")
    cursor.expect_kind(TokenType.L_PAREN, "'('")
    if cursor.is_word("SELECT"):
        cursor.refuse("a SELECT cannot stand here", cursor.offset, "join the topics instead")
    options = _list(cursor)
    return OneOf(offset=left.offset, value=left, options=options, negated=negated)


def _sum(cursor: Cursor) -> Expression:
    left = _product(cursor)
    while (token := cursor.peek()) is not None and token.token_type in _SUMS:
        operator = _SUMS[cursor.take().token_type]
        left = Infix(offset=left.offset, operator=operator, left=left, right=_product(cursor))
    return left


def _product(cursor: Cursor) -> Expression:
    left = _signed(cursor)
    while (token := cursor.peek()) is not None and token.token_type in _PRODUCTS:
        operator = _PRODUCTS[cursor.take().token_type]
        left = Infix(offset=left.offset, operator=operator, left=left, right=_signed(cursor))
    return left


def _signed(cursor: Cursor) -> Expression:
    offset = cursor.offset
    if cursor.accept_kind(TokenType.DASH):
        return Prefix(offset=offset, operator="-", value=_signed(cursor))
    if cursor.accept_kind(TokenType.PLUS):
        return _signed(cursor)
    return _primary(cursor)


def _primary(cursor: Cursor) -> Expression:
    token = cursor.peek()
    if token is None:
        cursor.fail("an expression")
    offset = token.start
    if token.token_type is TokenType.NUMBER:
        return Number(offset=offset, text=cursor.take().text)
    if token.token_type is TokenType.STRING:
        return Text(offset=offset, value=cursor.take().text)
    if cursor.accept_kind(TokenType.L_PAREN):
        if cursor.is_word("SELECT"):
            cursor.refuse(
                "a SELECT cannot stand in an expression",
                cursor.offset,
                "name it with WITH, and join it",
            )
        inner = expression(cursor)
        cursor.expect_kind(TokenType.R_PAREN, "')'")
        return inner
    if cursor.accept("CASE"):
        return _case(cursor, offset)
    if cursor.is_word("CAST") and cursor.is_kind(TokenType.L_PAREN, ahead=1):
        return _cast(cursor, offset)
    for value in ("TRUE", "FALSE", "NULL"):
        if cursor.accept(value):
            return Constant(offset=offset, value=value)
    if not cursor.is_name():
        cursor.fail("an expression")
    if cursor.is_kind(TokenType.L_PAREN, ahead=1):
        return _call(cursor)
    return field(cursor)


def _case(cursor: Cursor, offset: int) -> Case:
    value = None if cursor.is_word("WHEN") else expression(cursor)
    branches: list[tuple[Expression, Expression]] = []
    cursor.expect("WHEN")
    while True:
        condition = expression(cursor)
        cursor.expect("THEN")
        branches.append((condition, expression(cursor)))
        if not cursor.accept("WHEN"):
            break
    otherwise = expression(cursor) if cursor.accept("ELSE") else None
    cursor.expect("END")
    return Case(offset=offset, value=value, branches=tuple(branches), otherwise=otherwise)


def _cast(cursor: Cursor, offset: int) -> Cast:
    cursor.expect("CAST")
    cursor.take()
    value = expression(cursor)
    cursor.expect("AS")
    name = cursor.name("a type")
    sizes: list[int] = []
    if cursor.accept_kind(TokenType.L_PAREN):
        while True:
            size = cursor.expect_kind(TokenType.NUMBER, "a number").text
            sizes.append(int(size) if size.isdigit() else 0)
            if not cursor.accept_kind(TokenType.COMMA):
                break
        cursor.expect_kind(TokenType.R_PAREN, "')'")
    cursor.expect_kind(TokenType.R_PAREN, "')'")
    kind = TypeName(offset=name.offset, name=name.text.upper(), sizes=tuple(sizes))
    return Cast(offset=offset, value=value, type=kind)


def _call(cursor: Cursor) -> Call:
    name = cursor.name()
    cursor.take()
    distinct = cursor.accept("DISTINCT")
    if cursor.is_kind(TokenType.STAR):
        star = Star(offset=cursor.take().start)
        cursor.expect_kind(TokenType.R_PAREN, "')'")
        return Call(offset=name.offset, name=name, arguments=(star,), distinct=distinct)
    if cursor.accept_kind(TokenType.R_PAREN):
        return Call(offset=name.offset, name=name, arguments=())
    arguments = _list(cursor)
    return Call(offset=name.offset, name=name, arguments=arguments, distinct=distinct)


def _list(cursor: Cursor) -> tuple[Expression, ...]:
    found = [expression(cursor)]
    while cursor.accept_kind(TokenType.COMMA):
        found.append(expression(cursor))
    cursor.expect_kind(TokenType.R_PAREN, "')'")
    return tuple(found)
