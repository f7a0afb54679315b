"""Websockets: messages that a server sends."""
