"""Plans with what only services and states know: schemas, stored plans, approvals."""
