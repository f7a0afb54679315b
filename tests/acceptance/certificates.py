"""A certificate authority and a broker's certificate, made by the test."""

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


def issue(folder: Path) -> Issued:
    """Make an authority, and a certificate of 127.0.0.1 that it signs."""
    root_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    root = _signed(_name("test authority"), _name("test authority"), root_key, root_key, True)
    leaf = _signed(_name("broker"), _name("test authority"), key, root_key, False)
    ca, identity = folder / "ca.pem", folder / "broker.pem"
    ca.write_bytes(_pem(root))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    identity.write_bytes(private + _pem(leaf) + _pem(root))
    return Issued(ca, identity)


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
