-- The engine's own tables. DBOS queues opaque ids; what each of them stands for is here, and nowhere
-- else, so that a forget reaches it.
CREATE SCHEMA IF NOT EXISTS refold_engine;

-- A worker raises its `beat` every second or so. Others compare it with what they saw before: no
-- clock of another machine decides whether it is alive.
CREATE TABLE IF NOT EXISTS refold_engine.workers (
    executor text PRIMARY KEY,
    beat bigint NOT NULL
);

-- The folds that wait or are being made. `id` is the DBOS workflow that may make the fold: a fold
-- that is handed over gets a new one, and the old one finds nothing. `worker` is who has claimed it.
CREATE TABLE IF NOT EXISTS refold_engine.folds (
    id text PRIMARY KEY,
    tenant text NOT NULL,
    session text NOT NULL,
    fold uuid NOT NULL,
    pool text NOT NULL,
    version text NOT NULL,
    queue text NOT NULL,
    worker text,
    attempts integer NOT NULL DEFAULT 0,
    queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant, fold, session)
);
CREATE INDEX IF NOT EXISTS folds_by_worker ON refold_engine.folds (worker, queued_at);

-- Takes the place of the store's own function, which does nothing, where the log is in this database.
-- Nobody reaches the folds of another tenant, not even with rights that are not theirs.
DO $do$
BEGIN
    IF to_regprocedure('refold.forget_folds(text, uuid[])') IS NULL THEN
        RETURN;
    END IF;
    CREATE OR REPLACE FUNCTION refold.forget_folds(whose text, folds uuid[]) RETURNS void
    LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
        DELETE FROM refold_engine.folds AS queued
        WHERE whose = refold.tenant() AND queued.tenant = whose AND queued.fold = ANY(folds)
    $$;
END
$do$;
