"""Ways out of a state that cannot be used: hints that several errors share."""

NEW_ID = "give the pipeline a new `id:`, which starts from the beginning"

NEW_ID_REPEATS = NEW_ID + " and writes rows it has written before"

FROM_BACKUP = "restore this file from a backup, or " + NEW_ID
