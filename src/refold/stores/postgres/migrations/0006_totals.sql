-- What requests came to, by day, session, model and key: a line grows with the append that changes
-- it. Each session has lines of its own, so appends to different ones do not wait for each other.
-- The sums are those of a receipt, all of them additive but `highest`.
CREATE TABLE refold.totals (
    day              bigint NOT NULL,  -- days since 1970, UTC
    session          bigint NOT NULL,  -- the session's key
    requests         double precision NOT NULL,
    folds            double precision NOT NULL,
    input            double precision NOT NULL,
    output           double precision NOT NULL,
    cache_read       double precision NOT NULL,
    cache_write      double precision NOT NULL,
    compared         double precision NOT NULL,
    paid             double precision NOT NULL,
    whole            double precision NOT NULL,
    summaries        double precision NOT NULL,
    summaries_cost   double precision NOT NULL,
    unused           double precision NOT NULL,
    unused_cost      double precision NOT NULL,
    rereads          double precision NOT NULL,
    rereads_cost     double precision NOT NULL,
    added_cost       double precision NOT NULL,
    misses           double precision NOT NULL,
    misses_cost      double precision NOT NULL,
    over_window      double precision NOT NULL,
    over_window_cost double precision NOT NULL,
    forced           double precision NOT NULL,
    forced_cost      double precision NOT NULL,
    older            double precision NOT NULL,
    older_cost       double precision NOT NULL,
    unpriced         double precision NOT NULL,
    estimated        double precision NOT NULL,
    highest          double precision NOT NULL,
    reported         double precision NOT NULL,
    miscounted       double precision NOT NULL,
    tenant           text COLLATE "C" NOT NULL,
    model            bytea NOT NULL,
    key              bytea NOT NULL,   -- the id of the key that the requests came with
    PRIMARY KEY (tenant, day, session, model, key)
) WITH (fillfactor = 50);

CREATE INDEX totals_session ON refold.totals (tenant, session);

-- How the accounts of a session stand after its newest entry, so that the next append can go on
-- from there. No row: there was nothing to count. No state: count it again from its log.
CREATE TABLE refold.accounts (
    session bigint NOT NULL,
    version bigint NOT NULL,           -- raised by every change
    tenant  text COLLATE "C" NOT NULL,
    state   bytea,
    PRIMARY KEY (tenant, session)
) WITH (fillfactor = 50);

CREATE INDEX accounts_uncounted ON refold.accounts (tenant, session) WHERE state IS NULL;

-- Adds lines to what is there; the sums of all lines come one after the other.
CREATE FUNCTION refold.add_lines(
    whose text, holder bigint, days bigint[], models bytea[], keys bytea[], sums double precision[]
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO refold.totals AS stored (
        day, session,
        requests, folds, input, output, cache_read, cache_write, compared, paid, whole, summaries,
        summaries_cost, unused, unused_cost, rereads, rereads_cost, added_cost, misses, misses_cost,
        over_window, over_window_cost, forced, forced_cost, older, older_cost, unpriced, estimated,
        highest, reported, miscounted,
        tenant, model, key
    )
    SELECT new.day, holder,
           sums[(new.nth - 1) * 29 + 1], sums[(new.nth - 1) * 29 + 2], sums[(new.nth - 1) * 29 + 3],
           sums[(new.nth - 1) * 29 + 4], sums[(new.nth - 1) * 29 + 5], sums[(new.nth - 1) * 29 + 6],
           sums[(new.nth - 1) * 29 + 7], sums[(new.nth - 1) * 29 + 8], sums[(new.nth - 1) * 29 + 9],
           sums[(new.nth - 1) * 29 + 10], sums[(new.nth - 1) * 29 + 11], sums[(new.nth - 1) * 29 +
           12], sums[(new.nth - 1) * 29 + 13], sums[(new.nth - 1) * 29 + 14], sums[(new.nth - 1) *
           29 + 15], sums[(new.nth - 1) * 29 + 16], sums[(new.nth - 1) * 29 + 17], sums[(new.nth -
           1) * 29 + 18], sums[(new.nth - 1) * 29 + 19], sums[(new.nth - 1) * 29 + 20],
           sums[(new.nth - 1) * 29 + 21], sums[(new.nth - 1) * 29 + 22], sums[(new.nth - 1) * 29 +
           23], sums[(new.nth - 1) * 29 + 24], sums[(new.nth - 1) * 29 + 25], sums[(new.nth - 1) *
           29 + 26], sums[(new.nth - 1) * 29 + 27], sums[(new.nth - 1) * 29 + 28], sums[(new.nth -
           1) * 29 + 29],
           whose, new.model, new.key
    FROM unnest(days, models, keys) WITH ORDINALITY AS new (day, model, key, nth)
    ON CONFLICT (tenant, day, session, model, key) DO UPDATE SET
        requests = stored.requests + excluded.requests, folds = stored.folds + excluded.folds, input
        = stored.input + excluded.input, output = stored.output + excluded.output, cache_read =
        stored.cache_read + excluded.cache_read, cache_write = stored.cache_write +
        excluded.cache_write, compared = stored.compared + excluded.compared, paid = stored.paid +
        excluded.paid, whole = stored.whole + excluded.whole, summaries = stored.summaries +
        excluded.summaries, summaries_cost = stored.summaries_cost + excluded.summaries_cost, unused
        = stored.unused + excluded.unused, unused_cost = stored.unused_cost + excluded.unused_cost,
        rereads = stored.rereads + excluded.rereads, rereads_cost = stored.rereads_cost +
        excluded.rereads_cost, added_cost = stored.added_cost + excluded.added_cost, misses =
        stored.misses + excluded.misses, misses_cost = stored.misses_cost + excluded.misses_cost,
        over_window = stored.over_window + excluded.over_window, over_window_cost =
        stored.over_window_cost + excluded.over_window_cost, forced = stored.forced +
        excluded.forced, forced_cost = stored.forced_cost + excluded.forced_cost, older =
        stored.older + excluded.older, older_cost = stored.older_cost + excluded.older_cost,
        unpriced = stored.unpriced + excluded.unpriced, estimated = stored.estimated +
        excluded.estimated, highest = greatest(stored.highest, excluded.highest), reported =
        stored.reported + excluded.reported, miscounted = stored.miscounted + excluded.miscounted
$$;

-- Books what an append adds to the totals, if it was done. Appending holds the session's row. If
-- the accounts are not as its writer knows them, that is as if an index objected: the append goes.
CREATE FUNCTION refold.book(
    appended boolean, whose text, holder bigint, known_version bigint, new_state bytea,
    days bigint[], models bytea[], keys bytea[], sums double precision[]
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF appended IS NOT TRUE THEN
        RETURN appended;
    END IF;
    IF known_version = 0 THEN
        INSERT INTO refold.accounts (session, version, tenant, state)
        VALUES (holder, 1, whose, new_state) ON CONFLICT DO NOTHING;
    ELSE
        UPDATE refold.accounts SET version = version + 1, state = new_state
        WHERE tenant = whose AND session = holder AND version = known_version;
    END IF;
    IF NOT FOUND THEN
        RAISE unique_violation USING MESSAGE = 'the accounts were changed meanwhile';
    END IF;
    IF cardinality(days) > 0 THEN
        PERFORM refold.add_lines(whose, holder, days, models, keys, sums);
    END IF;
    RETURN true;
END
$$;

-- What is there already was not counted. Its owner sees no row of a table that is forced.
ALTER TABLE refold.sessions NO FORCE ROW LEVEL SECURITY;
INSERT INTO refold.accounts (session, version, tenant)
SELECT key, 1, tenant FROM refold.sessions WHERE session IS NOT NULL;
ALTER TABLE refold.sessions FORCE ROW LEVEL SECURITY;

ALTER TABLE refold.totals ENABLE ROW LEVEL SECURITY;
ALTER TABLE refold.totals FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON refold.totals USING (tenant = refold.tenant());
ALTER TABLE refold.accounts ENABLE ROW LEVEL SECURITY;
ALTER TABLE refold.accounts FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON refold.accounts USING (tenant = refold.tenant());

-- Whoever could use the store before this can use all of it afterwards.
DO $$
DECLARE
    one name;
BEGIN
    FOR one IN
        SELECT role FROM refold.bound_roles JOIN pg_roles ON rolname = role
        WHERE role <> current_user
    LOOP
        EXECUTE format(
            'GRANT SELECT, INSERT, UPDATE, DELETE ON refold.totals, refold.accounts TO %I', one
        );
        EXECUTE format('GRANT EXECUTE ON FUNCTION refold.add_lines, refold.book TO %I', one);
    END LOOP;
END
$$;
