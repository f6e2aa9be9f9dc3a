#include "sim/sim_known.h"

#include "model/text/ref.h"

static void put(struct gl_jw *w, const char *key, gl_str raw)
{
    gl_jw_key(w, key);
    gl_jw_raw(w, raw.n > 0 ? raw : GL_S("null"));
}

gl_str sim_known_output(struct sim_checks *c, const struct sim_fact_step *st)
{
    struct gl_buf text = {0};
    if (st->items_n == 0 || st->r.status == GL_STEP_SKIPPED) {
        return st->output;
    }
    for (uint32_t i = 0; i < st->items_n; i++) {
        gl_str one = st->items[i] != NULL ? st->items[i]->output : (gl_str){0};
        gl_buf_char(&text, i == 0 ? '[' : ',');
        gl_buf_str(&text, one.n > 0 ? one : GL_S("null"));
    }
    gl_buf_char(&text, ']');
    gl_str list = gl_str_dup(&c->arena, gl_buf_view(&text));
    gl_buf_done(&text);
    return list;
}

static void put_step(struct sim_checks *c, const struct sim_fact_step *st, struct gl_jw *w)
{
    gl_jw_key_str(w, st->spec->id);
    if (!st->known) {
        gl_jw_null(w);
        return;
    }
    gl_jw_object(w);
    gl_jw_key(w, "status");
    gl_jw_c(w, gl_step_status_words[st->r.status]);
    gl_jw_key(w, "outcome");
    gl_jw_c(w, gl_outcome_words[st->r.terminal_outcome]);
    bool is_plain = !gl_flow_waits(st->spec) && st->spec->foreach.n == 0;
    if (is_plain && (st->r.attempt_count > 0 || (st->r.gate & GL_GATE_REUSED) != 0)) {
        gl_jw_key(w, "exit_code");
        gl_jw_i64(w, st->r.exit_code);
    }
    put(w, "output", sim_known_output(c, st));
    gl_jw_end(w);
}

static void put_job(const struct sim_fact_job *j, int64_t index, gl_str item, struct gl_jw *w)
{
    char when[GL_TIMES_BYTES];
    gl_jw_key(w, "job");
    gl_jw_object(w);
    gl_jw_key(w, "id");
    gl_jw_str(w, j->id);
    gl_jw_key(w, "run_id");
    gl_jw_str(w, j->run_id);
    gl_jw_key(w, "name");
    gl_jw_str(w, j->flow->name);
    gl_jw_key(w, "submitted_at");
    gl_jw_str(w, gl_times_format(j->r.submitted_at, when));
    if (index >= 0) {
        gl_jw_key(w, "index");
        gl_jw_i64(w, index);
        put(w, "item", item);
    }
    gl_jw_end(w);
}

static bool compose(struct sim_checks *c, const struct sim_fact_job *j,
                    const struct gl_step_spec *spec, int64_t index, gl_str item,
                    struct gl_json *ret)
{
    struct gl_buf text = {0};
    struct gl_jw w;
    gl_jw_init(&w, &text);
    gl_jw_object(&w);
    put_job(j, index, item, &w);
    put(&w, "inputs", j->inputs.n > 0 ? j->inputs : GL_S("{}"));
    gl_jw_key(&w, "steps");
    gl_jw_object(&w);
    for (uint32_t i = 0; i < spec->reads_n; i++) {
        put_step(c, &j->steps[spec->reads[i]], &w);
    }
    gl_jw_end(&w);
    gl_jw_end(&w);
    gl_str copy = gl_str_dup(&c->arena, gl_buf_view(&text));
    gl_buf_done(&text);
    return gl_json_parse(ret, copy, GL_RECORD_BYTES_MAX, &c->arena, NULL) == 0;
}

bool sim_known_items(struct sim_checks *c, const struct sim_fact_step *st,
                     const struct gl_json *facts, struct gl_json *ret, uint32_t *ret_n)
{
    gl_str list = st->spec->foreach;
    if (gl_ref_is_one(list) && gl_ref_json(list, facts, &c->arena, &list, NULL) != 0) {
        return false;
    }
    if (gl_json_parse(ret, list, GL_RECORD_BYTES_MAX, &c->arena, NULL) != 0 ||
        !gl_json_is(gl_json_root(ret), GL_JSON_ARRAY)) {
        return false;
    }
    *ret_n = 0;
    for (gl_jnode e = gl_json_first(ret, gl_json_root(ret)); e != NULL;
         e = gl_json_after(ret, gl_json_root(ret), e)) {
        ++*ret_n;
    }
    return true;
}

bool sim_known_facts(struct sim_checks *c, const struct sim_fact_job *j,
                     const struct sim_fact_step *st, struct gl_json *ret)
{
    struct gl_json list;
    uint32_t n;
    if (!compose(c, j, st->spec, -1, (gl_str){0}, ret) || st->group == NULL) {
        return st->group == NULL;
    }
    if (!sim_known_items(c, st, ret, &list, &n) || st->item >= n) {
        return false;
    }
    gl_jnode e = gl_json_first(&list, gl_json_root(&list));
    for (uint32_t i = 0; i < st->item; i++) {
        e = gl_json_after(&list, gl_json_root(&list), e);
    }
    return compose(c, j, st->spec, st->item, gl_json_raw(&list, e), ret);
}

bool sim_known_due(struct sim_checks *c, const struct sim_fact_step *st,
                   const struct gl_json *facts, gl_ms now, gl_ms *ret)
{
    gl_str text = st->spec->sleep.n > 0 ? st->spec->sleep : st->spec->until;
    gl_ms span;
    if (gl_ref_has(text) && gl_ref_expand(text, facts, &c->arena, &text, NULL) != 0) {
        return false;
    }
    if (st->spec->until.n > 0) {
        return gl_times_parse(text, ret);
    }
    if (!gl_times_parse_span(text, &span)) {
        return false;
    }
    *ret = now + span;
    return true;
}
