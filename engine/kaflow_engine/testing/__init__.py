"""The testing kit, shipped to users: local executor, case files, embedded services."""
