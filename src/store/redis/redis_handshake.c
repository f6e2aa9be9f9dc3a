/* redis_handshake.c - the handshake on a new connection, before the first request: authenticate,
 * check that this is the right server and that its settings are acceptable, load the scripts. One
 * command at a time; each reply decides whether to continue.
 *
 * The writer link does all of it. The other links check only that they reached the same server, by
 * its run id: behind a load balancer or after a failover a name may lead elsewhere. */
#include <stdio.h>

#include "base/check.h"
#include "store/redis/redis_parts.h"

/* In this order; is_due() skips some. */
enum step {
    STEP_AUTH,
    STEP_NAME,
    STEP_SELECT,
    STEP_INFO,
    STEP_CONFIG,
    STEP_IDENTITY,
    STEP_PROBE,
    STEP_SCRIPTS,
    STEP_SUBSCRIBE,
    STEP_READY,
};

/* A link loads only the scripts it uses. After a SCRIPT FLUSH the writing scripts must be reloaded
 * by the link whose requests were refused, after all of those requests have been answered: this
 * keeps transactions in order. */
static unsigned first_script(const struct gl_redis_link *l)
{
    return l->role == GL_REDIS_WRITER ? 0 : GL_REDIS_SCRIPT_GET;
}

static unsigned last_script(const struct gl_redis_link *l)
{
    return l->role == GL_REDIS_WRITER ? GL_REDIS_SCRIPT_SESSION_READ : GL_REDIS_SCRIPTS_N - 1;
}

static bool is_due(const struct gl_redis_link *l)
{
    GL_ASSERT(l->step <= STEP_READY);
    switch ((enum step)l->step) {
    case STEP_AUTH:
        return l->store->url.password.n > 0 || l->store->url.user.n > 0;
    case STEP_CONFIG:
        return l->role == GL_REDIS_WRITER;
    case STEP_PROBE:
        return l->role == GL_REDIS_WRITER && !l->store->probed && !l->store->check_only;
    case STEP_SCRIPTS:
        return l->role != GL_REDIS_SUBSCRIBER && !l->store->check_only;
    case STEP_SUBSCRIBE:
        return l->role == GL_REDIS_SUBSCRIBER;
    default:
        return true;
    }
}

/* ---- commands ---- */

static void send_identity(struct gl_redis_link *l, struct gl_buf *b)
{
    struct gl_redis *s = l->store;
    /* Reading is enough, and works even if nothing can be written. */
    if (s->check_only || s->read_only || s->identity[0] != '\0' || l->role != GL_REDIS_WRITER) {
        gl_redis_command(b, gl_arg_c("HMGET"), gl_arg_c("glia:store"), gl_arg_c("id"),
                         gl_arg_c("schema"), gl_arg_c("context"));
        return;
    }
    struct gl_ulid fresh = gl_calls_new_id(&s->calls);
    gl_redis_command(b, gl_arg_c("EVAL"), gl_arg_c(gl_redis_script_identity), gl_arg_i64(0),
                     gl_arg_c(fresh.text), gl_arg_i64(GL_REDIS_SCHEMA));
}

static void send_script(struct gl_redis_link *l, struct gl_buf *b)
{
    struct gl_arg pieces[GL_REDIS_PIECES];
    size_t n = 0;

    GL_ASSERT(l->script < GL_REDIS_SCRIPTS_N);
    for (; n < GL_REDIS_PIECES && gl_redis_scripts[l->script][n] != NULL; n++) {
        pieces[n] = gl_arg_c(gl_redis_scripts[l->script][n]);
    }
    gl_redis_command_open(b, 3);
    gl_redis_args(b, GL_ARGS(gl_arg_c("SCRIPT"), gl_arg_c("LOAD")));
    gl_redis_joined_n(b, pieces, n);
}

static void send_step(struct gl_redis_link *l)
{
    static const char *const names[] = {"glia-writes", "glia-reads", "glia-hears"};
    struct gl_redis *s = l->store;
    char text[48];

    GL_ASSERT(l->step < STEP_READY);
    switch ((enum step)l->step) {
    case STEP_AUTH:
        gl_redis_auth(&l->out, s->url.user, s->url.password);
        break;
    case STEP_NAME:
        gl_redis_command(&l->out, gl_arg_c("CLIENT"), gl_arg_c("SETNAME"),
                         gl_arg_c(names[l->role]));
        break;
    case STEP_SELECT:
        gl_redis_command(&l->out, gl_arg_c("SELECT"), gl_arg_i64(s->url.database));
        break;
    case STEP_INFO:
        gl_redis_command(&l->out, gl_arg_c("INFO"));
        break;
    case STEP_CONFIG:
        gl_redis_command(&l->out, gl_arg_c("CONFIG"), gl_arg_c("GET"), gl_arg_c("appendfsync"),
                         gl_arg_c("min-replicas-to-write"), gl_arg_c("no-appendfsync-on-rewrite"));
        break;
    case STEP_IDENTITY:
        send_identity(l, &l->out);
        break;
    case STEP_PROBE:
        gl_redis_command(&l->out, gl_arg_c("EVAL"), gl_arg_c(gl_redis_script_probe), gl_arg_i64(0),
                         gl_arg_i64(s->url.database));
        break;
    case STEP_SCRIPTS:
        send_script(l, &l->out);
        break;
    case STEP_SUBSCRIBE:
        (void)snprintf(text, sizeof(text), "glia:wake:%u", s->url.database);
        gl_redis_command(&l->out, gl_arg_c("SUBSCRIBE"), gl_arg_c(text));
        break;
    case STEP_READY:
        GL_UNREACHABLE();
    }
    gl_redis_link_write(l);
}

/* Report the first connection, or a reconnection. */
static void report_connected(struct gl_redis *s)
{
    if (s->check_only) {
        return;
    }
    if (!s->identified) {
        s->identified = true;
        gl_calls_identified(&s->calls, gl_str_of(s->identity));
        return;
    }
    gl_calls_changed(&s->calls, s->last_loss.code != 0 ? s->last_loss.text : "connected again");
}

void gl_redis_handshake(struct gl_redis_link *l)
{
    bool again = l->reload; /* only the scripts were missing */

    GL_ASSERT(l->state == GL_REDIS_HANDSHAKE);
    while (!is_due(l)) {
        l->step++;
    }
    if (l->step < STEP_READY) {
        send_step(l);
        return;
    }
    gl_redis_link_ready(l);
    if (l->role == GL_REDIS_WRITER && !again) {
        report_connected(l->store);
        gl_redis_schedule_tick(l->store, 0); /* the other links may connect now */
    }
}

void gl_redis_handshake_reload(struct gl_redis_link *l)
{
    GL_ASSERT(l->role != GL_REDIS_SUBSCRIBER);
    GL_ASSERT(l->reload);
    l->state = GL_REDIS_HANDSHAKE;
    l->since = gl_calls_now(&l->store->calls);
    l->step = STEP_SCRIPTS;
    l->script = first_script(l);
    send_step(l);
}

/* ---- replies ---- */

/* Refuse the server: requests fail with `why`. It is checked again later, in case the problem has
 * been fixed. */
static void refuse(struct gl_redis_link *l, const struct gl_why *why)
{
    gl_redis_refuse(l->store, why);
    gl_redis_link_lost(l, why);
}

/* Can the server be used at all, and do its settings keep what is written? False: this connection
 * has been closed. */
static bool on_server_info(struct gl_redis_link *l)
{
    struct gl_redis *s = l->store;
    struct gl_why why;
    if (s->check_only) {
        return true;
    }
    int err = gl_redis_info_check(&s->info, &why);
    if (err == GL_E_UNAVAILABLE) {
        gl_redis_link_lost(l, &why); /* may be temporary */
        return false;
    }
    if (err < 0) {
        refuse(l, &why);
        return false;
    }
    s->had_replicas = s->had_replicas || s->info.replicas > 0;
    if (s->allow_loss) {
        return true;
    }
    struct gl_arena a = {0};
    struct gl_findings found = {0};
    gl_redis_info_diagnose(&s->info, &a, &found);
    const struct gl_finding *bad = NULL;
    for (size_t i = 0; i < found.n && bad == NULL; i++) {
        bad = found.items[i].level == GL_FINDING_BAD ? &found.items[i] : NULL;
    }
    if (bad != NULL) {
        (void)gl_why(&why, GL_E_INVALID, "the Redis server can lose data silently: %.*s",
                     GL_STR_ARG(bad->text));
    }
    gl_arena_done(&a);
    if (bad != NULL) {
        refuse(l, &why);
    }
    return bad == NULL;
}

static bool on_info(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    struct gl_redis *s = l->store;
    struct gl_redis_info info;

    GL_ASSERT(l->step == STEP_INFO);
    gl_redis_info_parse(&info, gl_redis_text(reply));
    (void)snprintf(l->run_id, sizeof(l->run_id), "%s", info.run_id);
    if (l->role == GL_REDIS_WRITER) {
        s->info = info;
        return true;
    }
    /* The name leads to another server now, so the writer's server may no longer be the primary:
     * everything reconnects. */
    if (strcmp(l->run_id, s->links[GL_REDIS_WRITER].run_id) != 0) {
        struct gl_why why;
        (void)gl_why(&why, GL_E_UNAVAILABLE,
                     "a different server answers at the address of the store");
        gl_redis_link_lost(&s->links[GL_REDIS_WRITER], &why);
        return false;
    }
    return true;
}

/* Is this the store that the data folder remembers? An empty or replaced server must never be taken
 * for it: jobs would silently be gone and unsafe steps run again. */
static int check_identity(struct gl_redis *s, const struct gl_redis_reply *reply,
                          struct gl_why *why)
{
    gl_str id = gl_redis_text(gl_redis_item(reply, 0));
    gl_str context = gl_redis_text(gl_redis_item(reply, 2));
    uint64_t schema = 0;
    if (context.n > 0) {
        return gl_why(why, GL_E_INVALID,
                      "database %u belongs to the context '%.*s' of another store on this server: "
                      "choose another number",
                      s->url.database, GL_STR_ARG(context));
    }
    if (gl_redis_u64(gl_redis_item(reply, 1), &schema) && schema > GL_REDIS_SCHEMA) {
        return gl_why(
            why, GL_E_VERSION,
            "the store was written by a newer release (schema %llu; this one supports %d): "
            "use the newer release",
            (unsigned long long)schema, GL_REDIS_SCHEMA);
    }
    if (s->identity[0] == '\0' || gl_str_is(id, s->identity)) {
        return 0;
    }
    if (id.n == 0) {
        return gl_why(
            why, GL_R_STORE_EMPTIED,
            "the Redis server is empty, but this data folder has used the store %s there: "
            "it was restarted without its data, or flushed. Nothing was changed. Restore "
            "its data and start it again; or, to start over, remove the file that "
            "remembers the store from the data folder",
            s->identity);
    }
    return gl_why(
        why, GL_R_STORE_REPLACED,
        "the Redis server holds the store %.*s, but this data folder has used the store %s: "
        "it is another server or database. Nothing was changed. Correct the store "
        "URL; or, to move to that store, remove the file that remembers the store "
        "from the data folder",
        GL_STR_ARG(id), s->identity);
}

static bool on_identity(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    struct gl_redis *s = l->store;
    struct gl_why why;

    GL_ASSERT(l->step == STEP_IDENTITY);
    if (s->check_only) {
        s->check_why = check_identity(s, reply, &why) < 0 ? why : (struct gl_why){0};
        (void)snprintf(s->found_identity, sizeof(s->found_identity), "%.*s",
                       GL_STR_ARG(gl_redis_text(gl_redis_item(reply, 0))));
        return true;
    }
    if (check_identity(s, reply, &why) < 0) {
        refuse(l, &why);
        return false;
    }
    if (s->identity[0] == '\0') {
        (void)snprintf(s->identity, sizeof(s->identity), "%.*s",
                       GL_STR_ARG(gl_redis_text(gl_redis_item(reply, 0))));
    }
    s->refusal = (struct gl_why){0};
    return true;
}

/* Handle the reply to the current step. False: the connection has been closed. */
static bool on_step(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    GL_ASSERT(l->step < STEP_READY);
    switch ((enum step)l->step) {
    case STEP_INFO:
        return on_info(l, reply);
    case STEP_CONFIG:
        gl_redis_info_parse_config(&l->store->info, reply);
        return on_server_info(l);
    case STEP_IDENTITY:
        return on_identity(l, reply);
    case STEP_PROBE:
        l->store->probed = true;
        return true;
    case STEP_SCRIPTS:
        (void)snprintf(l->sha[l->script], GL_REDIS_SHA_BYTES, "%.*s",
                       GL_STR_ARG(gl_redis_text(reply)));
        return true;
    default:
        return true;
    }
}

static void on_refusal(struct gl_redis_link *l, gl_str error)
{
    struct gl_why why;
    (void)gl_redis_error_why(&why, GL_E_UNAVAILABLE, error);
    gl_redis_link_lost(l, &why);
}

void gl_redis_handshake_reply(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    struct gl_conn *conn = l->conn;
    /* Both are conveniences that an ACL may deny. */
    bool optional = l->step == STEP_CONFIG || l->step == STEP_NAME;

    GL_ASSERT(l->state == GL_REDIS_HANDSHAKE);
    GL_ASSERT(l->step < STEP_READY);
    if (reply->type == GL_REDIS_ERROR && !optional) {
        on_refusal(l, reply->text);
        return;
    }
    /* The step may have closed this connection, and even opened another. */
    if (!on_step(l, reply) || l->conn != conn) {
        return;
    }
    if (l->step == STEP_SCRIPTS && l->script < last_script(l)) {
        l->script++;
    } else {
        l->step = l->reload ? STEP_READY : l->step + 1;
        l->script = first_script(l);
    }
    gl_redis_handshake(l);
}

/* ---- messages to the subscriber ---- */

void gl_redis_handshake_message(struct gl_redis_link *l, const struct gl_redis_reply *reply)
{
    GL_ASSERT(l->role == GL_REDIS_SUBSCRIBER);
    if (gl_str_is(gl_redis_text(gl_redis_item(reply, 0)), "message")) {
        gl_str word, context = gl_str_cut(gl_redis_text(gl_redis_item(reply, 2)), ' ', &word);
        gl_calls_woken(&l->store->calls, context.n > 0 ? context : GL_CONTEXT_DEFAULT, word);
    }
}
