"""Hashes that DuckDB does not have, for every query.

Their libraries are an optional part: this module is imported where a query calls one of them.
"""

from binascii import unhexlify

from Crypto.Hash import keccak
from xxhash import xxh3_128_hexdigest

from kaflow_engine.duck.functions.declared import function


@function
def keccak256(text: str) -> str | None:
    """Return the Keccak-256 hash of a text, in hexadecimal digits behind `0x`, as Ethereum has it.

    A text that begins with `0x` is the hexadecimal digits of bytes; NULL where it is not.

    >>> keccak256("Transfer(address,address,uint256)")[:10], keccak256("0xno")
    ('0xddf252ad', None)
    """
    try:
        value = unhexlify(text[2:]) if text.startswith("0x") else text.encode()
    except ValueError:
        return None
    return "0x" + keccak.new(digest_bits=256, data=value).hexdigest()


@function
def xxhash(text: str) -> str:
    """Return the 128 bits of the XXH3 hash of a text, in 32 hexadecimal digits.

    >>> xxhash("")
    '99aa06d3014798d86001c324468d497f'
    """
    return xxh3_128_hexdigest(text.encode())
