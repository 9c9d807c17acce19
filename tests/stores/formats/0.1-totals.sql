--
-- PostgreSQL database dump
--

\restrict CMA4WQEH2bbqtjdzXonMuQpjNhf3NHHP3csE9cMjlUWsqSEL69ZjCq40xYsC1nd

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
-- Name: add_lines(text, bigint, bigint[], bytea[], bytea[], double precision[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.add_lines(whose text, holder bigint, days bigint[], models bytea[], keys bytea[], sums double precision[]) RETURNS void
    LANGUAGE sql
    AS $$
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
-- Name: book(boolean, text, bigint, bigint, bytea, bigint[], bytea[], bytea[], double precision[]); Type: FUNCTION; Schema: refold; Owner: -
--

CREATE FUNCTION refold.book(appended boolean, whose text, holder bigint, known_version bigint, new_state bytea, days bigint[], models bytea[], keys bytea[], sums double precision[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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

SET default_table_access_method = heap;

--
-- Name: accounts; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.accounts (
    session bigint NOT NULL,
    version bigint NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    state bytea
)
WITH (fillfactor='50');

ALTER TABLE ONLY refold.accounts FORCE ROW LEVEL SECURITY;


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
-- Name: totals; Type: TABLE; Schema: refold; Owner: -
--

CREATE TABLE refold.totals (
    day bigint NOT NULL,
    session bigint NOT NULL,
    requests double precision NOT NULL,
    folds double precision NOT NULL,
    input double precision NOT NULL,
    output double precision NOT NULL,
    cache_read double precision NOT NULL,
    cache_write double precision NOT NULL,
    compared double precision NOT NULL,
    paid double precision NOT NULL,
    whole double precision NOT NULL,
    summaries double precision NOT NULL,
    summaries_cost double precision NOT NULL,
    unused double precision NOT NULL,
    unused_cost double precision NOT NULL,
    rereads double precision NOT NULL,
    rereads_cost double precision NOT NULL,
    added_cost double precision NOT NULL,
    misses double precision NOT NULL,
    misses_cost double precision NOT NULL,
    over_window double precision NOT NULL,
    over_window_cost double precision NOT NULL,
    forced double precision NOT NULL,
    forced_cost double precision NOT NULL,
    older double precision NOT NULL,
    older_cost double precision NOT NULL,
    unpriced double precision NOT NULL,
    estimated double precision NOT NULL,
    highest double precision NOT NULL,
    reported double precision NOT NULL,
    miscounted double precision NOT NULL,
    tenant text NOT NULL COLLATE pg_catalog."C",
    model bytea NOT NULL,
    key bytea NOT NULL
)
WITH (fillfactor='50');

ALTER TABLE ONLY refold.totals FORCE ROW LEVEL SECURITY;


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
-- Data for Name: accounts; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.accounts VALUES (1, 28, 'default', NULL);
INSERT INTO refold.accounts VALUES (2, 4, 'default', NULL);
INSERT INTO refold.accounts VALUES (3, 1, 'default', '\x7b2276657273696f6e223a312c2272656365697074223a5b302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c305d2c22636861696e73223a7b222f223a5b6e756c6c2c302c302c302e302c66616c73652c302c302c302c66616c73652c6e756c6c5d7d2c2263616c6c73223a7b7d2c2270656e64696e67223a5b302c302e305d2c226f766572223a66616c73652c226d6f64656c223a22222c226b6579223a22227d');
INSERT INTO refold.accounts VALUES (4, 2, 'default', '\x7b2276657273696f6e223a312c2272656365697074223a5b322c302c3931332c34342c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c302c322c302c302c302c305d2c22636861696e73223a7b222f223a5b6e756c6c2c313739353134303930383933312c302c302e302c66616c73652c313739353134303930383933312c302c302c66616c73652c6e756c6c5d7d2c2263616c6c73223a7b7d2c2270656e64696e67223a5b302c302e305d2c226f766572223a66616c73652c226d6f64656c223a22746573743a6d6f64656c222c226b6579223a22227d');


--
-- Data for Name: artifacts_0; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.artifacts_0 VALUES (1, 'default', '\x65396230303135353934303330633032396631363761333035323263376464326563393033373962363032366566376337646437346230376430626336336464', '\x746578742f706c61696e', '\x4141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141414141');
INSERT INTO refold.artifacts_0 VALUES (1, 'default', '\x35316163633963396365636366663030326662633866663239616631343533643264363338633533666339656462346130343331643837633531313131313561', '\x746578742f706c61696e', '\x5b3339206561726c696572206d657373616765732061726520666f6c64656420686572652e2054686569722066756c6c2074657874206973206e6f7420612070617274206f66207468697320726571756573742e205768617420666f6c6c6f77732069732071756f7465642066726f6d207468656d2061732061207265636f7264206f6620776861742077617320736169643b2069742061736b7320666f72206e6f7468696e6720627920697473656c662e5d0a0a2323205468652075736572277320776f7264733a207374616e64696e672072756c65732066697273742c207468656e20746865206f74686572732c206e6577657374206c6173740a2d2028656e747279203130292052656164207061676520312e0a2d2028656e747279203138292052656164207061676520322e0a2d2028656e747279203236292052656164207061676520332e0a2d2028656e747279203334292052656164207061676520342e0a2d2028656e747279203432292052656164207061676520352e0a2d2028656e747279203530292052656164207061676520362e0a2d2028656e747279203538292052656164207061676520372e0a2d2028656e747279203636292052656164207061676520382e0a2d2028656e747279203734292052656164207061676520392e0a0a2323204361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d0a2d20617373697374616e7420383a202250616765203020697320726561642e220a2d20617373697374616e742031362c2061736b656420696e2031303a202250616765203120697320726561642e220a2d20617373697374616e742032342c2061736b656420696e2031383a202250616765203220697320726561642e220a2d20617373697374616e742033322c2061736b656420696e2032363a202250616765203320697320726561642e220a2d20617373697374616e742034302c2061736b656420696e2033343a202250616765203420697320726561642e220a2d20617373697374616e742034382c2061736b656420696e2034323a202250616765203520697320726561642e220a2d20617373697374616e742035362c2061736b656420696e2035303a202250616765203620697320726561642e220a2d20617373697374616e742036342c2061736b656420696e2035383a202250616765203720697320726561642e220a2d20617373697374616e742037322c2061736b656420696e2036363a202250616765203820697320726561642e220a0a23232057686572652069742073746f6f640a2d20546865206d6f64656c2063616c6c65642072656164287b2270616765223a20397d292028656e747279203736290a2d20546865206d6f64656c206c61737420736169643a202250616765203920697320726561642e222028656e74727920383029');


--
-- Data for Name: attempts; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.attempts VALUES (1, 'e29c6150-62de-4c92-b387-8db364d79e03', 'default', 'books');


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

INSERT INTO refold.entries_0 VALUES (1, 1, 1795140908282, 1, 0, '01a1f6bc-74fa-742f-8da6-90d55cc82c86', true, false, 'default', 'session', '\x2f', NULL, NULL, '\x7b22666f726d6174223a226f70656e61692d63686174222c2270726f66696c65223a2262616c616e636564222c227469746c65223a2254686520626f6f6b73227d');
INSERT INTO refold.entries_0 VALUES (1, 2, 1795140908309, 1, 1, '01a1f6bc-7515-7029-9ff0-32379442b422', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520302e227d');
INSERT INTO refold.entries_0 VALUES (1, 3, 1795140908313, 1, 1, '01a1f6bc-7519-7278-8fb1-ad6c4f77f1a4', true, false, 'default', 'request', '\x2f', '[[1,2]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a322c226163636f756e74223a5b302c31332c302c302c333030302c315d2c22746f6b656e73223a31332c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a312c2270616365223a5b302c312c31335d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2263373261383631653232666562373334313734333763616437333337616536633661303366303336613132323637323530366531613933626363343134663130222c226c696d6974223a333030307d');
INSERT INTO refold.entries_0 VALUES (1, 4, 1795140908319, 1, 2, '01a1f6bc-751f-7085-8d6d-382780dcd6b2', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226330222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20307d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 5, 1795140908319, 1, 2, '01a1f6bc-751f-7085-8d6d-3827d3df9be2', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a332c227573616765223a7b22696e707574223a31332c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a31332c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a31332c226265666f7265223a302c22636f756e746564223a31332c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 6, 1795140908331, 1, 3, '01a1f6bc-752b-762c-8aee-5903cfacd37c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022303a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226330227d');
INSERT INTO refold.entries_0 VALUES (1, 7, 1795140908339, 1, 3, '01a1f6bc-7533-7320-acd6-b58c9c23ad5b', true, false, 'default', 'request', '\x2f', '[[1,6]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a362c226163636f756e74223a5b302c3136332c302c302c333030302c31335d2c22746f6b656e73223a3136332c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a332c2270616365223a5b302c322c3137365d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2236303562306537396664353032616266323938653837646666623638353130666162306335623534656635636230343762653666356463376633613264343339222c226c696d6974223a333030302c22636861696e223a5b335d7d');
INSERT INTO refold.entries_0 VALUES (1, 8, 1795140908341, 1, 4, '01a1f6bc-7535-77b1-8397-6cf46792a7c1', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203020697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 9, 1795140908341, 1, 4, '01a1f6bc-7535-77b1-8397-6cf503fe69d4', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a372c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3136332c226265666f7265223a31332c22636f756e746564223a3136332c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 10, 1795140908344, 1, 5, '01a1f6bc-7538-76df-8676-7467241d76fb', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520312e227d');
INSERT INTO refold.entries_0 VALUES (1, 11, 1795140908351, 1, 5, '01a1f6bc-753f-7143-b24e-a68ef9b15380', true, false, 'default', 'request', '\x2f', '[[1,10]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a31307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a31302c226163636f756e74223a5b302c3139302c302c302c333030302c31355d2c22746f6b656e73223a3139302c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a352c2270616365223a5b302c332c3336365d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2263633535303564306564373937653666373534313035303864356233306431323031396561663438333639383031613636356434353539623261333833643035222c226c696d6974223a333030302c22636861696e223a5b332c375d7d');
INSERT INTO refold.entries_0 VALUES (1, 12, 1795140908353, 1, 6, '01a1f6bc-7541-72c1-a193-4352384cdcbb', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226331222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20317d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 13, 1795140908354, 1, 6, '01a1f6bc-7542-7101-a4dd-56142d9408e0', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a31312c227573616765223a7b22696e707574223a3139302c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3139302c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3139302c226265666f7265223a3136332c22636f756e746564223a3139302c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 14, 1795140908360, 1, 7, '01a1f6bc-7548-76b4-940e-5bf0fa0c5504', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022313a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226331227d');
INSERT INTO refold.entries_0 VALUES (1, 15, 1795140908362, 1, 7, '01a1f6bc-754a-717c-877c-2e9248e9c697', true, false, 'default', 'request', '\x2f', '[[1,14]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a31347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a31342c226163636f756e74223a5b302c3334302c302c302c333030302c32375d2c22746f6b656e73223a3334302c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a372c2270616365223a5b302c342c3730365d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2236386430373937316430393736666137376435636134636664663835336338323832626633306164333333653333613737613464353737613031643536326335222c226c696d6974223a333030302c22636861696e223a5b332c372c31315d7d');
INSERT INTO refold.entries_0 VALUES (1, 16, 1795140908366, 1, 8, '01a1f6bc-754e-7749-86a2-5c5ec4690624', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203120697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 17, 1795140908367, 1, 8, '01a1f6bc-754f-7643-98a1-db4d70eb2424', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a31352c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3334302c226265666f7265223a3139302c22636f756e746564223a3334302c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 18, 1795140908374, 1, 9, '01a1f6bc-7556-75f7-8149-6869a2f0666b', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520322e227d');
INSERT INTO refold.entries_0 VALUES (1, 19, 1795140908377, 1, 9, '01a1f6bc-7559-74c4-8ca2-e667ced71a5d', true, false, 'default', 'request', '\x2f', '[[1,18]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a31387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a31382c226163636f756e74223a5b302c3336372c302c302c333030302c32395d2c22746f6b656e73223a3336372c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a392c2270616365223a5b302c352c313037335d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2261373135306166313765316364303363326466653838346435306530626235353161653262633032643735326138356330353032306638383839316535656236222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31355d7d');
INSERT INTO refold.entries_0 VALUES (1, 20, 1795140908378, 1, 10, '01a1f6bc-755a-77f9-876e-e7fccac20414', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226332222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20327d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 21, 1795140908378, 1, 10, '01a1f6bc-755a-77f9-876e-e7fd707c09eb', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a31392c227573616765223a7b22696e707574223a3336372c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3336372c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3336372c226265666f7265223a3334302c22636f756e746564223a3336372c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 22, 1795140908383, 1, 11, '01a1f6bc-755f-73f2-ad46-143543bb0cb5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022323a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226332227d');
INSERT INTO refold.entries_0 VALUES (1, 23, 1795140908391, 1, 11, '01a1f6bc-7567-73e4-bcee-44d5453ec46e', true, false, 'default', 'request', '\x2f', '[[1,22]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a32327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a32322c226163636f756e74223a5b302c3531372c302c302c333030302c34315d2c22746f6b656e73223a3531372c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31312c2270616365223a5b302c362c313539305d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2235373763616264623665653362633633626663386334356531393064336335626265353339616366396337666135613962306162663463306335626162383734222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31395d7d');
INSERT INTO refold.entries_0 VALUES (1, 24, 1795140908393, 1, 12, '01a1f6bc-7569-766c-b033-14caa90ddc75', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203220697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 25, 1795140908393, 1, 12, '01a1f6bc-7569-766c-b033-14cb7c105fa6', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a32332c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3531372c226265666f7265223a3336372c22636f756e746564223a3531372c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 26, 1795140908396, 1, 13, '01a1f6bc-756c-75dd-8583-23c5021aab32', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520332e227d');
INSERT INTO refold.entries_0 VALUES (1, 27, 1795140908403, 1, 13, '01a1f6bc-7573-77f1-bc10-d0f3941752f3', true, false, 'default', 'request', '\x2f', '[[1,26]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a32367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a32362c226163636f756e74223a5b302c3534342c302c302c333030302c34335d2c22746f6b656e73223a3534342c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31332c2270616365223a5b302c372c323133345d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2234663438386336323564336661643130393339613061646663653536666138303233303736373862313632653432306566326436616439363330646432373331222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32335d7d');
INSERT INTO refold.entries_0 VALUES (1, 28, 1795140908405, 1, 14, '01a1f6bc-7575-76be-9569-77bcf4ebb7d5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226333222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20337d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 29, 1795140908405, 1, 14, '01a1f6bc-7575-76be-9569-77bde4a2a712', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a32372c227573616765223a7b22696e707574223a3534342c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3534342c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3534342c226265666f7265223a3531372c22636f756e746564223a3534342c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 30, 1795140908407, 1, 15, '01a1f6bc-7577-75a0-af3b-5e9dafc9e73b', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022333a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226333227d');
INSERT INTO refold.entries_0 VALUES (1, 31, 1795140908410, 1, 15, '01a1f6bc-757a-75cd-b64c-b56727605376', true, false, 'default', 'request', '\x2f', '[[1,30]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a33307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a33302c226163636f756e74223a5b302c3639342c302c302c333030302c35355d2c22746f6b656e73223a3639342c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31352c2270616365223a5b302c382c323832385d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2233303338316161306565366637636435626536323239656237386434316433336137383339303463626465313566313836396331383366396534343236623737222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32375d7d');
INSERT INTO refold.entries_0 VALUES (1, 32, 1795140908414, 1, 16, '01a1f6bc-757e-7325-bfc5-0e70a1e96bc1', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203320697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 33, 1795140908414, 1, 16, '01a1f6bc-757e-7325-bfc5-0e710f1fc967', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a33312c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3639342c226265666f7265223a3534342c22636f756e746564223a3639342c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 34, 1795140908417, 1, 17, '01a1f6bc-7581-7330-93fc-566f0b0fbe81', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520342e227d');
INSERT INTO refold.entries_0 VALUES (1, 35, 1795140908421, 1, 17, '01a1f6bc-7585-768c-b020-e0460fb2541d', true, false, 'default', 'request', '\x2f', '[[1,34]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a33347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a33342c226163636f756e74223a5b302c3732312c302c302c333030302c35375d2c22746f6b656e73223a3732312c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31372c2270616365223a5b302c392c333534395d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2262383966636336643032633734626666336134383337383632343065373031646638316537383038643764363734333738353966666136303361663634393963222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33315d7d');
INSERT INTO refold.entries_0 VALUES (1, 36, 1795140908426, 1, 18, '01a1f6bc-758a-76e3-9a0a-54c68ef2e9ae', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226334222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20347d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 37, 1795140908427, 1, 18, '01a1f6bc-758b-732d-96a0-62677f58410b', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a33352c227573616765223a7b22696e707574223a3732312c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3732312c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3732312c226265666f7265223a3639342c22636f756e746564223a3732312c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 38, 1795140908432, 1, 19, '01a1f6bc-7590-74c4-ab9e-dc28b802e552', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022343a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226334227d');
INSERT INTO refold.entries_0 VALUES (1, 39, 1795140908439, 1, 19, '01a1f6bc-7597-749b-841a-ea8b7ecc0b42', true, false, 'default', 'request', '\x2f', '[[1,38]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a33387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a33382c226163636f756e74223a5b302c3837312c302c302c333030302c36395d2c22746f6b656e73223a3837312c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31392c2270616365223a5b302c31302c343432305d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2232393938316563336533653864343238393932373265306166323439616638656163383163356231376530663965666466613963663731643135326162353162222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33355d7d');
INSERT INTO refold.entries_0 VALUES (1, 40, 1795140908441, 1, 20, '01a1f6bc-7599-7139-91d4-4437e69c8092', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203420697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 110, 1795140908711, 1, 50, '01a1f6bc-76a7-7504-917f-c7d52d2c22c7', false, false, 'default', 'note', '\x2f', NULL, NULL, '\x7b2274657874223a2257686174206120686f73742077726f746520646f776e2e227d');
INSERT INTO refold.entries_0 VALUES (1, 41, 1795140908441, 1, 20, '01a1f6bc-7599-7139-91d4-4437f6a4fc84', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a33392c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3837312c226265666f7265223a3732312c22636f756e746564223a3837312c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 42, 1795140908445, 1, 21, '01a1f6bc-759d-773a-927e-bca83e72c84c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520352e227d');
INSERT INTO refold.entries_0 VALUES (1, 43, 1795140908452, 1, 21, '01a1f6bc-75a4-7452-a9a8-09d2c3a5e53e', true, false, 'default', 'request', '\x2f', '[[1,42]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a34327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a34322c226163636f756e74223a5b302c3839382c302c302c333030302c37315d2c22746f6b656e73223a3839382c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32312c2270616365223a5b302c31312c353331385d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2230323065623565386661623465373834666432323266376536623963376435366239383339623431323762313466323736306537313864633333343435323232222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33395d7d');
INSERT INTO refold.entries_0 VALUES (1, 44, 1795140908453, 1, 22, '01a1f6bc-75a5-70ee-aa56-3e31ac96c807', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226335222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20357d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 45, 1795140908454, 1, 22, '01a1f6bc-75a6-7389-9c79-2937537f751e', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a34332c227573616765223a7b22696e707574223a3839382c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a3839382c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3839382c226265666f7265223a3837312c22636f756e746564223a3839382c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 46, 1795140908458, 1, 23, '01a1f6bc-75aa-747e-aa80-4e75ade7fcc8', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022353a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226335227d');
INSERT INTO refold.entries_0 VALUES (1, 47, 1795140908460, 1, 23, '01a1f6bc-75ac-76b2-8bd9-068a7d8a2d0b', true, false, 'default', 'request', '\x2f', '[[1,46]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a34367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a34362c226163636f756e74223a5b302c313034382c302c302c333030302c38335d2c22746f6b656e73223a313034382c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32332c2270616365223a5b302c31322c363336365d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2261373236353438323631666239663036646266643137626339383835626233326637626664633736633836343835656561356338323531316362316234326634222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34335d7d');
INSERT INTO refold.entries_0 VALUES (1, 48, 1795140908464, 1, 24, '01a1f6bc-75b0-70f0-b182-9eee82a13701', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203520697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 49, 1795140908464, 1, 24, '01a1f6bc-75b0-70f0-b182-9eeee29ff723', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a34372c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313034382c226265666f7265223a3839382c22636f756e746564223a313034382c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 50, 1795140908470, 1, 25, '01a1f6bc-75b6-7690-86f3-5c8e50c27406', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520362e227d');
INSERT INTO refold.entries_0 VALUES (1, 51, 1795140908472, 1, 25, '01a1f6bc-75b8-71a1-a15e-c87e3bc70cd9', true, false, 'default', 'request', '\x2f', '[[1,50]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a35307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a35302c226163636f756e74223a5b302c313037352c302c302c333030302c38365d2c22746f6b656e73223a313037352c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32352c2270616365223a5b302c31332c373434315d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2238633031623035383832613463333134313339613537353532623565353139303061316639373663646631333330303930363563626635623366653564353166222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34375d7d');
INSERT INTO refold.entries_0 VALUES (1, 52, 1795140908478, 1, 26, '01a1f6bc-75be-77cb-9fec-d63ed5446ece', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226336222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20367d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 53, 1795140908478, 1, 26, '01a1f6bc-75be-77cb-9fec-d63fc6e7f2c0', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a35312c227573616765223a7b22696e707574223a313037352c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313037352c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313037352c226265666f7265223a313034382c22636f756e746564223a313037352c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 54, 1795140908481, 1, 27, '01a1f6bc-75c1-72d9-b8de-f4fd27d15f85', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022363a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226336227d');
INSERT INTO refold.entries_0 VALUES (1, 55, 1795140908486, 1, 27, '01a1f6bc-75c6-71ee-beec-a4b14168f93d', true, false, 'default', 'request', '\x2f', '[[1,54]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a35347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a35342c226163636f756e74223a5b302c313232352c302c302c333030302c39385d2c22746f6b656e73223a313232352c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32372c2270616365223a5b302c31342c383636365d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2263613865343632666561646133666136353364333061343263636437623430663562643465303332303138303437633863393836343732393064383339613238222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35315d7d');
INSERT INTO refold.entries_0 VALUES (1, 56, 1795140908488, 1, 28, '01a1f6bc-75c8-77ff-b172-46478d03d150', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203620697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 57, 1795140908488, 1, 28, '01a1f6bc-75c8-77ff-b172-4648601d3338', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a35352c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313232352c226265666f7265223a313037352c22636f756e746564223a313232352c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 58, 1795140908494, 1, 29, '01a1f6bc-75ce-70ef-874c-12aa84de1962', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520372e227d');
INSERT INTO refold.entries_0 VALUES (1, 59, 1795140908497, 1, 29, '01a1f6bc-75d1-74c3-9558-1eae7a6f54cc', true, false, 'default', 'request', '\x2f', '[[1,58]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a35387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a35382c226163636f756e74223a5b302c313235322c302c302c333030302c3130305d2c22746f6b656e73223a313235322c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a32392c2270616365223a5b302c31352c393931385d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2235363332366462353530316632356337333761306333396263326639646530323264393562666261653037646161303739663566333766306431626563323834222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35355d7d');
INSERT INTO refold.entries_0 VALUES (1, 60, 1795140908503, 1, 30, '01a1f6bc-75d7-757d-94ba-70efefd92929', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226337222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20377d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 61, 1795140908504, 1, 30, '01a1f6bc-75d8-76dc-92f2-6bd09dcaca8d', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a35392c227573616765223a7b22696e707574223a313235322c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313235322c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313235322c226265666f7265223a313232352c22636f756e746564223a313235322c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 62, 1795140908507, 1, 31, '01a1f6bc-75db-72c1-9f91-58c3b5339d55', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022373a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226337227d');
INSERT INTO refold.entries_0 VALUES (1, 63, 1795140908511, 1, 31, '01a1f6bc-75df-7379-826e-8dfb6a6c1ed6', true, false, 'default', 'request', '\x2f', '[[1,62]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a36327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a36322c226163636f756e74223a5b302c313430322c302c302c333030302c3131325d2c22746f6b656e73223a313430322c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33312c2270616365223a5b302c31362c31313332305d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2234396533303162376536366565313565643539363639636636363165303336356264376430613237373165646137356165333336306530633535386531316239222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35395d7d');
INSERT INTO refold.entries_0 VALUES (1, 64, 1795140908514, 1, 32, '01a1f6bc-75e2-756b-8aed-fd8f375e0650', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203720697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 65, 1795140908514, 1, 32, '01a1f6bc-75e2-756b-8aed-fd902f4ade6d', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a36332c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313430322c226265666f7265223a313235322c22636f756e746564223a313430322c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 66, 1795140908517, 1, 33, '01a1f6bc-75e5-744d-915a-f733a850ed4d', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520382e227d');
INSERT INTO refold.entries_0 VALUES (1, 67, 1795140908521, 1, 33, '01a1f6bc-75e9-727d-a1c4-7c794d14171b', true, false, 'default', 'request', '\x2f', '[[1,66]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a36367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a36362c226163636f756e74223a5b302c313432392c302c302c333030302c3131345d2c22746f6b656e73223a313432392c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33332c2270616365223a5b302c31372c31323734395d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2236363533626135393839336536336165323466343231366162663738316439373930326566626563303837653066323036303030356338643239333666626333222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36335d7d');
INSERT INTO refold.entries_0 VALUES (1, 68, 1795140908526, 1, 34, '01a1f6bc-75ee-7601-8a3a-8e0b924df2fd', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226338222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20387d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 69, 1795140908526, 1, 34, '01a1f6bc-75ee-7601-8a3a-8e0b98229e02', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a36372c227573616765223a7b22696e707574223a313432392c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313432392c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313432392c226265666f7265223a313430322c22636f756e746564223a313432392c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 70, 1795140908529, 1, 35, '01a1f6bc-75f1-7074-91ec-32d50aaeb34a', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022383a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226338227d');
INSERT INTO refold.entries_0 VALUES (1, 71, 1795140908537, 1, 35, '01a1f6bc-75f9-719f-8800-d4debeb28538', true, false, 'default', 'request', '\x2f', '[[1,70]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a37307d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a37302c226163636f756e74223a5b302c313537392c302c302c333030302c3132365d2c22746f6b656e73223a313537392c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33352c2270616365223a5b302c31382c31343332385d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2266313034666430303330663133353063646161373866353334366263633931633562636561373264313762633232393631333037303166356530323830376235222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36375d7d');
INSERT INTO refold.entries_0 VALUES (1, 72, 1795140908538, 1, 36, '01a1f6bc-75fa-702b-9238-294e994b1819', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203820697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 73, 1795140908539, 1, 36, '01a1f6bc-75fb-7214-a28b-c97e544aa2da', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a37312c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313537392c226265666f7265223a313432392c22636f756e746564223a313537392c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 74, 1795140908542, 1, 37, '01a1f6bc-75fe-75b4-b0ca-6a4bad9bd2f5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202252656164207061676520392e227d');
INSERT INTO refold.entries_0 VALUES (1, 75, 1795140908548, 1, 37, '01a1f6bc-7604-7275-b68a-c3f9a30dcbb2', true, false, 'default', 'request', '\x2f', '[[1,74]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a37347d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a37342c226163636f756e74223a5b302c313630362c302c302c333030302c3132385d2c22746f6b656e73223a313630362c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33372c2270616365223a5b302c31392c31353933345d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2266373362366639613961383431396439323837663463633631313437643032646134303661376335646661303565646465666638373764393931383132663739222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37315d7d');
INSERT INTO refold.entries_0 VALUES (1, 76, 1795140908549, 1, 38, '01a1f6bc-7605-70c3-a745-b8e54fa65aa1', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a20226339222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a20397d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 77, 1795140908549, 1, 38, '01a1f6bc-7605-70c3-a745-b8e629a83dd7', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a37352c227573616765223a7b22696e707574223a313630362c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313630362c226f7574707574223a32332c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313630362c226265666f7265223a313537392c22636f756e746564223a313630362c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 78, 1795140908554, 1, 39, '01a1f6bc-760a-7485-a71a-0cae7a33fcb9', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a2022393a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a20226339227d');
INSERT INTO refold.entries_0 VALUES (1, 111, 1795140908712, 1, 50, '01a1f6bc-76a8-76dd-9d09-bcbd634da0dc', false, false, 'default', 'note', '\x2f', NULL, '[[],["e9b0015594030c029f167a30522c7dd2ec90379b6026ef7c7dd74b07d0bc63dd"]]', '\x7b2274657874223a225769746820616e206174746163686d656e742e227d');
INSERT INTO refold.entries_0 VALUES (1, 79, 1795140908556, 1, 39, '01a1f6bc-760c-77fa-8c39-837521c399cf', true, false, 'default', 'request', '\x2f', '[[1,78]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a37387d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a37382c226163636f756e74223a5b302c313735362c302c302c333030302c3134305d2c22746f6b656e73223a313735362c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a33392c2270616365223a5b302c32302c31373639305d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2265323461313165306636616562366462623863313734386363326236656636346462643366656461656361343933366336626437366136306532313238353464222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37312c37355d7d');
INSERT INTO refold.entries_0 VALUES (1, 80, 1795140908562, 1, 40, '01a1f6bc-7612-768d-bb8d-e35d31750f4d', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202250616765203920697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 81, 1795140908562, 1, 40, '01a1f6bc-7612-768d-bb8d-e35e08424c4e', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a37392c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313735362c226265666f7265223a313630362c22636f756e746564223a313735362c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 84, 1795140908573, 1, 42, '01a1f6bc-761d-70b5-afc5-db950330021d', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a202249207365652e227d');
INSERT INTO refold.entries_0 VALUES (1, 85, 1795140908573, 1, 42, '01a1f6bc-761d-70b5-afc5-db9544d5427f', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a38332c227573616765223a7b22696e707574223a313738342c226f7574707574223a31312c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313738342c226f7574707574223a31312c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313738342c226265666f7265223a313735362c22636f756e746564223a313738342c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 86, 1795140908578, 1, 42, 'e29c6150-62de-4c92-b387-8db364d79e03', true, false, 'default', 'fold.start', '\x2f', '[[3,81]]', NULL, '\x7b22666f6c64223a2265323963363135302d363264652d346339322d623338372d386462333634643739653033222c227370616e73223a5b7b226669727374223a332c226c617374223a38317d5d2c2274726967676572223a226d616e75616c222c22636f6e74657874223a7b22666f6c64223a7b226b656570223a7b2268656164223a2266697273742072756e222c22686561645f746f6b656e73223a3132302c22756e6974223a22746f6b656e73222c22616d6f756e74223a3234302e302c226c65617374223a302c22736e6170223a227475726e227d2c22706c6163656d656e74223a227265706c6163656d656e74222c226170706c79223a226261636b67726f756e64222c2277616974223a352e302c2262726561646372756d62223a747275652c22777269746572223a226c6f67222c2267726f756e64223a22636865636b222c22696e707574223a227472616e736372697074222c22636f766572616765223a302e352c2263616c6c5f6c696d6974223a3132302e302c2273797374656d5f6368617273223a302c227265666572656e636573223a66616c73652c226d61785f746f6b656e73223a3336302c226c65646765725f746f6b656e73223a3135302c22726567696f6e5f746f6b656e73223a32352c22757365725f6368617273223a313230302c22757365725f6d65737361676573223a313030302c22757365725f636c6970223a34303030307d2c22686f7374223a7b7d2c22746f6b656e73223a313735372c226d6f64656c223a22746573743a6d6f64656c222c2273756d6d6172697a6572223a226175746f222c2261745f6f6e6365223a66616c73652c22736861726564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 87, 1795140908616, 1, 42, '01a1f6bc-7648-7027-927c-5c36b295a513', true, false, 'default', 'fold.complete', '\x2f', '[[3,81]]', NULL, '\x7b22666f6c64223a2265323963363135302d363264652d346339322d623338372d386462333634643739653033222c227370616e73223a5b7b226669727374223a332c226c617374223a38317d5d2c2273756d6d617279223a7b226279223a2262726561646372756d62222c227469746c65223a2252656164207061676520392e222c2273656374696f6e73223a5b7b2268656164696e67223a224361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d222c22636c61696d73223a5b7b2274657874223a22222c22736f7572636573223a5b7b22736571223a382c22696e646578223a307d5d2c2271756f7465223a2250616765203020697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a223020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a31362c22696e646578223a307d5d2c2271756f7465223a2250616765203120697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a32342c22696e646578223a307d5d2c2271756f7465223a2250616765203220697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a33322c22696e646578223a307d5d2c2271756f7465223a2250616765203320697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22323620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34302c22696e646578223a307d5d2c2271756f7465223a2250616765203420697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22333420726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34382c22696e646578223a307d5d2c2271756f7465223a2250616765203520697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22343220726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a35362c22696e646578223a307d5d2c2271756f7465223a2250616765203620697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a36342c22696e646578223a307d5d2c2271756f7465223a2250616765203720697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a37322c22696e646578223a307d5d2c2271756f7465223a2250616765203820697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22363620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d2c2271756f7465223a2250616765203920697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22373420726573756c74227d5d7d2c7b2268656164696e67223a2257686572652069742073746f6f64222c22636c61696d73223a5b7b2274657874223a22546865206d6f64656c2063616c6c65642072656164287b5c22706167655c223a20397d29222c22736f7572636573223a5b7b22736571223a37362c22696e646578223a307d5d7d2c7b2274657874223a22546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d7d5d7d5d2c2264697265637469766573223a5b7b2274657874223a2252656164207061676520312e222c22736f75726365223a7b22736571223a31302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520322e222c22736f75726365223a7b22736571223a31382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520332e222c22736f75726365223a7b22736571223a32362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520342e222c22736f75726365223a7b22736571223a33342c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520352e222c22736f75726365223a7b22736571223a34322c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520362e222c22736f75726365223a7b22736571223a35302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520372e222c22736f75726365223a7b22736571223a35382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520382e222c22736f75726365223a7b22736571223a36362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520392e222c22736f75726365223a7b22736571223a37342c22696e646578223a307d2c226368617273223a31327d5d2c227265616473223a5b5b3238353532333535393535342c3238353532333535393535342c302c3536353237383130333638302c7b22736571223a342c22696e646578223a307d2c7b22736571223a362c22696e646578223a307d2c312c305d2c5b3733343931343734343639342c3733343931343734343639342c302c3539303936383237343632382c7b22736571223a31322c22696e646578223a307d2c7b22736571223a31342c22696e646578223a307d2c312c305d2c5b3932343434333130303538312c3932343434333130303538312c302c3837333937393934333339352c7b22736571223a32302c22696e646578223a307d2c7b22736571223a32322c22696e646578223a307d2c312c305d2c5b3837353734313834353037322c3837353734313834353037322c302c3839363330323837383035322c7b22736571223a32382c22696e646578223a307d2c7b22736571223a33302c22696e646578223a307d2c312c305d2c5b3437343734363436363533322c3437343734363436363533322c302c3335323739383539363832322c7b22736571223a33362c22696e646578223a307d2c7b22736571223a33382c22696e646578223a307d2c312c305d2c5b3434333536323633333936392c3434333536323633333936392c302c3635333532313537333433302c7b22736571223a34342c22696e646578223a307d2c7b22736571223a34362c22696e646578223a307d2c312c305d2c5b3431303132393030303339312c3431303132393030303339312c302c3934303231373335333930342c7b22736571223a35322c22696e646578223a307d2c7b22736571223a35342c22696e646578223a307d2c312c305d2c5b35313339313435363438352c35313339313435363438352c302c3730353933333534373234352c7b22736571223a36302c22696e646578223a307d2c7b22736571223a36322c22696e646578223a307d2c312c305d2c5b3234373830313230383430322c3234373830313230383430322c302c3730343738313230363731392c7b22736571223a36382c22696e646578223a307d2c7b22736571223a37302c22696e646578223a307d2c312c305d2c5b3336373632393433333733362c3336373632393433333733362c302c3233313936393231373830342c7b22736571223a37362c22696e646578223a307d2c7b22736571223a37382c22696e646578223a307d2c312c305d5d2c226d65737361676573223a33392c22746f6b656e73223a313735372c2273686f776e223a5b7b226b696e64223a2270726f6d7074222c2274657874223a225b3339206561726c696572206d657373616765732061726520666f6c64656420686572652e2054686569722066756c6c2074657874206973206e6f7420612070617274206f66207468697320726571756573742e205768617420666f6c6c6f77732069732071756f7465642066726f6d207468656d2061732061207265636f7264206f6620776861742077617320736169643b2069742061736b7320666f72206e6f7468696e6720627920697473656c662e5d5c6e5c6e2323205468652075736572277320776f7264733a207374616e64696e672072756c65732066697273742c207468656e20746865206f74686572732c206e6577657374206c6173745c6e2d2028656e747279203130292052656164207061676520312e5c6e2d2028656e747279203138292052656164207061676520322e5c6e2d2028656e747279203236292052656164207061676520332e5c6e2d2028656e747279203334292052656164207061676520342e5c6e2d2028656e747279203432292052656164207061676520352e5c6e2d2028656e747279203530292052656164207061676520362e5c6e2d2028656e747279203538292052656164207061676520372e5c6e2d2028656e747279203636292052656164207061676520382e5c6e2d2028656e747279203734292052656164207061676520392e5c6e5c6e2323204361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d5c6e2d20617373697374616e7420383a205c2250616765203020697320726561642e5c225c6e2d20617373697374616e742031362c2061736b656420696e2031303a205c2250616765203120697320726561642e5c225c6e2d20617373697374616e742032342c2061736b656420696e2031383a205c2250616765203220697320726561642e5c225c6e2d20617373697374616e742033322c2061736b656420696e2032363a205c2250616765203320697320726561642e5c225c6e2d20617373697374616e742034302c2061736b656420696e2033343a205c2250616765203420697320726561642e5c225c6e2d20617373697374616e742034382c2061736b656420696e2034323a205c2250616765203520697320726561642e5c225c6e2d20617373697374616e742035362c2061736b656420696e2035303a205c2250616765203620697320726561642e5c225c6e2d20617373697374616e742036342c2061736b656420696e2035383a205c2250616765203720697320726561642e5c225c6e2d20617373697374616e742037322c2061736b656420696e2036363a205c2250616765203820697320726561642e5c225c6e5c6e23232057686572652069742073746f6f645c6e2d20546865206d6f64656c2063616c6c65642072656164287b5c22706167655c223a20397d292028656e747279203736295c6e2d20546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c222028656e74727920383029227d5d7d7d');
INSERT INTO refold.entries_0 VALUES (1, 88, 1795140908631, 1, 42, '01a1f6bc-7657-73bd-91f0-90308d931eb7', true, false, 'default', 'pin', '\x2f', NULL, NULL, '\x7b227061727473223a5b7b22736571223a322c22696e646578223a307d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 89, 1795140908636, 1, 43, '01a1f6bc-765c-70e6-b0ff-d012d7d2255f', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a20225265616420706167652031302e227d');
INSERT INTO refold.entries_0 VALUES (1, 91, 1795140908643, 1, 44, '01a1f6bc-7663-74cb-a9a2-3136fb25c4dd', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a2022633130222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a2031307d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 92, 1795140908643, 1, 44, '01a1f6bc-7663-74cb-a9a2-31373fa2d9ea', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a39302c227573616765223a7b22696e707574223a3339382c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a313830382c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313830382c226265666f7265223a313738342c22636f756e746564223a3339382c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a747275657d7d');
INSERT INTO refold.entries_0 VALUES (1, 93, 1795140908646, 1, 45, '01a1f6bc-7666-74b9-a0a1-22104af7a2b3', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a202231303a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a2022633130227d');
INSERT INTO refold.entries_0 VALUES (1, 83, 1795140908571, 1, 41, '01a1f6bc-761b-726b-8217-10948cbd3ff1', true, true, 'default', 'request', '\x2f', '[[1,82]]', NULL, '\x7b22646967657374223a2262333261363432373563333366333063386665663530316464373536373863633864353831383630306234333666646532613335363930383337383236303639222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 82, 1795140908566, 1, 41, '01a1f6bc-7616-70e2-991a-c299f2790cfa', false, true, 'default', 'message', '\x2f', NULL, NULL, '\x7b7d');
INSERT INTO refold.entries_0 VALUES (2, 107, 1795140908885, 1, 49, '01a1f6bc-7755-7561-8ef8-97dd1bb56c52', true, false, 'default', 'request', '\x2f', '[[1,5],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[83,106]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a357d2c7b226669727374223a38332c226c617374223a3130367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a3130362c226163636f756e74223a5b302c3936392c302c302c333030302c36305d2c22746f6b656e73223a3936392c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31322c22636f7272656374696f6e223a5b22657374696d617465222c312e332c302e303632355d2c2270616365223a5b3130302c322c313734345d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2262626132626436363734663431336130396434626564376134616436396562343432336638663734366662303933656633303864306562326332666164356361222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37312c37352c37392c3130335d7d');
INSERT INTO refold.entries_0 VALUES (2, 108, 1795140908889, 1, 50, '01a1f6bc-7759-710d-aaeb-cef5b3a9b9f5', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a20225061676520313220697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (2, 109, 1795140908889, 1, 50, '01a1f6bc-7759-710d-aaeb-cef6339f1714', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130372c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a323039332c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a323235332c226265666f7265223a323035392c22636f756e746564223a3936392c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 95, 1795140908650, 1, 46, '01a1f6bc-766a-70e3-b4c8-607c896515f1', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a20225061676520313020697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 96, 1795140908650, 1, 46, '01a1f6bc-766a-70e3-b4c8-607cbfdeb680', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a39342c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a333231312c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a313935392c226265666f7265223a313830382c22636f756e746564223a3534392c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 97, 1795140908653, 1, 46, '01a1f6bc-766d-766b-a21d-9c0550f647f6', true, false, 'default', 'unpin', '\x2f', NULL, NULL, '\x7b227061727473223a5b7b22736571223a322c22696e646578223a307d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 98, 1795140908659, 1, 46, '01a1f6bc-7673-7386-a5c5-b734dab498ed', true, false, 'default', 'fold.undo', '\x2f', NULL, NULL, '\x7b22666f6c64223a2265323963363135302d363264652d346339322d623338372d386462333634643739653033227d');
INSERT INTO refold.entries_0 VALUES (1, 99, 1795140908659, 1, 46, '01a1f6bc-7673-7386-a5c5-b7350caba476', true, false, 'default', 'fold.start', '\x2f', NULL, NULL, '\x7b22666f6c64223a2230306366346631352d376266392d346234362d396465362d373634373331396439323633222c227370616e73223a5b7b226669727374223a362c226c617374223a38317d5d2c2274726967676572223a22756e666f6c64227d');
INSERT INTO refold.entries_0 VALUES (1, 100, 1795140908659, 1, 46, '01a1f6bc-7673-7386-a5c5-b735c53f496f', true, false, 'default', 'fold.complete', '\x2f', '[[6,81],[87,87]]', NULL, '\x7b22666f6c64223a2230306366346631352d376266392d346234362d396465362d373634373331396439323633222c227370616e73223a5b7b226669727374223a362c226c617374223a38317d5d2c2273756d6d617279223a7b226279223a2262726561646372756d62222c227469746c65223a2252656164207061676520392e222c2273656374696f6e73223a5b7b2268656164696e67223a224361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d222c22636c61696d73223a5b7b2274657874223a22222c22736f7572636573223a5b7b22736571223a382c22696e646578223a307d5d2c2271756f7465223a2250616765203020697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a223020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a31362c22696e646578223a307d5d2c2271756f7465223a2250616765203120697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a32342c22696e646578223a307d5d2c2271756f7465223a2250616765203220697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22313820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a33322c22696e646578223a307d5d2c2271756f7465223a2250616765203320697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22323620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34302c22696e646578223a307d5d2c2271756f7465223a2250616765203420697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22333420726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a34382c22696e646578223a307d5d2c2271756f7465223a2250616765203520697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22343220726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a35362c22696e646578223a307d5d2c2271756f7465223a2250616765203620697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353020726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a36342c22696e646578223a307d5d2c2271756f7465223a2250616765203720697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22353820726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a37322c22696e646578223a307d5d2c2271756f7465223a2250616765203820697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22363620726573756c74227d2c7b2274657874223a22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d2c2271756f7465223a2250616765203920697320726561642e222c22737065616b6572223a22617373697374616e74222c226b6579223a22373420726573756c74227d5d7d2c7b2268656164696e67223a2257686572652069742073746f6f64222c22636c61696d73223a5b7b2274657874223a22546865206d6f64656c2063616c6c65642072656164287b5c22706167655c223a20397d29222c22736f7572636573223a5b7b22736571223a37362c22696e646578223a307d5d7d2c7b2274657874223a22546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c22222c22736f7572636573223a5b7b22736571223a38302c22696e646578223a307d5d7d5d7d5d2c2264697265637469766573223a5b7b2274657874223a2252656164207061676520312e222c22736f75726365223a7b22736571223a31302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520322e222c22736f75726365223a7b22736571223a31382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520332e222c22736f75726365223a7b22736571223a32362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520342e222c22736f75726365223a7b22736571223a33342c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520352e222c22736f75726365223a7b22736571223a34322c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520362e222c22736f75726365223a7b22736571223a35302c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520372e222c22736f75726365223a7b22736571223a35382c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520382e222c22736f75726365223a7b22736571223a36362c22696e646578223a307d2c226368617273223a31327d2c7b2274657874223a2252656164207061676520392e222c22736f75726365223a7b22736571223a37342c22696e646578223a307d2c226368617273223a31327d5d2c227265616473223a5b5b3238353532333535393535342c3238353532333535393535342c302c3536353237383130333638302c7b22736571223a342c22696e646578223a307d2c7b22736571223a362c22696e646578223a307d2c312c305d2c5b3733343931343734343639342c3733343931343734343639342c302c3539303936383237343632382c7b22736571223a31322c22696e646578223a307d2c7b22736571223a31342c22696e646578223a307d2c312c305d2c5b3932343434333130303538312c3932343434333130303538312c302c3837333937393934333339352c7b22736571223a32302c22696e646578223a307d2c7b22736571223a32322c22696e646578223a307d2c312c305d2c5b3837353734313834353037322c3837353734313834353037322c302c3839363330323837383035322c7b22736571223a32382c22696e646578223a307d2c7b22736571223a33302c22696e646578223a307d2c312c305d2c5b3437343734363436363533322c3437343734363436363533322c302c3335323739383539363832322c7b22736571223a33362c22696e646578223a307d2c7b22736571223a33382c22696e646578223a307d2c312c305d2c5b3434333536323633333936392c3434333536323633333936392c302c3635333532313537333433302c7b22736571223a34342c22696e646578223a307d2c7b22736571223a34362c22696e646578223a307d2c312c305d2c5b3431303132393030303339312c3431303132393030303339312c302c3934303231373335333930342c7b22736571223a35322c22696e646578223a307d2c7b22736571223a35342c22696e646578223a307d2c312c305d2c5b35313339313435363438352c35313339313435363438352c302c3730353933333534373234352c7b22736571223a36302c22696e646578223a307d2c7b22736571223a36322c22696e646578223a307d2c312c305d2c5b3234373830313230383430322c3234373830313230383430322c302c3730343738313230363731392c7b22736571223a36382c22696e646578223a307d2c7b22736571223a37302c22696e646578223a307d2c312c305d2c5b3336373632393433333733362c3336373632393433333733362c302c3233313936393231373830342c7b22736571223a37362c22696e646578223a307d2c7b22736571223a37382c22696e646578223a307d2c312c305d5d2c226d65737361676573223a33382c22746f6b656e73223a313733342c2273686f776e223a5b7b226b696e64223a2270726f6d7074222c2274657874223a225b3339206561726c696572206d657373616765732061726520666f6c64656420686572652e2054686569722066756c6c2074657874206973206e6f7420612070617274206f66207468697320726571756573742e205768617420666f6c6c6f77732069732071756f7465642066726f6d207468656d2061732061207265636f7264206f6620776861742077617320736169643b2069742061736b7320666f72206e6f7468696e6720627920697473656c662e5d5c6e5c6e2323205468652075736572277320776f7264733a207374616e64696e672072756c65732066697273742c207468656e20746865206f74686572732c206e6577657374206c6173745c6e2d2028656e747279203130292052656164207061676520312e5c6e2d2028656e747279203138292052656164207061676520322e5c6e2d2028656e747279203236292052656164207061676520332e5c6e2d2028656e747279203334292052656164207061676520342e5c6e2d2028656e747279203432292052656164207061676520352e5c6e2d2028656e747279203530292052656164207061676520362e5c6e2d2028656e747279203538292052656164207061676520372e5c6e2d2028656e747279203636292052656164207061676520382e5c6e2d2028656e747279203734292052656164207061676520392e5c6e5c6e2323204361757365732c206465636973696f6e7320616e6420726573756c74732c2061732074686520617373697374616e7420707574207468656d5c6e2d20617373697374616e7420383a205c2250616765203020697320726561642e5c225c6e2d20617373697374616e742031362c2061736b656420696e2031303a205c2250616765203120697320726561642e5c225c6e2d20617373697374616e742032342c2061736b656420696e2031383a205c2250616765203220697320726561642e5c225c6e2d20617373697374616e742033322c2061736b656420696e2032363a205c2250616765203320697320726561642e5c225c6e2d20617373697374616e742034302c2061736b656420696e2033343a205c2250616765203420697320726561642e5c225c6e2d20617373697374616e742034382c2061736b656420696e2034323a205c2250616765203520697320726561642e5c225c6e2d20617373697374616e742035362c2061736b656420696e2035303a205c2250616765203620697320726561642e5c225c6e2d20617373697374616e742036342c2061736b656420696e2035383a205c2250616765203720697320726561642e5c225c6e2d20617373697374616e742037322c2061736b656420696e2036363a205c2250616765203820697320726561642e5c225c6e5c6e23232057686572652069742073746f6f645c6e2d20546865206d6f64656c2063616c6c65642072656164287b5c22706167655c223a20397d292028656e747279203736295c6e2d20546865206d6f64656c206c61737420736169643a205c2250616765203920697320726561642e5c222028656e74727920383029227d5d2c226f766572223a5b5d2c22636f6e74696e756573223a38377d7d');
INSERT INTO refold.entries_0 VALUES (1, 101, 1795140908686, 1, 47, '01a1f6bc-768e-7066-9ed1-2e94adb92d0c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a20225265616420706167652031312e227d');
INSERT INTO refold.entries_0 VALUES (1, 103, 1795140908693, 1, 48, '01a1f6bc-7695-7747-91e1-3e1979e8c702', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a2022633131222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a2031317d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (1, 104, 1795140908693, 1, 48, '01a1f6bc-7695-7747-91e1-3e1a75ef4ddf', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130322c227573616765223a7b22696e707574223a3631372c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a323030342c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a323030342c226265666f7265223a313935392c22636f756e746564223a3631372c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a747275657d7d');
INSERT INTO refold.entries_0 VALUES (1, 105, 1795140908696, 1, 49, '01a1f6bc-7698-7388-aee0-97f8d95e3494', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a202231313a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a2022633131227d');
INSERT INTO refold.entries_0 VALUES (1, 107, 1795140908699, 1, 50, '01a1f6bc-769b-7503-9359-96fd0859fd07', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a20225061676520313120697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (1, 108, 1795140908700, 1, 50, '01a1f6bc-769c-7470-90fe-3821e4425513', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130362c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a323532352c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a323135352c226265666f7265223a323030342c22636f756e746564223a3736382c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (1, 109, 1795140908702, 1, 50, '01a1f6bc-769e-75ab-aae7-f3901f03ccfa', true, false, 'default', 'rewind', '\x2f', NULL, NULL, '\x7b22746f223a3130307d');
INSERT INTO refold.entries_0 VALUES (1, 90, 1795140908640, 1, 43, '01a1f6bc-7660-72f1-b8c4-437f6a7e72e9', true, true, 'default', 'request', '\x2f', '[[1,3],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,89]]', NULL, '\x7b22646967657374223a2265613761346632363565343336643665656331613965666434363636343137393832643462356161326433646135623238363831306533636333666234653461222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 94, 1795140908648, 1, 45, '01a1f6bc-7668-7115-b6a0-a1ad73dd8e4a', true, true, 'default', 'request', '\x2f', '[[1,3],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,93]]', NULL, '\x7b22646967657374223a2263396639313135316635303736343933663563343631363230663632393136316438346364376336343161326437373263653431313434353963643435363235222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 102, 1795140908691, 1, 47, '01a1f6bc-7693-76dc-aac6-3394cf941aa4', true, true, 'default', 'request', '\x2f', '[[1,5],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,101]]', NULL, '\x7b22646967657374223a2261353830303736336264626266363066386633353536626539326136623763623837626562623538356136356538656238393765653265353939333839376163222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 106, 1795140908698, 1, 49, '01a1f6bc-769a-7235-8c5c-88d91a8cd707', true, true, 'default', 'request', '\x2f', '[[1,5],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[82,105]]', NULL, '\x7b22646967657374223a2238306137326363303366663535333863383636623731303666636339316631616531613463643130336230633731636532383464303235393764376130396539222c226c696d6974223a333030302c226d6f64656c223a22746573743a6d6f64656c227d');
INSERT INTO refold.entries_0 VALUES (1, 112, 1795140908769, 1, 50, '01a1f6bc-76e1-73e1-b0ae-a5acccfadee6', false, false, 'default', 'forget', '\x2f', NULL, NULL, '\x7b227370616e223a7b226669727374223a38322c226c617374223a38327d7d');
INSERT INTO refold.entries_0 VALUES (2, 101, 1795140908773, 1, 46, '01a1f6bc-76e5-7004-b508-1b2db203d707', false, false, 'default', 'forget', '\x2f', NULL, NULL, '\x7b227370616e223a7b226669727374223a38322c226c617374223a38327d7d');
INSERT INTO refold.entries_0 VALUES (2, 102, 1795140908861, 1, 47, '01a1f6bc-773d-762b-a05a-99ee2397f358', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a20225265616420706167652031322e227d');
INSERT INTO refold.entries_0 VALUES (2, 103, 1795140908870, 1, 47, '01a1f6bc-7746-7529-bd22-c373993e54ee', true, false, 'default', 'request', '\x2f', '[[1,5],[7,7],[11,11],[15,15],[19,19],[23,23],[27,27],[31,31],[35,35],[39,39],[43,43],[47,47],[51,51],[55,55],[59,59],[63,63],[67,67],[71,71],[75,75],[79,79],[83,102]]', '[[],["51acc9c9ceccff002fbc8ff29af1453d2d638c53fc9edb4a0431d87c5111115a"]]', '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a357d2c7b226669727374223a38332c226c617374223a3130327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a3130322c226163636f756e74223a5b302c3737352c302c302c333030302c34385d2c22746f6b656e73223a3737352c226c61796f7574223a7b22676f6e65223a5b5b7b226669727374223a362c226c617374223a38317d2c22666f6c646564225d2c5b7b226669727374223a38322c226c617374223a38327d2c22666f72676f7474656e225d5d2c22696e7365727473223a5b7b22696e73657274223a7b226265666f7265223a352c226b696e64223a2272657475726e222c2274657874223a22496e74657272757074656420627920757365722e222c22726561736f6e223a22756e616e737765726564222c22746f6f6c223a2272656164222c2263616c6c223a226330222c22736f7572636573223a5b7b22736571223a342c22696e646578223a307d5d7d7d2c7b22696e73657274223a7b226265666f7265223a362c226b696e64223a2270726f6d7074222c2274657874223a2235316163633963396365636366663030326662633866663239616631343533643264363338633533666339656462346130343331643837633531313131313561222c22726561736f6e223a2273756d6d617279222c22736f7572636573223a5b7b22736571223a3130302c22696e646578223a307d5d7d2c22686173686564223a747275657d5d7d2c2273657474696e6773223a7b7d2c226d65737361676573223a31302c22636f7272656374696f6e223a5b22657374696d617465222c312e332c302e303632355d2c2270616365223a5b3130302c312c3737355d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2232613062306263643132623061306636376663626264383636663562663036616236333430343365303465316463356539633838386538356161623533653164222c226c696d6974223a333030302c22636861696e223a5b332c372c31312c31352c31392c32332c32372c33312c33352c33392c34332c34372c35312c35352c35392c36332c36372c37312c37352c37395d7d');
INSERT INTO refold.entries_0 VALUES (2, 104, 1795140908874, 1, 48, '01a1f6bc-774a-734c-ae89-ca5e1ae58f31', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a2022633132222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a2031327d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (2, 105, 1795140908874, 1, 48, '01a1f6bc-774a-734c-ae89-ca5e20cf09b0', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a3130332c227573616765223a7b22696e707574223a3737352c226f7574707574223a33302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a323035392c226f7574707574223a33302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a323035392c226265666f7265223a313830322c22636f756e746564223a3737352c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a747275657d7d');
INSERT INTO refold.entries_0 VALUES (2, 106, 1795140908879, 1, 49, '01a1f6bc-774f-771c-a90c-6f88f4195051', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a202231323a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a2022633132227d');
INSERT INTO refold.entries_0 VALUES (3, 1, 1795140908895, 1, 0, '01a1f6bc-775f-75c9-b836-76b26a6ce066', true, false, 'default', 'session', '\x2f', NULL, NULL, '\x7b22666f726d6174223a226f70656e61692d63686174222c2270726f66696c65223a2262616c616e636564227d');
INSERT INTO refold.entries_0 VALUES (3, 2, 1795140908902, 1, 1, '01a1f6bc-7766-7563-9731-f3f10a4b5849', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a202248656c6c6f2e227d');
INSERT INTO refold.entries_0 VALUES (3, 3, 1795140908903, 1, 1, '01a1f6bc-7767-7123-ab85-2b2372190408', true, false, 'default', 'clear', '\x2f', NULL, NULL, '\x7b7d');
INSERT INTO refold.entries_0 VALUES (4, 1, 1795140908910, 1, 0, '01a1f6bc-776e-74c4-937c-11f26081a3e4', true, false, 'default', 'session', '\x2f', NULL, NULL, '\x7b22666f726d6174223a226f70656e61692d63686174222c2270726f66696c65223a2262616c616e636564227d');
INSERT INTO refold.entries_0 VALUES (4, 2, 1795140908915, 1, 1, '01a1f6bc-7773-77b7-9eed-e28b70fcd6eb', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a202275736572222c2022636f6e74656e74223a20225265616420706167652031332e227d');
INSERT INTO refold.entries_0 VALUES (4, 3, 1795140908917, 1, 1, '01a1f6bc-7775-76e3-a36d-8a943b7080fb', true, false, 'default', 'request', '\x2f', '[[1,2]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a327d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a322c226163636f756e74223a5b302c31332c302c302c333030302c315d2c22746f6b656e73223a31332c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a312c2270616365223a5b302c312c31335d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2236383566663630303464343366313066373930303164306566306437663333383139616165636138393466306163356432363030356135323231386338613463222c226c696d6974223a333030307d');
INSERT INTO refold.entries_0 VALUES (4, 4, 1795140908918, 1, 2, '01a1f6bc-7776-7653-94a8-acd684eef88c', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a2022222c2022746f6f6c5f63616c6c73223a205b7b226964223a2022633133222c202274797065223a202266756e6374696f6e222c202266756e6374696f6e223a207b226e616d65223a202272656164222c2022617267756d656e7473223a20227b5c22706167655c223a2031337d227d7d5d7d');
INSERT INTO refold.entries_0 VALUES (4, 5, 1795140908918, 1, 2, '01a1f6bc-7776-7653-94a8-acd760c173e1', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a332c227573616765223a7b22696e707574223a31332c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22657374696d61746564223a747275657d2c22756e6d616e61676564223a7b22696e707574223a31332c226f7574707574223a32342c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a31332c226265666f7265223a302c22636f756e746564223a31332c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');
INSERT INTO refold.entries_0 VALUES (4, 6, 1795140908921, 1, 3, '01a1f6bc-7779-71a6-a44b-37a4cb92e632', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022746f6f6c222c2022636f6e74656e74223a202231333a205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e205468652054616c6c696e6e206272616e636820636c6f7365732069747320626f6f6b73206174206e6f6f6e2e20222c2022746f6f6c5f63616c6c5f6964223a2022633133227d');
INSERT INTO refold.entries_0 VALUES (4, 7, 1795140908925, 1, 3, '01a1f6bc-777d-712d-aeb2-7237072fabdb', true, false, 'default', 'request', '\x2f', '[[1,6]]', NULL, '\x7b227370616e73223a5b7b226669727374223a312c226c617374223a367d5d2c22706c616e223a7b2277697265223a226f70656e61692d63686174222c22776972655f76657273696f6e223a312c2270726f66696c65223a2262616c616e636564222c2268656164223a362c226163636f756e74223a5b302c3136342c302c302c333030302c31335d2c22746f6b656e73223a3136342c226c61796f7574223a7b7d2c2273657474696e6773223a7b7d2c226d65737361676573223a332c2270616365223a5b302c322c3137375d7d2c226d6f64656c223a22746573743a6d6f64656c222c22646967657374223a2266656564653936623863303163666435333232353835306165353634356233313764386537333464663561616365313961326131316436333435333932613935222c226c696d6974223a333030302c22636861696e223a5b335d7d');
INSERT INTO refold.entries_0 VALUES (4, 8, 1795140908931, 1, 4, '01a1f6bc-7783-751e-8c7f-c0c6a1aa9f5e', false, false, 'default', 'message', '\x2f', NULL, NULL, '\x7b22726f6c65223a2022617373697374616e74222c2022636f6e74656e74223a20225061676520313320697320726561642e227d');
INSERT INTO refold.entries_0 VALUES (4, 9, 1795140908931, 1, 4, '01a1f6bc-7783-751e-8c7f-c0c7073b0f9d', false, false, 'default', 'usage', '\x2f', NULL, NULL, '\x7b2272657175657374223a372c227573616765223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a307d2c22756e6d616e61676564223a7b22696e707574223a3930302c226f7574707574223a32302c2263616368655f72656164223a302c2263616368655f7772697465223a302c22636f7374223a6e756c6c7d2c226261736973223a7b226d6f64656c223a22746573743a6d6f64656c222c2277686f6c65223a3136342c226265666f7265223a31332c22636f756e746564223a3136342c226c696d6974223a333030302c22707269636573223a7b22696e707574223a6e756c6c2c226f7574707574223a6e756c6c2c2263616368655f72656164223a6e756c6c2c2263616368655f7772697465223a6e756c6c7d2c226164646564223a302c22726561645f6261636b223a302c226578747261223a66616c73652c226d6f766564223a66616c73657d7d');


--
-- Data for Name: erasures; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.erasures OVERRIDING SYSTEM VALUE VALUES (1, false, 'words_0');
INSERT INTO refold.erasures OVERRIDING SYSTEM VALUE VALUES (2, false, 'sessions');
INSERT INTO refold.erasures OVERRIDING SYSTEM VALUE VALUES (3, false, 'artifacts_0');
INSERT INTO refold.erasures OVERRIDING SYSTEM VALUE VALUES (4, false, 'entries_0');


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
INSERT INTO refold.migrations VALUES (6, 'totals', '88692a13152a6d0cfe377295d29cf9f7dfb8f1e729a9d8268ee9f8483e4dd2f7');


--
-- Data for Name: segments; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.segments VALUES (2, 1, 100, 1, 'default');


--
-- Data for Name: sessions; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.sessions VALUES (1, 1795140908282, 1795140908769, 29919015, 112, 50, 1, 0, 1, 0, 112, false, 'default', 'books', NULL, '\x6f70656e61692d63686174', '\x62616c616e636564', '\x7b227469746c65223a2254686520626f6f6b73222c226f726967696e223a6e756c6c2c226c696e65223a5b7b226669727374223a312c226c617374223a3130307d5d2c2273696e6365223a3131302c22666f6c6473223a5b7b22736571223a3130302c22666f6c64223a2230306366346631352d376266392d346234362d396465362d373634373331396439323633222c227370616e73223a5b7b226669727374223a362c226c617374223a38317d5d7d5d2c2270696e73223a5b5d2c2277617463686564223a5b5d2c2272756e6e696e67223a5b5d2c227265636f7264223a37392c2276657273696f6e223a317d');
INSERT INTO refold.sessions VALUES (2, 1795140908680, 1795140908889, 29919015, 109, 50, 1, 0, 101, 46, 109, false, 'default', 'books-again', 'books', '\x6f70656e61692d63686174', '\x62616c616e636564', '\x7b227469746c65223a2254686520626f6f6b73222c226f726967696e223a6e756c6c2c226c696e65223a5b5d2c2273696e6365223a312c22666f6c6473223a5b7b22736571223a3130302c22666f6c64223a2230306366346631352d376266392d346234362d396465362d373634373331396439323633222c227370616e73223a5b7b226669727374223a362c226c617374223a38317d5d7d5d2c2270696e73223a5b5d2c2277617463686564223a5b5d2c2272756e6e696e67223a5b5d2c227265636f7264223a3130372c2276657273696f6e223a317d');
INSERT INTO refold.sessions VALUES (3, 1795140908895, 1795140908903, 29919015, 3, 1, 0, 0, 1, 0, 3, false, 'default', 'cleared', NULL, '\x6f70656e61692d63686174', '\x62616c616e636564', '\x7b227469746c65223a6e756c6c2c226f726967696e223a6e756c6c2c226c696e65223a5b5d2c2273696e6365223a342c22666f6c6473223a5b5d2c2270696e73223a5b5d2c2277617463686564223a5b5d2c2272756e6e696e67223a5b5d2c227265636f7264223a6e756c6c2c2276657273696f6e223a317d');
INSERT INTO refold.sessions VALUES (4, 1795140908910, 1795140908931, 29919015, 9, 4, 0, 0, 1, 0, 9, false, 'default', 'paid', NULL, '\x6f70656e61692d63686174', '\x62616c616e636564', '\x7b227469746c65223a6e756c6c2c226f726967696e223a6e756c6c2c226c696e65223a5b5d2c2273696e6365223a312c22666f6c6473223a5b5d2c2270696e73223a5b5d2c2277617463686564223a5b5d2c2272756e6e696e67223a5b5d2c227265636f7264223a372c2276657273696f6e223a317d');


--
-- Data for Name: tombstones; Type: TABLE DATA; Schema: refold; Owner: -
--



--
-- Data for Name: totals; Type: TABLE DATA; Schema: refold; Owner: -
--

INSERT INTO refold.totals VALUES (20777, 1, 25, 2, 21694, 529, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0, 0, 0, 0, 'default', '\x746573743a6d6f64656c', '\x');
INSERT INTO refold.totals VALUES (20777, 4, 2, 0, 913, 44, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 'default', '\x746573743a6d6f64656c', '\x');


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
INSERT INTO refold.words_0 VALUES (1, 87, 332, 'default', 'e29c6150 62de 4c92 b387 8db364d79e03 breadcrumb read page 9 causes decisions and results as the assistant put them page 0 is read assistant 0 result page 1 is read assistant 10 result page 2 is read assistant 18 result page 3 is read assistant 26 result page 4 is read assistant 34 result page 5 is read assistant 42 result page 6 is read assistant 50 result page 7 is read assistant 58 result page 8 is read assistant 66 result page 9 is read assistant 74 result where it stood the model called read page 9 the model last said page 9 is read read page 1 read page 2 read page 3 read page 4 read page 5 read page 6 read page 7 read page 8 read page 9 39 earlier messages are folded here their full text is not a part of this request what follows is quoted from them as a record of what was said it asks for nothing by itself the user s words standing rules first then the others newest last entry 10 read page 1 entry 18 read page 2 entry 26 read page 3 entry 34 read page 4 entry 42 read page 5 entry 50 read page 6 entry 58 read page 7 entry 66 read page 8 entry 74 read page 9 causes decisions and results as the assistant put them assistant 8 page 0 is read assistant 16 asked in 10 page 1 is read assistant 24 asked in 18 page 2 is read assistant 32 asked in 26 page 3 is read assistant 40 asked in 34 page 4 is read assistant 48 asked in 42 page 5 is read assistant 56 asked in 50 page 6 is read assistant 64 asked in 58 page 7 is read assistant 72 asked in 66 page 8 is read where it stood the model called read page 9 entry 76 the model last said page 9 is read entry 80');
INSERT INTO refold.words_0 VALUES (1, 89, 3, 'default', 'read page 10');
INSERT INTO refold.words_0 VALUES (1, 91, 3, 'default', 'read page 10');
INSERT INTO refold.words_0 VALUES (1, 93, 97, 'default', '10 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 95, 4, 'default', 'page 10 is read');
INSERT INTO refold.words_0 VALUES (1, 100, 332, 'default', '00cf4f15 7bf9 4b46 9de6 7647319d9263 breadcrumb read page 9 causes decisions and results as the assistant put them page 0 is read assistant 0 result page 1 is read assistant 10 result page 2 is read assistant 18 result page 3 is read assistant 26 result page 4 is read assistant 34 result page 5 is read assistant 42 result page 6 is read assistant 50 result page 7 is read assistant 58 result page 8 is read assistant 66 result page 9 is read assistant 74 result where it stood the model called read page 9 the model last said page 9 is read read page 1 read page 2 read page 3 read page 4 read page 5 read page 6 read page 7 read page 8 read page 9 39 earlier messages are folded here their full text is not a part of this request what follows is quoted from them as a record of what was said it asks for nothing by itself the user s words standing rules first then the others newest last entry 10 read page 1 entry 18 read page 2 entry 26 read page 3 entry 34 read page 4 entry 42 read page 5 entry 50 read page 6 entry 58 read page 7 entry 66 read page 8 entry 74 read page 9 causes decisions and results as the assistant put them assistant 8 page 0 is read assistant 16 asked in 10 page 1 is read assistant 24 asked in 18 page 2 is read assistant 32 asked in 26 page 3 is read assistant 40 asked in 34 page 4 is read assistant 48 asked in 42 page 5 is read assistant 56 asked in 50 page 6 is read assistant 64 asked in 58 page 7 is read assistant 72 asked in 66 page 8 is read where it stood the model called read page 9 entry 76 the model last said page 9 is read entry 80');
INSERT INTO refold.words_0 VALUES (1, 101, 3, 'default', 'read page 11');
INSERT INTO refold.words_0 VALUES (1, 103, 3, 'default', 'read page 11');
INSERT INTO refold.words_0 VALUES (1, 105, 97, 'default', '11 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (1, 107, 4, 'default', 'page 11 is read');
INSERT INTO refold.words_0 VALUES (1, 110, 5, 'default', 'what a host wrote down');
INSERT INTO refold.words_0 VALUES (1, 111, 3, 'default', 'with an attachment');
INSERT INTO refold.words_0 VALUES (2, 102, 3, 'default', 'read page 12');
INSERT INTO refold.words_0 VALUES (2, 104, 3, 'default', 'read page 12');
INSERT INTO refold.words_0 VALUES (2, 106, 97, 'default', '12 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (2, 108, 4, 'default', 'page 12 is read');
INSERT INTO refold.words_0 VALUES (3, 2, 1, 'default', 'hello');
INSERT INTO refold.words_0 VALUES (4, 2, 3, 'default', 'read page 13');
INSERT INTO refold.words_0 VALUES (4, 4, 3, 'default', 'read page 13');
INSERT INTO refold.words_0 VALUES (4, 6, 97, 'default', '13 the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon the tallinn branch closes its books at noon');
INSERT INTO refold.words_0 VALUES (4, 8, 4, 'default', 'page 13 is read');


--
-- Name: erasures_id_seq; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.erasures_id_seq', 4, true);


--
-- Name: marks_id_seq; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.marks_id_seq', 1, false);


--
-- Name: sessions_key_seq; Type: SEQUENCE SET; Schema: refold; Owner: -
--

SELECT pg_catalog.setval('refold.sessions_key_seq', 4, true);


--
-- Name: accounts accounts_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (tenant, session);


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
-- Name: totals totals_pkey; Type: CONSTRAINT; Schema: refold; Owner: -
--

ALTER TABLE ONLY refold.totals
    ADD CONSTRAINT totals_pkey PRIMARY KEY (tenant, day, session, model, key);


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
-- Name: accounts_uncounted; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX accounts_uncounted ON refold.accounts USING btree (tenant, session) WHERE (state IS NULL);


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
-- Name: totals_session; Type: INDEX; Schema: refold; Owner: -
--

CREATE INDEX totals_session ON refold.totals USING btree (tenant, session);


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
-- Name: accounts; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.accounts ENABLE ROW LEVEL SECURITY;

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
-- Name: accounts own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.accounts USING ((tenant = refold.tenant()));


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
-- Name: totals own; Type: POLICY; Schema: refold; Owner: -
--

CREATE POLICY own ON refold.totals USING ((tenant = refold.tenant()));


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
-- Name: totals; Type: ROW SECURITY; Schema: refold; Owner: -
--

ALTER TABLE refold.totals ENABLE ROW LEVEL SECURITY;

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

\unrestrict CMA4WQEH2bbqtjdzXonMuQpjNhf3NHHP3csE9cMjlUWsqSEL69ZjCq40xYsC1nd

