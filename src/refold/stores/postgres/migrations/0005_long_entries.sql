-- The words of long entries, in chunks: what one statement writes stays small, however long an entry
-- is. An entry is here or in `words`, never in both. They lie apart so that looking for several words
-- at once stays one question to the index for all entries but these few, whose words may be in
-- several rows. Chunks end between words, and one after the other they are the entry's line.

CREATE TABLE refold.word_chunks (
    session bigint NOT NULL,
    seq     bigint NOT NULL,
    chunk   bigint NOT NULL,  -- the first is 1
    size    bigint NOT NULL,  -- how many words the whole entry has
    tenant  text COLLATE "C" NOT NULL,
    line    text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session, seq, chunk)
);

CREATE INDEX word_chunks_keys ON refold.word_chunks USING gin (refold.word_keys(tenant, line))
    WITH (fastupdate = off);

-- As of `words`: looked up by functions that pick the tenant's rows themselves.
ALTER TABLE refold.word_chunks ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON refold.word_chunks USING (tenant = (SELECT refold.tenant()));

-- ANALYZE is to keep no samples of what people wrote.
ALTER TABLE refold.word_chunks ALTER line SET STATISTICS 0;
ALTER INDEX refold.word_chunks_keys ALTER COLUMN 1 SET STATISTICS 0;

-- Which long entries hold all the runs, as `places` does for the others. Each word may be in another
-- chunk. A run of several words may begin in one chunk and end in the next, so it is looked for in
-- the whole line, of those entries alone that hold all its words.
CREATE FUNCTION refold.long_places(runs text[]) RETURNS TABLE (session bigint, seq bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 20
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    mine CONSTANT text := refold.tenant();
    keys CONSTANT text[] := ARRAY(
        SELECT DISTINCT unnest(refold.word_keys(mine, array_to_string(runs, ' ')))
    );
    long CONSTANT text[] := ARRAY(SELECT ' ' || run || ' ' FROM unnest(runs) AS run
                                  WHERE strpos(run, ' ') > 0);
BEGIN
    IF NOT EXISTS (SELECT FROM refold.word_chunks WHERE tenant = mine) THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT found.session, found.seq
        FROM unnest(keys) AS wanted (key)
        CROSS JOIN LATERAL (
            SELECT DISTINCT word_chunks.session, word_chunks.seq FROM refold.word_chunks
            WHERE refold.word_keys(tenant, line) @> ARRAY[wanted.key]
              AND tenant IS NOT DISTINCT FROM mine
        ) AS found
        GROUP BY found.session, found.seq HAVING count(*) = cardinality(keys)
    )
    SELECT held.session, held.seq FROM held
    WHERE cardinality(long) = 0 OR (
        SELECT bool_and(strpos(whole.line, run) > 0) FROM unnest(long) AS run, (
            SELECT ' ' || string_agg(line, ' ' ORDER BY chunk) || ' ' AS line
            FROM refold.word_chunks
            WHERE tenant = mine AND word_chunks.session = held.session
              AND word_chunks.seq = held.seq
            OFFSET 0
        ) AS whole
    );
END
$$;

CREATE OR REPLACE FUNCTION refold.places(runs text[]) RETURNS TABLE (session bigint, seq bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 20
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    mine CONSTANT text := refold.tenant();
    keys CONSTANT text[] := refold.word_keys(mine, array_to_string(runs, ' '));
    long CONSTANT text[] := ARRAY(SELECT ' ' || run || ' ' FROM unnest(runs) AS run
                                  WHERE strpos(run, ' ') > 0);
BEGIN
    IF cardinality(long) = 0 THEN
        RETURN QUERY SELECT words.session, words.seq FROM refold.words
        WHERE refold.word_keys(tenant, line) @> keys AND tenant IS NOT DISTINCT FROM mine;
    ELSE
        RETURN QUERY SELECT words.session, words.seq FROM refold.words
        WHERE refold.word_keys(tenant, line) @> keys AND tenant IS NOT DISTINCT FROM mine
          AND NOT EXISTS (SELECT FROM unnest(long) AS run
                          WHERE strpos(' ' || line || ' ', run) = 0);
    END IF;
    RETURN QUERY SELECT at.session, at.seq FROM refold.long_places(runs) AS at;
END
$$;

-- Lines of `words` are short, and gone through one by one; long entries are looked up by the index.
CREATE OR REPLACE FUNCTION refold.held_within(
    runs text[], holders bigint[], firsts bigint[], lasts bigint[]
) RETURNS TABLE (run bigint, session bigint, seq bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 20
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    mine CONSTANT text := refold.tenant();
BEGIN
    IF (SELECT sum(last - first) > 20000 FROM unnest(firsts, lasts) AS part (first, last)) THEN
        RETURN QUERY
        WITH found AS MATERIALIZED (
            SELECT wanted.nth, at.session, at.seq
            FROM unnest(runs) WITH ORDINALITY AS wanted (run, nth)
            CROSS JOIN LATERAL refold.places(ARRAY[wanted.run]) AS at
        )
        SELECT found.nth, found.session, found.seq FROM found
        JOIN unnest(holders, firsts, lasts) AS part (holder, first, last)
          ON found.session = part.holder AND found.seq BETWEEN part.first AND part.last;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT wanted.nth, lines.session, lines.seq
    FROM unnest(holders, firsts, lasts) AS part (holder, first, last)
    CROSS JOIN LATERAL (
        SELECT words.session, words.seq, ' ' || line || ' ' AS line FROM refold.words
        WHERE tenant = mine AND words.session = part.holder
          AND words.seq BETWEEN part.first AND part.last
        OFFSET 0  -- so that each part is looked up by itself, and each line read once
    ) AS lines
    JOIN unnest(runs) WITH ORDINALITY AS wanted (run, nth)
      ON strpos(lines.line, ' ' || wanted.run || ' ') > 0;
    IF EXISTS (
        SELECT FROM unnest(holders, firsts, lasts) AS part (holder, first, last)
        CROSS JOIN LATERAL (
            SELECT FROM refold.word_chunks
            WHERE tenant = mine AND word_chunks.session = part.holder
              AND word_chunks.seq BETWEEN part.first AND part.last
            LIMIT 1
        ) AS long
    ) THEN
        RETURN QUERY
        WITH found AS MATERIALIZED (
            SELECT wanted.nth, at.session, at.seq
            FROM unnest(runs) WITH ORDINALITY AS wanted (run, nth)
            CROSS JOIN LATERAL refold.long_places(ARRAY[wanted.run]) AS at
        )
        SELECT found.nth, found.session, found.seq FROM found
        JOIN unnest(holders, firsts, lasts) AS part (holder, first, last)
          ON found.session = part.holder AND found.seq BETWEEN part.first AND part.last;
    END IF;
END
$$;

-- Notes that bytes of chunks which are gone still lie in their table, as `note_erasure` does.
CREATE FUNCTION refold.note_erased_chunks() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM refold.erasures WHERE part = 'word_chunks' AND NOT begun
    LIMIT 1 FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO refold.erasures (part) VALUES ('word_chunks');
    END IF;
END
$$;

REVOKE EXECUTE ON FUNCTION refold.long_places, refold.note_erased_chunks FROM PUBLIC;

-- Whoever could use the store before this can use all of it afterwards.
DO $$
DECLARE
    one name;
BEGIN
    FOR one IN
        SELECT role FROM refold.bound_roles JOIN pg_roles ON rolname = role
        WHERE role <> current_user
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON refold.word_chunks TO %I', one);
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION refold.long_places, refold.note_erased_chunks TO %I', one
        );
    END LOOP;
END
$$;
