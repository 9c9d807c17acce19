"""The API under `/api/v1`: sessions, their entries and views, folds, search, usage and keys."""
