-- Keys by which entries are found again. They are looked for among all sessions of a tenant, so
-- this table has no parts.
CREATE TABLE refold.marks (
    id      bigint GENERATED ALWAYS AS IDENTITY,  -- the newest has the largest
    session bigint NOT NULL,                      -- the key of the session that holds the entry
    seq     bigint NOT NULL,
    tenant  text COLLATE "C" NOT NULL,
    key     bytea NOT NULL,
    PRIMARY KEY (tenant, session, seq)
);

CREATE INDEX marks_key ON refold.marks (tenant, key);

-- A key is made of what people wrote: ANALYZE is to keep no samples.
ALTER TABLE refold.marks ALTER key SET STATISTICS 0;

ALTER TABLE refold.marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE refold.marks FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON refold.marks USING (tenant = refold.tenant());

-- Puts a mark on the entry that this transaction has appended, if it has; where that is. Appending
-- holds the session's row, so nobody else puts one meanwhile. If the newest is not where its writer
-- knows it, that is as if an index objected: what was appended goes too.
CREATE FUNCTION refold.put_mark(
    whose text, holder bigint, placed bigint, new_key bytea, known_newest bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF holder IS NULL OR placed IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO refold.marks (session, seq, tenant, key)
    SELECT holder, placed, whose, new_key
    WHERE known_newest IS NULL OR known_newest = coalesce(
        (SELECT max(seq) FROM refold.marks WHERE tenant = whose AND session = holder), 0
    );
    IF NOT FOUND THEN
        RAISE unique_violation USING MESSAGE = 'the newest mark is on another entry';
    END IF;
    RETURN placed;
END
$$;

-- Notes that bytes of marks which are gone still lie in their table, as `note_erasure` does.
CREATE FUNCTION refold.note_erased_marks() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM refold.erasures WHERE part = 'marks' AND NOT begun LIMIT 1 FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO refold.erasures (part) VALUES ('marks');
    END IF;
END
$$;

REVOKE EXECUTE ON FUNCTION refold.note_erased_marks FROM PUBLIC;

-- Whoever could use the store before this can use all of it afterwards.
DO $$
DECLARE
    one name;
BEGIN
    FOR one IN
        SELECT role FROM refold.bound_roles JOIN pg_roles ON rolname = role
        WHERE role <> current_user
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON refold.marks TO %I', one);
        EXECUTE format(
            'GRANT EXECUTE ON FUNCTION refold.put_mark, refold.note_erased_marks TO %I', one
        );
    END LOOP;
END
$$;
