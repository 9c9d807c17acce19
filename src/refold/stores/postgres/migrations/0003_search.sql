-- The words of entries, filled by whoever searches. Words come split and in lower case, one space
-- between each two, so a run of words is a piece of the line.

CREATE TABLE refold.words (
    session bigint NOT NULL,
    seq     bigint NOT NULL,
    size    bigint NOT NULL,  -- how many words
    tenant  text COLLATE "C" NOT NULL,
    line    text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session, seq)
) PARTITION BY HASH (session);

-- The words as the index holds them: behind a sign of their tenant, so that looking up a word costs
-- nothing for the entries of others who use it too.
CREATE FUNCTION refold.word_keys(whose text, line text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT string_to_array(
        to_hex(hashtext(whose)) || '/' || replace(line, ' ', ' ' || to_hex(hashtext(whose)) || '/'),
        ' '
    )
$$;

-- Whoever adds words is about to look for some: they go where they belong at once.
CREATE INDEX words_keys ON refold.words USING gin (refold.word_keys(tenant, line))
    WITH (fastupdate = off);

-- Row-level security keeps the planner from asking an index for anything that might tell what it
-- saw in a row, such as whether an array holds a word. So words are looked up by functions that
-- see the whole table and pick the tenant's rows themselves; for that they belong to its owner, on
-- whom the policy is not forced.
ALTER TABLE refold.words ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON refold.words USING (tenant = (SELECT refold.tenant()));

-- Where all the runs are, each one or more words with a space between each two. There is one way to
-- find them, however small the table was when it was planned: by the index.
CREATE FUNCTION refold.places(runs text[]) RETURNS TABLE (session bigint, seq bigint)
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
END
$$;

-- Which of the runs (by their places among them, from 1) entries hold that lie in these parts of
-- sessions. Parts are gone through line by line, whatever the rest of the tenant holds; only for
-- very long ones is it quicker to ask the index for the whole tenant.
CREATE FUNCTION refold.held_within(
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
    ELSE
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
    END IF;
END
$$;

-- Which tables still hold bytes of what was forgotten, in rows that nobody can read any more.
-- Whoever forgets notes it in the same transaction; the owner's scrub takes it up and is done with
-- it in the end, also when another has to finish it.
CREATE TABLE refold.erasures (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    begun boolean NOT NULL DEFAULT false,  -- whether a scrub has taken it up
    part  name NOT NULL
);

ALTER TABLE refold.erasures ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION refold.note_erasure(holders bigint[], hashes bytea[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dirty name;
BEGIN
    FOR dirty IN
        WITH parts AS (
            SELECT inhparent, relname,
                   regexp_match(pg_get_expr(relpartbound, pg_class.oid),
                                'modulus (\d+), remainder (\d+)')::int[] AS bound
            FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
            WHERE inhparent IN ('refold.entries'::regclass, 'refold.words'::regclass,
                                'refold.artifacts'::regclass)
        )
        SELECT 'sessions' UNION
        SELECT relname FROM parts, unnest(holders) AS holder
        WHERE inhparent <> 'refold.artifacts'::regclass
          AND satisfies_hash_partition(inhparent, bound[1], bound[2], holder) UNION
        SELECT relname FROM parts, unnest(hashes) AS hash
        WHERE inhparent = 'refold.artifacts'::regclass
          AND satisfies_hash_partition(inhparent, bound[1], bound[2], hash)
    LOOP
        -- A note that no scrub has taken up will do, and the lock keeps it so until we are through.
        PERFORM FROM refold.erasures WHERE part = dirty AND NOT begun LIMIT 1 FOR SHARE SKIP LOCKED;
        IF NOT FOUND THEN
            INSERT INTO refold.erasures (part) VALUES (dirty);
        END IF;
    END LOOP;
END
$$;

-- ANALYZE keeps samples of what it reads; of what people wrote it is to keep none. Each part is
-- asked for this by itself, so this is to be called whenever new ones were made.
CREATE FUNCTION refold.keep_no_samples() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    one record;
BEGIN
    ALTER TABLE refold.entries ALTER body SET STATISTICS 0, ALTER scope SET STATISTICS 0,
        ALTER artifacts SET STATISTICS 0;
    ALTER TABLE refold.sessions ALTER outline SET STATISTICS 0;
    ALTER TABLE refold.artifacts ALTER data SET STATISTICS 0, ALTER media_type SET STATISTICS 0;
    ALTER TABLE refold.words ALTER line SET STATISTICS 0;
    FOR one IN
        SELECT inhrelid::regclass AS index FROM pg_inherits
        WHERE inhparent = 'refold.words_keys'::regclass
    LOOP
        EXECUTE format('ALTER INDEX %s ALTER COLUMN 1 SET STATISTICS 0', one.index);
    END LOOP;
END
$$;

SELECT refold.make_partitions(count(*)) FROM pg_inherits
WHERE inhparent = 'refold.entries'::regclass;
SELECT refold.keep_no_samples();

REVOKE EXECUTE ON FUNCTION refold.places, refold.held_within, refold.note_erasure,
    refold.keep_no_samples FROM PUBLIC;
