"""The pipeline files that are measured."""

from textwrap import dedent, indent

FILTER = """
    SELECT user_id, action, timestamp, amount, sid
    FROM {clicks}
    WHERE amount >= 1
"""

ENRICH = """
    SELECT c.user_id, c.action, c.timestamp, p.subscription_tier, p.full_name
    FROM {clicks} c
    LEFT JOIN {profiles} p ON c.user_id = p.user_id
"""

BOUGHT = """
    SELECT c.user_id, c.action, c.sid, p.order_id, p.price
    FROM {clicks} c
    JOIN {purchases} p ON c.user_id = p.user_id
"""

TOTALS = """
    SELECT user_id, count(*) AS clicks, sum(amount) AS amount
    FROM {clicks}
    GROUP BY user_id{window}
"""

COUNTS = """
    SELECT user_id, count(*) AS clicks, epoch_ms(window_start) AS start
    FROM {clicks}
    GROUP BY user_id, tumble(INTERVAL {seconds} SECOND)
"""

BALANCES = """
    SELECT p.user_id, p.subscription_tier, b.balance
    FROM {profiles} p
    JOIN {balances} b ON p.user_id = b.user_id
"""

TOTALS_OF_TIERS = """
    SELECT c.user_id, max(p.subscription_tier) AS tier, count(*) AS clicks, sum(c.amount) AS amount
    FROM {clicks} c
    LEFT JOIN {profiles} p ON c.user_id = p.user_id
    GROUP BY c.user_id
"""

PROJECTION = (
    "SELECT id, lower(account) AS account, amount, amount * 1.1 AS amount_with_fee, status, "
    "updated_at, note FROM changes"
)

CHANGE_FILTER = "SELECT * FROM changes WHERE status = 'active'"

CLICK = "{user_id: VARCHAR, action: VARCHAR, timestamp: BIGINT, amount: DOUBLE, sid: VARCHAR}"
PROFILE = "{user_id: VARCHAR, subscription_tier: VARCHAR, full_name: VARCHAR}"
BALANCE = "{user_id: VARCHAR, balance: BIGINT}"
PURCHASE = "{user_id: VARCHAR, order_id: VARCHAR, timestamp: BIGINT, price: DOUBLE}"


def filtering(name: str, clicks: str, output: str) -> str:
    """Filter and project; rows have the keys of their records, and do not travel by them."""
    return _file(
        name,
        FILTER.format(clicks=clicks),
        f"output: {{topic: {output}, format: json}}",
        "ordered: false",
        f"topics:\n  {clicks}: {{columns: {CLICK}}}",
    )


def enriching(
    name: str,
    clicks: str,
    profiles: str,
    output: str,
    *,
    delivery: str = "exactly_once",
    smart: bool = False,
    avro: bool = False,
    ttl: str = "1h",
) -> str:
    """Join events with a dimension; the key of the output is that of the join.

    Args:
        name: Of the pipeline.
        clicks: Topic of the events.
        profiles: Topic of the dimension.
        output: Topic of the rows.
        delivery: As in a pipeline file.
        smart: Rows wait for their profile, and the dimension is not loaded first.
        avro: In and out; columns come from the registry.
        ttl: How long rows wait.
    """
    parts = [
        f"output: {{topic: {output}, format: {'avro' if avro else 'json'}, key: user_id}}",
        f"delivery: {delivery}",
        f"state: {{events: {{default_ttl: {ttl}}}, dimensions: [{profiles}]}}",
    ]
    if smart:
        parts += [
            "emission: {type: smart, require: [subscription_tier]}",
            "dimensions_first: false",
        ]
    if avro:
        parts.append(f"topics:\n  {clicks}: {{format: avro}}\n  {profiles}: {{format: avro}}")
    else:
        parts.append(
            f"topics:\n  {clicks}: {{columns: {CLICK}}}\n  {profiles}: {{columns: {PROFILE}}}"
        )
    return _file(name, ENRICH.format(clicks=clicks, profiles=profiles), *parts)


def pairing(name: str, clicks: str, purchases: str, output: str, ttl: str = "10m") -> str:
    """Join two streams of events."""
    return _file(
        name,
        BOUGHT.format(clicks=clicks, purchases=purchases),
        f"output: {{topic: {output}, format: json, key: user_id}}",
        f"state: {{events: {{default_ttl: {ttl}}}}}",
        f"topics:\n  {clicks}: {{columns: {CLICK}, event_time: timestamp}}\n"
        f"  {purchases}: {{columns: {PURCHASE}, event_time: timestamp}}",
    )


def grouping(name: str, clicks: str, output: str, window: str | None = None) -> str:
    """Count and add by key.

    Args:
        name: Of the pipeline.
        clicks: Topic of the events.
        output: Topic of the rows.
        window: SQL of a window whose rows leave when it closes; None: running totals.
    """
    query = TOTALS.format(clicks=clicks, window=f", {window}" if window else "")
    return _file(
        name,
        query,
        f"output: {{topic: {output}, format: json}}",
        f"topics:\n  {clicks}: {{columns: {CLICK}, event_time: timestamp}}",
    )


def counting(name: str, clicks: str, output: str, seconds: int) -> str:
    """Count by key in windows of so many seconds, whose rows leave when they close."""
    return _file(
        name,
        COUNTS.format(clicks=clicks, seconds=seconds),
        f"output: {{topic: {output}, format: json, key: user_id}}",
        f"topics:\n  {clicks}: {{columns: {CLICK}, event_time: timestamp}}",
    )


def joining_tables(name: str, profiles: str, balances: str, output: str) -> str:
    """Join two tables; each change of a row is sent."""
    return _file(
        name,
        BALANCES.format(profiles=profiles, balances=balances),
        f"output: {{topic: {output}, format: json}}",
        "dimensions_first: false",
        f"topics:\n  {profiles}: {{table: true, columns: {PROFILE}}}\n"
        f"  {balances}: {{table: true, columns: {BALANCE}}}",
    )


def grouping_joined(name: str, clicks: str, profiles: str, output: str) -> str:
    """Join events with a dimension, and count and add by the key of the join."""
    return _file(
        name,
        TOTALS_OF_TIERS.format(clicks=clicks, profiles=profiles),
        f"output: {{topic: {output}, format: json}}",
        f"state: {{dimensions: [{profiles}]}}",
        f"topics:\n  {clicks}: {{columns: {CLICK}}}\n  {profiles}: {{columns: {PROFILE}}}",
    )


def writing(name: str, clicks: str, output: str) -> str:
    """Filter and project into another system.

    Args:
        name: Of the pipeline.
        clicks: Topic of the events.
        output: What a pipeline file says of the output.
    """
    return _file(
        name,
        FILTER.format(clicks=clicks),
        f"output: {output}",
        f"topics:\n  {clicks}: {{columns: {CLICK}}}",
    )


def scripted(name: str, clicks: str) -> str:
    """Let a script look at each row; its rows go nowhere."""
    body = """
        function process(row) {
          if (row.amount < 1) return null
          row.twice = row.amount * 2
          return row
        }
    """
    script = indent(dedent(body).strip(), "      ")
    return _through(name, clicks, f"type: script\n    script: |\n{script}")


def handled(name: str, clicks: str, url: str, batch: int) -> str:
    """Send all rows to a service; what it answers goes nowhere."""
    return _through(name, clicks, f"type: handler\n    url: {url}\n    batch: {batch}")


def receiving(name: str, port: int) -> str:
    """Requests that go nowhere: what the receiver and the journal take is measured."""
    columns = "{id: BIGINT, user: VARCHAR, amount: DOUBLE}"
    source = f'{{type: webhook, listen: "127.0.0.1:{port}", path: /in, columns: {columns}}}'
    output = '{query: "SELECT id, amount FROM requests WHERE amount > 1", type: blackhole}'
    return f"name: {name}\nsources:\n  requests: {source}\noutputs:\n  - {output}\n"


def changing(query: str, topic: str) -> str:
    """Changes in Avro through SQL, as a file of Streamling; the rows go nowhere, as in the
    benchmark of Streamling's authors.

    Args:
        query: Over `changes`.
        topic: Their topic.
    """
    return dedent(
        f"""
        sources:
          changes: {{type: kafka, topic: {topic}, primary_key: id}}
        transforms:
          made: {{type: sql, primary_key: id, sql: "{query}"}}
        sinks:
          out: {{type: blackhole, from: made}}
        """
    )


def _through(name: str, clicks: str, said: str) -> str:
    relation = f"relations:\n  made:\n    from: {clicks}\n    schema: {{twice: DOUBLE}}\n    {said}"
    return _file(
        name,
        "SELECT user_id, amount, twice FROM made",
        "output: {type: blackhole}",
        relation,
        f"topics:\n  {clicks}: {{columns: {CLICK}}}",
    )


def _file(name: str, query: str, *parts: str) -> str:
    text = indent(dedent(query).strip(), "  ")
    return "\n".join([f"name: {name}", "query: |", text, *parts, ""])
