"""A certificate authority, a broker's and a client's certificate, made by the test."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Issued:
    """PEM files."""

    ca: Path
    """What a client trusts."""
    identity: Path
    """The broker's key and certificate."""
    client: Path
    """A client's certificate."""
    client_key: Path


def issue(folder: Path) -> Issued:
    """Make an authority, and certificates of 127.0.0.1 and of a client that it signs."""
    root_key, key, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    root = _signed(_name("test authority"), _name("test authority"), root_key, root_key, True)
    leaf = _signed(_name("broker"), _name("test authority"), key, root_key, False)
    mine = _signed(_name("kaflow"), _name("test authority"), own, root_key, False)
    names = ("ca.pem", "broker.pem", "client.pem", "client.key")
    found = Issued(*(folder / name for name in names))
    found.ca.write_bytes(_pem(root))
    found.identity.write_bytes(_private(key) + _pem(leaf) + _pem(root))
    found.client.write_bytes(_pem(mine))
    found.client_key.write_bytes(_private(own))
    return found


def _private(key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _signed(subject, issuer, key, signer, is_authority):
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(names, critical=False)
        .sign(signer, hashes.SHA256())
    )
