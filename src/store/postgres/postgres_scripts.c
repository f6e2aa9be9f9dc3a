/* postgres_scripts.c - tables and functions, as SQL. The texts are part of the on-disk format:
 * servers that run an older release have them already.
 *
 * Locks. A commit takes KEY SHARE on its session's row and locks the records of its guards;
 * declaring a session dead and `resolve` take FOR UPDATE on the session's row. So either the commit
 * is visible to them, or it sees their decision. */
#include "store/postgres/postgres_scripts.h"

#include <stddef.h>

#include "base/limits.h"

/* ---- the store ---- */

/* Declaring a session dead takes FOR UPDATE on its row, a commit FOR KEY SHARE: the declaration
 * waits for commits in flight, and later commits see it. A plain UPDATE would not do: it locks FOR
 * NO KEY UPDATE, which does not conflict with KEY SHARE. */
static_assert(GL_SESSIONS_KEPT_MS == 86400000 && GL_SESSIONS_KEPT == 100, "opening says so, too");
static const char session_open[] =
    "CREATE OR REPLACE FUNCTION glia.session_open_1("
    " p_node text, p_nonce text, p_ttl bigint, p_about text,"
    " OUT incarnation bigint, OUT id text) LANGUAGE plpgsql AS $$ "
    "BEGIN"
    " PERFORM pg_advisory_xact_lock(1196181825, hashtext(p_node));"
    " PERFORM 1 FROM glia.session s WHERE s.node = p_node AND NOT s.dead ORDER BY s.id FOR UPDATE;"
    " UPDATE glia.session s SET dead = true, ended = glia.now_ms()"
    "  WHERE s.node = p_node AND NOT s.dead;"
    " SELECT coalesce(max(s.incarnation), 0) + 1 INTO incarnation"
    "  FROM glia.session s WHERE s.node = p_node;"
    " id := p_node || '#' || incarnation || '.' || p_nonce;"
    " INSERT INTO glia.session(id, node, incarnation, deadline, about)"
    "  VALUES(session_open_1.id, p_node, session_open_1.incarnation,"
    "  glia.now_ms() + p_ttl, p_about);"
    /* The transactions of a process that ended yesterday are never resolved. The last session of
     * each node stays, because incarnations continue from it. Other nodes may do the same now. */
    " WITH old AS ("
    "  SELECT s.id FROM glia.session s"
    "  WHERE s.dead AND s.ended < glia.now_ms() - 86400000 AND EXISTS (SELECT FROM glia.session n"
    "   WHERE n.node = s.node AND n.incarnation > s.incarnation)"
    "  ORDER BY s.ended LIMIT 100 FOR UPDATE SKIP LOCKED),"
    "  gone AS (DELETE FROM glia.session s USING old WHERE s.id = old.id)"
    " DELETE FROM glia.tx t USING old WHERE t.session = old.id;"
    "END $$";

static const char session_end[] =
    "CREATE OR REPLACE FUNCTION glia.session_end_1(p_id text) RETURNS boolean"
    " LANGUAGE plpgsql AS $$ "
    "BEGIN"
    " PERFORM 1 FROM glia.session s WHERE s.id = p_id FOR UPDATE;"
    " IF NOT FOUND THEN RETURN NULL; END IF;"
    " UPDATE glia.session s SET dead = true, ended = glia.now_ms() WHERE s.id = p_id AND NOT dead;"
    " RETURN true;"
    "END $$";

static const char session_dead[] =
    "CREATE OR REPLACE FUNCTION glia.session_dead_1(p_id text, p_declare boolean) RETURNS boolean"
    " LANGUAGE plpgsql AS $$ "
    "DECLARE s record;"
    "BEGIN"
    " SELECT dead, deadline INTO s FROM glia.session WHERE id = p_id;"
    " IF NOT FOUND THEN RETURN true; END IF;"
    " IF s.dead OR NOT p_declare OR s.deadline > glia.now_ms() THEN RETURN s.dead; END IF;"
    " SELECT dead, deadline INTO s FROM glia.session WHERE id = p_id FOR UPDATE;"
    " IF NOT s.dead AND s.deadline <= glia.now_ms() THEN"
    "  UPDATE glia.session SET dead = true, ended = glia.now_ms() WHERE id = p_id;"
    "  s.dead := true;"
    " END IF;"
    " RETURN s.dead;"
    "END $$";

/* 0: committed. 1: never, and the barrier keeps it so: commits read it under the lock that this
 * function waits for. 2: too old to say. */
static const char resolve[] =
    "CREATE OR REPLACE FUNCTION glia.resolve_1(p_session text, p_id bigint) RETURNS int"
    " LANGUAGE plpgsql AS $$ "
    "DECLARE s record;"
    "BEGIN"
    " SELECT forgotten INTO s FROM glia.session WHERE id = p_session FOR UPDATE;"
    " IF NOT FOUND THEN RETURN 1; END IF;"
    " IF EXISTS (SELECT FROM glia.tx t WHERE t.session = p_session AND t.last >= p_id"
    "  AND t.first <= p_id AND p_id = ANY (t.ids)) THEN RETURN 0; END IF;"
    " IF p_id < s.forgotten THEN RETURN 2; END IF;"
    " UPDATE glia.session SET barrier = greatest(barrier, p_id) WHERE id = p_session;"
    " RETURN 1;"
    "END $$";

const char *const gl_postgres_script_store[] = {
    "CREATE SCHEMA IF NOT EXISTS glia",
    "CREATE TABLE IF NOT EXISTS glia.store("
    " one boolean PRIMARY KEY DEFAULT true CHECK (one),"
    " identity text NOT NULL, version int NOT NULL,"
    " made_by text NOT NULL, made_at timestamptz NOT NULL DEFAULT clock_timestamp())",
    "CREATE TABLE IF NOT EXISTS glia.context("
    " name text COLLATE \"C\" PRIMARY KEY, schema text NOT NULL, version int NOT NULL)",
    "CREATE TABLE IF NOT EXISTS glia.session("
    " id text COLLATE \"C\" PRIMARY KEY, node text COLLATE \"C\" NOT NULL,"
    " incarnation bigint NOT NULL, deadline bigint NOT NULL, dead boolean NOT NULL DEFAULT false,"
    " ended bigint NOT NULL DEFAULT 0, barrier bigint NOT NULL DEFAULT 0,"
    " forgotten bigint NOT NULL DEFAULT 0, about text NOT NULL) WITH (fillfactor = 50)",
    "CREATE INDEX IF NOT EXISTS session_node ON glia.session(node, incarnation)",
    "CREATE INDEX IF NOT EXISTS session_live ON glia.session(id) WHERE NOT dead",
    "CREATE INDEX IF NOT EXISTS session_ended ON glia.session(ended, incarnation) WHERE dead",
    "CREATE TABLE IF NOT EXISTS glia.tx("
    " session text COLLATE \"C\" NOT NULL, first bigint NOT NULL, last bigint NOT NULL,"
    " ids bigint[] NOT NULL)",
    "CREATE INDEX IF NOT EXISTS tx_last ON glia.tx(session, last)",
    "CREATE OR REPLACE FUNCTION glia.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS"
    " 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint'",
    /* For people: text if it is UTF-8, else escaped. */
    "CREATE OR REPLACE FUNCTION glia.text(b bytea) RETURNS text"
    " LANGUAGE plpgsql IMMUTABLE STRICT AS $$ "
    "BEGIN RETURN convert_from(b, 'UTF8');"
    "EXCEPTION WHEN OTHERS THEN RETURN encode(b, 'escape'); END $$",
    session_open,
    session_end,
    session_dead,
    resolve,
    NULL,
};

/* ---- a context ---- */

/* A batch: transactions none of which depends on a write of another, so that all guards can be
 * evaluated before the first write. Everything is done in bulk. Transactions are numbered from 1,
 * guards from 0. The result has one number for each transaction: -1 committed, -2 refused by the
 * barrier, else the guard that did not hold.
 *
 * Records named by guards are locked first, so that what the guards see is still true at the end:
 * exclusively if the same transaction writes them (3), otherwise shared (2: against change, 1:
 * against removal). A thousand jobs of one flow look at the flow's record. A key that must be
 * absent is held by a placeholder row: an insert that meets another one either waits or fails (a
 * batch that met one is run again, and then sees it). */
#define COMMIT_HEAD                                                                            \
    "CREATE OR REPLACE FUNCTION @.commit_1("                                                   \
    " p_flags int, p_session text, p_ids bigint[], p_forget bigint,"                           \
    " g_tx int[], g_no int[], g_type int[], g_lock int[], g_kind text[], g_id bytea[],"        \
    " g_rev bigint[],"                                                                         \
    " g_owner text[], g_token bigint[],"                                                       \
    " h_kind text[], h_id bytea[],"                                                            \
    " r_tx int[], r_class int[], r_kind text[], r_id bytea[], r_rev bigint[], r_owner text[]," \
    " r_token bigint[], r_live boolean[], r_sum bigint[], r_value bytea[],"                    \
    " d_tx int[], d_kind text[], d_id bytea[],"                                                \
    " e_tx int[], e_in boolean[], e_name text[], e_score bigint[], e_id bytea[],"              \
    " l_tx int[], l_kind text[], l_id bytea[], l_seq bigint[], l_value bytea[],"               \
    " t_tx int[], t_kind text[], t_id bytea[], t_seq bigint[],"                                \
    " q_tx int[], q_op int[], q_name text[], q_id bytea[], q_value bytea[])"                   \
    " RETURNS int[] LANGUAGE plpgsql AS $$ "                                                   \
    "DECLARE"                                                                                  \
    " answer int[] := array_fill(-1, ARRAY[cardinality(p_ids)]);"                              \
    " bad int[] := '{}'; failed record; bar bigint; n bigint; wanted bigint;"                  \
    "BEGIN"                                                                                    \
    " IF p_session <> '' THEN"                                                                 \
    "  SELECT barrier INTO bar FROM glia.session WHERE id = p_session FOR KEY SHARE;"          \
    "  IF bar > 0 THEN"                                                                        \
    "   FOR i IN 1 .. cardinality(p_ids) LOOP"                                                 \
    "    IF p_ids[i] <> 0 AND p_ids[i] <= bar THEN answer[i] := -2; bad := bad || i; END IF;"  \
    "   END LOOP;"                                                                             \
    "  END IF;"                                                                                \
    " END IF;"                                                                                 \
    " IF p_flags & 8 <> 0 THEN"                                                                \
    "  PERFORM 1 FROM glia.session s WHERE s.id IN"                                            \
    "   (SELECT g.owner FROM unnest(g_type, g_owner) AS g(type, owner) WHERE g.type = 6)"      \
    "   ORDER BY s.id FOR KEY SHARE;"                                                          \
    " END IF;"                                                                                 \
    " IF p_flags & 32 <> 0 THEN"                                                               \
    "  INSERT INTO @.record(kind, id, rev, owner, token, live, sum, value)"                    \
    "   SELECT h.kind, h.id, 0, '', 0, false, 0, '' FROM unnest(h_kind, h_id) AS h(kind, id)"  \
    "   ORDER BY h.kind, h.id ON CONFLICT DO NOTHING;"                                         \
    " END IF;"                                                                                 \
    " IF p_flags & 2 <> 0 THEN"                                                                \
    "  PERFORM 1 FROM unnest(g_lock, g_kind, g_id) AS g(lock, kind, id)"                       \
    "   JOIN @.record r ON r.kind = g.kind AND r.id = g.id"                                    \
    "   WHERE g.lock = 3 ORDER BY g.kind, g.id FOR NO KEY UPDATE OF r;"                        \
    " END IF;"                                                                                 \
    " IF p_flags & 65536 <> 0 THEN"                                                            \
    "  PERFORM 1 FROM (SELECT DISTINCT u.kind, u.id FROM unnest(g_lock, g_kind, g_id)"         \
    "    AS u(lock, kind, id) WHERE u.lock = 2) AS g"                                          \
    "   JOIN @.record r ON r.kind = g.kind AND r.id = g.id"                                    \
    "   ORDER BY g.kind, g.id FOR SHARE OF r;"                                                 \
    " END IF;"                                                                                 \
    " IF p_flags & 4 <> 0 THEN"                                                                \
    "  PERFORM 1 FROM (SELECT DISTINCT u.kind, u.id FROM unnest(g_lock, g_kind, g_id)"         \
    "    AS u(lock, kind, id) WHERE u.lock = 1) AS g"                                          \
    "   JOIN @.record r ON r.kind = g.kind AND r.id = g.id"                                    \
    "   ORDER BY g.kind, g.id FOR KEY SHARE OF r;"                                             \
    " END IF;"                                                                                 \
    " IF p_flags & 16 <> 0 THEN"                                                               \
    "  PERFORM 1 FROM unnest(g_type, g_kind, g_id) AS g(type, kind, id)"                       \
    "   JOIN @.queue q ON q.name = g.kind AND q.id = g.id"                                     \
    "   WHERE g.type = 7 ORDER BY g.kind, g.id FOR NO KEY UPDATE OF q;"                        \
    " END IF;"

#define COMMIT_GUARDS                                                                             \
    " IF p_flags & 1 <> 0 THEN"                                                                   \
    "  FOR failed IN"                                                                             \
    "   SELECT g.tx, min(g.no) AS no"                                                             \
    "   FROM unnest(g_tx, g_no, g_type, g_kind, g_id, g_rev, g_owner, g_token)"                   \
    "    AS g(tx, no, type, kind, id, rev, owner, token)"                                         \
    "   LEFT JOIN @.record r"                                                                     \
    "    ON g.type <= 4 AND r.kind = g.kind AND r.id = g.id AND r.rev <> 0"                       \
    "   WHERE CASE g.type"                                                                        \
    "    WHEN 0 THEN r.rev IS DISTINCT FROM g.rev"                                                \
    "    WHEN 1 THEN r.rev IS NOT NULL"                                                           \
    "    WHEN 2 THEN r.rev IS NULL"                                                               \
    "    WHEN 3 THEN coalesce(r.live, false)"                                                     \
    "    WHEN 4 THEN r.rev IS NULL OR r.owner <> g.owner OR r.token <> g.token"                   \
    "     OR g.rev <> 0 AND r.rev <> g.rev"                                                       \
    "    WHEN 5 THEN g.owner = ''"                                                                \
    "     OR EXISTS (SELECT FROM glia.session s WHERE s.id = g.owner AND NOT s.dead)"             \
    "    WHEN 6 THEN NOT EXISTS (SELECT FROM glia.session s WHERE s.id = g.owner AND NOT s.dead)" \
    "    ELSE NOT EXISTS (SELECT FROM @.queue q"                                                  \
    "     WHERE q.name = g.kind AND q.id = g.id AND q.token = g.token AND q.token <> 0) END"      \
    "   GROUP BY g.tx"                                                                            \
    "  LOOP"                                                                                      \
    "   IF failed.tx <> ALL (bad) THEN"                                                           \
    "    answer[failed.tx] := failed.no; bad := bad || failed.tx;"                                \
    "   END IF;"                                                                                  \
    "  END LOOP;"                                                                                 \
    " END IF;"

#define COMMIT_RECORDS                                                                    \
    " IF p_flags & 64 <> 0 THEN"                                                          \
    "  INSERT INTO @.record(kind, id, rev, owner, token, live, sum, value)"               \
    "   SELECT w.kind, w.id, w.rev, w.owner, w.token, w.live, w.sum, w.value"             \
    "   FROM unnest(r_tx, r_class, r_kind, r_id, r_rev, r_owner, r_token, r_live, r_sum," \
    " r_value)"                                                                           \
    "    AS w(tx, class, kind, id, rev, owner, token, live, sum, value)"                  \
    "   WHERE w.class = 0 AND w.tx <> ALL (bad)"                                          \
    "   ON CONFLICT (kind, id) DO UPDATE SET rev = excluded.rev, owner = excluded.owner," \
    "   token = excluded.token, live = excluded.live, sum = excluded.sum, value ="        \
    " excluded.value;"                                                                    \
    " END IF;"                                                                            \
    " IF p_flags & 128 <> 0 THEN"                                                         \
    "  INSERT INTO @.record(kind, id, rev, owner, token, live, sum, value)"               \
    "   SELECT w.kind, w.id, w.rev, w.owner, w.token, w.live, w.sum, w.value"             \
    "   FROM unnest(r_tx, r_class, r_kind, r_id, r_rev, r_owner, r_token, r_live, r_sum," \
    " r_value)"                                                                           \
    "    AS w(tx, class, kind, id, rev, owner, token, live, sum, value)"                  \
    "   WHERE w.class = 1 AND w.tx <> ALL (bad) ON CONFLICT DO NOTHING;"                  \
    "  GET DIAGNOSTICS n = ROW_COUNT;"                                                    \
    "  SELECT count(*) INTO wanted FROM unnest(r_tx, r_class) AS w(tx, class)"            \
    "   WHERE w.class = 1 AND w.tx <> ALL (bad);"                                         \
    "  IF n <> wanted THEN"                                                               \
    "   RAISE EXCEPTION 'a record has come in between' USING ERRCODE = '40001';"          \
    "  END IF;"                                                                           \
    " END IF;"                                                                            \
    " IF p_flags & 256 <> 0 THEN"                                                         \
    "  INSERT INTO @.record(kind, id, rev, owner, token, live, sum, value)"               \
    "   SELECT w.kind, w.id, w.rev, w.owner, w.token, w.live, w.sum, w.value"             \
    "   FROM unnest(r_tx, r_class, r_kind, r_id, r_rev, r_owner, r_token, r_live, r_sum," \
    " r_value)"                                                                           \
    "    AS w(tx, class, kind, id, rev, owner, token, live, sum, value)"                  \
    "   WHERE w.class = 2 AND w.tx <> ALL (bad) ON CONFLICT DO NOTHING;"                  \
    " END IF;"                                                                            \
    " IF p_flags & 512 <> 0 THEN"                                                         \
    "  DELETE FROM @.record r USING unnest(d_tx, d_kind, d_id) AS d(tx, kind, id)"        \
    "   WHERE r.kind = d.kind AND r.id = d.id AND d.tx <> ALL (bad);"                     \
    " END IF;"                                                                            \
    " IF p_flags & 32 <> 0 THEN"                                                          \
    "  DELETE FROM @.record r USING unnest(h_kind, h_id) AS h(kind, id)"                  \
    "   WHERE r.kind = h.kind AND r.id = h.id AND r.rev = 0;"                             \
    " END IF;"

#define COMMIT_OTHERS                                                                       \
    " IF p_flags & 2048 <> 0 THEN"                                                          \
    "  DELETE FROM @.entry e"                                                               \
    "   USING unnest(e_tx, e_in, e_name, e_score, e_id) AS w(tx, is_in, name, score, id)"   \
    "   WHERE NOT w.is_in AND w.tx <> ALL (bad)"                                            \
    "   AND e.name = w.name AND e.score = w.score AND e.id = w.id;"                         \
    " END IF;"                                                                              \
    " IF p_flags & 1024 <> 0 THEN"                                                          \
    "  INSERT INTO @.entry(name, score, id) SELECT w.name, w.score, w.id"                   \
    "   FROM unnest(e_tx, e_in, e_name, e_score, e_id) AS w(tx, is_in, name, score, id)"    \
    "   WHERE w.is_in AND w.tx <> ALL (bad) ON CONFLICT DO NOTHING;"                        \
    " END IF;"                                                                              \
    " IF p_flags & 8192 <> 0 THEN"                                                          \
    "  DELETE FROM @.log l USING unnest(t_tx, t_kind, t_id, t_seq) AS t(tx, kind, id, seq)" \
    "   WHERE t.tx <> ALL (bad) AND l.kind = t.kind AND l.id = t.id"                        \
    "   AND (l.seq < t.seq OR t.seq = 9223372036854775807);"                                \
    " END IF;"                                                                              \
    " IF p_flags & 4096 <> 0 THEN"                                                          \
    "  INSERT INTO @.log(kind, id, seq, value) SELECT w.kind, w.id, w.seq, w.value"         \
    "   FROM unnest(l_tx, l_kind, l_id, l_seq, l_value) AS w(tx, kind, id, seq, value)"     \
    "   WHERE w.tx <> ALL (bad);"                                                           \
    " END IF;"                                                                              \
    " IF p_flags & 32768 <> 0 THEN"                                                         \
    "  DELETE FROM @.queue q USING unnest(q_tx, q_op, q_name, q_id) AS w(tx, op, name, id)" \
    "   WHERE w.op = 8 AND w.tx <> ALL (bad) AND q.name = w.name AND q.id = w.id;"          \
    "  UPDATE @.queue q SET taker = '', until = 0"                                          \
    "   FROM unnest(q_tx, q_op, q_name, q_id) AS w(tx, op, name, id)"                       \
    "   WHERE w.op = 9 AND w.tx <> ALL (bad) AND q.name = w.name AND q.id = w.id;"          \
    " END IF;"                                                                              \
    " IF p_flags & 16384 <> 0 THEN"                                                         \
    "  INSERT INTO @.queue(name, id, value) SELECT w.name, w.id, w.value"                   \
    "   FROM unnest(q_tx, q_op, q_name, q_id, q_value)"                                     \
    "    WITH ORDINALITY AS w(tx, op, name, id, value, place)"                              \
    "   WHERE w.op = 7 AND w.tx <> ALL (bad) ORDER BY w.place ON CONFLICT DO NOTHING;"      \
    " END IF;"                                                                              \
    " IF p_session <> '' THEN"                                                              \
    "  INSERT INTO glia.tx(session, first, last, ids)"                                      \
    "   SELECT p_session, min(t.id), max(t.id), array_agg(t.id)"                            \
    "   FROM unnest(p_ids) WITH ORDINALITY AS t(id, number)"                                \
    "   WHERE t.id <> 0 AND t.number <> ALL (bad) HAVING count(*) > 0;"                     \
    " END IF;"                                                                              \
    " IF p_forget > 0 THEN"                                                                 \
    "  DELETE FROM glia.tx WHERE session = p_session AND last < p_forget;"                  \
    "  UPDATE glia.session SET forgotten = p_forget WHERE id = p_session;"                  \
    " END IF;"                                                                              \
    " RETURN answer;"                                                                       \
    "END $$"

static const char take[] =
    "CREATE OR REPLACE FUNCTION @.take_1("
    " p_queue text, p_session text, p_lease bigint, p_limit int)"
    " RETURNS TABLE(id bytea, value bytea, token bigint) LANGUAGE plpgsql AS $$ "
    "DECLARE t bigint := glia.now_ms();"
    "BEGIN"
    " RETURN QUERY"
    "  WITH free AS ("
    "   SELECT q.name, q.id FROM @.queue q"
    "   WHERE q.name = p_queue AND (q.until <= t OR q.taker <> '' AND NOT EXISTS"
    "    (SELECT FROM glia.session s WHERE s.id = q.taker AND NOT s.dead))"
    "   ORDER BY q.pos LIMIT p_limit FOR UPDATE OF q SKIP LOCKED),"
    "  claimed AS ("
    "   UPDATE @.queue q SET taker = p_session, until = t + p_lease, token = nextval('@.claim')"
    "   FROM free f WHERE q.name = f.name AND q.id = f.id"
    "   RETURNING q.id, q.value, q.token, q.pos)"
    "  SELECT c.id, c.value, c.token FROM claimed c ORDER BY c.pos;"
    "END $$";

/* By content if that can be read quickly, else by the size of the tables minus the part known to be
 * dead. */
static const char measure[] =
    "CREATE OR REPLACE FUNCTION @.measure_1() RETURNS bigint LANGUAGE plpgsql AS $$ "
    "DECLARE total bigint := 0; n bigint; t regclass; part float8;"
    "BEGIN"
    " FOREACH t IN ARRAY"
    "  ARRAY['@.record', '@.entry', '@.log', '@.queue']::regclass[] LOOP"
    "  IF pg_total_relation_size(t) < 268435456 THEN"
    "   EXECUTE CASE t WHEN '@.entry'::regclass"
    "    THEN 'SELECT sum(length(name) + octet_length(id) + 48) FROM @.entry'"
    "    ELSE 'SELECT sum(octet_length(id) + octet_length(value) + 64) FROM ' || t END INTO n;"
    "  ELSE"
    "   SELECT s.n_live_tup / greatest(s.n_live_tup + s.n_dead_tup, 1)::float8 INTO part"
    "    FROM pg_stat_user_tables s WHERE s.relid = t;"
    "   n := pg_total_relation_size(t) * coalesce(part, 1);"
    "  END IF;"
    "  total := total + coalesce(n, 0);"
    " END LOOP;"
    " RETURN total;"
    "END $$";

static const char commit[] = COMMIT_HEAD COMMIT_GUARDS COMMIT_RECORDS COMMIT_OTHERS;

const char *const gl_postgres_script_context[] = {
    "CREATE SCHEMA IF NOT EXISTS @",
    "CREATE TABLE IF NOT EXISTS @.record("
    " kind text COLLATE \"C\" NOT NULL, id bytea NOT NULL, rev bigint NOT NULL,"
    " owner text COLLATE \"C\" NOT NULL, token bigint NOT NULL, live boolean NOT NULL,"
    " sum bigint NOT NULL, value bytea NOT NULL, PRIMARY KEY(kind, id))"
    " WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)",
    "CREATE INDEX IF NOT EXISTS record_live ON @.record(kind, id) WHERE live",
    /* Entries come and go at the head of an index: dead ones there slow down every reader. */
    "CREATE TABLE IF NOT EXISTS @.entry("
    " name text COLLATE \"C\" NOT NULL, score bigint NOT NULL, id bytea NOT NULL,"
    " PRIMARY KEY(name, score, id)) WITH (autovacuum_vacuum_scale_factor = 0.02)",
    "CREATE TABLE IF NOT EXISTS @.log("
    " kind text COLLATE \"C\" NOT NULL, id bytea NOT NULL, seq bigint NOT NULL,"
    " value bytea NOT NULL, PRIMARY KEY(kind, id, seq))",
    "CREATE TABLE IF NOT EXISTS @.queue("
    " name text COLLATE \"C\" NOT NULL, id bytea NOT NULL,"
    " pos bigint NOT NULL GENERATED ALWAYS AS IDENTITY,"
    " taker text COLLATE \"C\" NOT NULL DEFAULT '', until bigint NOT NULL DEFAULT 0,"
    " token bigint NOT NULL DEFAULT 0, value bytea NOT NULL, PRIMARY KEY(name, id))"
    " WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)",
    "CREATE INDEX IF NOT EXISTS queue_pos ON @.queue(name, pos)",
    "CREATE SEQUENCE IF NOT EXISTS @.claim",
    "CREATE OR REPLACE VIEW @.records AS SELECT kind, glia.text(id) AS id, rev, owner, token,"
    " live, glia.text(value) AS value FROM @.record",
    "CREATE OR REPLACE VIEW @.entries AS SELECT name, score, glia.text(id) AS id FROM @.entry",
    "CREATE OR REPLACE VIEW @.logs AS SELECT kind, glia.text(id) AS id, seq,"
    " glia.text(value) AS value FROM @.log",
    "CREATE OR REPLACE VIEW @.queues AS SELECT name, pos, glia.text(id) AS id, taker, until,"
    " token, glia.text(value) AS value FROM @.queue",
    commit,
    take,
    measure,
    NULL,
};
