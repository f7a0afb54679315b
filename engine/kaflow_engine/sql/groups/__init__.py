"""GROUP BY: aggregate calls, windows, and the rows that a group makes."""
