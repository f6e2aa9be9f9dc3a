/* redis_scripts.c - the Lua scripts, in pieces that gl_redis_scripts combines.
 *
 * The server cannot roll a script back, so a script checks everything before it writes anything,
 * and its writes must not fail. A key of another type, put there by someone else, must not stop a
 * node: the scripts replace it where they write and skip it where they read. */
#include "store/redis/redis_scripts.h"

#include "base/limits.h"

/* clang-format off */

#define READS "#!lua flags=no-writes\n"
#define WRITES "#!lua\n"

/* P is the prefix of the context's keys; DB is its database, if it has one of its own. */
static const char names[] =
    "local call, try = redis.call, redis.pcall\n"
    "local C, HOME, P, DB = ARGV[1], ARGV[2], 'glia:', nil\n"
    /* Sessions belong to the store, not to a context. */
    "local function home() if DB then call('SELECT', HOME) end end\n"
    "local function back() if DB then call('SELECT', DB) end end\n"
    "local function num(n) return string.format('%.0f', n) end\n"
    /* Does the error say that the key has another type than ours? Any other error, such as a
     * revoked permission, says nothing about the key: it ends the script. */
    "local function odd(r, also)\n"
    "  local e = type(r) == 'table' and r.err\n"
    "  if not e then return false end\n"
    "  if string.find(e, 'WRONGTYPE', 1, true) then return true end\n"
    "  if also and string.find(e, also) then return true end\n"
    "  error(r)\n"
    "end\n";

static const char clock[] =
    "local function clock()\n"
    "  local t = call('TIME')\n"
    "  return t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "end\n";

/* Enter the context: find its database and prefix. nil: nothing was ever written to it. */
static const char enter[] =
    "local function go(e)\n"
    "  local db, shared = string.match(e, '^(%d+)(@?)$')\n"
    "  if shared == '@' then P = 'glia:@' .. C .. ':' end\n"
    "  if db ~= HOME then DB = db; call('SELECT', db) end\n"
    "end\n"
    "local function enter()\n"
    "  if C == '' then return true end\n"
    "  local e = call('HGET', 'glia:contexts', C)\n"
    "  if e then go(e) end\n"
    "  return e\n"
    "end\n";

/* The first write to a context assigns it a database: the next one that no store uses. When the
 * server has no more, the context shares our last database, under a prefix. */
static const char make[] =
    "local function make()\n"
    "  if enter() then return end\n"
    "  local id, top = unpack(call('HMGET', 'glia:store', 'id', 'top'))\n"
    "  top = tonumber(top or HOME)\n"
    "  local db = top + 1\n"
    "  while true do\n"
    "    local r = try('SELECT', num(db))\n"
    "    if r.err then db = nil break end\n"
    "    if call('EXISTS', 'glia:store') == 0 then break end\n"
    "    db = db + 1\n"
    "  end\n"
    "  local e = num(top) .. '@'\n"
    "  if db then\n"
    "    call('HSET', 'glia:store', 'id', id or '', 'context', C, 'home', HOME)\n"
    "    e = num(db)\n"
    "  end\n"
    "  call('SELECT', HOME)\n"
    "  if db then call('HSET', 'glia:store', 'top', e) end\n"
    "  call('HSET', 'glia:contexts', C, e)\n"
    "  go(e)\n"
    "end\n"
    "make()\n";

/* Outcomes of a session's transactions. Field x of the session is the highest id seen;
 * .no:<session> holds the ranges below it that were refused or never arrived; f is the highest id
 * whose outcome has been forgotten. */
static const char memory[] =
    "local OTHER = 'OTHERSTORE its identity is not the one that was greeted'\n"
    "local function note(s, from, to, keep)\n"
    "  local no = 'glia:.no:' .. s\n"
    "  if from then call('ZADD', no, to, from .. '-' .. to) end\n"
    "  local over = call('ZCARD', no) - keep\n"
    "  if over > 0 then\n"
    "    local last = call('ZRANGE', no, over - 1, over - 1, 'WITHSCORES')\n"
    "    call('HSET', 'glia:.session:' .. s, 'f', num(tonumber(last[2])))\n"
    "    call('ZREMRANGEBYRANK', no, 0, over - 1)\n"
    "  end\n"
    "end\n";

static const char commit[] =
    "local S, X, WAKE, ID, GN = ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])\n"
    /* The server cannot roll a script back: what it has written before a failing command stays. An
     * administrator can revoke a permission while nodes run, and the script would stop in the
     * middle of a transaction. So each write command used below is first run in a form that changes
     * nothing. (HSET is the first command that changes something.) This costs 3 us of server CPU
     * per commit: bench/RESULTS.md. */
    "call('DEL', 'glia:.none'); call('ZADD', 'glia:.none', 'XX', '0', '-')\n"
    "call('ZREM', 'glia:.none', '-'); call('XADD', 'glia:.none', 'NOMKSTREAM', '1-1', 'e', '')\n"
    "if S ~= '' and X ~= '0' then\n"
    "  local key = 'glia:.session:' .. S\n"
    "  home()\n"
    "  local x, n = tonumber(call('HGET', key, 'x') or '0') + 1, tonumber(X)\n"
    "  if x > n then return -1 end\n"
    /* Ids are missing. Either they have not arrived, or the store was emptied while connections
     * stayed open; in that case not even this field may be written. */
    "  if x < n and call('HGET', 'glia:store', 'id') ~= ID then\n"
    "    return redis.error_reply(OTHER)\n"
    "  end\n"
    "  call('HSET', key, 'x', X)\n"
    "  if x < n then note(S, num(x), num(n - 1), 10000) end\n"
    "  back()\n"
    "else X = nil end\n"
    "local function refuse(g)\n"
    "  if X then home(); note(S, X, X, 10000) end\n"
    "  return g\n"
    "end\n"
    "local function dead(s)\n"
    "  home()\n"
    "  local r = try('HMGET', 'glia:.session:' .. s, 'node', 'dead')\n"
    "  back()\n"
    "  if not odd(r) and r[1] then return r[2] == '1' end\n"
    "  return s ~= '' or nil\n"
    "end\n"
    /* A field of a record; nil if the key has another type. */
    "local function field(k, f)\n"
    "  local r = try('HGET', P .. k, f)\n"
    "  if not odd(r) and r then return r end\n"
    "end\n"
    "local i = 8\n"
    "for g = 1, GN do\n"
    "  local t, a = ARGV[i], ARGV[i + 1]\n"
    "  local ok\n"
    "  if t == 'o' then\n"
    "    local r = try('HMGET', P .. a, 'o', 't', 'r')\n"
    "    ok = not odd(r) and r[1] == ARGV[i + 2] and r[2] == ARGV[i + 3]\n"
    "      and (ARGV[i + 4] == '0' or r[3] == ARGV[i + 4])\n"
    "    i = i + 5\n"
    "  elseif t == '=' then ok = field(a, 'r') == ARGV[i + 2]; i = i + 3\n"
    "  elseif t == '-' then ok = call('EXISTS', P .. a) == 0; i = i + 2\n"
    "  elseif t == '+' then ok = call('EXISTS', P .. a) == 1; i = i + 2\n"
    "  elseif t == 'n' then ok = call('EXISTS', P .. a) == 0 or field(a, 'l') == '0'; i = i + 2\n"
    "  elseif t == 'd' then ok = dead(a) == true; i = i + 2\n"
    "  elseif t == 'a' then ok = dead(a) == false; i = i + 2\n"
    "  end\n"
    "  if not ok then return refuse(g) end\n"
    "end\n"
    /* From here on nothing may fail. A key of another type than ours is not ours and is
     * replaced. */
    "local function w(c, k, a, b)\n"
    "  local r\n"
    "  if b then r = try(c, k, a, b) else r = try(c, k, a) end\n"
    "  if odd(r, 'not an integer') then\n"
    "    call('DEL', k)\n"
    "    if b then r = call(c, k, a, b) else r = call(c, k, a) end\n"
    "  end\n"
    "  return r\n"
    "end\n"
    "local function append(k, seq, v)\n"
    "  local r = try('XADD', k, seq .. '-1', 'e', v)\n"
    "  if not odd(r, 'in XADD') then return end\n"
    /* Not after the last entry, or not a stream at all: rewrite it in order. */
    "  local old = try('XRANGE', k, '-', '+')\n"
    "  local none = odd(old)\n"
    "  call('DEL', k)\n"
    "  if none then call('XADD', k, seq .. '-1', 'e', v) return end\n"
    "  local n, put = tonumber(seq), false\n"
    "  for _, e in ipairs(old) do\n"
    "    local at = tonumber(string.match(e[1], '^%d+'))\n"
    "    if not put and at >= n then call('XADD', k, seq .. '-1', 'e', v); put = true end\n"
    "    if at ~= n then call('XADD', k, e[1], unpack(e[2])) end\n"
    "  end\n"
    "  if not put then call('XADD', k, seq .. '-1', 'e', v) end\n"
    "end\n"
    "local function write(kind, id, at)\n"
    "  local k, live = P .. kind .. ':' .. id, ARGV[at + 3]\n"
    "  local new = try('HSET', k, 'r', ARGV[at], 'o', ARGV[at + 1], 't', ARGV[at + 2],\n"
    "    'l', live, 'c', ARGV[at + 4], 'v', ARGV[at + 5])\n"
    "  if odd(new) then\n"
    "    call('DEL', k)\n"
    "    new = call('HSET', k, 'r', ARGV[at], 'o', ARGV[at + 1], 't', ARGV[at + 2],\n"
    "      'l', live, 'c', ARGV[at + 4], 'v', ARGV[at + 5])\n"
    "  end\n"
    "  if new > 0 then w('ZADD', P .. '.ids:' .. kind, '0', id) end\n"
    "  if live == '1' then w('ZADD', P .. '.live:' .. kind, '0', id)\n"
    "  elseif new < 6 then w('ZREM', P .. '.live:' .. kind, id) end\n"
    "end\n"
    "local N = #ARGV\n"
    "while i <= N do\n"
    "  local t, a, b = ARGV[i], ARGV[i + 1], ARGV[i + 2]\n"
    "  if t == 'p' then write(a, b, i + 3); i = i + 9\n"
    "  elseif t == 'i' then w('ZADD', P .. '.index:' .. a, '0', b); i = i + 3\n"
    "  elseif t == 'u' then w('ZREM', P .. '.index:' .. a, b); i = i + 3\n"
    "  elseif t == 'l' then append(P .. '.log:' .. a, b, ARGV[i + 3]); i = i + 4\n"
    "  elseif t == 'n' then\n"
    "    if call('EXISTS', P .. a .. ':' .. b) == 0 then write(a, b, i + 3) end\n"
    "    i = i + 9\n"
    "  elseif t == 'd' then\n"
    "    call('DEL', P .. a .. ':' .. b)\n"
    "    w('ZREM', P .. '.ids:' .. a, b)\n"
    "    w('ZREM', P .. '.live:' .. a, b)\n"
    "    i = i + 3\n"
    "  elseif t == 't' then\n"
    "    if b == '' then call('DEL', P .. '.log:' .. a)\n"
    "    else w('XTRIM', P .. '.log:' .. a, 'MINID', b) end\n"
    "    i = i + 3\n"
    "  end\n"
    "end\n"
    "if WAKE ~= '' then try('PUBLISH', 'glia:wake:' .. HOME, C .. ' ' .. WAKE) end\n"
    "return 0\n";

/* 0: committed; 1: never, from now on; 2: forgotten. It always writes something, because a WAIT
 * after it covers only what was written before this connection's last write. */
static const char resolve[] =
    "local S, X = ARGV[3], ARGV[4]\n"
    "local key, n = 'glia:.session:' .. S, tonumber(X)\n"
    "local r = call('HMGET', key, 'x', 'f', 'node')\n"
    "local x, f = tonumber(r[1] or '0'), tonumber(r[2] or '0')\n"
    "if n > x then\n"
    "  if call('HGET', 'glia:store', 'id') ~= ARGV[5] then return redis.error_reply(OTHER) end\n"
    "  call('HSET', key, 'x', X)\n"
    "  note(S, num(x + 1), X, 10000)\n"
    "  if not r[3] then\n"
    /* A session that was never opened: nothing else would ever delete its keys. */
    "    call('EXPIRE', key, 86400)\n"
    "    call('EXPIRE', 'glia:.no:' .. S, 86400)\n"
    "  end\n"
    "  return 1\n"
    "end\n"
    "call('HSET', key, 'asked', X)\n"
    "if n <= f then return 2 end\n"
    "local no = call('ZRANGEBYSCORE', 'glia:.no:' .. S, X, '+inf', 'LIMIT', 0, 1)[1]\n"
    "if no and tonumber(string.match(no, '^%d+')) <= n then return 1 end\n"
    "return 0\n";

static_assert(GL_SESSIONS_KEPT_MS == 86400000 && GL_SESSIONS_KEPT == 100, "opening says so, too");
static const char session[] =
    "local verb, S, now = ARGV[3], ARGV[4], clock()\n"
    "local function key(s) return 'glia:.session:' .. s end\n"
    /* A key of another type among the sessions must not prevent the others from being seen or
     * declared dead. */
    "local function look(s, ...)\n"
    "  local r = try('HMGET', key(s), ...)\n"
    "  return odd(r) and {} or r\n"
    "end\n"
    "local function kill(s)\n"
    "  call('HSET', key(s), 'dead', '1', 'died', num(now))\n"
    "  call('HDEL', key(s), 'about')\n"
    "  call('ZREM', 'glia:.alive', s)\n"
    "  call('ZADD', 'glia:.dead', num(now), s)\n"
    "  note(s, nil, nil, 100)\n"
    "end\n"
    /* The store was emptied while connections stayed open: the next handshake explains what that
     * means. */
    "if (verb == 'open' or verb == 'renew')\n"
    "    and call('HGET', 'glia:store', 'id') ~= ARGV[#ARGV] then\n"
    "  return redis.error_reply(OTHER)\n"
    "end\n"
    /* Nor may it prevent a session from being opened or renewed: it is deleted. */
    "local function ours(k, type)\n"
    "  local t = call('TYPE', k).ok\n"
    "  if t ~= 'none' and t ~= type then call('DEL', k) end\n"
    "end\n"
    "if verb ~= 'list' then\n"
    "  ours('glia:.alive', 'zset'); ours('glia:.dead', 'zset'); ours('glia:.nodes', 'hash')\n"
    "  if verb ~= 'open' then ours(key(S), 'hash') end\n"
    "end\n"
    "if verb == 'open' then\n"
    "  local node, nonce, ttl, about, opening = S, ARGV[5], ARGV[6], ARGV[7], ARGV[8]\n"
    "  for _, s in ipairs(call('ZRANGE', 'glia:.alive', 0, -1)) do\n"
    "    local r = look(s, 'node', 'opening', 'incarnation')\n"
    /* A resent copy of the same request, from an old connection: it must not end the session that
     * the first one opened. */
    "    if r[1] == node and r[2] == opening then return {s, r[3]} end\n"
    "    if r[1] == node then kill(s) end\n"
    "  end\n"
    "  local old = num(now - 86400000)\n"
    "  for _, s in ipairs(call('ZRANGEBYSCORE', 'glia:.dead', '-inf', old, 'LIMIT', 0, 100)) do\n"
    "    call('DEL', key(s), 'glia:.no:' .. s)\n"
    "    call('ZREM', 'glia:.dead', s)\n"
    "  end\n"
    "  local inc = call('HINCRBY', 'glia:.nodes', node, 1)\n"
    "  local s = node .. '#' .. inc .. '.' .. nonce\n"
    "  call('HSET', key(s), 'node', node, 'incarnation', inc, 'opened', num(now),\n"
    "    'until', num(now + ttl), 'about', about, 'opening', opening)\n"
    "  call('ZADD', 'glia:.alive', num(now), s)\n"
    "  return {s, inc}\n"
    "elseif verb == 'list' then\n"
    "  local out, n = {}, tonumber(S)\n"
    "  local function ids(...)\n"
    "    local r = try(...)\n"
    "    return odd(r) and {} or r\n"
    "  end\n"
    "  local function add(s)\n"
    "    local r = look(s, 'node', 'incarnation', 'until', 'dead', 'about')\n"
    "    if r[1] and #out < n then\n"
    "      out[#out + 1] = {s, r[1], r[2] or '0', num((tonumber(r[3]) or 0) - now),\n"
    "        r[4] or '0', r[5] or ''}\n"
    "    end\n"
    "  end\n"
    "  for _, s in ipairs(ids('ZRANGE', 'glia:.alive', 0, n - 1)) do add(s) end\n"
    "  if #out < n then\n"
    "    for _, s in ipairs(ids('ZREVRANGE', 'glia:.dead', 0, n - #out - 1)) do add(s) end\n"
    "  end\n"
    "  return out\n"
    "end\n"
    "local r = call('HMGET', key(S), 'node', 'dead', 'until', 'opened')\n"
    "if not r[1] then return -1 end\n"
    "if r[2] == '1' then return 1 end\n"
    "if verb == 'renew' then\n"
    "  call('HSET', key(S), 'until', num(now + ARGV[5]), 'about', ARGV[6])\n"
    /* A session that is not listed is never declared dead: if someone deleted the list, renewals
     * fill it again. */
    "  call('ZADD', 'glia:.alive', 'NX', r[4] or '0', S)\n"
    "elseif verb == 'end' then\n"
    "  kill(S)\n"
    "elseif verb == 'declare' and (tonumber(r[3]) or 0) < now then\n"
    "  kill(S)\n"
    "  return 1\n"
    "end\n"
    "return 0\n";

/* A record is returned as r o t l c v; false: it does not exist; a text: the key is not a hash. */
#define RECORD \
    "local function record(k)\n" \
    "  local r = try('HMGET', k, 'r', 'o', 't', 'l', 'c', 'v')\n" \
    "  if odd(r) then return 'no record' end\n" \
    "  if r[1] or r[6] then return r end\n" \
    "  return false\n" \
    "end\n"

static const char get[] =
    RECORD
    "local out = {}\n"
    "local there = enter()\n"
    "for i = 3, #ARGV do out[i - 2] = there and record(P .. ARGV[i]) or false end\n"
    "return out\n";

/* ARGV: ids or live, kind, direction, first, last, limit, whole ('0': without values), total size
 * of values that ends the page (0: no limit). */
static const char list[] =
    RECORD
    "if not enter() then return {} end\n"
    "local set, kind = P .. '.' .. ARGV[3] .. ':' .. ARGV[4], ARGV[4]\n"
    "local limit, out = tonumber(ARGV[8]), {}\n"
    "local from, bytes, bytes_max = 0, 0, tonumber(ARGV[10])\n"
    "repeat\n"
    "  local ids = call(ARGV[5], set, ARGV[6], ARGV[7], 'LIMIT', from, limit - #out / 2)\n"
    "  for _, id in ipairs(ids) do\n"
    "    local k, r = P .. kind .. ':' .. id, nil\n"
    "    if ARGV[9] == '1' then r = record(k)\n"
    "    else\n"
    "      r = try('HMGET', k, 'r', 'o', 't', 'l')\n"
    "      if odd(r) then r = 'no record' elseif not r[1] then r = false end\n"
    "    end\n"
    /* An entry without a record is left over after keys were deleted by hand. */
    "    if r then out[#out + 1] = id; out[#out + 1] = r end\n"
    "    if bytes_max > 0 and ARGV[9] == '1' and type(r) == 'table' then\n"
    "      bytes = bytes + #(r[6] or '')\n"
    "      if bytes >= bytes_max then return out end\n"
    "    end\n"
    "  end\n"
    "  from = from + #ids\n"
    "until #ids == 0 or #out / 2 >= limit\n"
    "return out\n";

static const char range[] =
    "if not enter() then return {} end\n"
    "local index = P .. '.index:' .. ARGV[3]\n"
    "return call('ZRANGEBYLEX', index, ARGV[4], ARGV[5], 'LIMIT', 0, ARGV[6])\n";

static const char log_read[] =
    "if not enter() then return {} end\n"
    "return call('XRANGE', P .. '.log:' .. ARGV[3], ARGV[4], '+', 'COUNT', ARGV[5])\n";

/* A small database is summed up, a large one sampled. Keys that are not ours do not count. */
static const char measure[] =
    "if not enter() then return 0 end\n"
    "local n, sum = call('DBSIZE'), 0\n"
    "local function add(k)\n"
    "  local ours = string.sub(k, 1, #P) == P and (C ~= '' or string.sub(k, 1, 6) ~= 'glia:@')\n"
    "  if ours then sum = sum + (call('MEMORY', 'USAGE', k, 'SAMPLES', 8) or 0) end\n"
    "end\n"
    "if n <= 1000 then\n"
    "  local at = '0'\n"
    "  repeat\n"
    "    local r = call('SCAN', at, 'COUNT', 1000)\n"
    "    at = r[1]\n"
    "    for _, k in ipairs(r[2]) do add(k) end\n"
    "  until at == '0'\n"
    "  return sum\n"
    "end\n"
    "for _ = 1, 1000 do\n"
    "  local k = call('RANDOMKEY')\n"
    "  if k then add(k) end\n"
    "end\n"
    "return math.floor(sum / 1000 * n)\n";

/* The names of everything except single records, for an export. */
static const char scan[] =
    "if not enter() then return {'0', {}} end\n"
    "local r, out = call('SCAN', ARGV[3], 'COUNT', 1000), {}\n"
    "for _, k in ipairs(r[2]) do\n"
    "  if string.sub(k, 1, #P + 1) == P .. '.' then\n"
    "    local what = string.match(k, '^%a+', #P + 2)\n"
    "    if what == 'ids' or what == 'index' or what == 'log' then\n"
    "      out[#out + 1] = string.sub(k, #P + 2)\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return {r[1], out}\n";

const char *const gl_redis_scripts[GL_REDIS_SCRIPTS_N][GL_REDIS_PIECES] = {
    /* Defining a function costs time in every commit, so those for other contexts are only included
     * if needed. */
    [GL_REDIS_SCRIPT_COMMIT] = {WRITES, names, memory, "if C ~= '' then\n", enter, make, "end\n",
                                commit},
    [GL_REDIS_SCRIPT_RESOLVE] = {WRITES, names, memory, resolve},
    [GL_REDIS_SCRIPT_SESSION] = {WRITES, names, clock, memory, session},
    /* No-writes: a server that cannot write can still be asked about sessions. */
    [GL_REDIS_SCRIPT_SESSION_READ] = {READS, names, clock, memory, session},
    [GL_REDIS_SCRIPT_GET] = {READS, names, enter, get},
    [GL_REDIS_SCRIPT_LIST] = {READS, names, enter, list},
    [GL_REDIS_SCRIPT_RANGE] = {READS, names, enter, range},
    [GL_REDIS_SCRIPT_LOG] = {READS, names, enter, log_read},
    [GL_REDIS_SCRIPT_MEASURE] = {READS, names, enter, measure},
    [GL_REDIS_SCRIPT_SCAN] = {READS, names, enter, scan},
};

const char *const gl_redis_script_identity =
    WRITES
    "local s = redis.call('HMGET', 'glia:store', 'id', 'schema', 'context')\n"
    "if not s[1] then\n"
    "  redis.call('HSET', 'glia:store', 'id', ARGV[1], 'schema', ARGV[2])\n"
    "  s = {ARGV[1], ARGV[2], false}\n"
    "end\n"
    "return s\n";

const char *const gl_redis_script_probe =
    WRITES
    "local c, k = redis.call, 'glia:.probe'\n"
    "c('SELECT', ARGV[1]); c('TYPE', k)\n"
    "c('TIME'); c('DBSIZE'); c('RANDOMKEY'); c('SCAN', '0', 'COUNT', 1)\n"
    "c('PUBLISH', 'glia:wake:' .. ARGV[1], '')\n"
    "c('DEL', k)\n"
    "c('HSET', k, 'a', '1'); c('HGET', k, 'a'); c('HMGET', k, 'a'); c('HINCRBY', k, 'b', 1)\n"
    "c('HDEL', k, 'b'); c('EXISTS', k); c('EXPIRE', k, 60); c('MEMORY', 'USAGE', k); c('DEL', k)\n"
    "c('ZADD', k, 0, 'a'); c('ZADD', k, 0, 'b'); c('ZREM', k, 'b'); c('ZCARD', k)\n"
    "c('ZRANGE', k, 0, 0); c('ZREVRANGE', k, 0, 0); c('ZRANGEBYSCORE', k, 0, 1)\n"
    "c('ZRANGEBYLEX', k, '-', '+'); c('ZREVRANGEBYLEX', k, '+', '-')\n"
    "c('ZREMRANGEBYRANK', k, 5, 6); c('DEL', k)\n"
    "c('XADD', k, '1-1', 'e', ''); c('XRANGE', k, '-', '+'); c('XTRIM', k, 'MINID', '1')\n"
    "c('DEL', k)\n"
    "return 'OK'\n";
