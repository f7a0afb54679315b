"""Files with `serve`: named SQL that is answered over HTTP."""
