"""What a pipeline that uses no broker keeps beside its state: its run log, its dead letters."""
