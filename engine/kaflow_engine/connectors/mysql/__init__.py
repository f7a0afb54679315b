"""Tables of MySQL and MariaDB."""
