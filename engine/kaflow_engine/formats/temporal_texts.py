"""Texts of dates and times that DuckDB casts to what a record says, as patterns of RE2.

DuckDB takes more: `24:00:00`, years that Arrow's readers cannot show, and names of time zones, of
which one changes what it makes of the next texts.
"""

DAY = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
_HOUR = "(?:[01][0-9]|2[0-3])"
CLOCK = f"{_HOUR}:[0-5][0-9]:[0-5][0-9](?:[.][0-9]{{1,6}})?"
_ZONE = f"(?:Z|[+-]{_HOUR}(?::?[0-5][0-9])?)"
INSTANT = f"{DAY}(?:[T ]{_HOUR}:[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{{1,6}})?)?{_ZONE}?)?"
"""A date, or a date and a time; UTC where it names no offset."""
