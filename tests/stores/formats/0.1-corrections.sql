--
-- PostgreSQL database dump
--

\restrict AykfzQliw9yJWg3JGFaikIcmf0s2l0UAuwAYBfuJQn1wKhjhucdoZ9ocufEkUig

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: refold; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA refold;


--
-- Name: add_entries(text, bigint, bigint[], uuid[], bigint[], text[], bigint[], bigint[], boolean[], boolean[], bytea[], text[], text[], bytea[], bytea[], bigint[], bytea[], bytea[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.add_entries(whose text, holder bigint, seqs bigint[], ids uuid[], ats bigint[], kinds text[], versions bigint[], tolds bigint[], controls boolean[], forgottens boolean[], scopes bytea[], grounds text[], refs text[], bodies bytea[], hashes bytea[], counts bigint[], media_types bytea[], datas bytea[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO refold.entries (session, seq, at, version, messages, id, control, forgotten, tenant,
                                kind, scope, rests_on, artifacts, body)
    SELECT holder, new.seq, new.at, new.version, new.told, new.id, new.control, new.forgotten,
           whose, new.kind, new.scope, new.ground, new.ref, new.body
    FROM unnest(seqs, ids, ats, kinds, versions, tolds, controls, forgottens, scopes, grounds, refs,
                bodies)
      AS new (seq, id, at, kind, version, told, control, forgotten, scope, ground, ref, body);
    IF cardinality(hashes) > 0 THEN
        INSERT INTO refold.artifacts AS stored (uses, tenant, hash, media_type, data)
        SELECT new.uses, whose, new.hash, new.media_type, new.data
        FROM unnest(hashes, counts, media_types, datas) WITH ORDINALITY
          AS new (hash, uses, media_type, data, nth)
        ORDER BY new.nth
        ON CONFLICT (tenant, hash) DO UPDATE SET uses = stored.uses + excluded.uses;
    END IF;
END
$$;


--
-- Name: append(text, bigint, bigint, bigint, bigint, bigint, bigint, bytea, bigint[], uuid[], bigint[], text[], bigint[], bigint[], boolean[], boolean[], bytea[], text[], text[], bytea[], bytea[], bigint[], bytea[], bytea[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.append(whose text, holder bigint, known_revision bigint, known_head bigint, new_head bigint, new_messages bigint, new_at bigint, new_outline bytea, seqs bigint[], ids uuid[], ats bigint[], kinds text[], versions bigint[], tolds bigint[], controls boolean[], forgottens boolean[], scopes bytea[], grounds text[], refs text[], bodies bytea[], hashes bytea[], counts bigint[], media_types bytea[], datas bytea[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT refold.enter(whose) THEN
        RETURN NULL;
    END IF;
    UPDATE refold.sessions
    SET head = new_head, messages = new_messages, updated_at = new_at, used = new_at / 60000,
        unindexed = true, outline = coalesce(new_outline, outline)
    WHERE tenant = whose AND key = holder AND revision = known_revision AND head = known_head;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM refold.add_entries(whose, holder, seqs, ids, ats, kinds, versions, tolds, controls,
                               forgottens, scopes, grounds, refs, bodies, hashes, counts,
                               media_types, datas);
    RETURN true;
END
$$;


--
-- Name: append_plain(text, bigint, bigint, bigint, uuid, bigint, text, bigint, bytea, boolean, bytea); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.append_plain(whose text, holder bigint, known_revision bigint, expected bigint, new_id uuid, new_at bigint, new_kind text, new_version bigint, new_scope bytea, is_message boolean, new_body bytea) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    placed refold.sessions.head%TYPE;
    told   refold.sessions.messages%TYPE;
BEGIN
    IF NOT refold.enter(whose) THEN
        RETURN NULL;
    END IF;
    UPDATE refold.sessions
    SET head = head + 1, messages = messages + is_message::int, updated_at = new_at,
        used = new_at / 60000, unindexed = true
    WHERE tenant = whose AND key = holder AND revision = known_revision
      AND (expected IS NULL OR head = expected)
    RETURNING head, messages INTO placed, told;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO refold.entries (session, seq, at, version, messages, id, control, forgotten, tenant,
                                kind, scope, body)
    VALUES (holder, placed, new_at, new_version, told, new_id, false, false, whose,
            new_kind, new_scope, new_body);
    RETURN placed;
END
$$;


--
-- Name: attempt(text, text, uuid); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.attempt(whose text, in_session text, made uuid) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    counted refold.attempts.times%TYPE;
BEGIN
    IF NOT refold.enter(whose) THEN
        RETURN NULL;
    END IF;
    INSERT INTO refold.attempts AS kept (times, fold, tenant, session)
    VALUES (1, made, whose, in_session)
    ON CONFLICT (tenant, session) DO UPDATE
    SET times = CASE kept.fold WHEN made THEN kept.times + 1 ELSE 1 END, fold = made
    RETURNING times INTO counted;
    RETURN counted;
END
$$;


--
-- Name: begin_session(text, text, bigint, bytea, bytea, bigint, bigint, bigint, bigint, bytea, bigint[], uuid[], bigint[], text[], bigint[], bigint[], boolean[], boolean[], bytea[], text[], text[], bytea[], bytea[], bigint[], bytea[], bytea[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.begin_session(whose text, new_name text, known_forgotten_at bigint, new_format bytea, new_profile bytea, new_created_at bigint, new_head bigint, new_messages bigint, new_at bigint, new_outline bytea, seqs bigint[], ids uuid[], ats bigint[], kinds text[], versions bigint[], tolds bigint[], controls boolean[], forgottens boolean[], scopes bytea[], grounds text[], refs text[], bodies bytea[], hashes bytea[], counts bigint[], media_types bytea[], datas bytea[]) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    made refold.sessions.key%TYPE;
BEGIN
    IF NOT refold.enter(whose) THEN
        RETURN NULL;
    END IF;
    INSERT INTO refold.sessions (created_at, updated_at, used, head, messages, revision, not_before,
                                 own_from, messages_before, indexed, unindexed, tenant, session,
                                 format, profile, outline)
    VALUES (new_created_at, new_at, new_at / 60000, new_head, new_messages, 0, known_forgotten_at,
            1, 0, 0, true, whose, new_name, new_format, new_profile, new_outline)
    ON CONFLICT (tenant, session) DO NOTHING
    RETURNING key INTO made;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    -- Only now: whoever forgets a session of this name from here on must wait for us.
    IF known_forgotten_at IS DISTINCT FROM coalesce(
        (SELECT forgotten_at FROM refold.tombstones WHERE tenant = whose AND session = new_name), 0
    ) THEN
        DELETE FROM refold.sessions WHERE tenant = whose AND key = made;
        RETURN NULL;
    END IF;
    PERFORM refold.add_entries(whose, made, seqs, ids, ats, kinds, versions, tolds, controls,
                               forgottens, scopes, grounds, refs, bodies, hashes, counts,
                               media_types, datas);
    RETURN made;
END
$$;


--
-- Name: bound_tenant(); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.bound_tenant() RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    its text;
BEGIN
    SELECT tenant INTO its FROM refold.bound_roles WHERE role = session_user;
    IF its IS NULL THEN
        RAISE insufficient_privilege USING MESSAGE = 'this role is not listed in refold.bound_roles';
    END IF;
    RETURN its;
END
$$;


--
-- Name: enter(text); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.enter(whose text) RETURNS boolean
    LANGUAGE sql
    RETURN CASE WHEN (COALESCE(NULLIF(current_setting('refold.tenant'::text, true), ''::text), whose) = whose) THEN (set_config('refold.tenant'::text, whose, true) = whose) ELSE false END;


--
-- Name: forget_folds(text, uuid[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.forget_folds(whose text, folds uuid[]) RETURNS void
    LANGUAGE sql
    AS $$ $$;


--
-- Name: held_within(text[], bigint[], bigint[], bigint[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.held_within(runs text[], holders bigint[], firsts bigint[], lasts bigint[]) RETURNS TABLE(run bigint, session bigint, seq bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 20
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: keep_no_samples(); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.keep_no_samples() RETURNS void
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: long_places(text[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.long_places(runs text[]) RETURNS TABLE(session bigint, seq bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 20
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: make_partitions(bigint); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.make_partitions(count bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    whole record;
BEGIN
    FOR whole IN
        SELECT relname AS name FROM pg_class
        WHERE relnamespace = 'refold'::regnamespace AND relkind = 'p'
    LOOP
        FOR part IN 0..count - 1 LOOP
            EXIT WHEN part = 0 AND EXISTS (
                SELECT FROM pg_inherits WHERE inhparent = format('refold.%I', whole.name)::regclass
            );
            EXECUTE format(
                'CREATE TABLE refold.%I PARTITION OF refold.%I'
                ' FOR VALUES WITH (MODULUS %s, REMAINDER %s)',
                whole.name || '_' || part, whole.name, count, part
            );
        END LOOP;
    END LOOP;
    FOR whole IN
        SELECT part.relname AS name, parent.relforcerowsecurity AS forced
        FROM pg_inherits
        JOIN pg_class AS part ON part.oid = inhrelid
        JOIN pg_class AS parent ON parent.oid = inhparent
        WHERE part.relnamespace = 'refold'::regnamespace AND part.relkind = 'r'
          AND NOT (part.relrowsecurity AND part.relforcerowsecurity = parent.relforcerowsecurity)
    LOOP
        EXECUTE format('ALTER TABLE refold.%I ENABLE ROW LEVEL SECURITY', whole.name);
        IF whole.forced THEN
            EXECUTE format('ALTER TABLE refold.%I FORCE ROW LEVEL SECURITY', whole.name);
        END IF;
    END LOOP;
END
$$;


--
-- Name: note_erased_chunks(); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.note_erased_chunks() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM FROM refold.erasures WHERE part = 'word_chunks' AND NOT begun
    LIMIT 1 FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO refold.erasures (part) VALUES ('word_chunks');
    END IF;
END
$$;


--
-- Name: note_erased_marks(); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.note_erased_marks() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM FROM refold.erasures WHERE part = 'marks' AND NOT begun LIMIT 1 FOR SHARE SKIP LOCKED;
    IF NOT FOUND THEN
        INSERT INTO refold.erasures (part) VALUES ('marks');
    END IF;
END
$$;


--
-- Name: note_erasure(bigint[], bytea[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.note_erasure(holders bigint[], hashes bytea[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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


--
-- Name: places(text[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.places(runs text[]) RETURNS TABLE(session bigint, seq bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 20
    SET search_path TO 'pg_catalog', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    AS $$
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


--
-- Name: put_mark(text, bigint, bigint, bytea, bigint); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.put_mark(whose text, holder bigint, placed bigint, new_key bytea, known_newest bigint) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
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


--
-- Name: read_artifacts(text, bigint, bigint, bytea[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.read_artifacts(whose text, holder bigint, known_revision bigint, hashes bytea[]) RETURNS TABLE(hash bytea, data bytea, media_type bytea)
    LANGUAGE plpgsql STABLE
    AS $$
#variable_conflict use_column
BEGIN
    IF refold.enter(whose) AND EXISTS (
        SELECT FROM refold.sessions
        WHERE tenant = whose AND key = holder AND revision = known_revision
    ) THEN
        RETURN QUERY SELECT hash, data, media_type FROM refold.artifacts
        WHERE tenant = whose AND hash = ANY (hashes);
    END IF;
END
$$;


--
-- Name: read_entries(text, bigint, bigint, bigint[], bigint[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.read_entries(whose text, holder bigint, known_revision bigint, firsts bigint[], lasts bigint[]) RETURNS TABLE(session bigint, seq bigint, id uuid, at bigint, kind text, version bigint, body bytea, scope bytea, rests_on text, artifacts text, forgotten boolean)
    LANGUAGE plpgsql STABLE
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
#variable_conflict use_column
BEGIN
    IF refold.enter(whose) AND EXISTS (
        SELECT FROM refold.sessions
        WHERE tenant = whose AND key = holder AND revision = known_revision
    ) THEN
        RETURN QUERY
        SELECT found.* FROM unnest(firsts, lasts) AS part (first, last)
        CROSS JOIN LATERAL (
            SELECT session, seq, id, at, kind, version, body, scope, rests_on, artifacts, forgotten
            FROM refold.entries
            WHERE tenant = whose AND session = holder AND seq BETWEEN part.first AND part.last
            OFFSET 0
        ) AS found;
    END IF;
END
$$;


--
-- Name: read_session(text, text); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.read_session(whose text, named text) RETURNS TABLE(key bigint, head bigint, messages bigint, format bytea, profile bytea, created_at bigint, updated_at bigint, outline bytea, not_before bigint, own_from bigint, forked_from text, revision bigint, indexed bigint)
    LANGUAGE plpgsql STABLE
    AS $$
#variable_conflict use_column
BEGIN
    IF refold.enter(whose) THEN
        RETURN QUERY
        SELECT key, head, messages, format, profile, created_at, updated_at, outline, not_before,
               own_from, forked_from, revision, indexed
        FROM refold.sessions WHERE tenant = whose AND session = named;
    END IF;
END
$$;


--
-- Name: tenant(); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.tenant() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN CASE WHEN (SESSION_USER = ANY ('{refold_owner}'::name[])) THEN current_setting('refold.tenant'::text, true) ELSE refold.bound_tenant() END;


--
-- Name: word_keys(text, text); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.word_keys(whose text, line text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
    SELECT string_to_array(
        to_hex(hashtext(whose)) || '/' || replace(line, ' ', ' ' || to_hex(hashtext(whose)) || '/'),
        ' '
    )
$$;


--
-- Name: write_free_roles(); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.write_free_roles() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION refold.tenant() RETURNS text'
        ' LANGUAGE sql STABLE PARALLEL SAFE RETURN CASE WHEN session_user = ANY (%L::name[])'
        ' THEN current_setting(''refold.tenant'', true) ELSE refold.bound_tenant() END',
        ARRAY(SELECT role FROM refold.bound_roles WHERE tenant IS NULL ORDER BY role)
    );
    RETURN NULL;
END
$$;


SET default_tablespace = '';

--
-- Name: artifacts; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.artifacts (
    uses bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    hash bytea NOT NULL,
    media_type bytea NOT NULL,
    data bytea NOT NULL
)
PARTITION BY HASH (hash);
ALTER TABLE ONLY refold.artifacts ALTER COLUMN media_type SET STATISTICS 0;
ALTER TABLE ONLY refold.artifacts ALTER COLUMN data SET STATISTICS 0;

ALTER TABLE ONLY refold.artifacts FORCE ROW LEVEL SECURITY;


SET default_table_access_method = heap;

--
-- Name: artifacts_0; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.artifacts_0 (
    uses bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    hash bytea NOT NULL,
    media_type bytea NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY refold.artifacts_0 ALTER COLUMN media_type SET STATISTICS 0;
ALTER TABLE ONLY refold.artifacts_0 ALTER COLUMN data SET STATISTICS 0;

ALTER TABLE ONLY refold.artifacts_0 FORCE ROW LEVEL SECURITY;


--
-- Name: attempts; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.attempts (
    times bigint NOT NULL,
    fold uuid NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    session text NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE ONLY refold.attempts FORCE ROW LEVEL SECURITY;


--
-- Name: bound_roles; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.bound_roles (
    role name NOT NULL,
    tenant text COLLATE pg_catalog."C"
);


--
-- Name: copies; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.copies (
    session bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    source bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE ONLY refold.copies FORCE ROW LEVEL SECURITY;


--
-- Name: entries; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.entries (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    version bigint NOT NULL,
    messages bigint NOT NULL,
    id uuid NOT NULL,
    control boolean NOT NULL,
    forgotten boolean NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    scope bytea NOT NULL,
    rests_on text,
    artifacts text,
    body bytea NOT NULL
)
PARTITION BY HASH (session);
ALTER TABLE ONLY refold.entries ALTER COLUMN scope SET STATISTICS 0;
ALTER TABLE ONLY refold.entries ALTER COLUMN artifacts SET STATISTICS 0;
ALTER TABLE ONLY refold.entries ALTER COLUMN body SET STATISTICS 0;

ALTER TABLE ONLY refold.entries FORCE ROW LEVEL SECURITY;


--
-- Name: entries_0; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.entries_0 (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    at bigint NOT NULL,
    version bigint NOT NULL,
    messages bigint NOT NULL,
    id uuid NOT NULL,
    control boolean NOT NULL,
    forgotten boolean NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL COLLATE pg_catalog."C",
    scope bytea NOT NULL,
    rests_on text,
    artifacts text,
    body bytea NOT NULL
);
ALTER TABLE ONLY refold.entries_0 ALTER COLUMN scope SET STATISTICS 0;
ALTER TABLE ONLY refold.entries_0 ALTER COLUMN artifacts SET STATISTICS 0;
ALTER TABLE ONLY refold.entries_0 ALTER COLUMN body SET STATISTICS 0;

ALTER TABLE ONLY refold.entries_0 FORCE ROW LEVEL SECURITY;


--
-- Name: erasures; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.erasures (
    id bigint NOT NULL,
    begun boolean DEFAULT false NOT NULL,
    part name NOT NULL
);


--
-- Name: erasures_id_seq; Type: SEQUENCE; Schema: refold; Owner: -
--

ALTER TABLE refold.erasures ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME refold.erasures_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: facts; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.facts (
    value bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE ONLY refold.facts FORCE ROW LEVEL SECURITY;


--
-- Name: marks; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.marks (
    id bigint NOT NULL,
    session bigint NOT NULL,
    seq bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    key bytea NOT NULL
);
ALTER TABLE ONLY refold.marks ALTER COLUMN key SET STATISTICS 0;

ALTER TABLE ONLY refold.marks FORCE ROW LEVEL SECURITY;


--
-- Name: marks_id_seq; Type: SEQUENCE; Schema: refold; Owner: -
--

ALTER TABLE refold.marks ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME refold.marks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: migrations; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.migrations (
    number bigint NOT NULL,
    name text NOT NULL,
    digest text NOT NULL
);


--
-- Name: segments; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.segments (
    session bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    source bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE ONLY refold.segments FORCE ROW LEVEL SECURITY;


--
-- Name: sessions; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.sessions (
    key bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    used bigint NOT NULL,
    head bigint NOT NULL,
    messages bigint NOT NULL,
    revision bigint NOT NULL,
    not_before bigint NOT NULL,
    own_from bigint NOT NULL,
    messages_before bigint NOT NULL,
    indexed bigint NOT NULL,
    unindexed boolean NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    session text COLLATE pg_catalog."C",
    forked_from text COLLATE pg_catalog."C",
    format bytea NOT NULL,
    profile bytea NOT NULL,
    outline bytea NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE ONLY refold.sessions ALTER COLUMN outline SET STATISTICS 0;

ALTER TABLE ONLY refold.sessions FORCE ROW LEVEL SECURITY;


--
-- Name: sessions_key_seq; Type: SEQUENCE; Schema: refold; Owner: -
--

ALTER TABLE refold.sessions ALTER COLUMN key ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME refold.sessions_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: tombstones; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.tombstones (
    forgotten_at bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    session text NOT NULL COLLATE pg_catalog."C"
);

ALTER TABLE ONLY refold.tombstones FORCE ROW LEVEL SECURITY;


--
-- Name: word_chunks; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.word_chunks (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    chunk bigint NOT NULL,
    size bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    line text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE ONLY refold.word_chunks ALTER COLUMN line SET STATISTICS 0;


--
-- Name: words; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.words (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    size bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    line text NOT NULL COLLATE pg_catalog."C"
)
PARTITION BY HASH (session);
ALTER TABLE ONLY refold.words ALTER COLUMN line SET STATISTICS 0;


--
-- Name: words_0; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.words_0 (
    session bigint NOT NULL,
    seq bigint NOT NULL,
    size bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    line text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE ONLY refold.words_0 ALTER COLUMN line SET STATISTICS 0;


--
-- Name: artifacts_0; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.artifacts ATTACH PARTITION refold.artifacts_0 FOR VALUES WITH (modulus 1, remainder 0);


--
-- Name: entries_0; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.entries ATTACH PARTITION refold.entries_0 FOR VALUES WITH (modulus 1, remainder 0);


--
-- Name: words_0; Type: TABLE ATTACH; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.words ATTACH PARTITION refold.words_0 FOR VALUES WITH (modulus 1, remainder 0);


--
-- Data for Name: artifacts_0; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.artifacts_0 VALUES (1, 'default', '\x65396230303135353934303330633032396631363761333035323263376464326563393033373962363032366566376337646437346230376430626336336464', '\x746578742f706c61696e', '\x4141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141');


--
-- Data for Name: attempts; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.attempts VALUES (1, '5d9aab55-e112-4677-b9de-9df241620bce', 'default', 'books');


--
-- Data for Name: bound_roles; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.bound_roles VALUES ('refold_owner', NULL);


--
-- Data for Name: copies; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: entries_0; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.entries_0 VALUES (1, 1, 1795062916678, 1, 0, '01a1f216-6646-7687-bf5c-afeecb0e1f03', true, false, 'default', 'session', '\x2f', NULL, NULL, '\x7b22666f726d6174223a226f70656e61692d63686174222c2270726f66696c65223a2262616c616e636564222c227469746c65223a2254686520626f6f6b73227d');
INSERT INTO refold.entries_0 VALUES (1, 2, 1795062916700, 1, 1, '01a1f216-665c-74f4-b0b3-2b49fc8eb430', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520302e227d');
INSERT INTO refold.entries_0 VALUES (1, 3, 1795062916704, 1, 1, '01a1f216-6660-763f-8b6c-7b52ad7e4fb8', true, false, 'default', 'request', '\x2f', '[[1,2]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a322c226163636f756e74223a5b302c31332c302c302c333030302c315d2c22746f6b656e73223a31332c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a317d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2263373261383631653232666562373334313734333763616437333337616536633661303366303336613132323637323530366531613933626363343134663130222c226c696d6974223a333030307d');
INSERT INTO refold.entries_0 VALUES (1, 4, 1795062916707, 1, 2, '01a1f216-6663-7289-b6e3-8f81ce527f26', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226330222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20307d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 5, 1795062916707, 1, 2, '01a1f216-6663-7289-b6e3-8f828537f8c5', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a332c227573616765223a7b22696e707574223a31332c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a31332c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 6, 1795062916709, 1, 3, '01a1f216-6665-733b-96b1-f5923d8e4b23', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022303a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226330227d');
INSERT INTO refold.entries_0 VALUES (1, 7, 1795062916712, 1, 3, '01a1f216-6668-731c-928f-74dd9312d44c', true, false, 'default', 'request', '\x2f', '[[1,6]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a362c226163636f756e74223a5b302c3136332c302c302c333030302c31335d2c22746f6b656e73223a3136332c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a337d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2236303562306537396664353032616266323938653837646666623638353130666162306335623534656635636230343762653666356463376633613264343339222c226c696d6974223a333030302c22636861696e223a5b335d7d');
INSERT INTO refold.entries_0 VALUES (1, 8, 1795062916714, 1, 4, '01a1f216-666a-71f3-8502-8a6b286df09f', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203020697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 9, 1795062916714, 1, 4, '01a1f216-666a-71f3-8502-8a6b39d3066c', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a372c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 10, 1795062916716, 1, 5, '01a1f216-666c-7462-9057-64d3e99d1072', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520312e227d');
INSERT INTO refold.entries_0 VALUES (1, 11, 1795062916718, 1, 5, '01a1f216-666e-744d-8dc3-296b99325373', true, false, 'default', 'request', '\x2f', '[[1,10]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a31307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a31302c226163636f756e74223a5b302c3139302c302c302c333030302c31355d2c22746f6b656e73223a3139302c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a357d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2263633535303564306564373937653666373534313035303864356233306431323031396561663438333639383031613636356434353539623261333833643035222c226c696d6974223a333030302c22636861696e223a5b332c375d7d');
INSERT INTO refold.entries_0 VALUES (1, 12, 1795062916720, 1, 6, '01a1f216-6670-7051-9656-c7a1ea264b66', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226331222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20317d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 13, 1795062916720, 1, 6, '01a1f216-6670-7051-9656-c7a29771cc2a', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a31312c227573616765223a7b22696e707574223a3139302c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3139302c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 14, 1795062916722, 1, 7, '01a1f216-6672-729e-b987-576817224eaa', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022313a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226331227d');
INSERT INTO refold.entries_0 VALUES (1, 15, 1795062916724, 1, 7, '01a1f216-6674-72bb-8210-ca3f39272b8a', true, false, 'default', 'request', '\x2f', '[[1,14]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a31347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a31342c226163636f756e74223a5b302c3334302c302c302c333030302c32375d2c22746f6b656e73223a3334302c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a377d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2236386430373937316430393736666137376435636134636664663835336338323832626633306164333333653333613737613464353737613031643536326335222c226c696d6974223a333030302c22636861696e223a5b332c372c31315d7d');
INSERT INTO refold.entries_0 VALUES (1, 16, 1795062916726, 1, 8, '01a1f216-6676-75c1-9b10-426362fe29c1', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203120697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 17, 1795062916726, 1, 8, '01a1f216-6676-75c1-9b10-4263843c650f', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a31352c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 18, 1795062916727, 1, 9, '01a1f216-6677-7718-8525-3f1acd91fe7c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520322e227d');
INSERT INTO refold.entries_0 VALUES (1, 19, 1795062916729, 1, 9, '01a1f216-6679-73f1-9e74-1534570bb9cb', true, false, 'default', 'request', '\x2f', '[[1,18]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a31387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a31382c226163636f756e74223a5b302c3336372c302c302c333030302c32395d2c22746f6b656e73223a3336372c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a397d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2261373135306166313765316364303363326466653838346435306530626235353161653262633032643735326138356330353032306638383839316535656236222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31355d7d');
INSERT INTO refold.entries_0 VALUES (1, 20, 1795062916731, 1, 10, '01a1f216-667b-74c2-ad0a-54aa65bc7279', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226332222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20327d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 21, 1795062916731, 1, 10, '01a1f216-667b-74c2-ad0a-54aafba6525f', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a31392c227573616765223a7b22696e707574223a3336372c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3336372c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 22, 1795062916732, 1, 11, '01a1f216-667c-77e0-8442-51eb8602d2a5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022323a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226332227d');
INSERT INTO refold.entries_0 VALUES (1, 23, 1795062916735, 1, 11, '01a1f216-667f-7315-b08a-d5748c1311cc', true, false, 'default', 'request', '\x2f', '[[1,22]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a32327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a32322c226163636f756e74223a5b302c3531372c302c302c333030302c34315d2c22746f6b656e73223a3531372c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31317d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2235373763616264623665653362633633626663386334356531393064336335626265353339616366396337666135613962306162663463306335626162383734222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31395d7d');
INSERT INTO refold.entries_0 VALUES (1, 24, 1795062916736, 1, 12, '01a1f216-6680-7409-b675-143429ee4d18', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203220697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 25, 1795062916736, 1, 12, '01a1f216-6680-7409-b675-143520421562', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a32332c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 26, 1795062916738, 1, 13, '01a1f216-6682-7623-b00a-34a4fc98eac8', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520332e227d');
INSERT INTO refold.entries_0 VALUES (1, 27, 1795062916740, 1, 13, '01a1f216-6684-735d-899c-6e1e39ef3ba8', true, false, 'default', 'request', '\x2f', '[[1,26]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a32367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a32362c226163636f756e74223a5b302c3534342c302c302c333030302c34335d2c22746f6b656e73223a3534342c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31337d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2234663438386336323564336661643130393339613061646663653536666138303233303736373862313632653432306566326436616439363330646432373331222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32335d7d');
INSERT INTO refold.entries_0 VALUES (1, 28, 1795062916741, 1, 14, '01a1f216-6685-70fa-a044-59f6b23efb3f', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226333222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20337d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 29, 1795062916741, 1, 14, '01a1f216-6685-70fa-a044-59f735389b02', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a32372c227573616765223a7b22696e707574223a3534342c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3534342c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 30, 1795062916742, 1, 15, '01a1f216-6686-755b-be1b-462512fe8b64', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022333a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226333227d');
INSERT INTO refold.entries_0 VALUES (1, 31, 1795062916744, 1, 15, '01a1f216-6688-7698-8903-071dd04ad336', true, false, 'default', 'request', '\x2f', '[[1,30]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a33307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a33302c226163636f756e74223a5b302c3639342c302c302c333030302c35355d2c22746f6b656e73223a3639342c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31357d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2233303338316161306565366637636435626536323239656237386434316433336137383339303463626465313566313836396331383366396534343236623737222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32375d7d');
INSERT INTO refold.entries_0 VALUES (1, 32, 1795062916745, 1, 16, '01a1f216-6689-72c9-a3a6-e400c32f5372', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203320697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 33, 1795062916745, 1, 16, '01a1f216-6689-72c9-a3a6-e4010d1da872', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a33312c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 34, 1795062916746, 1, 17, '01a1f216-668a-748b-aaec-b4dc32d6bff0', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520342e227d');
INSERT INTO refold.entries_0 VALUES (1, 35, 1795062916747, 1, 17, '01a1f216-668b-72d2-8183-e42d464b023d', true, false, 'default', 'request', '\x2f', '[[1,34]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a33347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a33342c226163636f756e74223a5b302c3732312c302c302c333030302c35375d2c22746f6b656e73223a3732312c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31377d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2262383966636336643032633734626666336134383337383632343065373031646638316537383038643764363734333738353966666136303361663634393963222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33315d7d');
INSERT INTO refold.entries_0 VALUES (1, 36, 1795062916748, 1, 18, '01a1f216-668c-7219-b7b5-2af8011c3327', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226334222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20347d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 37, 1795062916748, 1, 18, '01a1f216-668c-7219-b7b5-2af8492f6bfd', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a33352c227573616765223a7b22696e707574223a3732312c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3732312c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 38, 1795062916749, 1, 19, '01a1f216-668d-7302-bd34-428c3934786b', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022343a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226334227d');
INSERT INTO refold.entries_0 VALUES (1, 39, 1795062916751, 1, 19, '01a1f216-668f-73b5-9add-e915e890ad35', true, false, 'default', 'request', '\x2f', '[[1,38]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a33387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a33382c226163636f756e74223a5b302c3837312c302c302c333030302c36395d2c22746f6b656e73223a3837312c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31397d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2232393938316563336533653864343238393932373265306166323439616638656163383163356231376530663965666466613963663731643135326162353162222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33355d7d');
INSERT INTO refold.entries_0 VALUES (1, 40, 1795062916751, 1, 20, '01a1f216-668f-73b5-9add-e916dbe20f26', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203420697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 41, 1795062916751, 1, 20, '01a1f216-668f-73b5-9add-e91783ede0f4', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a33392c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 42, 1795062916752, 1, 21, '01a1f216-6690-707f-a846-ee9d7cf8d9b4', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520352e227d');
INSERT INTO refold.entries_0 VALUES (1, 43, 1795062916753, 1, 21, '01a1f216-6691-70dc-920b-16a4a6be4e4a', true, false, 'default', 'request', '\x2f', '[[1,42]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a34327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a34322c226163636f756e74223a5b302c3839382c302c302c333030302c37315d2c22746f6b656e73223a3839382c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32317d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2230323065623565386661623465373834666432323266376536623963376435366239383339623431323762313466323736306537313864633333343435323232222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33395d7d');
INSERT INTO refold.entries_0 VALUES (1, 44, 1795062916754, 1, 22, '01a1f216-6692-7608-956b-62d794241d9b', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226335222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20357d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 45, 1795062916754, 1, 22, '01a1f216-6692-7608-956b-62d85946c1e4', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a34332c227573616765223a7b22696e707574223a3839382c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3839382c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 46, 1795062916755, 1, 23, '01a1f216-6693-775c-a61e-cf57ab3c918e', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022353a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226335227d');
INSERT INTO refold.entries_0 VALUES (1, 88, 1795062916871, 1, 42, '01a1f216-6707-73fc-9eb8-a13e53509859', true, false, 'default', 'pin', '\x2f', NULL, NULL, '\x7b227061727473223a5b7b22736571223a322c22696e646578223a307d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 47, 1795062916756, 1, 23, '01a1f216-6694-7387-aff3-0bcdb87a4812', true, false, 'default', 'request', '\x2f', '[[1,46]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a34367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a34362c226163636f756e74223a5b302c313034382c302c302c333030302c38335d2c22746f6b656e73223a313034382c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32337d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2261373236353438323631666239663036646266643137626339383835626233326637626664633736633836343835656561356338323531316362316234326634222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34335d7d');
INSERT INTO refold.entries_0 VALUES (1, 48, 1795062916757, 1, 24, '01a1f216-6695-71cc-b60d-d19d347a43c8', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203520697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 49, 1795062916757, 1, 24, '01a1f216-6695-71cc-b60d-d19dd9c8dd58', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a34372c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 50, 1795062916758, 1, 25, '01a1f216-6696-759b-a14a-5169e9481aa4', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520362e227d');
INSERT INTO refold.entries_0 VALUES (1, 51, 1795062916759, 1, 25, '01a1f216-6697-75b7-aee3-e41a4e6a386f', true, false, 'default', 'request', '\x2f', '[[1,50]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a35307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a35302c226163636f756e74223a5b302c313037352c302c302c333030302c38365d2c22746f6b656e73223a313037352c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32357d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2238633031623035383832613463333134313339613537353532623565353139303061316639373663646631333330303930363563626635623366653564353166222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34375d7d');
INSERT INTO refold.entries_0 VALUES (1, 52, 1795062916760, 1, 26, '01a1f216-6698-7023-9070-5bf66c6410ea', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226336222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20367d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 53, 1795062916760, 1, 26, '01a1f216-6698-7023-9070-5bf67c1baaf1', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a35312c227573616765223a7b22696e707574223a313037352c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313037352c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 54, 1795062916761, 1, 27, '01a1f216-6699-7372-9d0e-8beea6ea1c3f', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022363a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226336227d');
INSERT INTO refold.entries_0 VALUES (1, 55, 1795062916762, 1, 27, '01a1f216-669a-7761-8e64-b38780fe6d73', true, false, 'default', 'request', '\x2f', '[[1,54]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a35347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a35342c226163636f756e74223a5b302c313232352c302c302c333030302c39385d2c22746f6b656e73223a313232352c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32377d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2263613865343632666561646133666136353364333061343263636437623430663562643465303332303138303437633863393836343732393064383339613238222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35315d7d');
INSERT INTO refold.entries_0 VALUES (1, 56, 1795062916763, 1, 28, '01a1f216-669b-73f8-b106-dd2a0c710aab', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203620697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 57, 1795062916763, 1, 28, '01a1f216-669b-73f8-b106-dd2a52dacee2', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a35352c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 58, 1795062916764, 1, 29, '01a1f216-669c-7230-860d-ef3766b6be11', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520372e227d');
INSERT INTO refold.entries_0 VALUES (1, 59, 1795062916766, 1, 29, '01a1f216-669e-70d3-bef0-225fac95d2a2', true, false, 'default', 'request', '\x2f', '[[1,58]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a35387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a35382c226163636f756e74223a5b302c313235322c302c302c333030302c3130305d2c22746f6b656e73223a313235322c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32397d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2235363332366462353530316632356337333761306333396263326639646530323264393562666261653037646161303739663566333766306431626563323834222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35355d7d');
INSERT INTO refold.entries_0 VALUES (1, 60, 1795062916767, 1, 30, '01a1f216-669f-7563-aecc-f58f199ceb35', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226337222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20377d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 61, 1795062916767, 1, 30, '01a1f216-669f-7563-aecc-f58f865101b6', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a35392c227573616765223a7b22696e707574223a313235322c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313235322c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 62, 1795062916768, 1, 31, '01a1f216-66a0-71ed-91bf-fced6d96c888', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022373a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226337227d');
INSERT INTO refold.entries_0 VALUES (1, 63, 1795062916770, 1, 31, '01a1f216-66a2-75a7-8147-7afdb67a020a', true, false, 'default', 'request', '\x2f', '[[1,62]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a36327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a36322c226163636f756e74223a5b302c313430322c302c302c333030302c3131325d2c22746f6b656e73223a313430322c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33317d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2234396533303162376536366565313565643539363639636636363165303336356264376430613237373165646137356165333336306530633535386531316239222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35395d7d');
INSERT INTO refold.entries_0 VALUES (1, 64, 1795062916771, 1, 32, '01a1f216-66a3-71b8-8348-d51f415d2518', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203720697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 65, 1795062916771, 1, 32, '01a1f216-66a3-71b8-8348-d51fb5084a3c', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a36332c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 66, 1795062916772, 1, 33, '01a1f216-66a4-74f5-8cc0-42c95da1be5c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520382e227d');
INSERT INTO refold.entries_0 VALUES (1, 67, 1795062916773, 1, 33, '01a1f216-66a5-7151-9da2-c00f705932b5', true, false, 'default', 'request', '\x2f', '[[1,66]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a36367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a36362c226163636f756e74223a5b302c313432392c302c302c333030302c3131345d2c22746f6b656e73223a313432392c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33337d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2236363533626135393839336536336165323466343231366162663738316439373930326566626563303837653066323036303030356338643239333666626333222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36335d7d');
INSERT INTO refold.entries_0 VALUES (1, 68, 1795062916775, 1, 34, '01a1f216-66a7-7558-8899-ed4a8e373d4b', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226338222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20387d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 69, 1795062916775, 1, 34, '01a1f216-66a7-7558-8899-ed4aaca787c2', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a36372c227573616765223a7b22696e707574223a313432392c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313432392c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 89, 1795062916877, 1, 43, '01a1f216-670d-74b7-ae45-2b911275cc09', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a20225265616420706167652031302e227d');
INSERT INTO refold.entries_0 VALUES (1, 70, 1795062916778, 1, 35, '01a1f216-66aa-7605-a2ec-bfdd30e7aee5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022383a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226338227d');
INSERT INTO refold.entries_0 VALUES (1, 71, 1795062916781, 1, 35, '01a1f216-66ad-765b-af4b-1c412fd117c3', true, false, 'default', 'request', '\x2f', '[[1,70]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a37307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a37302c226163636f756e74223a5b302c313537392c302c302c333030302c3132365d2c22746f6b656e73223a313537392c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33357d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2266313034666430303330663133353063646161373866353334366263633931633562636561373264313762633232393631333037303166356530323830376235222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36375d7d');
INSERT INTO refold.entries_0 VALUES (1, 72, 1795062916783, 1, 36, '01a1f216-66af-75b4-b076-f6e7e0089a4c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203820697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 73, 1795062916783, 1, 36, '01a1f216-66af-75b4-b076-f6e7f9d21784', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a37312c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 74, 1795062916784, 1, 37, '01a1f216-66b0-75a9-aff7-2a6792c3ce1e', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520392e227d');
INSERT INTO refold.entries_0 VALUES (1, 75, 1795062916786, 1, 37, '01a1f216-66b2-7757-8a01-0b425d020e25', true, false, 'default', 'request', '\x2f', '[[1,74]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a37347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a37342c226163636f756e74223a5b302c313630362c302c302c333030302c3132385d2c22746f6b656e73223a313630362c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33377d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2266373362366639613961383431396439323837663463633631313437643032646134303661376335646661303565646465666638373764393931383132663739222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37315d7d');
INSERT INTO refold.entries_0 VALUES (1, 76, 1795062916788, 1, 38, '01a1f216-66b4-7100-a689-5b68fe4868e5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226339222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20397d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 77, 1795062916788, 1, 38, '01a1f216-66b4-7100-a689-5b69e2bdadc5', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a37352c227573616765223a7b22696e707574223a313630362c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313630362c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 78, 1795062916789, 1, 39, '01a1f216-66b5-7095-be16-b2f0d4c2358c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022393a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226339227d');
INSERT INTO refold.entries_0 VALUES (1, 79, 1795062916791, 1, 39, '01a1f216-66b7-753b-9d61-9f6ce4858714', true, false, 'default', 'request', '\x2f', '[[1,78]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a37387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a37382c226163636f756e74223a5b302c313735362c302c302c333030302c3134305d2c22746f6b656e73223a313735362c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33397d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2265323461313165306636616562366462623863313734386363326236656636346462643366656461656361343933366336626437366136306532313238353464222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37312c37355d7d');
INSERT INTO refold.entries_0 VALUES (1, 80, 1795062916794, 1, 40, '01a1f216-66ba-76e1-afc4-46eab44261c6', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203920697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 81, 1795062916794, 1, 40, '01a1f216-66ba-76e1-afc4-46eb1567ad80', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a37392c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 84, 1795062916799, 1, 42, '01a1f216-66bf-7603-978f-5038025586ca', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202249207365652e227d');
INSERT INTO refold.entries_0 VALUES (1, 85, 1795062916799, 1, 42, '01a1f216-66bf-7603-978f-5038655319fc', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a38332c227573616765223a7b22696e707574223a313738342c226f7574707574223a31312c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313738342c226f7574707574223a31312c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 86, 1795062916804, 1, 42, '5d9aab55-e112-4677-b9de-9df241620bce', true, false, 'default', 'fold.start', '\x2f', '[[3,81]]', NULL, '\x7b22666f6c64223a2235643961616235352d653131322d343637372d623964652d396466323431363230626365222c227370616e73223a5b7b226669727374223a332c226c617374223a38317d5d2c2274726967676572223a226d616e75616c222c22636f6e74657874223a7b22666f6c64223a7b226b656570223a7b2268656164223a2266697273742072756e222c22686561645f746f6b656e73223a3132302c22756e6974223a22746f6b656e73222c22616d6f756e74223a3435302e302c226c65617374223a302c22736e6170223a227475726e227d2c22706c6163656d656e74223a227265706c6163656d656e74222c226170706c79223a226261636b67726f756e64222c2277616974223a352e302c2262726561646372756d62223a747275652c22777269746572223a226c6f67222c2267726f756e64223a22636865636b222c22696e707574223a227472616e736372697074222c22636f766572616765223a302e352c2263616c6c5f6c696d6974223a3132302e302c2273797374656d5f6368617273223a302c227265666572656e636573223a66616c73652c226d61785f746f6b656e73223a3234302c226c65646765725f746f6b656e73223a3133352c22757365725f6368617273223a313230302c22757365725f6d65737361676573223a313030302c22757365725f636c6970223a34303030307d2c22686f7374223a7b7d2c22746f6b656e73223a313735372c226d6f64656c223a22746573743a6d6f64656c222c2273756d6d6172697a6572223a226175746f222c2261745f6f6e6365223a66616c73652c22736861726564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 87, 1795062916855, 1, 42, '01a1f216-66f7-73ee-9d24-fce8c457bbb1', true, false, 'default', 'fold.complete', '\x2f', '[[3,81]]', NULL, '\x7b22666f6c64223a2235643961616235352d653131322d343637372d623964652d396466323431363230626365222c227370616e73223a5b7b226669727374223a332c226c617374223a38317d5d2c2273756d6d617279223a7b226279223a2262726561646372756d62222c227469746c65223a2252656164207061676520392e222c2273656374696f6e73223a5b7b2268656164696e67223a224361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d222c22636c61696d73223a5b7b2274657874223a22222c22736f7572636573223a5b7b22736571223a382c22696e646578223a307d5d2c2271756f7465223a2250616765203020697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a223020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a31362c22696e646578223a307d5d2c2271756f7465223a2250616765203120697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a32342c22696e646578223a307d5d2c2271756f7465223a2250616765203220697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a33322c22696e646578223a307d5d2c2271756f7465223a2250616765203320697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22323620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34302c22696e646578223a307d5d2c2271756f7465223a2250616765203420697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22333420726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34382c22696e646578223a307d5d2c2271756f7465223a2250616765203520697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22343220726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a35362c22696e646578223a307d5d2c2271756f7465223a2250616765203620697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a36342c22696e646578223a307d5d2c2271756f7465223a2250616765203720697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a37322c22696e646578223a307d5d2c2271756f7465223a2250616765203820697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22363620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d2c2271756f7465223a2250616765203920697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22373420726573756c74227d5d7d2c7b2268656164696e67223a2257686572652069742073746f6f64222c22636c61696d73223a5b7b2274657874223a22546865206d6f64656c2063616c6c65642072656164287b5c22706167655c223a20397d29222c22736f7572636573223a5b7b22736571223a37362c22696e646578223a307d5d7d2c7b2274657874223a22546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d7d5d7d5d2c2264697265637469766573223a5b7b2274657874223a2252656164207061676520312e222c22736f75726365223a7b22736571223a31302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520322e222c22736f75726365223a7b22736571223a31382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520332e222c22736f75726365223a7b22736571223a32362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520342e222c22736f75726365223a7b22736571223a33342c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520352e222c22736f75726365223a7b22736571223a34322c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520362e222c22736f75726365223a7b22736571223a35302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520372e222c22736f75726365223a7b22736571223a35382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520382e222c22736f75726365223a7b22736571223a36362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520392e222c22736f75726365223a7b22736571223a37342c22696e646578223a307d2c226368617273223a31327d5d2c227265616473223a5b5b3238353532333535393535342c3238353532333535393535342c302c3536353237383130333638302c7b22736571223a342c22696e646578223a307d2c7b22736571223a362c22696e646578223a307d2c312c305d2c5b3733343931343734343639342c3733343931343734343639342c302c3539303936383237343632382c7b22736571223a31322c22696e646578223a307d2c7b22736571223a31342c22696e646578223a307d2c312c305d2c5b3932343434333130303538312c3932343434333130303538312c302c3837333937393934333339352c7b22736571223a32302c22696e646578223a307d2c7b22736571223a32322c22696e646578223a307d2c312c305d2c5b3837353734313834353037322c3837353734313834353037322c302c3839363330323837383035322c7b22736571223a32382c22696e646578223a307d2c7b22736571223a33302c22696e646578223a307d2c312c305d2c5b3437343734363436363533322c3437343734363436363533322c302c3335323739383539363832322c7b22736571223a33362c22696e646578223a307d2c7b22736571223a33382c22696e646578223a307d2c312c305d2c5b3434333536323633333936392c3434333536323633333936392c302c3635333532313537333433302c7b22736571223a34342c22696e646578223a307d2c7b22736571223a34362c22696e646578223a307d2c312c305d2c5b3431303132393030303339312c3431303132393030303339312c302c3934303231373335333930342c7b22736571223a35322c22696e646578223a307d2c7b22736571223a35342c22696e646578223a307d2c312c305d2c5b35313339313435363438352c35313339313435363438352c302c3730353933333534373234352c7b22736571223a36302c22696e646578223a307d2c7b22736571223a36322c22696e646578223a307d2c312c305d2c5b3234373830313230383430322c3234373830313230383430322c302c3730343738313230363731392c7b22736571223a36382c22696e646578223a307d2c7b22736571223a37302c22696e646578223a307d2c312c305d2c5b3336373632393433333733362c3336373632393433333733362c302c3233313936393231373830342c7b22736571223a37362c22696e646578223a307d2c7b22736571223a37382c22696e646578223a307d2c312c305d5d2c226d65737361676573223a33392c22746f6b656e73223a313735372c2273686f776e223a5b7b226b696e64223a2270726f6d7074222c2274657874223a225b3339206561726c696572206d657373616765732061726520666f6c64656420686572652e2054686569722066756c6c2074657874206973206e6f7420612070617274206f66207468697320726571756573742e205768617420666f6c6c6f77732069732071756f7465642066726f6d207468656d2061732061207265636f7264206f6620776861742077617320736169643b2069742061736b7320666f72206e6f7468696e6720627920697473656c662e5d5c6e5c6e2323205468652075736572277320776f7264733a207374616e64696e672072756c65732066697273742c207468656e20746865206f74686572732c206e6577657374206c6173745c6e2d2028656e747279203130292052656164207061676520312e5c6e2d2028656e747279203138292052656164207061676520322e5c6e2d2028656e747279203236292052656164207061676520332e5c6e2d2028656e747279203334292052656164207061676520342e5c6e2d2028656e747279203432292052656164207061676520352e5c6e2d2028656e747279203530292052656164207061676520362e5c6e2d2028656e747279203538292052656164207061676520372e5c6e2d2028656e747279203636292052656164207061676520382e5c6e2d2028656e747279203734292052656164207061676520392e5c6e5c6e2323204361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d5c6e2d20617373697374616e742035362c2061736b656420696e2035303a205c2250616765203620697320726561642e5c225c6e2d20617373697374616e742036342c2061736b656420696e2035383a205c2250616765203720697320726561642e5c225c6e2d20617373697374616e742037322c2061736b656420696e2036363a205c2250616765203820697320726561642e5c225c6e5c6e23232057686572652069742073746f6f645c6e2d20546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c222028656e74727920383029227d5d7d7d');
INSERT INTO refold.entries_0 VALUES (1, 82, 1795062916795, 1, 41, '01a1f216-66bb-711c-8560-28533dd72c21', false, true, 'default', 'message', '\x2f', NULL, NULL, '\x7b7d');
INSERT INTO refold.entries_0 VALUES (1, 91, 1795062916883, 1, 44, '01a1f216-6713-72ca-bedf-9924575161af', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a2022633130222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a2031307d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 92, 1795062916883, 1, 44, '01a1f216-6713-72ca-bedf-9924ed30f816', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a39302c227573616765223a7b22696e707574223a3238392c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313830382c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 93, 1795062916885, 1, 45, '01a1f216-6715-7331-ac61-032103f78bab', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a202231303a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a2022633130227d');
INSERT INTO refold.entries_0 VALUES (1, 95, 1795062916889, 1, 46, '01a1f216-6719-72b8-ac41-d9e393a9766d', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a20225061676520313020697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 96, 1795062916889, 1, 46, '01a1f216-6719-72b8-ac41-d9e39876bbf0', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a39342c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a343030372c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 97, 1795062916890, 1, 46, '01a1f216-671a-768a-9b27-af066a6a2932', true, false, 'default', 'unpin', '\x2f', NULL, NULL, '\x7b227061727473223a5b7b22736571223a322c22696e646578223a307d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 98, 1795062916899, 1, 46, '01a1f216-6723-72d4-ab98-1a8cfdcba374', true, false, 'default', 'fold.undo', '\x2f', NULL, NULL, '\x7b22666f6c64223a2235643961616235352d653131322d343637372d623964652d396466323431363230626365227d');
INSERT INTO refold.entries_0 VALUES (1, 99, 1795062916899, 1, 46, '01a1f216-6723-72d4-ab98-1a8db4e51941', true, false, 'default', 'fold.start', '\x2f', NULL, NULL, '\x7b22666f6c64223a2238636237313436342d623032632d343936642d393234362d363431633338313432626263222c227370616e73223a5b7b226669727374223a352c226c617374223a38317d5d2c2274726967676572223a22756e666f6c64227d');
INSERT INTO refold.entries_0 VALUES (1, 100, 1795062916899, 1, 46, '01a1f216-6723-72d4-ab98-1a8e5dbfabb9', true, false, 'default', 'fold.complete', '\x2f', '[[5,81],[87,87]]', NULL, '\x7b22666f6c64223a2238636237313436342d623032632d343936642d393234362d363431633338313432626263222c227370616e73223a5b7b226669727374223a352c226c617374223a38317d5d2c2273756d6d617279223a7b226279223a2262726561646372756d62222c227469746c65223a2252656164207061676520392e222c2273656374696f6e73223a5b7b2268656164696e67223a224361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d222c22636c61696d73223a5b7b2274657874223a22222c22736f7572636573223a5b7b22736571223a382c22696e646578223a307d5d2c2271756f7465223a2250616765203020697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a223020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a31362c22696e646578223a307d5d2c2271756f7465223a2250616765203120697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a32342c22696e646578223a307d5d2c2271756f7465223a2250616765203220697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a33322c22696e646578223a307d5d2c2271756f7465223a2250616765203320697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22323620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34302c22696e646578223a307d5d2c2271756f7465223a2250616765203420697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22333420726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34382c22696e646578223a307d5d2c2271756f7465223a2250616765203520697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22343220726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a35362c22696e646578223a307d5d2c2271756f7465223a2250616765203620697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a36342c22696e646578223a307d5d2c2271756f7465223a2250616765203720697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a37322c22696e646578223a307d5d2c2271756f7465223a2250616765203820697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22363620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d2c2271756f7465223a2250616765203920697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22373420726573756c74227d5d7d2c7b2268656164696e67223a2257686572652069742073746f6f64222c22636c61696d73223a5b7b2274657874223a22546865206d6f64656c2063616c6c65642072656164287b5c22706167655c223a20397d29222c22736f7572636573223a5b7b22736571223a37362c22696e646578223a307d5d7d2c7b2274657874223a22546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d7d5d7d5d2c2264697265637469766573223a5b7b2274657874223a2252656164207061676520312e222c22736f75726365223a7b22736571223a31302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520322e222c22736f75726365223a7b22736571223a31382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520332e222c22736f75726365223a7b22736571223a32362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520342e222c22736f75726365223a7b22736571223a33342c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520352e222c22736f75726365223a7b22736571223a34322c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520362e222c22736f75726365223a7b22736571223a35302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520372e222c22736f75726365223a7b22736571223a35382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520382e222c22736f75726365223a7b22736571223a36362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520392e222c22736f75726365223a7b22736571223a37342c22696e646578223a307d2c226368617273223a31327d5d2c227265616473223a5b5b3238353532333535393535342c3238353532333535393535342c302c3536353237383130333638302c7b22736571223a342c22696e646578223a307d2c7b22736571223a362c22696e646578223a307d2c312c305d2c5b3733343931343734343639342c3733343931343734343639342c302c3539303936383237343632382c7b22736571223a31322c22696e646578223a307d2c7b22736571223a31342c22696e646578223a307d2c312c305d2c5b3932343434333130303538312c3932343434333130303538312c302c3837333937393934333339352c7b22736571223a32302c22696e646578223a307d2c7b22736571223a32322c22696e646578223a307d2c312c305d2c5b3837353734313834353037322c3837353734313834353037322c302c3839363330323837383035322c7b22736571223a32382c22696e646578223a307d2c7b22736571223a33302c22696e646578223a307d2c312c305d2c5b3437343734363436363533322c3437343734363436363533322c302c3335323739383539363832322c7b22736571223a33362c22696e646578223a307d2c7b22736571223a33382c22696e646578223a307d2c312c305d2c5b3434333536323633333936392c3434333536323633333936392c302c3635333532313537333433302c7b22736571223a34342c22696e646578223a307d2c7b22736571223a34362c22696e646578223a307d2c312c305d2c5b3431303132393030303339312c3431303132393030303339312c302c3934303231373335333930342c7b22736571223a35322c22696e646578223a307d2c7b22736571223a35342c22696e646578223a307d2c312c305d2c5b35313339313435363438352c35313339313435363438352c302c3730353933333534373234352c7b22736571223a36302c22696e646578223a307d2c7b22736571223a36322c22696e646578223a307d2c312c305d2c5b3234373830313230383430322c3234373830313230383430322c302c3730343738313230363731392c7b22736571223a36382c22696e646578223a307d2c7b22736571223a37302c22696e646578223a307d2c312c305d2c5b3336373632393433333733362c3336373632393433333733362c302c3233313936393231373830342c7b22736571223a37362c22696e646578223a307d2c7b22736571223a37382c22696e646578223a307d2c312c305d5d2c226d65737361676573223a33382c22746f6b656e73223a313733342c2273686f776e223a5b7b226b696e64223a2270726f6d7074222c2274657874223a225b3339206561726c696572206d657373616765732061726520666f6c64656420686572652e2054686569722066756c6c2074657874206973206e6f7420612070617274206f66207468697320726571756573742e205768617420666f6c6c6f77732069732071756f7465642066726f6d207468656d2061732061207265636f7264206f6620776861742077617320736169643b2069742061736b7320666f72206e6f7468696e6720627920697473656c662e5d5c6e5c6e2323205468652075736572277320776f7264733a207374616e64696e672072756c65732066697273742c207468656e20746865206f74686572732c206e6577657374206c6173745c6e2d2028656e747279203130292052656164207061676520312e5c6e2d2028656e747279203138292052656164207061676520322e5c6e2d2028656e747279203236292052656164207061676520332e5c6e2d2028656e747279203334292052656164207061676520342e5c6e2d2028656e747279203432292052656164207061676520352e5c6e2d2028656e747279203530292052656164207061676520362e5c6e2d2028656e747279203538292052656164207061676520372e5c6e2d2028656e747279203636292052656164207061676520382e5c6e2d2028656e747279203734292052656164207061676520392e5c6e5c6e2323204361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d5c6e2d20617373697374616e742035362c2061736b656420696e2035303a205c2250616765203620697320726561642e5c225c6e2d20617373697374616e742036342c2061736b656420696e2035383a205c2250616765203720697320726561642e5c225c6e2d20617373697374616e742037322c2061736b656420696e2036363a205c2250616765203820697320726561642e5c225c6e5c6e23232057686572652069742073746f6f645c6e2d20546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c222028656e74727920383029227d5d2c226f766572223a5b5d2c22636f6e74696e756573223a38377d7d');
INSERT INTO refold.entries_0 VALUES (1, 101, 1795062916915, 1, 47, '01a1f216-6733-73b6-918f-f04ac372357a', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a20225265616420706167652031312e227d');
INSERT INTO refold.entries_0 VALUES (1, 90, 1795062916881, 1, 43, '01a1f216-6711-7747-8de5-b924e763e7b6', true, true, 'default', 'request', '\x2f', '[[1,3],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,89]]', NULL, '\x7b22646967657374223a2235616461666633313733633662396136643463313339323336623839353537363439346639343738626330656339623837366334363335323533396131636663222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 94, 1795062916887, 1, 45, '01a1f216-6717-7729-92f5-d5ca5ee68acd', true, true, 'default', 'request', '\x2f', '[[1,3],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,93]]', NULL, '\x7b22646967657374223a2236363738313632356362326165643265623933346266343330363839393933386362333466616564633861376331663735653838306563336235363130616536222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (3, 2, 1795062917149, 1, 1, '01a1f216-681d-7773-ae76-c10e36ecd834', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202248656c6c6f2e227d');
INSERT INTO refold.entries_0 VALUES (3, 3, 1795062917150, 1, 1, '01a1f216-681e-720a-9418-80db577b0772', true, false, 'default', 'clear', '\x2f', NULL, NULL, '\x7b7d');
INSERT INTO refold.entries_0 VALUES (1, 103, 1795062916921, 1, 48, '01a1f216-6739-77d6-b63b-79035685e6f8', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a2022633131222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a2031317d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 104, 1795062916921, 1, 48, '01a1f216-6739-77d6-b63b-79043c3a4561', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130322c227573616765223a7b22696e707574223a3530382c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313938362c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 105, 1795062916923, 1, 49, '01a1f216-673b-747e-a97d-aaeb38951f55', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a202231313a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a2022633131227d');
INSERT INTO refold.entries_0 VALUES (1, 107, 1795062916928, 1, 50, '01a1f216-6740-704a-a6be-28e8e53f16ab', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a20225061676520313120697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 108, 1795062916928, 1, 50, '01a1f216-6740-704a-a6be-28e904fbd376', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130362c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a323931392c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (1, 109, 1795062916930, 1, 50, '01a1f216-6742-7622-abb6-17de885827e6', true, false, 'default', 'rewind', '\x2f', NULL, NULL, '\x7b22746f223a3130307d');
INSERT INTO refold.entries_0 VALUES (1, 110, 1795062916942, 1, 50, '01a1f216-674e-72b9-8515-fdfdd4679f85', false, false, 'default', 'note', '\x2f', NULL, NULL, '\x7b2274657874223a2257686174206120686f73742077726f746520646f776e2e227d');
INSERT INTO refold.entries_0 VALUES (1, 111, 1795062916943, 1, 50, '01a1f216-674f-733f-aef5-713ed7f9651f', false, false, 'default', 'note', '\x2f', NULL, '[[],["e9b0015594030c029f167a30522c7dd2ec90379b6026ef7c7dd74b07d0bc63dd"]]', '\x7b2274657874223a225769746820616e206174746163686d656e742e227d');
INSERT INTO refold.entries_0 VALUES (1, 83, 1795062916797, 1, 41, '01a1f216-66bd-72d0-ac70-681c6bfe5971', true, true, 'default', 'request', '\x2f', '[[1,82]]', NULL, '\x7b22646967657374223a2262333261363432373563333366333063386665663530316464373536373863633864353831383630306234333666646532613335363930383337383236303639222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 102, 1795062916919, 1, 47, '01a1f216-6737-776e-b9a5-a7b0121fa270', true, true, 'default', 'request', '\x2f', '[[1,4],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,101]]', NULL, '\x7b22646967657374223a2266396264613434616661643036336263623537383163306432356431646462383238626139363362303763316535303234313636336331383830633862323537222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 106, 1795062916926, 1, 49, '01a1f216-673e-7389-a144-9d5f5084d3e4', true, true, 'default', 'request', '\x2f', '[[1,4],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,105]]', NULL, '\x7b22646967657374223a2263653464376265336263643966343731306264383831663630663062643964613331376339623633623638343731666265303430343434313332613637363831222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 112, 1795062917015, 1, 50, '01a1f216-6797-7364-97ff-57196c903d46', false, false, 'default', 'forget', '\x2f', NULL, NULL, '\x7b227370616e223a7b226669727374223a38322c226c617374223a38327d7d');
INSERT INTO refold.entries_0 VALUES (2, 101, 1795062917109, 1, 47, '01a1f216-67f5-73ba-a637-08996a5bb567', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a20225265616420706167652031322e227d');
INSERT INTO refold.entries_0 VALUES (2, 102, 1795062917120, 1, 47, '01a1f216-6800-71d8-aa88-1928ff3eb0a9', true, false, 'default', 'request', '\x2f', '[[1,4],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[83,101]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a347d2c7b226669727374223a38332c226c617374223a3130317d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a3130312c226163636f756e74223a5b302c3633342c302c302c333030302c33395d2c22746f6b656e73223a3633342c226c61796f7574223a7b22676f6e65223a5b5b7b226669727374223a352c226c617374223a38317d2c22666f6c646564225d2c5b7b226669727374223a38322c226c617374223a38327d2c22666f72676f7474656e225d5d2c22696e7365727473223a5b7b22696e73657274223a7b226265666f7265223a352c226b696e64223a2270726f6d7074222c2274657874223a225b3339206561726c696572206d657373616765732061726520666f6c64656420686572652e2054686569722066756c6c2074657874206973206e6f7420612070617274206f66207468697320726571756573742e205768617420666f6c6c6f77732069732071756f7465642066726f6d207468656d2061732061207265636f7264206f6620776861742077617320736169643b2069742061736b7320666f72206e6f7468696e6720627920697473656c662e5d5c6e5c6e2323205468652075736572277320776f7264733a207374616e64696e672072756c65732066697273742c207468656e20746865206f74686572732c206e6577657374206c6173745c6e2d2028656e747279203130292052656164207061676520312e5c6e2d2028656e747279203138292052656164207061676520322e5c6e2d2028656e747279203236292052656164207061676520332e5c6e2d2028656e747279203334292052656164207061676520342e5c6e2d2028656e747279203432292052656164207061676520352e5c6e2d2028656e747279203530292052656164207061676520362e5c6e2d2028656e747279203538292052656164207061676520372e5c6e2d2028656e747279203636292052656164207061676520382e5c6e2d2028656e747279203734292052656164207061676520392e5c6e5c6e2323204361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d5c6e2d20617373697374616e742035362c2061736b656420696e2035303a205c2250616765203620697320726561642e5c225c6e2d20617373697374616e742036342c2061736b656420696e2035383a205c2250616765203720697320726561642e5c225c6e2d20617373697374616e742037322c2061736b656420696e2036363a205c2250616765203820697320726561642e5c225c6e5c6e23232057686572652069742073746f6f645c6e2d20546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c222028656e74727920383029222c22726561736f6e223a2273756d6d617279222c22736f7572636573223a5b7b22736571223a3130302c22696e646578223a307d5d7d7d2c7b22696e73657274223a7b226265666f7265223a352c226b696e64223a2272657475726e222c2274657874223a22496e74657272757074656420627920757365722e222c22726561736f6e223a22756e616e737765726564222c22746f6f6c223a2272656164222c2263616c6c223a226330222c22736f7572636573223a5b7b22736571223a342c22696e646578223a307d5d7d7d5d7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31302c22636f7272656374696f6e223a5b22657374696d617465222c312e332c302e303632355d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2265336130643333353839653737386432313163653662663166636665656233633063306361626165356566633965666238353431666635633231323962626262222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37312c37352c37395d7d');
INSERT INTO refold.entries_0 VALUES (2, 103, 1795062917125, 1, 48, '01a1f216-6805-72c3-8f07-ea35b761e082', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a2022633132222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a2031327d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (2, 104, 1795062917125, 1, 48, '01a1f216-6805-72c3-8f07-ea36131e3276', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130322c227573616765223a7b22696e707574223a3633342c226f7574707574223a33302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a323033362c226f7574707574223a33302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (2, 105, 1795062917129, 1, 49, '01a1f216-6809-7728-b174-afe72f79e633', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a202231323a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a2022633132227d');
INSERT INTO refold.entries_0 VALUES (2, 106, 1795062917134, 1, 49, '01a1f216-680e-72c4-9e91-e4d29b34d137', true, false, 'default', 'request', '\x2f', '[[1,4],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[83,105]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a347d2c7b226669727374223a38332c226c617374223a3130357d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a3130352c226163636f756e74223a5b302c3832382c302c302c333030302c35315d2c22746f6b656e73223a3832382c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31322c22636f7272656374696f6e223a5b22657374696d617465222c312e332c302e303632355d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2262656530616163343633636130303335343162303463663962346234346331636630393038653965656133326162646130626335336534333636306233383562222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37312c37352c37392c3130325d7d');
INSERT INTO refold.entries_0 VALUES (2, 107, 1795062917139, 1, 50, '01a1f216-6813-76fe-b6f3-0bcdbdb018a5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a20225061676520313220697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (2, 108, 1795062917139, 1, 50, '01a1f216-6813-76fe-b6f3-0bce18e89636', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130362c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a323432342c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d7d');
INSERT INTO refold.entries_0 VALUES (3, 1, 1795062917145, 1, 0, '01a1f216-6819-7227-a548-cdb4849ed440', true, false, 'default', 'session', '\x2f', NULL, NULL, '\x7b22666f726d6174223a226f70656e61692d63686174222c2270726f66696c65223a2262616c616e636564227d');


--
-- Data for Name: erasures; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.erasures OVERRIDING SYSTEM VALUE VALUES (1, false, 'entries_0');
INSERT INTO refold.erasures OVERRIDING SYSTEM VALUE VALUES (2, false, 'words_0');
INSERT INTO refold.erasures OVERRIDING SYSTEM VALUE VALUES (3, false, 'sessions');


--
-- Data for Name: facts; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.facts VALUES (2, 'default', 'words_version');
INSERT INTO refold.facts VALUES (14000000, 'default', 'unicode_version');


--
-- Data for Name: marks; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: migrations; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.migrations VALUES (1, 'log', 'e0668604bcc68bacb7c6fecc3185c10a8d929c268c6cf6ebbf21a9d1887185b5');
INSERT INTO refold.migrations VALUES (2, 'tenants', 'f45721f9be6fa936ae6b01c1afc7f48406cd446be05d48d3f2094b3bb9256456');
INSERT INTO refold.migrations VALUES (3, 'search', 'e196bcb82bfb0002b2fcaabaf0a9ac8a85a560daa4aa481e13f937e2fe8d0733');
INSERT INTO refold.migrations VALUES (4, 'marks', '7480cd869d2cb1c7930cf860c3955dc65a29d100da12921a3d189a8a73b0beb9');
INSERT INTO refold.migrations VALUES (5, 'long_entries', '974dce2bbf035a4564d7cd1f31d110901b35ef895493294ab4c609ec39d6ba6c');


--
-- Data for Name: segments; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.segments VALUES (2, 1, 100, 1, 'default');


--
-- Data for Name: sessions; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.sessions VALUES (1, 1795062916678, 1795062917015, 29917715, 112, 50, 1, 0, 1, 0, 112, false, 'default', 'books', NULL, '\x6f70656e61692d63686174', '\x62616c616e636564', '\x7b227469746c65223a2254686520626f6f6b73222c226c696e65223a5b7b226669727374223a312c226c617374223a3130307d5d2c2273696e6365223a3131302c22666f6c6473223a5b7b22736571223a3130302c22666f6c64223a2238636237313436342d623032632d343936642d393234362d363431633338313432626263222c227370616e73223a5b7b226669727374223a352c226c617374223a38317d5d7d5d2c2270696e73223a5b5d2c2277617463686564223a5b5d2c2272756e6e696e67223a5b5d2c227265636f7264223a37392c2276657273696f6e223a317d');
INSERT INTO refold.sessions VALUES (2, 1795062916909, 1795062917139, 29917715, 108, 50, 1, 0, 101, 46, 108, false, 'default', 'books-again', 'books', '\x6f70656e61692d63686174', '\x62616c616e636564', '\x7b227469746c65223a2254686520626f6f6b73222c226c696e65223a5b5d2c2273696e6365223a312c22666f6c6473223a5b7b22736571223a3130302c22666f6c64223a2238636237313436342d623032632d343936642d393234362d363431633338313432626263222c227370616e73223a5b7b226669727374223a352c226c617374223a38317d5d7d5d2c2270696e73223a5b5d2c2277617463686564223a5b5d2c2272756e6e696e67223a5b5d2c227265636f7264223a3130362c2276657273696f6e223a317d');
INSERT INTO refold.sessions VALUES (3, 1795062917145, 1795062917150, 29917715, 3, 1, 0, 0, 1, 0, 3, false, 'default', 'cleared', NULL, '\x6f70656e61692d63686174', '\x62616c616e636564', '\x7b227469746c65223a6e756c6c2c226c696e65223a5b5d2c2273696e6365223a342c22666f6c6473223a5b5d2c2270696e73223a5b5d2c2277617463686564223a5b5d2c2272756e6e696e67223a5b5d2c227265636f7264223a6e756c6c2c2276657273696f6e223a317d');


--
-- Data for Name: tombstones; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: word_chunks; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: words_0; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.words_0 VALUES (1, 1, 2, 'default', 'the books');
INSERT INTO refold.words_0 VALUES (1, 2, 3, 'default', 'read page 0');
INSERT INTO refold.words_0 VALUES (1, 4, 3, 'default', 'read page 0');
INSERT INTO refold.words_0 VALUES (1, 6, 97, 'default', '0 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 8, 4, 'default', 'page 0 is read');
INSERT INTO refold.words_0 VALUES (1, 10, 3, 'default', 'read page 1');
INSERT INTO refold.words_0 VALUES (1, 12, 3, 'default', 'read page 1');
INSERT INTO refold.words_0 VALUES (1, 14, 97, 'default', '1 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 16, 4, 'default', 'page 1 is read');
INSERT INTO refold.words_0 VALUES (1, 18, 3, 'default', 'read page 2');
INSERT INTO refold.words_0 VALUES (1, 20, 3, 'default', 'read page 2');
INSERT INTO refold.words_0 VALUES (1, 22, 97, 'default', '2 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 24, 4, 'default', 'page 2 is read');
INSERT INTO refold.words_0 VALUES (1, 26, 3, 'default', 'read page 3');
INSERT INTO refold.words_0 VALUES (1, 28, 3, 'default', 'read page 3');
INSERT INTO refold.words_0 VALUES (1, 30, 97, 'default', '3 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 32, 4, 'default', 'page 3 is read');
INSERT INTO refold.words_0 VALUES (1, 34, 3, 'default', 'read page 4');
INSERT INTO refold.words_0 VALUES (1, 36, 3, 'default', 'read page 4');
INSERT INTO refold.words_0 VALUES (1, 38, 97, 'default', '4 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 40, 4, 'default', 'page 4 is read');
INSERT INTO refold.words_0 VALUES (1, 42, 3, 'default', 'read page 5');
INSERT INTO refold.words_0 VALUES (1, 44, 3, 'default', 'read page 5');
INSERT INTO refold.words_0 VALUES (1, 46, 97, 'default', '5 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 48, 4, 'default', 'page 5 is read');
INSERT INTO refold.words_0 VALUES (1, 50, 3, 'default', 'read page 6');
INSERT INTO refold.words_0 VALUES (1, 52, 3, 'default', 'read page 6');
INSERT INTO refold.words_0 VALUES (1, 54, 97, 'default', '6 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 56, 4, 'default', 'page 6 is read');
INSERT INTO refold.words_0 VALUES (1, 58, 3, 'default', 'read page 7');
INSERT INTO refold.words_0 VALUES (1, 60, 3, 'default', 'read page 7');
INSERT INTO refold.words_0 VALUES (1, 62, 97, 'default', '7 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 64, 4, 'default', 'page 7 is read');
INSERT INTO refold.words_0 VALUES (1, 66, 3, 'default', 'read page 8');
INSERT INTO refold.words_0 VALUES (1, 68, 3, 'default', 'read page 8');
INSERT INTO refold.words_0 VALUES (1, 70, 97, 'default', '8 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 72, 4, 'default', 'page 8 is read');
INSERT INTO refold.words_0 VALUES (1, 74, 3, 'default', 'read page 9');
INSERT INTO refold.words_0 VALUES (1, 76, 3, 'default', 'read page 9');
INSERT INTO refold.words_0 VALUES (1, 78, 97, 'default', '9 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 80, 4, 'default', 'page 9 is read');
INSERT INTO refold.words_0 VALUES (1, 84, 2, 'default', 'i see');
INSERT INTO refold.words_0 VALUES (1, 87, 273, 'default', '5d9aab55 e112 4677 b9de 9df241620bce breadcrumb read page 9 causes decisions and results as the assistant put them page 0 is read assistant 0 result page 1 is read assistant 10 result page 2 is read assistant 18 result page 3 is read assistant 26 result page 4 is read assistant 34 result page 5 is read assistant 42 result page 6 is read assistant 50 result page 7 is read assistant 58 result page 8 is read assistant 66 result page 9 is read assistant 74 result where it stood the model called read page 9 the model last said page 9 is read read page 1 read page 2 read page 3 read page 4 read page 5 read page 6 read page 7 read page 8 read page 9 39 earlier messages are folded here their full text is not a part of this request what follows is quoted from them as a record of what was said it asks for nothing by itself the user s words standing rules first then the others newest last entry 10 read page 1 entry 18 read page 2 entry 26 read page 3 entry 34 read page 4 entry 42 read page 5 entry 50 read page 6 entry 58 read page 7 entry 66 read page 8 entry 74 read page 9 causes decisions and results as the assistant put them assistant 56 asked in 50 page 6 is read assistant 64 asked in 58 page 7 is read assistant 72 asked in 66 page 8 is read where it stood the model last said page 9 is read entry 80');
INSERT INTO refold.words_0 VALUES (1, 89, 3, 'default', 'read page 10');
INSERT INTO refold.words_0 VALUES (1, 91, 3, 'default', 'read page 10');
INSERT INTO refold.words_0 VALUES (1, 93, 97, 'default', '10 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 95, 4, 'default', 'page 10 is read');
INSERT INTO refold.words_0 VALUES (1, 100, 273, 'default', '8cb71464 b02c 496d 9246 641c38142bbc breadcrumb read page 9 causes decisions and results as the assistant put them page 0 is read assistant 0 result page 1 is read assistant 10 result page 2 is read assistant 18 result page 3 is read assistant 26 result page 4 is read assistant 34 result page 5 is read assistant 42 result page 6 is read assistant 50 result page 7 is read assistant 58 result page 8 is read assistant 66 result page 9 is read assistant 74 result where it stood the model called read page 9 the model last said page 9 is read read page 1 read page 2 read page 3 read page 4 read page 5 read page 6 read page 7 read page 8 read page 9 39 earlier messages are folded here their full text is not a part of this request what follows is quoted from them as a record of what was said it asks for nothing by itself the user s words standing rules first then the others newest last entry 10 read page 1 entry 18 read page 2 entry 26 read page 3 entry 34 read page 4 entry 42 read page 5 entry 50 read page 6 entry 58 read page 7 entry 66 read page 8 entry 74 read page 9 causes decisions and results as the assistant put them assistant 56 asked in 50 page 6 is read assistant 64 asked in 58 page 7 is read assistant 72 asked in 66 page 8 is read where it stood the model last said page 9 is read entry 80');
INSERT INTO refold.words_0 VALUES (1, 101, 3, 'default', 'read page 11');
INSERT INTO refold.words_0 VALUES (1, 103, 3, 'default', 'read page 11');
INSERT INTO refold.words_0 VALUES (1, 105, 97, 'default', '11 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 107, 4, 'default', 'page 11 is read');
INSERT INTO refold.words_0 VALUES (1, 110, 5, 'default', 'what a host wrote down');
INSERT INTO refold.words_0 VALUES (1, 111, 3, 'default', 'with an attachment');
INSERT INTO refold.words_0 VALUES (2, 101, 3, 'default', 'read page 12');
INSERT INTO refold.words_0 VALUES (2, 103, 3, 'default', 'read page 12');
INSERT INTO refold.words_0 VALUES (2, 105, 97, 'default', '12 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (2, 107, 4, 'default', 'page 12 is read');
INSERT INTO refold.words_0 VALUES (3, 2, 1, 'default', 'hello');


--
-- Name: erasures_id_seq; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.erasures_id_seq', 3, true);


--
-- Name: marks_id_seq; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.marks_id_seq', 1, false);


--
-- Name: sessions_key_seq; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.sessions_key_seq', 3, true);


--
-- Name: artifacts artifacts_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.artifacts
    ADD CONSTRAINT artifacts_pkey PRIMARY KEY (tenant, hash);


--
-- Name: artifacts_0 artifacts_0_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.artifacts_0
    ADD CONSTRAINT artifacts_0_pkey PRIMARY KEY (tenant, hash);


--
-- Name: attempts attempts_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (tenant, session);


--
-- Name: bound_roles bound_roles_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.bound_roles
    ADD CONSTRAINT bound_roles_pkey PRIMARY KEY (role);


--
-- Name: copies copies_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.copies
    ADD CONSTRAINT copies_pkey PRIMARY KEY (tenant, session, first);


--
-- Name: entries entries_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.entries
    ADD CONSTRAINT entries_pkey PRIMARY KEY (tenant, session, seq);


--
-- Name: entries_0 entries_0_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.entries_0
    ADD CONSTRAINT entries_0_pkey PRIMARY KEY (tenant, session, seq);


--
-- Name: entries entries_tenant_id_session_key; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.entries
    ADD CONSTRAINT entries_tenant_id_session_key UNIQUE (tenant, id, session);


--
-- Name: entries_0 entries_0_tenant_id_session_key; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.entries_0
    ADD CONSTRAINT entries_0_tenant_id_session_key UNIQUE (tenant, id, session);


--
-- Name: erasures erasures_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.erasures
    ADD CONSTRAINT erasures_pkey PRIMARY KEY (id);


--
-- Name: facts facts_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.facts
    ADD CONSTRAINT facts_pkey PRIMARY KEY (tenant, name);


--
-- Name: marks marks_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.marks
    ADD CONSTRAINT marks_pkey PRIMARY KEY (tenant, session, seq);


--
-- Name: migrations migrations_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (number);


--
-- Name: segments segments_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.segments
    ADD CONSTRAINT segments_pkey PRIMARY KEY (tenant, session, first);


--
-- Name: sessions sessions_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant, key);


--
-- Name: sessions sessions_tenant_session_key; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.sessions
    ADD CONSTRAINT sessions_tenant_session_key UNIQUE (tenant, session);


--
-- Name: tombstones tombstones_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.tombstones
    ADD CONSTRAINT tombstones_pkey PRIMARY KEY (tenant, session);


--
-- Name: word_chunks word_chunks_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.word_chunks
    ADD CONSTRAINT word_chunks_pkey PRIMARY KEY (tenant, session, seq, chunk);


--
-- Name: words words_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.words
    ADD CONSTRAINT words_pkey PRIMARY KEY (tenant, session, seq);


--
-- Name: words_0 words_0_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.words_0
    ADD CONSTRAINT words_0_pkey PRIMARY KEY (tenant, session, seq);


--
-- Name: copies_source; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX copies_source ON refold.copies USING btree (tenant, source);


--
-- Name: entries_control; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX entries_control ON ONLY refold.entries USING btree (tenant, session, seq) WHERE control;


--
-- Name: entries_0_tenant_session_seq_idx; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX entries_0_tenant_session_seq_idx ON refold.entries_0 USING btree (tenant, session, seq) WHERE control;


--
-- Name: entries_derived; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX entries_derived ON ONLY refold.entries USING btree (tenant, session, seq) WHERE (rests_on IS NOT NULL);


--
-- Name: entries_0_tenant_session_seq_idx1; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX entries_0_tenant_session_seq_idx1 ON refold.entries_0 USING btree (tenant, session, seq) WHERE (rests_on IS NOT NULL);


--
-- Name: marks_key; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX marks_key ON refold.marks USING btree (tenant, key);


--
-- Name: segments_source; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX segments_source ON refold.segments USING btree (tenant, source);


--
-- Name: sessions_forked_from; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX sessions_forked_from ON refold.sessions USING btree (tenant, forked_from) WHERE (forked_from IS NOT NULL);


--
-- Name: sessions_unindexed; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX sessions_unindexed ON refold.sessions USING btree (tenant, key) WHERE unindexed;


--
-- Name: sessions_used; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX sessions_used ON refold.sessions USING btree (tenant, used);


--
-- Name: word_chunks_keys; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX word_chunks_keys ON refold.word_chunks USING gin (refold.word_keys(tenant, line)) WITH (fastupdate=off);
ALTER INDEX refold.word_chunks_keys ALTER COLUMN 1 SET STATISTICS 0;


--
-- Name: words_keys; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX words_keys ON ONLY refold.words USING gin (refold.word_keys(tenant, line)) WITH (fastupdate=off);


--
-- Name: words_0_word_keys_idx; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX words_0_word_keys_idx ON refold.words_0 USING gin (refold.word_keys(tenant, line)) WITH (fastupdate=off);
ALTER INDEX refold.words_0_word_keys_idx ALTER COLUMN 1 SET STATISTICS 0;


--
-- Name: artifacts_0_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.artifacts_pkey ATTACH PARTITION refold.artifacts_0_pkey;


--
-- Name: entries_0_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.entries_pkey ATTACH PARTITION refold.entries_0_pkey;


--
-- Name: entries_0_tenant_id_session_key; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.entries_tenant_id_session_key ATTACH PARTITION refold.entries_0_tenant_id_session_key;


--
-- Name: entries_0_tenant_session_seq_idx; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.entries_control ATTACH PARTITION refold.entries_0_tenant_session_seq_idx;


--
-- Name: entries_0_tenant_session_seq_idx1; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.entries_derived ATTACH PARTITION refold.entries_0_tenant_session_seq_idx1;


--
-- Name: words_0_pkey; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.words_pkey ATTACH PARTITION refold.words_0_pkey;


--
-- Name: words_0_word_keys_idx; Type: INDEX ATTACH; Schema: refold; Owner: -
--

ALTER INDEX refold.words_keys ATTACH PARTITION refold.words_0_word_keys_idx;


--
-- Name: bound_roles write_free_roles; Type: TRIGGER; Schema: refold; Owner: -
--

CREATE TRIGGER write_free_roles AFTER INSERT OR DELETE OR UPDATE ON refold.bound_roles FOR EACH STATEMENT EXECUTE FUNCTION refold.write_free_roles();


--
-- Name: artifacts; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.artifacts ENABLE ROW LEVEL SECURITY;

--
-- Name: artifacts_0; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.artifacts_0 ENABLE ROW LEVEL SECURITY;

--
-- Name: attempts; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.attempts ENABLE ROW LEVEL SECURITY;

--
-- Name: copies; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.copies ENABLE ROW LEVEL SECURITY;

--
-- Name: entries; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.entries ENABLE ROW LEVEL SECURITY;

--
-- Name: entries_0; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.entries_0 ENABLE ROW LEVEL SECURITY;

--
-- Name: erasures; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.erasures ENABLE ROW LEVEL SECURITY;

--
-- Name: facts; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.facts ENABLE ROW LEVEL SECURITY;

--
-- Name: marks; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.marks ENABLE ROW LEVEL SECURITY;

--
-- Name: artifacts own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.artifacts USING ((tenant = refold.tenant()));


--
-- Name: attempts own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.attempts USING ((tenant = refold.tenant()));


--
-- Name: copies own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.copies USING ((tenant = refold.tenant()));


--
-- Name: entries own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.entries USING ((tenant = refold.tenant()));


--
-- Name: facts own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.facts USING ((tenant = refold.tenant()));


--
-- Name: marks own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.marks USING ((tenant = refold.tenant()));


--
-- Name: segments own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.segments USING ((tenant = refold.tenant()));


--
-- Name: sessions own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.sessions USING ((tenant = refold.tenant()));


--
-- Name: tombstones own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.tombstones USING ((tenant = refold.tenant()));


--
-- Name: word_chunks own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.word_chunks USING ((tenant = ( SELECT refold.tenant() AS tenant)));


--
-- Name: words own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.words USING ((tenant = ( SELECT refold.tenant() AS tenant)));


--
-- Name: segments; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.segments ENABLE ROW LEVEL SECURITY;

--
-- Name: sessions; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.sessions ENABLE ROW LEVEL SECURITY;

--
-- Name: tombstones; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.tombstones ENABLE ROW LEVEL SECURITY;

--
-- Name: word_chunks; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.word_chunks ENABLE ROW LEVEL SECURITY;

--
-- Name: words; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.words ENABLE ROW LEVEL SECURITY;

--
-- Name: words_0; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.words_0 ENABLE ROW LEVEL SECURITY;

--
-- Name: FUNCTION held_within(runs text[], holders bigint[], firsts bigint[], lasts bigint[]); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.held_within(runs text[], holders bigint[], firsts bigint[], lasts bigint[]) FROM PUBLIC;


--
-- Name: FUNCTION keep_no_samples(); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.keep_no_samples() FROM PUBLIC;


--
-- Name: FUNCTION long_places(runs text[]); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.long_places(runs text[]) FROM PUBLIC;


--
-- Name: FUNCTION make_partitions(count bigint); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.make_partitions(count bigint) FROM PUBLIC;


--
-- Name: FUNCTION note_erased_chunks(); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.note_erased_chunks() FROM PUBLIC;


--
-- Name: FUNCTION note_erased_marks(); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.note_erased_marks() FROM PUBLIC;


--
-- Name: FUNCTION note_erasure(holders bigint[], hashes bytea[]); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.note_erasure(holders bigint[], hashes bytea[]) FROM PUBLIC;


--
-- Name: FUNCTION places(runs text[]); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.places(runs text[]) FROM PUBLIC;


--
-- Name: FUNCTION write_free_roles(); Type: ACL; Schema: refold; Owner: -
--

REVOKE ALL ON FUNCTION refold.write_free_roles() FROM PUBLIC;


--
-- PostgreSQL database dump complete
--

\unrestrict AykfzQliw9yJWg3JGFaikIcmf0s2l0UAuwAYBfuJQn1wKhjhucdoZ9ocufEkUig

