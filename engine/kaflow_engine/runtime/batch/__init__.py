"""One batch after another: ranges, tasks, commit, snapshots, progress."""
