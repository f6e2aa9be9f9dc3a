/* test.say - does what the body of a message tells it: {"do": "...", ...}. */
#include <glia/module_json.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static int init(struct glia_text config, void **ret_instance, struct glia_error *error)
{
    if (glia_text_is(glia_json_get(config, "bad"), "true")) {
        (void)snprintf(error->text, sizeof(error->text), "this configuration is bad");
        return -1;
    }
    *ret_instance = NULL;
    return 0;
}

/* Everything that a module can say, and what it was given. */
static int say_all(const struct glia_message *m, struct glia_text state, struct glia_out *out)
{
    struct glia_writer w = {0};

    glia_write_c(&w, "{\"id\":");
    glia_write_string(&w, m->message_id);
    glia_write_c(&w, ",\"from\":");
    glia_write_string(&w, m->from);
    glia_write_c(&w, ",\"type\":");
    glia_write_string(&w, m->type);
    glia_write_c(&w, ",\"job\":");
    glia_write_string(&w, m->job_id);
    glia_write_c(&w, ",\"agent\":");
    glia_write_string(&w, m->agent_id);
    glia_write_c(&w, ",\"headers\":");
    glia_write(&w, m->headers);
    glia_write_c(&w, "}");
    out->event(out, glia_text("seen"), glia_written(&w));
    out->event(out, glia_text("bare"), glia_text(""));
    out->emit(out, glia_text("first"), m->body);
    out->emit_to(out, glia_text("other"), glia_text("second"), glia_text(""));
    out->emit_message(out, glia_text(" {\"type\":\"third\",\"body\":3} "));
    out->set_state(out, state.length > 0 ? glia_text("\"again\"") : glia_text("\"new\""));
    out->complete_step(out, glia_text(""));
    out->complete_run(out, glia_text("[1]"));
    glia_writer_done(&w);
    return 0;
}

static void crash(void)
{
    (void)signal(SIGSEGV, SIG_DFL); /* also where a sanitizer would like to say something */
    static volatile char *volatile nowhere;
    nowhere = (volatile char *)(uintptr_t)16; /* not raise(): the node blocks signals */
    *nowhere = 1;
}

static void linger(struct glia_text ms)
{
    double n = glia_json_number(ms, 0);
    struct timespec t = {.tv_sec = (time_t)(n / 1000),
                         .tv_nsec = (long)((long long)n % 1000) * 1000000};

    (void)nanosleep(&t, NULL);
}

/* A child that stays, with all of our descriptors. Its number is written where `path` says. */
static void leave_child(struct glia_text path)
{
    char name[512];
    (void)snprintf(name, sizeof(name), "%.*s", (int)path.length, path.bytes);
    pid_t child = fork();
    if (child == 0) {
        for (;;) {
            (void)pause();
        }
    }
    FILE *file = fopen(name, "w");
    if (file != NULL) {
        (void)fprintf(file, "%ld", (long)child);
        (void)fclose(file);
    }
}

static int handle(void *instance, const struct glia_message *m, struct glia_text state,
                  struct glia_out *out)
{
    struct glia_text what = glia_json_string(glia_json_get(m->body, "do"), "");

    (void)instance;
    if (glia_text_is(what, "all")) {
        return say_all(m, state, out);
    }
    if (glia_text_is(what, "fail")) {
        return out->fail(out, glia_text("told to"));
    }
    if (glia_text_is(what, "return")) {
        return 7;
    }
    if (glia_text_is(what, "bad_json")) {
        out->emit(out, glia_text("x"), glia_text("{\"a\":"));
    } else if (glia_text_is(what, "bad_event")) {
        out->event(out, glia_text("x"), glia_text("[1]"));
    } else if (glia_text_is(what, "bad_message")) {
        out->emit_message(out, glia_text("{\"body\":1}"));
    } else if (glia_text_is(what, "bad_name")) {
        out->emit(out, glia_text(""), glia_text("1"));
    } else if (glia_text_is(what, "crash")) {
        crash();
    } else if (glia_text_is(what, "fork")) {
        leave_child(glia_json_string(glia_json_get(m->body, "path"), ""));
    } else if (glia_text_is(what, "fork_crash")) {
        leave_child(glia_json_string(glia_json_get(m->body, "path"), ""));
        crash();
    } else if (glia_text_is(what, "close")) {
        (void)close_range(0, ~0U, 0);
    } else if (glia_text_is(what, "exit")) {
        _exit(3);
    } else if (glia_text_is(what, "scribble")) {
        (void)!write(3, "nonsense from a module that writes where it should not", 54);
    } else if (glia_text_is(what, "loop")) {
        for (volatile int forever = 1; forever;) {
        }
    } else if (glia_text_is(what, "linger")) {
        linger(glia_json_get(m->body, "ms"));
        out->emit(out, glia_text("lingered"), m->body);
    } else if (glia_text_is(what, "many")) {
        for (int i = 0; i < 10001; i++) {
            out->emit(out, glia_text("x"), glia_text("1"));
        }
    } else if (glia_text_is(what, "pid")) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%ld", (long)getpid());
        out->set_state(out, glia_text(text));
    }
    return 0;
}

GLIA_EXPORT const struct glia_module glia_module = {
    GLIA_MODULE_HEAD,
    .name = "test.say",
    .init = init,
    .handle = handle,
};
